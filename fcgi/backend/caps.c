/* SPDX-License-Identifier: MIT */
#include "backend/caps.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

/* By number, as linux/capability.h has them. */
static const char *const names[] = {
	"CHOWN",
	"DAC_OVERRIDE",
	"DAC_READ_SEARCH",
	"FOWNER",
	"FSETID",
	"KILL",
	"SETGID",
	"SETUID",
	"SETPCAP",
	"LINUX_IMMUTABLE",
	"NET_BIND_SERVICE",
	"NET_BROADCAST",
	"NET_ADMIN",
	"NET_RAW",
	"IPC_LOCK",
	"IPC_OWNER",
	"SYS_MODULE",
	"SYS_RAWIO",
	"SYS_CHROOT",
	"SYS_PTRACE",
	"SYS_PACCT",
	"SYS_ADMIN",
	"SYS_BOOT",
	"SYS_NICE",
	"SYS_RESOURCE",
	"SYS_TIME",
	"SYS_TTY_CONFIG",
	"MKNOD",
	"LEASE",
	"AUDIT_WRITE",
	"AUDIT_CONTROL",
	"SETFCAP",
	"MAC_OVERRIDE",
	"MAC_ADMIN",
	"SYSLOG",
	"WAKE_ALARM",
	"BLOCK_SUSPEND",
	"AUDIT_READ",
	"PERFMON",
	"BPF",
	"CHECKPOINT_RESTORE",
};
enum { CAPS_COUNT = sizeof names / sizeof names[0] };

static const char usual[] = "CHOWN,DAC_OVERRIDE,FOWNER,FSETID,KILL,SETGID,SETUID,SETPCAP,"
			    "NET_BIND_SERVICE,NET_RAW,SYS_CHROOT,MKNOD,AUDIT_WRITE,"
			    "SETFCAP";

static int bit_of(struct str word)
{
	int i;

	if (word.n > 4 && strncasecmp(word.p, "CAP_", 4) == 0)
		word = (struct str){word.p + 4, word.n - 4};
	for (i = 0; i < CAPS_COUNT; i++)
		if (strlen(names[i]) == word.n &&
		    strncasecmp(names[i], word.p, word.n) == 0)
			return i;
	return -1;
}

static int parse_list(const char *list, uint64_t *ret, struct err *e)
{
	static const uint64_t all = (UINT64_C(1) << CAPS_COUNT) - 1;
	struct str rest = str_of(list), word;
	uint64_t bits = 0;
	int bit;

	while (str_cut(&rest, ',', &word)) {
		word = str_trim(word);
		if (word.n == 0)
			continue;
		bit = bit_of(word);
		if (bit >= 0)
			bits |= UINT64_C(1) << bit;
		else if (word.n == 3 && strncasecmp(word.p, "ALL", 3) == 0)
			bits = all;
		else
			return err_set(e, ERR_INVALID, "no such capability: %.*s",
				       (int)(word.n < 64 ? word.n : 64), word.p);
	}
	*ret = bits;
	return 0;
}

int caps_parse(const char *drop, const char *add, struct caps *ret, struct err *e)
{
	uint64_t base = 0, less = 0, more = 0;

	if (parse_list(usual, &base, e) < 0)
		return -1;
	if (parse_list(drop, &less, e) < 0)
		return err_wrap(e, "SANDBOX_CAP_DROP");
	if (parse_list(add, &more, e) < 0)
		return err_wrap(e, "SANDBOX_CAP_ADD");
	ret->bits = (base & ~less) | more | UINT64_C(1) << bit_of(str_of("KILL"));
	return 0;
}

bool caps_has(const struct caps *c, const char *name)
{
	int bit = bit_of(str_of(name));

	return bit >= 0 && (c->bits >> bit & 1);
}

json_t *caps_to_json(const struct caps *c)
{
	json_t *list = json_array();
	char name[32];
	int i;

	for (i = 0; i < CAPS_COUNT; i++) {
		if (!(c->bits >> i & 1))
			continue;
		snprintf(name, sizeof name, "CAP_%s", names[i]);
		json_array_append_new(list, json_string(name));
	}
	return list;
}
