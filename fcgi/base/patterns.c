/* SPDX-License-Identifier: MIT */
#include "base/patterns.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/mem.h"
#include "base/str.h"

enum { PATTERNS_MAX = 256, PATTERN_LEN_MAX = 4096 };

struct patterns {
	size_t n;
	struct {
		char *text;
		regex_t re;
	} all[PATTERNS_MAX];
};

void patterns_free(struct patterns *p)
{
	size_t i;

	for (i = 0; p && i < p->n; i++) {
		regfree(&p->all[i].re);
		free(p->all[i].text);
	}
	free(p);
}

static void auto_patterns(struct patterns **p)
{
	patterns_free(*p);
}

/* Bytes of the bracket expression at s, which begins with its [. */
static size_t bracket_length(const char *s)
{
	size_t i = s[1] == '^' ? 2 : 1;
	const char *close;

	i += s[i] == ']'; /* the first ] is one of the characters */
	for (; s[i] && s[i] != ']'; i++) {
		if (s[i] != '[' || s[i + 1] != ':')
			continue;
		close = strstr(s + i + 2, ":]");
		if (close)
			i = (size_t)(close + 1 - s);
	}
	return i + (s[i] == ']');
}

/* Bytes of the first expression of the list: up to the comma that ends it. */
static size_t item_length(const char *s)
{
	size_t i = 0, depth = 0;

	while (s[i] && (s[i] != ',' || depth > 0)) {
		if (s[i] == '[') {
			i += bracket_length(s + i);
			continue;
		}
		if (s[i] == '\\' && s[i + 1])
			i++;
		else if (s[i] == '{' || s[i] == '(')
			depth++;
		else if ((s[i] == '}' || s[i] == ')') && depth > 0)
			depth--;
		i++;
	}
	return i;
}

/* ERE has no escaped comma: "\," means the comma itself. */
static char *without_comma_escapes(struct str s)
{
	char *out = xmalloc(s.n + 1);
	size_t i, n = 0;

	for (i = 0; i < s.n; i++) {
		if (s.p[i] == '\\' && i + 1 < s.n && s.p[i + 1] == ',')
			continue;
		out[n++] = s.p[i];
		if (s.p[i] == '\\' && i + 1 < s.n)
			out[n++] = s.p[++i];
	}
	out[n] = '\0';
	return out;
}

static int add(struct patterns *p, struct str item, struct err *e)
{
	AUTO_FREE char *text = NULL;
	char why[128];
	int rc;

	if (p->n == PATTERNS_MAX || item.n > PATTERN_LEN_MAX)
		return err_set(e, ERR_INVALID,
			       "at most %d expressions of at most %d bytes", PATTERNS_MAX,
			       PATTERN_LEN_MAX);
	text = without_comma_escapes(item);
	rc = regcomp(&p->all[p->n].re, text, REG_EXTENDED | REG_NOSUB | REG_NEWLINE);
	if (rc) {
		regerror(rc, &p->all[p->n].re, why, sizeof why);
		return err_set(e, ERR_INVALID,
			       "\"%s\" is no POSIX extended regular expression: %s", text,
			       why);
	}
	p->all[p->n++].text = MOVE(text);
	return 0;
}

int patterns_compile(const char *list, struct patterns **ret, struct err *e)
{
	__attribute__((cleanup(auto_patterns))) struct patterns *p =
		xcalloc(1, sizeof *p);
	struct str item;

	while (*list) {
		item = (struct str){list, item_length(list)};
		list += item.n;
		list += *list == ',';
		item = str_trim(item);
		if (item.n && add(p, item, e) < 0)
			return -1;
	}
	*ret = MOVE(p);
	return 0;
}

const char *patterns_match(const struct patterns *p, const char *text)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		if (regexec(&p->all[i].re, text, 0, NULL, 0) == 0)
			return p->all[i].text;
	return NULL;
}
