/* SPDX-License-Identifier: MIT */
#include <stdint.h>

#include "backend/docker/attach.h"
#include "backend/docker/container.h"
#include "backend/docker/image.h"
#include "backend/docker/joblines.h"
#include "backend/docker/network.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ignore(void *arg, const char *line)
{
	(void)arg;
	(void)line;
}

static void take_words(const char *p, size_t size)
{
	struct joblines lines = JOBLINES_INIT(ignore, NULL);
	struct err e[2] = {ERR_INIT, ERR_INIT};

	joblines_feed(&lines, p, size);
	joblines_end(&lines, &e[0]);
	joblines_release(&lines);
	engine_refusal(500, p, size, &e[1]);
}

/* Every answer of an engine that is read. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e[5] = {ERR_INIT, ERR_INIT, ERR_INIT, ERR_INIT, ERR_INIT};
	char where[] = "unix:///engine";
	struct engine en = {.where = where};
	struct sandbox_list list = {0};
	AUTO_CONTAINER c = {0};
	AUTO_BUF words = BUF_INIT(256);
	AUTO_JSON *root = NULL;

	take_words((const char *)data, size);
	if (json_parse((const char *)data, size, &root, &e[0]) < 0)
		return 0;
	container_parse(root, &c, &e[1]);
	if (container_parse_list(root, "sha256:0", &list, &e[2]) == 0)
		sandbox_list_release(&list);
	engine_understand(&en, root, &e[3]);
	image_fits(root, "amd64", &e[4]);
	attach_exec_id(root);
	network_listed(root, 0);
	limits_unkept(root, &words);
	limits_host(root);
	return 0;
}
