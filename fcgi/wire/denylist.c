/* SPDX-License-Identifier: MIT */
#include "wire/denylist.h"

#include <stdint.h>

#include "base/buf.h"

static const char *match_argv(const struct patterns *p, char *const *argv)
{
	AUTO_BUF b = BUF_INIT(SIZE_MAX / 2); /* runspec has bounded argv */
	size_t i;

	for (i = 0; argv[i]; i++) {
		buf_puts(&b, i ? " " : "");
		buf_puts(&b, argv[i]);
	}
	return patterns_match(p, b.p);
}

int denylist_check(const struct patterns *p, const struct run_spec *s, struct err *e)
{
	const struct command_spec *c;
	const char *hit;
	size_t i;

	for (i = 0; i < s->ncommands; i++) {
		c = &s->commands[i];
		hit = c->shell ? patterns_match(p, c->shell) : match_argv(p, c->argv);
		if (hit)
			return err_set(e, ERR_DENIED,
				       "commands[%zu] is refused by this server's "
				       "DENYLIST_PATTERNS: it matches %.200s",
				       i, hit);
	}
	return 0;
}
