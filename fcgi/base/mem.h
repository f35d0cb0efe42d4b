/* SPDX-License-Identifier: MIT */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>

/*
 * Allocation that does not fail: a process that is out of memory aborts. A size
 * that comes from outside meets a limit before it gets here. Any thread.
 * Everything returned is released with free().
 */
void *xmalloc(size_t n) __attribute__((malloc, returns_nonnull));

/* Zeroed; an overflowing product aborts. */
void *xcalloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull));

/* Room for count things of size bytes; an overflowing product aborts. */
void *xreallocarray(void *p, size_t count, size_t size) __attribute__((returns_nonnull));
void *xrealloc(void *p, size_t n) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));

/* The first n bytes of p (or up to its NUL), terminated. */
char *xstrndup(const char *p, size_t n) __attribute__((malloc, returns_nonnull));
void *xmemdup(const void *p, size_t n) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *fmt, ...)
	__attribute__((malloc, returns_nonnull, format(printf, 1, 2)));

/* A NULL-terminated vector of strings, and all its strings. NULL is fine. */
void strv_free(char **v);
char **strv_dup(char *const *v);
size_t strv_len(char *const *v);

#endif
