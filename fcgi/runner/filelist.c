/* SPDX-License-Identifier: MIT */
#include "runner/filelist.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"

bool filelist_add(struct filelist *l, const struct ap_entry *e)
{
	if (l->n >= FILELIST_ENTRIES_MAX || l->bytes + e->path.n > FILELIST_BYTES_MAX) {
		l->cut = true;
		return false;
	}
	if (l->n == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 64;
		l->v = xreallocarray(l->v, l->cap, sizeof(*l->v));
	}
	l->v[l->n++] = (struct filelist_entry){
		.path = xstrndup((const char *)e->path.p, e->path.n), .e = *e};
	l->bytes += e->path.n;
	return true;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct filelist_entry *)a)->path,
		      ((const struct filelist_entry *)b)->path);
}

static json_t *entry_json(const struct filelist_entry *f)
{
	static const char *const types[AP_FILE_TYPE_COUNT] = {
		[AP_FILE_REGULAR] = "file",    [AP_FILE_DIRECTORY] = "folder",
		[AP_FILE_SYMLINK] = "symlink", [AP_FILE_FIFO] = "fifo",
		[AP_FILE_SOCKET] = "socket",   [AP_FILE_DEVICE] = "device",
		[AP_FILE_OTHER] = "other",
	};
	json_t *o = json_must(
		json_pack("{s:o,s:s,s:I,s:I,s:I,s:I}", "path",
			  json_string_repaired(f->path, strlen(f->path)), "type",
			  types[f->e.type], "size", (json_int_t)(f->e.size & INT64_MAX),
			  "mode", (json_int_t)f->e.mode, "uid", (json_int_t)f->e.uid,
			  "mtime_ms", (json_int_t)(f->e.mtime_ns / 1000000)));
	char words[128];

	if (f->e.error)
		json_put(o, "error",
			 json_string(strerror_r((int)(f->e.error % 4096), words,
						sizeof(words))));
	return o;
}

json_t *filelist_page(struct filelist *l, const struct file_spec *spec)
{
	json_t *page = json_array();
	size_t i = 0;

	if (l->n > 0)
		qsort(l->v, l->n, sizeof(*l->v), by_path);
	while (spec->after && i < l->n && strcmp(l->v[i].path, spec->after) <= 0)
		i++;
	for (; i < l->n && json_array_size(page) < FILE_PAGE; i++)
		json_array_append_new(page, entry_json(&l->v[i]));
	return json_must(json_pack("{s:s,s:o,s:I,s:b,s:b}", "path", spec->path, "entries",
				   page, "total", (json_int_t)l->n, "cut", (int)l->cut,
				   "more", (int)(i < l->n)));
}

void filelist_release(struct filelist *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].path);
	free(l->v);
	*l = (struct filelist){0};
}
