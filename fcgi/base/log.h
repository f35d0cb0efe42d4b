/* SPDX-License-Identifier: MIT */
#ifndef BASE_LOG_H
#define BASE_LOG_H

/*
 * One event, one line on stderr, one write(2): lines of threads and processes do
 * not mix. Under systemd (JOURNAL_STREAM is set) a line starts with its level as
 * "<3>"; otherwise with the time. Control characters are shown as \xNN, so what a
 * stranger sent cannot fake a line. Secrets, scripts and environments are never
 * passed here. Only main and the loops of the roles log; libraries return errors.
 * Any thread.
 */
enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* The tag ("master", "edge0", "runner"), copied, and the most talkative level. */
void log_init(const char *role, enum log_level max);

void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
