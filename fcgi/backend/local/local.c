/* SPDX-License-Identifier: MIT */
#include "backend/local/local.h"
#include "backend/agentsock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/local/box.h"
#include "backend/local/cglimits.h"
#include "backend/local/image.h"
#include "backend/local/runtime.h"
#include "backend/local/setup.h"
#include "backend/local/trash.h"
#include "base/auto.h"
#include "base/io.h"
#include "base/mem.h"

enum { KILL_WAIT_MS = 10000, AGENT_WAIT_MS = 20000 };

static struct local *local_of(struct backend *b)
{
	return (struct local *)(void *)b;
}

static int check_name(const char *name, struct err *e)
{
	if (box_name_ok(name))
		return 0;
	return err_set(e, ERR_INVALID, "not the name of a sandbox");
}

static char *box_dir(const struct local *l, const char *name)
{
	return xasprintf("%s/%s", l->sandboxes_dir, name);
}

#define AGENT_SOCKET "agent"

/* Where an agent that makes its own socket does so: see agentsock.h. */
static char *agent_folder(const struct local *l, const char *name)
{
	return xasprintf("%s/%s/agent", l->sandboxes_dir, name);
}

/*
 * gVisor's own threads, and those that stand for the sandbox's processes, are
 * counted with them; without room for one of its own it ends, and all with it.
 */
static int64_t gvisor_pids(int64_t pids)
{
	return pids > 0 ? 64 + 4 * pids : pids;
}

/* The configuration may have been changed since it was started. */
static void fit_limits(const struct local *l, const char *name)
{
	const struct conf *c = l->conf;
	const bool gvisor = runtime_is_gvisor(l->runtime);
	const struct cglimits want = {.cpu_cores = c->default_cpu_cores,
				      .memory_mb = c->default_memory_mb,
				      .pids = gvisor ? gvisor_pids(c->default_pids)
						     : c->default_pids};
	AUTO_FREE char *words = NULL;
	struct err e = ERR_INIT;

	if (cglimits_fit(&l->cgroups, name, &want, &e) == 0)
		return;
	words = xasprintf("%s keeps a limit that it was started with: %s", name, e.msg);
	l->progress(l->progress_arg, BACKEND_NOBODY, words);
}

static int connect_agent(const struct local *l, const char *name, int *ret_fd,
			 struct err *e)
{
	AUTO_FREE char *folder = agent_folder(l, name);
	AUTO_FREE char *group = xasprintf("%s/%s", l->cgroups.parent, name);
	struct agentsock_own own = {folder, AGENT_SOCKET, group};

	if (!runtime_is_gvisor(l->runtime))
		return agentsock_connect(l->agents_fd, name, ret_fd, e);
	return agentsock_own_connect(&own, ret_fd, e);
}

static int local_connect(struct backend *b, const char *name, int *ret_fd, struct err *e)
{
	struct local *l = local_of(b);

	if (check_name(name, e) < 0 || connect_agent(l, name, ret_fd, e) < 0)
		return -1;
	fit_limits(l, name);
	return 0;
}

/* Ends what may run under that name and forgets it; the files stay. */
static int halt(struct local *l, const char *name, struct box *box, struct err *e)
{
	if (pidref_kill(&box->init, KILL_WAIT_MS, e) < 0 ||
	    runtime_delete(l->runtime, l->runtime_dir, name, e) < 0 ||
	    cgroups_end(&l->cgroups, name, e) < 0)
		return -1;
	unlinkat(l->agents_fd, name, 0);
	if (l->gateway)
		gateway_slot_put(l->gateway, box->slot);
	box->slot = -1;
	box->init = (struct pidref){0};
	return 0;
}

static int local_stop(struct backend *b, const char *name, struct err *e)
{
	struct local *l = local_of(b);
	AUTO_FREE char *dir = NULL;
	AUTO_BOX box = BOX_INIT;

	if (check_name(name, e) < 0)
		return -1;
	dir = box_dir(l, name);
	if (box_read(dir, &box, e) < 0) {
		if (e->kind != ERR_NOT_FOUND)
			return -1;
		*e = (struct err)ERR_INIT;
		return 0;
	}
	if (halt(l, name, &box, e) < 0)
		return -1;
	return box_write(dir, &box, e);
}

static int local_remove(struct backend *b, const char *name, bool *ret_existed,
			struct err *e)
{
	struct local *l = local_of(b);
	AUTO_FREE char *dir = NULL;
	AUTO_BOX box = BOX_INIT;
	struct err ignored = ERR_INIT;

	if (check_name(name, e) < 0)
		return -1;
	dir = box_dir(l, name);
	if (!io_exists(dir)) {
		*ret_existed = false;
		return 0;
	}
	/* Without a state there is nothing to kill by; the runtime may still know. */
	if (box_read(dir, &box, &ignored) < 0)
		box = (struct box)BOX_INIT;
	if (halt(l, name, &box, e) < 0 || trash_put(l->trash, dir, e) < 0)
		return -1;
	*ret_existed = true;
	return 0;
}

static int write_config(const struct local *l, const struct sandbox_spec *spec,
			const char *dir, struct err *e)
{
	static const char *const passed[] = {OCI_AGENT, "init",          "--listen-fd",
					     "3",       "--own-folders", NULL};
	static const char own_socket[] = OCI_SOCKET_DIR "/" AGENT_SOCKET;
	static const char *const own[] = {OCI_AGENT,  "init",          "--socket",
					  own_socket, "--own-folders", NULL};
	bool gvisor = runtime_is_gvisor(l->runtime);
	AUTO_FREE char *folder = agent_folder(l, spec->name);
	AUTO_FREE char *tmp = xasprintf("%s/tmp", dir);
	AUTO_FREE char *rootfs = xasprintf("%s/merged", dir);
	AUTO_FREE char *config = xasprintf("%s/config.json", dir);
	AUTO_FREE char *hosts = xasprintf("%s/hosts", dir);
	AUTO_FREE char *resolv = xasprintf("%s/resolv.conf", dir);
	AUTO_FREE char *text = NULL, *hosts_text = NULL;
	struct oci_spec s = {.rootfs = rootfs,
			     .args = gvisor ? own : passed,
			     .hostname = spec->name,
			     .cgroup_child = spec->name,
			     .agent_file = l->agent_file,
			     .socket_dir = gvisor ? folder : NULL,
			     .tmp_dir = gvisor ? tmp : NULL,
			     .hosts_file = hosts,
			     .resolv_file = l->gateway ? resolv : NULL,
			     .cpu_cores = spec->cpu_cores,
			     .memory_mb = spec->memory_mb,
			     .pids = gvisor ? gvisor_pids(spec->pids) : spec->pids};

	setup_oci(l, &s);
	hosts_text = xasprintf("127.0.0.1\tlocalhost %s\n::1\tlocalhost ip6-localhost\n",
			       spec->name);
	if (oci_config(&s, &text, e) < 0 || box_write_file(config, text, 0600, 0, e) < 0)
		return -1;
	if (l->gateway && box_write_file(resolv, gateway_resolv_conf(), 0644, 0, e) < 0)
		return -1;
	return box_write_file(hosts, hosts_text, 0644, s.uid_base, e);
}

/* The folder as it must be before a start; *box says what was there. */
static int prepare(struct local *l, const struct sandbox_spec *spec, const char *dir,
		   struct box *box, struct err *e)
{
	struct err why = ERR_INIT;

	if (box_read(dir, box, &why) < 0) {
		*box = (struct box)BOX_INIT;
		/* A state that cannot be read says nothing against the files. */
		if (why.kind != ERR_NOT_FOUND && !spec->fresh) {
			*e = why;
			return err_wrap(e,
					"the sandbox's files are kept, but it cannot "
					"be started (restart_sandbox makes a new one)");
		}
	} else if (pidref_alive(&box->init)) {
		return err_set(e, ERR_CONFLICT, "the sandbox runs already");
	}
	if (halt(l, spec->name, box, e) < 0) /* what a crash may have left */
		return -1;
	if (spec->fresh || !box->image) {
		if (trash_put(l->trash, dir, e) < 0)
			return -1;
		box_release(box);
		box->image = xstrdup(l->image_lower);
	}
	box->fresh = box->fingerprint == NULL;
	free(box->fingerprint);
	box->fingerprint = xstrdup(l->fingerprint);
	if (io_mkdirs_owned(dir, 0711, 0, 0, e) < 0)
		return -1;
	return box_make_dirs(dir, l->conf->uid_base, e);
}

struct launch {
	struct local *l;
	const struct sandbox_spec *spec;
	struct box *box;
};

static int on_created(void *arg, pid_t pid, struct err *e)
{
	const struct launch *a = arg;
	struct gateway *g = a->l->gateway;

	if (pidref_of(pid, &a->box->init, e) < 0)
		return -1;
	if (!g)
		return 0;
	if (gateway_slot_take(g, &a->box->slot, e) < 0)
		return -1;
	return gateway_attach(g, a->box->slot, pid, e);
}

/* The folder anew: nothing that an earlier start has left is taken for the agent. */
static int make_agent_folder(const struct local *l, const char *name, struct err *e)
{
	AUTO_FREE char *path = agent_folder(l, name);
	uid_t owner = (uid_t)l->conf->uid_base;

	if (io_rmtree(path, e) < 0)
		return -1;
	return io_mkdirs_owned(path, 0700, owner, owner, e);
}

static int launch(struct local *l, const struct sandbox_spec *spec, const char *dir,
		  struct box *box, struct err *e)
{
	AUTO_FREE char *lower = xasprintf("%s/images/%s", l->conf->data_dir, box->image);
	AUTO_FREE char *folder = agent_folder(l, spec->name);
	AUTO_CLOSE int fd = -1;
	struct agentsock_own own = {.folder = folder, .name = AGENT_SOCKET};
	struct launch a = {l, spec, box};
	struct runtime_run run = {.runtime = l->runtime,
				  .state_dir = l->runtime_dir,
				  .id = spec->name,
				  .dir = dir,
				  .lower = lower,
				  .network = l->gateway != NULL,
				  .detach = true,
				  .on_created = on_created,
				  .arg = &a};

	box->gvisor = runtime_is_gvisor(l->runtime);
	if ((box->gvisor ? make_agent_folder(l, spec->name, e)
			 : agentsock_listen(l->agents_fd, spec->name, &fd, e)) < 0 ||
	    write_config(l, spec, dir, e) < 0 || box_write(dir, box, e) < 0)
		return -1;
	run.pass_fd = fd;
	if (runtime_run(&run, e) < 0)
		return -1;
	if (box->gvisor && agentsock_own_wait(&own, box->init.pid, AGENT_WAIT_MS, e) < 0)
		return -1;
	return box_write(dir, box, e);
}

static void describe(const struct local *l, const char *name, const struct box *box,
		     struct sandbox_info *ret)
{
	ret->name = xstrdup(name);
	ret->container_id = xstrdup(name);
	ret->image = xstrdup(box->image);
	ret->policy_fingerprint = xstrdup(box->fingerprint);
	ret->running = pidref_alive(&box->init);
	ret->fresh = box->fresh;
	ret->outdated = ret->running && strcmp(box->fingerprint, l->fingerprint) != 0;
	ret->old_image = strcmp(box->image, l->image_lower) != 0;
}

static int local_create(struct backend *b, const struct sandbox_spec *spec,
			struct sandbox_info *ret, struct err *e)
{
	struct local *l = local_of(b);
	AUTO_FREE char *dir = NULL;
	AUTO_BOX box = BOX_INIT;
	struct err ignored = ERR_INIT;

	if (check_name(spec->name, e) < 0)
		return -1;
	dir = box_dir(l, spec->name);
	if (l->gateway && gateway_check(l->gateway, e) < 0)
		return -1;
	if (prepare(l, spec, dir, &box, e) < 0)
		return -1;
	if (launch(l, spec, dir, &box, e) < 0) {
		if (halt(l, spec->name, &box, &ignored) == 0 && box.fresh)
			trash_put(l->trash, dir, &ignored); /* never used */
		return err_wrap(e, "start the sandbox");
	}
	describe(l, spec->name, &box, ret);
	return 0;
}

static int local_list(struct backend *b, struct sandbox_list *ret, struct err *e)
{
	struct local *l = local_of(b);
	struct sandbox_list list = {0};
	struct dirent **names = NULL;
	int i, rc = 0, n = scandir(l->sandboxes_dir, &names, NULL, alphasort);

	if (n < 0)
		return err_sys(e, "list %s", l->sandboxes_dir);
	for (i = 0; i < n; i++) {
		AUTO_FREE char *dir = box_dir(l, names[i]->d_name);
		AUTO_BOX box = BOX_INIT;
		struct err why = ERR_INIT;

		if (rc == 0 && box_name_ok(names[i]->d_name)) {
			if (box_read(dir, &box, &why) == 0) {
				list.v =
					xreallocarray(list.v, list.n + 1, sizeof *list.v);
				describe(l, names[i]->d_name, &box, &list.v[list.n++]);
			} else if (why.sys) { /* we cannot look: a list would lie */
				*e = why;
				rc = -1;
			}
		}
		free(names[i]);
	}
	free(names);
	if (rc < 0)
		sandbox_list_release(&list);
	else
		*ret = list;
	return rc;
}

static int local_oom_kills(struct backend *b, const char *name, uint64_t *ret,
			   struct err *e)
{
	if (check_name(name, e) < 0)
		return -1;
	return cgroups_oom_kills(&local_of(b)->cgroups, name, ret, e);
}

static int local_probe(struct backend *b, struct err *e)
{
	struct local *l = local_of(b);

	if (access(l->runtime, X_OK) < 0)
		return err_sys(e, "%s", l->runtime);
	if (access(l->agent_file, R_OK) < 0)
		return err_sys(e, "%s", l->agent_file);
	if (access(l->sandboxes_dir, W_OK) < 0)
		return err_sys(e, "%s", l->sandboxes_dir);
	return l->gateway ? gateway_check(l->gateway, e) : 0;
}

/*
 * Not what the other kind of runtime started, whose agent is reached in another
 * way; and gVisor's network does not notice a new cable.
 */
static bool can_keep(const struct local *l, const struct box *box, bool new_gateway)
{
	if (box->gvisor != runtime_is_gvisor(l->runtime))
		return false;
	return !(box->gvisor && box->slot >= 0 && new_gateway);
}

/*
 * After a crash: a folder that was never used goes, a start that was not
 * finished is undone, what runs keeps its address and gets its network back.
 */
static int settle(struct local *l, const char *name, bool new_gateway, struct err *e)
{
	AUTO_FREE char *dir = box_dir(l, name);
	AUTO_BOX box = BOX_INIT, none_box = BOX_INIT;
	struct err why = ERR_INIT;

	if (!box_name_ok(name) || box_read(dir, &box, &why) < 0) {
		if (box_name_ok(name) && halt(l, name, &none_box, e) < 0)
			return -1;
		if (!box_name_ok(name) || why.kind == ERR_NOT_FOUND)
			return trash_put(l->trash, dir, e);
		/* It was used: its files are not ours to throw away. */
		*e = why;
		return err_wrap(e, "sandbox %s cannot be used, its files are kept", name);
	}
	if (!pidref_alive(&box.init) || !can_keep(l, &box, new_gateway)) {
		if (halt(l, name, &box, e) < 0)
			return -1;
		return box_write(dir, &box, e);
	}
	if (!l->gateway || box.slot < 0)
		return 0;
	gateway_slot_mark(l->gateway, box.slot);
	return new_gateway ? gateway_attach(l->gateway, box.slot, box.init.pid, e) : 0;
}

static void settle_all(struct local *l, bool new_gateway)
{
	struct dirent **names = NULL;
	int i, n = scandir(l->sandboxes_dir, &names, NULL, alphasort);

	for (i = 0; i < n; i++) {
		struct err e = ERR_INIT;

		if (strcmp(names[i]->d_name, ".") != 0 &&
		    strcmp(names[i]->d_name, "..") != 0 &&
		    settle(l, names[i]->d_name, new_gateway, &e) < 0)
			l->progress(l->progress_arg, BACKEND_NOBODY, e.msg);
		free(names[i]);
	}
	free(names);
}

/* What the runtime knows of and no folder speaks for. */
static void settle_states(struct local *l)
{
	struct dirent **names = NULL;
	int i, n = scandir(l->runtime_dir, &names, NULL, alphasort);

	for (i = 0; i < n; i++) {
		AUTO_FREE char *dir = box_dir(l, names[i]->d_name);
		AUTO_BOX box = BOX_INIT;
		struct err e = ERR_INIT;

		if (box_name_ok(names[i]->d_name) && !io_exists(dir) &&
		    halt(l, names[i]->d_name, &box, &e) < 0)
			l->progress(l->progress_arg, BACKEND_NOBODY, e.msg);
		free(names[i]);
	}
	free(names);
}

static bool is_image_used(struct local *l, const char *image)
{
	struct sandbox_list list = {0};
	struct err e = ERR_INIT;
	bool used = false;
	size_t i;

	if (strcmp(image, l->image_lower) == 0 || local_list(&l->base, &list, &e) < 0)
		return true;
	for (i = 0; i < list.n; i++)
		used = used || strcmp(list.v[i].image, image) == 0;
	sandbox_list_release(&list);
	return used;
}

/* Of an earlier recipe, with no sandbox on it any more, or left half made by a crash. */
static bool is_rest(struct local *l, const char *name, const char *image)
{
	if (strcmp(name, IMAGE_ASIDE) == 0)
		return true;
	return strncmp(name, "r-", 2) == 0 && !is_image_used(l, image);
}

/* An images folder that is a link is shared with others, and not ours to clear. */
static void prune_images(struct local *l)
{
	AUTO_FREE char *images = xasprintf("%s/images", l->conf->data_dir);
	AUTO_FREE char *base = xasprintf("%s/default", images);
	struct dirent **names = NULL;
	struct stat st;
	int i, n;

	if (lstat(images, &st) < 0 || !S_ISDIR(st.st_mode))
		return;
	n = scandir(base, &names, NULL, NULL);
	for (i = 0; i < n; i++) {
		AUTO_FREE char *image = xasprintf("default/%s", names[i]->d_name);
		AUTO_FREE char *path = xasprintf("%s/%s", images, image);
		struct err e = ERR_INIT;

		if (is_rest(l, names[i]->d_name, image) &&
		    trash_put(l->trash, path, &e) < 0)
			l->progress(l->progress_arg, BACKEND_NOBODY, e.msg);
		free(names[i]);
	}
	free(names);
}

static int open_network(struct local *l, bool *ret_new, struct err *e)
{
	if (strcmp(l->conf->network_mode, "bridge") != 0)
		return 0;
	return gateway_open(l->run_dir, l->progress, l->progress_arg, &l->gateway,
			    ret_new, e);
}

static void local_free(struct local *l)
{
	trash_close(l->trash);
	cgroups_release(&l->cgroups);
	auto_close(&l->agents_fd);
	free(l->run_dir);
	free(l->sandboxes_dir);
	free(l->trash_dir);
	free(l->agents_dir);
	free(l->runtime_dir);
	free(l->image_lower);
	free(l->agent_file);
	free(l->runtime);
	free(l->cgroup_parent);
	free(l->seccomp_text);
	free(l->fingerprint);
	free(l);
}

/* The groups of what has ended by itself go. */
static bool any_alive(struct local *l)
{
	struct sandbox_list list = {0};
	struct err ignored = ERR_INIT;
	bool alive = false;
	size_t i;

	if (local_list(&l->base, &list, &ignored) < 0)
		return true;
	for (i = 0; i < list.n; i++) {
		struct err e = ERR_INIT;

		alive = alive || list.v[i].running;
		if (!list.v[i].running &&
		    cgroups_end(&l->cgroups, list.v[i].name, &e) < 0)
			l->progress(l->progress_arg, BACKEND_NOBODY, e.msg);
	}
	sandbox_list_release(&list);
	return alive;
}

/* The network stays while a sandbox runs: that is a server which only leaves. */
static void local_close(struct backend *b)
{
	struct local *l = local_of(b);

	gateway_close(l->gateway, !any_alive(l));
	cgroups_remove_parent(&l->cgroups);
	local_free(l);
}

static int local_open(const struct conf *c, const char *instance_id,
		      backend_progress_fn *progress, void *arg, struct backend **ret,
		      struct err *e)
{
	struct local *l = xcalloc(1, sizeof *l);
	bool new_gateway = false;

	l->base.ops = &backend_local;
	l->conf = c;
	l->progress = progress;
	l->progress_arg = arg;
	l->agents_fd = -1;
	if (setup_all(l, instance_id, e) < 0 || open_network(l, &new_gateway, e) < 0 ||
	    trash_open(l->trash_dir, &l->trash, e) < 0) {
		gateway_close(l->gateway, false);
		cgroups_remove_parent(&l->cgroups);
		local_free(l);
		return -1;
	}
	settle_all(l, new_gateway);
	settle_states(l);
	prune_images(l);
	*ret = &l->base;
	return 0;
}

const struct backend_ops backend_local = {
	.name = "local",
	.open = local_open,
	.probe = local_probe,
	.create = local_create,
	.connect = local_connect,
	.stop = local_stop,
	.remove = local_remove,
	.list = local_list,
	.oom_kills = local_oom_kills,
	.close = local_close,
};
