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

static char *header_of(const char *user, const char *password, const char *registry)
{
	AUTO_JSON *auth = json_pack("{s:s,s:s,s:s}", "username", user, "password",
				    password, "serveraddress", registry);
	AUTO_FREE char *text = auth ? json_dumps(auth, JSON_COMPACT) : NULL;
	AUTO_BUF coded = BUF_INIT(CODED_MAX);

	if (!text)
		return NULL;
	base64url_add(&coded, text, strlen(text));
	while (coded.len % 4) /* the engine insists on it */
		buf_puts(&coded, "=");
	return buf_ok(&coded) ? xasprintf("X-Registry-Auth: %s", coded.p) : NULL;
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
		const char *coded = json_get_string(item, "auth");
		AUTO_BUF pair = BUF_INIT(CODED_MAX);
		struct err ignored = ERR_INIT;
		char *colon;

		if (!coded || !is_key_of(key, registry) ||
		    base64_decode(&pair, coded, strlen(coded), &ignored) < 0)
			continue;
		colon = strchr(pair.p, ':');
		if (!colon)
			continue;
		*colon = '\0';
		return header_of(pair.p, colon + 1, registry);
	}
	return NULL;
}

char *registryauth_header(const char *reference)
{
	const char *dir = getenv("DOCKER_CONFIG"), *home = getenv("HOME");
	AUTO_FREE char *path =
		dir && *dir ? xasprintf("%s/config.json", dir)
			    : xasprintf("%s/.docker/config.json", home ? home : "/root");
	AUTO_FREE char *registry = registryauth_registry(reference);
	AUTO_BUF text = BUF_INIT(1 << 20);
	AUTO_JSON *config = NULL;
	struct err ignored = ERR_INIT;

	if (io_read_file(path, &text, &ignored) < 0 ||
	    json_parse(text.p, text.len, &config, &ignored) < 0)
		return NULL;
	return registryauth_of(config, registry);
}
