/* SPDX-License-Identifier: MIT */
#include "mcp/file_tools.h"

#include <inttypes.h>
#include <string.h>

#include "base/auto.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"
#include "mcp/content.h"
#include "mcp/cursor.h"
#include "mcp/cut.h"
#include "mcp/tools.h"
#include "mcp/uris.h"
#include "wire/args.h"
#include "wire/filespec.h"

enum {
	WORDS_MAX = 256 * 1024,
	NOTE_MAX = 1024,
	SANDBOXES_PAGE = 50,
	IMAGE_MAX = 3 * 1024 * 1024, /* what model APIs take, as base64 */
};

static int check(struct mcp_call *c, enum file_op op, struct err *e)
{
	AUTO_FILESPEC s = {0};

	return filespec_parse(c->args, op, &s, e);
}

int read_file_check(struct mcp_call *c, struct err *e)
{
	return check(c, FILE_READ, e);
}

int write_file_check(struct mcp_call *c, struct err *e)
{
	return check(c, FILE_WRITE, e);
}

int list_files_check(struct mcp_call *c, struct err *e)
{
	return check(c, FILE_LIST, e);
}

static int64_t int_at(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

static const char *text_at(const json_t *o, const char *key)
{
	const char *s = json_get_string(o, key);

	return s ? s : "";
}

/* ---- read_file */

/* What is shown of the file, and where. */
struct shown {
	const char *path;
	const char *p;
	size_t n;
	int64_t from, size;
	bool text;
};

/*
 * A range may begin and end inside a character: what is cut off there does not make
 * text into bytes.
 */
static void trim(struct shown *s)
{
	size_t skip = s->from > 0 ? cut_partial_start(s->p, s->n) : 0;
	size_t tail = s->from + (int64_t)s->n < s->size
			      ? utf8_incomplete_tail(s->p + skip, s->n - skip)
			      : 0;

	s->text = content_is_text(s->p + skip, s->n - skip - tail);
	if (!s->text)
		return;
	s->p += skip;
	s->from += (int64_t)skip;
	s->n -= skip + tail;
}

static json_t *bytes_item(const struct shown *s)
{
	const char *mime = mime_of_image(s->p, s->n);
	AUTO_BUF uri = BUF_INIT(WORDS_MAX);

	if (mime && s->from == 0 && (int64_t)s->n == s->size && s->n <= IMAGE_MAX)
		return content_image(mime, s->p, s->n);
	buf_printf(&uri, "file://%s", s->path);
	return json_must(json_pack("{s:s, s:o}", "type", "resource", "resource",
				   content_of_bytes(rpc_text(uri.p, uri.len),
						    mime_of(s->path), s->p, s->n)));
}

static void add_note(const struct shown *s, json_t *content)
{
	AUTO_BUF b = BUF_INIT(NOTE_MAX);
	char count[STR_COUNT_SIZE];
	int64_t end = s->from + (int64_t)s->n;

	if (s->size == 0)
		buf_puts(&b, "(the file is empty)");
	else if (s->n == 0)
		buf_printf(&b, "(the file has only %s)",
			   str_count(count, s->size, "byte", "bytes"));
	else if (s->from > 0 || end < s->size)
		buf_printf(&b, "(bytes %" PRId64 " to %" PRId64 " of %" PRId64 "%s)",
			   s->from, end, s->size, end < s->size ? "" : ", the end");
	if (b.len > 0 && end < s->size) {
		b.len--; /* the bracket */
		buf_printf(&b, "; go on with offset %" PRId64 ")", end);
	}
	if (b.len > 0)
		json_array_append_new(content, content_text(b.p, b.len));
}

enum mcp_next read_file_accepted(struct mcp_call *c, const struct mcp_reads *r,
				 const json_t *ok)
{
	const char *data = text_at(ok, "data");
	AUTO_BUF bytes = BUF_INIT(FILE_READ_MAX);
	AUTO_JSON *result = NULL;
	struct err e = ERR_INIT;
	struct shown s;
	json_t *content;

	(void)r;
	if (base64_decode(&bytes, data, strlen(data), &e) < 0)
		return tool_failed(c, &e, NULL);
	s = (struct shown){.path = text_at(ok, "path"),
			   .p = bytes.p,
			   .n = bytes.len,
			   .from = int_at(ok, "offset"),
			   .size = int_at(ok, "size")};
	trim(&s);
	content = json_array();
	if (s.n > 0)
		json_array_append_new(content,
				      s.text ? content_text(s.p, s.n) : bytes_item(&s));
	add_note(&s, content);
	result = json_must(json_pack("{s:o, s:b}", "content", content, "isError", 0));
	return call_result(c, result);
}

/* ---- write_file */

enum mcp_next write_file_accepted(struct mcp_call *c, const struct mcp_reads *r,
				  const json_t *ok)
{
	AUTO_BUF words = BUF_INIT(WORDS_MAX);
	AUTO_JSON *structured =
		json_must(json_pack("{s:s, s:I}", "path", text_at(ok, "path"), "size",
				    (json_int_t)int_at(ok, "size")));
	char count[STR_COUNT_SIZE];

	(void)r;
	buf_printf(&words, "written: %s (%s)", text_at(ok, "path"),
		   str_count(count, int_at(ok, "size"), "byte", "bytes"));
	return tool_answer_briefly(c, words.p, structured);
}

/* ---- list_files */

static void add_entry_words(struct buf *b, const json_t *entry)
{
	char time[CLOCK_RFC3339_SIZE];
	const char *type = text_at(entry, "type");
	bool folder = strcmp(type, "folder") == 0;

	buf_printf(b, "%04" PRIo64 " %s %9" PRId64 " %s%s", int_at(entry, "mode"),
		   clock_format_rfc3339(int_at(entry, "mtime_ms"), time),
		   int_at(entry, "size"), text_at(entry, "path"), folder ? "/" : "");
	if (!folder && strcmp(type, "file") != 0)
		buf_printf(b, " (%s)", type);
	if (json_object_get(entry, "error"))
		buf_printf(b, " (%s)", text_at(entry, "error"));
	buf_puts(b, "\n");
}

static json_t *entry_out(const json_t *entry)
{
	char time[CLOCK_RFC3339_SIZE];

	return json_must(json_pack(
		"{s:s, s:s, s:I, s:s}", "path", text_at(entry, "path"), "type",
		text_at(entry, "type"), "size", (json_int_t)int_at(entry, "size"),
		"modified_at", clock_format_rfc3339(int_at(entry, "mtime_ms"), time)));
}

enum mcp_next list_files_accepted(struct mcp_call *c, const struct mcp_reads *r,
				  const json_t *ok)
{
	const json_t *entries = json_object_get(ok, "entries"), *entry;
	json_t *list = json_array();
	AUTO_BUF words = BUF_INIT(4 * 1024 * 1024);
	AUTO_JSON *structured = json_must(
		json_pack("{s:s, s:o, s:I}", "path", text_at(ok, "path"), "entries", list,
			  "total", (json_int_t)int_at(ok, "total")));
	const char *last = NULL;
	char count[STR_COUNT_SIZE];
	size_t i;

	(void)r;
	buf_printf(&words, "%s: %s%s\n", text_at(ok, "path"),
		   json_is_true(json_object_get(ok, "cut")) ? "more than " : "",
		   str_count(count, int_at(ok, "total"), "entry", "entries"));
	json_array_foreach(entries, i, entry) {
		add_entry_words(&words, entry);
		json_array_append_new(list, entry_out(entry));
		last = text_at(entry, "path");
	}
	if (json_is_true(json_object_get(ok, "more")) && last) {
		json_object_set_new(structured, "next_cursor", cursor_make(last));
		buf_printf(&words, "go on with cursor %s\n",
			   text_at(structured, "next_cursor"));
	}
	return tool_answer_briefly(c, words.p, structured);
}

/* ---- list_sandboxes */

int list_sandboxes_check(struct mcp_call *c, struct err *e)
{
	static const char *const known[] = {"cursor", NULL};
	AUTO_FREE char *after = NULL;

	if (arg_only(c->args, "", known, e) < 0)
		return -1;
	return cursor_take(arg_value((struct arg){c->args, "", "cursor"}), &after, e);
}

enum mcp_next list_sandboxes_begin(struct mcp_call *c, const struct mcp_reads *r)
{
	AUTO_FREE char *after = NULL;
	AUTO_BUF words = BUF_INIT(WORDS_MAX);
	AUTO_JSON *list = NULL;
	AUTO_JSON *structured = NULL;
	struct err e = ERR_INIT;
	char count[STR_COUNT_SIZE];
	const json_t *s;
	size_t i;

	/* One more than shown tells whether there are more. */
	if (cursor_take(arg_value((struct arg){c->args, "", "cursor"}), &after, &e) < 0 ||
	    r->sandboxes(r->arg, c->tenant, after, SANDBOXES_PAGE + 1, &list, &e) < 0)
		return tool_failed(c, &e, NULL);
	structured = json_must(json_pack("{s:O}", "sandboxes", list));
	if (json_array_size(list) > SANDBOXES_PAGE) {
		json_array_remove(list, SANDBOXES_PAGE);
		json_object_set_new(
			structured, "next_cursor",
			cursor_make(text_at(json_array_get(list, SANDBOXES_PAGE - 1),
					    "identifier")));
	}
	buf_printf(&words, "%s%s\n",
		   str_count(count, (long long)json_array_size(list), "sandbox",
			     "sandboxes"),
		   json_object_get(structured, "next_cursor") ? ", and more" : "");
	json_array_foreach(list, i, s)
		buf_printf(&words, "- %s: %s, until %s\n", text_at(s, "identifier"),
			   text_at(s, "state"), text_at(s, "expires_at"));
	if (json_object_get(structured, "next_cursor"))
		buf_printf(&words, "go on with cursor %s\n",
			   text_at(structured, "next_cursor"));
	return tool_answer_briefly(c, words.p, structured);
}
