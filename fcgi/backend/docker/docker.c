/* SPDX-License-Identifier: MIT */
#include "backend/docker/docker.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "backend/agentfile.h"
#include "backend/caps.h"
#include "backend/docker/attach.h"
#include "backend/docker/container.h"
#include "backend/docker/direct.h"
#include "backend/docker/image.h"
#include "backend/docker/network.h"
#include "backend/docker/oomfiles.h"
#include "backend/docker/tarball.h"
#include "base/auto.h"
#include "base/id.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/sha256.h"

enum { PROBE_MS = 3000 };

static struct docker *docker_of(struct backend *b)
{
	return (struct docker *)(void *)b;
}

void docker_say(struct docker *d, const char *who, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	d->progress(d->progress_arg, who, line);
}

bool docker_is_name(const char *name)
{
	static const char ok[] = "abcdefghijklmnopqrstuvwxyz0123456789-";

	return strncmp(name, "mcp-sbx-", 8) == 0 && strlen(name) < 64 &&
	       strspn(name, ok) == strlen(name);
}

/* True: there is one of ours. An absent one is no error here. */
static int find(struct docker *d, const char *name, struct container *ret,
		bool *ret_there, struct err *e)
{
	if (!docker_is_name(name)) {
		err_set(e, ERR_INVALID, "not the name of a sandbox");
		return -1;
	}
	*ret_there = container_find(d, name, ret, e) == 0;
	if (*ret_there)
		return 0;
	if (e->kind != ERR_NOT_FOUND)
		return -1;
	*e = (struct err)ERR_INIT;
	return 0;
}

static int make_once(struct docker *d, const struct sandbox_spec *spec, struct err *e)
{
	struct err ignored = ERR_INIT;

	if ((d->is_apart && network_ensure(d, spec->name, e) < 0) ||
	    container_create(d, spec, e) < 0)
		return -1;
	if (container_start(d, spec->name, e) == 0)
		return 0;
	container_remove(d, spec->name, &ignored); /* never used */
	network_forget(d, spec->name);
	return -1;
}

/* The image or the network may have been removed since it was looked for. */
static int make_new(struct docker *d, const struct sandbox_spec *spec, struct err *e)
{
	struct err why = ERR_INIT;

	if (make_once(d, spec, &why) == 0)
		return 0;
	if (why.kind != ERR_NOT_FOUND) {
		*e = why;
		return -1;
	}
	if (network_ensure(d, spec->name, e) < 0 || image_ensure_present(d, e) < 0)
		return -1;
	return make_once(d, spec, e);
}

/* What is there goes on, when it may. *ret_new: it had to be made. */
static int bring_up(struct docker *d, const struct sandbox_spec *spec, bool *ret_new,
		    struct err *e)
{
	AUTO_CONTAINER c = {0};
	bool there;

	if (find(d, spec->name, &c, &there, e) < 0)
		return -1;
	if (there && (spec->fresh || strcmp(c.fingerprint, d->fingerprint) != 0)) {
		if (!spec->fresh)
			docker_say(d, BACKEND_NOBODY,
				   "%s was made under another policy; it is replaced",
				   spec->name);
		if (container_remove(d, spec->name, e) < 0)
			return -1;
		there = false;
	}
	*ret_new = !there;
	if (!there)
		return make_new(d, spec, e);
	if (c.paused)
		return container_unpause(d, spec->name, e);
	return c.running ? 0 : container_start(d, spec->name, e);
}

static void ended_at_once(const struct container *c, struct err *e)
{
	char code[32] = "an exit code that is not known";

	if (c->exit_code >= 0)
		snprintf(code, sizeof(code), "exit code %d", c->exit_code);
	err_set(e, ERR_BACKEND, "the sandbox's first process ended at once with %s%s%s",
		code, *c->error ? ": " : "", c->error);
}

static int docker_create(struct backend *b, const struct sandbox_spec *spec,
			 struct sandbox_info *ret, struct err *e)
{
	struct docker *d = docker_of(b);
	AUTO_CONTAINER c = {0};
	bool is_new = false;

	if (bring_up(d, spec, &is_new, e) < 0 || container_find(d, spec->name, &c, e) < 0)
		return err_wrap(e, "start the sandbox");
	if (!c.running) {
		ended_at_once(&c, e);
		return err_wrap(e, "start the sandbox");
	}
	*ret = (struct sandbox_info){.running = true, .fresh = is_new};
	ret->name = xstrdup(spec->name);
	ret->container_id = MOVE(c.id);
	ret->image = MOVE(c.image);
	ret->policy_fingerprint = MOVE(c.fingerprint);
	return 0;
}

/*
 * The configuration may have been changed since it was made. Less memory than it
 * uses is refused by the engine: then it keeps what it has.
 */
static void fit_limits(struct docker *d, const char *name, const struct container *c)
{
	const struct conf *conf = d->conf;
	struct limits want = limits_make(conf->default_cpu_cores, conf->default_memory_mb,
					 conf->default_pids);
	AUTO_JSON *body = limits_change(&c->limits, &want, &d->host);
	struct err e = ERR_INIT;

	/* Podman's update came late, and it tells of limits in another way. */
	if (body && !d->engine.is_podman && container_update(d, name, body, &e) < 0)
		docker_say(d, BACKEND_NOBODY,
			   "%s keeps the limits that it was made with: %s", name, e.msg);
}

static int docker_connect(struct backend *b, const char *name, int *ret_fd, struct err *e)
{
	struct docker *d = docker_of(b);
	struct err no_short_way = ERR_INIT;
	AUTO_CONTAINER c = {0};
	bool there;

	if (find(d, name, &c, &there, e) < 0)
		return -1;
	if (!there || !c.running)
		return err_set(e, ERR_NOT_FOUND, "the sandbox does not run");
	if (c.paused && container_unpause(d, name, e) < 0)
		return -1;
	fit_limits(d, name, &c);
	oomfiles_learn(d->oomfiles, name, c.pid, c.id);
	if (direct_agent(d, &c, ret_fd, &no_short_way) == 0)
		return 0;
	return attach_agent(d, name, ret_fd, e);
}

static int docker_stop(struct backend *b, const char *name, struct err *e)
{
	struct docker *d = docker_of(b);
	AUTO_CONTAINER c = {0};
	bool there;

	if (find(d, name, &c, &there, e) < 0)
		return -1;
	oomfiles_forget(d->oomfiles, name);
	if (!there || !c.running)
		return 0;
	if (c.paused && container_unpause(d, name, e) < 0)
		return -1;
	return container_stop(d, name, e);
}

static int docker_remove(struct backend *b, const char *name, bool *ret_existed,
			 struct err *e)
{
	struct docker *d = docker_of(b);
	AUTO_CONTAINER c = {0};
	bool there;

	if (find(d, name, &c, &there, e) < 0)
		return -1;
	oomfiles_forget(d->oomfiles, name);
	if (there && container_remove(d, name, e) < 0)
		return -1;
	network_forget(d, name);
	*ret_existed = there;
	return 0;
}

static int docker_list(struct backend *b, struct sandbox_list *ret, struct err *e)
{
	struct docker *d = docker_of(b);
	AUTO_FREE char *image = NULL;
	size_t i;

	if (image_id(d, &image, e) < 0 || container_list(d, image, ret, e) < 0)
		return -1;
	for (i = 0; i < ret->n; i++)
		ret->v[i].outdated =
			strcmp(ret->v[i].policy_fingerprint, d->fingerprint) != 0;
	network_tidy(d, ret);
	return 0;
}

static int docker_oom_kills(struct backend *b, const char *name, uint64_t *ret,
			    struct err *e)
{
	return oomfiles_read(docker_of(b)->oomfiles, name, ret, e);
}

static int docker_probe(struct backend *b, struct err *e)
{
	struct engine_call c = {
		.method = "GET", .path = "/_ping", .timeout_ms = PROBE_MS};

	return engine_call(&docker_of(b)->engine, &c, NULL, e);
}

/* What has no sandbox on it any more goes with the server. */
static void docker_close(struct backend *b)
{
	struct docker *d = docker_of(b);
	struct sandbox_list l = {0};
	struct err ignored = ERR_INIT;

	if (d->engine.http && d->network && container_list(d, NULL, &l, &ignored) == 0 &&
	    l.n == 0)
		network_remove(d);
	sandbox_list_release(&l);
	pump_stop(d->pump);
	engine_close(&d->engine);
	oomfiles_free(d->oomfiles);
	json_decref(d->caps);
	buf_release(&d->agent);
	pthread_mutex_destroy(&d->image_lock);
	free(d->fingerprint);
	free(d->image);
	free(d->network);
	free(d);
}

static int set_policy(struct docker *d, struct err *e)
{
	const struct conf *c = d->conf;
	AUTO_BUF text = BUF_INIT(65536);
	struct caps caps;
	char hex[SHA256_HEX_LEN + 1];

	if (caps_parse(c->cap_drop, c->cap_add, &caps, e) < 0)
		return -1;
	d->caps = caps_to_json(&caps);
	buf_printf(&text, "docker %s%s %d %llx %s %d %lld", c->network_mode,
		   d->is_apart ? " apart" : "", c->no_new_privileges,
		   (unsigned long long)caps.bits, c->sandbox_runtime, c->read_only,
		   (long long)c->disk_mb);
	sha256_hex(text.p, text.len, hex);
	d->fingerprint = xstrndup(hex, 16);
	return 0;
}

/* Ours is for the machine the server runs on. */
static int check_arch(const struct docker *d, struct err *e)
{
	static const struct {
		const char *machine, *arch;
	} same[] = {{"x86_64", "amd64"}, {"aarch64", "arm64"}};
	struct utsname u;
	size_t i;

	if (uname(&u) < 0)
		return err_sys(e, "uname");
	for (i = 0; i < sizeof same / sizeof *same; i++)
		if (strcmp(u.machine, same[i].machine) == 0 && *d->engine.arch &&
		    strcmp(d->engine.arch, same[i].arch) != 0)
			return err_set(e, ERR_BACKEND,
				       "the engine at %s has %s processors and the agent "
				       "is built for %s: set AGENT_PATH to one for %s",
				       d->engine.where, d->engine.arch, same[i].arch,
				       d->engine.arch);
	return 0;
}

static int make_agent_archive(struct docker *d, struct err *e)
{
	AUTO_BUF bytes = BUF_INIT(AGENTFILE_MAX);

	if (agentfile_read(d->conf, &bytes, e) < 0)
		return -1;
	if (d->conf->read_only) {
		tarball_file(&d->agent, "agent", 0755, bytes.p, bytes.len);
	} else {
		tarball_dir(&d->agent, ".mcp-sandboxd/", 0700);
		tarball_file(&d->agent, ".mcp-sandboxd/agent", 0755, bytes.p, bytes.len);
	}
	tarball_end(&d->agent);
	return buf_ok(&d->agent) ? 0 : err_set(e, ERR_LIMIT, "the agent is too large");
}

/* Few storage drivers can: a container that is never started shows it. */
static int check_disk(struct docker *d, struct err *e)
{
	AUTO_FREE char *name = xasprintf("mcp-sbx-disk-%s", d->instance);
	const struct sandbox_spec spec = {.name = name, .identifier = "", .tenant = ""};
	struct err ignored = ERR_INIT;

	if (d->conf->disk_mb <= 0)
		return 0;
	container_remove(d, name, &ignored); /* of a start that was cut off */
	if ((d->is_apart && network_ensure(d, name, e) < 0) ||
	    container_create(d, &spec, e) < 0)
		return err_wrap(e, "SANDBOX_DISK_MB=%lld", (long long)d->conf->disk_mb);
	if (container_remove(d, name, e) < 0)
		return -1;
	network_forget(d, name);
	return 0;
}

/* A rootless engine may have no control groups: it takes limits and keeps none. */
static void learn_limits(struct docker *d)
{
	struct engine_call c = {.method = "GET", .path = "/info"};
	AUTO_BUF words = BUF_INIT(256);
	AUTO_JSON *info = NULL;
	struct err e = ERR_INIT;

	if (engine_call(&d->engine, &c, &info, &e) < 0) {
		docker_say(d, BACKEND_NOBODY,
			   "the engine does not say which limits it keeps: %s", e.msg);
		return;
	}
	d->host = limits_host(info);
	limits_unkept(info, &words);
	if (words.len > 0)
		docker_say(d, BACKEND_NOBODY,
			   "warning: the engine keeps no limits of %s (it has not the "
			   "control groups): a sandbox may take all that its host has",
			   words.p);
}

static int set_up(struct docker *d, struct err *e)
{
	if (engine_open(d->conf, &d->engine, e) < 0 || make_agent_archive(d, e) < 0)
		return -1;
	docker_say(d, BACKEND_NOBODY, "%s at %s, API %s, %s",
		   d->engine.is_podman ? "Podman" : "Docker", d->engine.where,
		   d->engine.api + 2, d->engine.arch);
	learn_limits(d);
	if ((!*d->conf->agent_path && check_arch(d, e) < 0) || network_open(d, e) < 0 ||
	    set_policy(d, e) < 0 || image_ensure_present(d, e) < 0 ||
	    check_disk(d, e) < 0)
		return -1;
	return pump_start(&d->pump, e);
}

static int docker_open(const struct conf *c, const char *instance_id,
		       backend_progress_fn *progress, void *arg, struct backend **ret,
		       struct err *e)
{
	struct docker *d = xcalloc(1, sizeof *d);

	d->base.ops = &backend_docker;
	d->conf = c;
	d->progress = progress;
	d->progress_arg = arg;
	snprintf(d->instance, sizeof d->instance, "%s", instance_id);
	d->image = image_reference(c->image);
	d->agent = (struct buf)BUF_INIT(AGENTFILE_MAX + 4096);
	d->oomfiles = oomfiles_new();
	pthread_mutex_init(&d->image_lock, NULL);
	if (set_up(d, e) < 0) {
		docker_close(&d->base);
		return -1;
	}
	*ret = &d->base;
	return 0;
}

const struct backend_ops backend_docker = {
	.name = "docker",
	.open = docker_open,
	.probe = docker_probe,
	.create = docker_create,
	.connect = docker_connect,
	.stop = docker_stop,
	.remove = docker_remove,
	.list = docker_list,
	.oom_kills = docker_oom_kills,
	.close = docker_close,
};
