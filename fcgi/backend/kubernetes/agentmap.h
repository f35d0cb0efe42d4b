/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_KUBERNETES_AGENTMAP_H
#define BACKEND_KUBERNETES_AGENTMAP_H

#include "backend/kubernetes/api/api.h"
#include "backend/kubernetes/pods/podspec.h"

/*
 * What all pods of a server need before they are made, in their namespace:
 *
 * - the owner, a ConfigMap mcp-sandboxd-<instance>: every pod, claim and agent names
 *   it as its owner, so that deleting it deletes them all. An owner must be in the
 *   namespace of what it owns, and the server itself is usually in another one.
 * - the agent's program for each architecture, an immutable ConfigMap
 *   mcp-sandboxd-<instance>-<architecture>-<hash>. Immutable, and named by what it
 *   holds: a new version is another ConfigMap, and nothing changes under a pod.
 *
 * Which architecture a pod gets must be known before it is scheduled, because an
 * image need not have a shell that could choose: the pod asks for nodes of the
 * architecture (kubernetes.io/arch) whose agent it is given.
 *
 * Any thread.
 */
struct agentmap;

/*
 * Reads the agents: AGENT_PATH or beside the server's program, and beside that one
 * the same with .amd64 or .arm64 behind its name. Touches no cluster. ERR_INVALID:
 * KUBERNETES_ARCHITECTURES names one that no agent is there for, or an agent is too
 * large for a ConfigMap.
 */
int agentmap_open(const struct podspec *s, struct kube_api *a, struct agentmap **ret,
		  struct err *e);
void agentmap_free(struct agentmap *m); /* NULL is fine */

/* In the order of preference. */
size_t agentmap_count(const struct agentmap *m);
const char *agentmap_arch(const struct agentmap *m, size_t i);
const char *agentmap_name(const struct agentmap *m, size_t i); /* of the ConfigMap */

/*
 * Makes what is missing in the cluster. *ret_owner_uid is the owner's, to free().
 * Someone may delete them: the owner is looked for at each call (those at once share
 * a look), for what a pod of an owner that went is deleted; the agents when the last
 * look was a while ago, and while a pod is waited for by agentmap_look().
 */
int agentmap_ensure(struct agentmap *m, char **ret_owner_uid, struct err *e);
const char *agentmap_owner_name(const struct agentmap *m);

/* Looks for all of them now. */
int agentmap_look(struct agentmap *m, struct err *e);

/*
 * Removes the agents of this server's earlier versions that no pod of pod_selector
 * has mounted: a container that is started again needs the one it began with.
 */
int agentmap_sweep(struct agentmap *m, const char *pod_selector, struct err *e);

/* Removes the owner, and with it all that it owns. Tried once, for timeout_ms. */
int agentmap_remove(struct agentmap *m, int64_t timeout_ms, struct err *e);

#endif
