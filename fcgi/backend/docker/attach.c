/* SPDX-License-Identifier: MIT */
#include "backend/docker/attach.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "backend/docker/muxframe.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"

enum {
	FIRST_BYTES_MS = 15000,
	FIRST_BYTES_MAX = 256 * 1024,
	PART = 8192,
};

static int decode(void *state, const char *p, size_t n, struct buf *out)
{
	return muxframe_feed(state, p, n, out);
}

static const struct pump_codec mux_codec = {.decode = decode, .free = free};

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
	id = json_get_string(answer, "Id");
	if (!id || strlen(id) > 128 || strspn(id, "0123456789abcdef") != strlen(id))
		return err_set(e, ERR_BACKEND, "the engine made an exec without an id");
	*ret = xstrdup(id);
	return 0;
}

/* The words of a relay or of the engine on one line. */
static int ended(struct muxframe *m, struct err *e)
{
	size_t i;

	for (i = 0; i < m->nwords; i++)
		if ((unsigned char)m->words[i] < 0x20)
			m->words[i] = ' ';
	return err_set(e, ERR_BACKEND, "the agent is not reached in the container: %s",
		       m->nwords ? m->words : "its relay ended without a word");
}

/* Reads until the agent has spoken; what it said is appended to ready. */
static int first_bytes(struct hijack *j, struct muxframe *m, struct buf *ready,
		       struct err *e)
{
	int64_t deadline = clock_mono_ms() + FIRST_BYTES_MS, left;
	struct pollfd p = {.fd = hijack_fd(j), .events = POLLIN};
	char part[PART];
	ptrdiff_t n;

	while (ready->len == 0) {
		n = hijack_read(j, part, sizeof part);
		if (n == 0 || n == -2)
			return ended(m, e);
		if (n > 0 && muxframe_feed(m, part, (size_t)n, ready) < 0)
			return err_set(e, ERR_BACKEND,
				       "the engine's stream is not framed as Docker's");
		left = deadline - clock_mono_ms();
		if (left <= 0)
			return err_set(e, ERR_TIMEOUT,
				       "the agent in the container says nothing");
		if (n == -1 && poll(&p, 1, (int)left) < 0 && errno != EINTR)
			return err_sys(e, "poll");
	}
	return 0;
}

int attach_agent(struct docker *d, const char *name, int *ret_fd, struct err *e)
{
	AUTO_FREE char *id = NULL, *path = NULL;
	AUTO_JSON *body = json_must(json_pack("{s:b,s:b}", "Detach", 0, "Tty", 0));
	AUTO_BUF ready = BUF_INIT(FIRST_BYTES_MAX);
	struct muxframe *m;
	struct hijack *j = NULL;

	if (make_exec(d, name, &id, e) < 0)
		return -1;
	path = xasprintf("/exec/%s/start", id);
	if (engine_hijack(&d->engine, path, body, &j, e) < 0)
		return -1;
	m = xcalloc(1, sizeof *m);
	if (first_bytes(j, m, &ready, e) == 0)
		return pump_add(d->pump,
				&(struct pump_stream){.hijack = j,
						      .codec = &mux_codec,
						      .state = m,
						      .ready = &ready},
				ret_fd, e);
	hijack_close(j);
	free(m);
	return -1;
}
