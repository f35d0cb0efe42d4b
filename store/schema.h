/* SPDX-License-Identifier: MIT */
#ifndef STORE_SCHEMA_H
#define STORE_SCHEMA_H

/*
 * The schema as a list of steps, each run once and never changed after a release:
 * a new wish is a new step. schema_steps[n] leads from user_version n to n + 1.
 * Views hold no data; they are made anew whenever their text is another one.
 */
extern const char *const *const schema_steps[]; /* each: texts, then NULL */
extern const int schema_step_count;
extern const char *const schema_views[]; /* texts, then NULL */

enum { SCHEMA_APPLICATION_ID = 0x6d637073 }; /* "mcps", shown by file(1) */

#endif
