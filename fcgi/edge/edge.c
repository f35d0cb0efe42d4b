/* SPDX-License-Identifier: MIT */
#include "edge/edge.h"

#include <assert.h>
#include <errno.h>
#include <fcgiapp.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "edge/calls.h"
#include "edge/core.h"
#include "edge/errand.h"
#include "edge/keepalive.h"
#include "edge/lockdown.h"
#include "edge/lot.h"
#include "edge/relay.h"
#include "edge/sstream.h"
#include "edge/stats.h"
#include "edge/ticket.h"
#include "edge/touch.h"
#include "edge/watch.h"
#include "edge/workers.h"

enum {
	STOP_GRACE_MS = 3000,
	MALLOC_KEEPS = 1024 * 1024,
	SPARE_DESCRIPTORS = 64, /* the store, the loop, what the master gave, messages */
};

/* The process: the edge, and what starts and ends it. */
struct process {
	struct edge edge;
	const struct edge_args *args;
	struct workers *workers;
	struct touch *touch;
	uv_poll_t life;
	uv_signal_t term, interrupt;
	uv_timer_t grace;
};

static void close_handles(void *arg)
{
	struct process *p = arg;

	touch_stop(p->touch);
	tickets_free(p->edge.tickets);
	sstreams_free(p->edge.sstreams);
	errands_free(p->edge.errands);
	keepalive_free(p->edge.keepalive);
	watches_free(p->edge.watches);
	calls_free(p->edge.calls);
	lot_free(p->edge.lot);
	uv_close((uv_handle_t *)&p->life, NULL);
	uv_close((uv_handle_t *)&p->term, NULL);
	uv_close((uv_handle_t *)&p->interrupt, NULL);
	uv_close((uv_handle_t *)&p->grace, NULL);
}

static void on_grace_over(uv_timer_t *timer)
{
	struct process *p = timer->data;

	lot_close_all(p->edge.lot);
}

/* Take no more, end what waits, then let the loop run empty. */
static void stop(struct process *p)
{
	if (p->edge.is_stopping)
		return;
	p->edge.is_stopping = true;
	workers_stop(p->workers);
	uv_timer_start(&p->grace, on_grace_over,
		       p->args->stop_grace_ms ? (uint64_t)p->args->stop_grace_ms
					      : STOP_GRACE_MS,
		       0);
	lot_stop(p->edge.lot, close_handles, p);
}

static void on_signal(uv_signal_t *handle, int signum)
{
	log_info("stops: %s", signum == SIGTERM ? "TERM" : "INT");
	stop(handle->data);
}

static void on_life(uv_poll_t *handle, int status, int events)
{
	(void)status;
	(void)events;
	uv_poll_stop(handle);
	log_info("stops: the master is gone");
	stop(handle->data);
}

/* libfcgi installs handlers of its own where it finds the default ones. */
static void set_signals(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigaction(SIGPIPE, &ignore, NULL);
	sigaction(SIGUSR1, &ignore, NULL);
}

static void watch_process(struct process *p)
{
	int rc;

	rc = uv_poll_init(&p->edge.loop, &p->life, p->args->life_fd);
	assert(rc == 0);
	uv_signal_init(&p->edge.loop, &p->term);
	uv_signal_init(&p->edge.loop, &p->interrupt);
	uv_timer_init(&p->edge.loop, &p->grace);
	p->life.data = p->term.data = p->interrupt.data = p->grace.data = p;
	/* Nothing is ever written to it: readable means its end. */
	uv_poll_start(&p->life, UV_READABLE | UV_DISCONNECT, on_life);
	uv_signal_start(&p->term, on_signal, SIGTERM);
	uv_signal_start(&p->interrupt, on_signal, SIGINT);
}

/*
 * Large bodies go back to the system when they are done with: left to itself malloc
 * learns from the first of them to keep as much for each thread.
 */
static void set_memory(void)
{
	mallopt(M_MMAP_THRESHOLD, MALLOC_KEEPS);
	mallopt(M_TRIM_THRESHOLD, MALLOC_KEEPS);
}

/* Before a byte from outside: everything that needs rights, or can fail. */
static int set_up(struct process *p, const struct conf *c, struct err *e)
{
	struct edge *edge = &p->edge;
	const struct edge_args *a = p->args;

	edge->conf = c;
	edge->db_path = a->db_path;
	if (io_set_nonblock(a->listen_fd, true, e) < 0 ||
	    io_set_nonblock(a->runner_fd, true, e) < 0 ||
	    io_set_nonblock(a->doorbell_fd, true, e) < 0 ||
	    stats_open(a->stats_fd, a->index, &edge->stats, e) < 0 ||
	    lockdown_user(c->edge_user, e) < 0)
		return -1;
	set_signals();
	set_memory();
	if (FCGX_Init() != 0)
		return err_set(e, ERR_SYSTEM, "libfcgi does not start");
	if (mcp_server_new(c, &edge->mcp, e) < 0 ||
	    store_reader_open(a->db_path, &edge->reader, e) < 0)
		return -1;
	mcp_store_reads_init(&edge->reads, edge->reader, c);
	return 0;
}

/*
 * A parked request holds a descriptor. There are fewer places than descriptors, so
 * accept() never runs out of them and refusals stay answers.
 */
static int64_t places(const struct conf *c)
{
	struct rlimit r;
	int64_t own = SPARE_DESCRIPTORS + 4 * c->edge_threads, most;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0 || r.rlim_cur == RLIM_INFINITY)
		return c->max_parked;
	most = (int64_t)r.rlim_cur > own ? (int64_t)r.rlim_cur - own : 1;
	if (most >= c->max_parked)
		return c->max_parked;
	log_warn("MAX_PARKED_REQUESTS is %lld, the limit of open files allows %lld",
		 (long long)c->max_parked, (long long)most);
	return most;
}

static void build_loop(struct process *p)
{
	struct edge *edge = &p->edge;
	int rc = uv_loop_init(&edge->loop);

	assert(rc == 0);
	edge->lot = lot_new(&edge->loop, places(edge->conf), edge->stats);
	edge->calls = calls_new(&edge->loop, p->args->runner_fd, edge->lot);
	edge->watches = watches_new(&edge->loop, p->args->doorbell_fd, edge->reader);
	edge->keepalive =
		keepalive_new(&edge->loop, p->args->keepalive_ms ? p->args->keepalive_ms
								 : KEEPALIVE_MS);
	edge->errands = errands_new(edge);
	edge->sstreams = sstreams_new(edge);
	edge->tickets = tickets_new();
	calls_on_relayed(edge->calls, relay_received, edge);
	p->touch = touch_start(edge);
	watch_process(p);
}

/* Signals go to the loop's thread only: libfcgi takes EINTR for a broken peer. */
static int start_workers(struct process *p, struct err *e)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	rc = workers_start(&p->edge, p->args->listen_fd, (int)p->edge.conf->edge_threads,
			   &p->workers, e);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

static void tell_ready(int fd)
{
	if (fd < 0)
		return;
	if (write(fd, "1", 1) < 0)
		log_warn("nobody waits for this edge to be ready");
	close(fd);
}

static int serve(struct process *p, struct err *e)
{
	build_loop(p);
	if (lockdown_calls(e) < 0 || start_workers(p, e) < 0 || lockdown_threads(e) < 0)
		return -1;
	tell_ready(p->args->ready_fd);
	uv_run(&p->edge.loop, UV_RUN_DEFAULT);
	uv_loop_close(&p->edge.loop);
	return 0;
}

int edge_main(const struct edge_args *a, const struct conf *c)
{
	struct process p = {.args = a};
	struct err e = ERR_INIT;
	int rc;

	rc = set_up(&p, c, &e);
	if (rc == 0)
		rc = serve(&p, &e);
	if (rc < 0) {
		log_error("%s", e.msg);
		return 1; /* the process ends; what was begun ends with it */
	}
	mcp_store_reads_release(&p.edge.reads);
	store_reader_close(p.edge.reader);
	mcp_server_free(p.edge.mcp);
	stats_close(p.edge.stats);
	return 0;
}
