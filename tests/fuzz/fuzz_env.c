/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "conf/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int take(void *arg, const char *key, const char *value, struct err *e)
{
	(void)arg;
	(void)e;
	assert(*key && strlen(value) < 1 << 20);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = ERR_INIT;

	if (conf_parse_env_text((const char *)data, size, take, NULL, &e) < 0)
		assert(e.kind == ERR_INVALID);
	return 0;
}
