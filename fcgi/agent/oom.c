/* SPDX-License-Identifier: MIT */
#include "agent/oom.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"

enum { TEXT_MAX = 4096 };

static ssize_t read_at(int dir, const char *name, char text[static TEXT_MAX])
{
	AUTO_CLOSE int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, TEXT_MAX - 1);

	text[n > 0 ? n : 0] = '\0';
	return n;
}

/* What is mounted there may be another group's, the whole machine's even. */
static bool is_ours(int dir)
{
	char text[TEXT_MAX], *line, *rest = text;

	if (read_at(dir, "cgroup.procs", text) <= 0)
		return false;
	while ((line = strsep(&rest, "\n")))
		if (strtol(line, NULL, 10) == (long)getpid())
			return true;
	return false;
}

int oom_open(void)
{
	static const struct {
		const char *dir, *file;
	} places[] = {{"/sys/fs/cgroup", "memory.events"},
		      {"/sys/fs/cgroup/memory", "memory.oom_control"}};

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		AUTO_CLOSE int dir =
			open(places[i].dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		int fd = -1;

		if (dir >= 0 && is_ours(dir))
			fd = openat(dir, places[i].file, O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			return fd;
	}
	return -1;
}

bool oom_parse(const char *text, size_t n, uint64_t *ret)
{
	static const char key[] = "oom_kill ";
	const char *at = text, *end = text + n;

	while (at && (size_t)(end - at) > sizeof(key) - 1) {
		if (memcmp(at, key, sizeof(key) - 1) == 0) {
			at += sizeof(key) - 1;
			if (*at < '0' || *at > '9')
				return false;
			for (*ret = 0; at < end && *at >= '0' && *at <= '9'; at++)
				*ret = *ret * 10 + (uint64_t)(*at - '0');
			return true;
		}
		at = memchr(at, '\n', (size_t)(end - at));
		at += at != NULL;
	}
	return false;
}

bool oom_read(int fd, uint64_t *ret)
{
	char text[TEXT_MAX];
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text), 0);

	return n > 0 && oom_parse(text, (size_t)n, ret);
}
