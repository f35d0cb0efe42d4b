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

static void add_header(struct buf *b, const char *name, char type, mode_t mode, size_t n)
{
	struct header h;
	const unsigned char *p;
	unsigned sum = 0;
	size_t i;

	memset(&h, 0, sizeof h);
	snprintf(h.name, sizeof h.name, "%s", name);
	snprintf(h.mode, sizeof h.mode, "%07o", (unsigned)mode & 07777);
	snprintf(h.uid, sizeof h.uid, "%07o", 0U);
	snprintf(h.gid, sizeof h.gid, "%07o", 0U);
	snprintf(h.size, sizeof h.size, "%011zo", n);
	snprintf(h.mtime, sizeof h.mtime, "%011o", 0U);
	memset(h.sum, ' ', sizeof h.sum);
	h.type = type;
	memcpy(h.magic, "ustar", sizeof h.magic);
	memcpy(h.version, "00", sizeof h.version);
	p = (const unsigned char *)&h;
	for (i = 0; i < sizeof h; i++)
		sum += p[i];
	snprintf(h.sum, sizeof h.sum, "%06o", sum & 0777777);
	buf_add(b, &h, sizeof h);
}

void tarball_dir(struct buf *b, const char *name, mode_t mode)
{
	add_header(b, name, '5', mode, 0);
}

void tarball_file(struct buf *b, const char *name, mode_t mode, const void *p, size_t n)
{
	static const char zeros[BLOCK];

	add_header(b, name, '0', mode, n);
	buf_add(b, p, n);
	buf_add(b, zeros, (BLOCK - n % BLOCK) % BLOCK);
}

void tarball_end(struct buf *b)
{
	static const char zeros[2 * BLOCK];

	buf_add(b, zeros, sizeof zeros);
}
