/* SPDX-License-Identifier: MIT */
#include "backend/agentfile.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/io.h"
#include "base/mem.h"

/* conf's path, or beside this program. */
static int find(const struct conf *c, char **ret, struct err *e)
{
	char self[PATH_MAX];
	ssize_t n;

	if (*c->agent_path) {
		*ret = xstrdup(c->agent_path);
		return 0;
	}
	n = readlink("/proc/self/exe", self, sizeof self - 1);
	if (n < 0)
		return err_sys(e, "find this program's folder");
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	*ret = xasprintf("%s/mcp-sandboxd-agent", self);
	return 0;
}

int agentfile_read_other(const struct conf *c, const char *suffix, struct buf *b,
			 struct err *e)
{
	AUTO_FREE char *from = NULL, *whole = NULL;

	if (find(c, &from, e) < 0)
		return -1;
	whole = xasprintf("%s%s", from, suffix);
	if (io_read_file(whole, b, e) < 0)
		return err_wrap(e, "the agent (AGENT_PATH)");
	return 0;
}

int agentfile_read(const struct conf *c, struct buf *b, struct err *e)
{
	return agentfile_read_other(c, "", b, e);
}
