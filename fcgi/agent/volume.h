/* SPDX-License-Identifier: MIT */
#ifndef AGENT_VOLUME_H
#define AGENT_VOLUME_H

#include <sys/types.h>

/*
 * Gives a folder to a user, with that mode: one that is not there is made, one that is
 * root's and holds nothing (a file system's own lost+found is nothing) is a volume that
 * was just made. One in use is left alone, whoever owns it: a container that is started
 * again finds what its user made of it. Without CAP_CHOWN it stays as it is, and on a
 * read-only root it stays missing.
 */
void volume_give(const char *path, uid_t uid, mode_t mode);

#endif
