/* SPDX-License-Identifier: MIT */
#ifndef EDGE_ERRAND_H
#define EDGE_ERRAND_H

#include <jansson.h>

#include "edge/core.h"
#include "wire/edgemsg.h"

/*
 * Requests to the runner that nobody here waits for: cancel a run, tell the other
 * edges. They are sent again to a new runner like any other. Loop only.
 */
struct errands;

struct errands *errands_new(struct edge *edge);
/* What has no answer yet is forgotten; what was sent is done all the same. */
void errands_free(struct errands *all);

/* Takes body. When too much waits for the runner it is dropped, and logged. */
void errand_run(struct errands *all, enum edgemsg_type type, json_t *body);

#endif
