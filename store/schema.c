/* SPDX-License-Identifier: MIT */
#include "store/schema.h"

#include <stddef.h>

/*
 * The comments are part of the tables: `sqlite3 FILE .schema` shows them to the
 * sysadmin who looks in. Times are milliseconds since the epoch, UTC.
 */
/* SQL is laid out by hand. */
/* clang-format off */
static const char *const step_1[] = {
	"CREATE TABLE meta (\n"
	"  key   TEXT NOT NULL PRIMARY KEY,\n"
	"  value TEXT NOT NULL\n"
	") STRICT, WITHOUT ROWID;\n",

	"CREATE TABLE tenants (\n"
	"  tenant       TEXT NOT NULL PRIMARY KEY, -- 'default' until authentication is on\n"
	"  display_name TEXT,\n"
	"  created_at   INTEGER NOT NULL           -- ms since the epoch, like all times\n"
	") STRICT, WITHOUT ROWID;\n"
	"INSERT INTO tenants VALUES ('default', NULL,\n"
	"  CAST(strftime('%s', 'now') AS INTEGER) * 1000);\n",

	"CREATE TABLE tokens (\n"
	"  token_id      TEXT NOT NULL PRIMARY KEY,\n"
	"  tenant        TEXT NOT NULL REFERENCES tenants(tenant) ON DELETE CASCADE,\n"
	"  name          TEXT NOT NULL,\n"
	"  secret_sha256 TEXT NOT NULL UNIQUE,     -- the token itself is stored nowhere\n"
	"  created_at    INTEGER NOT NULL,\n"
	"  expires_at    INTEGER,\n"
	"  last_used_at  INTEGER,\n"
	"  revoked_at    INTEGER\n"
	") STRICT, WITHOUT ROWID;\n"
	"CREATE INDEX tokens_by_tenant ON tokens(tenant);\n",

	"CREATE TABLE sessions (                   -- MCP sessions (Mcp-Session-Id)\n"
	"  session_id       TEXT NOT NULL PRIMARY KEY,\n"
	"  tenant           TEXT NOT NULL REFERENCES tenants(tenant) ON DELETE CASCADE,\n"
	"  protocol_version TEXT NOT NULL,\n"
	"  client_name      TEXT,\n"
	"  client_version   TEXT,\n"
	"  created_at       INTEGER NOT NULL,\n"
	"  last_seen_at     INTEGER NOT NULL\n"
	") STRICT, WITHOUT ROWID;\n"
	"CREATE INDEX sessions_by_last_seen ON sessions(last_seen_at);\n"
	"CREATE INDEX sessions_by_tenant ON sessions(tenant);\n",

	"CREATE TABLE sandboxes (\n"
	"  tenant             TEXT NOT NULL REFERENCES tenants(tenant),\n"
	"  identifier         TEXT NOT NULL,       -- as the client said it\n"
	"  name               TEXT NOT NULL,       -- at the backend\n"
	"  state              TEXT NOT NULL CHECK (state IN\n"
	"    ('creating', 'ready', 'stopped', 'deleting', 'failed')),\n"
	"  backend            TEXT NOT NULL,\n"
	"  container_id       TEXT,\n"
	"  image              TEXT,\n"
	"  policy_fingerprint TEXT,                -- another policy: it is replaced\n"
	"  created_at         INTEGER NOT NULL,\n"
	"  expires_at         INTEGER NOT NULL,    -- yours to UPDATE; taken up within seconds\n"
	"  last_used_at       INTEGER,\n"
	"  ttl_s              INTEGER NOT NULL,    -- each use extends expires_at to now + ttl_s\n"
	"  error              TEXT,                -- why it failed\n"
	"  PRIMARY KEY (tenant, identifier)\n"
	") STRICT, WITHOUT ROWID;\n"
	"CREATE INDEX sandboxes_by_expiry ON sandboxes(expires_at);\n",

	"CREATE TABLE runs (\n"
	"  run_id               TEXT NOT NULL PRIMARY KEY,\n"
	"  tenant               TEXT NOT NULL REFERENCES tenants(tenant),\n"
	"  identifier           TEXT NOT NULL,\n"
	"  state                TEXT NOT NULL CHECK (state IN\n"
	"    ('queued', 'running', 'completed', 'failed', 'canceled')),\n"
	"  created_at           INTEGER NOT NULL,  -- queued at\n"
	"  started_at           INTEGER,\n"
	"  ended_at             INTEGER,\n"
	"  error                TEXT,\n"
	"  cancel_requested     INTEGER NOT NULL DEFAULT 0 CHECK (cancel_requested IN (0, 1)),\n"
	"                                          -- yours to set to 1: ends the run\n"
	"  sandbox_name         TEXT,\n"
	"  sandbox_container_id TEXT,\n"
	"  as_user              TEXT NOT NULL CHECK (as_user IN ('sandbox', 'root')),\n"
	"  continue_on_error    INTEGER NOT NULL CHECK (continue_on_error IN (0, 1)),\n"
	"  lock_sandbox         INTEGER NOT NULL CHECK (lock_sandbox IN (0, 1)),\n"
	"  ttl_s                INTEGER NOT NULL,\n"
	"  artifact_count       INTEGER NOT NULL DEFAULT 0, -- copied ones\n"
	"  artifacts_error      TEXT,\n"
	"  removing             INTEGER NOT NULL DEFAULT 0 CHECK (removing IN (0, 1))\n"
	"                                          -- 1: retention is taking it away\n"
	") STRICT;\n"
	"CREATE INDEX runs_by_state ON runs(state, created_at);\n"
	"CREATE INDEX runs_by_creation ON runs(created_at);\n"
	"CREATE INDEX runs_by_identifier ON runs(tenant, identifier, created_at);\n"
	"CREATE INDEX runs_with_artifacts ON runs(tenant, identifier, ended_at)\n"
	"  WHERE artifact_count > 0;\n"
	"CREATE INDEX runs_removing ON runs(run_id) WHERE removing = 1;\n",

	/* The outside interface knows queued, completed, failed and timed_out only. */
	"CREATE TABLE commands (\n"
	"  run_id           TEXT NOT NULL REFERENCES runs(run_id) ON DELETE CASCADE,\n"
	"  command_index    INTEGER NOT NULL,      -- 0, 1, 2, ...\n"
	"  status           TEXT NOT NULL CHECK (status IN ('queued', 'running',\n"
	"    'completed', 'failed', 'timed_out', 'canceled', 'lost')),\n"
	"               -- clients see running as queued, canceled and lost as failed\n"
	"  exit_code        INTEGER,\n"
	"  signal           INTEGER,\n"
	"  reason           TEXT,                  -- a sentence, when it did not just end\n"
	"  oom              INTEGER CHECK (oom IN (0, 1)), -- NULL: unknown\n"
	"  started_at       INTEGER,\n"
	"  ended_at         INTEGER,\n"
	"  timeout_ms       INTEGER NOT NULL,\n"
	"  allow_failure    INTEGER NOT NULL CHECK (allow_failure IN (0, 1)),\n"
	"  stdout_bytes     INTEGER NOT NULL DEFAULT 0,  -- all it wrote\n"
	"  stderr_bytes     INTEGER NOT NULL DEFAULT 0,\n"
	"  stdout_stored    INTEGER NOT NULL DEFAULT 0,  -- the first so many are kept\n"
	"  stderr_stored    INTEGER NOT NULL DEFAULT 0,\n"
	"  stdout_truncated INTEGER NOT NULL DEFAULT 0 CHECK (stdout_truncated IN (0, 1)),\n"
	"  stderr_truncated INTEGER NOT NULL DEFAULT 0 CHECK (stderr_truncated IN (0, 1)),\n"
	"  background_left  INTEGER NOT NULL DEFAULT 0,  -- processes that live on\n"
	"  cpu_ms           INTEGER,\n"
	"  max_rss_kb       INTEGER,\n"
	"  shell            TEXT,                  -- this one, run by bash -lc,\n"
	"  argv             TEXT,                  -- or this one, a JSON array\n"
	"  cwd              TEXT,\n"
	"  env              TEXT,                  -- a JSON object\n"
	"  PRIMARY KEY (run_id, command_index),\n"
	"  CHECK ((shell IS NULL) <> (argv IS NULL))\n"
	") STRICT;\n",

	"CREATE TABLE events (                     -- the run log, one row per SSE event\n"
	"  event_id      INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again\n"
	"  run_id        TEXT NOT NULL REFERENCES runs(run_id) ON DELETE CASCADE,\n"
	"  seq           INTEGER NOT NULL,         -- 1, 2, 3, ... within the run: SSE id\n"
	"  type          TEXT NOT NULL,            -- SSE event name\n"
	"  at            INTEGER NOT NULL,\n"
	"  command_index INTEGER,\n"
	"  out_offset    INTEGER,                  -- output: place of the first byte\n"
	"  truncated     INTEGER NOT NULL,         -- output: 1 = the cap cut here\n"
	"  data          ANY NOT NULL -- output: bytes (TEXT if UTF-8, else BLOB); else JSON\n"
	") STRICT;\n"
	"CREATE UNIQUE INDEX events_by_run ON events(run_id, seq);\n"
	"CREATE INDEX events_output ON events(run_id, command_index, type, out_offset)\n"
	"  WHERE out_offset IS NOT NULL;\n",

	"CREATE TABLE artifacts (                  -- files found in /artifacts after a run\n"
	"  run_id         TEXT NOT NULL REFERENCES runs(run_id) ON DELETE CASCADE,\n"
	"  path           TEXT NOT NULL,\n"
	"  size           INTEGER NOT NULL,\n"
	"  mtime_ns       INTEGER NOT NULL,        -- nanoseconds, as the sandbox said\n"
	"  skipped_reason TEXT,                    -- not NULL: not copied, and why\n"
	"  PRIMARY KEY (run_id, path)\n"
	") STRICT, WITHOUT ROWID;\n",

	"CREATE TABLE audit (                      -- who did what; the newest 100000\n"
	"  audit_id INTEGER PRIMARY KEY AUTOINCREMENT,\n"
	"  at       INTEGER NOT NULL,\n"
	"  tenant   TEXT NOT NULL,\n"
	"  actor    TEXT NOT NULL,\n"
	"  action   TEXT NOT NULL,\n"
	"  subject  TEXT NOT NULL,\n"
	"  detail   TEXT\n"
	") STRICT;\n",

	NULL,
};

static const char *const step_2[] = {
	"ALTER TABLE runs ADD COLUMN background_of TEXT;\n"
	"     -- it began as a background command of this run\n",
	"ALTER TABLE commands ADD COLUMN stdin TEXT;\n",
	"ALTER TABLE commands ADD COLUMN background INTEGER NOT NULL DEFAULT 0\n"
	"  CHECK (background IN (0, 1)); -- 1: goes on as a run of its own\n",

	NULL,
};

static const char *const step_3[] = {
	"CREATE TABLE warm_sandboxes (             -- ready for who comes; nobody's yet\n"
	"  name               TEXT NOT NULL PRIMARY KEY, -- at the backend; kept when bound\n"
	"  backend            TEXT NOT NULL,\n"
	"  container_id       TEXT,\n"
	"  image              TEXT,\n"
	"  policy_fingerprint TEXT,\n"
	"  made_with          TEXT NOT NULL,       -- image and limits; other ones: replaced\n"
	"  host_boot          TEXT NOT NULL,       -- boot of the server's host; another: replaced\n"
	"  created_at         INTEGER NOT NULL\n"
	") STRICT, WITHOUT ROWID;\n",

	NULL,
};

static const char *const step_4[] = {
	"ALTER TABLE sessions ADD COLUMN client_can TEXT;\n"
	"     -- what it lets itself be asked: elicitation, sampling, roots\n",
	"ALTER TABLE sessions ADD COLUMN log_level TEXT; -- NULL: wants no log messages\n",
	"CREATE TABLE subscriptions (              -- whose client hears of which resource\n"
	"  session_id TEXT NOT NULL REFERENCES sessions(session_id) ON DELETE CASCADE,\n"
	"  uri        TEXT NOT NULL,\n"
	"  PRIMARY KEY (session_id, uri)\n"
	") STRICT, WITHOUT ROWID;\n",

	NULL,
};

static const char *const step_5[] = {
	"ALTER TABLE sandboxes ADD COLUMN agent_boot TEXT;\n"
	"     -- a number of its agent's process; another: it was started again\n",

	NULL,
};

static const char *const step_6[] = {
	"ALTER TABLE artifacts ADD COLUMN ctime_ns INTEGER;\n"
	"     -- nanoseconds; with the size it says that a file did not change; NULL: unknown\n",
	"ALTER TABLE artifacts ADD COLUMN hides_base INTEGER NOT NULL DEFAULT 0\n"
	"  CHECK (hides_base IN (0, 1)); -- 1: another file of the run's artifacts_base has this path\n",
	"ALTER TABLE runs ADD COLUMN artifacts_base TEXT;\n"
	"     -- all files of this run are artifacts, too; v_artifacts has them\n",
	"ALTER TABLE runs ADD COLUMN only_files INTEGER NOT NULL DEFAULT 0\n"
	"  CHECK (only_files IN (0, 1)); -- 1: removed, but for files that later runs share\n",
	"CREATE INDEX runs_by_base ON runs(artifacts_base) WHERE artifacts_base IS NOT NULL;\n",

	NULL,
};

/*
 * What a run costs: a command is found by its run and index in one look and lies in
 * one page, not two; and a run that ended at once was in and out of three places of
 * an index of states, of which only the unfinished were ever asked for.
 */
static const char *const step_7[] = {
	"DROP VIEW IF EXISTS v_runs; DROP VIEW IF EXISTS v_commands;\n" /* they are made anew */
	"DELETE FROM meta WHERE key = 'views_sha256';\n",
	"CREATE TABLE commands_new (\n"
	"  run_id           TEXT NOT NULL REFERENCES runs(run_id) ON DELETE CASCADE,\n"
	"  command_index    INTEGER NOT NULL,      -- 0, 1, 2, ...\n"
	"  status           TEXT NOT NULL CHECK (status IN ('queued', 'running',\n"
	"    'completed', 'failed', 'timed_out', 'canceled', 'lost')),\n"
	"               -- clients see running as queued, canceled and lost as failed\n"
	"  exit_code        INTEGER,\n"
	"  signal           INTEGER,\n"
	"  reason           TEXT,                  -- a sentence, when it did not just end\n"
	"  oom              INTEGER CHECK (oom IN (0, 1)), -- NULL: unknown\n"
	"  started_at       INTEGER,\n"
	"  ended_at         INTEGER,\n"
	"  timeout_ms       INTEGER NOT NULL,\n"
	"  allow_failure    INTEGER NOT NULL CHECK (allow_failure IN (0, 1)),\n"
	"  background       INTEGER NOT NULL DEFAULT 0\n"
	"    CHECK (background IN (0, 1)),         -- 1: goes on as a run of its own\n"
	"  stdout_bytes     INTEGER NOT NULL DEFAULT 0,  -- all it wrote\n"
	"  stderr_bytes     INTEGER NOT NULL DEFAULT 0,\n"
	"  stdout_stored    INTEGER NOT NULL DEFAULT 0,  -- the first so many are kept\n"
	"  stderr_stored    INTEGER NOT NULL DEFAULT 0,\n"
	"  stdout_truncated INTEGER NOT NULL DEFAULT 0 CHECK (stdout_truncated IN (0, 1)),\n"
	"  stderr_truncated INTEGER NOT NULL DEFAULT 0 CHECK (stderr_truncated IN (0, 1)),\n"
	"  background_left  INTEGER NOT NULL DEFAULT 0,  -- processes that live on\n"
	"  cpu_ms           INTEGER,\n"
	"  max_rss_kb       INTEGER,\n"
	"  shell            TEXT,                  -- this one, run by bash -lc,\n"
	"  argv             TEXT,                  -- or this one, a JSON array\n"
	"  cwd              TEXT,\n"
	"  env              TEXT,                  -- a JSON object\n"
	"  stdin            TEXT,\n"
	"  PRIMARY KEY (run_id, command_index),\n"
	"  CHECK ((shell IS NULL) <> (argv IS NULL))\n"
	") STRICT, WITHOUT ROWID;\n",

	"INSERT INTO commands_new(run_id, command_index, status, exit_code, signal, reason,\n"
	"  oom, started_at, ended_at, timeout_ms, allow_failure, background, stdout_bytes,\n"
	"  stderr_bytes, stdout_stored, stderr_stored, stdout_truncated, stderr_truncated,\n"
	"  background_left, cpu_ms, max_rss_kb, shell, argv, cwd, env, stdin)\n"
	"  SELECT run_id, command_index, status, exit_code, signal, reason, oom, started_at,\n"
	"  ended_at, timeout_ms, allow_failure, background, stdout_bytes, stderr_bytes,\n"
	"  stdout_stored, stderr_stored, stdout_truncated, stderr_truncated,\n"
	"  background_left, cpu_ms, max_rss_kb, shell, argv, cwd, env, stdin\n"
	"  FROM commands ORDER BY run_id, command_index;\n"
	"DROP TABLE commands;\n"
	"ALTER TABLE commands_new RENAME TO commands;\n",

	"DROP INDEX runs_by_state;\n"
	"CREATE INDEX runs_unfinished ON runs(created_at) WHERE ended_at IS NULL;\n",

	NULL,
};
/* clang-format on */

const char *const *const schema_steps[] = {step_1, step_2, step_3, step_4,
					   step_5, step_6, step_7};
const int schema_step_count = (int)(sizeof schema_steps / sizeof *schema_steps);
