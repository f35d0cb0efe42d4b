/* SPDX-License-Identifier: MIT */
#include "backend/local/image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/local/aptsource.h"
#include "backend/local/shift.h"
#include "backend/local/thread.h"
#include "base/auto.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/sha256.h"

static const char packages[] =
	"--include=apt,bash,bzip2,ca-certificates,coreutils,curl,diffutils,file,"
	"findutils,"
	"git,grep,gzip,less,passwd,patch,procps,python3,python3-pip,python3-venv,sed,tar,"
	"unzip,"
	"util-linux,xz-utils,zip";

/*
 * Shell text that mmdebstrap runs with the tree as $1: the users' places; pip
 * may install beside the distribution's packages, the whole system is the user's
 * own; and services are not started when they are installed, there is no init.
 */
static const char *const hooks[] = {
	"--customize-hook=chroot \"$1\" useradd -m -u 1000 -U -s /bin/bash sandbox",
	"--customize-hook=install -d -o 1000 -g 1000 \"$1/workspace\" \"$1/artifacts\"",
	"--customize-hook=printf '[global]\\nbreak-system-packages = true\\n' "
	">\"$1/etc/pip.conf\"",
	"--customize-hook=printf '#!/bin/sh\\nexit 101\\n' >\"$1/usr/sbin/policy-rc.d\"; "
	"chmod 755 \"$1/usr/sbin/policy-rc.d\"",
	"--customize-hook=rm -f \"$1/etc/resolv.conf\" \"$1/etc/hostname\"; "
	": >\"$1/etc/resolv.conf\"",
};
enum { HOOKS = sizeof hooks / sizeof hooks[0], RECIPE_VERSION = 1 };

/* One build: what the thread that runs it needs. */
struct build {
	const char *target;
	const char *suite;
	char **sources;
	backend_progress_fn *progress;
	void *arg;
	char line[256]; /* of its output, as far as it has come */
	size_t len;
	char before[256]; /* the line before this one: a failing tool's own words */
	char why[400];    /* the first error, with the line before it */
};

/* What it says at every build and means nothing here. */
static const char *const dull[] = {
	"I: running --customize-hook", /* our own shell text */
	"I: chroot architecture",
	"I: automatically chosen",
	"I: finding correct signed-by",
	"W: gpg --version failed",
	"W: Download is performed unsandboxed",
};

bool image_name_ok(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789._-");

	return n > 0 && n <= 64 && s[n] == '\0' && s[0] != '.' && s[0] != '-';
}

static bool is_dull(const char *line)
{
	for (size_t i = 0; i < sizeof dull / sizeof dull[0]; i++)
		if (strncmp(line, dull[i], strlen(dull[i])) == 0)
			return true;
	return false;
}

static void on_line(struct build *b)
{
	const char *line = b->line;
	bool error = strncmp(line, "E: ", 3) == 0;

	if (error && !b->why[0])
		snprintf(b->why, sizeof b->why, "%s%s%s", b->before,
			 b->before[0] ? "; " : "", line + 3);
	if (error || strncmp(line, "I: ", 3) == 0 || strncmp(line, "W: ", 3) == 0) {
		if (!is_dull(line))
			b->progress(b->arg, BACKEND_WAITING, line + 3);
		b->before[0] = '\0';
	} else if (line[0]) {
		memcpy(b->before, line, sizeof b->before);
	}
}

static void on_output(void *arg, const char *p, size_t n)
{
	struct build *b = arg;
	size_t i;

	for (i = 0; i < n; i++) {
		if (p[i] != '\n' && p[i] != '\r') {
			if (b->len < sizeof b->line - 1)
				b->line[b->len++] = p[i];
			continue;
		}
		b->line[b->len] = '\0';
		on_line(b);
		b->len = 0;
	}
}

/* On a thread of its own: mounts that mmdebstrap makes end with it. */
static int run_mmdebstrap(void *arg, struct err *e)
{
	struct build *b = arg;
	const char *argv[16 + HOOKS + APT_SOURCES_MAX];
	struct proc p = {.argv = argv,
			 .timeout_ms = 3600 * 1000,
			 .on_output = on_output,
			 .arg = b};
	struct err failed = ERR_INIT;
	int n = 0, i;

	argv[n++] = "mmdebstrap";
	argv[n++] = "--mode=root";
	argv[n++] = "--variant=apt";
	argv[n++] = "--format=directory";
	argv[n++] = "--dpkgopt=path-exclude=/usr/share/man/*";
	argv[n++] = packages;
	for (i = 0; i < HOOKS; i++)
		argv[n++] = hooks[i];
	argv[n++] = b->suite;
	argv[n++] = b->target;
	for (i = 0; b->sources[i]; i++)
		argv[n++] = b->sources[i];
	argv[n] = NULL;
	if (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_sys(e, "make a mount namespace");
	if (proc_run_ok(&p, NULL, &failed) == 0)
		return 0;
	return err_set(e, ERR_BACKEND, "mmdebstrap: %s", b->why[0] ? b->why : failed.msg);
}

/* The name of the recipe: what the tree depends on, hashed. */
static char *recipe(const struct build *b)
{
	AUTO_BUF text = BUF_INIT(65536);
	char hex[SHA256_HEX_LEN + 1];
	int i;

	buf_printf(&text, "%d %s %s", RECIPE_VERSION, b->suite, packages);
	for (i = 0; i < HOOKS; i++)
		buf_puts(&text, hooks[i]);
	for (i = 0; b->sources[i]; i++)
		buf_puts(&text, b->sources[i]);
	sha256_hex(text.p, text.len, hex);
	return xasprintf("r-%.12s", hex);
}

static int sync_tree(const char *path, struct err *e)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || syncfs(fd) < 0 ? err_sys(e, "sync %s", path) : 0;
}

static int make_tree(const struct conf *c, struct build *b, const char *final,
		     struct err *e)
{
	b->progress(b->arg, BACKEND_WAITING,
		    "making the root file system of the sandboxes (once; about half "
		    "a minute and 400 MB)");
	if (io_rmtree(b->target, e) < 0 || thread_run(run_mmdebstrap, b, e) < 0)
		return -1;
	b->progress(b->arg, BACKEND_WAITING,
		    "giving its files to the sandboxes' own user ids");
	if (shift_owners(b->target, c->uid_base, e) < 0 || sync_tree(b->target, e) < 0)
		return -1;
	if (rename(b->target, final) < 0)
		return err_sys(e, "rename to %s", final);
	b->progress(b->arg, BACKEND_WAITING, "the root file system is ready");
	return 0;
}

/* One that failed, or was stopped, leaves nothing. */
static int build_tree(const struct conf *c, struct build *b, const char *final,
		      struct err *e)
{
	AUTO_FREE char *tool = proc_find("mmdebstrap");
	struct err ignored = ERR_INIT;

	if (!tool)
		return err_set(e, ERR_BACKEND,
			       "the root file system of the sandboxes is made with "
			       "mmdebstrap: install the package mmdebstrap");
	if (make_tree(c, b, final, e) == 0)
		return 0;
	io_rmtree(b->target, &ignored);
	return -1;
}

/* base/rootfs -> folder, replaced at once; for people who look, and for imports. */
static int point_rootfs(const char *base, const char *folder, struct err *e)
{
	AUTO_FREE char *link = xasprintf("%s/rootfs", base);
	AUTO_FREE char *aside = xasprintf("%s/.rootfs", base);

	unlink(aside);
	if (symlink(folder, aside) < 0 || rename(aside, link) < 0)
		return err_sys(e, "make %s", link);
	return 0;
}

static int ensure_default(const struct conf *c, const char *base, struct build *b,
			  char **ret_folder, struct err *e)
{
	AUTO_FREE char *suite = NULL, *folder = NULL, *final = NULL, *aside = NULL;
	int rc = -1;

	if (aptsource_suite(c->rootfs_suite, &suite, e) < 0)
		return -1;
	b->suite = suite;
	b->sources = aptsource_list(suite, c->rootfs_mirror);
	folder = recipe(b);
	final = xasprintf("%s/%s", base, folder);
	aside = xasprintf("%s/" IMAGE_ASIDE, base);
	b->target = aside;
	if ((io_exists(final) || build_tree(c, b, final, e) == 0) &&
	    point_rootfs(base, folder, e) == 0) {
		*ret_folder = MOVE(folder);
		rc = 0;
	}
	strv_free(b->sources);
	return rc;
}

/* The folder that base/rootfs is or points to. */
static int real_folder(const char *base, char **ret, struct err *e)
{
	AUTO_FREE char *path = xasprintf("%s/rootfs", base);
	char to[NAME_MAX + 1];
	ssize_t n = readlink(path, to, sizeof to - 1);

	if (n < 0 && errno != EINVAL)
		return err_set(e, ERR_NOT_FOUND,
			       "SANDBOX_IMAGE: there is no %s; put a root file system "
			       "there, or use the image `default`",
			       path);
	if (n < 0) {
		*ret = xstrdup("rootfs");
		return 0;
	}
	to[n] = '\0';
	if (!image_name_ok(to))
		return err_set(e, ERR_INVALID, "%s does not point beside itself", path);
	*ret = xstrdup(to);
	return 0;
}

/* A folder that is shared by a link has one server at a time in it. */
static int enter(const char *base, const struct build *b, int *ret_lock, struct err *e)
{
	AUTO_CLOSE int fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, "open %s", base);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		b->progress(b->arg, BACKEND_WAITING,
			    "another server makes the root file system");
		if (flock(fd, LOCK_EX) < 0)
			return err_sys(e, "lock %s", base);
	}
	*ret_lock = MOVE_FD(fd);
	return 0;
}

int image_ensure(const struct conf *c, backend_progress_fn *progress, void *arg,
		 char **ret, struct err *e)
{
	AUTO_FREE char *base = NULL, *folder = NULL;
	AUTO_CLOSE int lock = -1;
	struct build b = {.progress = progress, .arg = arg};
	int rc;

	if (!image_name_ok(c->image))
		return err_set(e, ERR_INVALID,
			       "SANDBOX_IMAGE is not the name of an image of the local "
			       "backend: up to 64 of a-z 0-9 . _ -");
	base = xasprintf("%s/images/%s", c->data_dir, c->image);
	if (strcmp(c->image, "default") == 0) {
		if (io_mkdirs(base, 0700, e) < 0 || enter(base, &b, &lock, e) < 0)
			return -1;
		rc = ensure_default(c, base, &b, &folder, e);
	} else {
		rc = real_folder(base, &folder, e);
	}
	if (rc < 0)
		return err_wrap(e, "image %s", c->image);
	*ret = xasprintf("%s/%s", c->image, folder);
	return 0;
}
