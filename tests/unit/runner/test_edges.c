/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/json.h"
#include "runner/edges.h"
#include "tests/unit/testdir.h"

/* The runner's ends alone: one edge, and guests at a socket of the test's own. */

struct rig {
	uv_loop_t loop;
	struct edges *all;
	char path[64];
	int pair[2], bell, listen_fd;
	int asked;
	struct replyto last; /* who asked */
};

static void on_request(void *arg, struct replyto to, const struct edgemsg *m)
{
	struct rig *t = arg;

	(void)m;
	t->last = to;
	t->asked++;
}

static struct sockaddr_un address(const struct rig *t)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", t->path);
	return a;
}

static void open_rig(struct rig *t)
{
	struct sockaddr_un a;
	struct err e = ERR_INIT;

	*t = (struct rig){.bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	snprintf(t->path, sizeof(t->path), "%s/edges-%d.sock", test_tmp(), (int)getpid());
	a = address(t);
	unlink(t->path);
	t->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(0, bind(t->listen_fd, (struct sockaddr *)&a, sizeof(a)));
	assert_int_equal(0, listen(t->listen_fd, 8));
	assert_int_equal(0, socketpair(AF_UNIX,
				       SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
				       t->pair));
	uv_loop_init(&t->loop);
	assert_int_equal(0, edges_new(&(struct edges_opts){.loop = &t->loop,
							   .n = 1,
							   .fds = &t->pair[1],
							   .doorbells = &t->bell,
							   .fn = on_request,
							   .arg = t},
				      &t->all, &e));
	assert_int_equal(0, edges_listen(t->all, t->listen_fd, &e));
	edges_hello(t->all);
}

static void close_rig(struct rig *t)
{
	edges_free(t->all);
	uv_run(&t->loop, UV_RUN_DEFAULT);
	assert_int_equal(0, uv_loop_close(&t->loop));
	close(t->pair[0]);
	close(t->pair[1]);
	close(t->bell);
	close(t->listen_fd);
	unlink(t->path);
}

/* A guest who has been greeted. */
static int enter(struct rig *t)
{
	struct sockaddr_un a = address(t);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct edgemsg m = {0};
	struct err e = ERR_INIT;
	int eof;

	assert_int_equal(0, connect(fd, (struct sockaddr *)&a, sizeof(a)));
	do {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		uv_run(&t->loop, UV_RUN_NOWAIT);
		if (poll(&p, 1, 0) > 0)
			break;
	} while (uv_run(&t->loop, UV_RUN_ONCE));
	assert_int_equal(1, edgemsg_recv(fd, &m, &eof, &e));
	assert_int_equal(MSG_HELLO, m.type);
	edgemsg_release(&m);
	return fd;
}

static struct replyto ask(struct rig *t, int fd)
{
	AUTO_JSON *body = json_object();
	struct err e = ERR_INIT;
	int before = t->asked;

	assert_int_equal(0, edgemsg_send(fd, MSG_STATUS, 7, body, &e));
	while (t->asked == before)
		uv_run(&t->loop, UV_RUN_ONCE);
	return t->last;
}

static bool hears(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

static void the_answer_of_a_guest_who_has_left_is_for_nobody(void **state)
{
	struct replyto gone, there;
	struct rig t;
	int fd;

	(void)state;
	open_rig(&t);
	fd = enter(&t);
	gone = ask(&t, fd);
	close(fd);
	uv_run(&t.loop, UV_RUN_NOWAIT); /* sees it leave */
	fd = enter(&t);                 /* in the same place, and with the same number */
	there = ask(&t, fd);
	assert_int_equal(gone.edge, there.edge);
	edges_ok(t.all, gone, json_object());
	edges_err(t.all, gone, &(struct err){.kind = ERR_BUSY});
	assert_false(hears(fd));
	edges_ok(t.all, there, json_object());
	assert_true(hears(fd));
	close(fd);
	close_rig(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_answer_of_a_guest_who_has_left_is_for_nobody),
	};

	return cmocka_run_group_tests_name("edges", tests, NULL, NULL);
}
