/* SPDX-License-Identifier: MIT */
#include "harness.h"

#include <sched.h>
#include <time.h>

static struct ap_offsets stored(const struct result *r)
{
	return (struct ap_offsets){r->id, r->len[0], r->len[1]};
}

/* 64 sudden ends of the connection while a command prints. */
static void output_is_whole_over_many_reconnects(void **state)
{
	const char *argv[] = {
		"bash", "-c",
		"for ((i=0;;i++)); do echo line $i; "
		"if ((i % 100 == 0)) && [ -e $D/enough ]; then exit; fi; done",
		NULL};
	char var[100];
	const char *env[] = {var, NULL};
	struct command_spec s = {.argv = argv, .env = env, .cap = 1 << 30};
	struct result r = {.id = next_id()};
	unsigned reconnects = 0, messages = 0;
	struct ap_offsets o;
	struct ap_msg m;
	char *p, *want;

	(void)state;
	snprintf(var, sizeof(var), "D=%s", h.dir);
	client_connect(NULL, 0);
	send_start(&s, r.id);
	while (!r.is_ended) {
		assert_true(client_next(&m, PATIENCE_MS));
		result_take(&r, &m);
		if (reconnects < 64 && ++messages % 3 == 0) {
			o = stored(&r);
			client_connect(&o, 1);
			if (++reconnects == 64)
				touch_in_dir("enough");
		}
	}
	unlink_in_dir("enough");
	assert_int_equal(reconnects, 64);
	p = want = malloc(r.len[0] + 100);
	for (int i = 0; p - want < (ptrdiff_t)r.len[0]; i++)
		p += snprintf(p, 32, "line %d\n", i);
	assert_int_equal(p - want, r.len[0]);
	assert_memory_equal(want, r.out[0], r.len[0]);
	free(want);
	forget(&r.id);
	result_free(&r);
}

static void hello_lists_what_is_known(void **state)
{
	const char *argv[] = {"sleep", "30", NULL};
	struct command_spec s = {.argv = argv};
	struct result r = {.id = next_id()};
	struct ap_known k;
	uint8_t boot[16];

	(void)state;
	client_connect(NULL, 0);
	assert_int_equal(h.c.hello.known.n, 0);
	memcpy(boot, h.c.hello.boot_id, 16);
	send_start(&s, r.id);
	sync_agent();
	client_connect(NULL, 0);
	assert_memory_equal(boot, h.c.hello.boot_id, 16);
	assert_int_equal(ap_known_next(&h.c.hello.known, &k), 1);
	assert_true(ap_id_equal(&k.id, &r.id));
	assert_int_equal(k.state, AP_RUNNING);
	assert_int_equal(ap_known_next(&h.c.hello.known, &k), 0);
	send_cancel(&r.id, 0);
	await_exit(&r);
	assert_int_equal(r.exit.value, SIGKILL);
	assert_int_equal(r.exit.flags, AP_EXIT_CANCELED);
	forget(&r.id);
	sync_agent();
	client_connect(NULL, 0);
	assert_int_equal(h.c.hello.known.n, 0);
	result_free(&r);
}

static void nothing_is_sent_before_resume(void **state)
{
	const char *argv[] = {"echo", "x", NULL};
	struct command_spec s = {.argv = argv};
	struct result r = {.id = next_id()};
	struct ap_msg m;

	(void)state;
	client_connect(NULL, 0);
	send_start(&s, r.id);
	sync_agent();
	client_connect_only();
	assert_false(client_next(&m, 200));
	client_connect(NULL, 0);
	await_exit(&r);
	assert_string_equal(r.out[0], "x\n");
	forget(&r.id);
	result_free(&r);
}

static void a_repeated_start_runs_once(void **state)
{
	const char *argv[] = {"sh", "-c",
			      "while [ ! -e $F.go ]; do sleep 0.01; done; "
			      "echo once >>$F; cat $F",
			      NULL};
	char file[128], go[140], var[140];
	const char *env[] = {var, NULL};
	struct command_spec s = {.argv = argv, .env = env};
	struct result r = {.id = next_id()};

	(void)state;
	snprintf(file, sizeof(file), "%s/once", h.dir);
	snprintf(var, sizeof(var), "F=%s", file);
	client_connect(NULL, 0);
	send_start(&s, r.id);
	send_start(&s, r.id);
	sync_agent();
	snprintf(go, sizeof(go), "%s.go", file);
	close(open(go, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	await_exit(&r);
	assert_string_equal(r.out[0], "once\n");
	r.is_ended = r.is_started = false;
	send_start(&s, r.id); /* it has ended: told again */
	await_exit(&r);
	assert_true(r.is_started);
	assert_string_equal(r.out[0], "once\n");
	forget(&r.id);
	result_free(&r);
	unlink(file);
	unlink(go);
}

/* A runner that was killed had the start from us, and from it the next has nothing. */
static void a_repeated_start_tells_what_was_not_acknowledged(void **state)
{
	const char *argv[] = {"sh", "-c", "echo out; echo err >&2", NULL};
	struct command_spec s = {.argv = argv};
	struct result r = {.id = next_id()};
	struct ap_msg m = {.type = AP_STARTED};

	(void)state;
	client_connect(NULL, 0);
	send_start(&s, r.id);
	while (m.type != AP_EXIT)
		assert_true(client_next(&m, PATIENCE_MS));
	client_connect(NULL, 0);
	m.type = AP_STARTED;
	while (m.type != AP_EXIT) /* to a runner that is at the command before it */
		assert_true(client_next(&m, PATIENCE_MS));
	send_start(&s, r.id);
	await_exit(&r);
	assert_string_equal(r.out[0], "out\n");
	assert_string_equal(r.out[1], "err\n");
	forget(&r.id);
	result_free(&r);
}

/*
 * On our processor and after us: the agent sees what we do until we wait for it at
 * once. (Stopping it would not do: its epoll_wait() ends with EINTR then.)
 */
static void keep_agent_behind(void)
{
	struct sched_param none = {0};
	cpu_set_t set;
	int cpu = sched_getcpu();

	assert_true(cpu >= 0);
	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
	assert_int_equal(sched_setaffinity(h.pid, sizeof(set), &set), 0);
	assert_int_equal(sched_setscheduler(h.pid, SCHED_IDLE, &none), 0);
}

static void free_agent(const cpu_set_t *set)
{
	struct sched_param none = {0};

	assert_int_equal(sched_setaffinity(0, sizeof(*set), set), 0);
	assert_int_equal(sched_setaffinity(h.pid, sizeof(*set), set), 0);
	assert_int_equal(sched_setscheduler(h.pid, SCHED_OTHER, &none), 0);
}

/* It waits for an event: all that was sent has been read. */
static void await_sleep(void)
{
	const struct timespec t = {.tv_nsec = 1000000};
	char path[64], line[256], state = 'R';

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)h.pid);
	while (state != 'S') {
		FILE *f = fopen(path, "r");

		assert_non_null(f);
		assert_non_null(fgets(line, sizeof(line), f));
		fclose(f);
		assert_int_equal(sscanf(strrchr(line, ')'), ") %c", &state), 1);
		nanosleep(&t, NULL);
	}
}

/*
 * The agent finds the start, and behind it the end or the successor. On a busy machine
 * it may see the successor before the start is sent: that round shows nothing.
 */
static void a_start_unread(bool evicted)
{
	enum { ROUNDS = 20 };
	const char *argv[] = {"echo", "ran", NULL};
	struct command_spec s = {.argv = argv};
	cpu_set_t set;
	int late = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	keep_agent_behind();
	for (int i = 0; i < ROUNDS; i++) {
		struct result r = {.id = next_id()};
		struct ap_offsets o = stored(&r);
		int old, next = -1;

		client_connect(NULL, 0);
		sync_agent();
		await_sleep();
		if (evicted)
			next = client_dial();
		h.c.may_be_over = evicted;
		send_start(&s, r.id);
		h.c.may_be_over = false;
		old = h.c.fd;
		h.c.fd = -1;
		if (!evicted) {
			close(old);
			next = client_dial();
		}
		client_greet(next);
		client_resume(&o, 1);
		do {
			struct ap_msg m;

			assert_true(client_next(&m, PATIENCE_MS));
			result_take(&r, &m);
		} while (!r.is_ended && !r.is_gone);
		late += r.is_gone;
		if (!r.is_gone)
			assert_string_equal(r.out[0], "ran\n");
		if (evicted)
			close(old);
		forget(&r.id);
		result_free(&r);
	}
	free_agent(&set);
	assert_in_range(late, 0, evicted ? ROUNDS - 1 : 0);
}

static void a_start_that_is_unread_at_the_end_of_the_runner_is_done(void **state)
{
	(void)state;
	a_start_unread(false);
}

static void a_start_that_is_unread_when_the_next_runner_comes_is_done(void **state)
{
	(void)state;
	a_start_unread(true);
}

static void who_is_forgotten_is_gone(void **state)
{
	struct result r = run_sh("echo");
	struct ap_offsets o = stored(&r);
	struct ap_msg m;

	(void)state;
	sync_agent();
	client_connect(&o, 1);
	while (!r.is_gone) {
		assert_true(client_next(&m, PATIENCE_MS));
		result_take(&r, &m);
	}
	result_free(&r);
}

static void forget_does_not_touch_what_runs(void **state)
{
	const char *argv[] = {
		"sh", "-c", "until [ -e $D/go ]; do sleep 0.02; done; echo still", NULL};
	char var[100];
	const char *env[] = {var, NULL};
	struct command_spec s = {.argv = argv, .env = env};
	struct result r = {.id = next_id()};

	(void)state;
	snprintf(var, sizeof(var), "D=%s", h.dir);
	client_connect(NULL, 0);
	send_start(&s, r.id);
	send_forget(&r.id);
	sync_agent();
	touch_in_dir("go");
	await_exit(&r);
	unlink_in_dir("go");
	assert_string_equal(r.out[0], "still\n");
	forget(&r.id);
	result_free(&r);
}

static void output_waits_for_a_runner_that_is_away(void **state)
{
	const char *argv[] = {"sh", "-c", "head -c 3000000 /dev/zero; echo end >&2",
			      NULL};
	struct command_spec s = {.argv = argv, .cap = 1 << 30};
	struct result r = {.id = next_id()};
	struct ap_known k;

	(void)state;
	client_connect(NULL, 0);
	send_start(&s, r.id);
	sync_agent();
	client_connect_only();
	usleep(300000);
	client_connect(NULL, 0);
	assert_int_equal(ap_known_next(&h.c.hello.known, &k), 1);
	assert_int_equal(k.state, AP_RUNNING); /* the ring is full, it waits */
	await_exit(&r);
	assert_int_equal(r.len[0], 3000000);
	assert_string_equal(r.out[1], "end\n");
	assert_int_equal(r.exit.flags, 0);
	forget(&r.id);
	result_free(&r);
}

static void a_new_connection_evicts_the_old(void **state)
{
	struct client old;
	struct pollfd p;
	uint8_t buf[256];
	struct ap_msg m;
	size_t used;
	ssize_t n;

	(void)state;
	client_connect(NULL, 0);
	sync_agent();
	old.fd = h.c.fd;
	h.c.fd = -1;
	client_connect(NULL, 0);
	sync_agent();
	p = (struct pollfd){.fd = old.fd, .events = POLLIN};
	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	n = recv(old.fd, buf, sizeof(buf), 0);
	assert_int_equal(ap_decode(buf, (size_t)n, AP_FROM_AGENT, &m, &used), AP_OK);
	assert_int_equal(m.type, AP_BYE);
	assert_int_equal(m.u.bye.reason, AP_BYE_EVICTED);
	assert_int_equal(recv(old.fd, buf, sizeof(buf), 0), 0);
	close(old.fd);
}

/* The agent closes, and serves the next connection as before. */
static void assert_thrown_out(enum ap_bye_reason reason)
{
	struct ap_msg m;

	assert_true(client_next(&m, PATIENCE_MS));
	assert_int_equal(m.type, AP_BYE);
	assert_int_equal(m.u.bye.reason, reason);
	assert_false(client_next(&m, PATIENCE_MS));
	assert_int_equal(h.c.fd, -1);
}

static void a_bad_frame_ends_the_connection_only(void **state)
{
	static const uint8_t nonsense[] = {255, 255, 255, 255, 9, 9, 9, 9};
	struct ap_msg data = {.type = AP_START_END}, hello = ap_hello_init();
	struct ap_msg out = {.type = AP_RESUME};
	struct result r;

	(void)state;
	client_connect(NULL, 0);
	sync_agent();
	assert_int_equal(send(h.c.fd, nonsense, 8, 0), 8);
	assert_thrown_out(AP_BYE_BAD_FRAME);
	client_connect(NULL, 0);
	client_send(&data); /* an end without a begin */
	assert_thrown_out(AP_BYE_BAD_FRAME);
	client_connect_only();
	client_send(&data); /* before RESUME */
	assert_thrown_out(AP_BYE_BAD_FRAME);
	client_connect(NULL, 0);
	client_send(&out); /* twice */
	assert_thrown_out(AP_BYE_BAD_FRAME);
	client_connect_only();
	client_send(&hello); /* twice */
	assert_thrown_out(AP_BYE_BAD_FRAME);
	r = run_sh("echo fine");
	assert_string_equal(r.out[0], "fine\n");
	result_free(&r);
}

static void random_bytes_never_hurt(void **state)
{
	uint8_t noise[4096];
	struct result r;
	unsigned seed = 7;

	(void)state;
	for (int i = 0; i < 300; i++) {
		client_connect(NULL, 0);
		for (size_t k = 0; k < sizeof(noise); k++)
			noise[k] = (uint8_t)rand_r(&seed);
		/* A plausible header leads deeper into the decoder. */
		noise[1] = noise[2] = noise[3] = noise[5] = noise[6] = noise[7] = 0;
		noise[4] = (uint8_t)(2 + i % (AP_TYPE_COUNT - 2));
		send(h.c.fd, noise, sizeof(noise), MSG_NOSIGNAL);
	}
	client_connect(NULL, 0);
	r = run_sh("echo fine");
	assert_string_equal(r.out[0], "fine\n");
	result_free(&r);
}

/* What a short command has to say comes at once, and wakes the runner once. */
static void a_short_command_is_told_in_one_go(void **state)
{
	const char *argv[] = {"true", NULL};
	struct command_spec s = {.argv = argv};
	struct pollfd p;
	struct ap_msg m;
	uint8_t buf[512];
	int in_one = 0;

	(void)state;
	client_connect(NULL, 0);
	for (int i = 0; i < 500 && in_one < 5; i++) {
		struct ap_id id = next_id();
		size_t used = 0;
		ssize_t n;

		sync_agent();
		send_start(&s, id);
		p = (struct pollfd){.fd = h.c.fd, .events = POLLIN};
		assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
		n = recv(h.c.fd, buf, sizeof(buf), MSG_PEEK);
		assert_int_equal(ap_decode(buf, (size_t)n, AP_FROM_AGENT, &m, &used),
				 AP_OK);
		assert_int_equal(m.type, AP_STARTED);
		in_one += ap_decode(buf + used, (size_t)n - used, AP_FROM_AGENT, &m,
				    &used) == AP_OK &&
			  m.type == AP_EXIT;
		while (client_next(&m, PATIENCE_MS) && m.type != AP_EXIT)
			;
		send_forget(&id);
	}
	assert_true(in_one > 0); /* all, but on a machine that is very busy */
}

static void a_long_command_is_told_to_have_started(void **state)
{
	const char *argv[] = {"sleep", "30", NULL};
	struct command_spec s = {.argv = argv};
	struct result r = {.id = next_id()};
	struct ap_msg m;

	(void)state;
	client_connect(NULL, 0);
	send_start(&s, r.id);
	assert_true(client_next(&m, PATIENCE_MS));
	assert_int_equal(m.type, AP_STARTED);
	send_cancel(&r.id, 0);
	await_exit(&r);
	forget(&r.id);
	result_free(&r);
}

/* On a machine without /artifacts; what "empty" is: test_parts.c. */
static void only_a_runner_that_knows_is_told_of_no_artifacts(void **state)
{
	struct ap_msg m = {.type = AP_RESUME};
	struct result r;

	(void)state;
	if (access(AP_ARTIFACTS, F_OK) == 0)
		skip();
	client_connect(NULL, 0);
	r = run_sh("true");
	assert_true(r.no_artifacts);
	result_free(&r);
	h.hello_version = 1;
	client_connect_only();
	client_send(&m);
	r = run_sh("true");
	assert_false(r.no_artifacts);
	result_free(&r);
	h.hello_version = 0;
	client_connect(NULL, 0);
}

static void the_number_of_commands_is_bounded(void **state)
{
	const char *argv[] = {"true", NULL};
	struct command_spec s = {.argv = argv, .cap = UINT64_MAX};
	struct result r = {.id = {.index = 0}};
	uint32_t first = h.next_index;

	(void)state;
	client_connect(NULL, 0);
	for (int i = 0; i < AP_COMMANDS_MAX; i++) {
		r = (struct result){.id = next_id()};
		send_start(&s, r.id);
		await_exit(&r);
		assert_int_equal(r.exit.how, AP_EXITED);
	}
	r = (struct result){.id = next_id()};
	send_start(&s, r.id);
	await_exit(&r);
	assert_int_equal(r.exit.how, AP_SPAWN_FAILED);
	assert_int_equal(r.exit.stage, AP_STAGE_LIMIT);
	client_connect(NULL, 0); /* the longest HELLO */
	for (uint32_t i = first; i < h.next_index; i++) {
		r.id.index = i;
		send_forget(&r.id);
	}
	sync_agent();
	r = run_sh("echo fine");
	assert_string_equal(r.out[0], "fine\n");
	result_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hello_lists_what_is_known),
		cmocka_unit_test(output_is_whole_over_many_reconnects),
		cmocka_unit_test(nothing_is_sent_before_resume),
		cmocka_unit_test(a_repeated_start_runs_once),
		cmocka_unit_test(a_repeated_start_tells_what_was_not_acknowledged),
		cmocka_unit_test(a_start_that_is_unread_at_the_end_of_the_runner_is_done),
		cmocka_unit_test(
			a_start_that_is_unread_when_the_next_runner_comes_is_done),
		cmocka_unit_test(who_is_forgotten_is_gone),
		cmocka_unit_test(forget_does_not_touch_what_runs),
		cmocka_unit_test(output_waits_for_a_runner_that_is_away),
		cmocka_unit_test(a_new_connection_evicts_the_old),
		cmocka_unit_test(a_bad_frame_ends_the_connection_only),
		cmocka_unit_test(random_bytes_never_hurt),
		cmocka_unit_test(a_short_command_is_told_in_one_go),
		cmocka_unit_test(a_long_command_is_told_to_have_started),
		cmocka_unit_test(only_a_runner_that_knows_is_told_of_no_artifacts),
		cmocka_unit_test(the_number_of_commands_is_bounded),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, agent_start, agent_stop);
}
