/* SPDX-License-Identifier: MIT */
#include "mcp/describe.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/auto.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "mcp/extra.h"
#include "mcp/schemas.h"
#include "mcp/tools.h"

enum { TEXT_MAX = 64 * 1024 };

static void add_run_text(struct buf *b, const struct conf *c)
{
	bool net = strcmp(c->network_mode, "none") != 0;

	buf_printf(b,
		   "Run commands in a private Linux sandbox. The identifier names the "
		   "sandbox: it is made at first use and kept, so installed packages, "
		   "files and /workspace are still there in the next call. Commands run "
		   "one after the other, as user sandbox (uid 1000) or root; each starts "
		   "in a new shell, so cd and exports do not carry over. Put files the "
		   "user shall get in /artifacts: they are offered as download urls when "
		   "the run ends. Set options.await_completion to get exit code and "
		   "output in the answer. In force: %g CPU, %" PRId64 " MiB memory, "
		   "%" PRId64 " processes, %" PRId64 " s per command unless timeout_ms "
		   "says more, network %s, sandbox removed after %" PRId64
		   " s without use. No terminal and no standard input.",
		   c->default_cpu_cores, c->default_memory_mb, c->default_pids,
		   c->default_command_timeout_ms / 1000, net ? "public addresses" : "off",
		   c->default_ttl_s);
}

static void add_delete_text(struct buf *b, const struct conf *c)
{
	(void)c;
	buf_puts(b, "Delete the sandbox of this identifier with everything in it; its "
		    "running commands end. Downloaded artifacts stay available. The next "
		    "run_sandbox begins with a new sandbox.");
}

static void add_restart_text(struct buf *b, const struct conf *c)
{
	(void)c;
	buf_puts(b,
		 "Replace the sandbox of this identifier by a fresh one: running "
		 "commands end, its files and installed packages are gone. Use it when "
		 "the sandbox is in a bad state.");
}

static const struct {
	const char *title;
	void (*add_text)(struct buf *b, const struct conf *c);
	const char *annotations;
} words[TOOL_COUNT] = {
	[TOOL_RUN] = {"Run commands in a sandbox", add_run_text,
		      "{\"readOnlyHint\":false,\"destructiveHint\":true,"
		      "\"idempotentHint\":false,\"openWorldHint\":true}"},
	[TOOL_DELETE] = {"Delete a sandbox", add_delete_text,
			 "{\"readOnlyHint\":false,\"destructiveHint\":true,"
			 "\"idempotentHint\":true,\"openWorldHint\":false}"},
	[TOOL_RESTART] = {"Restart a sandbox", add_restart_text,
			  "{\"readOnlyHint\":false,\"destructiveHint\":true,"
			  "\"idempotentHint\":true,\"openWorldHint\":false}"},
};

static bool given(const char *s)
{
	return s && *s;
}

/* Ours, or the operator's in its place, then what the operator adds. */
static int description(const struct conf *c, enum tool_id id, json_t **ret, struct err *e)
{
	const char *override = c->tool_desc_override[id];
	const char *append = c->tool_desc_append[id];
	AUTO_BUF b = BUF_INIT(TEXT_MAX);

	if (c->tool_desc_overrides_enabled && given(override))
		buf_puts(&b, override);
	else
		words[id].add_text(&b, c);
	if (c->tool_desc_overrides_enabled && given(append))
		buf_printf(&b, "\n%s", append);
	if (!buf_ok(&b))
		return err_set(e, ERR_INVALID, "the description of %s is over %d bytes",
			       tools[id].name, TEXT_MAX);
	*ret = json_stringn(b.p, b.len);
	if (!*ret)
		return err_set(e, ERR_INVALID, "the description of %s is not UTF-8",
			       tools[id].name);
	return 0;
}

static json_t *literal(const char *text)
{
	struct err e = ERR_INIT;
	json_t *v = NULL;
	int rc = json_parse(text, strlen(text), &v, &e);

	assert(rc == 0); /* our own text */
	(void)rc;
	return v;
}

static int describe(const struct conf *c, enum tool_id id, bool tasks, json_t *list,
		    struct err *e)
{
	AUTO_FREE char *input = schema_input(c, id);
	json_t *text = NULL, *tool;

	if (description(c, id, &text, e) < 0)
		return -1;
	tool = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "name", tools[id].name,
			 "title", words[id].title, "description", text, "inputSchema",
			 literal(input), "outputSchema", literal(schema_output(id)),
			 "annotations", literal(words[id].annotations));
	if (tasks && tools[id].may_be_task)
		json_object_set_new(tool, "execution",
				    json_pack("{s:s}", "taskSupport", "optional"));
	json_array_append_new(list, tool);
	return 0;
}

int describe_tools(const struct conf *c, bool tasks, json_t **ret, struct err *e)
{
	AUTO_JSON *list = json_array();
	enum tool_id id;

	for (id = 0; id < TOOL_COUNT; id++)
		if (describe(c, id, tasks, list, e) < 0)
			return -1;
	if (mcp_extra.tools) {
		AUTO_JSON *more = mcp_extra.tools();

		json_array_extend(list, more);
	}
	*ret = json_pack("{s:O}", "tools", list);
	return 0;
}

char *describe_instructions(const struct conf *c)
{
	return xasprintf(
		"Persistent Linux sandboxes. Pick one identifier per conversation or "
		"project and use it in every run_sandbox call: install once, then "
		"iterate. Work in /workspace; leave files for the user in "
		"/artifacts. For commands that take up to %" PRId64
		" s set options.await_completion; start longer ones without it and "
		"look at them later.",
		c->default_await_timeout_ms / 1000);
}
