/* SPDX-License-Identifier: MIT */
#include "mcp/logmsg.h"

#include <string.h>

#include "base/auto.h"
#include "base/json.h"
#include "mcp/events.h"

enum { LOG_MAX = 64 * 1024, EVENT_MAX = 64 * 1024 };

static const char *const levels[] = {"debug", "info",     "notice", "warning",
				     "error", "critical", "alert",  "emergency"};

int logmsg_level(const char *name)
{
	for (int i = 0; name && i < (int)(sizeof(levels) / sizeof(levels[0])); i++)
		if (strcmp(levels[i], name) == 0)
			return i;
	return -1;
}

/* ---- logging/setLevel */

static enum mcp_next others_told(struct mcp_call *c, const struct mcp_reads *r,
				 const json_t *ok, const struct err *why)
{
	(void)r;
	(void)ok;
	(void)why; /* they ask again within a second all the same */
	return call_result_text(c, "{}", 2);
}

static enum mcp_next level_set(struct mcp_call *c, const struct mcp_reads *r,
			       const json_t *ok, const struct err *why)
{
	(void)r;
	return ok ? call_session_changed(c, others_told) : call_failure(c, why);
}

enum mcp_next logging_set_level(struct mcp_call *c, const struct mcp_reads *r)
{
	const char *level = json_get_string(c->msg.params, "level");

	(void)r;
	if (logmsg_level(level) < 0)
		return call_error(c, RPC_BAD_PARAMS,
				  "params.level must be one of debug, info, notice, "
				  "warning, error, critical, alert, emergency");
	return call_send(c, MSG_SESSION_LEVEL,
			 json_pack("{s:s, s:s, s:s}", "tenant", c->tenant, "session_id",
				   c->session_id, "level", level),
			 level_set);
}

/* ---- the messages */

static const char *level_of(enum store_event_type type)
{
	switch (type) {
	case STORE_EVENT_SANDBOX_PROGRESS:
	case STORE_EVENT_RUN_STARTED:
	case STORE_EVENT_COMMAND_STARTED:
	case STORE_EVENT_COMMAND_FINISHED:
	case STORE_EVENT_ARTIFACTS_EXTRACTED:
	case STORE_EVENT_RUN_FINISHED:
		return "info";
	case STORE_EVENT_COMMAND_STDOUT:
	case STORE_EVENT_COMMAND_STDERR:
		return "debug";
	case STORE_EVENT_RUN_FAILED:
		return "error";
	case STORE_EVENT_TYPE_COUNT:
		break;
	}
	return NULL;
}

static void add_line(struct mcp_call *c, const char *level, json_t *data)
{
	AUTO_JSON *params = json_must(json_pack("{s:s, s:s, s:o}", "level", level,
						"logger", "run", "data", data));

	if (c->log.len > 0)
		buf_puts(&c->log, "\n");
	rpc_add_notification(&c->log, "notifications/message", params);
}

static void tell_left_out(struct mcp_call *c)
{
	if (c->log_left_out == 0)
		return;
	add_line(c, "warning",
		 json_pack("{s:I}", "messages_left_out", (json_int_t)c->log_left_out));
	c->log_left_out = 0;
}

bool logmsg_note(struct mcp_call *c, const struct store_event *ev)
{
	const char *level = level_of(ev->type);
	AUTO_BUF text = BUF_INIT(EVENT_MAX);
	struct err e = ERR_INIT;
	json_t *data = NULL;

	if (c->log_level < 0 || !level || logmsg_level(level) < c->log_level)
		return false;
	event_add_data(&text, ev);
	if (c->log.len + text.len > LOG_MAX || !buf_ok(&text) ||
	    json_parse(text.p, text.len, &data, &e) < 0) {
		c->log_left_out++;
		return true;
	}
	tell_left_out(c);
	add_line(c, level, data);
	return true;
}
