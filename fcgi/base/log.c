/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"

enum { LINE_MAX_BYTES = 4096, TEXT_MAX_BYTES = 2048 };

/* Written by log_init() before threads exist, then only read. */
static char role_tag[16] = "mcp-sandboxd";
static enum log_level level_max = LOG_LEVEL_INFO;
static bool has_journal;

static const struct {
	const char *word;
	int priority; /* syslog's, as sd-daemon(3) reads it */
} levels[] = {
	[LOG_LEVEL_ERROR] = {"error", 3},
	[LOG_LEVEL_WARN] = {"warning", 4},
	[LOG_LEVEL_INFO] = {"info", 6},
	[LOG_LEVEL_DEBUG] = {"debug", 7},
};

void log_init(const char *role, enum log_level max)
{
	snprintf(role_tag, sizeof role_tag, "%s", role);
	level_max = max;
	has_journal = getenv("JOURNAL_STREAM") != NULL;
}

/* U+0080 to U+009F, in UTF-8: a terminal may take U+009B for ESC [. */
static bool is_c1(const unsigned char *s)
{
	return s[0] == 0xc2 && s[1] >= 0x80 && s[1] < 0xa0;
}

static void add_escaped(struct buf *b, const char *text)
{
	for (const unsigned char *s = (const unsigned char *)text; *s; s++) {
		if (is_c1(s)) {
			buf_printf(b, "\\x%02x\\x%02x", s[0], s[1]);
			s++;
		} else if (*s < 0x20 || *s == 0x7f) {
			buf_printf(b, "\\x%02x", *s);
		} else {
			buf_add(b, s, 1);
		}
	}
}

static void write_line(const char *p, size_t n)
{
	while (write(STDERR_FILENO, p, n) < 0 && errno == EINTR)
		;
}

__attribute__((format(printf, 2, 0))) static void emit(enum log_level level,
						       const char *fmt, va_list ap)
{
	AUTO_BUF b = BUF_INIT(LINE_MAX_BYTES);
	char text[TEXT_MAX_BYTES], when[CLOCK_RFC3339_SIZE];
	int saved = errno;

	if (level > level_max)
		return;
	vsnprintf(text, sizeof text, fmt, ap);
	if (has_journal)
		buf_printf(&b, "<%d>%s: ", levels[level].priority, role_tag);
	else
		buf_printf(&b, "%s %s %s: ", clock_format_rfc3339(clock_now_ms(), when),
			   role_tag, levels[level].word);
	add_escaped(&b, text);
	b.max++; /* the line end always fits */
	b.over = false;
	buf_puts(&b, "\n");
	write_line(b.p, b.len);
	errno = saved;
}

#define LOG_FUNCTION(name, level)                                                        \
	void name(const char *fmt, ...)                                                  \
	{                                                                                \
		va_list ap;                                                              \
                                                                                         \
		va_start(ap, fmt);                                                       \
		emit(level, fmt, ap);                                                    \
		va_end(ap);                                                              \
	}

LOG_FUNCTION(log_error, LOG_LEVEL_ERROR)
LOG_FUNCTION(log_warn, LOG_LEVEL_WARN)
LOG_FUNCTION(log_info, LOG_LEVEL_INFO)
LOG_FUNCTION(log_debug, LOG_LEVEL_DEBUG)
