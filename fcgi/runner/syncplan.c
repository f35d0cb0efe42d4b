/* SPDX-License-Identifier: MIT */
#include "runner/syncplan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "wire/idenc.h"

enum {
	LISTING_MAX = 200000, /* entries read at all */
	LISTING_BYTES_MAX = 32 * 1024 * 1024,
	SKIPS_LISTED = 500, /* one by one; the rest as a number */
	NAME_BYTES_MAX = 255,
};

struct syncplan *plan_new(void)
{
	struct syncplan *p = xcalloc(1, sizeof(*p));

	p->staging_fd = p->base_fd = -1;
	return p;
}

void plan_free(struct syncplan *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++) {
		free(p->v[i].path);
		free(p->v[i].reason);
	}
	if (p->staging_fd >= 0)
		close(p->staging_fd);
	if (p->base_fd >= 0)
		close(p->base_fd);
	store_run_release(&p->previous);
	free(p->seen);
	free(p->base_run_id);
	free(p->v);
	free(p->root);
	free(p->tenant);
	free(p->folder);
	free(p->run_id);
	free(p);
}

/* ---- what the agent said */

static const char *component_problem(const char *p, size_t n)
{
	if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
		return "its name is no path below /artifacts";
	if (n > NAME_BYTES_MAX)
		return "its name is longer than 255 bytes";
	return NULL;
}

static bool is_reserved(const char *p, size_t n)
{
	const size_t len = strlen(IDENC_UNCHANGED);

	return n >= len && memcmp(p, IDENC_UNCHANGED, len) == 0 &&
	       (n == len || p[len] == '/');
}

const char *plan_name_problem(const struct ap_bytes *path)
{
	const char *p = (const char *)path->p, *end = p + path->n;
	const char *problem = NULL;

	if (path->n > AP_PATH_MAX)
		return "its path is longer than 4095 bytes";
	if (!utf8_is_valid(p, path->n))
		return "its name is not valid UTF-8, so no url can be given for it";
	if (is_reserved(p, path->n))
		return "its name is one that the server uses itself";
	while (!problem && p <= end) {
		const char *slash = memchr(p, '/', (size_t)(end - p));
		size_t n = (size_t)((slash ? slash : end) - p);

		problem = component_problem(p, n);
		p += n + 1;
	}
	return problem;
}

static const char *const type_problem[AP_FILE_TYPE_COUNT] = {
	[AP_FILE_SYMLINK] = "it is a symbolic link; copy the file instead",
	[AP_FILE_FIFO] = "it is a named pipe",
	[AP_FILE_SOCKET] = "it is a socket",
	[AP_FILE_DEVICE] = "it is a device",
	[AP_FILE_OTHER] = "it is neither a file nor a folder",
};

/* Into buf when it has to be made. */
static const char *limit_problem(const struct syncplan *p, const struct ap_entry *x,
				 char *buf, size_t size)
{
	const struct plan_limits *l = &p->limits;
	bool is_file = x->type == AP_FILE_REGULAR;

	if (is_file && x->size > AP_OFFSET_MAX)
		snprintf(buf, size, "it is larger than can be copied");
	else if (is_file && l->max_file_bytes && x->size > l->max_file_bytes)
		snprintf(buf, size, "it is larger than the limit of %" PRIu64 " bytes",
			 l->max_file_bytes);
	else if (l->max_files && p->files + p->folders >= l->max_files)
		snprintf(buf, size, "there are more files than the limit of %" PRIu64,
			 l->max_files);
	else if (is_file && l->max_bytes &&
		 (x->size > l->max_bytes || p->bytes > l->max_bytes - x->size))
		snprintf(buf, size,
			 "all together would pass the limit of %" PRIu64 " bytes",
			 l->max_bytes);
	else
		return NULL;
	return buf;
}

static const char *entry_problem(const struct syncplan *p, const struct ap_entry *x,
				 char *buf, size_t size)
{
	char words[128];
	const char *problem = plan_name_problem(&x->path);

	if (problem)
		return problem;
	if (type_problem[x->type])
		return type_problem[x->type];
	if (x->error) {
		snprintf(buf, size, "it could not be read (%s)",
			 strerror_r((int)(x->error % 4096), words, sizeof(words)));
		return buf;
	}
	return limit_problem(p, x, buf, size);
}

static char *shown_path(const struct ap_bytes *path)
{
	AUTO_BUF b = BUF_INIT(4 * AP_PATH_MAX);
	char *p;

	utf8_add_repaired(&b, (const char *)path->p, path->n);
	p = xstrdup(b.p);
	return p;
}

static struct plan_entry *new_entry(struct syncplan *p)
{
	if (p->n == p->cap) {
		p->cap = p->cap ? p->cap * 2 : 16;
		p->v = xreallocarray(p->v, p->cap, sizeof(*p->v));
	}
	p->v[p->n] = (struct plan_entry){0};
	return &p->v[p->n++];
}

void plan_skip(struct syncplan *p, struct plan_entry *entry, const char *reason)
{
	if (entry->fate == PLAN_FETCH || entry->fate == PLAN_SAME) {
		p->files--;
		p->bytes -= entry->size;
	}
	if (entry->in_base != STORE_BASE_NONE) /* the base would show through */
		p->must_fill = true;
	entry->fate = PLAN_SKIPPED;
	entry->reason = xstrdup(reason);
	p->skipped++;
}

static void add_skipped(struct syncplan *p, const struct ap_entry *x, const char *problem)
{
	struct plan_entry *entry;

	if (p->skipped >= SKIPS_LISTED) {
		p->skipped++;
		return;
	}
	entry = new_entry(p);
	entry->path = shown_path(&x->path);
	entry->size = x->size;
	entry->fate = PLAN_SKIPPED;
	entry->reason = xstrdup(problem);
	p->skipped++;
}

int plan_add(struct syncplan *p, const struct ap_entry *x, struct err *e)
{
	char buf[160];
	const char *problem = entry_problem(p, x, buf, sizeof(buf));
	struct plan_entry *entry;

	p->listing_bytes += x->path.n;
	if (p->n + p->skipped >= LISTING_MAX || p->listing_bytes > LISTING_BYTES_MAX)
		return err_set(e, ERR_LIMIT,
			       "/artifacts has more than %d entries, or names of more "
			       "than %d bytes together",
			       LISTING_MAX, LISTING_BYTES_MAX);
	if (problem) {
		add_skipped(p, x, problem);
		return 0;
	}
	entry = new_entry(p);
	entry->path = xstrndup((const char *)x->path.p, x->path.n);
	entry->mtime_ns = x->mtime_ns;
	entry->ctime_ns = x->ctime_ns;
	entry->size = x->size;
	entry->fate = x->type == AP_FILE_DIRECTORY ? PLAN_FOLDER : PLAN_FETCH;
	if (entry->fate == PLAN_FOLDER) {
		p->folders++;
	} else {
		p->files++;
		p->bytes += x->size;
	}
	return 0;
}
