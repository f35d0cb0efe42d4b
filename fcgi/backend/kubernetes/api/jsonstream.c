/* SPDX-License-Identifier: MIT */
#include "backend/kubernetes/api/jsonstream.h"

#include <string.h>

void jsonstream_release(struct jsonstream *s)
{
	buf_release(&s->text);
}

static void look_at(struct jsonstream *s, char c)
{
	if (s->in_string) {
		if (s->escaped)
			s->escaped = false;
		else if (c == '\\')
			s->escaped = true;
		else if (c == '"')
			s->in_string = false;
	} else if (c == '"') {
		s->in_string = true;
	} else if (c == '{') {
		s->depth++;
	} else if (c == '}') {
		s->depth--;
	}
}

/* Up to and with the byte that ends the object; all of n when none does. */
static size_t take_object(struct jsonstream *s, const char *p, size_t n)
{
	size_t i = 0;

	do
		look_at(s, p[i++]);
	while (i < n && s->depth > 0);
	buf_add(&s->text, p, i);
	return i;
}

int jsonstream_feed(struct jsonstream *s, const char *p, size_t n,
		    int (*object)(void *arg, const char *p, size_t n, struct err *e),
		    void *arg, struct err *e)
{
	size_t used;

	while (n > 0) {
		if (s->depth == 0 && *p != '{') {
			if (!*p || !strchr(" \t\r\n", *p))
				return err_set(e, ERR_INVALID,
					       "something that is no JSON object");
			p++;
			n--;
			continue;
		}
		used = take_object(s, p, n);
		p += used;
		n -= used;
		if (!buf_ok(&s->text))
			return err_set(e, ERR_LIMIT, "an object of more than %d bytes",
				       JSONSTREAM_MAX);
		if (s->depth > 0)
			continue;
		if (object(arg, s->text.p, s->text.len, e) < 0)
			return -1;
		s->text.len = 0;
	}
	return 0;
}
