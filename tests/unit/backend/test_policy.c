/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/caps.h"
#include "backend/local/aptsource.h"
#include "backend/local/box.h"
#include "backend/local/image.h"
#include "backend/local/netrules.h"
#include "backend/local/oci.h"
#include "backend/local/seccomp.h"
#include "base/auto.h"
#include "base/json.h"

static struct caps caps_of(const char *drop, const char *add)
{
	struct caps c = {0};
	struct err e = ERR_INIT;

	if (caps_parse(drop, add, &c, &e) < 0)
		fail_msg("%s", e.msg);
	return c;
}

static void kill_is_always_among_the_capabilities(void **state)
{
	struct caps c = caps_of("ALL", "");

	(void)state;
	assert_true(caps_has(&c, "CAP_KILL"));
	assert_int_equal(c.bits, 1 << 5);
}

static void capabilities_are_dropped_first_and_added_second(void **state)
{
	struct caps c = caps_of("ALL", "cap_setuid, SETGID,");

	(void)state;
	assert_true(caps_has(&c, "CAP_SETUID"));
	assert_true(caps_has(&c, "CAP_SETGID"));
	assert_false(caps_has(&c, "CAP_CHOWN"));
	c = caps_of("NET_RAW", "");
	assert_false(caps_has(&c, "CAP_NET_RAW"));
	assert_true(caps_has(&c, "CAP_CHOWN"));
	assert_false(caps_has(&c, "CAP_SYS_ADMIN"));
}

static void an_unknown_capability_is_named(void **state)
{
	struct caps c;
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(caps_parse("ALL", "SETUID,FLYING", &c, &e), -1);
	assert_non_null(strstr(e.msg, "FLYING"));
	assert_non_null(strstr(e.msg, "SANDBOX_CAP_ADD"));
}

/* The last rule that names the call decides nothing: there may be only one kind. */
static const char *action_of(json_t *profile, const char *call)
{
	const char *found = NULL;
	json_t *rule, *name;
	size_t i, k;

	json_array_foreach(json_object_get(profile, "syscalls"), i, rule)
		json_array_foreach(json_object_get(rule, "names"), k, name)
			if (strcmp(json_string_value(name), call) == 0)
				found = json_string_value(
					json_object_get(rule, "action"));
	return found;
}

static json_t *translate(const char *text, const struct caps *c)
{
	AUTO_JSON *profile = NULL;
	struct err e = ERR_INIT;
	json_t *ret = NULL;

	if (json_parse(text, strlen(text), &profile, &e) < 0 ||
	    seccomp_translate(profile, c, &ret, &e) < 0)
		fail_msg("%s", e.msg);
	return ret;
}

static const char profile[] =
	"{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":38,\"syscalls\":["
	"{\"names\":[\"read\",\"unshare\",\"mount\"],\"action\":\"SCMP_ACT_ALLOW\","
	" \"includes\":{},\"excludes\":{}},"
	"{\"names\":[\"chroot\"],\"action\":\"SCMP_ACT_ALLOW\","
	" \"includes\":{\"caps\":[\"CAP_SYS_CHROOT\"]}},"
	"{\"names\":[\"chroot\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":1,"
	" \"excludes\":{\"caps\":[\"CAP_SYS_CHROOT\"]}},"
	"{\"names\":[\"s390_only\"],\"action\":\"SCMP_ACT_ALLOW\","
	" \"includes\":{\"arches\":[\"s390x\"]}}]}";

static void rules_follow_the_capabilities(void **state)
{
	struct caps without = caps_of("ALL", ""), with = caps_of("ALL", "SYS_CHROOT");
	AUTO_JSON *a = translate(profile, &without);
	AUTO_JSON *b = translate(profile, &with);

	(void)state;
	assert_string_equal(action_of(a, "chroot"), "SCMP_ACT_ERRNO");
	assert_string_equal(action_of(b, "chroot"), "SCMP_ACT_ALLOW");
	assert_string_equal(action_of(a, "read"), "SCMP_ACT_ALLOW");
	assert_null(action_of(a, "s390_only"));
	assert_int_equal(json_integer_value(json_object_get(a, "defaultErrnoRet")), 38);
}

static void namespaces_are_closed_without_sys_admin(void **state)
{
	struct caps without = caps_of("ALL", ""), with = caps_of("ALL", "SYS_ADMIN");
	AUTO_JSON *a = translate(profile, &without);
	AUTO_JSON *b = translate(profile, &with);

	(void)state;
	assert_string_equal(action_of(a, "unshare"), "SCMP_ACT_ERRNO");
	assert_string_equal(action_of(a, "mount"), "SCMP_ACT_ERRNO");
	assert_string_equal(action_of(b, "unshare"), "SCMP_ACT_ALLOW");
}

static void what_is_no_profile_is_refused(void **state)
{
	AUTO_JSON *p = json_pack("{s:s}", "defaultAction", "SCMP_ACT_ALLOW");
	struct caps c = caps_of("ALL", "");
	struct err e = ERR_INIT;
	json_t *ret;

	(void)state;
	assert_int_equal(seccomp_translate(p, &c, &ret, &e), -1);
}

static void names_of_sandboxes_are_safe_and_differ(void **state)
{
	char a[64], b[64], c[64], d[64];

	(void)state;
	backend_sandbox_name(a, sizeof a, "00000001", "default", "../../Etc/passwd");
	backend_sandbox_name(b, sizeof b, "00000001", "default", "../../etc/passwd");
	backend_sandbox_name(c, sizeof c, "00000002", "default", "../../etc/passwd");
	backend_sandbox_name(d, sizeof d, "00000001", "default",
			     "a-very-long-identifier-of-more-than-forty-characters-x");
	assert_int_equal(strncmp(a, "mcp-sbx-------etc-passwd-", 25), 0);
	assert_string_not_equal(a, b);
	assert_string_not_equal(b, c);
	assert_true(box_name_ok(a));
	assert_true(box_name_ok(d));
	assert_int_equal(strlen(d), 8 + 40 + 1 + 8);
}

/* A name of an identifier has a dash before its last 8 digits, this never. */
static void no_identifier_has_the_name_of_a_warm_sandbox(void **state)
{
	char a[64], b[64];

	(void)state;
	backend_warm_name(a, sizeof a);
	backend_warm_name(b, sizeof b);
	assert_int_equal(strncmp(a, "mcp-sbx-warm-", 13), 0);
	assert_true(box_name_ok(a));
	assert_string_not_equal(a, b);
	assert_int_equal(strspn(a + strlen(a) - 9, "0123456789abcdef"), 9);
}

static void only_plain_names_pass_as_folders(void **state)
{
	static const char *const bad[] = {"", ".", "..", "a/b", "-a", "A", "a b", "a.b"};
	static const char *const bad_images[] = {"",   "..",  ".x", "a/b",
						 "-a", "a:b", "a,b"};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_false(box_name_ok(bad[i]));
	for (i = 0; i < sizeof bad_images / sizeof bad_images[0]; i++)
		assert_false(image_name_ok(bad_images[i]));
	assert_true(image_name_ok("debian-12.5_x"));
}

static bool fits(const char *text, const char *suite)
{
	return aptsource_fits(text, strlen(text), suite);
}

static void only_the_distributions_own_sources_are_taken(void **state)
{
	(void)state;
	assert_true(fits("Types: deb\nSuites: bookworm bookworm-updates\nSigned-By: "
			 "/usr/share/keyrings/debian-archive-keyring.gpg\n",
			 "bookworm"));
	assert_true(fits("deb http://mirror/ubuntu noble main universe\n", "noble"));
	assert_false(fits("deb http://mirror/debian trixie main\n", "bookworm"));
	assert_false(fits("# deb http://mirror/debian bookworm main\n", "bookworm"));
	assert_false(fits("deb [signed-by=/etc/apt/keyrings/vendor.gpg] "
			  "https://vendor/linux bookworm stable\n",
			  "bookworm"));
}

static void the_rules_name_the_hosts_addresses(void **state)
{
	AUTO_FREE char *with = netrules_text("192.0.2.1, 192.0.2.2");
	AUTO_FREE char *without = netrules_text("");

	(void)state;
	assert_non_null(strstr(with, "elements = { 192.0.2.1, 192.0.2.2 }"));
	assert_non_null(strstr(without, "set host { type ipv4_addr;  }"));
}

static void a_configuration_has_the_limits_that_can_be_enforced(void **state)
{
	static const char *const args[] = {"/bin/true", NULL};
	struct caps caps = caps_of("ALL", "");
	struct cgroups groups = {.parent = (char *)(uintptr_t) "/p",
				 .enforced = {true, true, false}};
	struct oci_spec s = {.rootfs = "/r",
			     .args = args,
			     .hostname = "h",
			     .cgroup_child = "c",
			     .seccomp_text = "{}",
			     .caps = &caps,
			     .cgroups = &groups,
			     .uid_base = 100000,
			     .no_new_privileges = true,
			     .cpu_cores = 0.5,
			     .memory_mb = 64,
			     .pids = 10};
	AUTO_FREE char *text = NULL;
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(oci_config(&s, &text, &e), 0);
	assert_non_null(strstr(text, "\"quota\":50000"));
	assert_non_null(strstr(text, "\"limit\":67108864"));
	assert_null(strstr(text, "\"swap\""));
	assert_null(strstr(text, "\"pids\":{"));
	assert_non_null(strstr(text, "\"cgroupsPath\":\"/p/c\""));
	assert_non_null(strstr(text, "\"hostID\":100000"));
	assert_non_null(strstr(text, "\"noNewPrivileges\":true"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kill_is_always_among_the_capabilities),
		cmocka_unit_test(capabilities_are_dropped_first_and_added_second),
		cmocka_unit_test(an_unknown_capability_is_named),
		cmocka_unit_test(rules_follow_the_capabilities),
		cmocka_unit_test(namespaces_are_closed_without_sys_admin),
		cmocka_unit_test(what_is_no_profile_is_refused),
		cmocka_unit_test(names_of_sandboxes_are_safe_and_differ),
		cmocka_unit_test(no_identifier_has_the_name_of_a_warm_sandbox),
		cmocka_unit_test(only_plain_names_pass_as_folders),
		cmocka_unit_test(only_the_distributions_own_sources_are_taken),
		cmocka_unit_test(the_rules_name_the_hosts_addresses),
		cmocka_unit_test(a_configuration_has_the_limits_that_can_be_enforced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
