/* SPDX-License-Identifier: MIT */
#include "fake.h"

#include <unistd.h>

#include "base/clock.h"
#include "mcp/ask.h"
#include "mcp/logmsg.h"
#include "mcp/session.h"

static struct sessions *all;
static struct fake_store store;
static struct mcp_reads reads;

static int set_up(void **state)
{
	(void)state;
	all = sessions_new();
	store = (struct fake_store){0};
	reads = fake_reads(&store);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	sessions_free(all);
	return 0;
}

static int look(const char *tenant, const char *id, const char **ret_version)
{
	struct session_info info = {0};
	struct err e = ERR_INIT;
	int rc = sessions_check(all, &reads, tenant, id, &info, &e);

	if (ret_version)
		*ret_version = rc == 1 ? info.version->name : NULL;
	return rc;
}

static void the_store_is_asked_once(void **state)
{
	const char *version = NULL;
	int64_t began = clock_mono_ms();
	int i;

	(void)state;
	for (i = 0; i < 100; i++)
		assert_int_equal(look("default", SESSION_MID, &version), 1);
	assert_string_equal(version, "2025-03-26");
	/* And once again a second, should it take so long. */
	assert_in_range(store.session_reads, 1, 1 + (clock_mono_ms() - began) / 1000);
}

static void one_that_may_have_changed_is_asked_for_again(void **state)
{
	struct session_info info = {0};
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(look("default", SESSION_NEW, NULL), 1);
	store.client_can = "roots,elicitation";
	store.log_level = "warning";
	sessions_doubt(all, SESSION_NEW);
	assert_int_equal(sessions_check(all, &reads, "default", SESSION_NEW, &info, &e),
			 1);
	assert_int_equal(store.session_reads, 2);
	assert_int_equal(info.can, ASK_ELICITATION | ASK_ROOTS);
	assert_int_equal(info.log_level, logmsg_level("warning"));
}

static void what_is_no_id_costs_no_question(void **state)
{
	(void)state;
	assert_int_equal(look("default", "", NULL), 0);
	assert_int_equal(look("default", "1111111111111111111111111111111G", NULL), 0);
	assert_int_equal(look("default", SESSION_NEW "1", NULL), 0);
	assert_int_equal(store.session_reads, 0);
}

static void a_session_belongs_to_its_tenant(void **state)
{
	(void)state;
	assert_int_equal(look("default", SESSION_NEW, NULL), 1);
	assert_int_equal(look("other", SESSION_NEW, NULL), 0);
	assert_int_equal(look("default", SESSION_NEW, NULL), 1);
}

static void a_session_closed_elsewhere_ends_within_a_second_or_so(void **state)
{
	(void)state;
	assert_int_equal(look("default", SESSION_NEW, NULL), 1);
	store.closed = true;
	usleep(1100 * 1000);
	assert_int_equal(look("default", SESSION_NEW, NULL), 0);
	assert_int_equal(look("default", SESSION_NEW, NULL), 0);
}

static void a_forgotten_session_is_asked_for_again(void **state)
{
	(void)state;
	assert_int_equal(look("default", SESSION_NEW, NULL), 1);
	sessions_forget(all, SESSION_NEW);
	store.closed = true;
	assert_int_equal(look("default", SESSION_NEW, NULL), 0);
}

static void used_sessions_are_told_once(void **state)
{
	AUTO_JSON *ids = NULL;
	AUTO_JSON *none = NULL;

	(void)state;
	assert_int_equal(look("default", SESSION_NEW, NULL), 1);
	assert_int_equal(look("default", SESSION_NEW, NULL), 1);
	assert_int_equal(look("default", SESSION_MID, NULL), 1);
	ids = sessions_drain(all);
	assert_int_equal(json_array_size(ids), 2);
	none = sessions_drain(all);
	assert_null(none);
	assert_int_equal(look("default", SESSION_MID, NULL), 1);
	none = sessions_drain(all);
	assert_int_equal(json_array_size(none), 1);
	assert_string_equal(json_string_value(json_array_get(none, 0)), SESSION_MID);
}

static void more_than_fit_are_looked_up_again(void **state)
{
	const struct session_info info = {.version = mcp_version_newest(MCP_LEGACY)};
	char id[40];
	int i;

	(void)state;
	assert_int_equal(look("default", SESSION_NEW, NULL), 1);
	for (i = 0; i < 16; i++) { /* all in the set of SESSION_NEW */
		snprintf(id, sizeof(id), "1111%028x", (unsigned)i);
		sessions_add(all, "default", id, &info);
	}
	assert_int_equal(look("default", SESSION_NEW, NULL), 1);
	assert_int_equal(store.session_reads, 2);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(the_store_is_asked_once),
		TEST(one_that_may_have_changed_is_asked_for_again),
		TEST(what_is_no_id_costs_no_question),
		TEST(a_session_belongs_to_its_tenant),
		TEST(a_session_closed_elsewhere_ends_within_a_second_or_so),
		TEST(a_forgotten_session_is_asked_for_again),
		TEST(used_sessions_are_told_once),
		TEST(more_than_fit_are_looked_up_again),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
