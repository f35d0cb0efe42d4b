/* SPDX-License-Identifier: MIT */
/*
 * The program in the sandbox. `init` is its PID 1: runs commands for the
 * runner, keeps their output until it is stored, reaps. `connect` is the other
 * end where only an exec into the sandbox leads to it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/command.h"
#include "agent/conn.h"
#include "agent/loop.h"
#include "agent/oom.h"
#include "agent/quiet.h"
#include "agent/relay.h"
#include "agent/spawn.h"
#include "agent/volume.h"
#include "base/auto.h"

enum { STOP_GRACE_US = 1000 * 1000, FD_MAX_PLAIN = 4096 };

struct agent {
	struct loop loop;
	struct commands commands;
	struct conn conn;
	struct watch listener, signals;
	int spare_fd;     /* given up to take a connection in when there is none left */
	bool check_peer;  /* our own socket: only uid 0 may connect */
	uint64_t stop_at; /* TERM came: leave by then */
};

/* Only a real PID 1 may signal everybody: its pid namespace bounds it. */
static bool is_init(void)
{
	return getpid() == 1;
}

static void timer_event(struct watch *w, uint32_t events)
{
	(void)w; /* commands_tick(), which follows each event, does the work */
	(void)events;
}

static void on_term(struct agent *a)
{
	if (!is_init())
		exit(0);
	if (a->stop_at)
		return;
	kill(-1, SIGTERM);
	kill(-1, SIGCONT);
	a->stop_at = now_us() + STOP_GRACE_US;
}

static void signal_event(struct watch *w, uint32_t events)
{
	struct agent *a = w->arg;
	struct signalfd_siginfo si;

	(void)events;
	while (read(w->fd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		if (si.ssi_signo == SIGTERM || si.ssi_signo == SIGINT)
			on_term(a);
	}
	commands_reap(&a->commands);
}

static bool is_peer_root(int fd)
{
	struct ucred c;
	socklen_t n = sizeof(c);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) == 0 && c.uid == 0;
}

static void listener_event(struct watch *w, uint32_t events)
{
	struct agent *a = w->arg;
	int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (fd < 0 && errno == EMFILE && a->spare_fd >= 0) {
		close(a->spare_fd);
		fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		a->spare_fd = -1;
	}
	if (fd < 0)
		return;
	if (a->check_peer && !is_peer_root(fd)) {
		close(fd);
		return;
	}
	conn_accept(&a->conn, fd); /* closes the old one */
	if (a->spare_fd < 0)
		a->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* The folder of a path, which is made if it is missing, for root alone. */
static int own_folder(const char *path)
{
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path)];
	char *slash;

	memcpy(dir, path, strlen(path) + 1);
	slash = strrchr(dir, '/');
	if (!slash || slash == dir)
		return 0;
	*slash = '\0';
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return -1;
	return chown(dir, 0, 0) < 0 || chmod(dir, 0700) < 0 ? -1 : 0;
}

/*
 * A socket of our own: in a folder only root can look into. It comes to its name
 * when it listens already: who sees the name appear can connect. -1 with errno.
 */
static int listen_at(const char *path)
{
	static const char suffix[] = ".new";
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	size_t n = strlen(path);
	int fd;

	if (n + sizeof(suffix) > sizeof(addr.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (own_folder(path) < 0)
		return -1;
	memcpy(addr.sun_path, path, n);
	memcpy(addr.sun_path + n, suffix, sizeof(suffix));
	unlink(addr.sun_path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && (bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0 ||
			chmod(addr.sun_path, 0600) < 0 || listen(fd, 16) < 0 ||
			rename(addr.sun_path, path) < 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

static void close_range_plain(unsigned first, unsigned last)
{
	if (first > last || syscall(SYS_close_range, first, last, 0) == 0)
		return;
	for (unsigned fd = first; fd <= last && fd < FD_MAX_PLAIN; fd++)
		close((int)fd);
}

/*
 * glibc's posix_spawn hands its two own signals (32, 33) on as ignored, and libc's
 * sigaction does not touch them. The kernel's struct is four longs; all zero is the
 * default action.
 */
static void default_action(int sig)
{
	static const long dfl[4];

	syscall(SYS_rt_sigaction, sig, dfl, NULL, 8); /* KILL and STOP refuse */
}

/* Whatever we were started with: known signals, and no descriptor but keep. */
static void settle(int keep)
{
	struct sigaction ign = {.sa_handler = SIG_IGN};
	int fd;

	for (int sig = 1; sig < 65; sig++)
		default_action(sig);
	sigaction(SIGPIPE, &ign, NULL);
	do {
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	} while (fd >= 0 && fd < 3);
	close_range_plain(3, keep < 3 ? ~0U : (unsigned)keep - 1);
	if (keep < 3)
		return;
	close_range_plain((unsigned)keep + 1, ~0U);
	fcntl(keep, F_SETFD, FD_CLOEXEC);
}

static int watch_signals(struct agent *a)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
		return -1;
	a->signals = (struct watch){.fn = signal_event, .arg = a};
	a->signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (a->signals.fd < 0)
		return -1;
	return loop_watch(&a->loop, &a->signals, EPOLLIN);
}

static int prepare(struct agent *a, int listen_fd)
{
	size_t n = sizeof(a->commands.boot_id);

	/* The sandbox's root may not stop or rewrite us with a debugger. */
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		return -1;
	/* Orphans come to us even where we are not PID 1. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return -1;
	if (getrandom(a->commands.boot_id, n, 0) != (ssize_t)n)
		return -1;
	a->loop.timer.fn = timer_event;
	if (loop_init(&a->loop) < 0 || watch_signals(a) < 0)
		return -1;
	a->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	spawn_prepare();
	a->commands.loop = &a->loop;
	a->commands.oom_fd = oom_open();
	conn_init(&a->conn, &a->loop, &a->commands);
	if (fcntl(listen_fd, F_SETFL, O_NONBLOCK) < 0)
		return -1;
	a->listener = (struct watch){.fd = listen_fd, .fn = listener_event, .arg = a};
	return loop_watch(&a->loop, &a->listener, EPOLLIN);
}

static bool is_stopped(const struct agent *a)
{
	if (!a->stop_at)
		return false;
	return now_us() >= a->stop_at ||
	       waitid(P_ALL, 0, NULL, WEXITED | WNOHANG | WNOWAIT) < 0;
}

static int init_main(struct agent *a, int listen_fd)
{
	uint64_t next;

	if (prepare(a, listen_fd) < 0) {
		perror("mcp-sandboxd-agent: start");
		return 1;
	}
	while (!is_stopped(a)) {
		commands_tick(&a->commands);
		conn_turn(&a->conn);
		next = commands_deadline(&a->commands);
		if (a->stop_at && (!next || a->stop_at < next))
			next = a->stop_at;
		loop_arm(&a->loop, next);
		loop_step(&a->loop);
	}
	/*
	 * As the signal would have ended it. With 0 a Kubernetes node takes an eviction
	 * for the end of the pod's own work, and its reason is lost.
	 */
	return 128 + SIGTERM;
}

/* The first two are for the commands of user 1000, whatever image this is. */
static void own_folders(void)
{
	volume_give("/workspace", 1000, 0755);
	volume_give("/artifacts", 1000, 0755);
	volume_give("/tmp", 0, 01777);
}

static int usage(void)
{
	fputs("usage: mcp-sandboxd-agent init (--listen-fd N | --socket PATH) "
	      "[--own-folders]\n"
	      "       mcp-sandboxd-agent (connect | quiet) --socket PATH\n",
	      stderr);
	return 2;
}

static int parse_fd(const char *text)
{
	char *end;
	long v = strtol(text, &end, 10);

	return *text == '\0' || *end || v < 3 || v > 1000000 ? -1 : (int)v;
}

int main(int argc, char **argv)
{
	static struct agent agent;
	int fd = -1;

	if (argc == 5 && strcmp(argv[1], "init") == 0 &&
	    strcmp(argv[4], "--own-folders") == 0)
		own_folders();
	else if (argc != 4)
		return usage();
	if (strcmp(argv[1], "connect") == 0 && strcmp(argv[2], "--socket") == 0)
		return relay(argv[3]);
	if (strcmp(argv[1], "quiet") == 0 && strcmp(argv[2], "--socket") == 0)
		return quiet(argv[3]);
	if (strcmp(argv[1], "init") != 0)
		return usage();
	if (strcmp(argv[2], "--listen-fd") == 0) {
		fd = parse_fd(argv[3]);
		if (fd < 0)
			return usage();
		settle(fd);
	} else if (strcmp(argv[2], "--socket") == 0) {
		settle(-1);
		agent.check_peer = true;
		fd = listen_at(argv[3]);
	} else {
		return usage();
	}
	if (fd < 0) {
		perror("mcp-sandboxd-agent: listen");
		return 1;
	}
	return init_main(&agent, fd);
}
