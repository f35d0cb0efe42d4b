/* SPDX-License-Identifier: MIT */
#include "runner/startframe.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

enum {
	ARG_MAX_BYTES = 128 * 1024 - 1, /* Linux: MAX_ARG_STRLEN, with its NUL */
	STRINGS_MAX = AP_STRINGS_MAX,
};

enum { UID_SANDBOX = 1000 };

static void add_string(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s) + 1);
}

/* The agent adds what a login would have set: it knows the image's users. */
static uint32_t add_env(struct buf *b, const struct command_spec *c)
{
	uint32_t n = 0;

	for (char *const *e = c->env; e && *e; e++, n++)
		add_string(b, *e);
	return n;
}

static uint32_t add_argv(struct buf *b, const struct command_spec *c, bool script)
{
	uint32_t n = 0;

	if (c->shell) {
		add_string(b, "bash");
		add_string(b, script ? "-l" : "-lc");
		add_string(b, script ? "/dev/fd/0" : c->shell);
		return 3;
	}
	for (char *const *a = c->argv; *a; a++, n++)
		add_string(b, *a);
	return n;
}

static void send_data(struct agentconn *conn, const void *p, size_t n)
{
	const uint8_t *at = p;

	while (n > 0) {
		size_t part = n < AP_CHUNK_MAX ? n : AP_CHUNK_MAX;
		struct ap_msg m = {.type = AP_START_DATA};

		m.u.data.bytes = (struct ap_bytes){.p = at, .n = part};
		agentconn_send(conn, &m);
		at += part;
		n -= part;
	}
}

void startframe_send(struct agentconn *conn, const struct run *run, size_t index)
{
	const struct command_spec *c = &run->spec.commands[index];
	const struct conf *conf = run->sb->r->conf;
	AUTO_BUF strings = BUF_INIT(STRINGS_MAX);
	bool script = c->shell && strlen(c->shell) > ARG_MAX_BYTES;
	struct ap_msg m = {.type = AP_START_BEGIN};
	struct ap_start *s = &m.u.start;

	add_string(&strings, c->cwd);
	memcpy(s->id.run, run->id, sizeof(s->id.run));
	s->id.index = (uint32_t)index;
	s->argc = add_argv(&strings, c, script);
	s->envc = add_env(&strings, c);
	s->flags = (script ? (uint32_t)AP_START_SCRIPT : 0) |
		   (c->input ? (uint32_t)AP_START_STDIN : 0);
	s->uid = run->spec.as_root ? 0 : UID_SANDBOX;
	s->gid = AP_GID_OF_USER;
	s->timeout_ms = (uint32_t)c->timeout_ms;
	s->kill_grace_ms = (uint32_t)conf->kill_grace_ms;
	s->stdout_cap = (uint64_t)conf->stdout_max_bytes;
	s->stderr_cap = (uint64_t)conf->stderr_max_bytes;
	s->strings_bytes = (uint32_t)strings.len;
	s->script_bytes = script ? (uint32_t)strlen(c->shell) : 0;
	s->script_arg = script ? 2 : 0;
	agentconn_send(conn, &m);
	send_data(conn, strings.p, strings.len);
	if (script)
		send_data(conn, c->shell, strlen(c->shell));
	agentconn_send(conn, &(struct ap_msg){.type = AP_START_END});
}
