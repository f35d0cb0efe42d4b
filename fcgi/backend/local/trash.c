/* SPDX-License-Identifier: MIT */
#include "backend/local/trash.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/id.h"
#include "base/io.h"
#include "base/log.h"
#include "base/mem.h"

struct trash {
	char *dir;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool work, stop; /* under lock */
};

static bool stopping(struct trash *t)
{
	bool stop;

	pthread_mutex_lock(&t->lock);
	stop = t->stop;
	pthread_mutex_unlock(&t->lock);
	return stop;
}

static void empty(struct trash *t)
{
	struct dirent **names = NULL;
	int i, n = scandir(t->dir, &names, NULL, NULL);

	for (i = 0; i < n; i++) {
		AUTO_FREE char *path = xasprintf("%s/%s", t->dir, names[i]->d_name);
		struct err e = ERR_INIT;

		if (strcmp(names[i]->d_name, ".") != 0 &&
		    strcmp(names[i]->d_name, "..") != 0 && !stopping(t) &&
		    io_rmtree(path, &e) < 0)
			log_warn("trash: %s", e.msg);
		free(names[i]);
	}
	free(names);
}

static void *worker(void *arg)
{
	struct trash *t = arg;
	bool stop;

	do {
		empty(t);
		pthread_mutex_lock(&t->lock);
		while (!t->work && !t->stop)
			pthread_cond_wait(&t->wake, &t->lock);
		t->work = false;
		stop = t->stop;
		pthread_mutex_unlock(&t->lock);
	} while (!stop);
	return NULL;
}

int trash_open(const char *dir, struct trash **ret, struct err *e)
{
	struct trash *t = xcalloc(1, sizeof *t);
	int rc;

	t->dir = xstrdup(dir);
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->wake, NULL);
	rc = pthread_create(&t->thread, NULL, worker, t);
	if (rc != 0) {
		free(t->dir);
		free(t);
		errno = rc;
		return err_sys(e, "start a thread");
	}
	*ret = t;
	return 0;
}

int trash_put(struct trash *t, const char *path, struct err *e)
{
	char id[ID_HEX_LEN + 1];
	AUTO_FREE char *to = NULL;

	id_new_session(id);
	to = xasprintf("%s/%s", t->dir, id);
	if (rename(path, to) < 0)
		return errno == ENOENT ? 0 : err_sys(e, "remove %s", path);
	pthread_mutex_lock(&t->lock);
	t->work = true;
	pthread_cond_signal(&t->wake);
	pthread_mutex_unlock(&t->lock);
	return 0;
}

void trash_close(struct trash *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->stop = true;
	pthread_cond_signal(&t->wake);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->thread, NULL);
	pthread_mutex_destroy(&t->lock);
	pthread_cond_destroy(&t->wake);
	free(t->dir);
	free(t);
}
