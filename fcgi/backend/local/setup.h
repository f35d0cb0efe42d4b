/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_LOCAL_SETUP_H
#define BACKEND_LOCAL_SETUP_H

#include "backend/local/local.h"
#include "backend/local/oci.h"

/*
 * What open() of the local backend does once: checks, folders, image, agent,
 * and the choice of a runtime by a real run.
 */
int setup_all(struct local *l, const char *instance_id, struct err *e);

/* The parts of a sandbox's configuration that are the same for all of them. */
void setup_oci(const struct local *l, struct oci_spec *s);

#endif
