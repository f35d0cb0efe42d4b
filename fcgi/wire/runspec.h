/* SPDX-License-Identifier: MIT */
#ifndef WIRE_RUNSPEC_H
#define WIRE_RUNSPEC_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/id.h"

/*
 * What run_sandbox was asked for, checked. runspec_parse() is the one reader of
 * the tool's arguments: the edge calls it to refuse early and in words, the
 * runner calls it again on the same JSON because it trusts nobody. Pure; no
 * I/O; fuzzed. An ERR_INVALID message names the argument (commands[2].cwd) and
 * the rule it broke, fit to be shown to a model.
 */
enum { IDENTIFIER_MAX = 256 }; /* characters, not bytes */

struct runspec_limits {
	int64_t max_commands;
	int64_t max_ttl_s, default_ttl_s;
	int64_t default_timeout_ms;
	int64_t default_await_timeout_ms;
	bool default_await;
};
struct conf;
struct runspec_limits runspec_limits_of(const struct conf *c);

struct command_spec {
	char *shell;        /* exactly one of shell and argv is not NULL */
	char **argv;        /* NULL-terminated */
	char *cwd;          /* absolute; the run's default when not given */
	char **env;         /* NULL-terminated KEY=VALUE: default_env overlaid with env */
	char *input;        /* for its standard input; NULL: none */
	int64_t timeout_ms; /* 0: none (only in the background) */
	bool allow_failure;
	bool background; /* goes on as a run of its own, the next one begins at once */
};

struct run_spec {
	char *identifier;
	struct command_spec *commands;
	size_t ncommands;
	int64_t ttl_s;
	bool as_root; /* as_user: "sandbox" (uid 1000) or "root" */
	bool continue_on_error;
	bool lock_sandbox;
	bool await_completion;
	int64_t await_timeout_ms;
};

/*
 * The run as which a background command goes on: its id follows from the run's and
 * the command's, so that nobody starts it twice.
 */
void runspec_background_id(const char *run_id, size_t index,
			   char out[static ID_RUN_LEN + 1]);

int runspec_parse(const json_t *args, const struct runspec_limits *lim,
		  struct run_spec *ret, struct err *e);
void runspec_release(struct run_spec *s);

/* delete_sandbox and restart_sandbox: {identifier, options:{ttl_seconds}}. */
struct sandbox_ref {
	char *identifier;
	int64_t ttl_s; /* restart only */
};
int sandboxref_parse(const json_t *args, bool with_ttl, const struct runspec_limits *lim,
		     struct sandbox_ref *ret, struct err *e);
void sandboxref_release(struct sandbox_ref *r);

/* 1..256 characters of valid UTF-8 without control characters. */
int identifier_check(const char *s, struct err *e);
/* The argument of that name, checked; the caller frees. */
int identifier_take(const json_t *args, char **ret, struct err *e);

#define AUTO_RUNSPEC __attribute__((cleanup(runspec_release))) struct run_spec

#endif
