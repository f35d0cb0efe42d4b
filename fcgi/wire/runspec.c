/* SPDX-License-Identifier: MIT */
#include "wire/runspec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/utf8.h"
#include "conf/conf.h"
#include "wire/args.h"
#include "wire/envlist.h"

enum {
	TIMEOUT_MAX_MS = 24 * 3600 * 1000,
	CWD_MAX = 4095, /* PATH_MAX without its NUL */
	ARGV_MAX = 10000,
	ARGV_BYTES_MAX = 1024 * 1024,
	RUN_ENV_BYTES_MAX = 16 * 1024 * 1024,
	/* Linux gives argv and env a quarter of the stack's limit, 8 MiB by default,
	 * pointers included. Room is left for PATH and the like. */
	EXEC_BYTES_MAX = 2 * 1024 * 1024 - 64 * 1024,
};

static const char *const of_run[] = {"identifier", "commands", "options", NULL};
static const char *const of_options[] = {
	"ttl_seconds",      "default_cwd",       "default_env",
	"as_user",          "continue_on_error", "lock_sandbox",
	"await_completion", "await_timeout_ms",  NULL};
static const char *const of_command[] = {"shell",         "argv",       "cwd",
					 "env",           "stdin",      "timeout_ms",
					 "allow_failure", "background", NULL};
static const struct {
	const char *const *names;
	const char *words;
} places[] = {
	{of_run, "beside identifier"},
	{of_options, "in options"},
	{of_command, "in each of commands"},
};

/* What is right, but in the wrong place, is told where it belongs. */
static int known_only(const json_t *obj, const char *path, const char *const *names,
		      struct err *e)
{
	const char *key = arg_unknown(obj, names);
	char name[ARG_NAME_SIZE];

	for (size_t i = 0; key && i < sizeof places / sizeof places[0]; i++)
		if (arg_is_one_of(key, places[i].names))
			return err_set(e, ERR_INVALID, "%s is not known here; send %s %s",
				       arg_name((struct arg){obj, path, key}, name), key,
				       places[i].words);
	return arg_only(obj, path, names, e);
}

void runspec_background_id(const char *run_id, size_t index,
			   char out[static ID_RUN_LEN + 1])
{
	char text[128], hash[SHA256_HEX_LEN + 1];
	int n = snprintf(text, sizeof text, "%.64s background %zu", run_id, index);

	sha256_hex(text, (size_t)n, hash);
	snprintf(out, ID_RUN_LEN + 1, "run_%.32s", hash);
}

/* What a command has when it does not say. */
struct defaults {
	const char *cwd;
	json_t *env; /* owned; an object of strings */
	int64_t timeout_ms;
	size_t bytes; /* of all environments so far */
};

static void defaults_release(struct defaults *d)
{
	json_decref(d->env);
}

/* True if the n bytes of valid UTF-8 hold a C0 or C1 control or DEL. */
static bool has_control(const char *s)
{
	const unsigned char *p = (const unsigned char *)s;

	for (; *p; p++)
		if (*p < 0x20 || *p == 0x7f || (p[0] == 0xc2 && p[1] < 0xa0))
			return true;
	return false;
}

int identifier_check(const char *s, struct err *e)
{
	size_t n = strlen(s);

	if (n == 0 || n > (size_t)IDENTIFIER_MAX * 4 || !utf8_is_valid(s, n) ||
	    utf8_count(s, n) > IDENTIFIER_MAX)
		return err_set(e, ERR_INVALID,
			       "identifier must be 1 to %d characters of UTF-8",
			       IDENTIFIER_MAX);
	if (has_control(s))
		return err_set(e, ERR_INVALID,
			       "identifier must not hold control characters such as line "
			       "ends or tabs");
	return 0;
}

int identifier_take(const json_t *args, char **ret, struct err *e)
{
	const char *s;

	if (arg_string((struct arg){args, "", "identifier"}, &s, e) < 0)
		return -1;
	if (!s)
		return err_set(e, ERR_INVALID,
			       "identifier is missing; send a string of 1 to %d "
			       "characters, for example the chat's id",
			       IDENTIFIER_MAX);
	if (identifier_check(s, e) < 0)
		return -1;
	*ret = xstrdup(s);
	return 0;
}

static int check_cwd(const char *cwd, const char *name, struct err *e)
{
	if (cwd[0] != '/')
		return err_set(e, ERR_INVALID,
			       "%s must be an absolute path such as /workspace, not "
			       "\"%.80s\"",
			       name, cwd);
	if (strlen(cwd) > CWD_MAX)
		return err_set(e, ERR_INVALID, "%s is longer than %d bytes", name,
			       CWD_MAX);
	return 0;
}

static bool is_shell_program(const char *s)
{
	static const char *const shells[] = {"sh", "bash", "dash", "zsh", "ash", "ksh"};
	const char *slash = strrchr(s, '/');
	const char *base = slash ? slash + 1 : s;
	size_t i;

	for (i = 0; i < sizeof shells / sizeof *shells; i++)
		if (strcmp(shells[i], base) == 0)
			return true;
	return false;
}

/* Copies argv, behind the program `first` unless that is NULL. */
static int take_argv(const json_t *v, const char *name, const char *first, char ***ret,
		     struct err *e)
{
	size_t i, bytes = 0, n = json_array_size(v), skip = first ? 1 : 0;
	char where[ARG_NAME_SIZE], **argv;
	const char *s;

	if (n > ARGV_MAX)
		return err_set(e, ERR_INVALID, "%s may have at most %d elements", name,
			       ARGV_MAX);
	argv = xcalloc(n + skip + 1, sizeof *argv);
	if (first)
		argv[0] = xstrdup(first);
	for (i = 0; i < n; i++) {
		snprintf(where, sizeof where, "%.120s[%zu]", name, i);
		if (arg_text(json_array_get(v, i), where, &s, e) < 0)
			goto fail;
		bytes += strlen(s) + 1;
		if (strlen(s) > EXEC_STRING_MAX || bytes > ARGV_BYTES_MAX) {
			err_set(e, ERR_INVALID,
				"%s is too long; one element holds at most %d bytes and "
				"all together %d. Send it as shell text instead",
				where, EXEC_STRING_MAX, ARGV_BYTES_MAX);
			goto fail;
		}
		argv[skip + i] = xstrdup(s);
	}
	if (argv[0] && !argv[0][0]) {
		err_set(e, ERR_INVALID,
			"%.120s[0] is empty; it is the program to run, as in [\"ls\", "
			"\"-l\"]",
			name);
		goto fail;
	}
	*ret = argv;
	return 0;
fail:
	strv_free(argv);
	return -1;
}

/* null, false and "" are what some clients send for "no shell". */
static const json_t *meant_shell(const json_t *cmd)
{
	const json_t *v = json_object_get(cmd, "shell");

	if (json_is_null(v) || json_is_false(v) ||
	    (json_is_string(v) && json_string_length(v) == 0))
		return NULL;
	return v;
}

static const json_t *meant_argv(const json_t *cmd)
{
	const json_t *v = json_object_get(cmd, "argv");

	if (json_is_null(v) || (json_is_array(v) && json_array_size(v) == 0))
		return NULL;
	return v;
}

/*
 * With argv a shell's own path says which program: ["-c", "x"] is for that shell;
 * anything else runs as it stands.
 */
static int take_both(const json_t *argv, const char *shell, const char *path,
		     struct command_spec *c, struct err *e)
{
	char name[ARG_NAME_SIZE];
	const char *a0 = json_string_value(json_array_get(argv, 0));

	if (!is_shell_program(shell))
		return err_set(e, ERR_INVALID,
			       "%s has both shell and argv; send exactly one: shell for "
			       "a script, argv for one program with its arguments",
			       path);
	return take_argv(argv, arg_name((struct arg){NULL, path, "argv"}, name),
			 a0 && a0[0] == '-' ? shell : NULL, &c->argv, e);
}

static int take_program(const json_t *cmd, const char *path, struct command_spec *c,
			struct err *e)
{
	const json_t *shell = meant_shell(cmd), *argv = meant_argv(cmd);
	char name[ARG_NAME_SIZE];
	const char *text;

	if (!shell && !argv)
		return err_set(e, ERR_INVALID,
			       "%s has neither shell nor argv; send exactly one: shell "
			       "\"ls -l\" or argv [\"ls\", \"-l\"]",
			       path);
	arg_name((struct arg){cmd, path, "argv"}, name);
	if (argv && !json_is_array(argv))
		return err_set(e, ERR_INVALID,
			       "%s must be an array of strings, not %s; for a command "
			       "line use shell",
			       name, arg_type_name(argv));
	if (!shell)
		return take_argv(argv, name, NULL, &c->argv, e);
	arg_name((struct arg){cmd, path, "shell"}, name);
	if (arg_text(shell, name, &text, e) < 0)
		return -1;
	if (argv)
		return take_both(argv, text, path, c, e);
	c->shell = xstrdup(text);
	return 0;
}

static int take_env(const json_t *cmd, const char *path, struct defaults *d,
		    struct command_spec *c, struct err *e)
{
	struct arg a = {cmd, path, "env"};
	AUTO_JSON *own = NULL;
	char name[ARG_NAME_SIZE];

	if (envlist_parse(arg_value(a), arg_name(a, name), &own, e) < 0 ||
	    envlist_merge(d->env, own, name, &c->env, &d->bytes, e) < 0)
		return -1;
	if (d->bytes > RUN_ENV_BYTES_MAX)
		return err_set(e, ERR_INVALID,
			       "%s: the environments of all commands together hold more "
			       "than %d bytes",
			       name, RUN_ENV_BYTES_MAX);
	return 0;
}

static int take_cwd(const json_t *cmd, const char *path, const struct defaults *d,
		    struct command_spec *c, struct err *e)
{
	struct arg a = {cmd, path, "cwd"};
	char name[ARG_NAME_SIZE];
	const char *cwd;

	if (arg_string(a, &cwd, e) < 0 ||
	    (cwd && check_cwd(cwd, arg_name(a, name), e) < 0))
		return -1;
	c->cwd = xstrdup(cwd ? cwd : d->cwd);
	return 0;
}

/* What is in the background has all the time there is, unless it is told. */
static int take_manner(const json_t *cmd, const char *path, const struct defaults *d,
		       struct command_spec *c, struct err *e)
{
	const char *input;

	if (arg_bool((struct arg){cmd, path, "background"}, &c->background, e) < 0 ||
	    arg_bool((struct arg){cmd, path, "allow_failure"}, &c->allow_failure, e) <
		    0 ||
	    arg_string((struct arg){cmd, path, "stdin"}, &input, e) < 0)
		return -1;
	c->input = input && *input ? xstrdup(input) : NULL;
	c->timeout_ms = c->background ? 0 : d->timeout_ms;
	return arg_int((struct arg){cmd, path, "timeout_ms"}, 1, TIMEOUT_MAX_MS,
		       &c->timeout_ms, e);
}

static size_t exec_bytes(char *const *v)
{
	size_t n = 0;

	for (; v && *v; v++)
		n += strlen(*v) + 1 + sizeof(*v);
	return n;
}

/* What the kernel would refuse with E2BIG is refused here, with a way out. */
static int check_exec_bytes(const struct command_spec *c, const char *path, struct err *e)
{
	size_t n = exec_bytes(c->argv) + exec_bytes(c->env);

	if (n <= EXEC_BYTES_MAX)
		return 0;
	return err_set(e, ERR_INVALID,
		       "%s.argv and %s.env are too long together: the kernel hands a "
		       "program at most %d bytes, they need %zu. Write the data to a "
		       "file first and give its path",
		       path, path, EXEC_BYTES_MAX, n);
}

static int take_command(const json_t *cmd, const char *path, struct defaults *d,
			struct command_spec *c, struct err *e)
{
	if (json_is_string(cmd))
		return err_set(e, ERR_INVALID,
			       "%s must be an object, not a string; send {\"shell\": "
			       "\"...\"}",
			       path);
	if (!json_is_object(cmd))
		return err_set(e, ERR_INVALID, "%s must be an object, not %s", path,
			       arg_type_name(cmd));
	if (known_only(cmd, path, of_command, e) < 0 ||
	    take_program(cmd, path, c, e) < 0 || take_cwd(cmd, path, d, c, e) < 0 ||
	    take_manner(cmd, path, d, c, e) < 0)
		return -1;
	if (take_env(cmd, path, d, c, e) < 0)
		return -1;
	return check_exec_bytes(c, path, e);
}

static int take_commands(const json_t *args, const struct runspec_limits *lim,
			 struct defaults *d, struct run_spec *s, struct err *e)
{
	const json_t *v = arg_value((struct arg){args, "", "commands"});
	char path[32];
	size_t i, n = json_array_size(v);

	if (!v || (json_is_array(v) && n == 0))
		return err_set(e, ERR_INVALID,
			       "commands is %s; send at least one, for example "
			       "[{\"shell\": \"ls -l\"}]",
			       v ? "empty" : "missing");
	if (!json_is_array(v))
		return err_set(e, ERR_INVALID,
			       "commands must be an array of objects, not %s",
			       arg_type_name(v));
	if ((int64_t)n > lim->max_commands)
		return err_set(e, ERR_INVALID,
			       "commands has %zu elements; at most %" PRId64
			       " are allowed. Join them in one shell script",
			       n, lim->max_commands);
	s->commands = xcalloc(n, sizeof *s->commands);
	for (i = 0; i < n; i++) {
		snprintf(path, sizeof path, "commands[%zu]", i);
		s->ncommands = i + 1;
		if (take_command(json_array_get(v, i), path, d, &s->commands[i], e) < 0)
			return -1;
	}
	return 0;
}

static int take_user(const json_t *opt, bool *ret_root, struct err *e)
{
	const char *user;

	if (arg_string((struct arg){opt, "options", "as_user"}, &user, e) < 0)
		return -1;
	if (user && strcmp(user, "root") != 0 && strcmp(user, "sandbox") != 0)
		return err_set(e, ERR_INVALID,
			       "options.as_user must be \"sandbox\" or \"root\", not "
			       "\"%.80s\"",
			       user);
	*ret_root = user && strcmp(user, "root") == 0;
	return 0;
}

static int take_defaults(const json_t *opt, struct defaults *d, struct err *e)
{
	const char *cwd;

	if (arg_string((struct arg){opt, "options", "default_cwd"}, &cwd, e) < 0)
		return -1;
	if (cwd && check_cwd(cwd, "options.default_cwd", e) < 0)
		return -1;
	if (cwd)
		d->cwd = cwd;
	return envlist_parse(arg_value((struct arg){opt, "options", "default_env"}),
			     "options.default_env", &d->env, e);
}

static int take_switches(const json_t *opt, struct run_spec *s, struct err *e)
{
	struct {
		const char *key;
		bool *io;
	} all[] = {
		{"continue_on_error", &s->continue_on_error},
		{"lock_sandbox", &s->lock_sandbox},
		{"await_completion", &s->await_completion},
	};
	size_t i;

	for (i = 0; i < sizeof all / sizeof *all; i++)
		if (arg_bool((struct arg){opt, "options", all[i].key}, all[i].io, e) < 0)
			return -1;
	return 0;
}

static int take_options(const json_t *args, const struct runspec_limits *lim,
			struct defaults *d, struct run_spec *s, struct err *e)
{
	const json_t *opt;

	s->ttl_s = lim->default_ttl_s;
	s->await_completion = lim->default_await;
	s->await_timeout_ms = lim->default_await_timeout_ms;
	if (arg_object((struct arg){args, "", "options"}, &opt, e) < 0)
		return -1;
	if (known_only(opt, "options", of_options, e) < 0 ||
	    arg_int((struct arg){opt, "options", "ttl_seconds"}, 1, lim->max_ttl_s,
		    &s->ttl_s, e) < 0 ||
	    arg_int((struct arg){opt, "options", "await_timeout_ms"}, 1, TIMEOUT_MAX_MS,
		    &s->await_timeout_ms, e) < 0 ||
	    take_user(opt, &s->as_root, e) < 0 || take_switches(opt, s, e) < 0)
		return -1;
	return take_defaults(opt, d, e);
}

int runspec_parse(const json_t *args, const struct runspec_limits *lim,
		  struct run_spec *ret, struct err *e)
{
	AUTO_RUNSPEC s = {.identifier = NULL};
	__attribute__((cleanup(defaults_release))) struct defaults d = {
		.cwd = "/workspace", .timeout_ms = lim->default_timeout_ms};

	if (!json_is_object(args))
		return err_set(e, ERR_INVALID, "the arguments must be an object");
	if (known_only(args, "", of_run, e) < 0 ||
	    identifier_take(args, &s.identifier, e) < 0 ||
	    take_options(args, lim, &d, &s, e) < 0 ||
	    take_commands(args, lim, &d, &s, e) < 0)
		return -1;
	*ret = s;
	s = (struct run_spec){.identifier = NULL};
	return 0;
}

struct runspec_limits runspec_limits_of(const struct conf *c)
{
	return (struct runspec_limits){
		.max_commands = c->max_commands,
		.max_ttl_s = c->max_ttl_s,
		.default_ttl_s = c->default_ttl_s,
		.default_timeout_ms = c->default_command_timeout_ms,
		.default_await_timeout_ms = c->default_await_timeout_ms,
		.default_await = c->default_await_completion,
	};
}

void runspec_release(struct run_spec *s)
{
	size_t i;

	for (i = 0; i < s->ncommands; i++) {
		free(s->commands[i].shell);
		strv_free(s->commands[i].argv);
		free(s->commands[i].cwd);
		strv_free(s->commands[i].env);
		free(s->commands[i].input);
	}
	free(s->commands);
	free(s->identifier);
	*s = (struct run_spec){.identifier = NULL};
}

static int take_ref_ttl(const json_t *args, const struct runspec_limits *lim, int64_t *io,
			struct err *e)
{
	static const char *const known[] = {"ttl_seconds", NULL};
	const json_t *opt;

	if (arg_object((struct arg){args, "", "options"}, &opt, e) < 0 ||
	    arg_only(opt, "options", known, e) < 0)
		return -1;
	return arg_int((struct arg){opt, "options", "ttl_seconds"}, 1, lim->max_ttl_s, io,
		       e);
}

int sandboxref_parse(const json_t *args, bool with_ttl, const struct runspec_limits *lim,
		     struct sandbox_ref *ret, struct err *e)
{
	static const char *const only_id[] = {"identifier", NULL};
	static const char *const with_options[] = {"identifier", "options", NULL};
	AUTO_FREE char *identifier = NULL;
	int64_t ttl_s = lim->default_ttl_s;

	if (!json_is_object(args))
		return err_set(e, ERR_INVALID, "the arguments must be an object");
	if (arg_only(args, "", with_ttl ? with_options : only_id, e) < 0 ||
	    identifier_take(args, &identifier, e) < 0)
		return -1;
	if (with_ttl && take_ref_ttl(args, lim, &ttl_s, e) < 0)
		return -1;
	*ret = (struct sandbox_ref){MOVE(identifier), ttl_s};
	return 0;
}

void sandboxref_release(struct sandbox_ref *r)
{
	free(r->identifier);
	r->identifier = NULL;
}
