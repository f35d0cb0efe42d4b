/* SPDX-License-Identifier: MIT */
#include "master/status.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "conf/conf.h"
#include "master/datadir.h"
#include "store/reader.h"

enum { RUNS_SHOWN = 20 };

static const char *when(int64_t ms, char out[static CLOCK_RFC3339_SIZE])
{
	return ms ? clock_format_rfc3339(ms, out) : "-";
}

static int print_sandboxes(struct store_reader *r, FILE *f, struct err *e)
{
	AUTO_STORE_SANDBOXES l = {0};
	struct store_counts n = {0};
	char t[CLOCK_RFC3339_SIZE], count[STR_COUNT_SIZE];

	if (store_read_sandboxes(r, NULL, &l, e) < 0 || store_read_counts(r, &n, e) < 0)
		return -1;
	fprintf(f, "\n%s, %" PRId64 " more in the warm pool\n",
		str_count(count, (long long)l.n, "sandbox", "sandboxes"), n.warm);
	for (size_t i = 0; i < l.n; i++)
		fprintf(f, "  %-9s until %-24s %s (%s)\n",
			store_sandbox_state_name(l.v[i].state),
			when(l.v[i].expires_at, t), l.v[i].identifier, l.v[i].name);
	return 0;
}

static int print_runs(struct store_reader *r, FILE *f, struct err *e)
{
	AUTO_STORE_RUNS l = {0};
	char t[CLOCK_RFC3339_SIZE];

	if (store_read_recent_runs(r, NULL, RUNS_SHOWN, &l, e) < 0)
		return -1;
	fprintf(f, "\nnewest runs\n");
	for (size_t i = 0; i < l.n; i++)
		fprintf(f, "  %-9s %-24s %s %s%s%s\n", store_run_state_name(l.v[i].state),
			when(l.v[i].created_at, t), l.v[i].run_id, l.v[i].identifier,
			l.v[i].error ? ": " : "", l.v[i].error ? l.v[i].error : "");
	return 0;
}

static int print_all(const struct conf *c, FILE *f, struct err *e)
{
	AUTO_FREE char *db = xasprintf("%s/db/mcp-sandboxd.sqlite", c->data_dir);
	AUTO_STORE_READER *r = NULL;
	pid_t pid = 0;

	if (datadir_owner(c->data_dir, &pid, e) < 0)
		return -1;
	if (pid)
		fprintf(f, "%s: served by pid %d\n", c->data_dir, (int)pid);
	else
		fprintf(f, "%s: no server runs\n", c->data_dir);
	if (access(db, F_OK) < 0)
		return 0; /* never served yet: nothing to show */
	if (store_reader_open(db, &r, e) < 0 || print_sandboxes(r, f, e) < 0)
		return -1;
	return print_runs(r, f, e);
}

int status_print(const char *env_file, FILE *f, struct err *e)
{
	struct conf c = {0};
	int rc;

	if (conf_load(env_file, &c, e) < 0)
		return -1;
	rc = print_all(&c, f, e);
	conf_release(&c);
	return rc;
}
