/* SPDX-License-Identifier: MIT */
#include "agent/ring.h"

#include <string.h>
#include <sys/mman.h>

#include "wire/agentproto.h"

/* Rings of the usual size that were given back, so that a short command needs no map. */
enum { SPARES_MAX = 4 };
static uint8_t *spares[SPARES_MAX];
static size_t nspares;

int ring_init(struct ring *r, size_t size)
{
	void *p = NULL;

	if (size == AP_RING_MAX && nspares > 0) {
		p = spares[--nspares];
	} else if (size > 0) {
		p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
		if (p == MAP_FAILED)
			return -1;
	}
	*r = (struct ring){.p = p, .size = size};
	return 0;
}

static void give_back(struct ring *r)
{
	if (r->size != AP_RING_MAX || nspares == SPARES_MAX) {
		munmap(r->p, r->size);
		return;
	}
	/* Nobody's memory while it is spare; what was never written has none. */
	if (r->end > 0)
		madvise(r->p, r->size, MADV_DONTNEED);
	spares[nspares++] = r->p;
}

void ring_release(struct ring *r)
{
	if (r->p)
		give_back(r);
	*r = (struct ring){.p = NULL, .base = r->base, .end = r->end};
}

int ring_room(const struct ring *r, size_t max, struct iovec iov[2])
{
	size_t free_n = r->size - (size_t)(r->end - r->base), at, first;

	if (free_n > max)
		free_n = max;
	if (free_n == 0)
		return 0;
	at = (size_t)((r->end - r->origin) % r->size);
	first = r->size - at;
	if (first > free_n)
		first = free_n;
	iov[0] = (struct iovec){r->p + at, first};
	iov[1] = (struct iovec){r->p, free_n - first};
	return first < free_n ? 2 : 1;
}

void ring_written(struct ring *r, size_t n)
{
	r->end += n;
}

size_t ring_write(struct ring *r, const void *data, size_t n)
{
	struct iovec iov[2];
	size_t done = 0;
	int count = ring_room(r, n, iov);

	for (int i = 0; i < count; i++) {
		memcpy(iov[i].iov_base, (const char *)data + done, iov[i].iov_len);
		done += iov[i].iov_len;
	}
	ring_written(r, done);
	return done;
}

const uint8_t *ring_at(const struct ring *r, uint64_t offset, size_t *ret_n)
{
	size_t left = (size_t)(r->end - offset), at;

	if (left == 0) {
		*ret_n = 0;
		return NULL;
	}
	at = (size_t)((offset - r->origin) % r->size);
	*ret_n = left < r->size - at ? left : r->size - at;
	return r->p + at;
}

void ring_drop(struct ring *r, uint64_t offset)
{
	if (offset <= r->base)
		return;
	r->base = offset < r->end ? offset : r->end;
	if (r->base == r->end)
		r->origin = r->end;
}
