/* SPDX-License-Identifier: MIT */
#ifndef AGENT_CONN_H
#define AGENT_CONN_H

#include "agent/command.h"
#include "agent/fs.h"
#include "agent/loop.h"
#include "agent/out.h"
#include "agent/plan.h"
#include "wire/agentproto.h"

/*
 * The one connection to a runner. What it is owed is not queued but looked up:
 * whenever there is room in the output buffer, the commands and the file
 * requests are asked what they have, each in turn. So a slow runner costs no
 * memory, and a new connection simply starts to ask from other offsets.
 */
struct conn {
	struct watch watch; /* fd -1: nobody is connected */
	struct loop *loop;
	struct commands *commands;
	struct fs fs;
	struct ap_reader in;
	struct out out;
	struct plan plan; /* the start that is being received */
	bool in_start, is_duplicate;
	bool said_hello, is_resumed;
	unsigned version; /* both speak it; valid after hello */
	size_t turn;      /* which command is asked first */
};

void conn_init(struct conn *n, struct loop *l, struct commands *all);
/* Take over with a new connection; owns fd (non-blocking). */
void conn_accept(struct conn *n, int fd);
/* After each event: take in what came, send what is owed. */
void conn_turn(struct conn *n);

#endif
