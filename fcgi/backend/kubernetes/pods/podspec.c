/* SPDX-License-Identifier: MIT */
#include "backend/kubernetes/pods/podspec.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backend/caps.h"
#include "backend/docker/image.h"
#include "backend/kubernetes/pods/jsonmerge.h"
#include "base/auto.h"
#include "base/io.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/yaml.h"

enum {
	TEMPLATE_MAX = 256 * 1024,
	AGENT_MODE = 0555,
	STOP_GRACE_S = 2, /* 0 would make every delete one that proves nothing */
	USER_GROUP = 1000,
};

/* ---- small parts */

json_t *podspec_node_selector(const char *list)
{
	json_t *o = json_object();
	struct str rest = str_of(list), word, key;

	while (str_cut(&rest, ',', &word)) {
		AUTO_FREE char *name = NULL;

		word = str_trim(word);
		if (word.n == 0)
			continue;
		str_cut(&word, '=', &key);
		name = xstrndup(key.p, key.n);
		json_put(o, name, json_must(json_stringn(word.p ? word.p : "", word.n)));
	}
	return o;
}

/* "key=value:Effect" or "key:Effect" */
static json_t *toleration(struct str word)
{
	struct str before, key;
	json_t *t;

	str_cut(&word, ':', &before);
	str_cut(&before, '=', &key);
	t = json_must(json_pack("{s:s%,s:s,s:s%}", "key", key.p, key.n, "operator",
				before.p ? "Equal" : "Exists", "effect",
				word.p ? word.p : "", word.n));
	if (before.p)
		json_put(t, "value", json_must(json_stringn(before.p, before.n)));
	return t;
}

json_t *podspec_tolerations(const char *list)
{
	json_t *a = json_array();
	struct str rest = str_of(list), word;

	while (str_cut(&rest, ',', &word)) {
		word = str_trim(word);
		if (word.n)
			json_array_append_new(a, toleration(word));
	}
	return a;
}

static json_t *pull_secrets(const char *list)
{
	json_t *a = json_array();
	struct str rest = str_of(list), word;

	while (str_cut(&rest, ',', &word)) {
		word = str_trim(word);
		if (word.n)
			json_array_append_new(a, json_must(json_pack("{s:s%}", "name",
								     word.p, word.n)));
	}
	return a;
}

json_t *podspec_quantity_milli(double v)
{
	char text[32];
	int64_t milli = (int64_t)(v * 1000 + 0.5);

	snprintf(text, sizeof text, "%" PRId64 "m", milli > 0 ? milli : 1);
	return json_must(json_string(text));
}

static json_t *mebibytes(int64_t n)
{
	char text[32];

	snprintf(text, sizeof text, "%" PRId64 "Mi", n > 0 ? n : 1);
	return json_must(json_string(text));
}

/* ---- once for all sandboxes */

static json_t *settings_of(const struct conf *c)
{
	json_t *spec = json_must(
		json_pack("{s:o,s:o,s:o}", "nodeSelector",
			  podspec_node_selector(c->kube_node_selector), "tolerations",
			  podspec_tolerations(c->kube_tolerations), "imagePullSecrets",
			  pull_secrets(c->kube_pull_secrets)));

	if (*c->kube_priority_class)
		json_put(spec, "priorityClassName", json_string(c->kube_priority_class));
	/* A new volume is root's: user 1000 writes through its group. */
	if (*c->kube_volume_size)
		json_put(spec, "securityContext",
			 json_must(json_pack("{s:i,s:s}", "fsGroup", USER_GROUP,
					     "fsGroupChangePolicy", "OnRootMismatch")));
	return json_must(json_pack("{s:o}", "spec", spec));
}

static int read_template(struct podspec *s, struct err *e)
{
	AUTO_BUF text = BUF_INIT(TEMPLATE_MAX);
	AUTO_JSON *root = NULL;
	const json_t *spec;

	if (!*s->conf->kube_pod_template)
		return 0;
	if (io_read_file(s->conf->kube_pod_template, &text, e) < 0 ||
	    yaml_parse(text.p, text.len, &root, e) < 0)
		return err_wrap(e, "KUBERNETES_POD_TEMPLATE=%s",
				s->conf->kube_pod_template);
	spec = json_object_get(root, "spec");
	if (!json_is_object(spec))
		return err_set(
			e, ERR_INVALID,
			"KUBERNETES_POD_TEMPLATE=%s: must have a spec, as a Pod or a "
			"PodTemplate has",
			s->conf->kube_pod_template);
	s->tmpl = json_must(json_pack("{s:O*,s:O}", "metadata",
				      json_object_get(root, "metadata"), "spec", spec));
	return 0;
}

/* SANDBOX_CAP_DROP and _ADD, and KILL; Kubernetes leaves CAP_ out. */
static int read_caps(struct podspec *s, struct caps *caps, struct err *e)
{
	AUTO_JSON *list = NULL;
	const json_t *item;
	size_t i;

	if (caps_parse(s->conf->cap_drop, s->conf->cap_add, caps, e) < 0)
		return -1;
	list = caps_to_json(caps);
	s->caps = json_array();
	json_array_foreach(list, i, item)
		json_array_append_new(s->caps, json_string(json_string_value(item) + 4));
	return 0;
}

static void set_fingerprint(struct podspec *s, const struct caps *caps)
{
	const struct conf *c = s->conf;
	AUTO_BUF text = BUF_INIT((size_t)4 * TEMPLATE_MAX);
	char hex[SHA256_HEX_LEN + 1];

	buf_printf(&text, "kubernetes %s %d %llx %s %d %lld ", c->network_mode,
		   c->no_new_privileges, (unsigned long long)caps->bits,
		   c->sandbox_runtime, c->read_only, (long long)c->disk_mb);
	if (s->tmpl)
		json_dump_buf(s->tmpl, &text);
	sha256_hex(text.p, text.len, hex);
	s->fingerprint = xstrndup(hex, 16);
}

int podspec_open(struct podspec *s, const struct conf *c, const char *instance,
		 struct err *e)
{
	struct caps caps;

	*s = (struct podspec){.conf = c};
	snprintf(s->instance, sizeof s->instance, "%s", instance);
	s->image = image_reference(c->image);
	s->settings = settings_of(c);
	if (read_caps(s, &caps, e) < 0 || read_template(s, e) < 0) {
		podspec_close(s);
		return -1;
	}
	set_fingerprint(s, &caps);
	return 0;
}

void podspec_close(struct podspec *s)
{
	free(s->image);
	free(s->fingerprint);
	json_decref(s->caps);
	json_decref(s->settings);
	json_decref(s->tmpl);
	*s = (struct podspec){0};
}

/* ---- names and labels */

static void put_prefixed(const struct podspec *s, json_t *o, const char *key,
			 json_t *value)
{
	AUTO_FREE char *name = xasprintf("%s%s", s->conf->kube_label_prefix, key);

	json_put(o, name, value);
}

char *podspec_selector(const struct podspec *s, const char *role)
{
	const char *p = s->conf->kube_label_prefix;

	return xasprintf("%srole=%s,%sinstance=%s", p, role, p, s->instance);
}

json_t *podspec_metadata(const struct podspec *s, const char *name, const char *role)
{
	json_t *labels = json_must(
		json_pack("{s:s}", "app.kubernetes.io/managed-by", "mcp-sandboxd"));

	put_prefixed(s, labels, "role", json_string(role));
	put_prefixed(s, labels, "instance", json_string(s->instance));
	return json_must(json_pack("{s:s,s:o}", "name", name, "labels", labels));
}

void podspec_set_owner(json_t *metadata, const char *owner_name, const char *owner_uid)
{
	json_put(metadata, "ownerReferences",
		 json_must(json_pack("[{s:s,s:s,s:s,s:s}]", "apiVersion", "v1", "kind",
				     "ConfigMap", "name", owner_name, "uid", owner_uid)));
}

/* Identifiers are no label values: 256 characters of any kind. */
static json_t *annotations_of(const struct podspec *s, const struct sandbox_spec *spec)
{
	AUTO_FREE char *created = xasprintf("%lld", (long long)spec->created_at_ms);
	AUTO_FREE char *expires = xasprintf("%lld", (long long)spec->expires_at_ms);
	json_t *o = json_object();

	put_prefixed(s, o, "identifier", json_string(spec->identifier));
	put_prefixed(s, o, "tenant", json_string(spec->tenant));
	put_prefixed(s, o, "created_at_unix_ms", json_string(created));
	put_prefixed(s, o, "expires_at_unix_ms", json_string(expires));
	put_prefixed(s, o, "image", json_string(s->image));
	put_prefixed(s, o, "policy_fingerprint", json_string(s->fingerprint));
	return o;
}

static json_t *sandbox_metadata(const struct podspec *s, const struct podspec_args *a)
{
	json_t *meta = podspec_metadata(s, a->spec->name, "sandbox");

	json_put(meta, "annotations", annotations_of(s, a->spec));
	podspec_set_owner(meta, a->owner_name, a->owner_uid);
	put_prefixed(s, json_object_get(meta, "labels"), "network",
		     json_string(s->conf->network_mode));
	return meta;
}

/* ---- layer 1 */

static json_t *requests_of(const struct podspec *s, const struct sandbox_spec *spec)
{
	const struct conf *c = s->conf;
	json_t *o = json_object();

	if (spec->cpu_cores > 0)
		json_put(o, "cpu",
			 podspec_quantity_milli(spec->cpu_cores *
						(double)c->kube_cpu_request_percent /
						100));
	if (spec->memory_mb > 0)
		json_put(o, "memory",
			 mebibytes(spec->memory_mb * c->kube_memory_request_percent /
				   100));
	if (c->disk_mb > 0)
		json_put(o, "ephemeral-storage", mebibytes(c->disk_mb / 10));
	return o;
}

static json_t *first_layer(const struct podspec *s, const struct sandbox_spec *spec)
{
	AUTO_JSON *each = json_must(
		json_pack("{s:{s:[{s:s,s:s,s:{s:o}}]}}", "spec", "containers", "name",
			  s->conf->kube_container, "imagePullPolicy", "IfNotPresent",
			  "resources", "requests", requests_of(s, spec)));

	return jsonmerge(s->settings, each);
}

/* ---- layer 3 */

static json_t *limits_of(const struct podspec *s, const struct sandbox_spec *spec)
{
	json_t *o = json_object();

	if (spec->cpu_cores > 0)
		json_put(o, "cpu", podspec_quantity_milli(spec->cpu_cores));
	if (spec->memory_mb > 0)
		json_put(o, "memory", mebibytes(spec->memory_mb));
	if (s->conf->disk_mb > 0)
		json_put(o, "ephemeral-storage", mebibytes(s->conf->disk_mb));
	return o;
}

/* The agent is root whatever the image says; commands become uid 1000. */
static json_t *security_of(const struct podspec *s)
{
	return json_must(json_pack(
		"{s:b,s:i,s:i,s:b,s:b,s:b,s:{s:[s],s:O},s:{s:s}}", "privileged", 0,
		"runAsUser", 0, "runAsGroup", 0, "runAsNonRoot", 0,
		"allowPrivilegeEscalation", !s->conf->no_new_privileges,
		"readOnlyRootFilesystem", (int)s->conf->read_only, "capabilities", "drop",
		"ALL", "add", s->caps, "seccompProfile", "type", "RuntimeDefault"));
}

static json_t *volumes_of(const struct podspec *s, const struct podspec_args *a)
{
	json_t *v = json_must(
		json_pack("[{s:s,s:{s:s,s:i}},{s:s,s:{}},{s:s,s:{}},{s:s,s:{}}]", "name",
			  "mcp-agent", "configMap", "name", a->agent_map, "defaultMode",
			  AGENT_MODE, "name", "mcp-run", "emptyDir", "name", "mcp-tmp",
			  "emptyDir", "name", "mcp-artifacts", "emptyDir"));
	json_t *workspace = json_must(json_pack("{s:s}", "name", "mcp-workspace"));

	if (*s->conf->kube_volume_size)
		json_put(workspace, "persistentVolumeClaim",
			 json_must(json_pack("{s:s}", "claimName", a->spec->name)));
	else
		json_put(workspace, "emptyDir", json_object());
	json_array_append_new(v, workspace);
	return v;
}

static json_t *mounts(void)
{
	static const struct {
		const char *name, *path;
		int read_only;
	} all[] = {
		{"mcp-agent", PODSPEC_DIR "/bin", 1},
		{"mcp-run", PODSPEC_DIR "/run", 0},
		{"mcp-workspace", "/workspace", 0},
		{"mcp-artifacts", "/artifacts", 0},
		{"mcp-tmp", "/tmp", 0},
	};
	json_t *a = json_array();
	size_t i;

	for (i = 0; i < sizeof all / sizeof *all; i++)
		json_array_append_new(
			a, json_must(json_pack("{s:s,s:s,s:b}", "name", all[i].name,
					       "mountPath", all[i].path, "readOnly",
					       all[i].read_only)));
	return a;
}

static json_t *container_of_ours(const struct podspec *s, const struct podspec_args *a)
{
	return json_must(json_pack(
		"{s:s,s:s,s:[s,s,s,s,s],s:s,s:o,s:{s:o},s:o,s:b,s:b}", "name",
		s->conf->kube_container, "image", s->image, "command", PODSPEC_AGENT,
		"init", "--socket", PODSPEC_SOCKET, "--own-folders", "workingDir", "/",
		"securityContext", security_of(s), "resources", "limits",
		limits_of(s, a->spec), "volumeMounts", mounts(), "stdin", 0, "tty", 0));
}

/* What of a template's does not count: it would change what the agent is. */
static json_t *taken_away(const struct podspec *s)
{
	return json_must(json_pack("{s:{s:n,s:n},s:{s:[{s:s,s:n,s:n,s:n,s:n,s:n}]}}",
				   "metadata", "namespace", "generateName", "spec",
				   "containers", "name", s->conf->kube_container,
				   "securityContext", "args", "livenessProbe",
				   "readinessProbe", "startupProbe"));
}

/*
 * Always: what ends a container (its memory, a reboot of the node) does not end the
 * pod, so what lies in its volumes is kept.
 */
static json_t *last_layer(const struct podspec *s, const struct podspec_args *a)
{
	json_t *spec = json_must(json_pack(
		"{s:[o],s:o,s:s,s:i,s:b,s:b,s:b,s:b,s:b,s:b,s:{s:s,s:s}}", "containers",
		container_of_ours(s, a), "volumes", volumes_of(s, a), "restartPolicy",
		"Always", "terminationGracePeriodSeconds", STOP_GRACE_S,
		"automountServiceAccountToken", 0, "enableServiceLinks", 0, "hostNetwork",
		0, "hostPID", 0, "hostIPC", 0, "shareProcessNamespace", 0, "nodeSelector",
		"kubernetes.io/os", "linux", "kubernetes.io/arch", a->arch));

	if (*s->conf->sandbox_runtime)
		json_put(spec, "runtimeClassName", json_string(s->conf->sandbox_runtime));
	return json_must(json_pack("{s:s,s:s,s:o,s:o}", "apiVersion", "v1", "kind", "Pod",
				   "metadata", sandbox_metadata(s, a), "spec", spec));
}

json_t *podspec_pod(const struct podspec *s, const struct podspec_args *a)
{
	AUTO_JSON *first = first_layer(s, a->spec);
	AUTO_JSON *with_template =
		s->tmpl ? jsonmerge(first, s->tmpl) : json_incref(first);
	AUTO_JSON *away = taken_away(s);
	AUTO_JSON *cleared = jsonmerge(with_template, away);
	AUTO_JSON *last = last_layer(s, a);

	return jsonmerge(cleared, last);
}

json_t *podspec_claim(const struct podspec *s, const struct podspec_args *a)
{
	const struct conf *c = s->conf;
	json_t *spec = json_must(json_pack("{s:[s],s:{s:{s:s}}}", "accessModes",
					   "ReadWriteOnce", "resources", "requests",
					   "storage", c->kube_volume_size));

	if (*c->kube_storage_class)
		json_put(spec, "storageClassName", json_string(c->kube_storage_class));
	return json_must(json_pack("{s:s,s:s,s:o,s:o}", "apiVersion", "v1", "kind",
				   "PersistentVolumeClaim", "metadata",
				   sandbox_metadata(s, a), "spec", spec));
}
