/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/num.h"
#include "base/version.h"
#include "conf/conf.h"
#include "edge/edge.h"
#include "edge/stdio.h"
#include "master/attach.h"
#include "master/master.h"
#include "master/rolefd.h"
#include "master/status.h"
#include "runner/runner.h"

/*
 * Which face of the binary: one row per first argument. Exit codes: 0 done,
 * 1 failed (one sentence on stderr), 2 called in a way that does not exist.
 */
enum { EXIT_USAGE = 2 };

struct args {
	int argc; /* without program and face */
	char **argv;
	const char *env_file;
};

struct face {
	const char *name;
	const char *usage; /* NULL: not for people */
	int (*run)(const struct args *a);
};

static int fail(const struct err *e)
{
	fprintf(stderr, "mcp-sandboxd: %s\n", e->msg);
	return EXIT_FAILURE;
}

static int usage(const char *why)
{
	fprintf(stderr, "mcp-sandboxd: %s; try: mcp-sandboxd help\n", why);
	return EXIT_USAGE;
}

static int face_serve(const struct args *a)
{
	struct err e = ERR_INIT;

	if (a->argc > 0)
		return usage("serve takes no argument but --env-file");
	return master_serve(a->env_file, &e) < 0 ? fail(&e) : EXIT_SUCCESS;
}

static int face_stdio(const struct args *a)
{
	struct attach attach;
	struct stdio_args x = {
		.connect = attach_again, .arg = &attach, .in = 0, .out = 1};
	struct err e = ERR_INIT;

	if (a->argc > 0)
		return usage("stdio takes no argument but --env-file");
	log_init("stdio", LOG_LEVEL_INFO);
	if (attach_open(a->env_file, &attach, &x.fd, &e) < 0)
		return fail(&e);
	x.db_path = attach.db_path;
	/* At once: its reading thread may wait for ever in read(). */
	_exit(stdio_serve(&x, &attach.conf, &e) < 0 ? fail(&e) : EXIT_SUCCESS);
}

static int face_stop(const struct args *a)
{
	struct err e = ERR_INIT;

	return master_stop(a->env_file, &e) < 0 ? fail(&e) : EXIT_SUCCESS;
}

static int face_status(const struct args *a)
{
	struct err e = ERR_INIT;

	return status_print(a->env_file, stdout, &e) < 0 ? fail(&e) : EXIT_SUCCESS;
}

static int face_config(const struct args *a)
{
	const char *what = a->argc > 0 ? a->argv[0] : "effective";
	struct conf c = {0};
	struct err e = ERR_INIT;

	if (strcmp(what, "markdown") == 0) {
		conf_print_markdown(stdout);
		return EXIT_SUCCESS;
	}
	if (strcmp(what, "env") == 0) {
		conf_print_env_example(stdout);
		return EXIT_SUCCESS;
	}
	if (strcmp(what, "effective") != 0 && strcmp(what, "check") != 0)
		return usage("config takes markdown, env, effective or check");
	if (conf_load(a->env_file, &c, &e) < 0)
		return fail(&e);
	if (strcmp(what, "effective") == 0)
		conf_print_effective(&c, stdout);
	conf_release(&c);
	return EXIT_SUCCESS;
}

static int face_version(const struct args *a)
{
	(void)a;
	puts("mcp-sandboxd " MCP_SANDBOXD_VERSION);
	return EXIT_SUCCESS;
}

static int role_edge(const char *db, int index, const struct conf *c)
{
	const struct edge_args x = {
		.index = index,
		.life_fd = ROLEFD_LIFE,
		.listen_fd = ROLEFD_EDGE_LISTEN,
		.runner_fd = ROLEFD_EDGE_RUNNER,
		.doorbell_fd = ROLEFD_EDGE_DOORBELL,
		.ready_fd = ROLEFD_READY,
		.stats_fd = ROLEFD_EDGE_STATS,
		.db_path = db,
	};

	return edge_main(&x, c);
}

static int role_runner(const char *db, const char *instance, int n, const struct conf *c)
{
	int edges[ROLE_EDGES_MAX], doorbells[ROLE_EDGES_MAX];
	const struct runner_args x = {
		.life_fd = ROLEFD_LIFE,
		.ready_fd = ROLEFD_READY,
		.nedges = n,
		.edge_fds = edges,
		.doorbell_fds = doorbells,
		.control_fd = ROLEFD_RUNNER_CONTROL,
		.db_path = db,
		.instance_id = instance,
	};

	for (int i = 0; i < n; i++) {
		edges[i] = ROLEFD_RUNNER_EDGES + i;
		doorbells[i] = ROLEFD_RUNNER_EDGES + n + i;
	}
	return runner_main(&x, c);
}

/* For the log: "edge0", "runner". */
static void name_role(const char *kind, int index)
{
	char tag[32];

	if (strcmp(kind, "edge") == 0)
		(void)snprintf(tag, sizeof(tag), "edge%d", index);
	else
		(void)snprintf(tag, sizeof(tag), "%.16s", kind);
	log_init(tag, LOG_LEVEL_INFO);
}

/* role edge DB INSTANCE INDEX | role runner DB INSTANCE EDGES: see rolefd.h */
static int face_role(const struct args *a)
{
	struct conf c = {0};
	struct err e = ERR_INIT;
	int64_t n;
	int rc;

	if (a->argc != 4)
		return usage("role is for the server's own use");
	/* What the master gave is not for any program that this role starts. */
	if (syscall(SYS_close_range, ROLEFD_LIFE, ~0U, CLOSE_RANGE_CLOEXEC) < 0) {
		err_sys(&e, "mark descriptors close-on-exec");
		return fail(&e);
	}
	if (num_parse(a->argv[3], 0, ROLE_EDGES_MAX, &n, &e) < 0)
		return fail(&e);
	name_role(a->argv[0], (int)n);
	if (conf_load(NULL, &c, &e) < 0)
		return fail(&e);
	if (strcmp(a->argv[0], "edge") == 0)
		rc = role_edge(a->argv[1], (int)n, &c);
	else if (strcmp(a->argv[0], "runner") == 0)
		rc = role_runner(a->argv[1], a->argv[2], (int)n, &c);
	else
		rc = usage("no such role");
	conf_release(&c);
	return rc;
}

static int face_help(const struct args *a);

static const struct face faces[] = {
	{"serve", "run the server in the foreground (TERM: stop, HUP: new configuration)",
	 face_serve},
	{"stdio", "speak MCP on standard input and output with the server (starts one)",
	 face_stdio},
	{"stop", "stop the server of this data folder and wait for it", face_stop},
	{"status", "show the server, its sandboxes and its newest runs", face_status},
	{"config", "effective | check | markdown | env: the configuration", face_config},
	{"version", "print the version", face_version},
	{"help", "print this", face_help},
	{"role", NULL, face_role},
};

enum { NFACES = sizeof(faces) / sizeof(faces[0]) };

static int face_help(const struct args *a)
{
	(void)a;
	puts("mcp-sandboxd: persistent sandboxes for agents, over MCP\n\n"
	     "usage: mcp-sandboxd FACE [--env-file FILE]\n");
	for (int i = 0; i < NFACES; i++)
		if (faces[i].usage)
			printf("  %-8s %s\n", faces[i].name, faces[i].usage);
	puts("\nVariables come from the environment, then from FILE (default: .env in "
	     "the\n"
	     "current folder); mcp-sandboxd config env lists them.");
	return EXIT_SUCCESS;
}

/* Takes --env-file out of the arguments. False: it has no value. */
static bool take_env_file(struct args *a)
{
	int n = 0;

	for (int i = 0; i < a->argc; i++) {
		if (strcmp(a->argv[i], "--env-file") != 0) {
			a->argv[n++] = a->argv[i];
			continue;
		}
		if (++i >= a->argc)
			return false;
		a->env_file = a->argv[i];
	}
	a->argc = n;
	return true;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "help";
	struct args a = {
		.argc = argc > 2 ? argc - 2 : 0, .argv = argv + 2, .env_file = ".env"};

	if (!take_env_file(&a))
		return usage("--env-file needs a file");
	for (int i = 0; i < NFACES; i++)
		if (strcmp(name, faces[i].name) == 0)
			return faces[i].run(&a);
	return usage("no such command");
}
