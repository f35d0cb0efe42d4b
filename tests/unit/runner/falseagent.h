/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FALSEAGENT_H
#define TESTS_FALSEAGENT_H

#include "rig.h"
#include "wire/agentproto.h"

/*
 * An agent that lies: blocking, in a thread of the runner's process. Each call is
 * false when the runner has closed the connection.
 */
struct liar {
	int fd;
	int nth;         /* connection to this sandbox, from 1 */
	struct ap_id id; /* of the last START_BEGIN */
	struct ap_reader in;
};

static inline bool liar_raw(struct liar *a, const void *p, size_t n)
{
	struct err e = ERR_INIT;

	return io_write_all(a->fd, p, n, &e) == 0;
}

static inline bool liar_say(struct liar *a, const struct ap_msg *m)
{
	static __thread uint8_t frame[AP_FRAME_MAX];

	return liar_raw(a, frame, ap_encode(m, frame, sizeof(frame)));
}

static inline bool liar_hello(struct liar *a, uint8_t boot)
{
	struct ap_msg m = ap_hello_init();

	m.u.hello.boot_id[0] = boot;
	return liar_say(a, &m);
}

/* The next message of that type; others are passed over. */
static inline bool liar_hear(struct liar *a, enum ap_type type, struct ap_msg *m)
{
	for (;;) {
		enum ap_result r = ap_reader_next(&a->in, AP_FROM_RUNNER, m);
		size_t room;
		void *p;
		ssize_t n;

		if (r == AP_OK && m->type == AP_START_BEGIN)
			a->id = m->u.start.id;
		if (r == AP_OK && m->type == type)
			return true;
		if (r == AP_OK)
			continue;
		p = ap_reader_space(&a->in, &room);
		n = recv(a->fd, p, room, 0);
		if (r == AP_BAD || n <= 0)
			return false;
		ap_reader_fed(&a->in, (size_t)n);
	}
}

/* As a telling of a.id begins. */
static inline bool liar_started(struct liar *a)
{
	struct ap_msg m = {.type = AP_STARTED};

	m.u.started.id = a->id;
	return liar_say(a, &m);
}

static inline bool liar_output(struct liar *a, uint64_t offset, const void *p, size_t n)
{
	struct ap_msg m = {.type = AP_OUTPUT};

	m.u.output.id = a->id;
	m.u.output.offset = offset;
	m.u.output.bytes = (struct ap_bytes){p, n};
	return liar_say(a, &m);
}

static inline bool liar_exit(struct liar *a, uint64_t kept)
{
	struct ap_msg m = {.type = AP_EXIT};

	m.u.exit.id = a->id;
	m.u.exit.stdout_kept = m.u.exit.stdout_total = kept;
	return liar_say(a, &m);
}

static inline bool liar_fs_end(struct liar *a, uint32_t req, uint32_t error)
{
	struct ap_msg m = {.type = AP_FS_END};

	m.u.fs_end.req = req;
	m.u.fs_end.error = error;
	return liar_say(a, &m);
}

/* One entry of a listing. */
static inline bool liar_entry(struct liar *a, uint32_t req, const struct ap_entry *entry)
{
	uint8_t buf[AP_PATH_MAX + 256];
	struct ap_msg m = {.type = AP_FS_ENTRIES};

	m.u.fs_entries.req = req;
	m.u.fs_entries.entries =
		(struct ap_bytes){buf, ap_entry_put(buf, sizeof(buf), entry)};
	return liar_say(a, &m);
}

#endif
