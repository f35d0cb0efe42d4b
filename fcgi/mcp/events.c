/* SPDX-License-Identifier: MIT */
#include "mcp/events.h"

#include <inttypes.h>

#include "mcp/jsonrpc.h"

/*
 * {run_id, index, chunk, truncated}, as the seed has it. This is the hot path of
 * streaming, hence no json_t.
 */
static void add_output(struct buf *b, const struct store_event *ev)
{
	buf_printf(b, "{\"run_id\":\"%s\",\"index\":%" PRId64 ",\"chunk\":", ev->run_id,
		   ev->command_index);
	rpc_add_string(b, ev->data, ev->n);
	buf_puts(b, ev->truncated ? ",\"truncated\":true}" : ",\"truncated\":false}");
}

/* JSON has line ends only between its tokens; in SSE they would end the field. */
static void add_one_line(struct buf *b, const char *p, size_t n)
{
	size_t i, from = 0;

	for (i = 0; i < n; i++) {
		if (p[i] != '\n' && p[i] != '\r')
			continue;
		buf_add(b, p + from, i - from);
		buf_puts(b, " ");
		from = i + 1;
	}
	buf_add(b, p + from, n - from);
}

void event_add_data(struct buf *b, const struct store_event *ev)
{
	if (store_event_is_output(ev->type))
		add_output(b, ev);
	else
		add_one_line(b, ev->data, ev->n);
}

void event_add_frame(struct buf *b, const struct store_event *ev)
{
	buf_printf(b, "id: %" PRId64 "\nevent: %s\ndata: ", ev->seq,
		   store_event_type_name(ev->type));
	event_add_data(b, ev);
	buf_puts(b, "\n\n");
}
