/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/io.h"
#include "base/mem.h"
#include "net/http.h"
#include "pki.h"
#include "tests/unit/testdir.h"

/*
 * A TLS server in Python: answers GET with the client's name ("none") and the name
 * that was asked for (SNI); an upgrade with 101 and an echo. It ends with its input.
 */
static const char server_text[] =
	"import os, socket, ssl, sys, threading\n"
	"d = sys.argv[1]\n"
	"c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)\n"
	"c.load_cert_chain(d + '/server', d + '/key')\n"
	"c.load_verify_locations(d + '/ca')\n"
	"c.verify_mode = ssl.CERT_OPTIONAL\n"
	"def asked(s, name, _): s.asked = name\n"
	"c.sni_callback = asked\n"
	"def serve(t):\n"
	"    try:\n"
	"        with c.wrap_socket(t, server_side=True) as s:\n"
	"            while True:\n"
	"                head = s.recv(65536)\n"
	"                if not head: return\n"
	"                if b'Upgrade: echo' in head:\n"
	"                    s.sendall(b'HTTP/1.1 101 X\\r\\nX-Of: tls\\r\\n\\r\\n')\n"
	"                    while (part := s.recv(65536)): s.sendall(part)\n"
	"                    return\n"
	"                cert = s.getpeercert()\n"
	"                who = cert['subject'][0][0][1] if cert else 'none'\n"
	"                text = f'{who} {s.asked}'.encode()\n"
	"                s.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: "
	"%d\\r\\n\\r\\n'\n"
	"                          % len(text) + text)\n"
	"    except OSError: pass\n"
	"l = socket.create_server(('127.0.0.1', 0))\n"
	"print(l.getsockname()[1], flush=True)\n"
	"def accept():\n"
	"    while True: threading.Thread(target=serve, args=(l.accept()[0],),\n"
	"                                 daemon=True).start()\n"
	"threading.Thread(target=accept, daemon=True).start()\n"
	"sys.stdin.read()\n";

struct server {
	char dir[64], base[64];
	pid_t pid;
	int input;
};

static void put(const struct server *s, const char *name, const char *text)
{
	AUTO_FREE char *path = xasprintf("%s/%s", s->dir, name);
	struct err e = ERR_INIT;

	assert_int_equal(io_write_file_atomic(path, text, strlen(text), 0600, &e), 0);
}

static void server_start(struct server *s)
{
	char *argv[] = {(char *)(uintptr_t) "python3", (char *)(uintptr_t) "-c",
			(char *)(uintptr_t)server_text, s->dir, NULL};
	posix_spawn_file_actions_t fa;
	int in[2], out[2];
	char port[16] = "";

	test_folder(s->dir, sizeof s->dir, "tls");
	put(s, "server", pki_server);
	put(s, "key", pki_server_key);
	put(s, "ca", pki_ca);
	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_adddup2(&fa, in[0], 0);
	posix_spawn_file_actions_adddup2(&fa, out[1], 1);
	posix_spawn_file_actions_addclose(&fa, in[1]);
	assert_int_equal(posix_spawnp(&s->pid, "python3", &fa, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&fa);
	close(in[0]);
	close(out[1]);
	s->input = in[1];
	assert_true(read(out[0], port, sizeof port - 1) > 1);
	close(out[0]);
	snprintf(s->base, sizeof s->base, "https://127.0.0.1:%d",
		 (int)strtol(port, NULL, 10));
}

static void server_stop(struct server *s)
{
	struct err e = ERR_INIT;

	close(s->input);
	assert_int_equal(waitpid(s->pid, NULL, 0), s->pid);
	assert_int_equal(io_rmtree(s->dir, &e), 0);
}

static struct str pem(const char *s)
{
	return (struct str){s, strlen(s)};
}

/* The target of a server that is who it has to be. */
static struct http_target trusted(const struct server *s)
{
	return (struct http_target){
		.base = s->base, .ca_pem = pem(pki_ca), .tls_name = "kube.test"};
}

static int get(const struct http_target *t, char *text, size_t n, struct err *e)
{
	AUTO_HTTP_ANSWER a = HTTP_ANSWER_INIT;
	struct http *h = http_new(t);
	int rc = http_call(h, &(struct http_call){.method = "GET", .path = "/"}, &a, e);

	snprintf(text, n, "%s", rc == 0 ? a.body.p : "");
	http_free(h);
	return rc;
}

static void certificates_from_memory_prove_both_sides(void **state)
{
	struct server s;
	struct http_target t;
	struct err e = ERR_INIT;
	char text[100];

	(void)state;
	server_start(&s);
	t = trusted(&s);
	if (get(&t, text, sizeof text, &e) < 0)
		fail_msg("%s", e.msg);
	assert_string_equal(text, "none kube.test");
	t.cert_pem = pem(pki_client);
	t.key_pem = pem(pki_client_key);
	assert_int_equal(get(&t, text, sizeof text, &e), 0);
	assert_string_equal(text, "cli kube.test");
	server_stop(&s);
}

static void a_server_that_is_not_who_it_has_to_be_is_refused(void **state)
{
	struct server s;
	struct http_target t;
	struct err e[3] = {ERR_INIT, ERR_INIT, ERR_INIT};
	char text[100];

	(void)state;
	server_start(&s);
	t = trusted(&s);
	t.ca_pem = pem(pki_other_ca);
	assert_int_equal(get(&t, text, sizeof text, &e[0]), -1);
	assert_non_null(strstr(e[0].msg, "certificate"));
	assert_int_equal(e[0].kind, ERR_DENIED); /* trying again is no use */
	t = trusted(&s);
	t.tls_name = "other.test";
	assert_int_equal(get(&t, text, sizeof text, &e[1]), -1);
	assert_non_null(strstr(e[1].msg, "other.test"));
	t = trusted(&s);
	t.tls_name = NULL; /* the address is not in its certificate */
	assert_int_equal(get(&t, text, sizeof text, &e[2]), -1);
	server_stop(&s);
}

static void an_unchecked_server_is_taken_when_that_is_wanted(void **state)
{
	struct server s;
	struct http_target t;
	struct err e = ERR_INIT;
	char text[100];

	(void)state;
	server_start(&s);
	t = (struct http_target){.base = s.base, .no_verify = true};
	assert_int_equal(get(&t, text, sizeof text, &e), 0);
	server_stop(&s);
}

static void an_upgrade_goes_through_tls_with_its_head(void **state)
{
	AUTO_HTTP_ANSWER refusal = HTTP_ANSWER_INIT;
	AUTO_BUF head = BUF_INIT(4096);
	struct server s;
	struct http_target t;
	struct hijack *j = NULL;
	struct err e = ERR_INIT;
	struct pollfd p = {.events = POLLIN};
	char text[8] = "";
	ptrdiff_t n;
	struct http *h;

	(void)state;
	server_start(&s);
	t = trusted(&s);
	h = http_new(&t);
	if (http_upgrade(h,
			 &(struct http_upgrade){.method = "GET",
						.path = "/",
						.host = "kube.test",
						.protocol = "echo",
						.head = &head},
			 &j, &refusal, &e) < 0)
		fail_msg("%s", e.msg);
	assert_string_equal(head.p, "HTTP/1.1 101 X\r\nX-Of: tls\r\n\r\n");
	assert_int_equal(hijack_write(j, "hello", 5), 5);
	p.fd = hijack_fd(j);
	while ((n = hijack_read(j, text, 5)) == -1)
		assert_int_equal(poll(&p, 1, 60000), 1);
	assert_int_equal(n, 5);
	assert_string_equal(text, "hello");
	hijack_close(j);
	http_free(h);
	server_stop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(certificates_from_memory_prove_both_sides),
		cmocka_unit_test(a_server_that_is_not_who_it_has_to_be_is_refused),
		cmocka_unit_test(an_unchecked_server_is_taken_when_that_is_wanted),
		cmocka_unit_test(an_upgrade_goes_through_tls_with_its_head),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
