/* SPDX-License-Identifier: MIT */
#ifndef TESTS_MCP_FAKE_H
#define TESTS_MCP_FAKE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/auto.h"
#include "base/json.h"
#include "stub.h"

/* Helpers to send a request to the MCP layer and look at what it does. */
static inline struct mcp_server *fake_server(void)
{
	struct conf c = fake_conf();
	struct mcp_server *s = NULL;
	struct err e = ERR_INIT;

	if (mcp_server_new(&c, &s, &e) < 0)
		fail_msg("%s", e.msg);
	return s;
}

static inline json_t *parsed(const char *p, size_t n)
{
	struct err e = ERR_INIT;
	json_t *v = NULL;

	if (json_parse(p, n, &v, &e) < 0)
		fail_msg("%s in %.*s", e.msg, (int)n, p);
	return v;
}

static inline json_t *reply_json(const struct mcp_call *c)
{
	struct mcp_reply r = mcp_call_reply(c);

	return parsed(r.body, r.body_len);
}

/* The runner's answer to what the call has just sent. Takes over body. */
static inline enum mcp_next answer(struct mcp_call *c, struct mcp_reads *r,
				   enum edgemsg_type type, json_t *body)
{
	struct edgemsg m = {.type = type, .id = 1, .body = body};
	enum mcp_next next;

	assert_non_null(body);
	next = mcp_call_answer(c, r, &m);
	json_decref(body);
	return next;
}

static inline const char *str_at(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	if (!s)
		fail_msg("no string %s", key);
	return s;
}

static inline const json_t *at(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (!v)
		fail_msg("no %s", key);
	return v;
}

#endif
