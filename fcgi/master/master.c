/* SPDX-License-Identifier: MIT */
#include "master/master.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/num.h"
#include "base/str.h"
#include "conf/conf.h"
#include "master/crew.h"
#include "master/datadir.h"
#include "master/notify.h"
#include "store/migrate.h"

/* How long a stop may take: runs are canceled (grace, kill), sandboxes stopped. */
enum { STOP_GRACE_MS = 30000, REAP_WAIT_MS = 5000 };

struct master {
	const char *env_file;
	struct datadir dir;
	struct crew crew;
	int signal_fd;
	bool stopping, said_ready;
};

static int open_signals(int *ret_fd, struct err *e)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_sys(e, "block signals");
	signal(SIGPIPE, SIG_IGN);
	*ret_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (*ret_fd < 0)
		return err_sys(e, "make a signalfd");
	return 0;
}

/* Parked requests are descriptors: the roles inherit all we may have. */
static void raise_fd_limit(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
		r.rlim_cur = r.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &r); /* refused: the old limit holds */
	}
}

static int migrate(const struct master *m, const struct conf *c, struct err *e)
{
	const struct store_migrate_opts o = {.group = m->dir.edge_gid,
					     .synchronous = c->store_synchronous};

	return store_migrate(m->dir.db_path, &o, e);
}

static int prepare(struct master *m, struct err *e)
{
	struct conf conf = {0};

	umask(027);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return err_sys(e, "become subreaper");
	raise_fd_limit();
	if (open_signals(&m->signal_fd, e) < 0 || conf_load(m->env_file, &conf, e) < 0)
		return -1;
	if (datadir_open(&conf, &m->dir, e) < 0 || migrate(m, &conf, e) < 0 ||
	    crew_open(&m->crew, &conf, &m->dir, environ, e) < 0) {
		conf_release(&conf);
		return -1;
	}
	return 0;
}

static void reap(struct master *m)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		(void)crew_reap(&m->crew, pid, status, clock_mono_ms());
}

static void on_stop(struct master *m)
{
	if (m->stopping)
		return;
	m->stopping = true;
	log_info("stopping: runs are canceled, sandboxes stopped, files stay");
	notify_systemd("STOPPING=1");
	crew_stop(&m->crew, STOP_GRACE_MS, clock_mono_ms());
}

static void on_reload(struct master *m)
{
	struct conf conf = {0};
	struct err e = ERR_INIT;
	char text[96];

	if (m->stopping)
		return;
	(void)snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%lld",
		       (long long)clock_mono_us());
	notify_systemd(text);
	if (conf_load(m->env_file, &conf, &e) < 0 ||
	    crew_reconfigure(&m->crew, &conf, clock_mono_ms(), &e) < 0) {
		conf_release(&conf);
		log_error("the new configuration is refused, the old one stays: %s",
			  e.msg);
		notify_systemd("READY=1");
		return;
	}
	log_info("new configuration: roles are replaced, commands go on");
	m->said_ready = false;
}

static void on_upgrade(struct master *m)
{
	if (m->stopping)
		return;
	log_info("the runner is replaced, commands go on");
	crew_replace(&m->crew.roles[0], clock_mono_ms());
}

static void on_signals(struct master *m)
{
	struct signalfd_siginfo si;

	while (read(m->signal_fd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		switch (si.ssi_signo) {
		case SIGCHLD:
			reap(m);
			break;
		case SIGHUP:
			on_reload(m);
			break;
		case SIGUSR2:
			on_upgrade(m);
			break;
		case SIGTERM:
		case SIGINT:
			on_stop(m);
			break;
		}
	}
}

static void say_ready(struct master *m)
{
	if (m->said_ready || m->stopping || !crew_ready(&m->crew))
		return;
	m->said_ready = true;
	notify_systemd("READY=1");
	log_info("ready: %s/fcgi.sock, instance %s", m->dir.run_dir, m->dir.instance);
}

static int wait_ms(const struct crew *k)
{
	int64_t next = crew_next_ms(k), now = clock_mono_ms();

	if (next == INT64_MAX)
		return -1;
	return next <= now ? 0 : (int)(next - now < 3600000 ? next - now : 3600000);
}

static int turn(struct master *m, struct err *e)
{
	struct pollfd p[2 + ROLE_EDGES_MAX] = {{.fd = m->signal_fd, .events = POLLIN}};
	struct crew *k = &m->crew;

	for (int i = 0; i < k->nroles; i++)
		p[1 + i] = (struct pollfd){.fd = k->roles[i].ready_fd, .events = POLLIN};
	if (poll(p, 1 + (nfds_t)k->nroles, wait_ms(k)) < 0 && errno != EINTR)
		return err_sys(e, "poll");
	for (int i = 0; i < k->nroles; i++)
		if (p[1 + i].fd >= 0 && p[1 + i].revents)
			crew_read_ready(&k->roles[i]);
	if (p[0].revents)
		on_signals(m);
	say_ready(m);
	return 0;
}

/* Kill every child that is left. Returns how many there were. */
static int kill_children(void)
{
	AUTO_BUF list = BUF_INIT(1 << 20);
	struct err e = ERR_INIT;
	char path[64];
	int n = 0;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	if (io_read_file(path, &list, &e) < 0) {
		log_warn("look for children that are left: %s", e.msg);
		return 0;
	}
	for (char *s = list.p, *end; *s; s = end) {
		long pid = strtol(s, &end, 10);

		if (end == s)
			break;
		n += kill((pid_t)pid, SIGKILL) == 0;
		end += *end == ' ';
	}
	return n;
}

/*
 * After a stop the runner has stopped the sandboxes. When it could not (it was
 * killed), what it left was handed to us, the subreaper: end it, leave nothing.
 */
static void leave_nothing(struct master *m)
{
	const int64_t until = clock_mono_ms() + REAP_WAIT_MS;

	reap(m);
	while (kill_children() > 0 && clock_mono_ms() < until) {
		struct pollfd p = {.fd = m->signal_fd, .events = POLLIN};

		if (poll(&p, 1, 1000) > 0)
			on_signals(m);
		reap(m);
	}
}

int master_serve(const char *env_file, struct err *e)
{
	struct master m = {.env_file = env_file, .dir = DATADIR_INIT, .signal_fd = -1};
	int rc = 0;

	log_init("master", LOG_LEVEL_INFO);
	if (prepare(&m, e) < 0) {
		/* Sandboxes of a server that crashed may live: their sockets stay. */
		datadir_close(&m.dir, false);
		return -1;
	}
	while (rc == 0 && !crew_gone(&m.crew)) {
		crew_tick(&m.crew, clock_mono_ms());
		rc = turn(&m, e);
	}
	leave_nothing(&m);
	crew_close(&m.crew);
	datadir_close(&m.dir, rc == 0);
	close(m.signal_fd);
	log_info("stopped");
	return rc;
}

int master_stop(const char *env_file, struct err *e)
{
	struct conf conf = {0};
	pid_t pid = 0;
	int rc;

	if (conf_load(env_file, &conf, e) < 0)
		return -1;
	rc = datadir_owner(conf.data_dir, &pid, e);
	if (rc == 0 && pid == 0)
		rc = err_set(e, ERR_NOT_FOUND, "no server uses %s", conf.data_dir);
	conf_release(&conf);
	if (rc < 0)
		return -1;
	/* The pidfd first: a number may be another's by the time of the kill. */
	AUTO_CLOSE int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0 || syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0) < 0)
		return err_sys(e, "stop the server (pid %d)", (int)pid);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	if (poll(&p, 1, STOP_GRACE_MS + REAP_WAIT_MS) <= 0)
		return err_set(e, ERR_TIMEOUT, "the server (pid %d) has not stopped yet",
			       (int)pid);
	return 0;
}
