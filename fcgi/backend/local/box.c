/* SPDX-License-Identifier: MIT */
#include "backend/local/box.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/io.h"
#include "base/json.h"
#include "base/mem.h"

bool box_name_ok(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return n > 0 && n < 64 && s[n] == '\0' && s[0] != '-';
}

void box_release(struct box *b)
{
	free(b->image);
	free(b->fingerprint);
	*b = (struct box)BOX_INIT;
}

int box_read(const char *dir, struct box *ret, struct err *e)
{
	AUTO_FREE char *path = xasprintf("%s/state.json", dir);
	AUTO_BUF text = BUF_INIT(65536);
	AUTO_JSON *root = NULL;
	const char *image, *fingerprint, *boot;
	json_int_t pid, start, slot;
	int fresh, gvisor = 0;

	if (io_read_file(path, &text, e) < 0 ||
	    json_parse(text.p, text.len, &root, e) < 0)
		return -1;
	if (json_unpack(root, "{s:s,s:s,s:I,s:I,s:s,s:I,s:b,s?b}", "image", &image,
			"fingerprint", &fingerprint, "pid", &pid, "start", &start, "boot",
			&boot, "slot", &slot, "fresh", &fresh, "gvisor", &gvisor) < 0)
		return err_set(e, ERR_SYSTEM, "%s cannot be understood", path);
	*ret = (struct box){.image = xstrdup(image),
			    .fingerprint = xstrdup(fingerprint),
			    .init = {.pid = (pid_t)pid, .start = (uint64_t)start},
			    .slot = (int)slot,
			    .gvisor = gvisor,
			    .fresh = fresh};
	snprintf(ret->init.boot, sizeof ret->init.boot, "%s", boot);
	return 0;
}

int box_write_file(const char *path, const char *text, mode_t mode, int64_t owner,
		   struct err *e)
{
	AUTO_FREE char *aside = xasprintf("%s.new", path);
	AUTO_CLOSE int fd = open(aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	if (fd < 0 || fchmod(fd, mode) < 0 || fchown(fd, (uid_t)owner, (gid_t)owner) < 0)
		return err_sys(e, "write %s", aside);
	if (io_write_all(fd, text, strlen(text), e) < 0)
		return -1;
	return rename(aside, path) < 0 ? err_sys(e, "write %s", path) : 0;
}

int box_write(const char *dir, const struct box *b, struct err *e)
{
	AUTO_FREE char *path = xasprintf("%s/state.json", dir);
	AUTO_JSON *root =
		json_pack("{s:s,s:s,s:i,s:I,s:s,s:i,s:b,s:b}", "image", b->image,
			  "fingerprint", b->fingerprint, "pid", (int)b->init.pid, "start",
			  (json_int_t)b->init.start, "boot", b->init.boot, "slot",
			  b->slot, "fresh", (int)b->fresh, "gvisor", (int)b->gvisor);
	AUTO_FREE char *text = json_dumps(root, JSON_COMPACT);

	return box_write_file(path, text, 0600, 0, e);
}

static int make_dir(const char *dir, const char *name, mode_t mode, int64_t owner,
		    struct err *e)
{
	AUTO_FREE char *path = xasprintf("%s/%s", dir, name);

	if (mkdir(path, mode) < 0)
		return errno == EEXIST ? 0 : err_sys(e, "make %s", path);
	if (chown(path, (uid_t)owner, (gid_t)owner) < 0 || chmod(path, mode) < 0)
		return err_sys(e, "give %s its owner", path);
	return 0;
}

int box_make_dirs(const char *dir, int64_t uid, struct err *e)
{
	if (make_dir(dir, "store", 0700, 0, e) < 0 ||
	    make_dir(dir, "store/upper", 0755, uid, e) < 0 ||
	    make_dir(dir, "store/work", 0700, 0, e) < 0 ||
	    make_dir(dir, "tmp", 01777, uid, e) < 0)
		return -1;
	return make_dir(dir, "merged", 0711, 0, e);
}
