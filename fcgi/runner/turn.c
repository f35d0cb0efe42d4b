/* SPDX-License-Identifier: MIT */
#include "runner/turn.h"

#include "base/log.h"
#include "base/mem.h"
#include "runner/recovery.h"
#include "runner/runs.h"
#include "runner/sandboxrec.h"

void turn_dirty(struct runner *r)
{
	r->dirty = r->urgent = true;
}

static void answer_later(struct runner *r, struct late_answer answer)
{
	struct late_answer *a = xcalloc(1, sizeof(*a));

	*a = answer;
	*r->answers_tail = a;
	r->answers_tail = &a->next;
	turn_dirty(r);
}

void turn_answer(struct runner *r, struct replyto to, json_t *body)
{
	answer_later(r, (struct late_answer){.to = to, .body = body});
}

void turn_answer_run(struct runner *r, struct replyto to, json_t *body)
{
	answer_later(r, (struct late_answer){.to = to, .body = body, .is_run = true});
}

enum { HOLD_MAX_MS = 3 };

/* Only to end the poll: on_prepare() commits. */
static void on_hold_over(uv_timer_t *t)
{
	(void)t;
}

struct turn_mark turn_mark(const struct runner *r)
{
	return (struct turn_mark){.urgent = r->urgent};
}

void turn_hold(struct runner *r, struct turn_mark since)
{
	r->urgent = since.urgent;
	if (!r->dirty || uv_is_active((uv_handle_t *)&r->hold_over))
		return;
	r->hold_until = uv_now(&r->loop) + HOLD_MAX_MS;
	uv_timer_start(&r->hold_over, on_hold_over, HOLD_MAX_MS, 0);
}

void turn_join(struct runner *r, struct turn_mark since)
{
	if (uv_is_active((uv_handle_t *)&r->hold_over))
		r->urgent = since.urgent;
}

static struct late_answer *take_answers(struct runner *r)
{
	struct late_answer *list = r->answers;

	r->answers = NULL;
	r->answers_tail = &r->answers;
	return list;
}

/* What is not in memory has ended: its caller need not wait for that. */
static void add_end(struct runner *r, struct late_answer *a)
{
	if (a->is_run &&
	    !runs_find(r, json_string_value(json_object_get(a->body, "run_id"))))
		json_object_set_new(a->body, "ended", json_true());
}

/* why NULL: say what was to be said. */
static void send_answers(struct runner *r, const struct err *why)
{
	struct late_answer *next;

	for (struct late_answer *a = take_answers(r); a; a = next) {
		next = a->next;
		if (why) {
			edges_err(r->edges, a->to, why);
			json_decref(a->body);
		} else {
			add_end(r, a);
			edges_ok(r->edges, a->to, a->body);
		}
		free(a);
	}
}

static void commit(struct runner *r)
{
	struct store_commit_info info = {0};
	struct err e = ERR_INIT;

	r->dirty = r->urgent = false;
	uv_timer_stop(&r->hold_over);
	if (store_commit(r->store, &info, &e) < 0) {
		struct err why = ERR_INIT;

		err_set(&why, ERR_STORE,
			"the database cannot be written (%s); nothing was started, try "
			"again later",
			e.msg);
		send_answers(r, &why);
		recovery_store_failed(r, &e);
		return;
	}
	if (info.wrote)
		metrics_observe_us(&r->metrics.store_commit, info.duration_us);
	send_answers(r, NULL);
	sandboxes_acknowledge(r); /* may begin something, for the next commit */
	agentconns_flush(&r->conns);
	if (info.newest_event_id)
		edges_ring(r->edges);
}

void turn_commit(struct runner *r)
{
	agentconns_flush(&r->conns);
	if (r->dirty)
		commit(r);
}

static bool may_wait(const struct runner *r)
{
	return !r->urgent && uv_now(&r->loop) < r->hold_until;
}

/*
 * Both sides of the poll: what timers did is stored before the loop sleeps,
 * what descriptors brought as soon as all of them were looked at.
 */
static void end_of_turn(struct runner *r)
{
	agentconns_flush(&r->conns);
	/* What follows a commit may write again: a sandbox that was bound by it. */
	while (r->dirty && !may_wait(r))
		commit(r);
}

static void on_prepare(uv_prepare_t *h)
{
	end_of_turn(h->data);
}

static void on_check(uv_check_t *h)
{
	end_of_turn(h->data);
}

int turn_init(struct runner *r, struct err *e)
{
	r->answers_tail = &r->answers;
	r->before_poll.data = r->after_poll.data = r;
	if (uv_prepare_init(&r->loop, &r->before_poll) < 0 ||
	    uv_check_init(&r->loop, &r->after_poll) < 0 ||
	    uv_timer_init(&r->loop, &r->hold_over) < 0 ||
	    uv_prepare_start(&r->before_poll, on_prepare) < 0 ||
	    uv_check_start(&r->after_poll, on_check) < 0)
		return err_set(e, ERR_SYSTEM, "the loop cannot be set up");
	return 0;
}

void turn_close(struct runner *r)
{
	struct err why = ERR_INIT;

	err_set(&why, ERR_BUSY, "the server is stopping");
	send_answers(r, &why);
	uv_close((uv_handle_t *)&r->before_poll, NULL);
	uv_close((uv_handle_t *)&r->after_poll, NULL);
	uv_close((uv_handle_t *)&r->hold_over, NULL);
}
