/* SPDX-License-Identifier: MIT */
#ifndef BASE_ID_H
#define BASE_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Random names and hexadecimal text. Randomness is getrandom(2); no other source
 * exists, so a failure aborts. Any thread.
 */
enum {
	ID_HEX_LEN = 32,             /* 128 bits */
	ID_RUN_LEN = 4 + ID_HEX_LEN, /* "run_" + hex */
};

void id_random_bytes(void *out, size_t n);

/* hex_len lower-case hex digits (an even number, at most 128) and a NUL. */
void id_random_hex(char *out, size_t hex_len);

/*
 * "run_" + 32 hex digits and a NUL: 48 bits of milliseconds since the epoch, then 80
 * random ones. New ids sort after old ones, so a new run goes to the end of every index
 * and not somewhere into its middle.
 */
void id_new_run(char out[static ID_RUN_LEN + 1]);

/* 32 hex digits and a NUL. */
void id_new_session(char out[static ID_HEX_LEN + 1]);

/* True if s is exactly n lower-case hex digits. */
bool id_is_hex(const char *s, size_t n);
bool id_is_run(const char *s);

/* n bytes as 2n lower-case hex digits and a NUL. */
void id_hex_encode(const void *p, size_t n, char *out);
/* The way back; hex must pass id_is_hex(hex, 2 * n) or begin so. */
void id_hex_decode(const char *hex, size_t n, uint8_t *out);

#endif
