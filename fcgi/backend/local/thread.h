/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_LOCAL_THREAD_H
#define BACKEND_LOCAL_THREAD_H

#include "base/err.h"

/*
 * Runs fn(arg, e) on a thread made for it and waits. Namespaces belong to a
 * thread in Linux: such a thread may enter or unshare a network or mount
 * namespace (programs it starts inherit them) and takes that with it when it
 * ends, so the calling thread and the process stay as they are. fn must not use
 * /proc/self for what differs by thread, but /proc/thread-self.
 */
int thread_run(int (*fn)(void *arg, struct err *e), void *arg, struct err *e);

#endif
