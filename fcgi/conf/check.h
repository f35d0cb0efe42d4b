/* SPDX-License-Identifier: MIT */
#ifndef CONF_CHECK_H
#define CONF_CHECK_H

#include "base/err.h"
#include "conf/conf.h"

/* What a text value must be; each fails with the rule alone. Pure. */
int check_mcp_path(const char *v, struct err *e);
int check_public_url(const char *v, struct err *e);
int check_address(const char *v, struct err *e);
int check_user(const char *v, struct err *e);
int check_hosts(const char *v, struct err *e);
int check_origins(const char *v, struct err *e);
int check_image(const char *v, struct err *e);
int check_run_dir(const char *v, struct err *e);
int check_tools(const char *v, struct err *e);
int check_runtime(const char *v, struct err *e);
int check_mirror(const char *v, struct err *e);
int check_suite(const char *v, struct err *e);
int check_caps(const char *v, struct err *e);
int check_patterns(const char *v, struct err *e);
int check_network(const char *v, struct err *e);
int check_docker_host(const char *v, struct err *e);
int check_plain_path(const char *v, struct err *e);

/* In kubecheck.c: the forms that a Kubernetes API server takes. */
int check_kube_name(const char *v, struct err *e);      /* or empty */
int check_kube_container(const char *v, struct err *e); /* not empty */
int check_kube_subdomain(const char *v, struct err *e); /* or empty */
int check_kube_names(const char *v, struct err *e);     /* comma list */
int check_kube_prefix(const char *v, struct err *e);
int check_kube_selector(const char *v, struct err *e);
int check_kube_tolerations(const char *v, struct err *e);
int check_kube_architectures(const char *v, struct err *e);
int check_kube_quantity(const char *v, struct err *e); /* or empty */

/* Rules that span variables; the message names them. */
int check_whole(const struct conf *c, struct err *e);

#endif
