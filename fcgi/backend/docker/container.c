/* SPDX-License-Identifier: MIT */
#include "backend/docker/container.h"

#include <string.h>

#include "backend/docker/network.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/mem.h"

enum { SLOW_MS = 120000, STOP_S = 2, ID_MAX = 128 };

void container_release(struct container *c)
{
	free(c->id);
	free(c->instance);
	free(c->fingerprint);
	free(c->image);
	free(c->error);
	*c = (struct container){0};
}

static char *label(const json_t *labels, const char *name)
{
	const char *v = json_get_string(labels, name);

	return xstrdup(v ? v : "");
}

int container_parse(const json_t *root, struct container *ret, struct err *e)
{
	const json_t *state = json_object_get(root, "State");
	const json_t *labels = json_object_get(json_object_get(root, "Config"), "Labels");
	const char *id = json_get_string(root, "Id");
	const char *error = json_get_string(state, "Error");
	const json_t *code = json_object_get(state, "ExitCode");
	json_int_t pid = json_integer_value(json_object_get(state, "Pid"));

	if (!id || !*id || strlen(id) > ID_MAX || !json_is_object(state)) {
		err_set(e, ERR_BACKEND,
			"the engine's description of a container is none");
		return -1;
	}
	*ret = (struct container){
		.id = xstrdup(id),
		.instance = label(labels, "mcp.instance"),
		.fingerprint = label(labels, "mcp.policy_fingerprint"),
		.image = label(labels, "mcp.image"),
		.running = json_is_true(json_object_get(state, "Running")),
		.paused = json_is_true(json_object_get(state, "Paused")),
		.pid = pid > 0 && pid <= INT32_MAX ? (int)pid : 0,
		.exit_code = json_is_integer(code) ? (int)json_integer_value(code) : -1,
		.error = xstrdup(error ? error : ""),
		.limits = limits_parse(json_object_get(root, "HostConfig")),
	};
	return 0;
}

/* One call about a container. */
static int call(struct docker *d, const char *method, const char *name, const char *what,
		json_t **ret, struct err *e)
{
	AUTO_FREE char *path = xasprintf("/containers/%s%s", name, what);
	struct engine_call c = {.method = method, .path = path, .timeout_ms = SLOW_MS};

	return engine_call(&d->engine, &c, ret, e);
}

int container_find(struct docker *d, const char *name, struct container *ret,
		   struct err *e)
{
	AUTO_JSON *root = NULL;
	AUTO_CONTAINER c = {0};

	if (call(d, "GET", name, "/json", &root, e) < 0 ||
	    container_parse(root, &c, e) < 0)
		return -1;
	if (strcmp(c.instance, d->instance) != 0)
		return err_set(e, ERR_CONFLICT,
			       "the engine has a container %s that is not this server's; "
			       "rename or remove it",
			       name);
	*ret = c;
	c = (struct container){0};
	return 0;
}

static json_t *labels_of(const struct docker *d, const struct sandbox_spec *spec)
{
	AUTO_FREE char *created = xasprintf("%lld", (long long)spec->created_at_ms);
	AUTO_FREE char *expires = xasprintf("%lld", (long long)spec->expires_at_ms);

	return json_must(json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s}", "mcp.role",
				   "sandbox", "mcp.instance", d->instance, "mcp.tenant",
				   spec->tenant, "mcp.identifier", spec->identifier,
				   "mcp.created_at_unix_ms", created,
				   "mcp.expires_at_unix_ms", expires, "mcp.image",
				   d->image, "mcp.policy_fingerprint", d->fingerprint));
}

static void put_limits(json_t *host, const struct docker *d,
		       const struct sandbox_spec *spec)
{
	struct limits l = limits_make(spec->cpu_cores, spec->memory_mb, spec->pids);

	limits_put(&l, host);
	if (d->conf->disk_mb > 0) {
		AUTO_FREE char *size = xasprintf("%lldm", (long long)d->conf->disk_mb);

		json_put(host, "StorageOpt", json_must(json_pack("{s:s}", "size", size)));
	}
}

/*
 * LogConfig none: root in a sandbox can write to the agent's standard output, and
 * the engine would keep it all.
 */
static json_t *host_config(const struct docker *d, const struct sandbox_spec *spec)
{
	json_t *host = json_must(json_pack(
		"{s:s,s:[s],s:O,s:{s:s},s:b,s:{s:s},s:b}", "NetworkMode",
		network_of(d, spec->name), "CapDrop", "ALL", "CapAdd", d->caps,
		"LogConfig", "Type", "none", "ReadonlyRootfs", (int)d->conf->read_only,
		"RestartPolicy", "Name", "no", "Init", 0));

	if (d->conf->no_new_privileges)
		json_put(host, "SecurityOpt",
			 json_must(json_pack("[s]", "no-new-privileges")));
	if (*d->conf->sandbox_runtime)
		json_put(host, "Runtime", json_string(d->conf->sandbox_runtime));
	put_limits(host, d, spec);
	return host;
}

json_t *container_body(const struct docker *d, const struct sandbox_spec *spec)
{
	json_t *body = json_must(
		json_pack("{s:s,s:s,s:s,s:s,s:[s],s:[s,s,s,s],s:o,s:o,s:{s:[s]},s:s}",
			  "Image", d->image, "User", "0", "WorkingDir", "/", "Hostname",
			  spec->name, "Entrypoint", DOCKER_AGENT, "Cmd", "init",
			  "--socket", DOCKER_SOCKET, "--own-folders", "Labels",
			  labels_of(d, spec), "HostConfig", host_config(d, spec),
			  "Healthcheck", "Test", "NONE", "StopSignal", "SIGTERM"));

	/* Without names they go with the container. */
	if (d->conf->read_only)
		json_put(body, "Volumes",
			 json_must(json_pack("{s:{},s:{},s:{},s:{}}", DOCKER_AGENT_DIR,
					     "/workspace", "/artifacts", "/tmp")));
	return body;
}

static void say_warnings(struct docker *d, const json_t *answer)
{
	const json_t *list = json_object_get(answer, "Warnings"), *item;
	size_t i;

	json_array_foreach(list, i, item) {
		if (json_is_string(item))
			docker_say(d, BACKEND_NOBODY, "the engine warns: %s",
				   json_string_value(item));
	}
}

int container_create(struct docker *d, const struct sandbox_spec *spec, struct err *e)
{
	AUTO_JSON *body = container_body(d, spec);
	AUTO_JSON *answer = NULL;
	AUTO_FREE char *path = xasprintf("/containers/create?name=%s", spec->name);
	struct engine_call c = {
		.method = "POST", .path = path, .json = body, .timeout_ms = SLOW_MS};

	if (engine_call(&d->engine, &c, &answer, e) < 0)
		return -1;
	say_warnings(d, answer);
	return 0;
}

/* A read-only root takes files only into a volume. */
static int put_agent(struct docker *d, const char *name, struct err *e)
{
	AUTO_FREE char *path = xasprintf("/containers/%s/archive?path=%s", name,
					 d->conf->read_only ? DOCKER_AGENT_DIR : "/");
	struct engine_call c = {.method = "PUT",
				.path = path,
				.bytes = d->agent.p,
				.len = d->agent.len,
				.content_type = "application/x-tar",
				.timeout_ms = SLOW_MS};

	if (engine_call(&d->engine, &c, NULL, e) < 0)
		return err_wrap(e, "put the agent into the container");
	return 0;
}

int container_start(struct docker *d, const char *name, struct err *e)
{
	if (put_agent(d, name, e) < 0)
		return -1;
	return call(d, "POST", name, "/start", NULL, e);
}

int container_unpause(struct docker *d, const char *name, struct err *e)
{
	return call(d, "POST", name, "/unpause", NULL, e);
}

int container_update(struct docker *d, const char *name, const json_t *body,
		     struct err *e)
{
	AUTO_FREE char *path = xasprintf("/containers/%s/update", name);
	AUTO_JSON *answer = NULL;
	struct engine_call c = {
		.method = "POST", .path = path, .json = body, .timeout_ms = SLOW_MS};

	return engine_call(&d->engine, &c, &answer, e);
}

int container_stop(struct docker *d, const char *name, struct err *e)
{
	AUTO_FREE char *what = xasprintf("/stop?t=%d", STOP_S);

	return call(d, "POST", name, what, NULL, e);
}

/* Another removal is under way: its end is ours too. */
static int await_removal(struct docker *d, const char *name, struct err *e)
{
	if (call(d, "POST", name, "/wait?condition=removed", NULL, e) == 0)
		return 0;
	if (e->kind != ERR_NOT_FOUND)
		return -1;
	*e = (struct err)ERR_INIT;
	return 0;
}

int container_remove(struct docker *d, const char *name, struct err *e)
{
	if (call(d, "DELETE", name, "?force=1&v=1", NULL, e) == 0)
		return 0;
	if (e->kind == ERR_NOT_FOUND) {
		*e = (struct err)ERR_INIT;
		return 0;
	}
	if (e->kind != ERR_CONFLICT)
		return -1;
	*e = (struct err)ERR_INIT;
	return await_removal(d, name, e);
}

/* "/mcp-sbx-…" of an element of the list; NULL: no name that could be ours. */
static const char *listed_name(const json_t *item)
{
	const json_t *names = json_object_get(item, "Names"), *name;
	size_t i;

	json_array_foreach(names, i, name) {
		const char *s = json_string_value(name);

		if (s && *s == '/')
			s++;
		if (s && strncmp(s, "mcp-sbx-", 8) == 0 && strlen(s) < 64 &&
		    !strchr(s, '/'))
			return s;
	}
	return NULL;
}

/* Podman leaves the algorithm out. */
static const char *digits_of(const char *id)
{
	return strncmp(id, "sha256:", 7) == 0 ? id + 7 : id;
}

static bool is_another(const char *a, const char *b)
{
	return a && b && strcmp(digits_of(a), digits_of(b)) != 0;
}

int container_parse_list(const json_t *root, const char *image_id,
			 struct sandbox_list *ret, struct err *e)
{
	struct sandbox_list l = {0};
	const json_t *item;
	size_t i;

	if (!json_is_array(root))
		return err_set(e, ERR_BACKEND, "the engine's list of containers is none");
	json_array_foreach(root, i, item) {
		const char *name = listed_name(item);
		const char *id = json_get_string(item, "Id");
		const char *state = json_get_string(item, "State");
		const json_t *labels = json_object_get(item, "Labels");

		if (!name || !id)
			continue;
		l.v = xreallocarray(l.v, l.n + 1, sizeof *l.v);
		l.v[l.n++] = (struct sandbox_info){
			.name = xstrdup(name),
			.container_id = xstrdup(id),
			.image = label(labels, "mcp.image"),
			.policy_fingerprint = label(labels, "mcp.policy_fingerprint"),
			.running = state && (strcmp(state, "running") == 0 ||
					     strcmp(state, "paused") == 0),
			.old_image =
				is_another(json_get_string(item, "ImageID"), image_id),
		};
	}
	*ret = l;
	return 0;
}

int container_list(struct docker *d, const char *image_id, struct sandbox_list *ret,
		   struct err *e)
{
	/* {"label":["mcp.role=sandbox","mcp.instance=<hex>"]}, percent-encoded */
	AUTO_FREE char *path = xasprintf(
		"/containers/json?all=1&filters=%%7B%%22label%%22%%3A%%5B"
		"%%22mcp.role%%3Dsandbox%%22%%2C%%22mcp.instance%%3D%s%%22%%5D%%7D",
		d->instance);
	struct engine_call c = {.method = "GET", .path = path};
	AUTO_JSON *root = NULL;

	if (engine_call(&d->engine, &c, &root, e) < 0)
		return -1;
	return container_parse_list(root, image_id, ret, e);
}
