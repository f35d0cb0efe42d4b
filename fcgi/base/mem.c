/* SPDX-License-Identifier: MIT */
#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *p)
{
	if (!p)
		abort();
	return p;
}

void *xmalloc(size_t n)
{
	return checked(malloc(n ? n : 1));
}

void *xcalloc(size_t count, size_t size)
{
	if (count == 0 || size == 0)
		count = size = 1;
	return checked(calloc(count, size));
}

void *xrealloc(void *p, size_t n)
{
	return checked(realloc(p, n ? n : 1));
}

void *xreallocarray(void *p, size_t count, size_t size)
{
	if (size && count > SIZE_MAX / size)
		abort();
	return xrealloc(p, count * size);
}

char *xstrdup(const char *s)
{
	return checked(strdup(s));
}

char *xstrndup(const char *p, size_t n)
{
	return checked(strndup(p, n));
}

void *xmemdup(const void *p, size_t n)
{
	void *copy = xmalloc(n);

	if (n)
		memcpy(copy, p, n);
	return copy;
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *s = NULL;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0)
		abort();
	return checked(s);
}

void strv_free(char **v)
{
	size_t i;

	for (i = 0; v && v[i]; i++)
		free(v[i]);
	free(v);
}

size_t strv_len(char *const *v)
{
	size_t n = 0;

	while (v && v[n])
		n++;
	return n;
}

char **strv_dup(char *const *v)
{
	size_t i, n = strv_len(v);
	char **copy = xcalloc(n + 1, sizeof *copy);

	for (i = 0; i < n; i++)
		copy[i] = xstrdup(v[i]);
	return copy;
}
