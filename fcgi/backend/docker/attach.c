/* SPDX-License-Identifier: MIT */
#include "backend/docker/attach.h"

#include <string.h>

#include "backend/docker/muxframe.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/mem.h"

enum {
	FIRST_BYTES_MS = 15000,
	FIRST_BYTES_MAX = 256 * 1024,
};

static int decode(void *state, const char *p, size_t n, struct buf *out)
{
	return muxframe_feed(state, p, n, out);
}

static const struct pump_codec mux_codec = {.decode = decode, .free = free};

const char *attach_exec_id(const json_t *answer)
{
	const char *id = json_get_string(answer, "Id");

	return id && *id && strlen(id) <= 128 &&
			       strspn(id, "0123456789abcdef") == strlen(id)
		       ? id
		       : NULL;
}

static int make_exec(struct docker *d, const char *name, char **ret, struct err *e)
{
	AUTO_FREE char *path = xasprintf("/containers/%s/exec", name);
	AUTO_JSON *body = json_must(
		json_pack("{s:b,s:b,s:b,s:b,s:s,s:[s,s,s,s]}", "AttachStdin", 1,
			  "AttachStdout", 1, "AttachStderr", 1, "Tty", 0, "User", "0",
			  "Cmd", DOCKER_AGENT, "connect", "--socket", DOCKER_SOCKET));
	struct engine_call c = {.method = "POST", .path = path, .json = body};
	AUTO_JSON *answer = NULL;
	const char *id;

	if (engine_call(&d->engine, &c, &answer, e) < 0)
		return -1;
	id = attach_exec_id(answer);
	if (!id)
		return err_set(e, ERR_BACKEND, "the engine made an exec without an id");
	*ret = xstrdup(id);
	return 0;
}

/* The words of a relay or of the engine on one line, else how the stream ended. */
static int not_reached(struct muxframe *m, struct err *e)
{
	struct err why = *e;
	size_t i;

	for (i = 0; i < m->nwords; i++)
		if ((unsigned char)m->words[i] < 0x20)
			m->words[i] = ' ';
	e->kind = ERR_NONE;
	return err_set(e, why.kind, "the agent is not reached in the container: %s",
		       m->nwords ? m->words : why.msg);
}

static int attach(struct docker *d, const char *name, int *ret_fd, struct err *e)
{
	AUTO_FREE char *id = NULL, *path = NULL;
	AUTO_JSON *body = json_must(json_pack("{s:b,s:b}", "Detach", 0, "Tty", 0));
	AUTO_BUF ready = BUF_INIT(FIRST_BYTES_MAX);
	struct pump_stream ps = {.codec = &mux_codec, .ready = &ready};
	struct muxframe *m;

	if (make_exec(d, name, &id, e) < 0)
		return -1;
	path = xasprintf("/exec/%s/start", id);
	if (engine_hijack(&d->engine, path, body, &ps.hijack, e) < 0)
		return -1;
	ps.state = m = xcalloc(1, sizeof *m);
	if (pump_first_bytes(&ps, FIRST_BYTES_MS, &ready, e) == 0)
		return pump_add(d->pump, &ps, ret_fd, e);
	not_reached(m, e);
	hijack_close(ps.hijack);
	free(m);
	return -1;
}

/*
 * The engine's "conflict" is about the container at this moment (paused, restarting),
 * and none about what ran in it: who asks looks whether it still runs.
 */
int attach_agent(struct docker *d, const char *name, int *ret_fd, struct err *e)
{
	if (attach(d, name, ret_fd, e) == 0)
		return 0;
	if (e->kind == ERR_CONFLICT)
		e->kind = ERR_BACKEND;
	return -1;
}
