/* SPDX-License-Identifier: MIT */
#ifndef MASTER_ROLEENV_H
#define MASTER_ROLEENV_H

#include "base/err.h"
#include "conf/conf.h"
#include "master/role.h"

/*
 * The environment a role is executed with, made from nothing: the effective
 * configuration (so both roles work with exactly what the master has checked,
 * whatever becomes of the .env file), PATH, and for the runner alone what
 * engines and clusters need (DOCKER_*, KUBE*, HOME, proxies). An edge gets no
 * variable that could be a credential. NULL-terminated; strv_free().
 */
int roleenv_make(enum role_kind kind, const struct conf *c, const char *run_dir,
		 char **environment, char ***ret, struct err *e);

#endif
