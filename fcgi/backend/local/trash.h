/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_LOCAL_TRASH_H
#define BACKEND_LOCAL_TRASH_H

#include "base/err.h"

/*
 * Folders to remove: renamed into a folder of ours, so that their name is free
 * at once, and emptied from there by one thread. What a crash leaves in it is
 * removed by the next. The trees are a stranger's: no link is followed.
 */
struct trash;

int trash_open(const char *dir, struct trash **ret, struct err *e); /* dir exists */
int trash_put(struct trash *t, const char *path, struct err *e);    /* absent: fine */
void trash_close(struct trash *t); /* after the removal in hand; NULL is fine */

#endif
