/* SPDX-License-Identifier: MIT */
#include "edge/workers.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/log.h"
#include "base/mem.h"
#include "edge/http.h"
#include "edge/routes.h"

/*
 * JSON is parsed and dumped recursively: 1 MiB holds twice the depth that
 * json_parse() lets pass, and more under sanitizers' large frames.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STACK_SIZE = 8 * 1024 * 1024 };
#else
enum { STACK_SIZE = 1024 * 1024 };
#endif
enum { CORS_MAX = 1024, NO_DESCRIPTOR_PAUSE_MS = 250 };

struct thread {
	struct worker worker;
	pthread_t id;
	int listen_fd, epoll_fd;
	bool is_started;
};

struct workers {
	int stop_fd;
	int n;
	struct thread threads[];
};

static void serve(struct thread *t, FCGX_Request *fcgi)
{
	AUTO_BUF cors = BUF_INIT(CORS_MAX);
	struct http h;

	http_init(&h, fcgi, &cors);
	h.stats = t->worker.edge->stats;
	h.log = t->worker.edge->conf->log_http;
	routes_serve(&t->worker, &h);
	assert(h.is_done);
}

/* False: stop. Anything may have happened to a connection, so only this says so. */
static bool wait_for_work(struct thread *t)
{
	struct epoll_event ev[2];
	int n = epoll_wait(t->epoll_fd, ev, 2, -1);

	for (int i = 0; i < n; i++)
		if (ev[i].data.fd != t->listen_fd)
			return false;
	return true;
}

/* The request that waits keeps the socket ready: without a pause this is a busy loop. */
static void wait_for_a_descriptor(void)
{
	log_error("accept: no descriptor is left");
	(void)poll(NULL, 0, NO_DESCRIPTOR_PAUSE_MS);
}

static void *run(void *arg)
{
	struct thread *t = arg;
	FCGX_Request fcgi;

	FCGX_InitRequest(&fcgi, t->listen_fd, 0);
	while (wait_for_work(t)) {
		int rc = FCGX_Accept_r(&fcgi);

		if (rc == 0)
			serve(t, &fcgi);
		else if (rc == -EMFILE || rc == -ENFILE)
			wait_for_a_descriptor();
	}
	FCGX_Free(&fcgi, 1);
	return NULL;
}

static int add_to_epoll(int epoll_fd, int fd, uint32_t events, struct err *e)
{
	struct epoll_event ev = {.events = events, .data.fd = fd};

	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return err_sys(e, "epoll");
	return 0;
}

static int prepare(struct thread *t, struct edge *edge, int listen_fd, int stop_fd,
		   struct err *e)
{
	t->worker.edge = edge;
	t->listen_fd = listen_fd;
	t->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (t->epoll_fd < 0)
		return err_sys(e, "epoll");
	if (add_to_epoll(t->epoll_fd, listen_fd, EPOLLIN | EPOLLEXCLUSIVE, e) < 0 ||
	    add_to_epoll(t->epoll_fd, stop_fd, EPOLLIN, e) < 0 ||
	    store_reader_open(edge->db_path, &t->worker.reader, e) < 0)
		return -1;
	mcp_store_reads_init(&t->worker.reads, t->worker.reader, edge->conf);
	return 0;
}

static int start(struct thread *t, struct err *e)
{
	pthread_attr_t attr;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	rc = pthread_create(&t->id, &attr, run, t);
	pthread_attr_destroy(&attr);
	errno = rc;
	if (rc != 0)
		return err_sys(e, "start a thread");
	t->is_started = true;
	return 0;
}

int workers_start(struct edge *edge, int listen_fd, int nthreads, struct workers **ret,
		  struct err *e)
{
	struct workers *all =
		xcalloc(1, sizeof(*all) + (size_t)nthreads * sizeof(struct thread));

	all->n = nthreads;
	for (int i = 0; i < nthreads; i++)
		all->threads[i].epoll_fd = -1;
	all->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (all->stop_fd < 0) {
		err_sys(e, "eventfd");
		goto failed;
	}
	for (int i = 0; i < nthreads; i++)
		if (prepare(&all->threads[i], edge, listen_fd, all->stop_fd, e) < 0 ||
		    start(&all->threads[i], e) < 0)
			goto failed;
	*ret = all;
	return 0;
failed:
	workers_stop(all);
	return -1;
}

static void release(struct thread *t)
{
	if (t->is_started)
		pthread_join(t->id, NULL);
	if (t->epoll_fd >= 0)
		close(t->epoll_fd);
	mcp_store_reads_release(&t->worker.reads);
	store_reader_close(t->worker.reader);
}

void workers_stop(struct workers *all)
{
	if (!all)
		return;
	/* Stays readable, so that every thread sees it. */
	if (all->stop_fd >= 0 && eventfd_write(all->stop_fd, 1) < 0)
		abort();
	for (int i = 0; i < all->n; i++)
		release(&all->threads[i]);
	if (all->stop_fd >= 0)
		close(all->stop_fd);
	free(all);
}
