/* SPDX-License-Identifier: MIT */
#ifndef AGENT_RING_H
#define AGENT_RING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/*
 * Bytes of a stream between two offsets: written at `end`, given back at
 * `base`. The memory is mapped ahead, at its full size, so that a command's
 * output needs no allocation later. A ring that runs empty starts again at its
 * first page: a quiet command touches one page only.
 */
struct ring {
	uint8_t *p;
	size_t size;
	uint64_t origin; /* the offset that lies at p[0] */
	uint64_t base, end;
};

/* 0 or -1 with errno; size 0 is legal and holds nothing. */
int ring_init(struct ring *r, size_t size);
void ring_release(struct ring *r);

/* The free room as 0..2 pieces, at most max bytes; their number. */
int ring_room(const struct ring *r, size_t max, struct iovec iov[2]);
void ring_written(struct ring *r, size_t n);
/* Copy in what fits; how much that was. */
size_t ring_write(struct ring *r, const void *data, size_t n);

/* The longest piece in one run at an offset base..end. */
const uint8_t *ring_at(const struct ring *r, uint64_t offset, size_t *ret_n);
/* Give back everything before offset; one out of range is drawn into it. */
void ring_drop(struct ring *r, uint64_t offset);

#endif
