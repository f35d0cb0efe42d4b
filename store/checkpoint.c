/* SPDX-License-Identifier: MIT */
#include "store/checkpoint.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/mem.h"
#include "store/db.h"

enum {
	PAGE_BYTES = 4096,
	/*
	 * A checkpoint takes a processor for milliseconds, so few runs should meet one:
	 * one in some hundreds. The log's first index block holds 4062 frames; up to
	 * there a longer log costs a reader nothing.
	 */
	PASSIVE_FRAMES = 12 * 1024 * 1024 / PAGE_BYTES,
	RESTART_FRAMES = 24 * 1024 * 1024 / PAGE_BYTES,
	WAIT_FRAMES = 40 * 1024 * 1024 / PAGE_BYTES,
	IDLE_S = 5,
	NICE = 10,
	/* How long a RESTART waits for readers, with the writer behind the gate. */
	BUSY_MS = 100,
	STACK_BYTES = 256 * 1024,
};

struct checkpoint {
	struct db db; /* the thread's */
	pthread_t thread;
	pthread_mutex_t gate;

	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t wake;
	pthread_cond_t rested;
	bool working;         /* the thread moves frames just now */
	bool held;            /* the last time a snapshot kept it from moving all */
	bool stop, dirty;     /* dirty: commits since the last TRUNCATE */
	int frames;           /* in the log, at the last commit */
	int next_frames;      /* work again when the log is so long */
	struct timespec idle; /* TRUNCATE then, if no commit comes */
	struct checkpoint_stats stats;
};

/* True when the whole log, as it was at the start, is in the database now. */
static bool run_mode(struct checkpoint *c, int mode)
{
	bool gated = mode != SQLITE_CHECKPOINT_PASSIVE;
	int log = 0, moved = 0;

	if (gated)
		pthread_mutex_lock(&c->gate);
	int rc = sqlite3_wal_checkpoint_v2(c->db.c, NULL, mode, &log, &moved);
	if (gated)
		pthread_mutex_unlock(&c->gate);

	bool whole = rc == SQLITE_OK && moved == log;

	pthread_mutex_lock(&c->lock);
	c->stats.done++;
	/* A full disk or a held snapshot: the next commits will bring us back. */
	if (!whole)
		c->stats.blocked++;
	if (rc != SQLITE_OK)
		log = c->frames;
	if (rc == SQLITE_OK && gated)
		c->frames = 0;
	/* Shorter than what was moved: a commit has started the log over since. */
	c->next_frames = (log < c->frames ? log : c->frames) + PASSIVE_FRAMES;
	c->stats.wal_bytes = (int64_t)c->frames * PAGE_BYTES;
	pthread_mutex_unlock(&c->lock);
	return whole;
}

/* Against a held snapshot RESTART could only make the writer wait in vain. */
static void work(struct checkpoint *c)
{
	bool whole = run_mode(c, SQLITE_CHECKPOINT_PASSIVE);

	pthread_mutex_lock(&c->lock);
	bool is_long = c->frames >= RESTART_FRAMES;
	c->held = !whole;
	pthread_mutex_unlock(&c->lock);
	if (whole && is_long)
		run_mode(c, SQLITE_CHECKPOINT_RESTART);
}

/* With the lock held. */
static bool is_due(const struct checkpoint *c)
{
	return c->dirty && c->frames >= c->next_frames;
}

/* With the lock held; gives it up while it works or waits. */
static void turn(struct checkpoint *c)
{
	if (!c->dirty) {
		pthread_cond_wait(&c->wake, &c->lock);
	} else if (is_due(c)) {
		c->working = true;
		pthread_mutex_unlock(&c->lock);
		work(c);
		pthread_mutex_lock(&c->lock);
		c->working = false;
		pthread_cond_signal(&c->rested);
	} else {
		struct timespec until = c->idle;
		int rc = pthread_cond_timedwait(&c->wake, &c->lock, &until);
		bool moved_on = until.tv_sec != c->idle.tv_sec;

		if (rc != ETIMEDOUT || moved_on)
			return;
		c->dirty = false;
		pthread_mutex_unlock(&c->lock);
		run_mode(c, SQLITE_CHECKPOINT_TRUNCATE);
		pthread_mutex_lock(&c->lock);
		pthread_cond_signal(&c->rested);
	}
}

static void *thread_main(void *arg)
{
	struct checkpoint *c = arg;

	/* Linux' nice value is the thread's: no run waits behind a checkpoint. */
	setpriority(PRIO_PROCESS, 0, NICE);
	pthread_mutex_lock(&c->lock);
	while (!c->stop)
		turn(c);
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* Signals stay with the loop's thread. */
static int spawn(struct checkpoint *c)
{
	sigset_t all, old;
	pthread_attr_t attr;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int rc = pthread_create(&c->thread, &attr, thread_main, c);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return rc;
}

static void release(struct checkpoint *c)
{
	db_close(&c->db);
	pthread_cond_destroy(&c->wake);
	pthread_cond_destroy(&c->rested);
	pthread_mutex_destroy(&c->lock);
	pthread_mutex_destroy(&c->gate);
	free(c);
}

int checkpoint_start(const char *path, struct checkpoint **ret, struct err *e)
{
	struct checkpoint *c = xcalloc(1, sizeof *c);
	pthread_condattr_t attr;

	c->next_frames = PASSIVE_FRAMES;
	pthread_mutex_init(&c->gate, NULL);
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->wake, &attr);
	pthread_cond_init(&c->rested, NULL);
	pthread_condattr_destroy(&attr);
	if (db_open(path, DB_WRITE, BUSY_MS, &c->db, e) < 0) {
		release(c);
		return -1;
	}
	errno = spawn(c);
	if (errno) {
		err_sys(e, "start the checkpoint thread");
		release(c);
		return -1;
	}
	*ret = c;
	return 0;
}

void checkpoint_stop(struct checkpoint *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	release(c);
}

void checkpoint_committed(struct checkpoint *c, int wal_frames)
{
	pthread_mutex_lock(&c->lock);
	bool was_clean = !c->dirty;
	/* The log has started over: measure from its new beginning. */
	if (wal_frames < c->frames)
		c->next_frames = PASSIVE_FRAMES;
	c->dirty = true;
	c->frames = wal_frames;
	c->stats.wal_bytes = (int64_t)wal_frames * PAGE_BYTES;
	clock_gettime(CLOCK_MONOTONIC, &c->idle);
	c->idle.tv_sec += IDLE_S;
	if (was_clean || is_due(c))
		pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
}

void checkpoint_gate_lock(struct checkpoint *c)
{
	/*
	 * The disk is slower than the writer, or the thread does not get a processor:
	 * now the writer waits for it.
	 */
	pthread_mutex_lock(&c->lock);
	while ((c->working || is_due(c)) && !c->held && c->frames >= WAIT_FRAMES)
		pthread_cond_wait(&c->rested, &c->lock);
	pthread_mutex_unlock(&c->lock);
	pthread_mutex_lock(&c->gate);
}

void checkpoint_gate_unlock(struct checkpoint *c)
{
	pthread_mutex_unlock(&c->gate);
}

void checkpoint_stats(struct checkpoint *c, struct checkpoint_stats *ret)
{
	pthread_mutex_lock(&c->lock);
	*ret = c->stats;
	pthread_mutex_unlock(&c->lock);
}
