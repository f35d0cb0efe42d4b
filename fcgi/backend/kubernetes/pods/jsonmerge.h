/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_KUBERNETES_PODS_JSONMERGE_H
#define BACKEND_KUBERNETES_PODS_JSONMERGE_H

#include <jansson.h>

/*
 * Lays one description of a Kubernetes object over another:
 * - objects are merged member by member; a null takes the member away;
 * - lists of named things (containers, volumes, env, …) are merged by "name",
 *   volumeMounts and volumeDevices by "mountPath" and "devicePath", ownerReferences
 *   by "uid"; what the base does not have is added behind it;
 * - tolerations are added up;
 * - every other list, and every other value, is replaced.
 * Pure; neither argument is changed; the result is the caller's and shares nothing
 * with them.
 */
json_t *jsonmerge(const json_t *base, const json_t *over);

#endif
