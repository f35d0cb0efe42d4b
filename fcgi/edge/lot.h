/* SPDX-License-Identifier: MIT */
#ifndef EDGE_LOT_H
#define EDGE_LOT_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"

/*
 * The parking lot: how requests get from the accepting threads to the loop, and
 * how many there are. A thread takes a place first, so that a refusal can still
 * be answered on the thread; a place is given back when its client is gone.
 */
struct client;
struct lot;

struct stats;

/* `max` places, clients adopted on `loop` (its thread makes and frees the lot). */
struct lot *lot_new(uv_loop_t *loop, int64_t max, struct stats *stats);

/*
 * Loop, once no thread parks any more: asks every client to come to an end.
 * emptied() is called when the last one is gone.
 */
void lot_stop(struct lot *lot, void (*emptied)(void *arg), void *arg);
/* Close whoever is left, without an answer. */
void lot_close_all(struct lot *lot);
/* After emptied(). The memory goes with the loop's closing. */
void lot_free(struct lot *lot);

/* Any thread. ERR_BUSY when all places are taken. */
int lot_take_place(struct lot *lot, struct err *e);
/* A place that was taken and not used. */
void lot_leave_place(struct lot *lot);

/* Any thread that took a place: c is the loop's from now on. */
void lot_park(struct lot *lot, struct client *c);

/*
 * The same for one that asked the runner something: the answer brings it in, with
 * lot_adopt_waiting(), and most come soon. The loop is woken for it only when the
 * answer takes longer than some milliseconds.
 */
void lot_park_for_answer(struct lot *lot, struct client *c);

/* Loop: adopt what waits at the door now (a reply may overtake its request). */
void lot_adopt_waiting(struct lot *lot);

/* For client.c: c is closed; its place is free. */
void lot_left(struct lot *lot, struct client *c);

#endif
