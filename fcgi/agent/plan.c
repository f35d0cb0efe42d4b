/* SPDX-License-Identifier: MIT */
#include "agent/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/spawn.h"
#include "base/auto.h"

enum { BASE_MAX = 6 }; /* variables that a login sets */

static void fail(struct plan *p, enum ap_stage stage, int error)
{
	if (p->error)
		return;
	p->stage = stage;
	p->error = error;
}

void plan_begin(struct plan *p, const struct ap_start *head, bool discard)
{
	*p = (struct plan){.head = *head, .script_fd = -1};
	p->need = (size_t)head->strings_bytes + head->script_bytes;
	if (discard)
		return;
	p->data = malloc(p->need);
	if (!p->data)
		fail(p, AP_STAGE_MEMORY, ENOMEM);
}

bool plan_add(struct plan *p, struct ap_bytes bytes)
{
	if (bytes.n > p->need - p->got)
		return false;
	if (p->data && bytes.n > 0)
		memcpy(p->data + p->got, bytes.p, bytes.n);
	p->got += bytes.n;
	return true;
}

/* Take n strings off the front; false when they are not there. */
static bool take_strings(struct ap_bytes *in, char **dst, size_t n)
{
	const uint8_t *nul;

	for (size_t i = 0; i < n; i++) {
		nul = in->n ? memchr(in->p, '\0', in->n) : NULL;
		if (!nul)
			return false;
		dst[i] = (char *)(uintptr_t)in->p;
		in->n -= (size_t)(nul + 1 - in->p);
		in->p = nul + 1;
	}
	return true;
}

static bool has_name(char *const *env, size_t n, const char *name, size_t len)
{
	for (size_t i = 0; i < n; i++) {
		if (strncmp(env[i], name, len) == 0 && env[i][len] == '=')
			return true;
	}
	return false;
}

struct variable {
	const char *name, *value;
};

/* at: where their text goes, which has room for all. */
static void add_missing(struct plan *p, size_t *n, char **at, const struct variable *v,
			size_t nv)
{
	for (size_t i = 0; i < nv; i++) {
		size_t name = strlen(v[i].name), value = strlen(v[i].value);

		if (has_name(p->envp, *n, v[i].name, name))
			continue;
		p->envp[(*n)++] = *at;
		memcpy(*at, v[i].name, name);
		(*at)[name] = '=';
		memcpy(*at + name + 1, v[i].value, value + 1);
		*at += name + value + 2;
	}
}

/* What the image, or a pod's template, gave the first process, and no cluster's inside.
 */
static void add_inherited(struct plan *p, size_t *n)
{
	static const char of_cluster[] = "KUBERNETES_"; /* addresses, added to each pod */

	for (char **e = environ; *e; e++) {
		size_t len = strcspn(*e, "=");

		if ((*e)[len] == '=' && !has_name(p->envp, *n, *e, len) &&
		    strncmp(*e, of_cluster, sizeof(of_cluster) - 1) != 0)
			p->envp[(*n)++] = *e;
	}
}

static size_t count_inherited(void)
{
	size_t n = 0;

	while (environ[n])
		n++;
	return n;
}

static size_t room_of(const struct variable *v, size_t n)
{
	size_t room = 0;

	for (size_t i = 0; i < n; i++)
		room += strlen(v[i].name) + strlen(v[i].value) + 2;
	return room;
}

/* What a login would have set, where the given environment does not say. */
static bool add_base(struct plan *p)
{
	static const struct variable defaults[] = {
		{"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		{"LANG", "C.UTF-8"},
	};
	const struct user *u = &p->user;
	const struct variable own[] = {
		{"HOME", u->home[0] ? u->home : "/"},
		{"USER", u->name},
		{"LOGNAME", u->name},
		{"SHELL", u->shell[0] ? u->shell : "/bin/sh"},
	};
	enum { NOWN = sizeof(own) / sizeof(own[0]), NDEFAULTS = BASE_MAX - NOWN };
	size_t n = p->head.envc;
	char *at = malloc(room_of(own, NOWN) + room_of(defaults, NDEFAULTS));

	if (!at)
		return false;
	p->text = at;
	add_missing(p, &n, &at, own, NOWN);
	add_inherited(p, &n);
	add_missing(p, &n, &at, defaults, NDEFAULTS);
	p->envp[n] = NULL;
	return true;
}

static int write_all(int fd, const uint8_t *p, size_t n)
{
	ssize_t rc;

	while (n > 0) {
		rc = write(fd, p, n);
		if (rc < 0 && errno != EINTR)
			return -1;
		if (rc > 0) {
			p += rc;
			n -= (size_t)rc;
		}
	}
	return 0;
}

/* A script that is too long for an argument: a sealed file in memory. */
static int make_script(struct plan *p)
{
	static char name[] = "/dev/fd/63";
	AUTO_CLOSE int fd = memfd_create("script", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	_Static_assert(SPAWN_SCRIPT_FD == 63, "the name above says it");
	if (fd < 0 ||
	    write_all(fd, p->data + p->head.strings_bytes, p->head.script_bytes) < 0)
		return -1;
	if (fchmod(fd, 0444) < 0 ||
	    fcntl(fd, F_ADD_SEALS,
		  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		return -1;
	p->argv[p->head.script_arg] = name;
	p->script_fd = fd;
	fd = -1;
	return 0;
}

static void resolve(struct plan *p)
{
	if (users_find(p->head.uid, "/etc/passwd", "/etc/group", &p->user) < 0) {
		fail(p, AP_STAGE_USER, errno);
		return;
	}
	if (p->head.gid != AP_GID_OF_USER) {
		p->user.gid = p->head.gid;
		p->user.groups[0] = p->head.gid;
	}
	if (!add_base(p))
		fail(p, AP_STAGE_MEMORY, ENOMEM);
	else if ((p->head.flags & AP_START_SCRIPT) && make_script(p) < 0)
		fail(p, AP_STAGE_MEMORY, errno);
}

bool plan_finish(struct plan *p)
{
	struct ap_bytes in = {p->data, p->head.strings_bytes};

	if (p->got != p->need)
		return false;
	if (!p->data)
		return true;
	p->argv = calloc((size_t)p->head.argc + 1, sizeof(*p->argv));
	p->envp = calloc((size_t)p->head.envc + BASE_MAX + count_inherited() + 1,
			 sizeof(*p->envp));
	if (!p->argv || !p->envp) {
		fail(p, AP_STAGE_MEMORY, ENOMEM);
		return true;
	}
	if (!take_strings(&in, &p->cwd, 1) || !take_strings(&in, p->argv, p->head.argc) ||
	    !take_strings(&in, p->envp, p->head.envc) || in.n != 0)
		return false;
	resolve(p);
	return true;
}

void plan_release(struct plan *p)
{
	free(p->data);
	free(p->argv);
	free(p->envp);
	free(p->text);
	if (p->script_fd > 0)
		close(p->script_fd);
	*p = (struct plan){.script_fd = -1};
}
