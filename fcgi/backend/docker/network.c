/* SPDX-License-Identifier: MIT */
#include "backend/docker/network.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/json.h"
#include "base/mem.h"

static bool is_own(const struct docker *d)
{
	return strcmp(d->conf->network_mode, "bridge") == 0;
}

const char *network_of(const struct docker *d, const char *sandbox)
{
	return d->is_apart ? sandbox : d->network;
}

static int call(struct docker *d, const char *method, const char *name, struct err *e)
{
	AUTO_FREE char *path = xasprintf("/networks/%s", name);
	struct engine_call c = {.method = method, .path = path};

	return engine_call(&d->engine, &c, NULL, e);
}

static int make(struct docker *d, const char *name, struct err *e)
{
	/* No traffic between its containers; none with other networks that have this. */
	const char *option =
		d->engine.is_podman ? "isolate" : "com.docker.network.bridge.enable_icc";
	const char *value = d->engine.is_podman ? "true" : "false";
	AUTO_JSON *body = json_must(
		json_pack("{s:s,s:s,s:b,s:{s:s},s:{s:s,s:s}}", "Name", name, "Driver",
			  "bridge", "CheckDuplicate", 1, "Options", option, value,
			  "Labels", "mcp.role", "network", "mcp.instance", d->instance));
	struct engine_call c = {
		.method = "POST", .path = "/networks/create", .json = body};

	if (engine_call(&d->engine, &c, NULL, e) == 0)
		return 0;
	if (e->kind == ERR_CONFLICT) { /* another call was faster */
		*e = (struct err)ERR_INIT;
		return 0;
	}
	return err_wrap(e, "make the network of the sandboxes");
}

int network_ensure(struct docker *d, const char *sandbox, struct err *e)
{
	const char *name = network_of(d, sandbox);

	if (strcmp(name, "none") == 0 || call(d, "GET", name, e) == 0)
		return 0;
	if (e->kind != ERR_NOT_FOUND)
		return -1;
	if (!is_own(d))
		return err_wrap(e, "SANDBOX_NETWORK_MODE=%s", name);
	*e = (struct err)ERR_INIT;
	return make(d, name, e);
}

int network_open(struct docker *d, struct err *e)
{
	d->is_apart = is_own(d) && d->engine.is_podman;
	d->network = is_own(d) ? xasprintf("mcp-sandboxd-%s", d->instance)
			       : xstrdup(d->conf->network_mode);
	if (is_own(d))
		docker_say(
			d, BACKEND_NOBODY,
			"sandboxes on the bridge do not reach each other, and do reach "
			"what the engine's host reaches: see docs/docker.md, Network");
	return d->is_apart ? 0 : network_ensure(d, "", e);
}

/* One that is in use stays, and one that is gone is no fault. */
static void drop(struct docker *d, const char *name)
{
	struct err ignored = ERR_INIT;

	call(d, "DELETE", name, &ignored);
}

void network_forget(struct docker *d, const char *sandbox)
{
	if (d->is_apart)
		drop(d, sandbox);
}

const char *network_listed(const json_t *list, size_t i)
{
	const char *name = json_get_string(json_array_get(list, i), "Name");

	return name && docker_is_name(name) ? name : NULL;
}

static bool has(const struct sandbox_list *all, const char *name)
{
	size_t i;

	for (i = 0; i < all->n; i++)
		if (strcmp(all->v[i].name, name) == 0)
			return true;
	return false;
}

void network_tidy(struct docker *d, const struct sandbox_list *all)
{
	/* {"label":["mcp.instance=<hex>"]}, percent-encoded */
	AUTO_FREE char *path = xasprintf("/networks?filters=%%7B%%22label%%22%%3A%%5B"
					 "%%22mcp.instance%%3D%s%%22%%5D%%7D",
					 d->instance);
	struct engine_call c = {.method = "GET", .path = path};
	struct err e = ERR_INIT;
	AUTO_JSON *root = NULL;
	size_t i;

	if (!d->is_apart)
		return;
	if (engine_call(&d->engine, &c, &root, &e) < 0) {
		docker_say(d, BACKEND_NOBODY, "list of networks: %s", e.msg);
		return;
	}
	for (i = 0; i < json_array_size(root); i++) {
		const char *name = network_listed(root, i);

		if (name && !has(all, name))
			drop(d, name);
	}
}

void network_remove(struct docker *d)
{
	if (d->network && is_own(d) && !d->is_apart)
		drop(d, d->network);
}
