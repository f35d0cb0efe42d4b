/* SPDX-License-Identifier: MIT */
#include "agent/out.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

bool out_has_room(struct out *o)
{
	if (o->start == o->end)
		o->start = o->end = 0;
	if (OUT_MAX - o->end < AP_FRAME_MAX && o->start > 0) {
		memmove(o->buf, o->buf + o->start, o->end - o->start);
		o->end -= o->start;
		o->start = 0;
	}
	return OUT_MAX - o->end >= AP_FRAME_MAX;
}

void out_put(struct out *o, const struct ap_msg *m)
{
	size_t n = ap_encode(m, o->buf + o->end, OUT_MAX - o->end);

	if (n == 0)
		o->failed = true;
	o->end += n;
}

bool out_send(struct out *o, int fd)
{
	ssize_t n;

	while (o->start < o->end) {
		n = send(fd, o->buf + o->start, o->end - o->start, MSG_NOSIGNAL);
		if (n >= 0) {
			o->start += (size_t)n;
		} else if (errno == EAGAIN) {
			return false;
		} else if (errno != EINTR) {
			o->failed = true;
			return false;
		}
	}
	return true;
}

void out_reset(struct out *o)
{
	o->start = o->end = 0;
	o->failed = false;
}
