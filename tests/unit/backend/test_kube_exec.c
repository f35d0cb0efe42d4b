/* SPDX-License-Identifier: MIT */
#include "fakekube.h"

#include <fcntl.h>

#include "backend/kubernetes/api/exec.h"

/*
 * A server, a pump, and what is told of a stream's end. serve() is the other end of
 * each exec, by one of the functions below.
 */
struct world {
	struct fakekube k;
	struct conf conf;
	struct kube_api *api;
	struct pump *pump;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	char ended[512]; /* under lock */
};

static void world_open(struct world *w, const struct fakekube_step *steps)
{
	struct err e = ERR_INIT;

	*w = (struct world){0};
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, NULL);
	fakekube_start(&w->k, steps);
	w->conf.kubeconfig = fakekube_kubeconfig(&w->k);
	if (kube_api_open(&(struct kube_credentials_args){.conf = &w->conf}, &w->api,
			  &e) < 0 ||
	    pump_start(&w->pump, &e) < 0)
		fail_msg("%s", e.msg);
}

static void world_close(struct world *w)
{
	pump_stop(w->pump);
	kube_api_close(w->api);
	free(w->conf.kubeconfig);
	fakekube_stop(&w->k);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->changed);
}

static void on_ended(void *arg, const char *pod, const struct err *why)
{
	struct world *w = arg;

	pthread_mutex_lock(&w->lock);
	snprintf(w->ended, sizeof w->ended, "%s: %.400s", pod, why->msg);
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

static void await_end(struct world *w, const char *words)
{
	pthread_mutex_lock(&w->lock);
	while (!*w->ended)
		pthread_cond_wait(&w->changed, &w->lock);
	pthread_mutex_unlock(&w->lock);
	if (!strstr(w->ended, words))
		fail_msg("%s", w->ended);
}

static int open_exec(struct world *w, int *fd, struct kube_status *s, struct err *e)
{
	static const char *const argv[] = {"/agent", "connect", "a b", NULL};

	return kube_exec_open(w->api, w->pump,
			      &(struct kube_exec){.pod = "p1",
						  .container = "c",
						  .argv = argv,
						  .ended = on_ended,
						  .arg = w,
						  .status = s},
			      fd, e);
}

static void read_exactly(int fd, char *p, size_t n)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	size_t at = 0;
	ssize_t got;

	while (at < n) {
		assert_int_equal(poll(&pfd, 1, 60000), 1);
		got = read(fd, p + at, n - at);
		assert_true(got > 0);
		at += (size_t)got;
	}
}

static bool is_at_end(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	char c;

	return poll(&pfd, 1, 60000) == 1 && read(fd, &c, 1) == 0;
}

#define EXEC      "GET /api/v1/namespaces/sbx/pods/p1/exec?"
#define OK_STATUS "{\"metadata\":{},\"status\":\"Success\"}"
#define EXIT_STATUS(code)                                                                \
	"{\"metadata\":{},\"status\":\"Failure\",\"message\":\"command terminated\","    \
	"\"reason\":\"NonZeroExitCode\",\"details\":{\"causes\":[{\"reason\":"           \
	"\"ExitCode\",\"message\":\"" #code "\"}]}}"

static void say(int fd, int channel, const char *text)
{
	fakekube_ws_send(fd, channel, text, strlen(text));
}

static void say_close(int fd, const char *code_and_reason, size_t n)
{
	fakekube_ws_frame(fd, 0x88, -1, code_and_reason, n);
}

/* Sends back on standard output what comes on standard input. */
static void echo(int fd)
{
	static char part[70000];
	ptrdiff_t n;
	int op;

	while ((n = fakekube_ws_recv(fd, part, sizeof part, &op)) > 0)
		if (op == 2 && part[0] == 0)
			fakekube_ws_send(fd, 1, part + 1, (size_t)n - 1);
}

static void serve_v5_echo(struct fakekube *k, int fd, const char *request)
{
	(void)k;
	fakekube_ws_accept(fd, request, "v5.channel.k8s.io");
	say(fd, 1, ""); /* "open", which is not "started" */
	say(fd, 1, "hello");
	echo(fd);
}

static void serve_v4_echo(struct fakekube *k, int fd, const char *request)
{
	(void)k;
	fakekube_ws_accept(fd, request, "v4.channel.k8s.io");
	say(fd, 1, "hello");
	echo(fd);
}

static void the_request_is_as_the_api_wants_it(void **state)
{
	static const struct fakekube_step steps[] = {
		{.request = EXEC, .serve = serve_v5_echo}, {0}};
	struct world w;
	struct err e = ERR_INIT;
	char got[5];
	int fd = -1;

	(void)state;
	world_open(&w, steps);
	if (open_exec(&w, &fd, NULL, &e) < 0)
		fail_msg("%s", e.msg);
	assert_non_null(strstr(w.k.log.p,
			       EXEC "command=%2Fagent&command=connect&command=a%20b"
				    "&container=c&stderr=true&stdin=true&stdout=true "
				    "HTTP/1.1\r\n"));
	assert_non_null(strstr(w.k.log.p, "\r\nSec-WebSocket-Protocol: "
					  "v5.channel.k8s.io, v4.channel.k8s.io\r\n"));
	assert_non_null(strstr(w.k.log.p, "\r\nAuthorization: Bearer t\r\n"));
	assert_non_null(strstr(w.k.log.p, "\r\nSec-WebSocket-Version: 13\r\n"));
	assert_non_null(strstr(w.k.log.p, "\r\nAccept: */*\r\n"));
	assert_null(strstr(w.k.log.p, "application/json"));
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	read_exactly(fd, got, 5);
	assert_memory_equal(got, "hello", 5);
	close(fd);
	world_close(&w);
	assert_string_equal(w.ended, ""); /* we closed it */
}

static void bytes_go_through_whole_in_frames_that_the_server_takes(void **state)
{
	static const struct fakekube_step steps[] = {
		{.request = EXEC, .serve = serve_v4_echo}, {0}};
	static char out[1 << 20], back[5 + sizeof out];
	struct pollfd pfd = {.events = POLLIN};
	struct world w;
	struct err e = ERR_INIT;
	size_t i, sent = 0, got = 0;
	ssize_t n;

	(void)state;
	for (i = 0; i < sizeof out; i++)
		out[i] = (char)(i * 7 + i / 256);
	world_open(&w, steps);
	assert_int_equal(open_exec(&w, &pfd.fd, NULL, &e), 0);
	while (got < sizeof back) {
		if (sent < sizeof out) {
			n = write(pfd.fd, out + sent, sizeof out - sent);
			sent += n > 0 ? (size_t)n : 0;
		}
		n = read(pfd.fd, back + got, sizeof back - got);
		assert_int_not_equal(n, 0);
		got += n > 0 ? (size_t)n : 0;
		if (n < 0) {
			pfd.events = sent < sizeof out ? POLLIN | POLLOUT : POLLIN;
			assert_int_equal(poll(&pfd, 1, 60000), 1);
		}
	}
	assert_memory_equal(back + 5, out, sizeof out);
	close(pfd.fd);
	world_close(&w);
}

/*
 * Pings between the parts of a message. The first one is answered, too, unless the
 * client has both at once.
 */
static void serve_ping(struct fakekube *k, int fd, const char *request)
{
	char part[200];
	int op = 0;
	ptrdiff_t n;

	fakekube_ws_accept(fd, request, "v5.channel.k8s.io");
	fakekube_ws_frame(fd, 0x02, 1, "he", 2);
	fakekube_ws_frame(fd, 0x89, -1, "first", 5);
	fakekube_ws_frame(fd, 0x89, -1, "are you there", 13);
	fakekube_ws_frame(fd, 0x80, -1, "llo", 3);
	n = fakekube_ws_recv(fd, part, sizeof part, &op);
	if (op == 10 && n == 5 && memcmp(part, "first", 5) == 0)
		n = fakekube_ws_recv(fd, part, sizeof part, &op);
	pthread_mutex_lock(&k->lock);
	if (op == 10 && n == 13 && memcmp(part, "are you there", 13) == 0)
		k->arg = k;
	pthread_mutex_unlock(&k->lock);
}

static void a_ping_is_answered_and_fragments_are_one_message(void **state)
{
	static const struct fakekube_step steps[] = {
		{.request = EXEC, .serve = serve_ping}, {0}};
	struct world w;
	struct err e = ERR_INIT;
	char got[5];
	int fd = -1;

	(void)state;
	world_open(&w, steps);
	assert_int_equal(open_exec(&w, &fd, NULL, &e), 0);
	read_exactly(fd, got, 5);
	assert_memory_equal(got, "hello", 5);
	assert_true(is_at_end(fd));
	close(fd);
	pthread_mutex_lock(&w.k.lock);
	assert_ptr_equal(w.k.arg, &w.k);
	pthread_mutex_unlock(&w.k.lock);
	world_close(&w);
}

/* ---- ends */

static void open_for_end(int fd, const char *request)
{
	char part[16];
	int op;

	fakekube_ws_accept(fd, request, "v5.channel.k8s.io");
	say(fd, 1, "x");
	fakekube_ws_recv(fd, part, sizeof part, &op); /* until the test is ready */
}

static void serve_exit(struct fakekube *k, int fd, const char *request)
{
	(void)k;
	open_for_end(fd, request);
	say(fd, 2, "agent: \x1b[1mthe end\n");
	say(fd, 3, EXIT_STATUS(3));
	say_close(fd, "\x03\xe8", 2);
}

static void serve_success(struct fakekube *k, int fd, const char *request)
{
	(void)k;
	open_for_end(fd, request);
	say(fd, 3, OK_STATUS);
	say_close(fd, "\x03\xe8", 2);
}

static void serve_close_only(struct fakekube *k, int fd, const char *request)
{
	(void)k;
	open_for_end(fd, request);
	say_close(fd, "\x03\xe8gone", 6);
}

static void serve_cut(struct fakekube *k, int fd, const char *request)
{
	(void)k;
	open_for_end(fd, request);
}

static void serve_rubbish(struct fakekube *k, int fd, const char *request)
{
	(void)k;
	open_for_end(fd, request);
	fakekube_write(fd, "HTTP/1.1 500 no\r\n\r\n", 19);
	fakekube_wait_close(fd);
}

static const struct {
	void (*serve)(struct fakekube *k, int fd, const char *request);
	const char *words;
} ends[] = {
	{serve_exit, "p1: agent:  [1mthe end : the program ended with exit code 3"},
	{serve_success, "p1: the program ended"},
	{serve_close_only, "without saying how it ended (close 1000: gone)"},
	{serve_cut, "the connection to the API server broke"},
	{serve_rubbish, "not framed as a WebSocket"},
};

static void every_end_of_a_stream_is_told_with_its_reason(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof ends / sizeof *ends; i++) {
		const struct fakekube_step steps[] = {
			{.request = EXEC, .serve = ends[i].serve}, {0}};
		struct world w;
		struct err e = ERR_INIT;
		char x;
		int fd = -1;

		world_open(&w, steps);
		assert_int_equal(open_exec(&w, &fd, NULL, &e), 0);
		read_exactly(fd, &x, 1);
		assert_int_equal(write(fd, "!", 1), 1);
		assert_true(is_at_end(fd));
		await_end(&w, ends[i].words);
		close(fd);
		world_close(&w);
	}
}

/* ---- what never becomes a stream */

static void serve_not_found(struct fakekube *k, int fd, const char *request)
{
	(void)k;
	fakekube_ws_accept(fd, request, "v5.channel.k8s.io");
	say(fd, 3,
	    "{\"status\":\"Failure\",\"reason\":\"InternalError\",\"code\":500,"
	    "\"message\":\"container not found (\\\"c\\\")\"}");
	say_close(fd, "\x03\xe8", 2);
}

static void serve_no_protocol(struct fakekube *k, int fd, const char *request)
{
	(void)k;
	fakekube_ws_accept(fd, request, "");
	fakekube_wait_close(fd);
}

static void serve_not_listening(struct fakekube *k, int fd, const char *request)
{
	(void)k;
	fakekube_ws_accept(fd, request, "v5.channel.k8s.io");
	say(fd, 2, "connect: No such file or directory\n");
	say(fd, 3, EXIT_STATUS(1));
	say_close(fd, "\x03\xe8", 2);
}

#define FORBIDDEN                                                                        \
	FAKEKUBE_STATUS(403, "Forbidden",                                                \
			"pods \\\"p1\\\" is forbidden: User \\\"u\\\" cannot create "    \
			"resource \\\"pods/exec\\\"")
#define TEXT "Content-Type: text/plain\r\n"

static const struct {
	struct fakekube_step step;
	enum err_kind kind;
	int code;
	const char *words;
} refusals[] = {
	{{EXEC, 403, TEXT, "", 0, false, NULL, false},
	 ERR_BACKEND,
	 403,
	 "takes no exec by WebSocket (it answered 403)"},
	{{EXEC, 400, TEXT, "Upgrade request required\n", 0, false, NULL, false},
	 ERR_BACKEND,
	 400,
	 "the Upgrade header must reach it"},
	{{EXEC, 405, TEXT, "bad method\n", 0, false, NULL, false},
	 ERR_BACKEND,
	 405,
	 "takes no exec by WebSocket"},
	{{EXEC, 200, TEXT, "hello\n", 0, false, NULL, false},
	 ERR_BACKEND,
	 200,
	 "takes no exec by WebSocket (it answered 200)"},
	{{EXEC, 0, NULL, NULL, 0, false, serve_no_protocol, false},
	 ERR_BACKEND,
	 0,
	 "takes no exec by WebSocket (it answered 101)"},
	{{EXEC, 403, NULL, FORBIDDEN, 0, false, NULL, false},
	 ERR_BACKEND,
	 403,
	 "a Role must allow get and create on pods/exec in namespace sbx"},
	{{EXEC, 404, NULL, FAKEKUBE_STATUS(404, "NotFound", "pods \\\"p1\\\" not found"),
	  0, false, NULL, false},
	 ERR_NOT_FOUND,
	 404,
	 "pods \"p1\" not found"},
	{{EXEC, 400, NULL,
	  FAKEKUBE_STATUS(400, "BadRequest", "pod p1 does not have a host assigned"), 0,
	  false, NULL, false},
	 ERR_BACKEND,
	 400,
	 "does not have a host assigned"},
	{{EXEC, 0, NULL, NULL, 0, false, serve_not_found, false},
	 ERR_BACKEND,
	 500,
	 "container not found"},
	{{EXEC, 0, NULL, NULL, 0, false, serve_not_listening, false},
	 ERR_BACKEND,
	 0,
	 "No such file or directory : the program ended with exit code 1"},
};

static void what_does_not_become_a_stream_is_said_in_words(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		const struct fakekube_step steps[] = {refusals[i].step, {0}};
		struct world w;
		struct kube_status s;
		struct err e = ERR_INIT;
		int fd = -1;

		world_open(&w, steps);
		assert_int_equal(open_exec(&w, &fd, &s, &e), -1);
		if (!strstr(e.msg, refusals[i].words) || e.kind != refusals[i].kind)
			fail_msg("%zu: %d %s", i, (int)e.kind, e.msg);
		assert_int_equal(s.code, refusals[i].code);
		world_close(&w);
		assert_string_equal(w.ended, ""); /* it never was one */
	}
}

static void a_token_that_is_refused_is_read_again(void **state)
{
	static const struct fakekube_step steps[] = {
		{.request = EXEC,
		 .status = 401,
		 .body = FAKEKUBE_STATUS(401, "Unauthorized", "Unauthorized")},
		{.request = EXEC, .serve = serve_v5_echo},
		{0}};
	AUTO_FREE char *token = NULL;
	struct world w;
	struct err e = ERR_INIT;
	AUTO_BUF text = BUF_INIT(1000);
	int fd = -1;

	(void)state;
	world_open(&w, steps);
	kube_api_close(w.api);
	token = xasprintf("%s/token", w.k.dir);
	buf_printf(&text,
		   "{current-context: c, clusters: [{name: k, cluster: {server: "
		   "'http://127.0.0.1:%d'}}], users: [{name: u, user: {tokenFile: "
		   "token}}], contexts: [{name: c, context: {cluster: k, user: u, "
		   "namespace: sbx}}]}",
		   w.k.port);
	assert_int_equal(
		io_write_file_atomic(w.conf.kubeconfig, text.p, text.len, 0600, &e), 0);
	assert_int_equal(io_write_file_atomic(token, "one\n", 4, 0600, &e), 0);
	assert_int_equal(kube_api_open(&(struct kube_credentials_args){.conf = &w.conf},
				       &w.api, &e),
			 0);
	assert_int_equal(io_write_file_atomic(token, "two\n", 4, 0600, &e), 0);
	if (open_exec(&w, &fd, NULL, &e) < 0)
		fail_msg("%s", e.msg);
	assert_non_null(strstr(w.k.log.p, "\r\nAuthorization: Bearer one\r\n"));
	assert_non_null(strstr(w.k.log.p, "\r\nAuthorization: Bearer two\r\n"));
	close(fd);
	unlink(token);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_request_is_as_the_api_wants_it),
		cmocka_unit_test(bytes_go_through_whole_in_frames_that_the_server_takes),
		cmocka_unit_test(a_ping_is_answered_and_fragments_are_one_message),
		cmocka_unit_test(every_end_of_a_stream_is_told_with_its_reason),
		cmocka_unit_test(what_does_not_become_a_stream_is_said_in_words),
		cmocka_unit_test(a_token_that_is_refused_is_read_again),
	};

	unsetenv("POD_NAMESPACE");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
