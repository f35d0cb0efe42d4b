/* SPDX-License-Identifier: MIT */
#include "backend/docker/tarball.h"

#include <stdio.h>
#include <string.h>

enum { BLOCK = 512 };

/* POSIX ustar header; every number is octal text. */
struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type;
	char link[100], magic[6], version[2], user[32], group[32], major[8], minor[8];
	char prefix[155], pad[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a tar header is one block");

static void set_sum(struct header *h)
{
	const unsigned char *p = (const unsigned char *)h;
	unsigned sum = 0;
	size_t i;

	memset(h->sum, ' ', sizeof h->sum);
	for (i = 0; i < sizeof *h; i++)
		sum += p[i];
	snprintf(h->sum, sizeof h->sum, "%06o", sum & 0777777);
}

static void add_entry(struct buf *b, struct header *h, const void *p, size_t n)
{
	static const char zeros[BLOCK];

	snprintf(h->uid, sizeof h->uid, "%07o", 0U);
	snprintf(h->gid, sizeof h->gid, "%07o", 0U);
	snprintf(h->size, sizeof h->size, "%011zo", n);
	snprintf(h->mtime, sizeof h->mtime, "%011o", 0U);
	memcpy(h->magic, "ustar", sizeof h->magic);
	memcpy(h->version, "00", sizeof h->version);
	set_sum(h);
	buf_add(b, h, sizeof *h);
	buf_add(b, p, n);
	buf_add(b, zeros, (BLOCK - n % BLOCK) % BLOCK);
}

/* A name that has no room in the header comes before it, as an entry of its own. */
static void put_name(struct buf *b, char type, const char *name, char *dst, size_t room)
{
	struct header h = {.type = type};
	size_t n = strlen(name);

	if (n >= room) {
		snprintf(h.name, sizeof h.name, "././@LongLink");
		snprintf(h.mode, sizeof h.mode, "%07o", 0U);
		add_entry(b, &h, name, n + 1);
	}
	memcpy(dst, name, n < room ? n : room - 1);
}

static struct header begin(struct buf *b, const char *name, char type, mode_t mode)
{
	struct header h = {.type = type};

	put_name(b, 'L', name, h.name, sizeof h.name);
	snprintf(h.mode, sizeof h.mode, "%07o", (unsigned)mode & 07777);
	return h;
}

void tarball_dir(struct buf *b, const char *name, mode_t mode)
{
	struct header h = begin(b, name, '5', mode);

	add_entry(b, &h, "", 0);
}

void tarball_file(struct buf *b, const char *name, mode_t mode, const void *p, size_t n)
{
	struct header h = begin(b, name, '0', mode);

	add_entry(b, &h, p, n);
}

void tarball_link(struct buf *b, const char *name, const char *to)
{
	struct header h = begin(b, name, '2', 0777);

	put_name(b, 'K', to, h.link, sizeof h.link);
	add_entry(b, &h, "", 0);
}

void tarball_end(struct buf *b)
{
	static const char zeros[2 * BLOCK];

	buf_add(b, zeros, sizeof zeros);
}
