/* SPDX-License-Identifier: MIT */
#ifndef STORE_READING_H
#define STORE_READING_H

#include <assert.h>

#include "store/reader.h"
#include "store/rows.h"

/*
 * The inside of the reading half. Every public function holds an AUTO_READING,
 * declared first so that it is released last: it ends the snapshot, if one was
 * asked for, and makes sure that no statement keeps one.
 */
struct store_reader {
	struct db db;
	bool snapshot;
};

static inline struct store_reader *reading_begin(struct store_reader *r)
{
	assert(db_is_idle(&r->db) && sqlite3_get_autocommit(r->db.c));
	return r;
}

/* One view of the data for several statements. */
int reading_snapshot(struct store_reader *r, struct err *e);
void reading_end(struct store_reader **r);

#define AUTO_READING __attribute__((cleanup(reading_end), unused)) struct store_reader

#endif
