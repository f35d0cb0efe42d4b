/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_VERDICT_H
#define RUNNER_VERDICT_H

#include "store/types.h"
#include "wire/agentproto.h"
#include "wire/runspec.h"

/*
 * What an EXIT means: status, code or signal, and the sentence that says what to
 * do. Pure. The text is written to `reason`; out->reason points to it or is NULL
 * when the command simply ended with exit code 0.
 */
enum { VERDICT_REASON_MAX = 512 };

struct verdict_input {
	const struct ap_exit *exit;
	const struct command_spec *spec;
	int oom; /* 1 the sandbox killed for memory meanwhile, 0 no, -1 unknown */
	int64_t memory_mb;
	const char *cancel_reason; /* NULL: nobody asked */
};

void verdict_of(const struct verdict_input *in, struct store_command *out,
		char reason[static VERDICT_REASON_MAX]);

#endif
