/* SPDX-License-Identifier: MIT */
#ifndef EDGE_SENDER_H
#define EDGE_SENDER_H

#include "edge/core.h"
#include "edge/http.h"

/*
 * Answers too large for a socket's buffer (REPLY_SMALL_MAX): a slow reader would hold
 * the thread that writes them, so the loop sends them, each as fast as its own client
 * reads.
 */

/* Answer h: at once when r is small, else from the loop. Any failure is answered. */
void send_reply(struct edge *edge, struct http *h, const struct reply *r);

/*
 * Answer h with a command's raw output as far as it is stored now, in pieces
 * read as the client takes them. The caller has checked the run; total: its
 * length, or -1 while the command runs.
 */
void send_output(struct edge *edge, struct http *h, const struct store_output_query *q,
		 int64_t total, const struct reply *head);

#endif
