/* SPDX-License-Identifier: MIT */
#include "store/words.h"

#include <assert.h>
#include <string.h>

#include "store/types.h"

const char *const words_sandbox_state[STORE_SANDBOX_STATE_COUNT] = {
	[STORE_SANDBOX_CREATING] = "creating", [STORE_SANDBOX_READY] = "ready",
	[STORE_SANDBOX_STOPPED] = "stopped",   [STORE_SANDBOX_DELETING] = "deleting",
	[STORE_SANDBOX_FAILED] = "failed",
};

const char *const words_run_state[STORE_RUN_STATE_COUNT] = {
	[STORE_RUN_QUEUED] = "queued",       [STORE_RUN_RUNNING] = "running",
	[STORE_RUN_COMPLETED] = "completed", [STORE_RUN_FAILED] = "failed",
	[STORE_RUN_CANCELED] = "canceled",
};

const char *const words_command_status[STORE_COMMAND_STATUS_COUNT] = {
	[STORE_COMMAND_QUEUED] = "queued",       [STORE_COMMAND_RUNNING] = "running",
	[STORE_COMMAND_COMPLETED] = "completed", [STORE_COMMAND_FAILED] = "failed",
	[STORE_COMMAND_TIMED_OUT] = "timed_out", [STORE_COMMAND_CANCELED] = "canceled",
	[STORE_COMMAND_LOST] = "lost",
};

const char *const words_event_type[STORE_EVENT_TYPE_COUNT] = {
	[STORE_EVENT_SANDBOX_PROGRESS] = "sandbox_progress",
	[STORE_EVENT_RUN_STARTED] = "run_started",
	[STORE_EVENT_COMMAND_STARTED] = "command_started",
	[STORE_EVENT_COMMAND_STDOUT] = "command_stdout",
	[STORE_EVENT_COMMAND_STDERR] = "command_stderr",
	[STORE_EVENT_COMMAND_FINISHED] = "command_finished",
	[STORE_EVENT_ARTIFACTS_EXTRACTED] = "artifacts_extracted",
	[STORE_EVENT_RUN_FINISHED] = "run_finished",
	[STORE_EVENT_RUN_FAILED] = "run_failed",
};

int words_find(const char *const *words, int count, const char *word)
{
	for (int i = 0; word && i < count; i++)
		if (!strcmp(words[i], word))
			return i;
	return -1;
}

const char *store_sandbox_state_name(enum store_sandbox_state s)
{
	assert(s < STORE_SANDBOX_STATE_COUNT);
	return words_sandbox_state[s];
}

const char *store_run_state_name(enum store_run_state s)
{
	assert(s < STORE_RUN_STATE_COUNT);
	return words_run_state[s];
}

const char *store_command_status_name(enum store_command_status s)
{
	assert(s < STORE_COMMAND_STATUS_COUNT);
	return words_command_status[s];
}

const char *store_event_type_name(enum store_event_type t)
{
	assert(t < STORE_EVENT_TYPE_COUNT);
	return words_event_type[t];
}
