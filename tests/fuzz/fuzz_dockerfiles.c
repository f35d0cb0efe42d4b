/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backend/docker/context.h"
#include "backend/docker/dockerignore.h"
#include "backend/docker/registryauth.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What lies beside the server for an engine's sake: Dockerfile, .dockerignore, logins. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct dockerignore ignore;
	struct err ignored = ERR_INIT;
	AUTO_JSON *config = NULL;

	context_is_wanted(text, size);
	dockerignore_parse(text, size, &ignore);
	dockerignore_matches(&ignore, "a/b/file.txt");
	dockerignore_release(&ignore);
	if (json_parse(text, size, &config, &ignored) < 0)
		return 0;
	free(registryauth_of(config, "reg:5000"));
	free(registryauth_all_of(config));
	registryauth_has_helper(config, "reg:5000");
	return 0;
}
