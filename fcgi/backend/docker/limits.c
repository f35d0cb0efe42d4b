/* SPDX-License-Identifier: MIT */
#include "backend/docker/limits.h"

#include <string.h>

#include "base/json.h"

enum { CPUS_MAX = 65536 };

struct limits limits_make(double cpu_cores, int64_t memory_mb, int64_t pids)
{
	return (struct limits){.nano_cpus = (int64_t)(cpu_cores * 1e9),
			       .memory = memory_mb << 20,
			       .pids = pids};
}

static int64_t number(const json_t *host, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(host, key));

	return n > 0 ? n : 0; /* -1: no limit, too */
}

struct limits limits_parse(const json_t *host)
{
	return (struct limits){.nano_cpus = number(host, "NanoCpus"),
			       .memory = number(host, "Memory"),
			       .pids = number(host, "PidsLimit")};
}

static void put_cpus(const struct limits *l, json_t *o)
{
	if (l->nano_cpus > 0)
		json_put(o, "NanoCpus", json_integer(l->nano_cpus));
}

static void put_memory(const struct limits *l, json_t *o)
{
	if (l->memory <= 0)
		return;
	json_put(o, "Memory", json_integer(l->memory));
	json_put(o, "MemorySwap", json_integer(l->memory));
}

void limits_put(const struct limits *l, json_t *host)
{
	put_cpus(l, host);
	put_memory(l, host);
	if (l->pids > 0)
		json_put(host, "PidsLimit", json_integer(l->pids));
}

/* No limit is a limit of all there is. */
static struct limits lifted(const struct limits *l, const struct limits *host)
{
	return (struct limits){.nano_cpus = l->nano_cpus ? l->nano_cpus : host->nano_cpus,
			       .memory = l->memory ? l->memory : host->memory};
}

struct limits limits_host(const json_t *info)
{
	int64_t cpus = number(info, "NCPU");

	return (struct limits){.nano_cpus = cpus <= CPUS_MAX ? cpus * 1000000000 : 0,
			       .memory = number(info, "MemTotal")};
}

json_t *limits_change(const struct limits *has, const struct limits *want,
		      const struct limits *host)
{
	const struct limits now = lifted(has, host), then = lifted(want, host);
	json_t *o = json_must(json_object());

	if (now.nano_cpus != then.nano_cpus)
		put_cpus(&then, o);
	if (now.memory != then.memory)
		put_memory(&then, o);
	if (has->pids != want->pids)
		json_put(o, "PidsLimit", json_integer(want->pids > 0 ? want->pids : -1));
	if (json_object_size(o) > 0)
		return o;
	json_decref(o);
	return NULL;
}

/* Podman tells of the kernel; without its user's control groups it keeps none. */
static bool has_no_groups(const json_t *info)
{
	const char *version = json_get_string(info, "CgroupVersion");

	return json_is_true(json_object_get(info, "Rootless")) && version &&
	       strcmp(version, "1") == 0;
}

void limits_unkept(const json_t *info, struct buf *words)
{
	static const struct {
		const char *key, *what;
	} limits[] = {{"CpuCfsQuota", "processors"},
		      {"MemoryLimit", "memory"},
		      {"PidsLimit", "processes"}};
	bool none = has_no_groups(info);
	size_t i;

	for (i = 0; i < sizeof limits / sizeof *limits; i++)
		if (none || json_is_false(json_object_get(info, limits[i].key)))
			buf_printf(words, "%s%s", words->len ? ", " : "", limits[i].what);
}
