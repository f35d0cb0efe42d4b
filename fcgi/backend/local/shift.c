/* SPDX-License-Identifier: MIT */
#include "backend/local/shift.h"

#include <endian.h>
#include <errno.h>
#include <fts.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char cap_attr[] = "security.capability";
enum { SHIFTED_FROM = 65536 };

static void auto_fts(FTS **f)
{
	if (*f)
		fts_close(*f);
}

/* As version 3, which says whose root the capability is for. */
static int put_caps(const char *path, struct vfs_ns_cap_data *d, int64_t by,
		    struct err *e)
{
	uint32_t magic = le32toh(d->magic_etc);

	d->magic_etc = htole32(VFS_CAP_REVISION_3 | (magic & VFS_CAP_FLAGS_EFFECTIVE));
	d->rootid = htole32((uint32_t)by);
	if (lsetxattr(path, cap_attr, d, sizeof *d, 0) < 0)
		return err_sys(e, "set the capabilities of %s", path);
	return 0;
}

static int shift_one(const char *path, const struct stat *st, int64_t by, struct err *e)
{
	struct vfs_ns_cap_data data = {0};
	ssize_t caps = -1;

	if (st->st_uid >= SHIFTED_FROM || st->st_gid >= SHIFTED_FROM)
		return 0; /* done: the other name of a hard link */
	if (S_ISREG(st->st_mode))
		caps = lgetxattr(path, cap_attr, &data, sizeof data);
	if (lchown(path, (uid_t)(st->st_uid + by), (gid_t)(st->st_gid + by)) < 0)
		return err_sys(e, "change the owner of %s", path);
	if ((st->st_mode & (S_ISUID | S_ISGID)) && !S_ISLNK(st->st_mode) &&
	    chmod(path, st->st_mode & 07777) < 0)
		return err_sys(e, "change the mode of %s", path);
	return caps == XATTR_CAPS_SZ_2 ? put_caps(path, &data, by, e) : 0;
}

int shift_owners(const char *path, int64_t by, struct err *e)
{
	char *const roots[] = {(char *)(uintptr_t)path, NULL};
	__attribute__((cleanup(auto_fts))) FTS *f =
		fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	FTSENT *i;

	if (!f)
		return err_sys(e, "walk %s", path);
	while ((i = fts_read(f)) != NULL) {
		if (i->fts_info == FTS_DP)
			continue;
		if (i->fts_info == FTS_ERR || i->fts_info == FTS_DNR ||
		    i->fts_info == FTS_NS) {
			errno = i->fts_errno;
			return err_sys(e, "walk %s", i->fts_path);
		}
		if (shift_one(i->fts_accpath, i->fts_statp, by, e) < 0)
			return -1;
	}
	return 0;
}
