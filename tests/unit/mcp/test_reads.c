/* SPDX-License-Identifier: MIT */
#include "fake.h"

#include "base/io.h"
#include "mcp/reads.h"
#include "mcp/runobj.h"
#include "store/migrate.h"
#include "store/writer.h"
#include "tests/unit/testdir.h"

/* The real store under the MCP layer: what the runner writes, a client sees. */
#define RUN_ID "run_0123456789abcdef0123456789abcdef"

static char folder[64];
static struct store *writer;
static struct store_reader *reader;
static struct mcp_store_reads reads;

static void must(int rc, const struct err *e)
{
	if (rc < 0)
		fail_msg("%s", e->msg);
}

static void commit(void)
{
	struct store_commit_info info;
	struct err e = ERR_INIT;

	must(store_commit(writer, &info, &e), &e);
}

static char mcp_path[] = "/mcp";

static int set_up(void **state)
{
	struct store_migrate_opts mo = {.group = (gid_t)-1, .synchronous = "NORMAL"};
	struct store_opts so = {.synchronous = "NORMAL"};
	struct err e = ERR_INIT;
	static struct conf conf = {.mcp_path = mcp_path};
	char path[128];

	(void)state;
	test_folder(folder, sizeof(folder), "reads");
	snprintf(path, sizeof(path), "%s/db/x.sqlite", folder);
	must(store_migrate(path, &mo, &e), &e);
	must(store_open(path, &so, &writer, &e), &e);
	must(store_reader_open(path, &reader, &e), &e);
	conf.data_dir = folder;
	mcp_store_reads_init(&reads, reader, &conf);
	return 0;
}

static int tear_down(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	mcp_store_reads_release(&reads);
	store_reader_close(reader);
	store_close(writer);
	return io_rmtree(folder, &e);
}

static void a_session_is_read_for_its_tenant_only(void **state)
{
	struct store_session row = {.id = SESSION_NEW,
				    .tenant = "default",
				    .protocol_version = "2025-06-18",
				    .client_name = "t",
				    .client_version = "1",
				    .created_at = 1,
				    .last_seen_at = 1};
	struct mcp_reads *r = &reads.reads;
	struct err e = ERR_INIT;
	struct mcp_session session = {0};
	bool closed = false;

	(void)state;
	must(store_session_open(writer, &row, &e), &e);
	commit();
	assert_int_equal(r->session(r->arg, "default", SESSION_NEW, &session, &e), 1);
	assert_string_equal(session.version, "2025-06-18");
	assert_int_equal(r->session(r->arg, "other", SESSION_NEW, &session, &e), 0);
	assert_int_equal(r->session(r->arg, "default", SESSION_MID, &session, &e), 0);
	must(store_session_close(writer, "default", SESSION_NEW, &closed, &e), &e);
	commit();
	assert_int_equal(r->session(r->arg, "default", SESSION_NEW, &session, &e), 0);
}

static void write_run(const char *out, bool to_the_end)
{
	struct store_command c = {.shell = "echo",
				  .cwd = "/",
				  .env_json = "{}",
				  .timeout_ms = 1000,
				  .exit_code = -1,
				  .oom = -1,
				  .cpu_ms = -1,
				  .max_rss_kb = -1};
	struct store_run run = {.run_id = RUN_ID,
				.tenant = "default",
				.identifier = "chat",
				.sandbox_name = "sbx",
				.created_at = 1000,
				.ttl_s = 60,
				.commands = &c,
				.ncommands = 1};
	struct store_output o = {.run_id = RUN_ID,
				 .stream = STORE_STDOUT,
				 .at = 2000,
				 .data = out,
				 .n = strlen(out)};
	struct err e = ERR_INIT;
	bool existed;
	int64_t stored;

	must(store_run_insert(writer, &run, &existed, &e), &e);
	must(store_run_start(writer, RUN_ID, "sbx", "id", 1500, &e), &e);
	must(store_command_start(writer, RUN_ID, 0, 1500, &e), &e);
	must(store_output_add(writer, &o, &stored, &e), &e);
	if (!to_the_end) {
		commit();
		return;
	}
	c.status = STORE_COMMAND_COMPLETED;
	c.exit_code = 0;
	c.ended_at = 2500;
	c.bytes[STORE_STDOUT] = (int64_t)strlen(out);
	must(store_command_finish(writer, RUN_ID, &c, &e), &e);
	must(store_run_finish(writer, RUN_ID, STORE_RUN_COMPLETED, 3000, NULL, &e), &e);
	commit();
}

static void a_run_is_read_with_its_output(void **state)
{
	struct mcp_reads *r = &reads.reads;
	struct err e = ERR_INIT;
	AUTO_JSON *run = NULL;
	json_t *none = NULL;
	const json_t *command;

	(void)state;
	write_run("hello\n", true);
	assert_int_equal(r->run(r->arg, "default", RUN_ID, "http://h", &run, &e), 1);
	assert_string_equal(str_at(run, "state"), "completed");
	assert_null(json_object_get(run, "status_url")); /* it stands beside `final` */
	command = json_array_get(at(run, "commands"), 0);
	assert_string_equal(str_at(command, "stdout"), "hello\n");
	assert_string_equal(str_at(command, "stderr"), "");
	assert_null(json_object_get(command, "stdout_url"));
	assert_string_equal(str_at(command, "started_at"), "1970-01-01T00:00:01.500Z");
	assert_int_equal(r->run(r->arg, "other", RUN_ID, "", &none, &e), 0);
	assert_int_equal(r->run(r->arg, "default", "run_x", "", &none, &e), 0);
	assert_null(none);
}

static void a_running_command_shows_its_output_so_far(void **state)
{
	struct mcp_reads *r = &reads.reads;
	struct err e = ERR_INIT;
	AUTO_JSON *run = NULL;
	const json_t *command;

	(void)state;
	write_run("so far\n", false);
	assert_int_equal(r->run(r->arg, "default", RUN_ID, "", &run, &e), 1);
	assert_string_equal(str_at(run, "state"), "running");
	command = json_array_get(at(run, "commands"), 0);
	assert_string_equal(str_at(command, "stdout"), "so far\n");
	assert_int_equal(json_integer_value(at(command, "stdout_bytes")), 7);
	assert_true(json_is_null(at(command, "exit_code")));
}

static void the_full_object_has_more_than_a_models(void **state)
{
	struct runobj_opts full = runobj_opts_full("", "/mcp");
	struct mcp_reads *r = &reads.reads;
	AUTO_BUF out = BUF_INIT(1000000);
	struct err e = ERR_INIT;
	AUTO_JSON *whole = NULL;
	AUTO_JSON *cut = NULL;
	int i;

	(void)state;
	for (i = 0; i < 20000; i++)
		buf_printf(&out, "line %d\n", i);
	write_run(out.p, true);
	must(runobj_read(reader, "default", RUN_ID, &full, &whole, &e), &e);
	assert_string_equal(str_at(json_array_get(at(whole, "commands"), 0), "stdout"),
			    out.p);
	assert_int_equal(r->run(r->arg, "default", RUN_ID, "http://h", &cut, &e), 1);
	assert_string_equal(str_at(whole, "status_url"), "/mcp/runs/" RUN_ID);
	assert_string_equal(str_at(json_array_get(at(cut, "commands"), 0), "stdout_url"),
			    "http://h/mcp/runs/" RUN_ID "/commands/0/stdout");
	assert_in_range(strlen(str_at(json_array_get(at(cut, "commands"), 0), "stdout")),
			60 * 1024, 66 * 1024);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_session_is_read_for_its_tenant_only),
		TEST(a_run_is_read_with_its_output),
		TEST(a_running_command_shows_its_output_so_far),
		TEST(the_full_object_has_more_than_a_models),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
