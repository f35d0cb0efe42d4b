/* SPDX-License-Identifier: MIT */
#include "mcp/progress.h"

#include <inttypes.h>
#include <string.h>

#include "base/auto.h"
#include "base/json.h"
#include "mcp/jsonrpc.h"

enum { TOKEN_MAX = 256, MESSAGE_MAX = PROGRESS_LINE_MAX + 100 };

void progress_init(struct progress *p, const json_t *params)
{
	const json_t *meta = json_object_get(params, "_meta");
	const json_t *token = json_object_get(meta, "progressToken");
	bool ok = json_is_integer(token) ||
		  (json_is_string(token) && json_string_length(token) <= TOKEN_MAX);

	*p = (struct progress){.token = ok ? token : NULL, .step = -1, .last_ms = -1};
}

static void end_line(struct progress *p)
{
	p->begun[p->nbegun] = '\0';
	if (p->nbegun > 0)
		memcpy(p->line, p->begun, p->nbegun + 1);
	p->nbegun = 0;
}

/* A stranger's bytes on their way to somebody's screen: nothing that steers it. */
static void take_byte(struct progress *p, unsigned char c)
{
	if (c == '\n' || c == '\r') {
		end_line(p);
		return;
	}
	if (c < 0x20 || c == 0x7f || (c == ' ' && p->nbegun == 0))
		return;
	if (p->nbegun < PROGRESS_LINE_MAX)
		p->begun[p->nbegun++] = (char)c;
}

static void take_output(struct progress *p, const char *data, size_t n)
{
	for (size_t i = 0; i < n; i++)
		take_byte(p, (unsigned char)data[i]);
}

/* Before the first command: what the sandbox waits for. */
static void take_words(struct progress *p, const struct store_event *ev)
{
	AUTO_JSON *data = NULL;
	struct err ignored = ERR_INIT;
	const char *words = NULL;

	if (json_parse(ev->data, ev->n, &data, &ignored) == 0)
		words = json_get_string(data, "message");
	if (!words)
		return;
	take_output(p, words, strlen(words));
	take_byte(p, '\n');
}

bool progress_note(struct progress *p, const struct store_event *ev)
{
	switch (ev->type) {
	case STORE_EVENT_COMMAND_STARTED:
		p->step = ev->command_index;
		p->line[0] = '\0';
		p->nbegun = 0;
		return true;
	case STORE_EVENT_COMMAND_STDOUT:
	case STORE_EVENT_COMMAND_STDERR:
		p->step = ev->command_index;
		take_output(p, ev->data, ev->n);
		return true;
	case STORE_EVENT_SANDBOX_PROGRESS:
		take_words(p, ev);
		return true;
	case STORE_EVENT_RUN_STARTED:
	case STORE_EVENT_COMMAND_FINISHED:
	case STORE_EVENT_ARTIFACTS_EXTRACTED:
	case STORE_EVENT_RUN_FINISHED:
	case STORE_EVENT_RUN_FAILED:
	case STORE_EVENT_TYPE_COUNT:
		break;
	}
	return false;
}

int64_t progress_elapsed(struct progress *p, int64_t mono_ms)
{
	int64_t ms = mono_ms - p->began_mono;

	p->last_ms = ms > p->last_ms ? ms : p->last_ms + 1;
	return p->last_ms;
}

static void add_message(const struct progress *p, struct buf *b)
{
	const char *line = p->line;
	size_t n = strlen(line);

	if (p->nbegun > 0) {
		line = p->begun;
		n = p->nbegun;
	}
	if (p->step < 0) {
		buf_puts(b, "waiting to start");
		if (n > 0)
			buf_puts(b, ": ");
		buf_add(b, line, n);
		return;
	}
	buf_printf(b, "command %" PRId64, p->step + 1);
	if (p->steps > 0)
		buf_printf(b, " of %zu", p->steps);
	buf_puts(b, n > 0 ? ": " : " runs");
	buf_add(b, line, n);
}

void progress_add(struct progress *p, int64_t elapsed_ms, struct buf *b)
{
	AUTO_BUF message = BUF_INIT(MESSAGE_MAX);
	AUTO_JSON *params = NULL;

	add_message(p, &message);
	params = json_pack("{s:O, s:f, s:o}", "progressToken", p->token, "progress",
			   (double)elapsed_ms / 1000.0, "message",
			   rpc_text(message.p, message.len));
	rpc_add_notification(b, "notifications/progress", params);
}
