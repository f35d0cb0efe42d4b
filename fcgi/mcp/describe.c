/* SPDX-License-Identifier: MIT */
#include "mcp/describe.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/auto.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "mcp/extra.h"
#include "mcp/schemas.h"
#include "mcp/tools.h"

enum { TEXT_MAX = 64 * 1024 };

static void add_run_text(struct buf *b, const struct conf *c)
{
	bool net = strcmp(c->network_mode, "none") != 0;
	char count[STR_COUNT_SIZE];

	buf_puts(b,
		 "Run commands in a private Linux sandbox. The identifier names the "
		 "sandbox: made at first use and kept, so installed packages and files "
		 "are there in the next call. Commands run in order, each in a new "
		 "shell, so cd and exports do not carry over. Put files for the user in "
		 "/artifacts: they are offered as downloads when the run ends. Set "
		 "options.await_completion to get exit codes and output in the answer; "
		 "else go on with get_run. Limits: ");
	if (c->default_cpu_cores > 0)
		buf_printf(b, "%g CPU, ", c->default_cpu_cores);
	if (c->default_memory_mb > 0)
		buf_printf(b, "%" PRId64 " MiB memory, ", c->default_memory_mb);
	if (c->default_pids > 0)
		buf_printf(b, "%s, ",
			   str_count(count, c->default_pids, "process", "processes"));
	buf_printf(b,
		   "%g s per command unless timeout_ms says more, network %s, sandbox "
		   "removed after %" PRId64 " s without use.",
		   (double)c->default_command_timeout_ms / 1000,
		   net ? "public addresses" : "off", c->default_ttl_s);
}

#define HINTS(reads, destroys, repeats, open)                                            \
	"{\"readOnlyHint\":" reads ",\"destructiveHint\":" destroys                      \
	",\"idempotentHint\":" repeats ",\"openWorldHint\":" open "}"

static const struct {
	const char *title;
	const char *text; /* NULL: add_run_text() */
	const char *annotations;
} words[TOOL_COUNT] = {
	[TOOL_RUN] = {"Run commands in a sandbox", NULL,
		      HINTS("false", "true", "false", "true")},
	[TOOL_DELETE] = {"Delete a sandbox",
			 "Delete a sandbox with everything in it; its runs are canceled. "
			 "Downloads stay available.",
			 HINTS("false", "true", "true", "false")},
	[TOOL_RESTART] = {"Restart a sandbox",
			  "Replace a sandbox that is in a bad state by a fresh one: runs "
			  "are canceled, files and packages are gone.",
			  HINTS("false", "true", "true", "false")},
	[TOOL_GET] = {"Look at a run",
		      "State and output of a run, now or when it ended (wait_ms). With "
		      "command, stream or offset: that part of the output.",
		      HINTS("true", "false", "true", "false")},
	[TOOL_CANCEL] = {"Cancel a run", "End a run: its command gets TERM, then KILL.",
			 HINTS("false", "true", "true", "false")},
	[TOOL_SANDBOXES] = {"List sandboxes", "The sandboxes there are.",
			    HINTS("true", "false", "true", "false")},
	[TOOL_WRITE] = {"Write a file",
			"Write a whole file in a sandbox, which is made when there is "
			"none. Missing folders are made.",
			HINTS("false", "true", "true", "false")},
	[TOOL_READ] = {"Read a file",
		       "Read a file in a sandbox. Pictures are shown as such, other "
		       "binary files as base64.",
		       HINTS("true", "false", "true", "false")},
	[TOOL_FILES] = {"List files", "List a folder in a sandbox.",
			HINTS("true", "false", "true", "false")},
};

static bool given(const char *s)
{
	return s && *s;
}

/* Ours, or the operator's in its place, then what the operator adds. */
static int description(const struct conf *c, enum tool_id id, json_t **ret, struct err *e)
{
	bool may = c->tool_desc_overrides_enabled && (int)id < TOOL_DESCRIBED;
	const char *override = may ? c->tool_desc_override[id] : NULL;
	const char *append = may ? c->tool_desc_append[id] : NULL;
	AUTO_BUF b = BUF_INIT(TEXT_MAX);

	if (given(override))
		buf_puts(&b, override);
	else if (words[id].text)
		buf_puts(&b, words[id].text);
	else
		add_run_text(&b, c);
	if (given(append))
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
	tool = json_pack("{s:s, s:s, s:o, s:o, s:o}", "name", tools[id].name, "title",
			 words[id].title, "description", text, "inputSchema",
			 literal(input), "annotations", literal(words[id].annotations));
	if (schema_output(id))
		json_object_set_new(tool, "outputSchema", literal(schema_output(id)));
	if (tasks && tools[id].may_be_task)
		json_object_set_new(tool, "execution",
				    json_pack("{s:s}", "taskSupport", "optional"));
	json_array_append_new(list, tool);
	return 0;
}

static enum tool_id id_of(const char *name)
{
	enum tool_id id = 0;

	while (strcmp(tools[id].name, name) != 0)
		id++;
	return id;
}

int describe_tools(const struct conf *c, bool tasks, json_t **ret, struct err *e)
{
	AUTO_JSON *list = json_array();
	size_t i;

	for (i = 0; conf_tool_names[i]; i++)
		if (tool_is_offered(c->tools, conf_tool_names[i]) &&
		    describe(c, id_of(conf_tool_names[i]), tasks, list, e) < 0)
			return -1;
	if (mcp_extra.tools) {
		AUTO_JSON *more = mcp_extra.tools();

		json_array_extend(list, more);
	}
	*ret = json_pack("{s:O}", "tools", list);
	return 0;
}

void describe_mirrors(json_t *list)
{
	json_t *tool;
	size_t i;

	json_array_foreach(json_object_get(list, "tools"), i, tool) {
		json_t *schema = json_object_get(tool, "inputSchema");
		json_t *properties = json_object_get(schema, "properties");
		json_t *identifier = json_object_get(properties, "identifier");

		if (identifier)
			json_put(identifier, "x-mcp-header", json_string("Identifier"));
	}
}

char *describe_instructions(const struct conf *c)
{
	return xasprintf(
		"Persistent Linux sandboxes. Pick one identifier per conversation or "
		"project and use it in every run_sandbox call: install once, then "
		"iterate. Work in /workspace; leave files for the user in "
		"/artifacts. For commands that take up to %" PRId64
		" s set options.await_completion; start longer ones without it and "
		"look at them with get_run. Servers and the like: background.",
		c->default_await_timeout_ms / 1000);
}
