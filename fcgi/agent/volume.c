/* SPDX-License-Identifier: MIT */
#include "agent/volume.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"

static bool counts(const char *name)
{
	static const char *const nothing[] = {".", "..", "lost+found"};

	for (size_t i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++)
		if (strcmp(name, nothing[i]) == 0)
			return false;
	return true;
}

/* In doubt it is not. */
static bool is_empty(int fd)
{
	int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = own < 0 ? NULL : fdopendir(own);
	const struct dirent *entry = NULL;

	if (!d) {
		auto_close(&own);
		return false;
	}
	do
		entry = readdir(d);
	while (entry && !counts(entry->d_name));
	closedir(d);
	return !entry;
}

void volume_give(const char *path, uid_t uid, mode_t mode)
{
	AUTO_CLOSE int fd = -1;
	struct stat st;

	(void)mkdir(path, 0755); /* whether it is there is seen next */
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == 0 && is_empty(fd) &&
	    fchmod(fd, mode) == 0 && fchown(fd, uid, uid) < 0)
		(void)fchmod(fd, st.st_mode & 07777);
}
