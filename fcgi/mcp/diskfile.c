/* SPDX-License-Identifier: MIT */
#include "mcp/diskfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/mem.h"
#include "base/str.h"
#include "wire/idenc.h"

enum { NAME_SIZE = 256, PART = 64 * 1024 };

static int not_found(struct err *e)
{
	return err_set(e, ERR_NOT_FOUND, "no such artifact");
}

/*
 * One component after the other: openat2() would be one call, but its arguments
 * are in memory, where the edge's system call filter cannot see that it reads.
 */
static int step(int *io_dir, struct str name, int flags, struct err *e)
{
	char text[NAME_SIZE];
	int fd;

	if (name.n == 0 || name.n >= sizeof(text) || str_eq(name, ".") ||
	    str_eq(name, ".."))
		return not_found(e);
	memcpy(text, name.p, name.n);
	text[name.n] = '\0';
	fd = openat(*io_dir, text, flags | O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return not_found(e);
	if (fd < 0)
		return err_sys(e, "open an artifact");
	close(*io_dir);
	*io_dir = fd;
	return 0;
}

static int open_below(int dir, const char *path, int *ret, struct err *e)
{
	AUTO_CLOSE int at = dir;
	struct str rest = str_of(path), part, next;

	str_cut(&rest, '/', &part);
	while (str_cut(&rest, '/', &next)) {
		if (step(&at, part, O_DIRECTORY, e) < 0)
			return -1;
		part = next;
	}
	if (step(&at, part, O_NONBLOCK, e) < 0)
		return -1;
	*ret = MOVE_FD(at);
	return 0;
}

/* Of a run that has a share in another one's: the folder of that; -1: it has none. */
static int open_unchanged(int run)
{
	return openat(run, IDENC_UNCHANGED, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int open_file(const struct diskfile *f, int *ret, struct err *e)
{
	AUTO_CLOSE int at = open(f->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int unchanged = -1;
	char folder[IDENC_SIZE];

	if (at < 0)
		return err_sys(e, "open the folder of artifacts");
	idenc(folder, f->identifier);
	if (!idenc_is_tenant(f->tenant) || !idenc_is_run_id(f->run_id))
		return not_found(e);
	if (step(&at, str_of(f->tenant), O_DIRECTORY, e) < 0 ||
	    step(&at, str_of(folder), O_DIRECTORY, e) < 0 ||
	    step(&at, str_of(f->run_id), O_DIRECTORY, e) < 0)
		return -1;
	unchanged = open_unchanged(at);
	if (open_below(MOVE_FD(at), f->path, ret, e) == 0)
		return 0;
	if (unchanged < 0 || e->kind != ERR_NOT_FOUND)
		return -1;
	*e = (struct err)ERR_INIT;
	return open_below(MOVE_FD(unchanged), f->path, ret, e);
}

static int read_part(int fd, int64_t offset, size_t max, struct buf *out, struct err *e)
{
	AUTO_FREE char *part = xmalloc(PART);

	while (max > 0) {
		ssize_t n = pread(fd, part, max < PART ? max : PART, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, "read an artifact");
		if (n == 0)
			break;
		buf_add(out, part, (size_t)n);
		offset += n;
		max -= (size_t)n;
	}
	return 0;
}

int diskfile_read(const struct diskfile *f, int64_t offset, size_t max, struct buf *out,
		  int64_t *ret_size, struct err *e)
{
	AUTO_CLOSE int fd = -1;
	struct stat st;

	if (open_file(f, &fd, e) < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return err_sys(e, "look at an artifact");
	if (!S_ISREG(st.st_mode))
		return not_found(e);
	if (read_part(fd, offset, max, out, e) < 0)
		return -1;
	*ret_size = st.st_size;
	return 0;
}
