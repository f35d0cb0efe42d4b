/* SPDX-License-Identifier: MIT */
#ifndef EDGE_TOUCH_H
#define EDGE_TOUCH_H

#include "edge/core.h"

/*
 * Tells the runner once a minute which MCP sessions were used, so that they do
 * not expire; sends nothing when none were. Loop only.
 */
struct touch;

struct touch *touch_start(struct edge *edge);
/* The memory goes with the loop's closing. NULL is fine. */
void touch_stop(struct touch *t);

#endif
