/* SPDX-License-Identifier: MIT */
#include "backend/docker/dockerignore.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

enum { PATTERN_MAX = 1024, PATTERNS_MAX = 4096 };

/* ---- one pattern */

/* One element of a pattern. A set is "[a-z]" or "[^a-z]" as it stands. */
enum kind {
	ONE_OF,
	ANY_ONE,
	/* from here on any number: */ ANY_IN_NAME,
	ANY,
	ANY_FOLDERS
};
struct element {
	enum kind kind;
	const char *p; /* of ONE_OF: the set's inside, or the one character */
	size_t n;
	bool is_set, is_not;
};

/* "[a-z]": the inside; 0 when it is not closed. */
static size_t read_set(const char *p, struct element *ret)
{
	const char *from = p + 1, *end;

	ret->is_set = true;
	ret->is_not = *from == '^' || *from == '!';
	from += ret->is_not;
	end = *from ? strchr(from + 1, ']') : NULL;
	if (!end)
		return 0;
	ret->p = from;
	ret->n = (size_t)(end - from);
	return (size_t)(end + 1 - p);
}

/* The element at p and how long it is; p is not at the end. */
static size_t read_element(const char *p, struct element *ret)
{
	size_t n;

	*ret = (struct element){.kind = ONE_OF, .p = p, .n = 1};
	if (p[0] == '*') {
		ret->kind = p[1] != '*' ? ANY_IN_NAME : p[2] != '/' ? ANY : ANY_FOLDERS;
		return 1 + (size_t)(ret->kind - ANY_IN_NAME);
	}
	if (p[0] == '?') {
		ret->kind = ANY_ONE;
		return 1;
	}
	if (p[0] == '\\' && p[1]) {
		ret->p++;
		return 2;
	}
	n = p[0] == '[' ? read_set(p, ret) : 0;
	if (n > 0)
		return n;
	ret->is_set = false;
	return 1;
}

static bool set_has(const struct element *el, char c)
{
	size_t i = 0;

	while (i < el->n) {
		bool range = i + 2 < el->n && el->p[i + 1] == '-';

		if (range ? c >= el->p[i] && c <= el->p[i + 2] : c == el->p[i])
			return !el->is_not;
		i += range ? 3 : 1;
	}
	return el->is_not;
}

static bool takes(const struct element *el, char c)
{
	switch (el->kind) {
	case ANY:
	case ANY_FOLDERS:
		return true;
	case ANY_IN_NAME:
	case ANY_ONE:
		return c != '/';
	case ONE_OF:
		break;
	}
	if (el->is_set)
		return c != '/' && set_has(el, c);
	return c == *el->p;
}

static bool is_many(const struct element *el)
{
	return el->kind >= ANY_IN_NAME;
}

/* What may take nothing more is passed; whole folders end with a slash. */
static void pass(bool *at, const struct element *v, size_t n, char before)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (at[i] && is_many(&v[i]) &&
		    (v[i].kind != ANY_FOLDERS || before == '/'))
			at[i + 1] = true;
}

/* One byte: what takes one is left behind by it, what takes many is not. */
static void step(bool *at, const struct element *v, size_t n, char c)
{
	size_t i;

	for (i = n; i > 0; i--)
		at[i] = (at[i - 1] && !is_many(&v[i - 1]) && takes(&v[i - 1], c)) ||
			(i < n && at[i] && is_many(&v[i]) && takes(&v[i], c));
	at[0] = n > 0 && at[0] && is_many(&v[0]) && takes(&v[0], c);
}

/* All places in the pattern at once, so that no pattern takes more than its square. */
bool dockerignore_fits(const char *pattern, const char *path, size_t n)
{
	struct element *v = xcalloc(strlen(pattern) + 1, sizeof *v);
	bool *at = xcalloc(strlen(pattern) + 1, sizeof *at), fits;
	size_t count = 0, i;

	while (*pattern)
		pattern += read_element(pattern, &v[count++]);
	at[0] = true;
	pass(at, v, count, '/');
	for (i = 0; i < n; i++) {
		step(at, v, count, path[i]);
		pass(at, v, count, path[i]);
	}
	fits = at[count];
	free(at);
	free(v);
	return fits;
}

/* ---- the file */

/* Without blanks, a slash at its ends, and "./" before it; "" says nothing. */
static char *clean(struct str line)
{
	bool back;

	line = str_trim(line);
	if (line.n == 0 || line.p[0] == '#' || line.n >= PATTERN_MAX ||
	    memchr(line.p, '\0', line.n))
		return NULL;
	back = line.p[0] == '!';
	line = str_trim((struct str){line.p + back, line.n - back});
	while (line.n > 1 && line.p[0] == '.' && line.p[1] == '/')
		line = (struct str){line.p + 2, line.n - 2};
	while (line.n > 0 && line.p[0] == '/')
		line = (struct str){line.p + 1, line.n - 1};
	while (line.n > 0 && line.p[line.n - 1] == '/')
		line.n--;
	if (line.n == 0 || str_eq(line, "."))
		return NULL;
	return xasprintf("%s%.*s", back ? "!" : "", (int)line.n, line.p);
}

void dockerignore_parse(const char *text, size_t n, struct dockerignore *ret)
{
	struct str rest = {text, n}, line;
	size_t count = 0;

	*ret = (struct dockerignore){.patterns = xcalloc(1, sizeof(char *))};
	while (count < PATTERNS_MAX && str_cut(&rest, '\n', &line)) {
		char *pattern = clean(line);

		if (!pattern)
			continue;
		ret->has_exceptions |= *pattern == '!';
		ret->patterns =
			xreallocarray(ret->patterns, count + 2, sizeof *ret->patterns);
		ret->patterns[count++] = pattern;
		ret->patterns[count] = NULL;
	}
}

void dockerignore_release(struct dockerignore *d)
{
	size_t i;

	for (i = 0; d->patterns && d->patterns[i]; i++)
		free(d->patterns[i]);
	free(d->patterns);
	*d = (struct dockerignore){0};
}

/* The path itself, or a folder it is in. */
static bool fits_some(const char *pattern, const char *path)
{
	size_t n;

	for (n = 1; n <= strlen(path); n++)
		if ((path[n] == '/' || path[n] == '\0') &&
		    dockerignore_fits(pattern, path, n))
			return true;
	return false;
}

bool dockerignore_matches(const struct dockerignore *d, const char *path)
{
	bool ignored = false;
	size_t i;

	for (i = 0; d->patterns && d->patterns[i]; i++) {
		bool back = d->patterns[i][0] == '!';

		if (ignored == back && fits_some(d->patterns[i] + back, path))
			ignored = !back;
	}
	return ignored;
}
