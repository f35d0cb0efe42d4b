/* SPDX-License-Identifier: MIT */
#include "conf/caps.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

/* linux/capability.h up to 6.x. `out` says what it would open, or NULL. */
static const struct {
	const char *name, *out;
} known[] = {
	{"AUDIT_CONTROL", "the host's audit rules"},
	{"AUDIT_READ", "the host's audit log"},
	{"AUDIT_WRITE", NULL},
	{"BLOCK_SUSPEND", "the host's sleep"},
	{"BPF", "the kernel through BPF programs"},
	{"CHECKPOINT_RESTORE", "other processes' state"},
	{"CHOWN", NULL},
	{"DAC_OVERRIDE", NULL},
	{"DAC_READ_SEARCH", "files by handle, past the root folder"},
	{"FOWNER", NULL},
	{"FSETID", NULL},
	{"IPC_LOCK", NULL},
	{"IPC_OWNER", NULL},
	{"KILL", NULL},
	{"LEASE", NULL},
	{"LINUX_IMMUTABLE", "file attributes that stop the clean-up"},
	{"MAC_ADMIN", "the host's access policy"},
	{"MAC_OVERRIDE", "the host's access policy"},
	{"MKNOD", "devices"},
	{"NET_ADMIN", "the network's configuration and its filter"},
	{"NET_BIND_SERVICE", NULL},
	{"NET_BROADCAST", NULL},
	{"NET_RAW", "forged packets to the neighbours"},
	{"PERFMON", "the kernel's performance events"},
	{"SETFCAP", NULL},
	{"SETGID", NULL},
	{"SETPCAP", NULL},
	{"SETUID", NULL},
	{"SYSLOG", "the kernel's log and addresses"},
	{"SYS_ADMIN", "mounts and namespaces: nearly everything"},
	{"SYS_BOOT", "reboot and kexec"},
	{"SYS_CHROOT", NULL},
	{"SYS_MODULE", "kernel modules"},
	{"SYS_NICE", NULL},
	{"SYS_PACCT", "process accounting"},
	{"SYS_PTRACE", "other processes' memory"},
	{"SYS_RAWIO", "raw devices and memory"},
	{"SYS_RESOURCE", "the limits that protect the host"},
	{"SYS_TIME", "the host's clock"},
	{"SYS_TTY_CONFIG", "the host's terminals"},
	{"WAKE_ALARM", "the host's alarms"},
};

/* The name in upper case without CAP_, in out; false when it cannot be one. */
static bool plain_name(struct str item, char out[static 32])
{
	size_t i;

	if (item.n > 4 && strncasecmp(item.p, "CAP_", 4) == 0) {
		item.p += 4;
		item.n -= 4;
	}
	if (item.n == 0 || item.n > 31)
		return false;
	for (i = 0; i < item.n; i++)
		out[i] = (char)toupper((unsigned char)item.p[i]);
	out[item.n] = '\0';
	return true;
}

static int check_one(struct str item, bool refuse_dangerous, struct err *e)
{
	char name[32];
	size_t i;

	if (!plain_name(item, name))
		return err_set(e, ERR_INVALID, "\"%.*s\" is no Linux capability",
			       (int)(item.n > 40 ? 40 : item.n), item.p);
	for (i = 0; i < sizeof known / sizeof *known; i++) {
		if (strcmp(known[i].name, name) != 0)
			continue;
		if (refuse_dangerous && known[i].out)
			return err_set(
				e, ERR_INVALID,
				"%s is refused: it opens %s; SANDBOX_CAPS_STRICT=false "
				"or SANDBOX_CAPS_BYPASS_CHECK=true allows it",
				name, known[i].out);
		return 0;
	}
	if (refuse_dangerous && strcmp(name, "ALL") == 0)
		return err_set(e, ERR_INVALID,
			       "ALL is refused: name the capabilities that are needed");
	return strcmp(name, "ALL") == 0
		       ? 0
		       : err_set(e, ERR_INVALID, "%s is no Linux capability", name);
}

int caps_check(const char *list, bool strict, bool bypass, struct err *e)
{
	struct str rest = str_of(list), item;

	while (str_cut(&rest, ',', &item)) {
		item = str_trim(item);
		if (item.n && check_one(item, strict && !bypass, e) < 0)
			return -1;
	}
	return 0;
}

char *caps_normalise(const char *list)
{
	AUTO_BUF b = BUF_INIT(4096);
	struct str rest = str_of(list), item;
	char name[32];

	while (str_cut(&rest, ',', &item)) {
		if (!plain_name(str_trim(item), name) || str_list_has(b.p, name))
			continue;
		buf_printf(&b, "%s%s", b.len ? "," : "", name);
	}
	return xstrdup(b.p);
}
