/* SPDX-License-Identifier: MIT */
#ifndef TESTS_BENCH_BENCH_H
#define TESTS_BENCH_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/*
 * What the measuring programs share: a clock in microseconds and a set of
 * samples that prints its percentiles as one JSON object. Measuring programs
 * leave by exit(1) with a sentence when anything is not as expected: a figure
 * from a broken run is worse than none.
 */
static inline int64_t bench_now_us(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

struct samples {
	int64_t *v;
	size_t n, cap;
};

static inline void samples_add(struct samples *s, int64_t us)
{
	if (s->n == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 1024;
		s->v = realloc(s->v, s->cap * sizeof *s->v);
		if (!s->v)
			abort();
	}
	s->v[s->n++] = us;
}

static inline int samples_cmp(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static inline int64_t samples_at(const struct samples *s, double q)
{
	size_t i = (size_t)(q * (double)s->n);

	return s->v[i < s->n ? i : s->n - 1];
}

/* `wall_us` is the time all samples took together; 0: no rate is printed. */
static inline void samples_print(struct samples *s, int64_t wall_us)
{
	if (s->n == 0) {
		fprintf(stderr, "bench: no sample was taken\n");
		exit(1);
	}
	qsort(s->v, s->n, sizeof *s->v, samples_cmp);
	printf("{\"n\":%zu,\"p50_us\":%lld,\"p99_us\":%lld,\"max_us\":%lld", s->n,
	       (long long)samples_at(s, 0.50), (long long)samples_at(s, 0.99),
	       (long long)s->v[s->n - 1]);
	if (wall_us > 0)
		printf(",\"per_s\":%.1f", 1e6 * (double)s->n / (double)wall_us);
	printf("}\n");
	fflush(stdout);
}

#endif
