/* SPDX-License-Identifier: MIT */
#ifndef MCP_RUN_WORDS_H
#define MCP_RUN_WORDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/*
 * A run in words for a model: first how it ended, then each command with its
 * output (bounded to some kilobytes; what is left out is said), then the
 * artifacts, and how to go on. `run` is the run object (mcp/runobj.h). Pure.
 */
void run_words_final(struct buf *b, const json_t *run);

/*
 * Is all of an output of n bytes at p in these words, when so many streams of the run
 * have output? Where it is not they name its url, which the run object then needs.
 */
bool run_words_have_all(const char *p, size_t n, size_t streams);

/* As it is now, while it runs. */
void run_words_so_far(struct buf *b, const json_t *run);

/* Text that a command printed: NUL shows as U+FFFD. */
void run_words_add_text(struct buf *b, const char *p, size_t n);

/* Time is over; run may be NULL when it could not be read. */
void run_words_unfinished(struct buf *b, const json_t *run, int64_t waited_ms);

/* It should have been awaited; why it is not is fit for the outside. */
void run_words_not_awaited(struct buf *b, const char *why);

/* Nothing was awaited. */
void run_words_accepted(struct buf *b);

#endif
