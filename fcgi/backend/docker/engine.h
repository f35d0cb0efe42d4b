/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_DOCKER_ENGINE_H
#define BACKEND_DOCKER_ENGINE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "conf/conf.h"
#include "net/http.h"

/*
 * A connection to a Docker-compatible engine: found by DOCKER_HOST or in the usual
 * places, its API version agreed upon, every answer read with bounds. Immutable
 * after engine_open(), so any thread may call. What an engine says is not trusted
 * to be well formed.
 */
struct engine {
	struct http *http;
	char *where;  /* for people: "unix:///var/run/docker.sock" */
	char *host;   /* the Host header */
	char *socket; /* path; NULL: TCP */
	char api[16]; /* "/v1.41" */
	char arch[32];
	bool is_podman;
};
#define ENGINE_INIT                                                                      \
	{                                                                                \
		.http = NULL                                                             \
	}

int engine_open(const struct conf *c, struct engine *ret, struct err *e);
void engine_close(struct engine *en); /* zeroed is fine */

struct engine_call {
	const char *method;
	const char *path;   /* without the version, from '/' */
	const json_t *json; /* the body; or */
	const void *bytes;  /* this one, of content_type */
	size_t len;
	const char *content_type;
	const char *header; /* one more; NULL: none */
	int64_t timeout_ms; /* 0: 30 s */
	int (*on_data)(void *arg, const char *p, size_t n, struct err *e);
	void *arg;
};

/*
 * *ret (may be NULL) is the answer's JSON, or NULL when it has none; the caller's.
 * A refusal is ERR_NOT_FOUND (404), ERR_CONFLICT (409) or ERR_BACKEND with the
 * engine's own words; a connection that fails has words about who may do what.
 */
int engine_call(const struct engine *en, const struct engine_call *c, json_t **ret,
		struct err *e);

/* An upgraded stream; the same refusals. */
int engine_hijack(const struct engine *en, const char *path, const json_t *json,
		  struct hijack **ret, struct err *e);

/* Sets e from a status of 400 or more and the body that came with it. -1. Pure. */
int engine_refusal(int status, const char *body, size_t n, struct err *e);

/*
 * The version to speak, "1.41", from what the engine offers at most and at least;
 * ERR_BACKEND when there is none in common. Pure.
 */
int engine_agree(const char *most, const char *least, char ret[static 16], struct err *e);

/*
 * Takes what the engine says of itself: en's api, arch, is_podman. en->where names it
 * in words. Pure.
 */
int engine_understand(struct engine *en, const json_t *version, struct err *e);

#endif
