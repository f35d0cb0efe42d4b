/* SPDX-License-Identifier: MIT */
#include "backend/docker/registryauth.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/io.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

static const char hub[] = "https://index.docker.io/v1/";
static const char alphabet[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

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

/* base64url with its padding, as the engine reads it. */
static char *encode(const char *s)
{
	size_t n = strlen(s), i, at = 0;
	char *out = xmalloc((n + 2) / 3 * 4 + 1);

	for (i = 0; i < n; i += 3) {
		unsigned v = (unsigned)(unsigned char)s[i] << 16;
		size_t left = n - i;

		if (left > 1)
			v |= (unsigned)(unsigned char)s[i + 1] << 8;
		if (left > 2)
			v |= (unsigned char)s[i + 2];
		out[at++] = alphabet[v >> 18 & 63];
		out[at++] = alphabet[v >> 12 & 63];
		out[at++] = left > 1 ? alphabet[v >> 6 & 63] : '=';
		out[at++] = left > 2 ? alphabet[v & 63] : '=';
	}
	out[at] = '\0';
	return out;
}

static int value_of(char c)
{
	const char *at;

	if (c == '+')
		c = '-';
	if (c == '/')
		c = '_';
	at = c ? strchr(alphabet, c) : NULL;
	return at ? (int)(at - alphabet) : -1;
}

/* Plain base64, to a string; NULL: it is none. */
static char *decode(const char *s)
{
	size_t n = strcspn(s, "="), i, at = 0;
	char *out = xmalloc(n + 1);
	unsigned v = 0;

	for (i = 0; i < n; i++) {
		int d = value_of(s[i]);

		if (d < 0) {
			free(out);
			return NULL;
		}
		v = (v << 6 | (unsigned)d) & 0xffffff;
		if (i % 4 > 0)
			out[at++] = (char)(v >> (6 - 2 * (i % 4)) & 0xff);
	}
	out[at] = '\0';
	return out;
}

static char *header_of(const char *user, const char *password, const char *registry)
{
	AUTO_JSON *auth = json_pack("{s:s,s:s,s:s}", "username", user, "password",
				    password, "serveraddress", registry);
	AUTO_FREE char *text = auth ? json_dumps(auth, JSON_COMPACT) : NULL;
	AUTO_FREE char *coded = text ? encode(text) : NULL;

	return coded ? xasprintf("X-Registry-Auth: %s", coded) : NULL;
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
		AUTO_FREE char *pair = coded ? decode(coded) : NULL;
		char *colon = pair ? strchr(pair, ':') : NULL;

		if (!colon || !is_key_of(key, registry))
			continue;
		*colon = '\0';
		return header_of(pair, colon + 1, registry);
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
