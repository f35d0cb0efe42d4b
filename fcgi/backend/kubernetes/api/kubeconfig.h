/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_KUBERNETES_API_KUBECONFIG_H
#define BACKEND_KUBERNETES_API_KUBECONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

/*
 * How to reach a cluster and who one is there: one context of a kubeconfig file
 * (v1), with its cluster and its user. Strings are owned; kubeconfig_release().
 * Of a certificate or key there is the text (PEM, from the -data member, which
 * wins) or the file; NULL: not given. Paths are absolute.
 */
struct kube_plugin { /* users[].user.exec */
	char *api_version;
	char **argv; /* NULL-terminated; NULL: no plugin */
	char **env;  /* "NAME=value", NULL-terminated */
	char *install_hint;
	bool wants_cluster; /* provideClusterInfo */
};

struct kubeconfig {
	char *context;
	char *server; /* "https://host:port/path", no slash at its end */
	char *tls_name, *proxy, *ns;
	bool insecure;
	char *ca_pem, *ca_file;
	char *cert_pem, *cert_file, *key_pem, *key_file;
	char *token, *token_file; /* the file wins */
	char *username, *password;
	char *as, *as_uid;
	char **as_groups; /* NULL-terminated, or NULL */
	struct kube_plugin plugin;
};
void kubeconfig_release(struct kubeconfig *k); /* zeroed is fine */
#define AUTO_KUBECONFIG __attribute__((cleanup(kubeconfig_release))) struct kubeconfig

/*
 * Reads the text of a kubeconfig that lies in the folder dir. context NULL or "":
 * its current-context. Touches no file. ERR_INVALID, naming the member that is
 * missing or wrong; what is known and not supported (auth-provider, as-user-extra)
 * is refused in words.
 */
int kubeconfig_parse(struct str text, const char *dir, const char *context,
		     struct kubeconfig *ret, struct err *e);

/* The same for the file at path. A colon list is refused in words. */
int kubeconfig_load(const char *path, const char *context, struct kubeconfig *ret,
		    struct err *e);

#endif
