/* SPDX-License-Identifier: MIT */
#ifndef BASE_ERR_H
#define BASE_ERR_H

/*
 * How a failure travels. A function that can fail returns 0 or -1, takes
 * `struct err *e` last and fills it exactly when it returns -1. The caller owns
 * the struct (on its stack, set to ERR_INIT), so reporting an error never
 * allocates. The kind is what code decides on; the text is for people.
 */
enum err_kind {
	ERR_NONE = 0,
	ERR_INVALID,   /* the caller sent something we refuse */
	ERR_DENIED,    /* the caller may not do that */
	ERR_NOT_FOUND, /* no such session, run, sandbox or image */
	ERR_CONFLICT,  /* the thing exists, or is in a state that forbids it */
	ERR_LIMIT,     /* a configured bound was reached */
	ERR_BUSY,      /* try again later */
	ERR_TIMEOUT,   /* a deadline passed */
	ERR_BACKEND,   /* the sandbox runtime, an engine or a cluster refused */
	ERR_STORE,     /* the database refused */
	ERR_SYSTEM,    /* a system call failed; `sys` holds errno */
	ERR_KIND_COUNT
};

struct err {
	enum err_kind kind;
	int sys;
	char msg[512];
};

#define ERR_INIT                                                                         \
	{                                                                                \
		.kind = ERR_NONE                                                         \
	}

/* All three return -1, so that a failing path is one line: return err_set(...). */
int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * As err_set(e, ERR_SYSTEM, ...), keeping errno as it is on entry and adding its
 * words: "open /x: Permission denied".
 */
int err_sys(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Put context in front of the text of an error that is already set. */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A stable lower-case word for a kind ("invalid"), also used on the wire. */
const char *err_kind_name(enum err_kind kind);

/* The kind for a word; ERR_SYSTEM when it is unknown. */
enum err_kind err_kind_parse(const char *name);

#endif
