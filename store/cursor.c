/* SPDX-License-Identifier: MIT */
#include "store/cursor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/mem.h"
#include "store/rows.h"

static void cursor_free(struct cursor *c)
{
	if (c)
		free(c->commands);
	free(c);
}

static void cursor_freep(struct cursor **c)
{
	cursor_free(*c);
}
#define AUTO_CURSOR __attribute__((cleanup(cursor_freep))) struct cursor

/* Where run_id is, or where it would be hung in. */
static struct cursor **find(struct cursors *all, const char *run_id)
{
	uint32_t h = 2166136261U; /* FNV-1a */

	for (const char *p = run_id; *p; p++)
		h = (h ^ (unsigned char)*p) * 16777619U;
	struct cursor **at = &all->buckets[h % CURSOR_BUCKETS];
	while (*at && strcmp((*at)->run_id, run_id) != 0)
		at = &(*at)->next;
	return at;
}

static int count_commands(struct db *d, struct cursor *c, struct err *e)
{
	static const char sql[] =
		"SELECT (SELECT max(command_index) + 1 FROM commands WHERE run_id = ?1)"
		" FROM runs WHERE run_id = ?1";
	AUTO_STMT *st = db_stmt(d, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(c->run_id));
	int rc = db_step(d, st, e);
	if (rc == 0)
		return err_set(e, ERR_NOT_FOUND, "no run %s", c->run_id);
	if (rc < 0)
		return -1;
	c->ncommands = (size_t)sqlite3_column_int64(st, 0);
	c->commands = xcalloc(c->ncommands + 1, sizeof *c->commands);
	return 0;
}

static int load_stream(struct db *d, struct cursor *c, size_t command,
		       enum store_stream stream, struct err *e)
{
	struct rows_stream row = {0};

	if (rows_stream(d, c->run_id, (int64_t)command, stream, &row, e) < 0)
		return -1;
	c->commands[command][stream] = (struct cursor_stream){
		.stored = row.stored,
		.truncated = row.truncated,
	};
	return 0;
}

static int load(struct db *d, struct cursor *c, struct err *e)
{
	if (count_commands(d, c, e) < 0 ||
	    rows_run_last_seq(d, c->run_id, &c->seq, e) < 0)
		return -1;
	for (size_t i = 0; c->seq > 0 && i < c->ncommands; i++)
		if (load_stream(d, c, i, STORE_STDOUT, e) < 0 ||
		    load_stream(d, c, i, STORE_STDERR, e) < 0)
			return -1;
	return 0;
}

void cursor_begin(struct cursors *all, const char *run_id, size_t ncommands)
{
	struct cursor **at = find(all, run_id);

	if (*at)
		return;
	struct cursor *c = xcalloc(1, sizeof *c);
	int n = snprintf(c->run_id, sizeof c->run_id, "%s", run_id);
	if (n < 0 || (size_t)n >= sizeof c->run_id) {
		cursor_free(c);
		return;
	}
	c->ncommands = ncommands;
	c->commands = xcalloc(ncommands + 1, sizeof *c->commands);
	*at = c;
}

int cursor_get(struct cursors *all, struct db *d, const char *run_id, struct cursor **ret,
	       struct err *e)
{
	struct cursor **at = find(all, run_id);

	if (!*at) {
		AUTO_CURSOR *c = xcalloc(1, sizeof *c);
		int n = snprintf(c->run_id, sizeof c->run_id, "%s", run_id);

		if (n < 0 || (size_t)n >= sizeof c->run_id)
			return err_set(e, ERR_NOT_FOUND, "no such run");
		if (load(d, c, e) < 0)
			return -1;
		*at = MOVE(c);
	}
	*ret = *at;
	return 0;
}

void cursor_end(struct cursors *all, const char *run_id)
{
	struct cursor *c = *find(all, run_id);

	if (c && !c->ended) {
		c->ended = true;
		all->nended++;
	}
}

static void drop(struct cursors *all, bool only_ended)
{
	for (size_t i = 0; i < CURSOR_BUCKETS; i++)
		for (struct cursor **at = &all->buckets[i]; *at;) {
			struct cursor *c = *at;

			if (only_ended && !c->ended) {
				at = &c->next;
				continue;
			}
			*at = c->next;
			cursor_free(c);
		}
	all->nended = 0;
}

void cursors_sweep(struct cursors *all)
{
	if (all->nended > 0)
		drop(all, true);
}

void cursors_clear(struct cursors *all)
{
	drop(all, false);
}
