/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FAKEBACKEND_H
#define TESTS_FAKEBACKEND_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/backend.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"

/*
 * A backend for tests: the real agent in a mount and pid namespace over the
 * host's own programs, no container. One folder per sandbox holds its socket, its
 * process id and its /artifacts and /workspace.
 */
struct fake_backend {
	struct backend b;
	char *dir;
	const char *agent;
	backend_progress_fn *progress;
	void *progress_arg;
	bool stopped_by_remove;
};

static const char *fake_agent_path; /* set by the test */
static int fake_create_delay_ms;
static const char *fake_create_gate;  /* creates wait until this file is there */
static int fake_oom_delay_ms;         /* between a command's start and its commit */
static const char *fake_create_fails; /* the words it fails with */
static const char *fake_create_words; /* said to all that wait */
static const char *fake_open_fails;
static int fake_open_delay_ms;
static int fake_remove_delay_ms;
static bool fake_list_outdated;  /* what runs was made under another policy */
static bool fake_list_old_image; /* or from another image */

/* Sandboxes evil-X have a false agent: this, for each connection, in a thread. */
static void (*fake_evil)(const char *name, int fd, int nth);

static inline void fake_progress(void *arg, const char *who, const char *line)
{
	(void)arg;
	(void)who;
	(void)line;
}

static inline int fake_open(const struct conf *c, const char *instance_id,
			    backend_progress_fn *progress, void *arg,
			    struct backend **ret, struct err *e);

static inline char *fake_path(struct backend *b, const char *name, const char *what)
{
	return xasprintf("%s/%s/%s", ((struct fake_backend *)b)->dir, name, what);
}

static inline int fake_probe(struct backend *b, struct err *e)
{
	(void)b;
	(void)e;
	return 0;
}

static inline pid_t fake_pid(struct backend *b, const char *name)
{
	AUTO_FREE char *path = fake_path(b, name, "pid");
	FILE *f = fopen(path, "re");
	int pid = -1;
	char state = 'Z', stat_path[64];

	if (!f)
		return -1;
	if (fscanf(f, "%d", &pid) != 1)
		pid = -1;
	fclose(f);
	if (pid <= 0)
		return -1;
	waitpid(pid, NULL, WNOHANG);
	snprintf(stat_path, sizeof(stat_path), "/proc/%d/stat", pid);
	f = fopen(stat_path, "re");
	if (!f)
		return -1;
	if (fscanf(f, "%*d %*s %c", &state) != 1)
		state = 'Z';
	fclose(f);
	return state == 'Z' ? -1 : pid;
}

static inline void fake_bind(const char *root, const char *from, const char *to)
{
	char path[600];

	snprintf(path, sizeof(path), "%s%s", root, to);
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		_exit(70);
	if (mount(from, path, NULL, MS_BIND | MS_REC, NULL) < 0)
		_exit(71);
}

/* In the child: a root with the host's programs and our own work folders. */
static inline void fake_enter(const char *dir)
{
	static const char *const host[] = {"/bin",   "/dev", "/etc", "/lib",
					   "/lib64", "/usr", "/sbin"};
	char root[512], from[600];

	snprintf(root, sizeof(root), "%s/root", dir);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", root, "tmpfs", 0, "mode=755") < 0)
		_exit(72);
	for (size_t i = 0; i < sizeof(host) / sizeof(host[0]); i++)
		if (access(host[i], F_OK) == 0)
			fake_bind(root, host[i], host[i]);
	snprintf(from, sizeof(from), "%s/artifacts", dir);
	fake_bind(root, from, "/artifacts");
	snprintf(from, sizeof(from), "%s/workspace", dir);
	fake_bind(root, from, "/workspace");
	snprintf(from, sizeof(from), "%s/proc", root);
	if (mkdir(from, 0755) < 0 || mount("proc", from, "proc", 0, NULL) < 0)
		_exit(73);
	snprintf(from, sizeof(from), "%s/tmp", root);
	if (mkdir(from, 01777) < 0 || chmod(from, 01777) < 0)
		_exit(74);
	if (chroot(root) < 0 || chdir("/") < 0)
		_exit(75);
}

static inline int fake_listen(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	unlink(path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 8) < 0)
		return -1;
	return fd;
}

static inline void fake_exec(const char *dir, int agent_fd, int listen_fd)
{
	char number[16];
	int fd = dup2(listen_fd, 100), null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char *argv[] = {(char *)(uintptr_t) "agent", (char *)(uintptr_t) "init",
			(char *)(uintptr_t) "--listen-fd", number, NULL};
	char *env[] = {NULL};
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	snprintf(number, sizeof(number), "%d", fd);
	/* Whoever reads the test's output does not wait for the sandboxes. */
	for (int i = 0; i < 3; i++)
		dup2(null, i);
	setsid();
	fake_enter(dir);
	syscall(SYS_execveat, agent_fd, "", argv, env, AT_EMPTY_PATH);
	_exit(76);
}

static inline int fake_spawn(struct fake_backend *b, const char *dir, int listen_fd,
			     struct err *e)
{
	AUTO_CLOSE int agent = open(b->agent, O_RDONLY | O_CLOEXEC);
	AUTO_FREE char *path = xasprintf("%s/pid", dir);
	char text[32];
	long pid;

	if (agent < 0)
		return err_sys(e, "open the agent %s", b->agent);
	pid = syscall(SYS_clone, CLONE_NEWNS | CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
	if (pid < 0)
		return err_sys(e, "clone");
	if (pid == 0)
		fake_exec(dir, agent, listen_fd);
	snprintf(text, sizeof(text), "%ld\n", pid);
	return io_write_file_atomic(path, text, strlen(text), 0600, e);
}

static inline bool fake_is_evil(const char *name)
{
	return fake_evil && strncmp(name, "mcp-sbx-evil-", 13) == 0;
}

struct fake_evil_call {
	char name[64];
	int fd, nth;
};

static inline void *fake_evil_main(void *arg)
{
	struct fake_evil_call *c = arg;

	fake_evil(c->name, c->fd, c->nth);
	close(c->fd);
	free(c);
	return NULL;
}

static inline int fake_evil_connect(struct backend *b, const char *name, int *ret_fd,
				    struct err *e)
{
	AUTO_FREE char *count = fake_path(b, name, "connects");
	int log = open(count, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600), pair[2];
	struct fake_evil_call *c;
	pthread_t t;
	struct stat st;

	if (log < 0 || write(log, "x", 1) != 1 || fstat(log, &st) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "connect");
	close(log);
	c = xcalloc(1, sizeof(*c));
	snprintf(c->name, sizeof(c->name), "%s", name + 13);
	*strrchr(c->name, '-') = '\0';
	c->fd = pair[1];
	c->nth = (int)st.st_size;
	if (pthread_create(&t, NULL, fake_evil_main, c) != 0)
		abort();
	pthread_detach(t);
	fcntl(pair[0], F_SETFL, O_RDWR | O_NONBLOCK);
	*ret_fd = pair[0];
	return 0;
}

static inline bool fake_has(struct backend *b, const char *name, const char *what)
{
	AUTO_FREE char *path = fake_path(b, name, what);

	return io_exists(path);
}

static inline int fake_create(struct backend *b, const struct sandbox_spec *s,
			      struct sandbox_info *ret, struct err *e)
{
	struct fake_backend *f = (struct fake_backend *)b;
	AUTO_FREE char *dir = xasprintf("%s/%s", f->dir, s->name);
	AUTO_FREE char *sock = fake_path(b, s->name, "sock");
	AUTO_FREE char *count = xasprintf("%s/creates", f->dir);
	static const char *const subs[] = {"root", "artifacts", "workspace"};
	bool fresh = !io_exists(dir) || s->fresh;
	AUTO_CLOSE int listen_fd = -1;
	int log = open(count, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (write(log, "x", 1) != 1)
		return err_sys(e, "count");
	close(log);
	if (fake_create_delay_ms)
		usleep((useconds_t)fake_create_delay_ms * 1000);
	while (fake_create_gate && !io_exists(fake_create_gate))
		usleep(2000);
	if (fake_create_words) {
		f->progress(f->progress_arg, BACKEND_WAITING, fake_create_words);
		f->progress(f->progress_arg, s->name, "for this one");
		f->progress(f->progress_arg, "mcp-sbx-other", "for another");
		f->progress(f->progress_arg, BACKEND_NOBODY, "for the log");
	}
	if (fake_create_fails)
		return err_set(e, ERR_BACKEND, "%s", fake_create_fails);
	for (size_t i = 0; i < 3; i++) {
		AUTO_FREE char *sub = fake_path(b, s->name, subs[i]);

		if (io_mkdirs(sub, 0755, e) < 0)
			return -1;
		chmod(sub, 0777);
	}
	listen_fd = fake_listen(sock);
	if (listen_fd < 0)
		return err_sys(e, "listen at %s", sock);
	if (!fake_is_evil(s->name) && fake_spawn(f, dir, listen_fd, e) < 0)
		return -1;
	ret->name = xstrdup(s->name);
	ret->container_id = xasprintf("fake-%s", s->name);
	ret->image = xstrdup("fake");
	ret->running = true;
	ret->fresh = fresh;
	if (fake_has(b, s->name, "ended"))
		ret->recreated = "only half of it is kept";
	return 0;
}

static inline int fake_connect(struct backend *b, const char *name, int *ret_fd,
			       struct err *e)
{
	AUTO_FREE char *sock = fake_path(b, name, "sock");
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd;

	if (fake_is_evil(name))
		return fake_evil_connect(b, name, ret_fd, e);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", sock);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		int rc = fake_has(b, name, "ended")
				 ? err_set(e, ERR_CONFLICT, "the node took it away")
				 : err_sys(e, "connect %s", sock);

		close(fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

static inline int fake_stop(struct backend *b, const char *name, struct err *e)
{
	pid_t pid = fake_pid(b, name);

	(void)e;
	if (pid > 0) {
		kill(pid, SIGKILL);
		while (fake_pid(b, name) > 0)
			usleep(2000);
	}
	return 0;
}

static inline int fake_remove(struct backend *b, const char *name, bool *ret_existed,
			      struct err *e)
{
	AUTO_FREE char *dir = xasprintf("%s/%s", ((struct fake_backend *)b)->dir, name);

	*ret_existed = io_exists(dir);
	if (fake_remove_delay_ms)
		usleep((useconds_t)fake_remove_delay_ms * 1000);
	if (fake_stop(b, name, e) < 0)
		return -1;
	return io_rmtree(dir, e);
}

static inline int fake_list(struct backend *b, struct sandbox_list *ret, struct err *e)
{
	DIR *d = opendir(((struct fake_backend *)b)->dir);
	struct dirent *de;

	if (!d)
		return err_sys(e, "list");
	while ((de = readdir(d))) {
		if (strncmp(de->d_name, "mcp-sbx-", 8) != 0)
			continue;
		ret->v = xreallocarray(ret->v, ret->n + 1, sizeof(*ret->v));
		ret->v[ret->n++] =
			(struct sandbox_info){.name = xstrdup(de->d_name),
					      .running = fake_is_evil(de->d_name) ||
							 fake_pid(b, de->d_name) > 0,
					      .outdated = fake_list_outdated,
					      .old_image = fake_list_old_image};
	}
	closedir(d);
	return 0;
}

static inline int fake_oom(struct backend *b, const char *name, uint64_t *ret,
			   struct err *e)
{
	AUTO_FREE char *path = fake_path(b, name, "oom");
	FILE *f = fopen(path, "re");

	if (fake_oom_delay_ms)
		usleep((useconds_t)fake_oom_delay_ms * 1000);
	(void)e;
	*ret = 0;
	if (f) {
		unsigned long n = 0;

		if (fscanf(f, "%lu", &n) == 1)
			*ret = n;
		fclose(f);
	}
	return 0;
}

/* Leaves a mark: a stop must come here. */
static inline void fake_close(struct backend *b)
{
	AUTO_FREE char *mark = xasprintf("%s/closed", ((struct fake_backend *)b)->dir);

	close(open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	free(((struct fake_backend *)b)->dir);
	free(b);
}

static const struct backend_ops fake_ops = {
	.name = "fake",
	.open = fake_open,
	.probe = fake_probe,
	.create = fake_create,
	.connect = fake_connect,
	.stop = fake_stop,
	.remove = fake_remove,
	.list = fake_list,
	.oom_kills = fake_oom,
	.close = fake_close,
};

static inline int fake_open(const struct conf *c, const char *instance_id,
			    backend_progress_fn *progress, void *arg,
			    struct backend **ret, struct err *e)
{
	struct fake_backend *f = xcalloc(1, sizeof(*f));

	(void)instance_id;
	f->progress = progress;
	f->progress_arg = arg;
	progress(arg, BACKEND_NOBODY, "fake");
	if (fake_open_delay_ms)
		usleep((useconds_t)fake_open_delay_ms * 1000);
	if (fake_open_fails) {
		free(f);
		return err_set(e, ERR_BACKEND, "%s", fake_open_fails);
	}
	f->b.ops = &fake_ops;
	f->dir = xasprintf("%s/fake", c->data_dir);
	f->agent = fake_agent_path;
	*ret = &f->b;
	return io_mkdirs(f->dir, 0700, e);
}

#endif
