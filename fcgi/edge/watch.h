/* SPDX-License-Identifier: MIT */
#ifndef EDGE_WATCH_H
#define EDGE_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "edge/chunk.h"
#include "store/reader.h"

/*
 * Who waits for news of which run. The runner rings a doorbell (an eventfd)
 * after a commit; the loop then asks the store once for what is new since the
 * last ring, only of watched runs, and hands each event to the run's watchers.
 * So the cost follows new events, not streams. Loop only.
 *
 * Why no event is lost between reading a run's past and hearing of its future:
 * watch_add() comes first, reading the past second. Before the first watcher
 * is added, `last_id` is moved to the newest event there is. An event that the
 * later read does not see was committed after it, so its id is above last_id, and
 * a ring after its commit hands it out. An event that is both read and handed
 * out is known by its seq, which is without gaps within a run: a watcher takes
 * exactly last_seq + 1, forgets what is below, and reads again when it sees a gap.
 * If a ring itself were lost, the look at data_version once a second finds it
 * (that also shows what an admin changed by hand).
 */
struct watches;

/* An event as all watchers of its run see it; the SSE form is made once. */
struct news {
	const struct store_event *event;
	/* private */
	struct chunk *sse; /* NULL until somebody asks */
	struct store_reader *reader;
	char *latest_of;
	bool has_looked; /* for latest_of */
};
struct chunk *news_sse(struct news *n); /* borrowed */

/*
 * Of the end of a run that is now an identifier's newest with files: the identifier,
 * borrowed. Else NULL. The store is asked once an event, whoever asks.
 */
const char *news_latest_of(struct news *n);

/* n events in their SSE form (mcp/events.h), as one chunk. */
struct chunk *events_chunk(const struct store_event *v, size_t n);

/* Embedded in whoever watches. */
struct watcher {
	void (*event)(struct watcher *w, struct news *n);
	bool only_end; /* nothing but the run's last event; set before watch_add() */
	/* private */
	struct watcher *next, **link;
	struct watch *watch; /* NULL: not watching */
};

/* reader and fd are borrowed. */
struct watches *watches_new(uv_loop_t *loop, int doorbell_fd,
			    struct store_reader *reader);
/* Nobody may watch. The memory goes with the loop's closing. */
void watches_free(struct watches *all);

/*
 * ERR_STORE when the newest event is not known; nothing is watched then. run_id "":
 * the ends of all runs.
 */
int watch_add(struct watches *all, struct watcher *w, const char *run_id, struct err *e);
/* Also from within event(). Twice is fine. */
void watch_remove(struct watches *all, struct watcher *w);

#endif
