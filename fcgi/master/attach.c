/* SPDX-License-Identifier: MIT */
#include "master/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/mem.h"
#include "master/datadir.h"

enum { START_MS = 60000, LOOK_EVERY_MS = 50 };

/* RUN_DIR, as the master makes it. ERR_NOT_FOUND: no server ever ran here. */
static int run_dir_of(const struct conf *c, char **ret, struct err *e)
{
	AUTO_FREE char *path = xasprintf("%s/instance", c->data_dir);
	AUTO_BUF text = BUF_INIT(64);

	if (*c->run_dir) {
		*ret = xstrdup(c->run_dir);
		return 0;
	}
	if (io_read_file(path, &text, e) < 0)
		return -1;
	text.p[strcspn(text.p, "\n")] = '\0';
	*ret = xasprintf("/run/mcp-sandboxd/%s", text.p);
	return 0;
}

int attach_again(void *arg, int *ret_fd, struct err *e)
{
	const struct attach *a = arg;
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	AUTO_FREE char *dir = NULL;
	AUTO_CLOSE int fd = -1;
	int n;

	if (run_dir_of(&a->conf, &dir, e) < 0)
		return -1;
	n = snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/control.sock", dir);
	if (n < 0 || (size_t)n >= sizeof(addr.sun_path))
		return err_set(e, ERR_INVALID, "RUN_DIR=%s is too long", dir);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_sys(e, "make a socket");
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0) {
		*ret_fd = MOVE_FD(fd);
		return 0;
	}
	if (errno == EACCES)
		return err_set(e, ERR_DENIED,
			       "%s may be used by root and the members of the server's "
			       "group only: add yourself to the group of EDGE_USER (%s)",
			       addr.sun_path, a->conf.edge_user);
	if (errno == ENOENT || errno == ECONNREFUSED)
		return err_set(e, ERR_NOT_FOUND, "no server runs for %s",
			       a->conf.data_dir);
	return err_sys(e, "connect to %s", addr.sun_path);
}

/* In the child: a server of its own session, its words in a file. */
static void become_server(const struct attach *a, int log)
{
	char self[] = "mcp-sandboxd", serve[] = "serve", option[] = "--env-file";
	char *argv[] = {self, serve, option, (char *)(uintptr_t)a->env_file, NULL};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	if (dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
		_exit(127);
	io_close_from(3);
	execv("/proc/self/exe", argv);
	_exit(127);
}

static int start_server(struct attach *a, struct err *e)
{
	AUTO_FREE char *path = xasprintf("%s/server.log", a->conf.data_dir);
	AUTO_CLOSE int log = -1;
	pid_t pid;

	if (io_mkdirs(a->conf.data_dir, 0755, e) < 0)
		return -1;
	log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
	if (log < 0)
		return err_sys(e, "open %s", path);
	pid = fork();
	if (pid < 0)
		return err_sys(e, "start the server");
	if (pid == 0)
		become_server(a, log);
	log_info("no server runs for %s: started one (pid %d), it stays; its log: %s",
		 a->conf.data_dir, (int)pid, path);
	return 0;
}

/* There is none, or it has just begun. */
static int connect_or_start(struct attach *a, int *ret_fd, struct err *e)
{
	for (;;) {
		struct err why = ERR_INIT;
		pid_t owner = 0;

		if (attach_again(a, ret_fd, &why) == 0)
			return 0;
		if (why.kind != ERR_NOT_FOUND ||
		    (a->until_ms && clock_mono_ms() >= a->until_ms)) {
			*e = why;
			return -1;
		}
		if (!a->until_ms) {
			if (datadir_owner(a->conf.data_dir, &owner, e) < 0)
				return -1;
			if (!owner && geteuid() != 0)
				return err_set(e, ERR_NOT_FOUND,
					       "no server runs for %s, and only root can "
					       "start one: sudo mcp-sandboxd serve",
					       a->conf.data_dir);
			if (!owner && start_server(a, e) < 0)
				return -1;
			a->until_ms = clock_mono_ms() + START_MS; /* it begins, too */
		}
		/* Nothing announces a socket that is about to be made. */
		poll(NULL, 0, LOOK_EVERY_MS);
	}
}

int attach_open(const char *env_file, struct attach *ret, int *ret_fd, struct err *e)
{
	*ret = (struct attach){.env_file = env_file};
	if (conf_load(env_file, &ret->conf, e) < 0)
		return -1;
	ret->db_path = xasprintf("%s/db/mcp-sandboxd.sqlite", ret->conf.data_dir);
	return connect_or_start(ret, ret_fd, e);
}
