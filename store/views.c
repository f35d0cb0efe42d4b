/* SPDX-License-Identifier: MIT */
#include <stddef.h>

#include "store/schema.h"

/* A time of the tables as people read it, UTC. */
#define DATE(column)      "strftime('%Y-%m-%d %H:%M:%f', " column " / 1000.0, 'unixepoch')"
#define SECONDS(from, to) "round((" to " - " from ") / 1000.0, 3)"
#define NOW_MS            "((julianday('now') - 2440587.5) * 86400000)"

/* SQL is laid out by hand. */
/* clang-format off */
const char *const schema_views[] = {
	"DROP VIEW IF EXISTS v_sandboxes;\n"
	"CREATE VIEW v_sandboxes AS SELECT tenant, identifier, state, name, backend, image,\n"
	"  " DATE("created_at") " AS created,\n"
	"  " DATE("last_used_at") " AS last_used,\n"
	"  " DATE("expires_at") " AS expires,\n"
	"  CAST(round((expires_at - " NOW_MS ") / 1000) AS INTEGER) AS expires_in_s,\n"
	"  ttl_s, container_id, policy_fingerprint, error FROM sandboxes\n"
	"  UNION ALL SELECT NULL, NULL, 'warm', name, backend, image,\n"
	"  " DATE("created_at") ", NULL, NULL, NULL, NULL, container_id,\n"
	"  policy_fingerprint, NULL FROM warm_sandboxes;\n",

	"DROP VIEW IF EXISTS v_runs;\n"
	"CREATE VIEW v_runs AS SELECT r.run_id, r.tenant, r.identifier, r.state,\n"
	"  " DATE("r.created_at") " AS created,\n"
	"  " DATE("r.started_at") " AS started,\n"
	"  " DATE("r.ended_at") " AS ended,\n"
	"  " SECONDS("r.created_at", "coalesce(r.started_at, r.ended_at, " NOW_MS ")")
	" AS waited_s,\n"
	"  " SECONDS("r.started_at", "coalesce(r.ended_at, " NOW_MS ")") " AS seconds,\n"
	"  (SELECT count(*) FROM commands c WHERE c.run_id = r.run_id) AS commands,\n"
	"  r.artifact_count AS artifacts, r.as_user, r.sandbox_name, r.error,\n"
	"  r.artifacts_error, r.cancel_requested, r.background_of FROM runs r WHERE r.removing = 0;\n",

	"DROP VIEW IF EXISTS v_commands;\n"
	"CREATE VIEW v_commands AS SELECT c.run_id, r.tenant, r.identifier,\n"
	"  c.command_index, c.status, c.exit_code, c.signal, c.reason, c.oom,\n"
	"  " DATE("c.started_at") " AS started,\n"
	"  " DATE("c.ended_at") " AS ended,\n"
	"  " SECONDS("c.started_at", "coalesce(c.ended_at, " NOW_MS ")") " AS seconds,\n"
	"  c.cpu_ms, c.max_rss_kb, c.stdout_bytes, c.stderr_bytes, c.stdout_stored,\n"
	"  c.stderr_stored, c.background_left, c.background, c.cwd, coalesce(c.shell, c.argv) AS command\n"
	"  FROM commands c JOIN runs r USING (run_id) WHERE r.removing = 0;\n",

	"DROP VIEW IF EXISTS v_run_log;\n"
	"CREATE VIEW v_run_log AS SELECT run_id, seq, " DATE("at") " AS time, type,\n"
	"  command_index, out_offset, truncated,\n"
	"  length(CAST(data AS BLOB)) AS bytes, data, event_id FROM events;\n",

	"DROP VIEW IF EXISTS v_artifacts;\n"
	"CREATE VIEW v_artifacts AS SELECT r.tenant, r.identifier, r.run_id, a.path, a.size,\n"
	"  " DATE("a.mtime_ns / 1000000") " AS modified, a.skipped_reason,\n"
	"  " DATE("r.ended_at") " AS run_ended\n"
	"  FROM artifacts a JOIN runs r USING (run_id) WHERE r.removing = 0\n"
	"  UNION ALL SELECT r.tenant, r.identifier, r.run_id, b.path, b.size,\n"
	"  " DATE("b.mtime_ns / 1000000") ", NULL, " DATE("r.ended_at") "\n"
	"  FROM runs r JOIN artifacts b ON b.run_id = r.artifacts_base\n"
	"  WHERE r.removing = 0 AND b.skipped_reason IS NULL AND NOT EXISTS\n"
	"  (SELECT 1 FROM artifacts a WHERE a.run_id = r.run_id AND a.path = b.path);\n",

	"DROP VIEW IF EXISTS v_sessions;\n"
	"CREATE VIEW v_sessions AS SELECT session_id, tenant, client_name, client_version,\n"
	"  protocol_version, " DATE("created_at") " AS created,\n"
	"  " DATE("last_seen_at") " AS last_seen FROM sessions;\n",

	"DROP VIEW IF EXISTS v_tokens;\n"
	"CREATE VIEW v_tokens AS SELECT token_id, tenant, name,\n"
	"  " DATE("created_at") " AS created, " DATE("expires_at") " AS expires,\n"
	"  " DATE("last_used_at") " AS last_used, " DATE("revoked_at") " AS revoked\n"
	"  FROM tokens;\n",

	"DROP VIEW IF EXISTS v_audit;\n"
	"CREATE VIEW v_audit AS SELECT audit_id, " DATE("at") " AS time, tenant, actor,\n"
	"  action, subject, detail FROM audit;\n",

	NULL,
};
/* clang-format on */
