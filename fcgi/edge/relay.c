/* SPDX-License-Identifier: MIT */
#include "edge/relay.h"

#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "edge/sstream.h"
#include "edge/ticket.h"
#include "wire/idenc.h"

static const struct {
	const char *kind;
	void (*take)(struct edge *edge, const char *session_id, const json_t *body);
} kinds[] = {
	{"frame", sstream_frame},   {"opened", sstream_opened},
	{"closed", sstream_closed}, {"changed", sstream_changed},
	{"answer", ticket_answer},  {"cancel", ticket_cancel},
};

void relay_received(struct edge *edge, const json_t *body)
{
	const char *session_id = json_get_string(body, "session_id");
	const char *kind = json_get_string(body, "kind");

	if (!session_id || !idenc_is_session_id(session_id) || !kind) {
		log_warn("a relayed message without session or kind");
		return;
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].kind, kind) == 0)
			kinds[i].take(edge, session_id, body);
}
