/* SPDX-License-Identifier: MIT */
#ifndef MCP_URLS_H
#define MCP_URLS_H

#include <jansson.h>

#include "base/buf.h"

/*
 * The places a run is seen from outside, as JSON strings. With base "" they are
 * paths. Pure; any thread.
 */
struct url {
	const char *base; /* "https://host:port" or "" */
	const char *mcp_path;
};

json_t *url_events(const struct url *u, const char *run_id);
json_t *url_status(const struct url *u, const char *run_id);
json_t *url_output(const struct url *u, const char *run_id, int index,
		   const char *stream);
/* path percent-encoded, component by component. */
void url_add_path(struct buf *b, const char *path);
/* path is relative to /artifacts; each of its components is percent-encoded. */
json_t *url_artifact(const struct url *u, const char *identifier, const char *run_id,
		     const char *path);

#endif
