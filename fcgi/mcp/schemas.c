/* SPDX-License-Identifier: MIT */
#include "mcp/schemas.h"

#include <inttypes.h>

#include "base/mem.h"

#define OBJECT(required, properties)                                                     \
	"{\"type\":\"object\",\"additionalProperties\":false,\"required\":[" required    \
	"],\"properties\":{" properties "}}"
#define ID_ONLY "\"identifier\":{\"type\":\"string\"}"
#define IDENTIFIER                                                                       \
	"\"identifier\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":256,"         \
	"\"description\":\"Names the sandbox, e.g. one per conversation\"}"
#define RUN_ID "\"run_id\":{\"type\":\"string\"}"
#define ENV                                                                              \
	"{\"type\":[\"object\",\"array\"],\"description\":\"Variables, or KEY=VALUE\"}"
#define USER                                                                             \
	"\"as_user\":{\"type\":\"string\",\"enum\":[\"sandbox\",\"root\"],\"default\":"  \
	"\"sandbox\"}"
#define PATH                                                                             \
	"\"path\":{\"type\":\"string\",\"description\":\"Absolute, or below "            \
	"/workspace\"}"
#define CURSOR     "\"cursor\":{\"type\":\"string\"}"
#define COUNT(min) "{\"type\":\"integer\",\"minimum\":" #min "}"
#define FLAG       "{\"type\":\"boolean\"}"
#define TEXT       "{\"type\":\"string\"}"

static char *run_input(const struct conf *c)
{
	return xasprintf(
		OBJECT("\"identifier\",\"commands\"", IDENTIFIER
		       ","
		       "\"commands\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":"
		       "%" PRId64 ","
		       "\"items\":{\"type\":\"object\",\"additionalProperties\":false,"
		       "\"description\":\"Exactly one of shell and "
		       "argv\",\"properties\":{"
		       "\"shell\":{\"type\":\"string\",\"description\":\"Script for bash "
		       "-lc\"},"
		       "\"argv\":{\"type\":\"array\",\"items\":" TEXT "},"
		       "\"cwd\":" TEXT ",\"env\":" ENV ",\"stdin\":" TEXT ","
		       "\"timeout_ms\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":"
		       "86400000,"
		       "\"default\":%" PRId64 "},"
		       "\"allow_failure\":{\"type\":\"boolean\","
		       "\"description\":\"A failure does not fail the run\"},"
		       "\"background\":{\"type\":\"boolean\",\"description\":\"Goes on "
		       "as a run "
		       "of its own, without a time limit; the next command begins at "
		       "once\"}}}},"
		       "\"options\":{\"type\":\"object\",\"additionalProperties\":false,"
		       "\"properties\":{"
		       "\"await_completion\":{\"type\":\"boolean\",\"default\":%s},"
		       "\"await_timeout_ms\":{\"type\":\"integer\",\"minimum\":1,"
		       "\"maximum\":86400000,\"default\":%" PRId64
		       ",\"description\":\"Then the run goes on unwatched\"},"
		       "\"as_user\":{\"type\":\"string\",\"enum\":[\"sandbox\",\"root\"],"
		       "\"default\":\"sandbox\",\"description\":\"root may install "
		       "packages\"},"
		       "\"default_cwd\":{\"type\":\"string\",\"default\":\"/workspace\"},"
		       "\"default_env\":" ENV ","
		       "\"continue_on_error\":{\"type\":\"boolean\","
		       "\"description\":\"Run the rest after a failure; the run still "
		       "fails\"},"
		       "\"lock_sandbox\":{\"type\":\"boolean\","
		       "\"description\":\"Wait for earlier runs of the sandbox\"},"
		       "\"ttl_seconds\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":"
		       "%" PRId64 ",\"default\":%" PRId64 ","
		       "\"description\":\"Keep the sandbox so long after its last "
		       "use\"}}}"),
		c->max_commands, c->default_command_timeout_ms,
		c->default_await_completion ? "true" : "false",
		c->default_await_timeout_ms, c->max_ttl_s, c->default_ttl_s);
}

static char *restart_input(const struct conf *c)
{
	return xasprintf(
		OBJECT("\"identifier\"", ID_ONLY
		       ","
		       "\"options\":{\"type\":\"object\",\"additionalProperties\":false,"
		       "\"properties\":{\"ttl_seconds\":{\"type\":\"integer\","
		       "\"minimum\":1,\"maximum\":%" PRId64 "}}}"),
		c->max_ttl_s);
}

static const char run_output[] =
	"{\"type\":\"object\",\"required\":[\"run_id\",\"events_url\",\"status_url\","
	"\"identifier\",\"sandbox_name\"],\"properties\":{\"run_id\":" TEXT
	",\"events_url\":" TEXT ",\"status_url\":" TEXT ",\"identifier\":" TEXT
	",\"sandbox_name\":" TEXT ",\"final\":{\"type\":[\"object\",\"null\"],"
	"\"description\":\"The ended run\"}}}";

static const char get_output[] =
	"{\"type\":\"object\",\"required\":[\"run_id\",\"state\"],\"properties\":{"
	"\"run_id\":" TEXT ",\"state\":" TEXT ",\"final\":{\"type\":[\"object\","
	"\"null\"]},\"output\":{\"type\":\"object\"}}}";

static const struct {
	char *(*input)(const struct conf *c); /* NULL: text */
	const char *text;
	const char *output; /* NULL: none */
} schemas[TOOL_COUNT] = {
	[TOOL_RUN] = {run_input, NULL, run_output},
	[TOOL_DELETE] = {NULL, OBJECT("\"identifier\"", ID_ONLY),
			 "{\"type\":\"object\",\"required\":[\"deleted\",\"identifier\"],"
			 "\"properties\":{\"deleted\":" FLAG ",\"identifier\":" TEXT
			 "}}"},
	[TOOL_RESTART] = {restart_input, NULL,
			  "{\"type\":\"object\",\"required\":[\"sandbox\"],"
			  "\"properties\":{\"sandbox\":{\"type\":\"object\"}}}"},
	[TOOL_GET] =
		{NULL,
		 OBJECT("\"run_id\"",
			RUN_ID ",\"wait_ms\":" COUNT(0) ",\"command\":" COUNT(
				0) ",\"stream\":{\"type\":\"string\","
				   "\"enum\":[\"stdout\",\"stderr\"]},\"offset\":" COUNT(
					   0) ",\"max_bytes\":{\"type\":\"integer\","
					      "\"minimum\":1,"
					      "\"maximum\":1048576,\"default\":16384}"),
		 get_output},
	[TOOL_CANCEL] = {NULL, OBJECT("\"run_id\"", RUN_ID),
			 "{\"type\":\"object\",\"required\":[\"run_id\",\"canceled\","
			 "\"state\"],\"properties\":{\"run_id\":" TEXT
			 ",\"canceled\":" FLAG ",\"state\":" TEXT "}}"},
	[TOOL_SANDBOXES] = {NULL, OBJECT("", CURSOR),
			    "{\"type\":\"object\",\"required\":[\"sandboxes\"],"
			    "\"properties\":{\"sandboxes\":{\"type\":\"array\"},"
			    "\"next_cursor\":" TEXT "}}"},
	[TOOL_WRITE] = {NULL,
			OBJECT("\"identifier\",\"path\"", ID_ONLY
			       "," PATH ",\"text\":" TEXT
			       ",\"base64\":{\"type\":\"string\","
			       "\"description\":\"Instead of text\"},\"mode\":{\"type\":"
			       "\"string\",\"description\":\"Octal, e.g. 755\"}," USER),
			"{\"type\":\"object\",\"required\":[\"path\",\"size\"],"
			"\"properties\":{\"path\":" TEXT
			",\"size\":{\"type\":\"integer\"}}}"},
	[TOOL_READ] = {NULL,
		       OBJECT("\"identifier\",\"path\"",
			      ID_ONLY "," PATH ",\"offset\":" COUNT(
				      0) ",\"max_bytes\":{\"type\":\"integer\","
					 "\"minimum\":1,\"maximum\":4194304,\"default\":"
					 "65536}," USER),
		       NULL},
	[TOOL_FILES] =
		{NULL,
		 OBJECT("\"identifier\"", ID_ONLY
			",\"path\":{\"type\":\"string\","
			"\"default\":\"/workspace\"},\"depth\":{\"type\":\"integer\","
			"\"minimum\":1,\"maximum\":32,\"default\":1}," CURSOR "," USER),
		 "{\"type\":\"object\",\"required\":[\"path\",\"entries\","
		 "\"total\"],\"properties\":{\"path\":" TEXT
		 ",\"entries\":{\"type\":\"array\"},\"total\":{\"type\":\"integer\"},"
		 "\"next_cursor\":" TEXT "}}"},
};

char *schema_input(const struct conf *c, enum tool_id id)
{
	return schemas[id].input ? schemas[id].input(c) : xstrdup(schemas[id].text);
}

const char *schema_output(enum tool_id id)
{
	return schemas[id].output;
}
