/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"
#include "wire/filespec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_JSON *args = NULL;
	struct err e = ERR_INIT;

	if (json_parse((const char *)data, size, &args, &e) < 0)
		return 0;
	for (int op = FILE_READ; op <= FILE_LIST; op++) {
		AUTO_FILESPEC s = {0};
		struct err why = ERR_INIT;

		if (filespec_parse(args, (enum file_op)op, &s, &why) == 0 &&
		    s.path[0] != '/')
			abort();
	}
	return 0;
}
