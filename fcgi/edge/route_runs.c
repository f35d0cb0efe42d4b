/* SPDX-License-Identifier: MIT */
#include "edge/routes.h"

#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "base/str.h"
#include "edge/lot.h"
#include "edge/query.h"
#include "edge/sender.h"
#include "edge/stream.h"
#include "mcp/runobj.h"
#include "wire/idenc.h"

enum { NUMBER_MAX = 24, BASE_URL_MAX = 320, RUN_JSON_MAX = 256 * 1024 * 1024 };

/* What cannot be a run_id names no run: the same answer as for an unknown one. */
static int check_run_id(const char *run_id, struct err *e)
{
	if (!idenc_is_run_id(run_id))
		return err_set(e, ERR_NOT_FOUND, "no such run");
	return 0;
}

static int captured_run_id(const struct http *h, char dst[static STORE_RUN_ID_SIZE],
			   struct err *e)
{
	if (url_decode(h->capture[0], false, dst, STORE_RUN_ID_SIZE) < 0)
		return err_set(e, ERR_NOT_FOUND, "no such run");
	return check_run_id(dst, e);
}

/* Where to go on: Last-Event-ID (a reconnecting client's) before ?after=. */
static int parse_after(const struct http *h, int64_t *ret, struct err *e)
{
	const char *last = http_param(h, "HTTP_LAST_EVENT_ID");
	char text[NUMBER_MAX];

	*ret = 0;
	if (last) {
		if (num_parse(last, 0, INT64_MAX - 1, ret, e) < 0)
			return err_wrap(e, "Last-Event-ID");
		return 0;
	}
	switch (query_get(h->query, "after", text, sizeof(text))) {
	case QUERY_ABSENT:
		return 0;
	case QUERY_BAD:
		return err_set(e, ERR_INVALID, "after: not a number");
	case QUERY_FOUND:
		break;
	}
	if (num_parse(text, 0, INT64_MAX - 1, ret, e) < 0)
		return err_wrap(e, "after");
	return 0;
}

static int parse_events_query(const struct http *h, char run_id[static STORE_RUN_ID_SIZE],
			      int64_t *ret_after, struct err *e)
{
	switch (query_get(h->query, "run_id", run_id, STORE_RUN_ID_SIZE)) {
	case QUERY_ABSENT:
		return err_set(e, ERR_INVALID, "run_id is missing: ?run_id=run_...");
	case QUERY_BAD:
		return err_set(e, ERR_NOT_FOUND, "no such run");
	case QUERY_FOUND:
		break;
	}
	if (check_run_id(run_id, e) < 0)
		return -1;
	return parse_after(h, ret_after, e);
}

/*
 * True: the run ended and the client has all of it. A client that reconnects by
 * itself stops at 204 and at nothing else (WHATWG HTML, 9.2.3).
 */
static bool has_seen_all(struct store_reader *r, const char *run_id,
			 enum store_run_state state, int64_t after)
{
	AUTO_STORE_EVENTS events = {0};
	struct err e = ERR_INIT;

	return after > 0 && store_run_ended(state) &&
	       store_read_run_events(r,
				     &(struct store_run_query){.run_id = run_id,
							       .after_seq = after,
							       .max_events = 1,
							       .max_bytes = 1},
				     &events, &e) == 0 &&
	       events.n == 0;
}

void route_events(struct worker *w, struct http *h)
{
	static const struct reply done = {.status = 204};
	char run_id[STORE_RUN_ID_SIZE];
	enum store_run_state state;
	struct err e = ERR_INIT;
	int64_t after = 0;

	if (parse_events_query(h, run_id, &after, &e) < 0 ||
	    store_read_run_state(w->reader, STORE_TENANT_DEFAULT, run_id, &state, &e) <
		    0) {
		http_fail(h, &e);
		return;
	}
	if (has_seen_all(w->reader, run_id, state, after))
		http_answer(h, &done);
	else if (lot_take_place(w->edge->lot, &e) < 0)
		http_fail(h, &e);
	else
		stream_park(w->edge, h, run_id, after);
}

void route_run(struct worker *w, struct http *h)
{
	AUTO_BUF body = BUF_INIT(RUN_JSON_MAX);
	AUTO_JSON *run = NULL;
	char run_id[STORE_RUN_ID_SIZE], base_url[BASE_URL_MAX];
	struct runobj_opts opts;
	struct err e = ERR_INIT;
	struct reply r = {.status = 200, .type = "application/json"};

	mcp_base_url(w->edge->mcp, http_param(h, "REQUEST_SCHEME"),
		     http_param(h, "HTTP_HOST"), base_url, sizeof(base_url));
	opts = runobj_opts_full(base_url, w->edge->conf->mcp_path);
	if (captured_run_id(h, run_id, &e) < 0 ||
	    runobj_read(w->reader, STORE_TENANT_DEFAULT, run_id, &opts, &run, &e) < 0) {
		http_fail(h, &e);
		return;
	}
	json_dump_buf(run, &body);
	r.body = body.p;
	r.n = body.len;
	send_reply(w->edge, h, &r);
}

static int parse_stream(struct str name, enum store_stream *ret, struct err *e)
{
	if (str_eq(name, "stdout"))
		*ret = STORE_STDOUT;
	else if (str_eq(name, "stderr"))
		*ret = STORE_STDERR;
	else
		return err_set(e, ERR_NOT_FOUND, "the streams are stdout and stderr");
	return 0;
}

/* Which stored bytes are asked for, and how many; -1: not known before the end. */
static int find_output(struct worker *w, const struct http *h, const char *run_id,
		       struct store_output_query *q, int64_t *ret_total, struct err *e)
{
	char count[STR_COUNT_SIZE];
	AUTO_STORE_RUN run = {0};
	struct err odd = ERR_INIT; /* no number: no command either */
	char number[NUMBER_MAX];

	*q = (struct store_output_query){.run_id = run_id};
	if (parse_stream(h->capture[2], &q->stream, e) < 0)
		return -1;
	if (url_decode(h->capture[1], false, number, sizeof(number)) < 0 ||
	    num_parse(number, 0, INT32_MAX, &q->command_index, &odd) < 0)
		return err_set(e, ERR_NOT_FOUND, "no such command");
	if (store_read_run(w->reader, STORE_TENANT_DEFAULT, run_id, &run, e) < 0)
		return -1;
	for (size_t i = 0; i < run.ncommands; i++) {
		const struct store_command *c = &run.commands[i];

		if (c->index != q->command_index)
			continue;
		*ret_total = store_command_ended(c->status) ? c->stored[q->stream] : -1;
		return 0;
	}
	return err_set(e, ERR_NOT_FOUND, "the run has only %s",
		       str_count(count, (long long)run.ncommands, "command", "commands"));
}

void route_output(struct worker *w, struct http *h)
{
	char run_id[STORE_RUN_ID_SIZE];
	struct store_output_query q;
	struct err e = ERR_INIT;
	int64_t total = 0;
	/* Whatever a command printed: bytes, never a page. */
	struct reply head = {.status = 200,
			     .type = "application/octet-stream",
			     .headers = "Content-Security-Policy: sandbox\r\n"};

	if (captured_run_id(h, run_id, &e) < 0 ||
	    find_output(w, h, run_id, &q, &total, &e) < 0)
		http_fail(h, &e);
	else
		send_output(w->edge, h, &q, total, &head);
}
