/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_RUNROWS_H
#define RUNNER_RUNROWS_H

#include "runner/state.h"

/* Between a run in memory and its rows in the store. */
int runrows_insert(struct store *s, const struct run *run, const struct sandbox *sb,
		   bool *ret_existed, struct err *e);

/* What was asked for, out of the rows that runrows_insert() made. */
void runrows_spec(const struct store_run *row, struct run_spec *ret);

#endif
