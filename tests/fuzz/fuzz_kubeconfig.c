/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdint.h>

#include "backend/kubernetes/api/kubeconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* YAML and what is made of it: a context that is whole, or words and nothing. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_KUBECONFIG k = {0};
	struct err e = ERR_INIT;
	struct str text = {(const char *)data, size};

	if (kubeconfig_parse(text, "/dir", NULL, &k, &e) == 0)
		assert(k.server && k.context);
	else
		assert(e.kind != ERR_NONE && *e.msg && !k.server);
	return 0;
}
