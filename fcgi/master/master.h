/* SPDX-License-Identifier: MIT */
#ifndef MASTER_MASTER_H
#define MASTER_MASTER_H

#include "base/err.h"

/*
 * The master: reads the configuration, holds the data folder, makes what must
 * outlive the roles (listener, pairs, doorbells, life pipe), starts the roles
 * by re-executing this binary and restarts what dies. It parses nothing that
 * comes from outside. One thread, one poll().
 *
 * TERM, INT = stop: sandboxes are stopped, files stay, nothing is left running.
 * HUP = new configuration: a bad one is refused and the old one stays; roles are
 * replaced, commands go on in their sandboxes. USR2 = replace only the runner.
 */

/* Serves until it is told to stop. 0 after an orderly stop. env_file may be NULL. */
int master_serve(const char *env_file, struct err *e);

/* Tells the server that holds the configured data folder to stop, and waits. */
int master_stop(const char *env_file, struct err *e);

#endif
