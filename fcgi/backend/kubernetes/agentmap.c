/* SPDX-License-Identifier: MIT */
#include "backend/kubernetes/agentmap.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "backend/agentfile.h"
#include "backend/kubernetes/api/collection.h"
#include "backend/kubernetes/api/configmap.h"
#include "backend/kubernetes/elfarch.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "base/str.h"

enum {
	ARCHES = 2,
	CONFIGMAP_MAX = 1 << 20, /* bytes that a ConfigMap may hold */
	LOOK_AGAIN_MS = 30000,
};

static const char AGENT_ROLE[] = "agent";

struct agent {
	const char *arch;
	char *name;
	json_t *body;
};

struct agentmap {
	struct kube_api *api;
	const struct podspec *spec;
	char *owner_name;
	struct agent agents[ARCHES];
	size_t n;
	pthread_mutex_t lock; /* guards what follows; held during a look */
	char *owner_uid;
	int64_t owner_at, agents_at; /* when the last look began; 0: never */
};

/* ---- the programs */

static const struct agent *agent_of(const struct agentmap *m, const char *arch)
{
	size_t i;

	for (i = 0; i < m->n; i++)
		if (strcmp(m->agents[i].arch, arch) == 0)
			return &m->agents[i];
	return NULL;
}

static int add(struct agentmap *m, const struct buf *program, struct err *e)
{
	const char *arch = elfarch(program->p, program->len);
	AUTO_BUF text = BUF_INIT((size_t)2 * CONFIGMAP_MAX);
	char hex[SHA256_HEX_LEN + 1];
	struct agent *a;

	if (!arch)
		return err_set(e, ERR_INVALID,
			       "the agent is no program for amd64 or arm64");
	if (program->len > CONFIGMAP_MAX)
		return err_set(e, ERR_INVALID,
			       "the agent for %s has %zu bytes; a ConfigMap holds 1 MiB",
			       arch, program->len);
	if (agent_of(m, arch))
		return 0; /* the first one counts */
	sha256_hex(program->p, program->len, hex);
	base64_add(&text, program->p, program->len);
	a = &m->agents[m->n++];
	a->arch = arch;
	a->name = xasprintf("mcp-sandboxd-%s-%s-%.12s", m->spec->instance, arch, hex);
	a->body = json_must(json_pack(
		"{s:s,s:s,s:o,s:b,s:{s:s%}}", "apiVersion", "v1", "kind", "ConfigMap",
		"metadata", podspec_metadata(m->spec, a->name, AGENT_ROLE), "immutable",
		1, "binaryData", "agent", text.p, text.len));
	return 0;
}

/* Those for other processors are there or not. */
static int read_programs(struct agentmap *m, struct err *e)
{
	static const char *const suffixes[] = {"", ".amd64", ".arm64"};
	size_t i;

	for (i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		AUTO_BUF program = BUF_INIT(AGENTFILE_MAX);
		struct err why = ERR_INIT;

		if (agentfile_read_other(m->spec->conf, suffixes[i], &program, &why) <
		    0) {
			if (why.kind == ERR_NOT_FOUND && *suffixes[i])
				continue;
			*e = why;
			return -1;
		}
		if (add(m, &program, e) < 0)
			return -1;
	}
	return 0;
}

/* Those of KUBERNETES_ARCHITECTURES alone, in its order. */
static int choose(struct agentmap *m, struct err *e)
{
	struct str rest = str_of(m->spec->conf->kube_architectures), word;
	size_t chosen = 0, i;

	if (rest.n == 0)
		return 0;
	while (str_cut(&rest, ',', &word)) {
		word = str_trim(word);
		for (i = chosen; i < m->n && !str_eq(word, m->agents[i].arch); i++)
			;
		if (i < m->n) {
			struct agent swap = m->agents[chosen];

			m->agents[chosen++] = m->agents[i];
			m->agents[i] = swap;
			continue;
		}
		for (i = 0; i < chosen && !str_eq(word, m->agents[i].arch); i++)
			;
		if (i == chosen)
			return err_set(
				e, ERR_INVALID,
				"KUBERNETES_ARCHITECTURES: there is no agent for "
				"%.*s; it is looked for beside the other one, with "
				".%.*s behind its name",
				(int)word.n, word.p, (int)word.n, word.p);
	}
	while (m->n > chosen) {
		m->n--;
		free(m->agents[m->n].name);
		json_decref(m->agents[m->n].body);
	}
	return 0;
}

int agentmap_open(const struct podspec *s, struct kube_api *a, struct agentmap **ret,
		  struct err *e)
{
	struct agentmap *m = xcalloc(1, sizeof *m);

	m->api = a;
	m->spec = s;
	m->owner_name = xasprintf("mcp-sandboxd-%s", s->instance);
	pthread_mutex_init(&m->lock, NULL);
	if (read_programs(m, e) < 0 || choose(m, e) < 0) {
		agentmap_free(m);
		return -1;
	}
	*ret = m;
	return 0;
}

void agentmap_free(struct agentmap *m)
{
	size_t i;

	if (!m)
		return;
	for (i = 0; i < m->n; i++) {
		free(m->agents[i].name);
		json_decref(m->agents[i].body);
	}
	pthread_mutex_destroy(&m->lock);
	free(m->owner_name);
	free(m->owner_uid);
	free(m);
}

size_t agentmap_count(const struct agentmap *m)
{
	return m->n;
}

const char *agentmap_arch(const struct agentmap *m, size_t i)
{
	return m->agents[i].arch;
}

const char *agentmap_name(const struct agentmap *m, size_t i)
{
	return m->agents[i].name;
}

const char *agentmap_owner_name(const struct agentmap *m)
{
	return m->owner_name;
}

/* ---- in the cluster */

static int ensure_owner(struct agentmap *m, char **ret_uid, struct err *e)
{
	AUTO_JSON *body = json_must(
		json_pack("{s:s,s:s,s:o}", "apiVersion", "v1", "kind", "ConfigMap",
			  "metadata", podspec_metadata(m->spec, m->owner_name, "owner")));

	return configmap_ensure(m->api, body, ret_uid, e);
}

static int look_for_owner(struct agentmap *m, struct err *e)
{
	int64_t began = clock_mono_ms();
	char *uid = NULL;

	if (ensure_owner(m, &uid, e) < 0)
		return -1;
	if (!m->owner_uid || strcmp(uid, m->owner_uid) != 0)
		m->agents_at = 0; /* what the other one owned goes */
	free(m->owner_uid);
	m->owner_uid = uid;
	m->owner_at = began;
	return 0;
}

static int look_for_agents(struct agentmap *m, struct err *e)
{
	int64_t began = clock_mono_ms();
	size_t i;

	for (i = 0; i < m->n; i++) {
		podspec_set_owner(json_object_get(m->agents[i].body, "metadata"),
				  m->owner_name, m->owner_uid);
		if (configmap_ensure(m->api, m->agents[i].body, NULL, e) < 0)
			return -1;
	}
	m->agents_at = began;
	return 0;
}

static int look(struct agentmap *m, int64_t agents_since, struct err *e)
{
	int64_t now = clock_mono_ms();
	int rc = 0;

	pthread_mutex_lock(&m->lock);
	if (!m->owner_at || m->owner_at < now)
		rc = look_for_owner(m, e);
	if (rc == 0 && (!m->agents_at || m->agents_at < agents_since))
		rc = look_for_agents(m, e);
	pthread_mutex_unlock(&m->lock);
	return rc;
}

int agentmap_ensure(struct agentmap *m, char **ret_owner_uid, struct err *e)
{
	if (look(m, clock_mono_ms() - LOOK_AGAIN_MS, e) < 0)
		return -1;
	pthread_mutex_lock(&m->lock);
	*ret_owner_uid = xstrdup(m->owner_uid);
	pthread_mutex_unlock(&m->lock);
	return 0;
}

int agentmap_look(struct agentmap *m, struct err *e)
{
	return look(m, clock_mono_ms(), e);
}

/* ---- agents of earlier versions */

static const char *name_of(const json_t *object)
{
	return json_get_string(json_object_get(object, "metadata"), "name");
}

/* mcp-sandboxd-<instance>-…: what is put into a path, and ours. */
static bool is_agents_name(const struct agentmap *m, const char *name)
{
	static const char ok[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
	size_t n = strlen(m->owner_name);

	return strncmp(name, m->owner_name, n) == 0 && name[n] == '-' &&
	       strspn(name, ok) == strlen(name);
}

/* {name: uid} of the agents' ConfigMaps that are not of this version. */
struct old {
	const struct agentmap *m;
	json_t *maps;
};

static void on_begin(void *arg)
{
	json_object_clear(((struct old *)arg)->maps);
}

static int on_map(void *arg, json_t *object, struct err *e)
{
	struct old *o = arg;
	const char *name = name_of(object);
	json_t *uid = json_object_get(json_object_get(object, "metadata"), "uid");
	size_t i;

	(void)e;
	for (i = 0; i < o->m->n; i++)
		if (name && strcmp(name, o->m->agents[i].name) == 0)
			return 0;
	if (name && json_is_string(uid) && is_agents_name(o->m, name))
		json_object_set(o->maps, name, uid);
	return 0;
}

static int on_pod(void *arg, json_t *object, struct err *e)
{
	struct old *o = arg;
	json_t *volumes = json_object_get(json_object_get(object, "spec"), "volumes");
	const char *name;
	size_t i;

	(void)e;
	for (i = 0; i < json_array_size(volumes); i++) {
		name = json_get_string(
			json_object_get(json_array_get(volumes, i), "configMap"), "name");
		if (name)
			json_object_del(o->maps, name);
	}
	return 0;
}

static int remove_old(const struct old *o, struct err *e)
{
	const char *name;
	json_t *uid;

	json_object_foreach(o->maps, name, uid)
		if (configmap_remove(o->m->api, name, json_string_value(uid), e) < 0)
			return -1;
	return 0;
}

int agentmap_sweep(struct agentmap *m, const char *pod_selector, struct err *e)
{
	AUTO_FREE char *selector = podspec_selector(m->spec, AGENT_ROLE);
	AUTO_FREE char *maps_path = kube_path(m->api, "configmaps");
	AUTO_FREE char *pods_path = kube_path(m->api, "pods");
	AUTO_JSON *maps = json_must(json_object());
	struct old o = {.m = m, .maps = maps};
	const struct kube_list old_maps = {.path = maps_path,
					   .label_selector = selector,
					   .begin = on_begin,
					   .item = on_map,
					   .arg = &o,
					   .once = true};
	const struct kube_list pods = {.path = pods_path,
				       .label_selector = pod_selector,
				       .item = on_pod,
				       .arg = &o,
				       .once = true};
	char version[KUBE_VERSION_MAX];

	if (kube_list(m->api, &old_maps, version, e) < 0)
		return -1;
	if (json_object_size(maps) == 0)
		return 0;
	return kube_list(m->api, &pods, version, e) < 0 ? -1 : remove_old(&o, e);
}

int agentmap_remove(struct agentmap *m, int64_t timeout_ms, struct err *e)
{
	AUTO_FREE char *path = kube_path(m->api, "configmaps/%s", m->owner_name);
	struct err why = ERR_INIT;

	if (kube_call(m->api,
		      &(struct kube_call){.method = "DELETE",
					  .path = path,
					  .once = true,
					  .timeout_ms = timeout_ms},
		      NULL, &why) == 0 ||
	    why.kind == ERR_NOT_FOUND)
		return 0;
	*e = why;
	return -1;
}
