/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_DOCKER_ENDPOINT_H
#define BACKEND_DOCKER_ENDPOINT_H

#include <stdbool.h>

#include "base/err.h"
#include "conf/conf.h"

/* Where an engine is. Owned strings; endpoint_release(). */
struct endpoint {
	char *where;           /* for people, and unique */
	char *unix_socket;     /* path; NULL: TCP */
	char *base;            /* "http://…" for the HTTP client */
	char *host;            /* the Host header */
	char *ca, *cert, *key; /* files; NULL: none */
	bool no_verify;
};
void endpoint_release(struct endpoint *ep);
#define AUTO_ENDPOINT __attribute__((cleanup(endpoint_release))) struct endpoint

/*
 * DOCKER_HOST with DOCKER_TLS_VERIFY and DOCKER_CERT_PATH, read as Docker's own
 * client reads them; or the first socket that is there of Docker, rootless Docker,
 * Podman, rootless Podman. The error says what was looked at.
 */
int endpoint_find(const struct conf *c, struct endpoint *ret, struct err *e);

/* Reads one DOCKER_HOST. Touches no file. */
int endpoint_parse(const char *docker_host, bool tls_verify, const char *cert_path,
		   struct endpoint *ret, struct err *e);

/*
 * Puts words on a connection that failed with errno `sys`: who we are, whose the
 * socket is, what to do. -1.
 */
int endpoint_refused(const char *where, const char *unix_socket, int sys, struct err *e);

/* What to do about a connection over TLS that failed with those words; "" if unknown. */
const char *endpoint_tls_advice(const char *words);

#endif
