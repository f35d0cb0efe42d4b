/* SPDX-License-Identifier: MIT */
#include "backend/docker/registryauth.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/base64.h"
#include "base/io.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

static const char hub[] = "https://index.docker.io/v1/";
enum { CODED_MAX = 65536 };

/* The first part is a registry when it looks like a host: a dot, a port, localhost. */
char *registryauth_registry(const char *reference)
{
	const char *slash = strchr(reference, '/');
	AUTO_FREE char *first =
		slash ? xstrndup(reference, (size_t)(slash - reference)) : NULL;

	if (!first || (!strpbrk(first, ".:") && strcmp(first, "localhost") != 0) ||
	    strcmp(first, "docker.io") == 0)
		return xstrdup(hub);
	return MOVE(first);
}

static char *coded_header(const char *name, const json_t *v)
{
	AUTO_FREE char *text = json_dumps(v, JSON_COMPACT);
	AUTO_BUF coded = BUF_INIT(CODED_MAX);

	if (!text)
		return NULL;
	base64url_add(&coded, text, strlen(text));
	while (coded.len % 4) /* the engine insists on it */
		buf_puts(&coded, "=");
	return buf_ok(&coded) ? xasprintf("%s: %s", name, coded.p) : NULL;
}

/* "user:password" in base64, or a token that stands for them. */
static json_t *credentials_of(const json_t *item, const char *registry)
{
	const char *token = json_get_string(item, "identitytoken");
	const char *coded = json_get_string(item, "auth");
	AUTO_BUF pair = BUF_INIT(CODED_MAX);
	struct err ignored = ERR_INIT;
	char *colon;

	if (token && *token)
		return json_pack("{s:s,s:s}", "identitytoken", token, "serveraddress",
				 registry);
	if (!coded || base64_decode(&pair, coded, strlen(coded), &ignored) < 0)
		return NULL;
	colon = strchr(pair.p, ':');
	if (!colon)
		return NULL;
	*colon = '\0';
	return json_pack("{s:s,s:s,s:s}", "username", pair.p, "password", colon + 1,
			 "serveraddress", registry);
}

/* A key may have a scheme and a path: they do not count. */
static bool is_key_of(const char *key, const char *registry)
{
	const char *from = str_starts(key, "https://")  ? key + 8
			   : str_starts(key, "http://") ? key + 7
							: key;
	size_t n = strcspn(from, "/");

	return strcmp(key, registry) == 0 ||
	       (strlen(registry) == n && strncmp(from, registry, n) == 0);
}

char *registryauth_of(const json_t *config, const char *registry)
{
	const json_t *auths = json_object_get(config, "auths"), *item;
	const char *key;

	json_object_foreach((json_t *)(uintptr_t)auths, key, item) {
		AUTO_JSON *auth =
			is_key_of(key, registry) ? credentials_of(item, registry) : NULL;

		if (auth)
			return coded_header("X-Registry-Auth", auth);
	}
	return NULL;
}

char *registryauth_all_of(const json_t *config)
{
	const json_t *auths = json_object_get(config, "auths"), *item;
	AUTO_JSON *all = json_object();
	const char *key;

	json_object_foreach((json_t *)(uintptr_t)auths, key, item) {
		json_t *auth = credentials_of(item, key);

		if (auth)
			json_put(all, key, auth);
	}
	return json_object_size(all) > 0 ? coded_header("X-Registry-Config", all) : NULL;
}

bool registryauth_has_helper(const json_t *config, const char *registry)
{
	const char *store = json_get_string(config, "credsStore");

	return (store && *store) ||
	       json_get_string(json_object_get(config, "credHelpers"), registry);
}

/* ---- the files */

enum { FILES = 3 };

/* The n-th place where they may be; to free(). */
static char *place(int n)
{
	const char *docker = getenv("DOCKER_CONFIG"), *run = getenv("XDG_RUNTIME_DIR");
	const char *home = getenv("HOME");

	if (!home || !*home)
		home = "/root";
	if (n == 0 && docker && *docker)
		return xasprintf("%s/config.json", docker);
	if (n == 0)
		return xasprintf("%s/.docker/config.json", home);
	if (n == 1)
		return xasprintf("%s/containers/%sauth.json", run && *run ? run : "/run",
				 run && *run ? "" : "0/");
	return xasprintf("%s/.config/containers/auth.json", home);
}

/* NULL: it is not there, or no JSON. */
static json_t *read_place(int n)
{
	AUTO_FREE char *path = place(n);
	AUTO_BUF text = BUF_INIT(1 << 20);
	json_t *config = NULL;
	struct err ignored = ERR_INIT;

	if (io_read_file(path, &text, &ignored) < 0 ||
	    json_parse(text.p, text.len, &config, &ignored) < 0)
		return NULL;
	return config;
}

char *registryauth_header(const char *reference)
{
	AUTO_FREE char *registry = registryauth_registry(reference);
	char *found = NULL;
	int i;

	for (i = 0; i < FILES && !found; i++) {
		AUTO_JSON *config = read_place(i);

		found = registryauth_of(config, registry);
	}
	return found;
}

char *registryauth_build_header(void)
{
	char *found = NULL;
	int i;

	for (i = 0; i < FILES && !found; i++) {
		AUTO_JSON *config = read_place(i);

		found = registryauth_all_of(config);
	}
	return found;
}

bool registryauth_needs_helper(const char *reference)
{
	AUTO_FREE char *registry = registryauth_registry(reference);
	bool found = false;
	int i;

	for (i = 0; i < FILES && !found; i++) {
		AUTO_JSON *config = read_place(i);

		found = registryauth_has_helper(config, registry);
	}
	return found;
}
