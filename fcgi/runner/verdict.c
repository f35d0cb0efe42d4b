/* SPDX-License-Identifier: MIT */
#include "runner/verdict.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"

static const char *program(const struct command_spec *c)
{
	return c->argv ? c->argv[0] : "bash";
}

static const char *errno_words(uint32_t n, char *buf, size_t size)
{
	return strerror_r(n > 4095 ? 0 : (int)n, buf, size);
}

static void spawn_reason(const struct verdict_input *in, char *reason)
{
	const struct ap_exit *x = in->exit;
	char words[128];
	const char *why = errno_words(x->value, words, sizeof(words));

	switch ((enum ap_stage)x->stage) {
	case AP_STAGE_CWD:
		snprintf(reason, VERDICT_REASON_MAX,
			 "the working directory %.200s cannot be entered (%s); create it "
			 "in an earlier command or give another cwd",
			 in->spec->cwd, why);
		return;
	case AP_STAGE_EXEC:
		snprintf(reason, VERDICT_REASON_MAX, "%.200s cannot be run (%s)%s",
			 program(in->spec), why,
			 x->value == ENOENT ? ": no such program in the sandbox; install "
					      "it, or use `shell` for shell syntax"
					    : "");
		return;
	case AP_STAGE_USER:
		snprintf(reason, VERDICT_REASON_MAX,
			 "the sandbox could not become the user of the command (%s); "
			 "its /etc/passwd cannot be read, or its policy forbids it",
			 why);
		return;
	case AP_STAGE_LIMIT:
	case AP_STAGE_FORK:
		snprintf(reason, VERDICT_REASON_MAX,
			 "the sandbox cannot start another process (%s); it has reached "
			 "its limit of processes: end some, or restart_sandbox",
			 why);
		return;
	case AP_STAGE_MEMORY:
	case AP_STAGE_PIPE:
	case AP_STAGE_NONE:
	case AP_STAGE_COUNT:
		break;
	}
	snprintf(reason, VERDICT_REASON_MAX,
		 "the command could not be started in the sandbox (%s)", why);
}

static void oom_reason(const struct verdict_input *in, char *reason)
{
	snprintf(reason, VERDICT_REASON_MAX,
		 "a process was killed because the sandbox reached its memory limit of "
		 "%" PRId64 " MB; use less memory, or raise DEFAULT_MEMORY_MB",
		 in->memory_mb);
}

static void signal_reason(const struct verdict_input *in, char *reason)
{
	const char *name = sigabbrev_np((int)in->exit->value);

	if (in->oom == 1)
		oom_reason(in, reason);
	else
		snprintf(reason, VERDICT_REASON_MAX, "ended by signal %u (%s)%s",
			 in->exit->value, name ? name : "?",
			 in->exit->value == SIGKILL && in->oom < 0
				 ? "; whether for lack of memory is not known"
				 : "");
}

/* The exit code or signal as it was, whatever the reason. */
static void how_it_ended(const struct verdict_input *in, struct store_command *out,
			 char *reason)
{
	const struct ap_exit *x = in->exit;

	out->exit_code = -1;
	out->signal = 0;
	out->status = STORE_COMMAND_FAILED;
	if (x->how == AP_SPAWN_FAILED) {
		spawn_reason(in, reason);
	} else if (x->how == AP_SIGNALED) {
		out->signal = x->value;
		signal_reason(in, reason);
	} else if (x->value == 0) {
		out->exit_code = 0;
		out->status = STORE_COMMAND_COMPLETED;
	} else {
		out->exit_code = x->value;
		if (in->oom == 1)
			oom_reason(in, reason);
		else
			snprintf(reason, VERDICT_REASON_MAX, "exit code %u", x->value);
	}
}

/* Told by the agent: at most what every reader of JSON can hold. */
static int64_t sane(uint64_t v)
{
	const uint64_t most = (UINT64_C(1) << 53) - 1;

	return (int64_t)(v < most ? v : most);
}

void verdict_of(const struct verdict_input *in, struct store_command *out,
		char reason[static VERDICT_REASON_MAX])
{
	const struct ap_exit *x = in->exit;

	reason[0] = '\0';
	how_it_ended(in, out, reason);
	out->oom = out->status == STORE_COMMAND_COMPLETED ? 0 : in->oom;
	if (x->flags & AP_EXIT_TIMED_OUT) {
		out->status = STORE_COMMAND_TIMED_OUT;
		snprintf(reason, VERDICT_REASON_MAX,
			 "ended because its time limit of %" PRId64 " ms was over%s",
			 in->spec->timeout_ms,
			 x->flags & AP_EXIT_NO_PROCESSES
				 ? ", while the sandbox had reached its limit of "
				   "processes: start fewer at once, or restart_sandbox"
				 : "; give a larger timeout_ms, or split the work");
	} else if (in->cancel_reason && out->status != STORE_COMMAND_COMPLETED) {
		out->status = STORE_COMMAND_CANCELED;
		snprintf(reason, VERDICT_REASON_MAX, "%s%s",
			 str_starts(in->cancel_reason, "canceled") ? "" : "canceled: ",
			 in->cancel_reason);
	}
	utf8_settle(reason); /* names in it were cut to fit */
	out->reason = reason[0] ? reason : NULL;
	out->bytes[STORE_STDOUT] = sane(x->stdout_total);
	out->bytes[STORE_STDERR] = sane(x->stderr_total);
	out->background_left = x->background;
	out->cpu_ms = sane(x->user_us / 1000 + x->sys_us / 1000);
	out->max_rss_kb = sane(x->max_rss_kib);
}
