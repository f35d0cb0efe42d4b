/* SPDX-License-Identifier: MIT */
#include "backend/docker/context.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/docker/dockerignore.h"
#include "backend/docker/tarball.h"
#include "base/auto.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/str.h"

enum { DEPTH_MAX = 64 };

/* ---- the Dockerfile */

/* The next word of a line; "" at its end. */
static struct str next_word(struct str *line)
{
	struct str word;

	*line = str_trim(*line);
	word = (struct str){line->p, 0};
	while (word.n < line->n && !strchr(" \t", line->p[word.n]))
		word.n++;
	*line = (struct str){line->p + word.n, line->n - word.n};
	return word;
}

static bool begins(struct str word, const char *with)
{
	size_t n = strlen(with);

	return word.n >= n && strncasecmp(word.p, with, n) == 0;
}

/* "COPY --from=stage a b", a url and a text in place come from elsewhere. */
static bool reads_folder(struct str args)
{
	struct str word = next_word(&args);

	while (begins(word, "--")) {
		if (begins(word, "--from="))
			return false;
		word = next_word(&args);
	}
	return word.n > 0 && !begins(word, "<<") && !begins(word, "http://") &&
	       !begins(word, "https://");
}

bool context_is_wanted(const char *text, size_t n)
{
	struct str rest = {text, n}, line, word;

	while (str_cut(&rest, '\n', &line)) {
		word = next_word(&line);
		if (((word.n == 4 && begins(word, "COPY")) ||
		     (word.n == 3 && begins(word, "ADD"))) &&
		    reads_folder(line))
			return true;
	}
	return false;
}

/* ---- the folder */

struct walk {
	struct buf *tar;
	struct dockerignore ignore;
	const char *top;
};

static int too_large(const struct walk *w, struct err *e)
{
	return err_set(e, ERR_LIMIT,
		       "the folder %s is larger than the %d MB that are sent for a "
		       "build: name what is not needed in its .dockerignore, or build "
		       "the image yourself",
		       w->top, CONTEXT_MAX >> 20);
}

static int add_file(struct walk *w, int dir, const char *name, const char *path,
		    struct err *e)
{
	AUTO_CLOSE int fd =
		openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	AUTO_BUF bytes = BUF_INIT(CONTEXT_MAX);
	struct err why = ERR_INIT;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "read %s", path);
	if (io_read_all(fd, &bytes, &why) < 0) {
		if (why.kind == ERR_LIMIT)
			return too_large(w, e);
		*e = why;
		return err_wrap(e, "%s", path);
	}
	tarball_file(w->tar, path, st.st_mode & 0777, bytes.p, bytes.len);
	return 0;
}

static int add_link(struct walk *w, int dir, const char *name, const char *path,
		    struct err *e)
{
	char to[PATH_MAX];
	ssize_t n = readlinkat(dir, name, to, sizeof to - 1);

	if (n < 0)
		return err_sys(e, "read the link %s", path);
	to[n] = '\0';
	tarball_link(w->tar, path, to);
	return 0;
}

static int add_folder(struct walk *w, int dir, const char *path, int depth,
		      struct err *e);

/* Sockets, pipes and devices are nothing an image is built from. */
static int add(struct walk *w, int dir, const char *name, const char *path, int depth,
	       struct err *e)
{
	bool ignored = dockerignore_matches(&w->ignore, path);
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_sys(e, "look at %s", path);
	/* An exception may name something in an ignored folder. */
	if (ignored && !(S_ISDIR(st.st_mode) && w->ignore.has_exceptions))
		return 0;
	if (S_ISREG(st.st_mode))
		return add_file(w, dir, name, path, e);
	if (S_ISLNK(st.st_mode))
		return add_link(w, dir, name, path, e);
	if (!S_ISDIR(st.st_mode))
		return 0;
	if (!ignored) {
		AUTO_FREE char *slash = xasprintf("%s/", path);

		tarball_dir(w->tar, slash, st.st_mode & 0777);
	}
	return add_folder(
		w, openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
		path, depth + 1, e);
}

/* Takes dir. */
static int add_folder(struct walk *w, int dir, const char *path, int depth, struct err *e)
{
	DIR *d = dir < 0 ? NULL : fdopendir(dir);
	struct dirent *de;
	int rc = 0;

	if (!d)
		return err_sys(e, "read the folder %s", *path ? path : w->top);
	if (depth > DEPTH_MAX)
		rc = err_set(e, ERR_LIMIT, "the folder %s is too deep", path);
	while (rc == 0 && (de = readdir(d))) {
		AUTO_FREE char *sub = NULL;

		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
			continue;
		sub = xasprintf("%s%s%s", path, *path ? "/" : "", de->d_name);
		rc = add(w, dirfd(d), de->d_name, sub, depth, e);
		if (rc == 0 && !buf_ok(w->tar))
			rc = too_large(w, e);
	}
	closedir(d);
	return rc;
}

/* "Dockerfile.dockerignore" goes before ".dockerignore". */
static int read_ignore(const char *dockerfile, const char *top, struct buf *text,
		       struct err *e)
{
	AUTO_FREE char *own = xasprintf("%s.dockerignore", dockerfile);
	AUTO_FREE char *common = xasprintf("%s/.dockerignore", top);
	const char *file = io_exists(own) ? own : common;

	return io_exists(file) ? io_read_file(file, text, e) : 0;
}

static int add_all(const char *dockerfile, struct buf *tar, struct err *e)
{
	AUTO_FREE char *top = xstrdup(dockerfile);
	AUTO_BUF ignore = BUF_INIT(CONTEXT_DOCKERFILE_MAX);
	struct walk w = {.tar = tar};
	char *slash = strrchr(top, '/');
	int rc;

	if (slash)
		slash[slash == top] = '\0';
	w.top = slash ? top : ".";
	if (read_ignore(dockerfile, w.top, &ignore, e) < 0)
		return -1;
	dockerignore_parse(ignore.p, ignore.len, &w.ignore);
	rc = add_folder(&w, open(w.top, O_RDONLY | O_DIRECTORY | O_CLOEXEC), "", 0, e);
	dockerignore_release(&w.ignore);
	return rc;
}

int context_make(const char *dockerfile, struct buf *tar, struct err *e)
{
	AUTO_BUF text = BUF_INIT(CONTEXT_DOCKERFILE_MAX);

	if (io_read_file(dockerfile, &text, e) < 0 ||
	    (context_is_wanted(text.p, text.len) && add_all(dockerfile, tar, e) < 0))
		return -1;
	tarball_file(tar, CONTEXT_DOCKERFILE, 0644, text.p, text.len);
	tarball_end(tar);
	return buf_ok(tar) ? 0 : err_set(e, ERR_LIMIT, "the Dockerfile is too large");
}
