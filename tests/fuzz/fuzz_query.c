/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "edge/query.h"
#include "edge/routes.h"

int LLVMFuzzerTestOneInput(const unsigned char *p, size_t n);

int LLVMFuzzerTestOneInput(const unsigned char *p, size_t n)
{
	struct str target = {(const char *)p, n}, path, query, capture[HTTP_CAPTURES];
	char value[64];

	target_split(target, &path, &query);
	if (path.n + query.n > n)
		abort();
	if (query_get(query, "run_id", value, sizeof(value)) == QUERY_FOUND &&
	    strlen(value) >= sizeof(value))
		abort();
	if (url_decode(path, false, value, sizeof(value)) == 0 && strlen(value) > path.n)
		abort();
	if (route_match(path, "/artifacts/*/*/**", capture) &&
	    (capture[0].n == 0 || capture[1].n == 0 || capture[2].n == 0))
		abort();
	return 0;
}
