/* SPDX-License-Identifier: MIT */
#include "edge/stats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

/* Every status the edge answers with has a column; anything else is the last. */
static const int statuses[] = {200, 202, 204, 206, 302, 400, 403, 404, 405,
			       409, 410, 413, 415, 429, 500, 503, 0};
enum {
	STATUS_COUNT = sizeof(statuses) / sizeof(statuses[0]),
	SLOTS = 64, /* EDGE_PROCESSES has the same upper bound */
};

struct slot {
	atomic_int_fast64_t requests[STATS_ROUTE_COUNT][STATUS_COUNT];
	atomic_int_fast64_t gauges[STATS_GAUGE_COUNT];
} __attribute__((aligned(64)));

struct stats {
	struct slot *slots;
	struct slot *own;
};

static const char *const route_names[STATS_ROUTE_COUNT] = {
	[STATS_MCP] = "mcp",           [STATS_EVENTS] = "events",
	[STATS_RUN] = "run",           [STATS_OUTPUT] = "output",
	[STATS_ARTIFACT] = "artifact", [STATS_METRICS] = "metrics",
	[STATS_HEALTH] = "health",     [STATS_DEBUG] = "debug",
	[STATS_OTHER] = "other",
};

static const struct {
	const char *name, *help;
} gauges[STATS_GAUGE_COUNT] = {
	[STATS_PARKED] = {"mcp_parked_requests", "Requests that wait without a thread."},
	[STATS_STREAMS] = {"mcp_event_streams", "Open streams of run events."},
	[STATS_AWAITING] = {"mcp_awaiting_requests", "Requests that await a run's end."},
};

/*
 * All edges ask for the same size, so the first one's call is everybody's. Nobody can
 * take it back: who touches a mapping beyond the end of its file dies.
 */
static int size_memfd(int fd, struct err *e)
{
	enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, "the edges' shared numbers");
	if (st.st_size < (off_t)(SLOTS * sizeof(struct slot)) &&
	    ftruncate(fd, (off_t)(SLOTS * sizeof(struct slot))) < 0)
		return err_sys(e, "size the edges' shared numbers");
	/* EPERM: it is sealed already. */
	if (fcntl(fd, F_ADD_SEALS, SEALS) < 0 && errno != EPERM)
		return err_sys(e, "seal the edges' shared numbers");
	if (!(fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK))
		return err_set(e, ERR_INVALID,
			       "the edges' shared numbers can be cut short");
	return 0;
}

int stats_open(int fd, int slot, struct stats **ret, struct err *e)
{
	int flags = fd > 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
	struct stats *s;
	void *p;

	if (slot < 0 || slot >= SLOTS)
		return err_set(e, ERR_INVALID, "edge %d: at most %d edges", slot, SLOTS);
	if (fd > 0 && size_memfd(fd, e) < 0)
		return -1;
	p = mmap(NULL, SLOTS * sizeof(struct slot), PROT_READ | PROT_WRITE, flags,
		 fd > 0 ? fd : -1, 0);
	if (p == MAP_FAILED)
		return err_sys(e, "map the edges' shared numbers");
	s = xcalloc(1, sizeof(*s));
	s->slots = p;
	s->own = &s->slots[slot];
	/* What an earlier edge in this slot had parked went with it. */
	for (int g = 0; g < STATS_GAUGE_COUNT; g++)
		atomic_store(&s->own->gauges[g], 0);
	*ret = s;
	return 0;
}

void stats_close(struct stats *s)
{
	if (!s)
		return;
	munmap(s->slots, SLOTS * sizeof(struct slot));
	free(s);
}

static int status_column(int http_status)
{
	int i = 0;

	while (statuses[i] && statuses[i] != http_status)
		i++;
	return i;
}

void stats_count(struct stats *s, enum stats_route route, int http_status)
{
	atomic_fetch_add_explicit(&s->own->requests[route][status_column(http_status)], 1,
				  memory_order_relaxed);
}

void stats_gauge_add(struct stats *s, enum stats_gauge g, int64_t n)
{
	atomic_fetch_add_explicit(&s->own->gauges[g], n, memory_order_relaxed);
}

static int64_t sum_requests(const struct stats *s, int route, int column)
{
	int64_t sum = 0;

	for (int i = 0; i < SLOTS; i++)
		sum += atomic_load_explicit(&s->slots[i].requests[route][column],
					    memory_order_relaxed);
	return sum;
}

static int64_t sum_gauge(const struct stats *s, int g)
{
	int64_t sum = 0;

	for (int i = 0; i < SLOTS; i++)
		sum += atomic_load_explicit(&s->slots[i].gauges[g], memory_order_relaxed);
	return sum;
}

static void print_requests(const struct stats *s, struct buf *b, int route)
{
	for (int c = 0; c < STATUS_COUNT; c++) {
		int64_t n = sum_requests(s, route, c);

		if (n)
			buf_printf(b,
				   "mcp_http_requests_total{route=\"%s\",status=\"%d\"} "
				   "%lld\n",
				   route_names[route], statuses[c], (long long)n);
	}
}

void stats_print(const struct stats *s, struct buf *b)
{
	for (int g = 0; g < STATS_GAUGE_COUNT; g++)
		buf_printf(b, "# HELP %s %s\n# TYPE %s gauge\n%s %lld\n", gauges[g].name,
			   gauges[g].help, gauges[g].name, gauges[g].name,
			   (long long)sum_gauge(s, g));
	buf_puts(b, "# HELP mcp_http_requests_total Answered requests.\n"
		    "# TYPE mcp_http_requests_total counter\n");
	for (int r = 0; r < STATS_ROUTE_COUNT; r++)
		print_requests(s, b, r);
}
