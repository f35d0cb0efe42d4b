/* SPDX-License-Identifier: MIT */
#include "master/listener.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/auto.h"

static int socket_path(const char *run_dir, const char *name, struct sockaddr_un *ret,
		       struct err *e)
{
	int n;

	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	n = snprintf(ret->sun_path, sizeof(ret->sun_path), "%s/%s", run_dir, name);
	if (n < 0 || (size_t)n >= sizeof(ret->sun_path))
		return err_set(e, ERR_INVALID,
			       "RUN_DIR=%s is too long for a socket (at most %zu bytes)",
			       run_dir, sizeof(ret->sun_path) - sizeof("/control.sock"));
	return 0;
}

/* type: SOCK_STREAM or SOCK_SEQPACKET. */
static int open_at(const struct sockaddr_un *a, int type, gid_t gid, int *ret_fd,
		   struct err *e)
{
	AUTO_CLOSE int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_sys(e, "make the socket %s", a->sun_path);
	if (unlink(a->sun_path) < 0 && errno != ENOENT)
		return err_sys(e, "remove the old %s", a->sun_path);
	/* bind() makes it with the umask's mode; nobody may connect before listen(). */
	if (bind(fd, (const struct sockaddr *)a, sizeof(*a)) < 0)
		return err_sys(e, "bind %s", a->sun_path);
	if (geteuid() == 0 && lchown(a->sun_path, 0, gid) < 0)
		return err_sys(e, "give %s to the edges' group", a->sun_path);
	if (chmod(a->sun_path, 0660) < 0)
		return err_sys(e, "set the mode of %s", a->sun_path);
	if (listen(fd, 4096) < 0)
		return err_sys(e, "listen on %s", a->sun_path);
	*ret_fd = MOVE_FD(fd);
	return 0;
}

int listener_open(const char *run_dir, gid_t gid, int *ret_fd, struct err *e)
{
	struct sockaddr_un a;

	if (socket_path(run_dir, "fcgi.sock", &a, e) < 0)
		return -1;
	return open_at(&a, SOCK_STREAM, gid, ret_fd, e);
}

int listener_open_control(const char *run_dir, gid_t gid, int *ret_fd, struct err *e)
{
	struct sockaddr_un a;

	if (socket_path(run_dir, "control.sock", &a, e) < 0)
		return -1;
	return open_at(&a, SOCK_SEQPACKET, gid, ret_fd, e);
}
