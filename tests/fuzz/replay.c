/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"

/*
 * Runs every file of a folder through a fuzz target, so that the corpora are tests
 * with any compiler. Each input is an allocation of exactly its size: one byte read
 * too far is a fault.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
	AUTO_BUF b = BUF_INIT(64 * 1024 * 1024);
	AUTO_FREE uint8_t *exact = NULL;
	struct err e = ERR_INIT;

	if (io_read_file(path, &b, &e) < 0)
		return -1;
	exact = xmemdup(b.p, b.len);
	return LLVMFuzzerTestOneInput(exact, b.len);
}

int main(int argc, char **argv)
{
	struct dirent *de;
	int n = 0;
	DIR *d;

	assert(argc == 2);
	d = opendir(argv[1]);
	while (d && (de = readdir(d)) != NULL) {
		AUTO_FREE char *path = xasprintf("%s/%s", argv[1], de->d_name);

		if (de->d_name[0] == '.')
			continue;
		if (replay(path) != 0) {
			printf("not ok - %s\n", path);
			return 1;
		}
		printf("ok - %s\n", path);
		n++;
	}
	if (d)
		closedir(d);
	return n ? 0 : 1;
}
