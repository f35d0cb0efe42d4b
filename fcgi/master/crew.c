/* SPDX-License-Identifier: MIT */
#include "master/crew.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/log.h"
#include "base/mem.h"
#include "master/listener.h"
#include "master/roleenv.h"

enum {
	LEAVE_GRACE_MS = 15000, /* an edge finishes the answers in hand */
	PAIR_BUFFER = 1 << 20,  /* requests wait here while the runner restarts */
};

static void set_all(int *fds, int n)
{
	for (int i = 0; i < n; i++)
		fds[i] = -1;
}

static void close_all(int *fds, int n)
{
	for (int i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	set_all(fds, n);
}

static void grow_buffer(int fd)
{
	int n = PAIR_BUFFER;

	/* Best effort: without it fewer requests wait, and senders get "busy". */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &n, sizeof(n)) < 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &n, sizeof(n));
}

static int open_edge(struct crew *k, int i, struct err *e)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) <
	    0)
		return err_sys(e, "make a socket pair");
	k->edge_end[i] = pair[0];
	k->runner_end[i] = pair[1];
	grow_buffer(pair[0]);
	grow_buffer(pair[1]);
	k->doorbell[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (k->doorbell[i] < 0)
		return err_sys(e, "make an eventfd");
	return 0;
}

static void add_role(struct crew *k, enum role_kind kind, int index)
{
	k->roles[k->nroles++] = (struct role){
		.kind = kind, .index = index, .state = ROLE_WAITING, .ready_fd = -1};
}

static int open_all(struct crew *k, struct err *e)
{
	char exe[4096];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n < 0)
		return err_sys(e, "read /proc/self/exe");
	exe[n] = '\0';
	k->exe = xstrdup(exe);
	if (pipe2(k->life, O_CLOEXEC) < 0)
		return err_sys(e, "make the life pipe");
	k->stats_fd = memfd_create("edge-stats", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (k->stats_fd < 0)
		return err_sys(e, "memory for the edges' numbers");
	if (listener_open(k->dir->run_dir, k->dir->edge_gid, &k->listen_fd, e) < 0 ||
	    listener_open_control(k->dir->run_dir, k->dir->edge_gid, &k->control_fd, e) <
		    0)
		return -1;
	add_role(k, ROLE_RUNNER, 0);
	for (int i = 0; i < k->nedges; i++) {
		if (open_edge(k, i, e) < 0)
			return -1;
		add_role(k, ROLE_EDGE, i);
	}
	return 0;
}

int crew_open(struct crew *k, struct conf *conf, const struct datadir *d,
	      char **environment, struct err *e)
{
	if (conf->edges < 1 || conf->edges > ROLE_EDGES_MAX)
		return err_set(e, ERR_INVALID, "EDGE_PROCESSES must be 1 to %d",
			       ROLE_EDGES_MAX);
	*k = (struct crew){.dir = d, .listen_fd = -1, .control_fd = -1, .stats_fd = -1};
	k->environment = strv_dup(environment);
	k->conf = *conf;
	*conf = (struct conf){0};
	k->nedges = (int)k->conf.edges;
	set_all(k->life, 2);
	set_all(k->edge_end, ROLE_EDGES_MAX);
	set_all(k->runner_end, ROLE_EDGES_MAX);
	set_all(k->doorbell, ROLE_EDGES_MAX);
	if (open_all(k, e) < 0) {
		crew_close(k);
		return -1;
	}
	return 0;
}

void crew_close(struct crew *k)
{
	close_all(k->life, 2);
	close_all(&k->listen_fd, 1);
	close_all(&k->control_fd, 1);
	close_all(&k->stats_fd, 1);
	close_all(k->edge_end, ROLE_EDGES_MAX);
	close_all(k->runner_end, ROLE_EDGES_MAX);
	close_all(k->doorbell, ROLE_EDGES_MAX);
	for (int i = 0; i < k->nroles; i++)
		close_all(&k->roles[i].ready_fd, 1);
	conf_release(&k->conf);
	strv_free(k->environment);
	k->environment = NULL;
	free(k->exe);
	k->exe = NULL;
}

/* The descriptors of a role in the order of enum rolefd. Returns how many. */
static int role_fds(const struct crew *k, const struct role *r, int ready, int *fds)
{
	int n = 0;

	fds[n++] = k->life[0];
	fds[n++] = ready;
	if (r->kind == ROLE_EDGE) {
		fds[n++] = k->listen_fd;
		fds[n++] = k->edge_end[r->index];
		fds[n++] = k->doorbell[r->index];
		fds[n++] = k->stats_fd;
		return n;
	}
	fds[n++] = k->dir->lock_fd;
	fds[n++] = k->control_fd;
	for (int i = 0; i < k->nedges; i++)
		fds[n++] = k->runner_end[i];
	for (int i = 0; i < k->nedges; i++)
		fds[n++] = k->doorbell[i];
	return n;
}

static int start(struct crew *k, struct role *r, struct err *e)
{
	int fds[ROLEFD_FIRST + 2 + 2 * ROLE_EDGES_MAX];
	char **envp = NULL;
	int ready[2];
	int rc;
	/* argv: role KIND DB_PATH, then what the kind needs */
	AUTO_FREE char *last = r->kind == ROLE_EDGE ? xasprintf("%d", r->index)
						    : xasprintf("%d", k->nedges);
	char *argv[] = {(char *)"mcp-sandboxd",
			(char *)"role",
			(char *)role_name(r->kind),
			k->dir->db_path,
			(char *)k->dir->instance,
			last,
			NULL};

	if (roleenv_make(r->kind, &k->conf, k->dir->run_dir, k->environment, &envp, e) <
	    0)
		return -1;
	if (pipe2(ready, O_CLOEXEC | O_NONBLOCK) < 0) {
		strv_free(envp);
		return err_sys(e, "make a pipe");
	}
	const struct role_exec x = {argv, envp, fds, role_fds(k, r, ready[1], fds)};
	rc = role_spawn(k->exe, &x, &r->pid, e);
	close(ready[1]);
	strv_free(envp);
	close_all(&r->ready_fd, 1);
	r->ready_fd = ready[0];
	return rc;
}

static void start_due(struct crew *k, struct role *r, int64_t now_ms)
{
	struct err e = ERR_INIT;

	if (start(k, r, &e) < 0) {
		log_error("start the %s: %s; again in %d s", role_name(r->kind), e.msg,
			  ROLE_DELAY_MAX_MS / 1000);
		r->start_at_ms = now_ms + ROLE_DELAY_MAX_MS;
		return;
	}
	r->state = ROLE_RUNNING;
	r->started_ms = now_ms;
	log_debug("%s %d runs as pid %d", role_name(r->kind), r->index, (int)r->pid);
}

void crew_tick(struct crew *k, int64_t now_ms)
{
	for (int i = 0; i < k->nroles; i++) {
		struct role *r = &k->roles[i];

		if (r->state == ROLE_WAITING && r->start_at_ms <= now_ms)
			start_due(k, r, now_ms);
		if (r->state == ROLE_LEAVING && r->kill_at_ms <= now_ms) {
			log_warn("%s %d (pid %d) does not leave; killed",
				 role_name(r->kind), r->index, (int)r->pid);
			kill(r->pid, SIGKILL);
			r->kill_at_ms = INT64_MAX;
		}
	}
}

int64_t crew_next_ms(const struct crew *k)
{
	int64_t next = INT64_MAX;

	for (int i = 0; i < k->nroles; i++) {
		const struct role *r = &k->roles[i];

		if (r->state == ROLE_WAITING && r->start_at_ms < next)
			next = r->start_at_ms;
		if (r->state == ROLE_LEAVING && r->kill_at_ms < next)
			next = r->kill_at_ms;
	}
	return next;
}

static void log_death(const struct role *r, int status, int64_t delay_ms)
{
	const char *how = WIFSIGNALED(status) ? "signal" : "exit code";
	int what = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);

	if (r->quick_deaths >= ROLE_CRASH_LOOP)
		log_error("%s %d keeps dying (%s %d, %d times in a row): see its lines "
			  "above; started again in %d ms",
			  role_name(r->kind), r->index, how, what, r->quick_deaths,
			  (int)delay_ms);
	else
		log_warn("%s %d ended (%s %d); started again in %d ms",
			 role_name(r->kind), r->index, how, what, (int)delay_ms);
}

static void tell(struct role *r, int sig, int64_t kill_at_ms)
{
	if (r->state != ROLE_RUNNING && r->state != ROLE_LEAVING)
		return;
	r->state = ROLE_LEAVING;
	r->kill_at_ms = kill_at_ms;
	kill(r->pid, sig);
}

static void stop_edges(struct crew *k, int64_t now_ms)
{
	for (int i = 0; i < k->nroles; i++)
		if (k->roles[i].kind == ROLE_EDGE)
			tell(&k->roles[i], SIGTERM, now_ms + LEAVE_GRACE_MS);
}

bool crew_reap(struct crew *k, pid_t pid, int status, int64_t now_ms)
{
	for (int i = 0; i < k->nroles; i++) {
		struct role *r = &k->roles[i];
		bool wanted = r->state == ROLE_LEAVING;

		if (r->pid != pid)
			continue;
		close_all(&r->ready_fd, 1);
		int64_t delay = role_died(r, now_ms);
		if (r->leave_for_good)
			r->state = ROLE_GONE;
		if (r->leave_for_good && r->kind == ROLE_RUNNER)
			stop_edges(k, now_ms);
		else if (!wanted)
			log_death(r, status, delay);
		return true;
	}
	return false;
}

void crew_read_ready(struct role *r)
{
	char byte;
	ssize_t n = read(r->ready_fd, &byte, 1);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	r->ready = n == 1; /* end without a byte: it died, SIGCHLD says so */
	close_all(&r->ready_fd, 1);
}

bool crew_ready(const struct crew *k)
{
	for (int i = 0; i < k->nroles; i++)
		if (!k->roles[i].ready)
			return false;
	return true;
}

void crew_replace(struct role *r, int64_t now_ms)
{
	r->ready = false;
	r->quick_deaths = 0;
	r->start_at_ms = now_ms; /* one that waits after a death need not wait on */
	tell(r, r->kind == ROLE_RUNNER ? SIGUSR1 : SIGTERM, now_ms + LEAVE_GRACE_MS);
}

/*
 * The runner first: it ends the runs, and the edges then tell those who wait for one
 * how it ended. They are told to stop when it is gone.
 */
void crew_stop(struct crew *k, int64_t grace_ms, int64_t now_ms)
{
	bool runner_gone = true;

	for (int i = 0; i < k->nroles; i++) {
		struct role *r = &k->roles[i];

		r->leave_for_good = true;
		if (r->state == ROLE_WAITING)
			r->state = ROLE_GONE;
		if (r->kind != ROLE_RUNNER)
			continue;
		tell(r, SIGTERM, now_ms + grace_ms);
		runner_gone = r->state == ROLE_GONE;
	}
	if (runner_gone)
		stop_edges(k, now_ms);
}

bool crew_gone(const struct crew *k)
{
	for (int i = 0; i < k->nroles; i++)
		if (k->roles[i].state != ROLE_GONE)
			return false;
	return true;
}

/*
 * What others hold open, and where sandboxes are: one that runs there would go on
 * where the new configuration does not look.
 */
static int check_fixed(const struct conf *old, const struct conf *new, struct err *e)
{
	const struct {
		const char *name;
		bool same;
	} fixed[] = {
		{"DATA_DIR", strcmp(old->data_dir, new->data_dir) == 0},
		{"RUN_DIR", strcmp(old->run_dir, new->run_dir) == 0},
		{"ARTIFACTS_DIR", strcmp(old->artifacts_dir, new->artifacts_dir) == 0},
		{"EDGE_USER", strcmp(old->edge_user, new->edge_user) == 0},
		{"EDGE_PROCESSES", old->edges == new->edges},
		{"SANDBOX_BACKEND", strcmp(old->backend, new->backend) == 0},
		{"DOCKER_HOST", strcmp(old->docker_host, new->docker_host) == 0},
		{"KUBERNETES_CONTEXT", strcmp(old->kube_context, new->kube_context) == 0},
		{"KUBERNETES_SANDBOX_NAMESPACE",
		 strcmp(old->kube_namespace, new->kube_namespace) == 0},
		{"KUBERNETES_LABEL_PREFIX",
		 strcmp(old->kube_label_prefix, new->kube_label_prefix) == 0},
		{"SANDBOX_UID_BASE", old->uid_base == new->uid_base},
	};

	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		if (!fixed[i].same)
			return err_set(
				e, ERR_INVALID,
				"%s cannot change while the server runs: restart it",
				fixed[i].name);
	return 0;
}

int crew_reconfigure(struct crew *k, struct conf *conf, int64_t now_ms, struct err *e)
{
	if (check_fixed(&k->conf, conf, e) < 0)
		return -1;
	conf_release(&k->conf);
	k->conf = *conf;
	*conf = (struct conf){0};
	for (int i = 0; i < k->nroles; i++)
		crew_replace(&k->roles[i], now_ms);
	return 0;
}
