/* SPDX-License-Identifier: MIT */
#include "runner/output.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"
#include "runner/turn.h"

enum { ROW_MAX = 32 * 1024, TAIL_MAX = 3 };

static int64_t cap_of(const struct run *run, enum store_stream which)
{
	const struct conf *c = run->sb->r->conf;

	return which == STORE_STDOUT ? c->stdout_max_bytes : c->stderr_max_bytes;
}

static void store_bytes(struct run *run, size_t index, enum store_stream which,
			const void *p, size_t n)
{
	struct stream *st = &run->cmds[index].streams[which];
	struct err e = ERR_INIT;
	const struct store_output o = {
		.run_id = run->run_id,
		.command_index = (int64_t)index,
		.stream = which,
		.at = clock_now_ms(),
		.offset = st->stored,
		.data = p,
		.n = n,
		.truncated = st->truncated,
	};

	/* A store that fails is noticed by the commit, which drops all of this. */
	if (store_output_add(run->sb->r->store, &o, &st->stored, &e) < 0)
		log_error("%s: %s", run->run_id, e.msg);
	turn_dirty(run->sb->r);
}

/* The bytes of p that may be a row: whole characters, unless it is not text. */
static size_t row_size(const uint8_t *p, size_t n)
{
	size_t room = n < ROW_MAX ? n : ROW_MAX;
	size_t part = utf8_incomplete_tail((const char *)p, room);

	return part < room ? room - part : 0;
}

/* First what the tail needs to become a character, from the front of the bytes. */
static size_t finish_tail(struct run *run, size_t index, enum store_stream which,
			  const uint8_t *p, size_t n)
{
	struct stream *st = &run->cmds[index].streams[which];
	size_t used = 0;

	while (st->ntail > 0 && used < n) {
		st->tail[st->ntail++] = p[used++];
		if (st->ntail <= TAIL_MAX &&
		    utf8_incomplete_tail((const char *)st->tail, st->ntail) == st->ntail)
			continue;
		store_bytes(run, index, which, st->tail, st->ntail);
		st->ntail = 0;
	}
	return used;
}

static void take(struct run *run, size_t index, enum store_stream which, const uint8_t *p,
		 size_t n)
{
	struct stream *st = &run->cmds[index].streams[which];
	size_t used = finish_tail(run, index, which, p, n);

	p += used;
	n -= used;
	while (n > 0) {
		size_t row = row_size(p, n);

		if (row == 0) {
			memcpy(st->tail, p, n); /* at most TAIL_MAX, or row was > 0 */
			st->ntail = n;
			return;
		}
		store_bytes(run, index, which, p, row);
		p += row;
		n -= row;
	}
}

static void cut(struct run *run, size_t index, enum store_stream which)
{
	struct stream *st = &run->cmds[index].streams[which];

	st->dropped += (int64_t)st->ntail;
	st->ntail = 0;
	st->truncated = true;
	store_bytes(run, index, which, "", 0);
}

int output_add(struct run *run, size_t index, const struct ap_output *o, struct err *e)
{
	enum store_stream which = o->stream == AP_STDOUT ? STORE_STDOUT : STORE_STDERR;
	struct stream *st = &run->cmds[index].streams[which];
	uint64_t have = output_done(st) + st->ntail;
	int64_t room = cap_of(run, which) - (int64_t)have;
	size_t skip, n = o->bytes.n, keep;

	/* After the cut nothing is kept, so nothing can be missing. */
	if (o->offset > have && !st->truncated)
		return err_set(e, ERR_INVALID,
			       "the agent left out output between %llu and %llu",
			       (unsigned long long)have, (unsigned long long)o->offset);
	if (o->offset > have) {
		st->dropped += (int64_t)(o->offset - have);
		have = o->offset;
	}
	skip = have - o->offset < n ? (size_t)(have - o->offset) : n;
	n -= skip;
	keep = st->truncated || room <= 0 ? 0 : n < (size_t)room ? n : (size_t)room;
	take(run, index, which, o->bytes.p + skip, keep);
	if (n > keep && !st->truncated)
		cut(run, index, which);
	st->dropped += (int64_t)(n - keep);
	run->want_ack = true;
	turn_dirty(run->sb->r);
	return 0;
}

static void end_stream(struct run *run, size_t index, enum store_stream which,
		       bool was_cut, struct store_command *c)
{
	struct stream *st = &run->cmds[index].streams[which];

	if (was_cut && !st->truncated) {
		cut(run, index, which);
	} else if (st->ntail > 0) {
		store_bytes(run, index, which, st->tail, st->ntail);
		st->ntail = 0;
	}
	c->truncated[which] = st->truncated;
	if (c->bytes[which] < st->stored)
		c->bytes[which] = st->stored;
}

void output_end(struct run *run, size_t index, bool cut_stdout, bool cut_stderr,
		struct store_command *c)
{
	end_stream(run, index, STORE_STDOUT, cut_stdout, c);
	end_stream(run, index, STORE_STDERR, cut_stderr, c);
}
