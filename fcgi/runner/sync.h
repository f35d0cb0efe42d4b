/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_SYNC_H
#define RUNNER_SYNC_H

#include "runner/state.h"

/*
 * Fetches a run's artifacts: lists /artifacts through the agent, links what did
 * not change since the identifier's last run, reads the rest into a staging
 * folder, publishes all of it at once. Ends with run_synced(). Loop only; the
 * folder work of many files is done on a control thread.
 */
void sync_begin(struct run *run);

/* Give up; the staging folder is removed. NULL is fine. */
void sync_abort(struct sync *s);

void sync_on_entries(struct sandbox *sb, const struct ap_fs_entries *m);
void sync_on_data(struct sandbox *sb, const struct ap_fs_data *m);
void sync_on_end(struct sandbox *sb, const struct ap_fs_end *m);

#endif
