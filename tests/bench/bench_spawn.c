/* SPDX-License-Identifier: MIT */
/* The yardstick: posix_spawn and wait of a program on the host, one at a time. */
#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#include "bench.h"

extern char **environ;

static void spawn_once(char **argv)
{
	pid_t pid;
	int status;
	int rc = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);

	if (rc != 0 || waitpid(pid, &status, 0) != pid || status != 0) {
		fprintf(stderr, "bench_spawn: %s did not run and exit with 0\n", argv[0]);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	struct samples s = {0};
	int64_t began;
	long i, n;

	if (argc < 3 || (n = strtol(argv[1], NULL, 10)) < 1) {
		fprintf(stderr, "usage: bench_spawn COUNT PROGRAM [ARG...]\n");
		return 1;
	}
	began = bench_now_us(CLOCK_MONOTONIC);
	for (i = 0; i < n; i++) {
		int64_t t = bench_now_us(CLOCK_MONOTONIC);

		spawn_once(argv + 2);
		samples_add(&s, bench_now_us(CLOCK_MONOTONIC) - t);
	}
	samples_print(&s, bench_now_us(CLOCK_MONOTONIC) - began);
	return 0;
}
