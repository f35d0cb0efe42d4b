/* SPDX-License-Identifier: MIT */
#ifndef AGENT_OUT_H
#define AGENT_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/agentproto.h"

/*
 * The output buffer of the connection: whole frames in, bytes out. Who puts a
 * frame asks out_has_room() first, which promises one of any size.
 */
enum { OUT_MAX = 4 * AP_FRAME_MAX };

struct out {
	size_t start, end;
	bool failed; /* the peer is gone, or a frame was put without room */
	uint8_t buf[OUT_MAX];
};

bool out_has_room(struct out *o);
void out_put(struct out *o, const struct ap_msg *m);
/* True when everything is gone; false: the socket is full, or failed is set. */
bool out_send(struct out *o, int fd);
void out_reset(struct out *o);

#endif
