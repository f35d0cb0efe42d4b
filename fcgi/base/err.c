/* SPDX-License-Identifier: MIT */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

static const char *const kind_names[ERR_KIND_COUNT] = {
	[ERR_NONE] = "none",         [ERR_INVALID] = "invalid",
	[ERR_DENIED] = "denied",     [ERR_NOT_FOUND] = "not_found",
	[ERR_CONFLICT] = "conflict", [ERR_LIMIT] = "limit",
	[ERR_BUSY] = "busy",         [ERR_TIMEOUT] = "timeout",
	[ERR_BACKEND] = "backend",   [ERR_STORE] = "store",
	[ERR_SYSTEM] = "system",
};

__attribute__((format(printf, 4, 0))) static void
vset(struct err *e, enum err_kind kind, int sys, const char *fmt, va_list ap)
{
	if (e->kind != ERR_NONE)
		return; /* the first report names the cause */
	e->kind = kind;
	e->sys = sys;
	vsnprintf(e->msg, sizeof e->msg, fmt, ap);
	utf8_settle(e->msg); /* cut to fit, or with a name that is no text */
}

int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vset(e, kind, 0, fmt, ap);
	va_end(ap);
	return -1;
}

int err_sys(struct err *e, const char *fmt, ...)
{
	int sys = errno;
	char why[128];
	size_t n;
	va_list ap;

	if (e->kind != ERR_NONE)
		return -1;
	va_start(ap, fmt);
	vset(e, ERR_SYSTEM, sys, fmt, ap);
	va_end(ap);
	n = strlen(e->msg);
	snprintf(e->msg + n, sizeof e->msg - n, ": %s", strerror_r(sys, why, sizeof why));
	utf8_settle(e->msg);
	errno = sys;
	return -1;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
	char old[sizeof e->msg];
	size_t n;
	va_list ap;

	memcpy(old, e->msg, sizeof old);
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof e->msg, fmt, ap);
	va_end(ap);
	n = strlen(e->msg);
	snprintf(e->msg + n, sizeof e->msg - n, ": %s", old);
	utf8_settle(e->msg);
	return -1;
}

const char *err_kind_name(enum err_kind kind)
{
	return kind < ERR_KIND_COUNT ? kind_names[kind] : "system";
}

enum err_kind err_kind_parse(const char *name)
{
	int i;

	for (i = 0; i < ERR_KIND_COUNT; i++)
		if (strcmp(kind_names[i], name) == 0)
			return (enum err_kind)i;
	return ERR_SYSTEM;
}
