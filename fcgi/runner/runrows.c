/* SPDX-License-Identifier: MIT */
#include "runner/runrows.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/json.h"
#include "base/mem.h"

static char *dump(json_t *owned)
{
	char *text = json_dumps(owned, JSON_COMPACT);

	json_decref(owned);
	return text;
}

static char *argv_text(char *const *argv)
{
	json_t *a = json_array();

	for (; *argv; argv++)
		json_array_append_new(a, json_string(*argv));
	return dump(a);
}

static char *env_text(char *const *env)
{
	json_t *o = json_object();

	for (; env && *env; env++) {
		const char *eq = strchr(*env, '=');
		AUTO_FREE char *key = xstrndup(*env, (size_t)(eq - *env));

		json_object_set_new(o, key, json_string(eq + 1));
	}
	return dump(o);
}

static void fill_command(struct store_command *row, const struct command_spec *c,
			 size_t index)
{
	*row = (struct store_command){
		.index = (int64_t)index,
		.shell = c->shell,
		.argv_json = c->shell ? NULL : argv_text(c->argv),
		.cwd = c->cwd,
		.env_json = env_text(c->env),
		.stdin_text = c->input,
		.timeout_ms = c->timeout_ms,
		.allow_failure = c->allow_failure,
		.background = c->background,
		.exit_code = -1,
		.oom = -1,
		.cpu_ms = -1,
		.max_rss_kb = -1,
	};
}

static void free_text(const char *p)
{
	free((void *)(uintptr_t)p);
}

int runrows_insert(struct store *s, const struct run *run, const struct sandbox *sb,
		   bool *ret_existed, struct err *e)
{
	const struct run_spec *spec = &run->spec;
	AUTO_FREE struct store_command *rows = xcalloc(spec->ncommands, sizeof(*rows));
	const struct store_run row = {
		.run_id = run->run_id,
		.tenant = run->tenant,
		.identifier = spec->identifier,
		.sandbox_name = sb->name,
		.background_of = run->background_of,
		.created_at = run->created_at,
		.continue_on_error = spec->continue_on_error,
		.lock_sandbox = spec->lock_sandbox,
		.as_root = spec->as_root,
		.ttl_s = spec->ttl_s,
		.commands = rows,
		.ncommands = spec->ncommands,
	};
	int rc;

	for (size_t i = 0; i < spec->ncommands; i++)
		fill_command(&rows[i], &spec->commands[i], i);
	rc = store_run_insert(s, &row, ret_existed, e);
	for (size_t i = 0; i < spec->ncommands; i++) {
		free_text(rows[i].argv_json);
		free_text(rows[i].env_json);
	}
	return rc;
}

static char **argv_of(const char *text)
{
	struct err e = ERR_INIT;
	AUTO_JSON *a = NULL;
	size_t n, i;
	json_t *item;
	char **v;

	if (!text || json_parse(text, strlen(text), &a, &e) < 0)
		return NULL;
	n = json_array_size(a);
	v = xcalloc(n + 1, sizeof(*v));
	json_array_foreach(a, i, item) {
		const char *s = json_string_value(item);

		v[i] = xstrdup(s ? s : "");
	}
	return v;
}

static char **env_of(const char *text)
{
	struct err e = ERR_INIT;
	AUTO_JSON *o = NULL;
	const char *key;
	json_t *item;
	size_t n = 0;
	char **v;

	if (!text || json_parse(text, strlen(text), &o, &e) < 0)
		return xcalloc(1, sizeof(*v));
	v = xcalloc(json_object_size(o) + 1, sizeof(*v));
	json_object_foreach(o, key, item)
		v[n++] = xasprintf("%s=%s", key, json_string_value(item));
	return v;
}

static char *dup_or_null(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

void runrows_spec(const struct store_run *row, struct run_spec *ret)
{
	*ret = (struct run_spec){
		.identifier = xstrdup(row->identifier),
		.commands = xcalloc(row->ncommands ? row->ncommands : 1,
				    sizeof(*ret->commands)),
		.ncommands = row->ncommands,
		.ttl_s = row->ttl_s,
		.as_root = row->as_root,
		.continue_on_error = row->continue_on_error,
		.lock_sandbox = row->lock_sandbox,
	};
	for (size_t i = 0; i < row->ncommands; i++) {
		const struct store_command *c = &row->commands[i];

		ret->commands[i] = (struct command_spec){
			.shell = dup_or_null(c->shell),
			.argv = argv_of(c->argv_json),
			.cwd = xstrdup(c->cwd),
			.env = env_of(c->env_json),
			.input = dup_or_null(c->stdin_text),
			.timeout_ms = c->timeout_ms,
			.allow_failure = c->allow_failure,
			.background = c->background,
		};
	}
}
