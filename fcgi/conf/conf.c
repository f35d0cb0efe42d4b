/* SPDX-License-Identifier: MIT */
#include "conf/conf.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "conf/caps.h"
#include "conf/check.h"
#include "conf/table.h"

enum { ROWS_MAX = 128, ENV_FILE_MAX = 1024 * 1024, SHOWN_MAX = 80 };

/* A value per row, from the .env file; NULL where it has none. */
struct env_values {
	char *v[ROWS_MAX];
};

static void env_values_release(struct env_values *ev)
{
	size_t i;

	for (i = 0; i < ROWS_MAX; i++)
		free(ev->v[i]);
}

static void *member(struct conf *c, const struct conf_row *row)
{
	return (char *)c + row->offset;
}

static void set_text(struct conf *c, const struct conf_row *row, char *owned)
{
	char **p = member(c, row);

	free(*p);
	*p = owned;
}

static int set_bool(struct conf *c, const struct conf_row *row, const char *v,
		    struct err *e)
{
	static const char *const yes[] = {"true", "1", "yes", "on"};
	static const char *const no[] = {"false", "0", "no", "off"};
	size_t i;

	for (i = 0; i < sizeof yes / sizeof *yes; i++) {
		if (strcasecmp(v, yes[i]) != 0 && strcasecmp(v, no[i]) != 0)
			continue;
		*(bool *)member(c, row) = strcasecmp(v, yes[i]) == 0;
		return 0;
	}
	return err_set(e, ERR_INVALID, "must be true or false (1, 0, yes, no, on, off)");
}

static int set_choice(struct conf *c, const struct conf_row *row, const char *v,
		      struct err *e)
{
	struct str rest = str_of(row->words), word;

	if (row->check && row->check(v, e) < 0)
		return -1;
	while (str_cut(&rest, '|', &word)) {
		if (strlen(v) != word.n || strncasecmp(v, word.p, word.n) != 0)
			continue;
		set_text(c, row, xstrndup(word.p, word.n));
		return 0;
	}
	return err_set(e, ERR_INVALID, "must be one of %s", row->words);
}

static char *absolute(const char *v)
{
	AUTO_FREE char *cwd = NULL;

	while (str_starts(v, "./"))
		v += 2;
	if (*v == '/')
		return xstrdup(v);
	cwd = getcwd(NULL, 0);
	return xasprintf("%s/%s", cwd && strcmp(cwd, "/") != 0 ? cwd : "", v);
}

static int set_row(struct conf *c, const struct conf_row *row, const char *v,
		   struct err *e)
{
	switch (row->kind) {
	case CONF_BOOL:
		return set_bool(c, row, v, e);
	case CONF_INT:
		return num_parse(v, row->min, row->max, member(c, row), e);
	case CONF_DECIMAL:
		return num_parse_decimal(v, (double)row->min, (double)row->max,
					 member(c, row), e);
	case CONF_CHOICE:
		return set_choice(c, row, v, e);
	case CONF_TEXT:
	case CONF_PATH:
		if (row->check && row->check(v, e) < 0)
			return -1;
		set_text(c, row, row->kind == CONF_PATH && *v ? absolute(v) : xstrdup(v));
		return 0;
	}
	return err_set(e, ERR_SYSTEM, "unknown kind of variable");
}

/* Letters to change, add or take away to make b of a, when that is at most 2. */
static bool is_slip(const char *a, const char *b, int left)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	if (!*a && !*b)
		return true;
	if (left == 0)
		return false;
	return (*a && *b && is_slip(a + 1, b + 1, left - 1)) ||
	       (*a && is_slip(a + 1, b, left - 1)) || (*b && is_slip(a, b + 1, left - 1));
}

/* A .env file also holds other programs' variables; a slip of ours is refused. */
static int check_unknown(const char *key, struct err *e)
{
	const struct conf_row *row;
	size_t i;

	if (strlen(key) < 6)
		return 0;
	for (i = 0; (row = conf_row_at(i)) != NULL; i++)
		if (is_slip(key, row->name, 2))
			return err_set(
				e, ERR_INVALID,
				"%.64s is no variable of this server; is %s meant?", key,
				row->name);
	return 0;
}

static int take_env_line(void *arg, const char *key, const char *value, struct err *e)
{
	struct env_values *ev = arg;
	const struct conf_row *row;
	size_t i;

	for (i = 0; (row = conf_row_at(i)) != NULL && i < ROWS_MAX; i++) {
		if (strcmp(row->name, key) != 0)
			continue;
		free(ev->v[i]);
		ev->v[i] = xstrdup(value);
		return 0;
	}
	return check_unknown(key, e);
}

static int read_env_file(const char *path, struct env_values *ev, struct err *e)
{
	AUTO_BUF text = BUF_INIT(ENV_FILE_MAX);

	if (!path || !io_exists(path))
		return 0;
	if (io_read_file(path, &text, e) < 0)
		return -1;
	if (conf_parse_env_text(text.p, text.len, take_env_line, ev, e) < 0)
		return err_wrap(e, "%s", path);
	return 0;
}

/*
 * The environment wins over the file. An empty value is a value only for a text
 * or choice-free list; for numbers, switches and paths it means the default.
 */
static int load_row(struct conf *c, const struct conf_row *row, const char *from_file,
		    const char *file, struct err *e)
{
	const char *v = getenv(row->name), *source = "";

	if (!v && from_file) {
		v = from_file;
		source = file;
	}
	if (!v || (!*v && row->kind != CONF_TEXT) || (!*v && row->check == check_image))
		v = row->def;
	if (set_row(c, row, v, e) == 0)
		return 0;
	return err_wrap(e, "%s=%.*s%s%s%s%s", row->name, SHOWN_MAX, v,
			strlen(v) > SHOWN_MAX ? "..." : "", *source ? " (in " : "",
			source, *source ? ")" : "");
}

static void tidy_caps(char **list)
{
	char *tidy = caps_normalise(*list);

	free(*list);
	*list = tidy;
}

static int check_cap_lists(struct conf *c, struct err *e)
{
	if (caps_check(c->cap_drop, false, false, e) < 0)
		return err_wrap(e, "SANDBOX_CAP_DROP=%.*s", SHOWN_MAX, c->cap_drop);
	if (caps_check(c->cap_add, c->caps_strict, c->caps_bypass_check, e) < 0)
		return err_wrap(e, "SANDBOX_CAP_ADD=%.*s", SHOWN_MAX, c->cap_add);
	tidy_caps(&c->cap_drop);
	tidy_caps(&c->cap_add);
	return 0;
}

static int load(const char *env_file, struct conf *c, struct err *e)
{
	__attribute__((cleanup(env_values_release))) struct env_values ev = {{NULL}};
	const struct conf_row *row;
	size_t i;

	if (read_env_file(env_file, &ev, e) < 0)
		return -1;
	for (i = 0; (row = conf_row_at(i)) != NULL; i++) {
		assert(i < ROWS_MAX);
		if (load_row(c, row, ev.v[i], env_file, e) < 0)
			return -1;
	}
	if (check_cap_lists(c, e) < 0)
		return -1;
	return check_whole(c, e);
}

int conf_load(const char *env_file, struct conf *ret, struct err *e)
{
	struct conf c = {0};

	if (load(env_file, &c, e) < 0) {
		conf_release(&c);
		return -1;
	}
	*ret = c;
	return 0;
}

void conf_release(struct conf *c)
{
	const struct conf_row *row;
	size_t i;

	for (i = 0; (row = conf_row_at(i)) != NULL; i++)
		if (row->kind == CONF_TEXT || row->kind == CONF_CHOICE ||
		    row->kind == CONF_PATH)
			set_text(c, row, NULL);
}
