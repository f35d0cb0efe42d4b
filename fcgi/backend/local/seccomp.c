/* SPDX-License-Identifier: MIT */
#include "backend/local/seccomp.h"

#include <string.h>

#include "base/io.h"
#include "base/json.h"

static const char *const places[] = {
	"/usr/share/containers/seccomp.json",
	"/etc/containers/seccomp.json",
};

#if defined(__x86_64__)
static const char native_go[] = "amd64", native_scmp[] = "SCMP_ARCH_X86_64";
#elif defined(__aarch64__)
static const char native_go[] = "arm64", native_scmp[] = "SCMP_ARCH_AARCH64";
#else
#error "no sandbox on this architecture"
#endif

/* Taken out of every rule that allows them, when CAP_SYS_ADMIN is not there. */
static const char *const closed[] = {
	"unshare",
	"setns",
	"mount",
	"umount",
	"umount2",
	"pivot_root",
	"fsopen",
	"fsconfig",
	"fsmount",
	"fspick",
	"move_mount",
	"open_tree",
	"mount_setattr",
	"clone",
	"clone3",
	"keyctl",
	"add_key",
	"request_key",
	"bpf",
	"perf_event_open",
	"userfaultfd",
	"io_uring_setup",
	"io_uring_enter",
	"io_uring_register",
};

static bool list_has(json_t *list, const char *word)
{
	size_t i;
	json_t *v;

	json_array_foreach(list, i, v)
		if (json_is_string(v) && strcmp(json_string_value(v), word) == 0)
			return true;
	return false;
}

/* True if the sandbox has all (or, for `any`, one) of the capabilities listed. */
static bool has_caps(json_t *list, const struct caps *caps, bool any)
{
	size_t i;
	json_t *v;

	json_array_foreach(list, i, v)
		if (caps_has(caps, json_string_value(v) ? json_string_value(v) : "") ==
		    any)
			return any;
	return !any;
}

static bool applies(json_t *rule, const struct caps *caps)
{
	json_t *in = json_object_get(rule, "includes");
	json_t *out = json_object_get(rule, "excludes");
	json_t *arches = json_object_get(in, "arches");

	if (json_array_size(arches) > 0 && !list_has(arches, native_go))
		return false;
	if (list_has(json_object_get(out, "arches"), native_go))
		return false;
	if (!has_caps(json_object_get(in, "caps"), caps, false))
		return false;
	return json_array_size(json_object_get(out, "caps")) == 0 ||
	       !has_caps(json_object_get(out, "caps"), caps, true);
}

static bool is_closed(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof closed / sizeof closed[0]; i++)
		if (strcmp(closed[i], name) == 0)
			return true;
	return false;
}

/* The names of one rule, less those we close; NULL when none is left. */
static json_t *rule_names(json_t *rule, bool strict)
{
	json_t *names = json_array(), *v;
	const char *s;
	size_t i;

	json_array_foreach(json_object_get(rule, "names"), i, v) {
		s = json_string_value(v);
		if (s && !(strict && is_closed(s)))
			json_array_append(names, v);
	}
	if (json_array_size(names) > 0)
		return names;
	json_decref(names);
	return NULL;
}

static void add_rule(json_t *rules, json_t *rule, bool strict)
{
	json_t *names = rule_names(rule, strict), *to, *v;

	if (!names)
		return;
	to = json_pack("{s:o,s:O}", "names", names, "action",
		       json_object_get(rule, "action"));
	v = json_object_get(rule, "errnoRet");
	if (json_is_integer(v))
		json_object_set(to, "errnoRet", v);
	v = json_object_get(rule, "args");
	if (json_array_size(v) > 0)
		json_object_set(to, "args", v);
	json_array_append_new(rules, to);
}

/*
 * clone() stays for threads and processes (no CLONE_NEW* flag); clone3() hides
 * its flags in memory, so it is "not there" and libc falls back to clone().
 */
static void add_closed(json_t *rules)
{
	json_t *names = json_array();
	size_t i;

	for (i = 0; i < sizeof closed / sizeof closed[0]; i++)
		if (strncmp(closed[i], "clone", 5) != 0)
			json_array_append_new(names, json_string(closed[i]));
	json_array_append_new(rules, json_pack("{s:o,s:s,s:i}", "names", names, "action",
					       "SCMP_ACT_ERRNO", "errnoRet", 1));
	json_array_append_new(rules,
			      json_pack("{s:[s],s:s,s:i}", "names", "clone3", "action",
					"SCMP_ACT_ERRNO", "errnoRet", 38));
	json_array_append_new(
		rules, json_pack("{s:[s],s:s,s:[{s:i,s:I,s:I,s:s}]}", "names", "clone",
				 "action", "SCMP_ACT_ALLOW", "args", "index", 0, "value",
				 (json_int_t)0x7e020000, "valueTwo", (json_int_t)0, "op",
				 "SCMP_CMP_MASKED_EQ"));
}

int seccomp_translate(json_t *profile, const struct caps *caps, json_t **ret,
		      struct err *e)
{
	bool strict = !caps_has(caps, "CAP_SYS_ADMIN");
	json_t *syscalls = json_object_get(profile, "syscalls"), *v;
	json_t *action = json_object_get(profile, "defaultAction");
	json_t *code = json_object_get(profile, "defaultErrnoRet");
	AUTO_JSON *rules = json_array();
	json_t *to;
	size_t i;

	if (!json_is_array(syscalls) || !json_is_string(action))
		return err_set(e, ERR_INVALID, "not a seccomp profile");
	json_array_foreach(syscalls, i, v)
		if (applies(v, caps) && json_is_string(json_object_get(v, "action")))
			add_rule(rules, v, strict);
	if (strict)
		add_closed(rules);
	to = json_pack("{s:O,s:[s],s:O}", "defaultAction", action, "architectures",
		       native_scmp, "syscalls", rules);
	if (json_is_integer(code))
		json_object_set(to, "defaultErrnoRet", code);
	*ret = to;
	return 0;
}

int seccomp_profile_load(const struct caps *caps, json_t **ret, struct err *e)
{
	AUTO_BUF text = BUF_INIT(4 << 20);
	AUTO_JSON *profile = NULL;
	size_t i;

	for (i = 0; i < sizeof places / sizeof places[0]; i++)
		if (io_exists(places[i]))
			break;
	if (i == sizeof places / sizeof places[0])
		return err_set(e, ERR_NOT_FOUND,
			       "no seccomp profile (%s); install the package "
			       "golang-github-containers-common (Debian, Ubuntu)",
			       places[0]);
	if (io_read_file(places[i], &text, e) < 0 ||
	    json_parse(text.p, text.len, &profile, e) < 0 ||
	    seccomp_translate(profile, caps, ret, e) < 0)
		return err_wrap(e, "%s", places[i]);
	return 0;
}
