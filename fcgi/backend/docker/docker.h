/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_DOCKER_DOCKER_H
#define BACKEND_DOCKER_DOCKER_H

#include <pthread.h>

#include "backend/backend.h"
#include "backend/docker/engine.h"
#include "backend/docker/limits.h"
#include "net/pump.h"

/*
 * Sandboxes as containers of a Docker-compatible engine. Immutable after open()
 * but for what the locks guard, so calls for different sandboxes may run at once.
 * The agent is put into a container as an archive before each start and is its
 * PID 1; its socket lies beside it, in a folder that only root can look into. The
 * stream goes to that socket itself where this process can (direct.h), else one
 * exec of `agent connect` per sandbox carries it (attach.h).
 */
#define DOCKER_AGENT_DIR   "/.mcp-sandboxd"
#define DOCKER_AGENT       DOCKER_AGENT_DIR "/agent"
#define DOCKER_SOCKET_NAME "socket"
#define DOCKER_SOCKET      DOCKER_AGENT_DIR "/" DOCKER_SOCKET_NAME

struct oomfiles;

struct docker {
	struct backend base;
	const struct conf *conf; /* outlives the backend */
	backend_progress_fn *progress;
	void *progress_arg;
	char instance[16];
	struct engine engine;
	struct pump *pump;
	json_t *caps;               /* array of CAP_ names: all that a sandbox has */
	char *fingerprint;          /* of everything that decides what a sandbox may do */
	char *image;                /* with its tag */
	char *network;              /* NetworkMode of new containers, unless */
	bool is_apart;              /* each has a network of its own (network.h) */
	struct buf agent;           /* the archive that is put into every container */
	pthread_mutex_t image_lock; /* one build or pull at a time */
	struct oomfiles *oomfiles;
	struct limits host; /* what the engine's machine has; 0: not known */
};

/* A line for the log; who else hears it: backend.h. */
void docker_say(struct docker *d, const char *who, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Can that be a sandbox of ours? What passes may go into a path. Pure. */
bool docker_is_name(const char *name);

extern const struct backend_ops backend_docker;

#endif
