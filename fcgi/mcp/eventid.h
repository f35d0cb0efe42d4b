/* SPDX-License-Identifier: MIT */
#ifndef MCP_EVENTID_H
#define MCP_EVENTID_H

#include <jansson.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"

/*
 * The SSE `id` of an answer that is a stream, and what Last-Event-ID gives back:
 * all that is needed to go on with the answer at any process, after any restart,
 * without anything kept. It names the run, the place within the stream, and the
 * request (its id and progress token, and until when it waits). Whoever makes one
 * up gets an answer about a run whose id he knows, which he could ask for anyway.
 * Pure.
 */
struct eventid {
	char run_id[ID_RUN_LEN + 1];
	int64_t place;       /* increases within the stream */
	int64_t until_ms;    /* wall clock; 0: as long as the run takes */
	const json_t *id;    /* of the request; string or integer */
	const json_t *token; /* NULL: none */
	json_t *doc;         /* what id and token are borrowed from, when parsed */
};

void eventid_add(const struct eventid *x, struct buf *b);

/* The caller releases ret->doc. ERR_INVALID: none of ours. */
int eventid_parse(const char *text, struct eventid *ret, struct err *e);

#endif
