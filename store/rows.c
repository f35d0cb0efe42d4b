/* SPDX-License-Identifier: MIT */
#include "store/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/mem.h"
#include "store/arena.h"
#include "store/words.h"

/* Room for one more in a vector that doubles: full at 0, 4, 8, 16, ... */
static void *grown(void *v, size_t n, size_t size)
{
	if (n == 0 || (n >= 4 && (n & (n - 1)) == 0))
		return xreallocarray(v, n ? 2 * n : 4, size);
	return v;
}

int rows_hand_over(void *from, void *to, size_t n)
{
	memcpy(to, from, n);
	memset(from, 0, n);
	return 0;
}

const char *rows_text(struct store_arena *a, sqlite3_stmt *st, int column)
{
	const void *p = sqlite3_column_text(st, column);

	if (!p)
		return NULL;
	return arena_dup(a, p, (size_t)sqlite3_column_bytes(st, column));
}

static int64_t int_or(sqlite3_stmt *st, int column, int64_t none)
{
	return sqlite3_column_type(st, column) == SQLITE_NULL
		       ? none
		       : sqlite3_column_int64(st, column);
}

static bool flag(sqlite3_stmt *st, int column)
{
	return sqlite3_column_int(st, column) != 0;
}

static int word(sqlite3_stmt *st, int column, const char *const *words, int count)
{
	return words_find(words, count, (const char *)sqlite3_column_text(st, column));
}

static int bad_word(const char *table, struct err *e)
{
	return err_set(e, ERR_STORE, "table %s holds a word this program does not know",
		       table);
}

static int read_sandbox(sqlite3_stmt *st, struct store_arena *a, struct store_sandbox *s)
{
	int state = word(st, 7, words_sandbox_state, STORE_SANDBOX_STATE_COUNT);

	*s = (struct store_sandbox){
		.tenant = rows_text(a, st, 0),
		.identifier = rows_text(a, st, 1),
		.name = rows_text(a, st, 2),
		.backend = rows_text(a, st, 3),
		.container_id = rows_text(a, st, 4),
		.image = rows_text(a, st, 5),
		.policy_fingerprint = rows_text(a, st, 6),
		.state = (enum store_sandbox_state)state,
		.created_at = sqlite3_column_int64(st, 8),
		.expires_at = sqlite3_column_int64(st, 9),
		.last_used_at = sqlite3_column_int64(st, 10),
		.ttl_s = sqlite3_column_int64(st, 11),
		.error = rows_text(a, st, 12),
		.agent_boot = rows_text(a, st, 13),
	};
	return state < 0 ? -1 : 0;
}

int rows_sandboxes(struct db *d, sqlite3_stmt *st, struct store_sandboxes *ret,
		   struct err *e)
{
	AUTO_STORE_SANDBOXES l = {.mem = arena_new()};
	int rc;

	while ((rc = db_step(d, st, e)) > 0) {
		l.v = grown(l.v, l.n, sizeof *l.v);
		if (read_sandbox(st, l.mem, &l.v[l.n++]) < 0)
			return bad_word("sandboxes", e);
	}
	if (rc < 0)
		return -1;
	return rows_hand_over(&l, ret, sizeof l);
}

int rows_warms(struct db *d, sqlite3_stmt *st, struct store_warms *ret, struct err *e)
{
	AUTO_STORE_WARMS l = {.mem = arena_new()};
	int rc;

	while ((rc = db_step(d, st, e)) > 0) {
		l.v = grown(l.v, l.n, sizeof *l.v);
		l.v[l.n++] = (struct store_warm){
			.name = rows_text(l.mem, st, 0),
			.backend = rows_text(l.mem, st, 1),
			.container_id = rows_text(l.mem, st, 2),
			.image = rows_text(l.mem, st, 3),
			.policy_fingerprint = rows_text(l.mem, st, 4),
			.made_with = rows_text(l.mem, st, 5),
			.host_boot = rows_text(l.mem, st, 6),
			.created_at = sqlite3_column_int64(st, 7),
		};
	}
	if (rc < 0)
		return -1;
	return rows_hand_over(&l, ret, sizeof l);
}

static int read_run(sqlite3_stmt *st, struct store_arena *a, struct store_run *r)
{
	int state = word(st, 5, words_run_state, STORE_RUN_STATE_COUNT);

	*r = (struct store_run){
		.run_id = rows_text(a, st, 0),
		.tenant = rows_text(a, st, 1),
		.identifier = rows_text(a, st, 2),
		.sandbox_name = rows_text(a, st, 3),
		.sandbox_container_id = rows_text(a, st, 4),
		.state = (enum store_run_state)state,
		.created_at = sqlite3_column_int64(st, 6),
		.started_at = sqlite3_column_int64(st, 7),
		.ended_at = sqlite3_column_int64(st, 8),
		.error = rows_text(a, st, 9),
		.artifacts_error = rows_text(a, st, 10),
		.cancel_requested = flag(st, 11),
		.continue_on_error = flag(st, 12),
		.lock_sandbox = flag(st, 13),
		.as_root = flag(st, 14),
		.ttl_s = sqlite3_column_int64(st, 15),
		.background_of = rows_text(a, st, 16),
	};
	return state < 0 ? -1 : 0;
}

int rows_runs(struct db *d, sqlite3_stmt *st, struct store_runs *ret, struct err *e)
{
	AUTO_STORE_RUNS l = {.mem = arena_new()};
	int rc;

	while ((rc = db_step(d, st, e)) > 0) {
		l.v = grown(l.v, l.n, sizeof *l.v);
		if (read_run(st, l.mem, &l.v[l.n++]) < 0)
			return bad_word("runs", e);
	}
	if (rc < 0)
		return -1;
	return rows_hand_over(&l, ret, sizeof l);
}

static int read_command(sqlite3_stmt *st, struct store_arena *a, struct store_command *c)
{
	int status = word(st, 7, words_command_status, STORE_COMMAND_STATUS_COUNT);

	*c = (struct store_command){
		.index = sqlite3_column_int64(st, 0),
		.shell = rows_text(a, st, 1),
		.argv_json = rows_text(a, st, 2),
		.cwd = rows_text(a, st, 3),
		.env_json = rows_text(a, st, 4),
		.timeout_ms = sqlite3_column_int64(st, 5),
		.allow_failure = flag(st, 6),
		.status = (enum store_command_status)status,
		.exit_code = int_or(st, 8, -1),
		.signal = sqlite3_column_int64(st, 9),
		.reason = rows_text(a, st, 10),
		.oom = (int)int_or(st, 11, -1),
		.started_at = sqlite3_column_int64(st, 12),
		.ended_at = sqlite3_column_int64(st, 13),
		.bytes = {sqlite3_column_int64(st, 14), sqlite3_column_int64(st, 15)},
		.stored = {sqlite3_column_int64(st, 16), sqlite3_column_int64(st, 17)},
		.truncated = {flag(st, 18), flag(st, 19)},
		.background_left = sqlite3_column_int64(st, 20),
		.cpu_ms = int_or(st, 21, -1),
		.max_rss_kb = int_or(st, 22, -1),
		.stdin_text = rows_text(a, st, 23),
		.background = flag(st, 24),
	};
	return status < 0 ? -1 : 0;
}

int rows_run_commands(struct db *d, struct store_run *run, struct err *e)
{
	static const char sql[] =
		"SELECT command_index, shell, argv, cwd, env, timeout_ms, allow_failure,"
		" status, exit_code, signal, reason, oom, started_at, ended_at,"
		" stdout_bytes, stderr_bytes, stdout_stored, stderr_stored,"
		" stdout_truncated, stderr_truncated, background_left, cpu_ms, "
		"max_rss_kb,"
		" stdin, background FROM commands WHERE run_id = ? ORDER BY "
		"command_index";
	AUTO_STMT *st = db_stmt(d, sql, e);
	int rc;

	if (!st)
		return -1;
	DB_BIND(st, db_text(run->run_id));
	while ((rc = db_step(d, st, e)) > 0) {
		run->commands =
			grown(run->commands, run->ncommands, sizeof *run->commands);
		if (read_command(st, run->mem, &run->commands[run->ncommands++]) < 0)
			return bad_word("commands", e);
	}
	return rc;
}

int rows_run_artifacts(struct db *d, struct store_run *run, struct err *e)
{
	static const char sql[] =
		"SELECT path, size, mtime_ns, skipped_reason, ctime_ns, 2 * hides_base"
		" FROM artifacts WHERE run_id = ?1"
		" UNION ALL SELECT path, size, mtime_ns, NULL, ctime_ns, 1 FROM artifacts"
		" WHERE run_id = (SELECT artifacts_base FROM runs WHERE run_id = ?1)"
		" AND skipped_reason IS NULL AND path NOT IN"
		" (SELECT path FROM artifacts WHERE run_id = ?1 AND hides_base = 1)"
		" ORDER BY path";
	AUTO_STMT *st = db_stmt(d, sql, e);
	int rc;

	if (!st)
		return -1;
	DB_BIND(st, db_text(run->run_id));
	while ((rc = db_step(d, st, e)) > 0) {
		run->artifacts =
			grown(run->artifacts, run->nartifacts, sizeof *run->artifacts);
		run->artifacts[run->nartifacts++] = (struct store_artifact){
			.path = rows_text(run->mem, st, 0),
			.size = sqlite3_column_int64(st, 1),
			.mtime_ns = sqlite3_column_int64(st, 2),
			.skipped_reason = rows_text(run->mem, st, 3),
			.ctime_ns = sqlite3_column_int64(st, 4),
			.in_base = (enum store_in_base)sqlite3_column_int(st, 5),
		};
	}
	return rc;
}

int rows_stream(struct db *d, const char *run_id, int64_t command,
		enum store_stream stream, struct rows_stream *ret, struct err *e)
{
	static const char sql[] =
		"SELECT out_offset + length(CAST(data AS BLOB)), truncated FROM events"
		" WHERE run_id = ? AND command_index = ? AND type = ?"
		" AND out_offset IS NOT NULL ORDER BY out_offset DESC, seq DESC LIMIT 1";
	AUTO_STMT *st = db_stmt(d, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(run_id), db_int(command),
		db_text(words_event_type[stream == STORE_STDOUT
						 ? STORE_EVENT_COMMAND_STDOUT
						 : STORE_EVENT_COMMAND_STDERR]));
	int rc = db_step(d, st, e);
	if (rc > 0)
		*ret = (struct rows_stream){
			.stored = sqlite3_column_int64(st, 0),
			.truncated = sqlite3_column_int(st, 1) != 0,
		};
	return rc < 0 ? -1 : 0;
}

int rows_run_last_seq(struct db *d, const char *run_id, int64_t *ret, struct err *e)
{
	static const char sql[] = "SELECT max(seq) FROM events WHERE run_id = ?";
	AUTO_STMT *st = db_stmt(d, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(run_id));
	if (db_step(d, st, e) < 0)
		return -1;
	*ret = sqlite3_column_int64(st, 0);
	return 0;
}

int rows_latest_artifacts(struct db *d, const char *tenant, const char *identifier,
			  struct store_arena *a, const char **ret_run_id, struct err *e)
{
	static const char sql[] =
		"SELECT run_id FROM runs WHERE tenant = ? AND identifier = ?"
		" AND artifact_count > 0 AND ended_at IS NOT NULL AND removing = 0"
		" ORDER BY ended_at DESC LIMIT 1";
	AUTO_STMT *st = db_stmt(d, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(tenant), db_text(identifier));
	int rc = db_step(d, st, e);
	if (rc == 0)
		return err_set(e, ERR_NOT_FOUND,
			       "no run of this identifier has artifacts");
	if (rc > 0)
		*ret_run_id = rows_text(a, st, 0);
	return rc < 0 ? -1 : 0;
}

static int read_event(sqlite3_stmt *st, struct store_arena *a, struct store_event *v)
{
	int type = word(st, 3, words_event_type, STORE_EVENT_TYPE_COUNT);
	const void *data = sqlite3_column_blob(st, 8); /* of TEXT too: its bytes */
	size_t n = (size_t)sqlite3_column_bytes(st, 8);

	*v = (struct store_event){
		.id = sqlite3_column_int64(st, 0),
		.seq = sqlite3_column_int64(st, 1),
		.run_id = rows_text(a, st, 2),
		.type = (enum store_event_type)type,
		.at = sqlite3_column_int64(st, 4),
		.command_index = int_or(st, 5, -1),
		.out_offset = int_or(st, 6, -1),
		.truncated = flag(st, 7),
		.data = arena_dup(a, data, n),
		.n = n,
	};
	return type < 0 ? -1 : 0;
}

static bool is_skipped(sqlite3_stmt *st, const struct rows_bound *b)
{
	int type = b->wanted ? word(st, 3, words_event_type, STORE_EVENT_TYPE_COUNT) : -1;

	/* A word that is not known is read, and then refused. */
	return type >= 0 && !b->wanted(b->arg, (const char *)sqlite3_column_text(st, 2),
				       (enum store_event_type)type);
}

int rows_events(struct db *d, sqlite3_stmt *st, const struct rows_bound *b,
		struct store_events *ret, int64_t *ret_last_id, struct err *e)
{
	AUTO_STORE_EVENTS l = {.mem = arena_new()};
	size_t bytes = 0;
	int rc;

	while ((rc = db_step(d, st, e)) > 0) {
		bool skip = is_skipped(st, b);

		if (!skip && l.n > 0 && (l.n >= b->max_events || bytes >= b->max_bytes)) {
			l.more = true;
			break;
		}
		*ret_last_id = sqlite3_column_int64(st, 0);
		if (skip)
			continue;
		l.v = grown(l.v, l.n, sizeof *l.v);
		if (read_event(st, l.mem, &l.v[l.n++]) < 0)
			return bad_word("events", e);
		bytes += l.v[l.n - 1].n;
	}
	if (rc < 0)
		return -1;
	return rows_hand_over(&l, ret, sizeof l);
}
