/* SPDX-License-Identifier: MIT */
#ifndef EDGE_ROUTES_H
#define EDGE_ROUTES_H

#include <stdbool.h>

#include "base/str.h"
#include "edge/http.h"
#include "edge/workers.h"

/*
 * From a request to its handler, by one table: methods, path, handler. Host and
 * Origin are checked first. What is not in the table is 404, a method that its
 * row lacks is 405 with Allow, OPTIONS is a CORS preflight.
 */
void routes_serve(struct worker *w, struct http *h);

/*
 * Does path match pattern? Segments are compared as sent; "*" takes one
 * that is not empty, a final "**" all the rest (at least one byte). Taken parts
 * go to capture. Pure.
 */
bool route_match(struct str path, const char *pattern,
		 struct str capture[static HTTP_CAPTURES]);

/* Handlers (route_*.c). Each answers, detaches or parks h. */
void route_mcp(struct worker *w, struct http *h);
void route_events(struct worker *w, struct http *h);
void route_run(struct worker *w, struct http *h);
void route_output(struct worker *w, struct http *h);
void route_artifact(struct worker *w, struct http *h);
void route_metrics(struct worker *w, struct http *h);
void route_ready(struct worker *w, struct http *h);
void route_health(struct worker *w, struct http *h);
void route_debug(struct worker *w, struct http *h);

#endif
