/* SPDX-License-Identifier: MIT */
#include "runner/runner.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/mem.h"
#include "runner/recovery.h"
#include "runner/requests.h"
#include "runner/runs.h"
#include "runner/sandboxall.h"
#include "runner/sandboxes.h"
#include "runner/state.h"
#include "runner/tick.h"
#include "runner/turn.h"
#include "runner/waitwords.h"
#include "runner/warmpool.h"

enum {
	STOP_EXTRA_MS = 2000, /* after the grace: sandboxes are stopped hard */
	STOP_HARD_MS = 12000, /* however long the grace is */
	STOP_MAX_MS = 20000,  /* then we leave whatever a backend still does */
	STOP_LOOK_MS = 50,
	LEAVE_MAX_MS = 8000, /* the master waits a little longer */
	LEAVE_LOOK_MS = 10,
};

/* ---- the two endings */

/* Commands go on in their sandboxes; nothing is undone. */
static void leave(void)
{
	log_info("leaving; the next runner takes over");
	_exit(0);
}

static void on_life(uv_poll_t *h, int status, int events)
{
	(void)h;
	(void)status;
	(void)events;
	leave();
}

/*
 * A create that is cut off in the middle would have to be undone by the next
 * runner, and a start that the agent has not read yet would be lost with the
 * connection: both may end first.
 */
static void on_leave_look(uv_timer_t *t)
{
	struct runner *r = t->data;

	if (clock_mono_ms() >= r->stop_by_mono ||
	    (!sandboxes_busy(r) && !warmpool_busy(r->warm) && !runs_any_unconfirmed(r))) {
		turn_commit(r);
		leave();
	}
}

static void on_leave_signal(uv_signal_t *h, int signum)
{
	struct runner *r = h->data;

	(void)signum;
	if (r->phase == PHASE_STOPPING)
		return;
	r->stop_by_mono = clock_mono_ms() + LEAVE_MAX_MS;
	r->stop_look.data = r;
	uv_timer_start(&r->stop_look, on_leave_look, 0, LEAVE_LOOK_MS);
}

/* Until no control thread is at work: only then can the backend be closed. */
static void on_stop_look(uv_timer_t *t)
{
	struct runner *r = t->data;
	int64_t now = clock_mono_ms();

	if ((r->nruns == 0 || now >= r->stop_hard_mono) && !r->sandboxes_stopped) {
		r->sandboxes_stopped = true;
		sandboxes_stop_all(r);
		warmpool_stop(r->warm);
		/* What runs unknown to us: not yet adopted, or the store had failed. */
		recovery_stop_strangers(r);
	}
	if (now < r->stop_by_mono &&
	    (!r->sandboxes_stopped || control_pending(r->control) > 0))
		return;
	/* A create whose record a failing store had dropped may have ended since. */
	if (now < r->stop_by_mono && !r->looked_again) {
		r->looked_again = true;
		recovery_stop_strangers(r);
		return;
	}
	uv_stop(&r->loop);
}

static void on_stop_signal(uv_signal_t *h, int signum)
{
	struct runner *r = h->data;

	(void)signum;
	if (r->phase == PHASE_STOPPING)
		return;
	log_info("stopping; runs are canceled, sandboxes are stopped");
	r->phase = PHASE_STOPPING;
	r->stop_by_mono = clock_mono_ms() + STOP_MAX_MS;
	r->stop_hard_mono =
		clock_mono_ms() + (r->conf->kill_grace_ms < STOP_HARD_MS - STOP_EXTRA_MS
					   ? r->conf->kill_grace_ms + STOP_EXTRA_MS
					   : STOP_HARD_MS);
	runs_cancel_gently(r, "the server was stopped");
	r->stop_look.data = r;
	uv_timer_start(&r->stop_look, on_stop_look, 0, STOP_LOOK_MS);
}

/* ---- set-up */

static int watch_signal(struct runner *r, uv_signal_t *h, int signum, uv_signal_cb cb,
			struct err *e)
{
	h->data = r;
	if (uv_signal_init(&r->loop, h) < 0 || uv_signal_start(h, cb, signum) < 0)
		return err_set(e, ERR_SYSTEM, "signal %d cannot be watched", signum);
	return 0;
}

static int watch_ends(struct runner *r, struct err *e)
{
	if (watch_signal(r, &r->on_term, SIGTERM, on_stop_signal, e) < 0 ||
	    watch_signal(r, &r->on_int, SIGINT, on_stop_signal, e) < 0 ||
	    watch_signal(r, &r->on_usr1, SIGUSR1, on_leave_signal, e) < 0)
		return -1;
	if (uv_timer_init(&r->loop, &r->stop_look) < 0 ||
	    uv_poll_init(&r->loop, &r->life, r->args->life_fd) < 0 ||
	    uv_poll_start(&r->life, UV_READABLE | UV_DISCONNECT, on_life) < 0)
		return err_set(e, ERR_SYSTEM, "the life pipe cannot be watched");
	return 0;
}

/* Every inherited descriptor, before a thread or a child exists. */
static int seal_descriptors(const struct runner_args *a, struct err *e)
{
	if (io_set_cloexec(a->life_fd, true, e) < 0 ||
	    (a->ready_fd >= 0 && io_set_cloexec(a->ready_fd, true, e) < 0))
		return -1;
	if (a->control_fd > 0 && (io_set_cloexec(a->control_fd, true, e) < 0 ||
				  io_set_nonblock(a->control_fd, true, e) < 0))
		return -1;
	for (int i = 0; i < a->nedges; i++)
		if (io_set_cloexec(a->edge_fds[i], true, e) < 0 ||
		    io_set_cloexec(a->doorbell_fds[i], true, e) < 0 ||
		    io_set_nonblock(a->doorbell_fds[i], true, e) < 0)
			return -1;
	return 0;
}

/* The group that may read artifacts; -1: leave it (not root, or no such user). */
static gid_t edge_group(const struct conf *c)
{
	struct passwd pw, *found = NULL;
	char buf[4096];

	if (geteuid() != 0 ||
	    getpwnam_r(c->edge_user, &pw, buf, sizeof(buf), &found) != 0 || !found)
		return (gid_t)-1;
	return found->pw_gid;
}

static int make_artifacts_dir(struct runner *r, struct err *e)
{
	const struct conf *c = r->conf;

	r->artifacts_gid = edge_group(c);
	r->artifacts_dir = c->artifacts_dir && c->artifacts_dir[0]
				   ? xstrdup(c->artifacts_dir)
				   : xasprintf("%s/artifacts", c->data_dir);
	if (r->artifacts_gid == (gid_t)-1)
		return io_mkdirs(r->artifacts_dir, 02750, e);
	return io_mkdirs_owned(r->artifacts_dir, 02750, geteuid(), r->artifacts_gid, e);
}

static void on_request(void *arg, struct replyto to, const struct edgemsg *m)
{
	requests_handle(arg, to, m);
}

static int set_up(struct runner *r, struct err *e)
{
	const struct runner_args *a = r->args;
	const struct store_opts o = {.synchronous = r->conf->store_synchronous};
	const struct edges_opts pairs = {.loop = &r->loop,
					 .n = a->nedges,
					 .fds = a->edge_fds,
					 .doorbells = a->doorbell_fds,
					 .fn = on_request,
					 .arg = r};

	umask(027);
	signal(SIGPIPE, SIG_IGN);
	/* A limit on file sizes is then an error like a full disk. */
	signal(SIGXFSZ, SIG_IGN);
	if (seal_descriptors(a, e) < 0 || make_artifacts_dir(r, e) < 0 ||
	    store_open(a->db_path, &o, &r->store, e) < 0)
		return -1;
	if (uv_loop_init(&r->loop) < 0)
		return err_set(e, ERR_SYSTEM, "no loop");
	if (turn_init(r, e) < 0 || tick_init(r, e) < 0 || watch_ends(r, e) < 0 ||
	    control_new(&r->loop, &r->control, e) < 0 ||
	    waitwords_new(r, &r->words, e) < 0 || warmpool_new(r, &r->warm, e) < 0)
		return -1;
	if (edges_new(&pairs, &r->edges, e) < 0)
		return -1;
	return a->control_fd > 0 ? edges_listen(r->edges, a->control_fd, e) : 0;
}

static void say_ready(const struct runner_args *a)
{
	if (a->ready_fd < 0)
		return;
	if (write(a->ready_fd, "1", 1) < 0)
		log_warn("nobody waits for the runner to be ready");
	close(a->ready_fd);
}

static void tear_down(struct runner *r)
{
	turn_commit(r);
	if (control_pending(r->control) > 0) {
		log_warn("the backend is still at work; it is left as it is");
		_exit(0);
	}
	runs_drop_all(r);
	sandboxes_drop_all(r);
	warmpool_close(r->warm);
	turn_commit(r);
	turn_close(r);
	tick_close(r);
	edges_free(r->edges);
	control_free(r->control);
	waitwords_close(r->words);
	uv_close((uv_handle_t *)&r->stop_look, NULL);
	uv_close((uv_handle_t *)&r->life, NULL);
	uv_close((uv_handle_t *)&r->on_term, NULL);
	uv_close((uv_handle_t *)&r->on_int, NULL);
	uv_close((uv_handle_t *)&r->on_usr1, NULL);
	uv_run(&r->loop, UV_RUN_DEFAULT);
	uv_loop_close(&r->loop);
	agentconns_release(&r->conns);
	if (r->backend)
		r->backend->ops->close(r->backend);
	waitwords_free(r->words);
	warmpool_free(r->warm);
	store_close(r->store);
	free(r->artifacts_dir);
	free(r->reserve_path);
	free(r);
}

int runner_main(const struct runner_args *a, const struct conf *c)
{
	return runner_main_on(a, c, backend_find(c->backend));
}

int runner_main_on(const struct runner_args *a, const struct conf *c,
		   const struct backend_ops *ops)
{
	struct runner *r = xcalloc(1, sizeof(*r));
	struct err e = ERR_INIT;

	r->args = a;
	r->conf = c;
	r->ops = ops;
	if (set_up(r, &e) < 0) {
		log_error("runner: %s", e.msg);
		_exit(1);
	}
	recovery_begin(r);
	edges_hello(r->edges);
	say_ready(a);
	uv_run(&r->loop, UV_RUN_DEFAULT);
	tear_down(r);
	return 0;
}
