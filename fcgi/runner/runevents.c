/* SPDX-License-Identifier: MIT */
#include "runner/runevents.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "runner/turn.h"

/* The outside knows fewer ends of a command than the store. */
static const char *const outside_status[STORE_COMMAND_STATUS_COUNT] = {
	[STORE_COMMAND_QUEUED] = "queued",       [STORE_COMMAND_RUNNING] = "running",
	[STORE_COMMAND_COMPLETED] = "completed", [STORE_COMMAND_FAILED] = "failed",
	[STORE_COMMAND_TIMED_OUT] = "timed_out", [STORE_COMMAND_CANCELED] = "failed",
	[STORE_COMMAND_LOST] = "failed",
};

/* Takes data. A store that fails is noticed by the commit. */
static void add(const struct run *run, enum store_event_type type, int64_t index,
		json_t *data)
{
	struct err e = ERR_INIT;
	char *text = json_dumps(data, JSON_COMPACT);

	json_decref(data);
	if (text && store_event_add(run->sb->r->store,
				    &(struct store_new_event){.run_id = run->run_id,
							      .type = type,
							      .at = clock_now_ms(),
							      .command_index = index,
							      .json = text},
				    &e) < 0)
		log_error("%s: %s", run->run_id, e.msg);
	free(text);
	turn_dirty(run->sb->r);
}

void event_sandbox_progress(const struct run *run, const char *message)
{
	add(run, STORE_EVENT_SANDBOX_PROGRESS, -1,
	    json_pack("{s:s,s:o}", "run_id", run->run_id, "message",
		      json_string_repaired(message, strlen(message))));
}

void event_run_started(const struct run *run)
{
	const struct sandbox *sb = run->sb;
	char at[CLOCK_RFC3339_SIZE];
	json_t *data = json_pack(
		"{s:s,s:s,s:s?,s:s,s:b}", "run_id", run->run_id, "identifier",
		sb->identifier, "sandbox_container_id", sb->container_id, "started_at",
		clock_format_rfc3339(run->started_at, at), "fresh_sandbox", sb->fresh);

	if (sb->again)
		json_object_set_new(data, "recreated", json_string(sb->again));
	add(run, STORE_EVENT_RUN_STARTED, -1, data);
}

static json_t *argv_json(char *const *argv)
{
	json_t *a;

	if (!argv)
		return json_null();
	a = json_array();
	for (; *argv; argv++)
		json_array_append_new(a, json_string(*argv));
	return a;
}

void event_command_started(const struct run *run, size_t index)
{
	const struct command_spec *c = &run->spec.commands[index];
	char at[CLOCK_RFC3339_SIZE];

	add(run, STORE_EVENT_COMMAND_STARTED, (int64_t)index,
	    json_pack("{s:s,s:I,s:s?,s:o,s:s,s:s}", "run_id", run->run_id, "index",
		      (json_int_t)index, "shell", c->shell, "argv", argv_json(c->argv),
		      "cwd", c->cwd, "started_at",
		      clock_format_rfc3339(run->cmds[index].started_at, at)));
}

void event_command_finished(const struct run *run, const struct store_command *c)
{
	char at[CLOCK_RFC3339_SIZE];
	json_t *data = json_pack(
		"{s:s,s:I,s:o,s:s,s:b,s:b,s:s}", "run_id", run->run_id, "index",
		(json_int_t)c->index, "exit_code",
		c->exit_code >= 0 ? json_integer(c->exit_code) : json_null(), "status",
		outside_status[c->status], "stdout_truncated", c->truncated[STORE_STDOUT],
		"stderr_truncated", c->truncated[STORE_STDERR], "ended_at",
		clock_format_rfc3339(c->ended_at, at));

	if (c->reason)
		json_object_set_new(data, "reason", json_string(c->reason));
	if (c->signal > 0)
		json_object_set_new(data, "signal", json_integer(c->signal));
	add(run, STORE_EVENT_COMMAND_FINISHED, c->index, data);
}

void event_artifacts(const struct run *run, int64_t count)
{
	add(run, STORE_EVENT_ARTIFACTS_EXTRACTED, -1,
	    json_pack("{s:s,s:I}", "run_id", run->run_id, "count", (json_int_t)count));
}

void event_run_ended(const struct run *run, int64_t at, const char *error)
{
	char text[CLOCK_RFC3339_SIZE];
	json_t *data = json_pack("{s:s,s:s}", "run_id", run->run_id, "ended_at",
				 clock_format_rfc3339(at, text));

	if (error)
		json_object_set_new(data, "error", json_string(error));
	add(run, error ? STORE_EVENT_RUN_FAILED : STORE_EVENT_RUN_FINISHED, -1, data);
}
