/* SPDX-License-Identifier: MIT */
#ifndef STORE_WORDS_H
#define STORE_WORDS_H

/*
 * The closed sets of types.h as they stand in the tables. Each table has the
 * words in the order of its enum; words_find() gives the value or -1. Pure.
 */
extern const char *const words_sandbox_state[];
extern const char *const words_run_state[];
extern const char *const words_command_status[];
extern const char *const words_event_type[];

int words_find(const char *const *words, int count, const char *word);

#endif
