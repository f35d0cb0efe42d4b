/* SPDX-License-Identifier: MIT */
#include "conf/conf.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

/*
 * The .env format, as docs/configuration.md describes it: NAME=VALUE lines, blank
 * lines, # comments, an optional "export ", LF or CRLF. A value is bare (ends at
 * the line's end or at " #"; blanks around it do not count), 'single quoted' (as
 * it stands) or "double quoted" (\n \r \t \\ \" \$ \`); quoted values may span
 * lines. Nothing is expanded.
 */
struct reader {
	const char *p, *end;
	int line;
};

static bool at_end(const struct reader *r)
{
	return r->p == r->end;
}

static void skip_blanks(struct reader *r)
{
	while (!at_end(r) && (*r->p == ' ' || *r->p == '\t' || *r->p == '\r'))
		r->p++;
}

static void skip_line(struct reader *r)
{
	while (!at_end(r) && *r->p != '\n')
		r->p++;
}

static int bad(const struct reader *r, struct err *e, const char *rule)
{
	return err_set(e, ERR_INVALID, "line %d: %s", r->line, rule);
}

static bool is_name_char(char c, bool first)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
	       (!first && c >= '0' && c <= '9');
}

static struct str take_name(struct reader *r)
{
	struct str s = {r->p, 0};

	while (!at_end(r) && is_name_char(*r->p, s.n == 0)) {
		r->p++;
		s.n++;
	}
	return s;
}

static int read_name(struct reader *r, struct buf *name, struct err *e)
{
	struct str s = take_name(r);

	if (str_eq(s, "export") && !at_end(r) && (*r->p == ' ' || *r->p == '\t')) {
		skip_blanks(r);
		s = take_name(r);
	}
	if (s.n == 0)
		return bad(r, e,
			   "must be NAME=VALUE with a name of letters, digits and _");
	skip_blanks(r);
	if (at_end(r) || *r->p != '=')
		return bad(r, e, "must be NAME=VALUE; there is no = after the name");
	r->p++;
	buf_add(name, s.p, s.n);
	return 0;
}

static void read_bare(struct reader *r, struct buf *value)
{
	const char *start = r->p;
	struct str s;

	while (!at_end(r) && *r->p != '\n') {
		if (*r->p == '#' &&
		    (r->p == start || r->p[-1] == ' ' || r->p[-1] == '\t'))
			break;
		r->p++;
	}
	s = str_trim((struct str){start, (size_t)(r->p - start)});
	buf_add(value, s.p, s.n);
	skip_line(r);
}

static int add_escape(struct reader *r, struct buf *value, struct err *e)
{
	static const char from[] = "nrt\\\"$`", to[] = "\n\r\t\\\"$`";
	const char *at;

	r->p++;
	at = !at_end(r) && *r->p ? strchr(from, *r->p) : NULL;
	if (!at)
		return bad(r, e,
			   "in double quotes a backslash stands before n r t \\ \" $ ` "
			   "only");
	buf_add(value, to + (at - from), 1);
	return 0;
}

static int read_quoted(struct reader *r, struct buf *value, struct err *e)
{
	char quote = *r->p++;
	int first = r->line;

	for (; !at_end(r) && *r->p != quote; r->p++) {
		if (*r->p == '\n')
			r->line++;
		if (quote == '"' && *r->p == '\\') {
			if (add_escape(r, value, e) < 0)
				return -1;
		} else {
			buf_add(value, r->p, 1);
		}
	}
	if (at_end(r)) {
		r->line = first;
		return bad(r, e, "the closing quote is missing");
	}
	r->p++;
	skip_blanks(r);
	if (!at_end(r) && *r->p != '\n' && *r->p != '#')
		return bad(r, e, "nothing but a comment may follow the closing quote");
	skip_line(r);
	return 0;
}

int conf_parse_env_text(const char *p, size_t n,
			int (*cb)(void *arg, const char *key, const char *value,
				  struct err *e),
			void *arg, struct err *e)
{
	struct reader r = {p, p + n, 1};

	if (n && memchr(p, '\0', n))
		return err_set(e, ERR_INVALID, "has a NUL byte; it must be text");
	if (n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
		r.p += 3; /* a byte order mark from some editors */
	for (; !at_end(&r); r.p++, r.line++) {
		AUTO_BUF name = BUF_INIT(n), value = BUF_INIT(n);

		skip_blanks(&r);
		if (!at_end(&r) && *r.p != '\n' && *r.p != '#') {
			if (read_name(&r, &name, e) < 0)
				return -1;
			skip_blanks(&r);
			if (at_end(&r) || (*r.p != '\'' && *r.p != '"'))
				read_bare(&r, &value);
			else if (read_quoted(&r, &value, e) < 0)
				return -1;
			if (cb(arg, name.p, value.p, e) < 0)
				return err_wrap(e, "line %d", r.line);
		}
		skip_line(&r);
		if (at_end(&r))
			break;
	}
	return 0;
}
