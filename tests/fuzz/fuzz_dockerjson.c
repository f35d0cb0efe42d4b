/* SPDX-License-Identifier: MIT */
#include <stdint.h>

#include "backend/docker/container.h"
#include "backend/docker/joblines.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ignore(void *arg, const char *line)
{
	(void)arg;
	(void)line;
}

/* Every answer of an engine that is read: descriptions, lists, refusals, progress. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct joblines lines = JOBLINES_INIT(ignore, NULL);
	struct err e[5] = {ERR_INIT, ERR_INIT, ERR_INIT, ERR_INIT, ERR_INIT};
	struct sandbox_list list = {0};
	AUTO_CONTAINER c = {0};
	AUTO_JSON *root = NULL;

	joblines_feed(&lines, (const char *)data, size);
	joblines_end(&lines, &e[0]);
	joblines_release(&lines);
	engine_refusal(500, (const char *)data, size, &e[1]);
	if (json_parse((const char *)data, size, &root, &e[2]) < 0)
		return 0;
	container_parse(root, &c, &e[3]);
	if (container_parse_list(root, "sha256:0", &list, &e[4]) == 0)
		sandbox_list_release(&list);
	return 0;
}
