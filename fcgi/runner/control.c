/* SPDX-License-Identifier: MIT */
#include "runner/control.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"

/* jansson and sqlite are comfortable in it, also under sanitizers. */
enum { STACK_BYTES = 1024 * 1024 };

struct queue {
	struct control_job *head, **tail;
};

struct control {
	uv_async_t wake;
	pthread_mutex_t lock;
	pthread_cond_t work_there;
	struct queue todo, done; /* under lock */
	int ntodo, idle;         /* under lock: jobs not begun, threads that wait */
	bool stopping;           /* under lock */
	int nthreads;            /* loop only */
	size_t pending;          /* loop only */
	pthread_t threads[CONTROL_THREADS];
};

static void queue_init(struct queue *q)
{
	q->head = NULL;
	q->tail = &q->head;
}

static void queue_push(struct queue *q, struct control_job *j)
{
	j->next = NULL;
	*q->tail = j;
	q->tail = &j->next;
}

static struct control_job *queue_pop(struct queue *q)
{
	struct control_job *j = q->head;

	if (!j)
		return NULL;
	q->head = j->next;
	if (!q->head)
		q->tail = &q->head;
	return j;
}

static struct control_job *next_job(struct control *c)
{
	struct control_job *j = NULL;

	pthread_mutex_lock(&c->lock);
	c->idle++;
	while (!c->stopping && !(j = queue_pop(&c->todo)))
		pthread_cond_wait(&c->work_there, &c->lock);
	c->idle--;
	if (j)
		c->ntodo--;
	pthread_mutex_unlock(&c->lock);
	return j;
}

static void *thread_main(void *arg)
{
	struct control *c = arg;
	struct control_job *j;

	while ((j = next_job(c))) {
		j->work(j);
		pthread_mutex_lock(&c->lock);
		queue_push(&c->done, j);
		pthread_mutex_unlock(&c->lock);
		uv_async_send(&c->wake);
	}
	return NULL;
}

static void on_wake(uv_async_t *h)
{
	struct control *c = h->data;
	struct control_job *j, *next;

	pthread_mutex_lock(&c->lock);
	j = c->done.head;
	queue_init(&c->done);
	pthread_mutex_unlock(&c->lock);
	for (; j; j = next) {
		next = j->next;
		c->pending--;
		j->done(j);
	}
}

int control_new(uv_loop_t *loop, struct control **ret, struct err *e)
{
	struct control *c = xcalloc(1, sizeof(*c));

	if (uv_async_init(loop, &c->wake, on_wake) < 0) {
		free(c);
		return err_set(e, ERR_SYSTEM, "no descriptor for the control threads");
	}
	c->wake.data = c;
	uv_unref((uv_handle_t *)&c->wake);
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->work_there, NULL);
	queue_init(&c->todo);
	queue_init(&c->done);
	*ret = c;
	return 0;
}

/* Signals are the loop's: the threads are born with all of them blocked. */
static bool start_thread(struct control *c)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&c->threads[c->nthreads], &attr, thread_main, c);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (rc == 0)
		c->nthreads++;
	return rc == 0;
}

void control_submit(struct control *c, struct control_job *j)
{
	bool short_of_threads;

	c->pending++;
	pthread_mutex_lock(&c->lock);
	queue_push(&c->todo, j);
	/* A woken thread counts as idle until it has taken its job. */
	short_of_threads = ++c->ntodo > c->idle;
	pthread_cond_signal(&c->work_there);
	pthread_mutex_unlock(&c->lock);
	/* The first thread must start; a further one only helps. */
	if (short_of_threads && c->nthreads < CONTROL_THREADS && !start_thread(c) &&
	    c->nthreads == 0)
		abort();
}

size_t control_pending(const struct control *c)
{
	return c->pending;
}

static void on_closed(uv_handle_t *h)
{
	free(h->data);
}

void control_free(struct control *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->stopping = true;
	pthread_cond_broadcast(&c->work_there);
	pthread_mutex_unlock(&c->lock);
	for (int i = 0; i < c->nthreads; i++)
		pthread_join(c->threads[i], NULL);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->work_there);
	uv_close((uv_handle_t *)&c->wake, on_closed);
}
