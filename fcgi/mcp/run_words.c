/* SPDX-License-Identifier: MIT */
#include "mcp/run_words.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "mcp/cut.h"

enum {
	OUTPUT_MAX = 16 * 1024, /* of all streams together */
	OUTPUT_MIN = 256,       /* of each, however many there are */
	LABEL_MAX = 100,
	ARTIFACTS_MAX = 20,
	SKIPPED_MAX = 5,
};

static const char *text_at(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static int64_t int_at(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

static bool is(const json_t *o, const char *key, const char *word)
{
	return strcmp(text_at(o, key), word) == 0;
}

/* The first line, cut between characters. */
static void add_label(struct buf *b, const char *s)
{
	size_t line = strcspn(s, "\n");
	size_t n = line;

	if (n > LABEL_MAX)
		n = LABEL_MAX - utf8_incomplete_tail(s, LABEL_MAX);
	buf_add(b, s, n);
	if (s[n])
		buf_puts(b, " ...");
}

static void add_command_label(struct buf *b, const json_t *c)
{
	const json_t *argv = json_object_get(c, "argv");
	AUTO_BUF joined = BUF_INIT((size_t)LABEL_MAX * 8);
	const json_t *word;
	size_t i;

	if (!json_is_array(argv)) {
		add_label(b, text_at(c, "shell"));
		return;
	}
	json_array_foreach(argv, i, word)
		buf_printf(&joined, "%s%s", i ? " " : "", json_string_value(word));
	add_label(b, joined.p);
}

/* ---- how a command ended */

static void add_outcome(struct buf *b, const json_t *c)
{
	const json_t *code = json_object_get(c, "exit_code");

	if (text_at(c, "background_run_id")[0])
		buf_puts(b, "in the background");
	else if (is(c, "state", "queued"))
		buf_puts(b, "not run");
	else if (is(c, "state", "running"))
		buf_puts(b, "still running");
	else if (is(c, "state", "timed_out"))
		buf_printf(b, "timed out after %" PRId64 " ms", int_at(c, "timeout_ms"));
	else if (is(c, "state", "canceled") || is(c, "state", "lost"))
		buf_puts(b, text_at(c, "state"));
	else if (text_at(c, "signal")[0])
		buf_printf(b, "killed by %s", text_at(c, "signal"));
	else if (json_is_integer(code))
		buf_printf(b, "exit code %" PRId64, (int64_t)json_integer_value(code));
	else
		buf_puts(b, "failed");
	if (json_is_true(json_object_get(c, "oom")))
		buf_puts(b, ", out of memory");
}

/* A sentence that the words have not said yet. */
static void add_sentence(struct buf *b, const char *s)
{
	if (*s && !strstr(b->p, s))
		buf_printf(b, "%s\n", s);
}

/* A canceled command's reason is "canceled: " and the run's error. */
static bool is_told_by_run(const json_t *c, const char *error)
{
	return is(c, "state", "canceled") && *error &&
	       str_ends(text_at(c, "reason"), error);
}

static void add_notes(struct buf *b, const json_t *c, const char *error)
{
	int64_t left = int_at(c, "background_left");

	if (!is_told_by_run(c, error))
		add_sentence(b, text_at(c, "reason"));
	if (left > 0)
		buf_printf(b, "%" PRId64 " background process%s of it still run%s\n",
			   left, left == 1 ? "" : "es", left == 1 ? "s" : "");
}

/* ---- output */

/* A NUL would end the words for some readers: it shows as U+FFFD. */
void run_words_add_text(struct buf *b, const char *p, size_t n)
{
	const char *nul;

	while (n > 0 && (nul = memchr(p, '\0', n))) {
		buf_add(b, p, (size_t)(nul - p));
		buf_puts(b, "\xef\xbf\xbd");
		n -= (size_t)(nul + 1 - p);
		p = nul + 1;
	}
	buf_add(b, p, n);
}

static void add_cut(struct buf *b, const char *p, size_t n, struct cut cut)
{
	size_t skip;

	if (cut.tail == 0) {
		run_words_add_text(b, p, n);
	} else {
		run_words_add_text(b, p, cut.head - utf8_incomplete_tail(p, cut.head));
		skip = cut_partial_start(p + n - cut.tail, cut.tail);
		buf_puts(b, "\n[...]\n");
		run_words_add_text(b, p + n - cut.tail + skip, cut.tail - skip);
	}
	if (n > 0 && p[n - 1] != '\n')
		buf_puts(b, "\n");
}

/*
 * More than one character in eight is a replacement or a control: no text, and
 * nothing that a model should pay for.
 */
static bool is_binary(const char *p, size_t n)
{
	size_t i, odd = 0;

	for (i = 0; i < n; i++)
		if (p[i] == '\0' || strncmp(p + i, "\xef\xbf\xbd", 3) == 0 ||
		    ((unsigned char)p[i] < 0x20 && !strchr("\t\n\r\x1b\b\f", p[i])))
			odd++;
	return odd * 8 > n;
}

/* What each of so many streams may take. */
static size_t share(size_t streams)
{
	size_t max = streams ? OUTPUT_MAX / streams : 0;

	return max < OUTPUT_MIN ? OUTPUT_MIN : max;
}

bool run_words_have_all(const char *p, size_t n, size_t streams)
{
	return n <= share(streams) && !is_binary(p, n);
}

static void add_stream(struct buf *b, const json_t *c, const char *name, size_t max)
{
	const json_t *text = json_object_get(c, name);
	size_t n = json_string_length(text);
	struct cut cut = cut_middle(n, max);
	char key[32], count[STR_COUNT_SIZE];
	int64_t bytes, kept;
	bool whole;

	if (n == 0)
		return;
	snprintf(key, sizeof(key), "%s_bytes", name);
	bytes = int_at(c, key);
	snprintf(key, sizeof(key), "%s_kept_bytes", name);
	kept = int_at(c, key);
	snprintf(key, sizeof(key), "%s_truncated", name);
	whole = cut.tail == 0 && !json_is_true(json_object_get(c, key));
	snprintf(key, sizeof(key), "%s_url", name);
	if (is_binary(json_string_value(text), n)) {
		buf_printf(b, "%s: %s, no text: %s\n", name,
			   str_count(count, bytes, "byte", "bytes"), text_at(c, key));
		return;
	}
	if (whole)
		buf_printf(b, "%s:\n", name);
	else if (kept < bytes)
		buf_printf(b,
			   "%s (not all of %" PRId64 " bytes; the first %" PRId64
			   " were kept: %s):\n",
			   name, bytes, kept, text_at(c, key));
	else
		buf_printf(b, "%s (not all of %" PRId64 " bytes; whole: %s):\n", name,
			   bytes, text_at(c, key));
	add_cut(b, json_string_value(text), n, cut);
}

static size_t count_streams(const json_t *commands)
{
	const json_t *c;
	size_t i, n = 0;

	json_array_foreach(commands, i, c) {
		if (json_string_length(json_object_get(c, "stdout")) > 0)
			n++;
		if (json_string_length(json_object_get(c, "stderr")) > 0)
			n++;
	}
	return n;
}

static void add_commands(struct buf *b, const json_t *run)
{
	const json_t *commands = json_object_get(run, "commands");
	size_t max = share(count_streams(commands));
	const json_t *c;
	size_t i;

	json_array_foreach(commands, i, c) {
		if (json_array_size(commands) > 1) {
			buf_printf(b, "commands[%zu] ", i);
			add_command_label(b, c);
			buf_puts(b, ": ");
			add_outcome(b, c);
			buf_puts(b, "\n");
		}
		add_notes(b, c, text_at(run, "error"));
		add_stream(b, c, "stderr", max);
		add_stream(b, c, "stdout", max);
	}
}

/* ---- artifacts */

static void add_artifacts(struct buf *b, const json_t *run)
{
	const json_t *list = json_object_get(run, "artifacts");
	int64_t total = int_at(run, "artifacts_total");
	char count[STR_COUNT_SIZE];
	const json_t *a;
	size_t i;

	if (total > 0)
		buf_printf(b, "artifacts (%" PRId64 "):\n", total);
	json_array_foreach(list, i, a) {
		if (i == ARTIFACTS_MAX)
			break;
		buf_printf(b, "- %s (%s) %s\n", text_at(a, "path"),
			   str_count(count, int_at(a, "size"), "byte", "bytes"),
			   text_at(a, "url"));
	}
	if (total > (int64_t)i)
		buf_printf(b, "- and %" PRId64 " more, see status_url\n",
			   total - (int64_t)i);
}

static void add_skipped(struct buf *b, const json_t *run)
{
	const json_t *list = json_object_get(run, "artifacts_skipped");
	int64_t total = int_at(run, "artifacts_skipped_total");
	const json_t *a;
	size_t i;

	if (total > 0)
		buf_printf(b, "artifacts skipped (%" PRId64 "):\n", total);
	json_array_foreach(list, i, a) {
		if (i == SKIPPED_MAX)
			break;
		buf_printf(b, "- %s: %s\n", text_at(a, "path"), text_at(a, "reason"));
	}
	if (text_at(run, "artifacts_error")[0])
		buf_printf(b, "artifacts: %s\n", text_at(run, "artifacts_error"));
}

/* ---- the three cases */

static size_t count_state(const json_t *commands, const char *state)
{
	const json_t *c;
	size_t i, n = 0;

	json_array_foreach(commands, i, c)
		if (is(c, "state", state))
			n++;
	return n;
}

/* The run's error is "command 0: " and that command's reason. */
static bool is_told_by(const json_t *c, const char *error)
{
	return text_at(c, "reason")[0] && str_ends(error, text_at(c, "reason"));
}

/* False: the run's own word says it all, and the sentence below it why. */
static bool has_outcome(const json_t *c)
{
	return is(c, "state", "timed_out") || text_at(c, "signal")[0] ||
	       json_is_integer(json_object_get(c, "exit_code"));
}

static void add_head(struct buf *b, const json_t *run)
{
	const json_t *commands = json_object_get(run, "commands");
	size_t n = json_array_size(commands);

	/* "canceled by ..." says the state too */
	if (n == 1 && str_starts(text_at(run, "error"), text_at(run, "state"))) {
		buf_printf(b, "%s\n", text_at(run, "error"));
		return;
	}
	buf_puts(b, text_at(run, "state"));
	if (n > 1) {
		buf_printf(b, ": %zu of %zu commands completed",
			   count_state(commands, "completed"), n);
	} else if (has_outcome(json_array_get(commands, 0))) {
		buf_puts(b, ": ");
		add_outcome(b, json_array_get(commands, 0));
	}
	buf_puts(b, "\n");
	if (n != 1 || !is_told_by(json_array_get(commands, 0), text_at(run, "error")))
		add_sentence(b, text_at(run, "error"));
}

void run_words_final(struct buf *b, const json_t *run)
{
	add_head(b, run);
	add_commands(b, run);
	add_artifacts(b, run);
	add_skipped(b, run);
}

void run_words_so_far(struct buf *b, const json_t *run)
{
	buf_printf(b, "%s\n", text_at(run, "state"));
	add_commands(b, run);
}

void run_words_unfinished(struct buf *b, const json_t *run, int64_t waited_ms)
{
	buf_printf(b,
		   "still %s after %" PRId64 " ms: the run goes on in the sandbox. Call "
		   "get_run with its run_id (and wait_ms) for its state and output, "
		   "cancel_run to end it; status_url and events_url tell the same. A "
		   "larger options.await_timeout_ms waits longer.\n",
		   run ? text_at(run, "state") : "running", waited_ms);
	if (run)
		add_commands(b, run);
}

void run_words_not_awaited(struct buf *b, const char *why)
{
	buf_printf(
		b,
		"accepted, but this answer cannot wait for the run: %s. It goes on in "
		"the sandbox. Call get_run with its run_id for its state and output, or "
		"fetch status_url.\n",
		why);
}

void run_words_accepted(struct buf *b)
{
	buf_puts(b,
		 "accepted: the run has begun or waits its turn; this answer does not "
		 "wait for it. Call get_run with its run_id (and wait_ms) for its state "
		 "and output, or fetch status_url. To get the result in the answer, set "
		 "options.await_completion to true.\n");
}
