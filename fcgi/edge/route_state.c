/* SPDX-License-Identifier: MIT */
#include "edge/routes.h"

#include "base/clock.h"
#include "edge/probe.h"
#include "edge/sender.h"

enum { PAGE_MAX = 1024 * 1024, RUNS_SHOWN = 50 };

void route_metrics(struct worker *w, struct http *h)
{
	probe_answer(w->edge, h, PROBE_METRICS);
}

void route_ready(struct worker *w, struct http *h)
{
	probe_answer(w->edge, h, PROBE_READY);
}

/* This process is alive and answers; nothing else is looked at. */
void route_health(struct worker *w, struct http *h)
{
	static const char body[] = "{\"ok\":true}";
	struct reply r = {.status = 200,
			  .type = "application/json",
			  .body = body,
			  .n = sizeof(body) - 1};

	(void)w;
	http_answer(h, &r);
}

static void add_html(struct buf *b, const char *s)
{
	for (; *s; s++) {
		switch (*s) {
		case '<':
			buf_puts(b, "&lt;");
			break;
		case '>':
			buf_puts(b, "&gt;");
			break;
		case '&':
			buf_puts(b, "&amp;");
			break;
		case '"':
			buf_puts(b, "&quot;");
			break;
		default:
			buf_add(b, s, 1);
		}
	}
}

static void add_row(struct buf *b, const char *mcp_path, const struct store_run *run)
{
	char created[CLOCK_RFC3339_SIZE];

	buf_puts(b, "<tr><td><a href=\"");
	add_html(b, mcp_path);
	buf_printf(b, "/runs/%s\">%s</a><td>", run->run_id, run->run_id);
	add_html(b, run->identifier);
	buf_printf(b, "<td>%s<td>%s<td>", store_run_state_name(run->state),
		   clock_format_rfc3339(run->created_at, created));
	add_html(b, run->error ? run->error : "");
	buf_puts(b, "\n");
}

void route_debug(struct worker *w, struct http *h)
{
	AUTO_STORE_RUNS runs = {0};
	AUTO_BUF page = BUF_INIT(PAGE_MAX);
	struct err e = ERR_INIT;
	struct reply r = {.status = 200,
			  .type = "text/html; charset=utf-8",
			  .headers = "Content-Security-Policy: default-src 'none'; "
				     "style-src 'unsafe-inline'\r\n"};

	if (!w->edge->conf->debug_ui)
		err_set(&e, ERR_NOT_FOUND, "the debug page is off (DEBUG_UI_ENABLED)");
	else
		store_read_recent_runs(w->reader, NULL, RUNS_SHOWN, &runs, &e);
	if (e.kind != ERR_NONE) {
		http_fail(h, &e);
		return;
	}
	buf_puts(&page,
		 "<!doctype html><title>mcp-sandboxd</title><style>body{font:14px "
		 "monospace}td,th{padding:2px 12px;text-align:left}</style>\n"
		 "<h1>Newest runs</h1><table><tr><th>run<th>identifier<th>state<th>"
		 "created<th>error\n");
	for (size_t i = 0; i < runs.n; i++)
		add_row(&page, w->edge->conf->mcp_path, &runs.v[i]);
	buf_puts(&page, "</table>\n");
	r.body = page.p;
	r.n = page.len;
	send_reply(w->edge, h, &r);
}
