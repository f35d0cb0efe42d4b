/* SPDX-License-Identifier: MIT */
#ifndef MCP_CONTENT_H
#define MCP_CONTENT_H

#include "mcp/call.h"

/*
 * Files in the content of a result: small pictures as such, what else a run left
 * as links that resources/read follows. Bounded by RESULT_IMAGES_MAX,
 * RESULT_IMAGE_MAX_BYTES and RESULT_LINKS_MAX.
 */

/* The artifacts of a run (its run object), appended to content. */
void content_add_artifacts(const struct mcp_call *c, const struct mcp_reads *r,
			   const json_t *run, json_t *content);

/* One item each; the caller owns it. */
json_t *content_text(const char *p, size_t n);
json_t *content_image(const char *mime, const char *p, size_t n);
/* A resource's content, as resources/read has it: text when it is such. */
json_t *content_of_bytes(json_t *uri, const char *mime, const char *p, size_t n);
/* UTF-8 without NUL. */
bool content_is_text(const char *p, size_t n);

#endif
