/* SPDX-License-Identifier: MIT */
#include <stdint.h>

#include "backend/kubernetes/elfarch.h"
#include "backend/kubernetes/pods/jsonmerge.h"
#include "backend/kubernetes/pods/podstate.h"
#include "backend/kubernetes/pods/podwait.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What an API server says about pods, and what a template may say. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct pod_reading how = {.label_prefix = "mcp.", .container = "sandbox"};
	struct podwait wait = {.start_ms = 1000, .unschedulable_ms = 100};
	struct err e[3] = {ERR_INIT, ERR_INIT, ERR_INIT};
	AUTO_JSON *root = NULL, *merged = NULL;
	AUTO_POD p = {0};
	int64_t left;

	elfarch(data, size);
	if (json_parse((const char *)data, size, &root, &e[0]) < 0)
		return 0;
	merged = jsonmerge(json_object_get(root, "metadata"), root);
	if (pod_parse(root, &how, &p, &e[1]) == 0)
		podwait_judge(&wait, &p, 1, &left, &e[2]);
	return 0;
}
