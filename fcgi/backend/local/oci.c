/* SPDX-License-Identifier: MIT */
#include "backend/local/oci.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/json.h"
#include "base/mem.h"

static const struct {
	const char *to, *type, *options;
} mounts[] = {
	{"/proc", "proc", "[\"nosuid\",\"noexec\",\"nodev\"]"},
	{"/dev", "tmpfs", "[\"nosuid\",\"strictatime\",\"mode=755\",\"size=1m\"]"},
	{"/dev/pts", "devpts",
	 "[\"nosuid\",\"noexec\",\"newinstance\",\"ptmxmode=0666\",\"mode=0620\",\"gid="
	 "5\"]"},
	{"/dev/shm", "tmpfs",
	 "[\"nosuid\",\"noexec\",\"nodev\",\"mode=1777\",\"size=64m\"]"},
	{"/dev/mqueue", "mqueue", "[\"nosuid\",\"noexec\",\"nodev\"]"},
	{"/sys", "sysfs", "[\"nosuid\",\"noexec\",\"nodev\",\"ro\"]"},
};

static const char namespaces[] =
	"[{\"type\":\"user\"},{\"type\":\"mount\"},{\"type\":\"pid\"},{\"type\":\"ipc\"},"
	"{\"type\":\"uts\"},{\"type\":\"network\"},{\"type\":\"cgroup\"}]";

/* What tells of, or reaches into, the machine behind the sandbox. */
static const char masked[] =
	"[\"/proc/acpi\",\"/proc/asound\",\"/proc/cmdline\",\"/proc/interrupts\",\"/proc/"
	"kcore\","
	"\"/proc/keys\",\"/proc/latency_stats\",\"/proc/timer_list\",\"/proc/"
	"timer_stats\","
	"\"/proc/sched_debug\",\"/proc/scsi\",\"/sys/firmware\",\"/sys/fs/cgroup\","
	"\"/sys/devices/virtual/powercap\",\"/sys/kernel\"]";
static const char readonly[] = "[\"/proc/bus\",\"/proc/fs\",\"/proc/irq\",\"/proc/sys\","
			       "\"/proc/sysrq-trigger\"]";

/* What commands have when they say nothing else, and the agent itself. */
static const char env[] =
	"[\"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\","
	"\"HOME=/root\",\"LANG=C.UTF-8\"]";

/* Our own constants: a mistake in them shows in the first test. */
static json_t *constant(const char *text)
{
	return json_loads(text, 0, NULL);
}

static void bind_file(json_t *list, const char *from, const char *to, const char *options)
{
	if (from)
		json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:o}", "destination",
						      to, "type", "bind", "source", from,
						      "options", constant(options)));
}

static json_t *all_mounts(const struct oci_spec *s)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < sizeof mounts / sizeof mounts[0]; i++)
		json_array_append_new(
			list, json_pack("{s:s,s:s,s:s,s:o}", "destination", mounts[i].to,
					"type", mounts[i].type, "source", mounts[i].type,
					"options", constant(mounts[i].options)));
	bind_file(list, s->agent_file, OCI_AGENT,
		  "[\"bind\",\"ro\",\"nosuid\",\"nodev\"]");
	bind_file(list, s->socket_dir, OCI_SOCKET_DIR,
		  "[\"bind\",\"nosuid\",\"nodev\",\"noexec\"]");
	bind_file(list, s->tmp_dir, "/tmp", "[\"bind\",\"nosuid\",\"nodev\"]");
	bind_file(list, s->hosts_file, "/etc/hosts",
		  "[\"bind\",\"nosuid\",\"nodev\",\"noexec\"]");
	bind_file(list, s->resolv_file, "/etc/resolv.conf",
		  "[\"bind\",\"ro\",\"nosuid\",\"nodev\",\"noexec\"]");
	return list;
}

static json_t *resources(const struct oci_spec *s)
{
	json_t *r = json_pack("{s:[{s:b,s:s}]}", "devices", "allow", 0, "access", "rwm");
	const bool *on = s->cgroups->enforced;
	json_int_t bytes = (json_int_t)s->memory_mb << 20;
	json_t *memory;

	if (on[CGROUP_CPU] && s->cpu_cores > 0)
		json_object_set_new(r, "cpu",
				    json_pack("{s:I,s:I}", "quota",
					      (json_int_t)(s->cpu_cores * 100000),
					      "period", (json_int_t)100000));
	if (on[CGROUP_PIDS] && s->pids > 0)
		json_object_set_new(r, "pids",
				    json_pack("{s:I}", "limit", (json_int_t)s->pids));
	if (!on[CGROUP_MEMORY] || bytes <= 0)
		return r;
	memory = json_pack("{s:I}", "limit", bytes);
	if (s->cgroups->swap)
		json_object_set_new(memory, "swap", json_integer(bytes));
	json_object_set_new(r, "memory", memory);
	return r;
}

static json_t *id_mapping(const struct oci_spec *s)
{
	return json_pack("[{s:i,s:I,s:i}]", "containerID", 0, "hostID",
			 (json_int_t)s->uid_base, "size", OCI_IDS);
}

static json_t *linux_part(const struct oci_spec *s, json_t *seccomp)
{
	AUTO_FREE char *group = xasprintf("%s/%s", s->cgroups->parent, s->cgroup_child);

	return json_pack("{s:o,s:o,s:o,s:s,s:o,s:o,s:o,s:o}", "namespaces",
			 constant(namespaces), "uidMappings", id_mapping(s),
			 "gidMappings", id_mapping(s), "cgroupsPath", group, "resources",
			 resources(s), "maskedPaths", constant(masked), "readonlyPaths",
			 constant(readonly), "seccomp", seccomp);
}

static json_t *process_part(const struct oci_spec *s)
{
	json_t *args = json_array(), *caps = json_object();
	static const char *const sets[] = {"bounding", "effective", "permitted"};
	size_t i;

	for (i = 0; s->args[i]; i++)
		json_array_append_new(args, json_string(s->args[i]));
	for (i = 0; i < sizeof sets / sizeof sets[0]; i++)
		json_object_set_new(caps, sets[i], caps_to_json(s->caps));
	return json_pack("{s:b,s:{s:i,s:i},s:o,s:o,s:s,s:b,s:o}", "terminal", 0, "user",
			 "uid", 0, "gid", 0, "args", args, "env", constant(env), "cwd",
			 "/", "noNewPrivileges", s->no_new_privileges, "capabilities",
			 caps);
}

int oci_config(const struct oci_spec *s, char **ret, struct err *e)
{
	AUTO_JSON *root = NULL;
	json_t *seccomp = NULL;

	if (json_parse(s->seccomp_text, strlen(s->seccomp_text), &seccomp, e) < 0)
		return err_wrap(e, "seccomp");
	root = json_pack("{s:s,s:o,s:{s:s,s:b},s:s,s:o,s:o}", "ociVersion", "1.0.2",
			 "process", process_part(s), "root", "path", s->rootfs,
			 "readonly", 0, "hostname", s->hostname, "mounts", all_mounts(s),
			 "linux", linux_part(s, seccomp));
	*ret = root ? json_dumps(root, JSON_COMPACT) : NULL;
	return *ret ? 0 : err_set(e, ERR_INVALID, "a name or path is not valid UTF-8");
}
