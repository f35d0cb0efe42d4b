/* SPDX-License-Identifier: MIT */
#include "master/datadir.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/io.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"

/* How long the runner of a master that was killed may take to notice and leave. */
enum { LOCK_WAIT_MS = 10000 };

static int check_folder(const char *dir, struct err *e)
{
	struct stat st;

	if (stat(dir, &st) < 0)
		return errno == ENOENT ? 0 : err_sys(e, "look at %s", dir);
	if (!S_ISDIR(st.st_mode))
		return err_set(e, ERR_INVALID, "%s is not a folder", dir);
	if (!(st.st_mode & S_IXOTH))
		return err_set(
			e, ERR_DENIED,
			"the folder %s may not be passed by other users (mode %04o), "
			"but nginx, the edges and the sandboxes' users must reach "
			"what lies below it: chmod o+x %s, or set DATA_DIR to a "
			"folder elsewhere (/var/lib/mcp-sandboxd)",
			dir, (unsigned)(st.st_mode & 07777), dir);
	return 0;
}

int datadir_check_parents(const char *path, struct err *e)
{
	AUTO_FREE char *p = xstrdup(path);

	for (char *s = strchr(p + 1, '/'); s; s = strchr(s + 1, '/')) {
		*s = '\0';
		int rc = check_folder(p, e);
		*s = '/';
		if (rc < 0)
			return -1;
	}
	return 0;
}

static int make_folder(const char *path, mode_t mode, gid_t gid, struct err *e)
{
	if (geteuid() != 0)
		return io_mkdirs(path, mode, e);
	return io_mkdirs_owned(path, mode, 0, gid, e);
}

static int find_edge_user(const struct conf *c, struct datadir *d, struct err *e)
{
	const struct passwd *pw;

	d->edge_uid = geteuid();
	d->edge_gid = getegid();
	if (geteuid() != 0)
		return 0;
	errno = 0;
	pw = getpwnam(c->edge_user);
	if (!pw)
		return err_set(e, ERR_NOT_FOUND,
			       "there is no user %s for the edges: useradd --system "
			       "--no-create-home --shell /usr/sbin/nologin %s, or set "
			       "EDGE_USER",
			       c->edge_user, c->edge_user);
	if (pw->pw_uid == 0)
		return err_set(e, ERR_INVALID,
			       "EDGE_USER=%s is root: edges read what strangers send",
			       c->edge_user);
	d->edge_uid = pw->pw_uid;
	d->edge_gid = pw->pw_gid;
	return 0;
}

static pid_t read_pid(int fd)
{
	char text[24] = {0};
	int64_t pid = 0;
	struct err ignored = ERR_INIT;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return 0;
	text[strcspn(text, "\n")] = '\0';
	/* An empty or torn file names nobody; the flock is what counts. */
	if (num_parse(text, 1, INT32_MAX, &pid, &ignored) < 0)
		return 0;
	return (pid_t)pid;
}

static int refuse_second(const char *data_dir, pid_t pid, struct err *e)
{
	return err_set(e, ERR_CONFLICT,
		       "another server (pid %d) uses the data folder %s: stop it, or set "
		       "DATA_DIR and PORT for this one",
		       (int)pid, data_dir);
}

/*
 * Locked while its owner lives: refused at once. Owner dead: its runner has the
 * lock until it has noticed; wait for that, it is short.
 */
static int take_lock(const char *data_dir, int fd, struct err *e)
{
	const int64_t until = clock_mono_ms() + LOCK_WAIT_MS;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK)
			return err_sys(e, "lock %s/lock", data_dir);
		pid_t pid = read_pid(fd);
		if ((pid > 0 && kill(pid, 0) == 0) || clock_mono_ms() >= until)
			return refuse_second(data_dir, pid, e);
		/* flock() has no descriptor to wait on and no time limit. */
		poll(NULL, 0, 50);
	}
	return 0;
}

static int open_lock(const char *data_dir, int *ret_fd, struct err *e)
{
	AUTO_FREE char *path = xasprintf("%s/lock", data_dir);
	AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);

	if (fd < 0)
		return err_sys(e, "open %s", path);
	if (take_lock(data_dir, fd, e) < 0)
		return -1;
	if (ftruncate(fd, 0) < 0 || dprintf(fd, "%d\n", (int)getpid()) < 0)
		return err_sys(e, "write %s", path);
	*ret_fd = MOVE_FD(fd);
	return 0;
}

static int load_instance(const char *data_dir, char ret[9], struct err *e)
{
	AUTO_FREE char *path = xasprintf("%s/instance", data_dir);
	AUTO_BUF text = BUF_INIT(64);
	char fresh[10];

	if (!io_exists(path)) {
		id_random_hex(fresh, 8);
		memcpy(ret, fresh, 9);
		fresh[8] = '\n';
		return io_write_file_atomic(path, fresh, 9, 0644, e);
	}
	if (io_read_file(path, &text, e) < 0)
		return -1;
	text.p[strcspn(text.p, "\n")] = '\0';
	if (!id_is_hex(text.p, 8))
		return err_set(
			e, ERR_INVALID,
			"%s must hold 8 hex digits; it names this server's sandboxes",
			path);
	memcpy(ret, text.p, 9);
	return 0;
}

static int make_tree(const struct conf *c, const struct datadir *d, struct err *e)
{
	AUTO_FREE char *db = xasprintf("%s/db", c->data_dir);
	AUTO_FREE char *artifacts = *c->artifacts_dir
					    ? xstrdup(c->artifacts_dir)
					    : xasprintf("%s/artifacts", c->data_dir);

	if (datadir_check_parents(artifacts, e) < 0 ||
	    make_folder(db, 02750, d->edge_gid, e) < 0)
		return -1;
	return make_folder(artifacts, 02750, d->edge_gid, e);
}

static int make_run_dir(const struct conf *c, struct datadir *d, struct err *e)
{
	d->run_dir = *c->run_dir ? xstrdup(c->run_dir)
				 : xasprintf("/run/mcp-sandboxd/%s", d->instance);
	if (datadir_check_parents(d->run_dir, e) < 0)
		return err_wrap(e, "RUN_DIR");
	return make_folder(d->run_dir, 0750, d->edge_gid, e);
}

static int open_all(const struct conf *c, struct datadir *d, struct err *e)
{
	if (datadir_check_parents(c->data_dir, e) < 0 || find_edge_user(c, d, e) < 0)
		return -1;
	if (make_folder(c->data_dir, 0755, 0, e) < 0)
		return -1;
	if (open_lock(c->data_dir, &d->lock_fd, e) < 0)
		return -1;
	if (load_instance(c->data_dir, d->instance, e) < 0 || make_tree(c, d, e) < 0)
		return -1;
	d->db_path = xasprintf("%s/db/mcp-sandboxd.sqlite", c->data_dir);
	return make_run_dir(c, d, e);
}

/* What to do about what a system call said, for who runs the server. */
static void add_advice(struct err *e)
{
	static const struct {
		int sys;
		const char *advice;
	} rows[] = {
		{EROFS, "make it writable (in a container: a volume without ro), or set "
			"DATA_DIR and RUN_DIR to folders that are"},
		{ENOSPC, "make room on that file system, or set DATA_DIR to a folder on "
			 "another"},
		{EDQUOT, "raise the quota, or set DATA_DIR to a folder elsewhere"},
		{EINVAL, "this server is root in a user namespace that lacks that owner "
			 "(a rootless container?): map 65536 ids and more into it"},
		{EPERM, "the server must be root there, with CAP_CHOWN"},
		{EACCES, "the server must be root there, or own that folder"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (e->kind == ERR_SYSTEM && e->sys == rows[i].sys) {
			size_t n = strlen(e->msg);

			snprintf(e->msg + n, sizeof(e->msg) - n, "; %s", rows[i].advice);
		}
}

int datadir_open(const struct conf *c, struct datadir *ret, struct err *e)
{
	struct datadir d = DATADIR_INIT;

	if (open_all(c, &d, e) < 0) {
		add_advice(e);
		datadir_close(&d, false);
		return -1;
	}
	*ret = d;
	return 0;
}

/* Only what the roles make there: RUN_DIR may be a folder that others use too. */
static void empty_run_dir(const char *run_dir)
{
	static const char *const ours[] = {"fcgi.sock", "control.sock", "agents",
					   "runtime",   "gateway",      "resolv.conf"};

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		AUTO_FREE char *path = xasprintf("%s/%s", run_dir, ours[i]);
		struct err e = ERR_INIT;

		if (io_rmtree(path, &e) < 0)
			log_warn("clean up %s: %s", path, e.msg);
	}
	rmdir(run_dir); /* stays when something else is in it */
}

void datadir_close(struct datadir *d, bool remove_run)
{
	if (remove_run && d->run_dir)
		empty_run_dir(d->run_dir);
	free(d->db_path);
	free(d->run_dir);
	if (d->lock_fd >= 0)
		close(d->lock_fd);
	*d = (struct datadir)DATADIR_INIT;
}

int datadir_owner(const char *data_dir, pid_t *ret, struct err *e)
{
	AUTO_FREE char *path = xasprintf("%s/lock", data_dir);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);

	*ret = 0;
	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "open %s", path);
	if (flock(fd, LOCK_SH | LOCK_NB) == 0)
		return 0;
	if (errno != EWOULDBLOCK)
		return err_sys(e, "look at the lock of %s", data_dir);
	*ret = read_pid(fd);
	return 0;
}
