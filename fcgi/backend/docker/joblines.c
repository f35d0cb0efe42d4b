/* SPDX-License-Identifier: MIT */
#include "backend/docker/joblines.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

enum { SAID_MAX = 300 };

/* One line of words; blank ones say nothing. */
static void say(struct joblines *j, const char *before, struct str words)
{
	char line[SAID_MAX + 80];

	words = str_trim(words);
	if (words.n == 0)
		return;
	snprintf(line, sizeof line, "%.64s%s%.*s", before, *before ? ": " : "",
		 (int)(words.n < SAID_MAX ? words.n : SAID_MAX), words.p);
	j->say(j->arg, line);
}

/* Hundreds of these come for each layer. */
static bool is_tick(const char *status)
{
	static const char *const ticks[] = {"Downloading",      "Extracting",
					    "Waiting",          "Verifying Checksum",
					    "Pulling fs layer", "Download complete"};
	size_t i;

	for (i = 0; i < sizeof ticks / sizeof *ticks; i++)
		if (strcmp(status, ticks[i]) == 0)
			return true;
	return false;
}

static void take(struct joblines *j, const char *p, size_t n)
{
	AUTO_JSON *root = NULL;
	struct err ignored = ERR_INIT;
	const char *stream, *status, *error, *id;
	struct str rest, line;

	if (json_parse(p, n, &root, &ignored) < 0)
		return;
	stream = json_get_string(root, "stream");
	status = json_get_string(root, "status");
	error = json_get_string(root, "error");
	id = json_get_string(root, "id");
	if (error)
		err_set(&j->error, ERR_BACKEND, "%.400s", error);
	if (status && !is_tick(status))
		say(j, id ? id : "", str_of(status));
	rest = str_of(stream ? stream : "");
	while (str_cut(&rest, '\n', &line))
		say(j, "", line);
}

static void end_line(struct joblines *j)
{
	if (j->line.len > 0 && buf_ok(&j->line))
		take(j, j->line.p, j->line.len);
	buf_release(&j->line);
}

void joblines_feed(struct joblines *j, const char *p, size_t n)
{
	const char *nl;

	while ((nl = n ? memchr(p, '\n', n) : NULL)) {
		buf_add(&j->line, p, (size_t)(nl - p));
		end_line(j);
		n -= (size_t)(nl - p) + 1;
		p = nl + 1;
	}
	buf_add(&j->line, p, n);
}

int joblines_end(struct joblines *j, struct err *e)
{
	end_line(j);
	if (j->error.kind == ERR_NONE)
		return 0;
	*e = j->error;
	return -1;
}

void joblines_release(struct joblines *j)
{
	buf_release(&j->line);
}
