/* SPDX-License-Identifier: MIT */
#ifndef WIRE_IDENC_H
#define WIRE_IDENC_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The shapes of the ids that become paths, and the one encoding of an
 * identifier as a path component. Edge and runner both use it, so that an
 * artifact's url and its place on disk agree. Pure; any thread.
 *
 * An identifier of 1..200 characters of [A-Za-z0-9._-] that begins with neither
 * '.' nor '~' stays as it is. Any other becomes '~' and the 64 hex digits of
 * the SHA-256 of its UTF-8 bytes: '~' begins no plain identifier, so the two
 * kinds never meet.
 */
enum { IDENC_SIZE = 201 };
void idenc(char dst[static IDENC_SIZE], const char *identifier);

/* Stays as it is; what the web server may map to a folder without asking. */
bool idenc_is_plain(const char *identifier);

/* "run_" and 32 lower-case hex digits. */
bool idenc_is_run_id(const char *s);

/*
 * In the folder of a run's artifacts: a link to the folder with those files that did
 * not change (runner/oldfiles.h). No artifact has this name.
 */
#define IDENC_UNCHANGED ".unchanged"

/* 32 lower-case hex digits. */
bool idenc_is_session_id(const char *s);

/* 1..64 of [a-z0-9_-], beginning with a letter or digit. */
bool idenc_is_tenant(const char *s);

#endif
