/* SPDX-License-Identifier: MIT */
#include "mcp/schemas.h"

#include <inttypes.h>

#include "base/mem.h"

#define IDENTIFIER                                                                       \
	"\"identifier\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":256,"         \
	"\"description\":\"Names the sandbox, e.g. one per conversation\"}"

#define ENV                                                                              \
	"\"anyOf\":[{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}" \
	"},"                                                                             \
	"{\"type\":\"array\",\"items\":{\"type\":\"string\"}}],"                         \
	"\"description\":\"Variables, or a list of KEY=VALUE\""

static char *run_input(const struct conf *c)
{
	return xasprintf(
		"{\"type\":\"object\",\"additionalProperties\":false,\"required\":["
		"\"identifier\",\"commands\"],"
		"\"properties\":{" IDENTIFIER ","
		"\"commands\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":%" PRId64
		","
		"\"description\":\"Run in order; each has exactly one of shell and "
		"argv\","
		"\"items\":{\"type\":\"object\",\"additionalProperties\":false,"
		"\"properties\":{"
		"\"shell\":{\"type\":\"string\","
		"\"description\":\"Script for bash -lc, may have many lines\"},"
		"\"argv\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},"
		"\"description\":\"Program and arguments, no shell\"},"
		"\"cwd\":{\"type\":\"string\",\"description\":\"Absolute folder\"},"
		"\"env\":{" ENV "},"
		"\"timeout_ms\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":86400000,"
		"\"default\":%" PRId64 "},"
		"\"allow_failure\":{\"type\":\"boolean\",\"default\":false,"
		"\"description\":\"A failure does not fail the run\"}}}},"
		"\"options\":{\"type\":\"object\",\"additionalProperties\":false,"
		"\"properties\":{"
		"\"await_completion\":{\"type\":\"boolean\",\"default\":%s,"
		"\"description\":\"Answer when the run ended, with its output\"},"
		"\"await_timeout_ms\":{\"type\":\"integer\",\"minimum\":1,"
		"\"maximum\":86400000,\"default\":%" PRId64
		",\"description\":\"Wait at most so long; the run goes on\"},"
		"\"as_user\":{\"type\":\"string\",\"enum\":[\"sandbox\",\"root\"],"
		"\"default\":\"sandbox\",\"description\":\"root may install packages\"},"
		"\"default_cwd\":{\"type\":\"string\",\"default\":\"/workspace\"},"
		"\"default_env\":{" ENV "},"
		"\"continue_on_error\":{\"type\":\"boolean\",\"default\":false,"
		"\"description\":\"Run the rest after a failure; the run still fails\"},"
		"\"lock_sandbox\":{\"type\":\"boolean\",\"default\":false,"
		"\"description\":\"Wait for earlier runs of this sandbox\"},"
		"\"ttl_seconds\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":%" PRId64
		",\"default\":%" PRId64 ","
		"\"description\":\"Keep the sandbox so long after its last use\"}}}}}",
		c->max_commands, c->default_command_timeout_ms,
		c->default_await_completion ? "true" : "false",
		c->default_await_timeout_ms, c->max_ttl_s, c->default_ttl_s);
}

static char *delete_input(const struct conf *c)
{
	(void)c;
	return xstrdup("{\"type\":\"object\",\"additionalProperties\":false,\"required\":"
		       "[\"identifier\"],"
		       "\"properties\":{" IDENTIFIER "}}");
}

static char *restart_input(const struct conf *c)
{
	return xasprintf(
		"{\"type\":\"object\",\"additionalProperties\":false,\"required\":["
		"\"identifier\"],"
		"\"properties\":{" IDENTIFIER ","
		"\"options\":{\"type\":\"object\",\"additionalProperties\":false,"
		"\"properties\":{"
		"\"ttl_seconds\":{\"type\":\"integer\",\"minimum\":1,"
		"\"maximum\":%" PRId64 ",\"default\":%" PRId64 "}}}}}",
		c->max_ttl_s, c->default_ttl_s);
}

static const char run_output[] =
	"{\"type\":\"object\",\"required\":[\"run_id\",\"events_url\",\"status_url\","
	"\"identifier\",\"sandbox_name\"],\"properties\":{"
	"\"run_id\":{\"type\":\"string\"},\"events_url\":{\"type\":\"string\"},"
	"\"status_url\":{\"type\":\"string\"},\"identifier\":{\"type\":\"string\"},"
	"\"sandbox_name\":{\"type\":\"string\"},"
	"\"final\":{\"type\":[\"object\",\"null\"],"
	"\"description\":\"The ended run; null when the wait ran out\","
	"\"required\":[\"run_id\",\"state\",\"commands\",\"artifacts\"],\"properties\":{"
	"\"run_id\":{\"type\":\"string\"},"
	"\"state\":{\"enum\":[\"queued\",\"running\",\"completed\",\"failed\","
	"\"canceled\"]},\"error\":{\"type\":[\"string\",\"null\"]},"
	"\"commands\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
	"\"required\":[\"index\",\"status\",\"exit_code\",\"stdout\",\"stderr\"],"
	"\"properties\":{\"index\":{\"type\":\"integer\"},"
	"\"status\":{\"enum\":[\"queued\",\"completed\",\"failed\",\"timed_out\"]},"
	"\"exit_code\":{\"type\":[\"integer\",\"null\"]},"
	"\"signal\":{\"type\":[\"string\",\"null\"]},"
	"\"reason\":{\"type\":[\"string\",\"null\"]},"
	"\"stdout\":{\"type\":\"string\"},\"stderr\":{\"type\":\"string\"},"
	"\"stdout_truncated\":{\"type\":\"boolean\"},"
	"\"stderr_truncated\":{\"type\":\"boolean\"}}}},"
	"\"artifacts\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
	"\"required\":[\"path\",\"size\",\"url\"],\"properties\":{"
	"\"path\":{\"type\":\"string\"},\"size\":{\"type\":\"integer\"},"
	"\"url\":{\"type\":\"string\"}}}}}}}}";

static const char delete_output[] =
	"{\"type\":\"object\",\"required\":[\"deleted\",\"identifier\"],\"properties\":{"
	"\"deleted\":{\"type\":\"boolean\"},\"identifier\":{\"type\":\"string\"}}}";

static const char restart_output[] =
	"{\"type\":\"object\",\"required\":[\"sandbox\"],\"properties\":{"
	"\"sandbox\":{\"type\":\"object\",\"required\":[\"identifier\",\"container_id\","
	"\"name\",\"created_at\",\"expires_at\",\"image\"],\"properties\":{"
	"\"identifier\":{\"type\":\"string\"},\"container_id\":{\"type\":\"string\"},"
	"\"name\":{\"type\":\"string\"},\"created_at\":{\"type\":\"string\"},"
	"\"expires_at\":{\"type\":\"string\"},\"image\":{\"type\":\"string\"}}}}}";

static const struct {
	char *(*input)(const struct conf *c);
	const char *output;
} schemas[TOOL_COUNT] = {
	[TOOL_RUN] = {run_input, run_output},
	[TOOL_DELETE] = {delete_input, delete_output},
	[TOOL_RESTART] = {restart_input, restart_output},
};

char *schema_input(const struct conf *c, enum tool_id id)
{
	return schemas[id].input(c);
}

const char *schema_output(enum tool_id id)
{
	return schemas[id].output;
}
