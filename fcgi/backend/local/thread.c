/* SPDX-License-Identifier: MIT */
#include "backend/local/thread.h"

#include <errno.h>
#include <pthread.h>

struct call {
	int (*fn)(void *arg, struct err *e);
	void *arg;
	struct err *e;
	int rc;
};

static void *thread_main(void *p)
{
	struct call *c = p;

	c->rc = c->fn(c->arg, c->e);
	return NULL;
}

int thread_run(int (*fn)(void *arg, struct err *e), void *arg, struct err *e)
{
	struct call c = {.fn = fn, .arg = arg, .e = e, .rc = -1};
	pthread_t t;
	int rc = pthread_create(&t, NULL, thread_main, &c);

	if (rc != 0) {
		errno = rc;
		return err_sys(e, "start a thread");
	}
	pthread_join(t, NULL);
	return c.rc;
}
