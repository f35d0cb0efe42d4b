/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "wire/runspec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct runspec_limits lim = {10, 1000, 60, 5000, 30000, false};
	AUTO_RUNSPEC s = {0};
	AUTO_JSON *args = NULL;
	struct err e = ERR_INIT;
	size_t i;

	if (json_parse((const char *)data, size, &args, &e) < 0 ||
	    runspec_parse(args, &lim, &s, &e) < 0)
		return 0;
	assert(s.identifier && s.ncommands >= 1 && s.ncommands <= 10);
	for (i = 0; i < s.ncommands; i++)
		assert(!s.commands[i].shell != !s.commands[i].argv &&
		       s.commands[i].cwd[0] == '/' && s.commands[i].env);
	return 0;
}
