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

static int look(struct docker *d, struct err *e)
{
	AUTO_FREE char *path = xasprintf("/networks/%s", d->network);
	struct engine_call c = {.method = "GET", .path = path};

	return engine_call(&d->engine, &c, NULL, e);
}

static int make(struct docker *d, struct err *e)
{
	/* Each engine's word for "no traffic between containers". */
	const char *option =
		d->engine.is_podman ? "isolate" : "com.docker.network.bridge.enable_icc";
	const char *value = d->engine.is_podman ? "true" : "false";
	AUTO_JSON *body = json_must(json_pack(
		"{s:s,s:s,s:b,s:{s:s},s:{s:s,s:s}}", "Name", d->network, "Driver",
		"bridge", "CheckDuplicate", 1, "Options", option, value, "Labels",
		"mcp.role", "network", "mcp.instance", d->instance));
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

int network_ensure(struct docker *d, struct err *e)
{
	if (strcmp(d->network, "none") == 0 || look(d, e) == 0)
		return 0;
	if (e->kind != ERR_NOT_FOUND)
		return -1;
	if (!is_own(d))
		return err_wrap(e, "SANDBOX_NETWORK_MODE=%s", d->network);
	*e = (struct err)ERR_INIT;
	return make(d, e);
}

int network_open(struct docker *d, struct err *e)
{
	d->network = is_own(d) ? xasprintf("mcp-sandboxd-%s", d->instance)
			       : xstrdup(d->conf->network_mode);
	if (is_own(d))
		docker_say(
			d, BACKEND_NOBODY,
			"sandboxes on the bridge do not reach each other, and do reach "
			"what the engine's host reaches: see docs/docker.md, Network");
	return network_ensure(d, e);
}

void network_remove(struct docker *d)
{
	AUTO_FREE char *path = NULL;
	struct err ignored = ERR_INIT;
	struct engine_call c = {.method = "DELETE"};

	if (!d->network || !is_own(d))
		return;
	path = xasprintf("/networks/%s", d->network);
	c.path = path;
	engine_call(&d->engine, &c, NULL, &ignored);
}
