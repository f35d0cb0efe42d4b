/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_KUBERNETES_ELFARCH_H
#define BACKEND_KUBERNETES_ELFARCH_H

#include <stddef.h>

/*
 * The architecture of a program in ELF format, by the name that Kubernetes has for
 * it: "amd64" or "arm64"; NULL: another one, or none. Pure.
 */
const char *elfarch(const void *p, size_t n);

#endif
