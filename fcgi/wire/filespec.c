/* SPDX-License-Identifier: MIT */
#include "wire/filespec.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/base64.h"
#include "base/mem.h"
#include "base/str.h"
#include "wire/args.h"
#include "wire/runspec.h"

static const char home[] = "/workspace";

/*
 * Without empty and "." components. ".." is refused: what it means depends on
 * symbolic links, and nobody needs it.
 */
static int clean(const char *path, struct buf *b, struct err *e)
{
	struct str rest = str_of(path), part;

	if (path[0] != '/')
		buf_puts(b, home);
	while (str_cut(&rest, '/', &part)) {
		if (part.n == 0 || str_eq(part, "."))
			continue;
		if (str_eq(part, ".."))
			return err_set(e, ERR_INVALID,
				       "path must not have .. in it; send the path that "
				       "it leads to");
		buf_puts(b, "/");
		buf_add(b, part.p, part.n);
	}
	if (b->len == 0)
		buf_puts(b, "/");
	if (!buf_ok(b))
		return err_set(e, ERR_INVALID, "path is longer than %d bytes",
			       FILE_PATH_MAX);
	return 0;
}

static int take_path(const json_t *args, enum file_op op, struct file_spec *s,
		     struct err *e)
{
	AUTO_BUF b = BUF_INIT(FILE_PATH_MAX);
	const char *path;

	if (arg_string((struct arg){args, "", "path"}, &path, e) < 0)
		return -1;
	if (!path && op != FILE_LIST)
		return err_set(e, ERR_INVALID,
			       "path is missing; send an absolute path, or one below "
			       "/workspace");
	if (clean(path ? path : home, &b, e) < 0)
		return -1;
	if (op != FILE_LIST && strcmp(b.p, "/") == 0)
		return err_set(e, ERR_INVALID, "path must name a file, not /");
	s->path = xstrndup(b.p, b.len);
	return 0;
}

static int take_user(const json_t *args, struct file_spec *s, struct err *e)
{
	const char *user;

	if (arg_string((struct arg){args, "", "as_user"}, &user, e) < 0)
		return -1;
	s->as_root = user && strcmp(user, "root") == 0;
	if (user && !s->as_root && strcmp(user, "sandbox") != 0)
		return err_set(e, ERR_INVALID,
			       "as_user must be \"sandbox\" or \"root\", not \"%.80s\"",
			       user);
	return 0;
}

/* ---- one kind each */

static int take_read(const json_t *args, struct file_spec *s, struct err *e)
{
	s->max_bytes = FILE_READ_DEFAULT;
	if (arg_int((struct arg){args, "", "offset"}, 0, INT64_MAX / 2, &s->offset, e) <
	    0)
		return -1;
	return arg_int((struct arg){args, "", "max_bytes"}, 1, FILE_READ_MAX,
		       &s->max_bytes, e);
}

static int check_size(size_t n, struct err *e)
{
	if (n > FILE_WRITE_MAX)
		return err_set(e, ERR_INVALID,
			       "the content has %zu bytes; at most %d can be written at "
			       "once",
			       n, FILE_WRITE_MAX);
	return 0;
}

static int take_base64(const char *text, struct file_spec *s, struct err *e)
{
	AUTO_BUF b = BUF_INIT(FILE_WRITE_MAX + 1);

	if (base64_decode(&b, text, strlen(text), e) < 0)
		return err_wrap(e, "base64");
	if (check_size(b.len, e) < 0)
		return -1;
	s->data = xmemdup(b.p, b.len + 1);
	s->data_len = b.len;
	return 0;
}

static int take_content(const json_t *args, struct file_spec *s, struct err *e)
{
	const json_t *text = arg_value((struct arg){args, "", "text"});
	const char *base64;

	if (arg_string((struct arg){args, "", "base64"}, &base64, e) < 0)
		return -1;
	if (!text == !base64)
		return err_set(
			e, ERR_INVALID,
			"send exactly one of text and base64, the whole content of "
			"the file");
	if (base64)
		return take_base64(base64, s, e);
	if (!json_is_string(text))
		return err_set(e, ERR_INVALID, "text must be a string, not %s",
			       arg_type_name(text));
	s->data_len = json_string_length(text);
	if (check_size(s->data_len, e) < 0)
		return -1;
	s->data = xmemdup(json_string_value(text), s->data_len + 1);
	return 0;
}

/* "0755" or "755", because JSON has no octal numbers. */
static int take_mode(const json_t *args, struct file_spec *s, struct err *e)
{
	const char *text, *p;

	s->mode = -1;
	if (arg_string((struct arg){args, "", "mode"}, &text, e) < 0)
		return -1;
	if (!text)
		return 0;
	for (p = text, s->mode = 0; *p >= '0' && *p <= '7' && s->mode <= 0777; p++)
		s->mode = s->mode * 8 + (*p - '0');
	if (*p || p == text || s->mode > 0777)
		return err_set(e, ERR_INVALID,
			       "mode must be octal permissions as a string, such as "
			       "\"755\"");
	return 0;
}

static int take_write(const json_t *args, struct file_spec *s, struct err *e)
{
	return take_content(args, s, e) < 0 ? -1 : take_mode(args, s, e);
}

/* A cursor is the path of the last entry, in base64 for urls. */
static int take_list(const json_t *args, struct file_spec *s, struct err *e)
{
	AUTO_BUF after = BUF_INIT(FILE_PATH_MAX);
	struct err ignored = ERR_INIT;
	const char *cursor;

	s->depth = 1;
	if (arg_int((struct arg){args, "", "depth"}, 1, FILE_DEPTH_MAX, &s->depth, e) <
		    0 ||
	    arg_string((struct arg){args, "", "cursor"}, &cursor, e) < 0)
		return -1;
	if (!cursor || !*cursor)
		return 0;
	if (base64_decode(&after, cursor, strlen(cursor), &ignored) < 0 ||
	    !buf_ok(&after) || strlen(after.p) != after.len)
		return err_set(
			e, ERR_INVALID,
			"cursor is none of ours; send the next_cursor of an answer");
	s->after = xstrndup(after.p, after.len);
	return 0;
}

static const struct kind {
	const char *const *known;
	int (*take)(const json_t *args, struct file_spec *s, struct err *e);
} kinds[] = {
	[FILE_READ] = {(const char *const[]){"identifier", "path", "as_user", "offset",
					     "max_bytes", NULL},
		       take_read},
	[FILE_WRITE] = {(const char *const[]){"identifier", "path", "as_user", "text",
					      "base64", "mode", NULL},
			take_write},
	[FILE_LIST] = {(const char *const[]){"identifier", "path", "as_user", "depth",
					     "cursor", NULL},
		       take_list},
};

int filespec_parse(const json_t *args, enum file_op op, struct file_spec *ret,
		   struct err *e)
{
	AUTO_FILESPEC s = {.mode = -1};

	if (!json_is_object(args))
		return err_set(e, ERR_INVALID, "the arguments must be an object");
	if (arg_only(args, "", kinds[op].known, e) < 0 ||
	    identifier_take(args, &s.identifier, e) < 0 ||
	    take_path(args, op, &s, e) < 0 || take_user(args, &s, e) < 0 ||
	    kinds[op].take(args, &s, e) < 0)
		return -1;
	*ret = s;
	s = (struct file_spec){.mode = -1};
	return 0;
}

void filespec_release(struct file_spec *s)
{
	free(s->identifier);
	free(s->path);
	free(s->data);
	free(s->after);
	*s = (struct file_spec){.mode = -1};
}
