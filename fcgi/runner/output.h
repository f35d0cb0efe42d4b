/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_OUTPUT_H
#define RUNNER_OUTPUT_H

#include "runner/state.h"

/*
 * Output of a command into the store: exactly once by its offset, in rows of at
 * most 32 KiB that split no UTF-8 character. The beginning of a character waits
 * in memory, not acknowledged, until the rest comes or the stream ends.
 */

/*
 * -1: the agent lies about its offsets, in words. What it sends beyond the cap is
 * dropped: it lies, or it had another cap when it started the command.
 */
int output_add(struct run *run, size_t index, const struct ap_output *o, struct err *e);

/* All before this offset is dealt with: what RESUME and ACK say. */
static inline uint64_t output_done(const struct stream *st)
{
	return (uint64_t)(st->stored + st->dropped);
}

/*
 * The command ended. Its last bytes are stored; of a stream that was cut, half a
 * character is not. Fills bytes and truncated of *c.
 */
void output_end(struct run *run, size_t index, bool cut_stdout, bool cut_stderr,
		struct store_command *c);

#endif
