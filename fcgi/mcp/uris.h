/* SPDX-License-Identifier: MIT */
#ifndef MCP_URIS_H
#define MCP_URIS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "store/types.h"

/*
 * The uris of resources, both ways:
 *
 *	sandbox://runs/RUN_ID                           the run as JSON
 *	sandbox://runs/RUN_ID/commands/N/stdout|stderr  what a command printed
 *	sandbox://runs/RUN_ID/artifacts/PATH            a file it left
 *	sandbox://latest/IDENTIFIER/artifacts/PATH      of the newest run with files
 *
 * Pure; any thread.
 */
enum uri_kind { URI_RUN, URI_OUTPUT, URI_ARTIFACT, URI_LATEST };
enum { URI_IDENTIFIER_SIZE = 1025 };
struct uri {
	enum uri_kind kind;
	char run_id[ID_RUN_LEN + 1];          /* "": URI_LATEST */
	char identifier[URI_IDENTIFIER_SIZE]; /* URI_LATEST, decoded */
	int64_t command;
	enum store_stream stream;
	char path[4096]; /* of an artifact, decoded */
};

/* False: it is none of ours. */
bool uri_parse(const char *text, struct uri *ret);
json_t *uri_run(const char *run_id);
json_t *uri_artifact(const char *run_id, const char *path);

/* By the ending of its name; "application/octet-stream" when that says nothing. */
const char *mime_of(const char *path);
/* "image/png" and the like when the bytes begin as such a picture does; else NULL. */
const char *mime_of_image(const char *p, size_t n);

#endif
