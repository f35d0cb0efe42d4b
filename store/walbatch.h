/* SPDX-License-Identifier: MIT */
#ifndef STORE_WALBATCH_H
#define STORE_WALBATCH_H

/*
 * A commit in one write. SQLite writes every page of a transaction to its write-ahead
 * log with two calls, a header of 24 bytes and the page. Through this VFS they wait in
 * memory and go out together with the transaction's last page, whose header says that
 * it is the last: until that one is in the file nothing of the transaction counts, for
 * readers or after a crash, and an error still is the commit's. Whatever else is asked
 * of the log first writes what waits. Files that are no log are the system's own.
 */

/* The name to open a connection with; registered by the first call. Any thread. */
const char *walbatch_vfs(void);

#endif
