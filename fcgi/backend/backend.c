/* SPDX-License-Identifier: MIT */
#include "backend/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/docker/docker.h"
#include "backend/kubernetes/kubernetes.h"
#include "backend/local/local.h"
#include "base/buf.h"
#include "base/id.h"
#include "base/sha256.h"

enum { WARM_HEX = 12 };

static const struct backend_ops *const backends[] = {&backend_local, &backend_docker,
						     &backend_kubernetes};

const struct backend_ops *backend_find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof backends / sizeof backends[0]; i++)
		if (strcmp(backends[i]->name, name) == 0)
			return backends[i];
	return NULL;
}

void sandbox_info_release(struct sandbox_info *i)
{
	free(i->name);
	free(i->container_id);
	free(i->image);
	free(i->policy_fingerprint);
	*i = (struct sandbox_info){0};
}

void sandbox_list_release(struct sandbox_list *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		sandbox_info_release(&l->v[i]);
	free(l->v);
	*l = (struct sandbox_list){0};
}

/* Lower-case letters and digits only: also fit for a pod and a host name. */
static char safe_char(char c)
{
	static const char from[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "abcdefghijklmnopqrstuvwxyz0123456789";
	static const char to[] = "abcdefghijklmnopqrstuvwxyz"
				 "abcdefghijklmnopqrstuvwxyz0123456789-";
	const char *at = strchr(from, c);

	return at ? to[at - from] : to[sizeof to - 2];
}

void backend_sandbox_name(char *dst, size_t n, const char *instance_id,
			  const char *tenant, const char *identifier)
{
	AUTO_BUF b = BUF_INIT(4096);
	char hex[SHA256_HEX_LEN + 1], safe[41];
	size_t i;

	/* NUL between the parts: "a" + "bc" and "ab" + "c" differ. */
	buf_add(&b, instance_id, strlen(instance_id) + 1);
	buf_add(&b, tenant, strlen(tenant) + 1);
	buf_puts(&b, identifier);
	sha256_hex(b.p, b.len, hex);
	for (i = 0; i + 1 < sizeof safe && identifier[i]; i++)
		safe[i] = safe_char(identifier[i]);
	safe[i] = '\0';
	snprintf(dst, n, "mcp-sbx-%s-%.8s", safe, hex);
}

void backend_warm_name(char *dst, size_t n)
{
	char hex[WARM_HEX + 1];

	/* More than the 8 digits behind an identifier's last dash. */
	id_random_hex(hex, WARM_HEX);
	snprintf(dst, n, "mcp-sbx-warm-%s", hex);
}
