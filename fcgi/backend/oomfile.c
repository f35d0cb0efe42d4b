/* SPDX-License-Identifier: MIT */
#include "backend/oomfile.h"

#include "base/auto.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"

const char *oomfile_name(int cgroup_version)
{
	return cgroup_version == 2 ? "memory.events" : "memory.oom_control";
}

int oomfile_read(const char *path, uint64_t *ret, struct err *e)
{
	AUTO_FREE char *digits = NULL;
	AUTO_BUF text = BUF_INIT(4096);
	struct str rest, line, word;
	int64_t n;

	if (io_read_file(path, &text, e) < 0)
		return -1;
	rest = (struct str){text.p, text.len};
	while (str_cut(&rest, '\n', &line)) {
		if (!str_cut(&line, ' ', &word) || !str_eq(word, "oom_kill"))
			continue;
		digits = xstrndup(line.p ? line.p : "", line.n);
		if (num_parse(digits, 0, INT64_MAX, &n, e) < 0)
			return -1;
		*ret = (uint64_t)n;
		return 0;
	}
	return err_set(e, ERR_NOT_FOUND, "the kernel does not count oom kills");
}
