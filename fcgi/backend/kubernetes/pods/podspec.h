/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_KUBERNETES_PODS_PODSPEC_H
#define BACKEND_KUBERNETES_PODS_PODSPEC_H

#include <jansson.h>

#include "backend/backend.h"

/*
 * What is asked of the cluster for a sandbox, as JSON. Pure but for podspec_open(),
 * which reads the template's file.
 *
 * A pod is made of three layers (jsonmerge.h), of which a later one wins:
 * 1. what the settings say (image pull policy, requests, node selector, …);
 * 2. the pod template (KUBERNETES_POD_TEMPLATE), for everything else;
 * 3. what makes it a sandbox and keeps it in: name, labels, owner, restart policy,
 *    no service account token, no namespace of the host, and of our own container
 *    the command, the user, the whole security context, the limits, our volumes.
 * So a template can add, and change what is convenience; it cannot loosen.
 */
#define PODSPEC_DIR    "/.mcp-sandboxd" /* root's alone: the agent's socket */
#define PODSPEC_AGENT  PODSPEC_DIR "/bin/agent"
#define PODSPEC_SOCKET PODSPEC_DIR "/run/socket"

/* Same for all sandboxes of a server. Owned; podspec_close(). */
struct podspec {
	const struct conf *conf; /* borrowed */
	char instance[16];
	char *image;
	char *fingerprint; /* of everything that decides what a sandbox may do */
	json_t *caps;      /* without CAP_ */
	json_t *settings;  /* layer 1 as far as it does not depend on the sandbox */
	json_t *tmpl;      /* layer 2: {"metadata":{…},"spec":{…}}; NULL: none */
};
int podspec_open(struct podspec *s, const struct conf *c, const char *instance,
		 struct err *e);
void podspec_close(struct podspec *s); /* zeroed is fine */

/* What is different for each. Borrowed. */
struct podspec_args {
	const struct sandbox_spec *spec;
	const char *arch;                   /* of the node: amd64, arm64 */
	const char *agent_map;              /* the ConfigMap that holds its agent */
	const char *owner_name, *owner_uid; /* the ConfigMap that owns all of ours */
};
json_t *podspec_pod(const struct podspec *s, const struct podspec_args *a);

/* The claim of the volume of its /workspace, of the same name. */
json_t *podspec_claim(const struct podspec *s, const struct podspec_args *a);

/* "mcp.role=ROLE,mcp.instance=<id>" by the configured prefix; to free(). */
char *podspec_selector(const struct podspec *s, const char *role);

/* metadata of a thing of ours; what: the value of the role label. */
json_t *podspec_metadata(const struct podspec *s, const char *name, const char *role);

/* Makes owner_name, owner_uid the owner of what the metadata describe. */
void podspec_set_owner(json_t *metadata, const char *owner_name, const char *owner_uid);

/* Pure parts, for tests. */
json_t *podspec_node_selector(const char *list); /* "a=b,c=d" */
json_t *podspec_tolerations(const char *list);   /* "key=value:Effect,…" */
json_t *podspec_quantity_milli(double v);        /* "500m" */

#endif
