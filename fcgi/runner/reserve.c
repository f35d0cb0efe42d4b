/* SPDX-License-Identifier: MIT */
#include "runner/reserve.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

enum { FULL_BYTES = RESERVE_BYTES / 4 };

static const char *path_of(struct runner *r)
{
	if (!r->reserve_path) {
		AUTO_FREE char *db = xstrdup(r->args->db_path);

		r->reserve_path = xasprintf("%s/reserve", dirname(db));
	}
	return r->reserve_path;
}

/* Bytes that may still be used; not known counts as plenty. */
static int64_t room(const struct runner *r)
{
	struct statvfs v;

	if (statvfs(r->args->db_path, &v) < 0)
		return INT64_MAX;
	return (int64_t)v.f_bavail * (int64_t)v.f_frsize;
}

static bool is_whole(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
	       st.st_blocks >= RESERVE_BYTES / 512;
}

static bool make(const char *path)
{
	AUTO_CLOSE int fd =
		open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd >= 0 && posix_fallocate(fd, 0, RESERVE_BYTES) == 0)
		return true;
	unlink(path);
	return false;
}

void reserve_keep(struct runner *r)
{
	const int64_t twice = 2 * (int64_t)RESERVE_BYTES;

	if (!r->has_reserve)
		r->has_reserve =
			is_whole(path_of(r)) || (room(r) >= twice && make(path_of(r)));
	if (room(r) < FULL_BYTES) {
		/* Given up, also by an earlier runner: what is left is for deletes. */
		r->short_of_room |= !r->has_reserve;
		return;
	}
	r->full_since_mono = 0;
	if (r->short_of_room && r->has_reserve) {
		r->short_of_room = false;
		log_info("the disk has room again");
	}
}

bool reserve_is_due(struct runner *r)
{
	if (!r->has_reserve || room(r) >= FULL_BYTES)
		return false;
	if (!r->full_since_mono)
		r->full_since_mono = clock_mono_ms();
	return clock_mono_ms() - r->full_since_mono >= RESERVE_WAIT_MS;
}

void reserve_give_up(struct runner *r)
{
	r->has_reserve = false;
	r->short_of_room = true;
	log_error("the disk of the database stays full: all sandboxes were stopped, only "
		  "what makes room is accepted");
	unlink(path_of(r));
}
