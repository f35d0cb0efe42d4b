/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "agent/fsreq.h"
#include "agent/path.h"
#include "base/auto.h"

static void read_release(struct fs_request *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

static void finish(struct fs_request *r)
{
	struct stat st;

	if (fstat(r->fd, &st) == 0)
		fsreq_describe(r, &st);
	r->is_over = true;
}

static void read_next(struct fs_request *r, struct out *o)
{
	static uint8_t data[AP_CHUNK_MAX];
	struct ap_msg m = {.type = AP_FS_DATA};
	size_t want = r->left < sizeof(data) ? (size_t)r->left : sizeof(data);
	ssize_t n = want ? pread(r->fd, data, want, (off_t)r->offset) : 0;

	if (n < 0 && errno == EINTR)
		return;
	if (n < 0) {
		fsreq_fail(r, errno);
		return;
	}
	if (n == 0) {
		finish(r);
		return;
	}
	m.u.fs_data = (struct ap_fs_data){r->end.req, r->offset, {data, (size_t)n}};
	out_put(o, &m);
	r->offset += (uint64_t)n;
	r->left -= (uint64_t)n;
	r->end.count += (uint64_t)n;
	r->credit -= n;
	if (r->left == 0)
		finish(r);
}

static const struct fs_ops read_ops = {.next = read_next, .release = read_release};

static int open_file(const char *root, const char *path, bool follow)
{
	AUTO_CLOSE int rootfd = path_open_root(root, follow);

	return rootfd < 0 ? -1 : path_open(rootfd, path, O_RDONLY, follow);
}

/* Only regular files are ever read; 0 or errno. */
static int check_regular(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return errno;
	if (S_ISDIR(st.st_mode))
		return EISDIR;
	return S_ISREG(st.st_mode) ? 0 : EINVAL;
}

void fsread_start(struct fs_request *r, const struct ap_fs_read *m)
{
	char root[AP_PATH_MAX + 1];
	int error = 0;

	r->ops = &read_ops;
	r->credit = m->credit;
	r->offset = m->offset;
	r->left = m->len;
	fsreq_copy(root, m->root);
	fsreq_copy(r->path, m->path);
	fsreq_enter(r);
	r->fd = open_file(root, r->path, m->flags & AP_FS_FOLLOW);
	if (r->fd < 0)
		error = errno;
	fsreq_leave(r);
	if (!error)
		error = check_regular(r->fd);
	if (error)
		fsreq_fail(r, error);
}
