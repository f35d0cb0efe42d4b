/* SPDX-License-Identifier: MIT */
#include "runner/oldfiles.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/id.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/str.h"
#include "runner/latest.h"
#include "wire/idenc.h"

static const char base_name[] = ".base";
static const char to_base[] = "../.base/";

/* The folder of an identifier and its bases, both open. */
struct place {
	char *path;
	int root, folder, bases; /* bases: -1: there are none */
};

static void place_release(struct place *p)
{
	free(p->path);
	if (p->root >= 0)
		close(p->root);
	if (p->folder >= 0)
		close(p->folder);
	if (p->bases >= 0)
		close(p->bases);
}

static int open_folder(int at, const char *name)
{
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void close_dir(DIR **d)
{
	if (*d)
		closedir(*d);
}
#define AUTO_DIR __attribute__((cleanup(close_dir))) DIR

/* A stream of its own over an open folder. */
static DIR *read_folder(int at)
{
	int fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d && fd >= 0)
		close(fd);
	return d;
}

/* ---- the links */

int oldfiles_base_of(int run_fd, char ret[static OLDFILES_TARGET_SIZE])
{
	char text[OLDFILES_TARGET_SIZE];
	ssize_t n = readlinkat(run_fd, IDENC_UNCHANGED, text, sizeof(text) - 1);

	if (n < 0)
		return -1;
	text[n] = '\0';
	if (!str_starts(text, to_base) || !idenc_is_run_id(text + strlen(to_base)))
		return -1;
	snprintf(ret, OLDFILES_TARGET_SIZE, "%s", text + strlen(to_base));
	return 0;
}

static int make_bases(int folder, gid_t gid, int *ret, struct err *e)
{
	if (mkdirat(folder, base_name, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "make %s", base_name);
	*ret = open_folder(folder, base_name);
	if (*ret < 0)
		return err_sys(e, "open %s", base_name);
	if ((gid != (gid_t)-1 && fchown(*ret, (uid_t)-1, gid) < 0) ||
	    fchmod(*ret, 02750) < 0)
		return err_sys(e, "the group of %s", base_name);
	return 0;
}

int oldfiles_link(int staging, int folder, const char *base, gid_t gid, struct err *e)
{
	AUTO_FREE char *there = xasprintf("../%s", base);
	AUTO_FREE char *here = xasprintf("%s%s", to_base, base);
	AUTO_CLOSE int bases = -1;
	struct stat st;

	if (make_bases(folder, gid, &bases, e) < 0)
		return -1;
	if (symlinkat(there, bases, base) < 0 && errno != EEXIST)
		return err_sys(e, "name the base %s", base);
	if (fstatat(bases, base, &st, 0) < 0 || !S_ISDIR(st.st_mode))
		return err_set(e, ERR_CONFLICT, "the files of %s are gone", base);
	if (symlinkat(here, staging, IDENC_UNCHANGED) < 0)
		return err_sys(e, "link to the base %s", base);
	return 0;
}

/* ---- who has a share in what */

/* A run of the folder leads to this base. */
static bool is_shared(int folder, const char *base)
{
	AUTO_DIR *d = read_folder(folder);
	const struct dirent *de;
	char other[OLDFILES_TARGET_SIZE];

	if (!d)
		return true; /* rather keep it */
	while ((de = readdir(d))) {
		AUTO_CLOSE int run = -1;

		if (!idenc_is_run_id(de->d_name))
			continue;
		run = open_folder(folder, de->d_name);
		if (run >= 0 && oldfiles_base_of(run, other) == 0 &&
		    strcmp(other, base) == 0)
			return true;
	}
	return false;
}

static int remove_at(const struct place *p, const char *below, const char *name,
		     struct err *e)
{
	AUTO_FREE char *path = xasprintf("%s/%s%s", p->path, below, name);

	return io_rmtree(path, e);
}

static int sweep_bases(const struct place *p, struct err *e)
{
	AUTO_DIR *d = read_folder(p->bases);
	const struct dirent *de;

	if (!d)
		return err_sys(e, "read %s", base_name);
	while ((de = readdir(d)))
		if (idenc_is_run_id(de->d_name) && !is_shared(p->folder, de->d_name) &&
		    remove_at(p, ".base/", de->d_name, e) < 0)
			return -1;
	if (unlinkat(p->folder, base_name, AT_REMOVEDIR) < 0 && errno != ENOTEMPTY &&
	    errno != EEXIST)
		return err_sys(e, "remove %s", base_name);
	return 0;
}

/*
 * The run's folder takes the place of the link to it, so that at every moment the
 * runs that lead there find it. What then stands in its old place is a link.
 */
static int keep_as_base(const struct place *p, const char *run_id, struct err *e)
{
	struct stat st;

	if (fstatat(p->bases, run_id, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "look at the base %s", run_id);
	if (S_ISLNK(st.st_mode) &&
	    renameat2(p->bases, run_id, p->folder, run_id, RENAME_EXCHANGE) < 0)
		return err_sys(e, "keep the files of %s", run_id);
	if (unlinkat(p->folder, run_id, 0) < 0 && errno != ENOENT)
		return err_sys(e, "remove the name %s", run_id);
	return 0;
}

/* False: nothing of it is left, or (with e set) it cannot be looked at. */
static bool open_place(const char *root, const char *tenant, const char *folder,
		       struct place *p, struct err *e)
{
	p->path = xasprintf("%s/%s/%s", root, tenant, folder);
	p->root = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->root < 0) {
		err_sys(e, "open %s", root);
		return false;
	}
	if (latest_lock(p->root, e) < 0)
		return false;
	p->folder = open_folder(AT_FDCWD, p->path);
	if (p->folder < 0 && errno != ENOENT)
		err_sys(e, "open %s", p->path);
	if (p->folder >= 0)
		p->bases = open_folder(p->folder, base_name);
	return p->folder >= 0;
}

static int remove_run(struct place *p, const char *run_id, struct err *e)
{
	if (p->bases < 0) {
		close(MOVE_FD(p->root)); /* the lock: this may take a while */
		return remove_at(p, "", run_id, e);
	}
	if (is_shared(p->folder, run_id))
		return keep_as_base(p, run_id, e);
	return remove_at(p, "", run_id, e) < 0 ? -1 : sweep_bases(p, e);
}

int oldfiles_remove(const char *root, const char *tenant, const char *folder,
		    const char *run_id, struct err *e)
{
	__attribute__((cleanup(place_release))) struct place p = {
		.root = -1, .folder = -1, .bases = -1};

	if (!open_place(root, tenant, folder, &p, e))
		return e->kind ? -1 : 0;
	return remove_run(&p, run_id, e);
}
