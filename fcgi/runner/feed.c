/* SPDX-License-Identifier: MIT */
#include "runner/feed.h"

#include <string.h>

static const char *input_of(const struct run *run)
{
	return run->at < run->spec.ncommands ? run->spec.commands[run->at].input : NULL;
}

static void send_part(struct run *run, const char *input, uint64_t from, size_t n)
{
	struct ap_msg m = {.type = n ? AP_STDIN : AP_STDIN_EOF};

	memcpy(m.u.stdin_data.id.run, run->id, sizeof(run->id));
	m.u.stdin_data.id.index = (uint32_t)run->at;
	m.u.stdin_data.offset = from;
	m.u.stdin_data.bytes = (struct ap_bytes){(const uint8_t *)input + from, n};
	agentconn_send(run->sb->conn, &m);
}

static void feed(struct run *run, const char *input)
{
	struct command *c = &run->cmds[run->at];
	uint64_t n = strlen(input), until = c->in_taken + AP_STDIN_WINDOW;

	if (until > n)
		until = n;
	while (c->in_sent < until) {
		size_t part = (size_t)(until - c->in_sent);

		if (part > AP_CHUNK_MAX)
			part = AP_CHUNK_MAX;
		send_part(run, input, c->in_sent, part);
		c->in_sent += part;
	}
	if (c->in_sent == n && !c->in_ended) {
		c->in_ended = true;
		send_part(run, input, n, 0);
	}
}

void feed_begin(struct run *run)
{
	const char *input = input_of(run);
	struct command *c = &run->cmds[run->at];

	c->in_taken = c->in_sent = 0;
	c->in_ended = false;
	if (input)
		feed(run, input);
}

void feed_taken(struct run *run, uint64_t offset)
{
	const char *input = input_of(run);
	struct command *c = &run->cmds[run->at];

	if (!input || offset > strlen(input) || offset < c->in_taken)
		return; /* none of ours, or an agent's lie */
	c->in_taken = offset;
	if (c->in_sent < offset)
		c->in_sent = offset;
	feed(run, input);
}

void feed_link_lost(struct run *run)
{
	if (run->at >= run->spec.ncommands)
		return;
	run->cmds[run->at].in_sent = run->cmds[run->at].in_taken;
	run->cmds[run->at].in_ended = false;
}
