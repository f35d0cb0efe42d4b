/* SPDX-License-Identifier: MIT */
#include "net/httphead.h"

#include <string.h>
#include <strings.h>

enum { LENGTH_MAX_DIGITS = 15 };

static bool starts_with(struct str s, const char *word)
{
	size_t n = strlen(word);

	return s.n >= n && strncasecmp(s.p, word, n) == 0;
}

/* "HTTP/1.1 101 UPGRADED" */
static bool parse_status(struct str line, int *ret)
{
	int i, v = 0;

	if (line.n < 12 ||
	    !(starts_with(line, "HTTP/1.1 ") || starts_with(line, "HTTP/1.0 ")))
		return false;
	for (i = 9; i < 12; i++) {
		if (line.p[i] < '0' || line.p[i] > '9')
			return false;
		v = v * 10 + (line.p[i] - '0');
	}
	*ret = v;
	return v >= 100 && v <= 599 && (line.n == 12 || line.p[12] == ' ');
}

static bool parse_length(struct str v, int64_t *ret)
{
	int64_t n = 0;
	size_t i;

	if (v.n == 0 || v.n > LENGTH_MAX_DIGITS)
		return false;
	for (i = 0; i < v.n; i++) {
		if (v.p[i] < '0' || v.p[i] > '9')
			return false;
		n = n * 10 + (v.p[i] - '0');
	}
	*ret = n;
	return true;
}

static bool is_name(struct str s, const char *name)
{
	return s.n == strlen(name) && strncasecmp(s.p, name, s.n) == 0;
}

static struct str without_cr(struct str line)
{
	if (line.n > 0 && line.p[line.n - 1] == '\r')
		line.n--;
	return line;
}

static bool take_field(struct str line, struct httphead *h)
{
	struct str rest = line, name;

	if (!str_cut(&rest, ':', &name) || !rest.p || name.n == 0 || name.p[0] == ' ')
		return false;
	rest = str_trim(rest);
	if (is_name(name, "content-length"))
		return h->content_length < 0 && parse_length(rest, &h->content_length);
	if (is_name(name, "content-type"))
		h->is_raw_stream =
			starts_with(rest, "application/vnd.docker.raw-stream") ||
			starts_with(rest, "application/vnd.docker.multiplexed-stream");
	return true;
}

enum httphead_result httphead_parse(const char *p, size_t n, struct httphead *ret)
{
	struct httphead h = {.content_length = -1};
	size_t look = n < HTTPHEAD_MAX ? n : HTTPHEAD_MAX;
	const char *end = memmem(p, look, "\r\n\r\n", 4);
	struct str rest, line;

	if (!end)
		return n < HTTPHEAD_MAX ? HTTPHEAD_MORE : HTTPHEAD_BAD;
	h.len = (size_t)(end - p) + 4;
	rest = (struct str){p, h.len - 4};
	if (memchr(p, '\0', h.len) || !str_cut(&rest, '\n', &line) ||
	    !parse_status(without_cr(line), &h.status))
		return HTTPHEAD_BAD;
	while (rest.p && str_cut(&rest, '\n', &line))
		if (!take_field(without_cr(line), &h))
			return HTTPHEAD_BAD;
	*ret = h;
	return HTTPHEAD_OK;
}

bool httphead_field(const char *p, size_t n, const char *name, struct str *ret)
{
	struct str rest = {p, n}, line, field;

	while (str_cut(&rest, '\n', &line)) {
		if (!str_cut(&line, ':', &field) || !line.p || !is_name(field, name))
			continue;
		*ret = str_trim(line);
		return true;
	}
	return false;
}
