/* SPDX-License-Identifier: MIT */
#include "backend/kubernetes/kubernetes.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backend/kubernetes/access.h"
#include "backend/kubernetes/api/exec.h"
#include "backend/kubernetes/bringup.h"
#include "backend/kubernetes/claims.h"
#include "backend/kubernetes/podlist.h"
#include "backend/kubernetes/pods.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"

enum {
	QUIET_MS = 10000,
	LOOK_MS = 10000,
	GONE_MS = 20000,        /* a node that is there ends a pod in about 2 s */
	CLOSE_MS = 2000,        /* all requests at the close */
	SILENT_MAX_MS = 600000, /* clusters give a node up after 5 minutes */
};

static struct kube *kube_of(struct backend *b)
{
	return (struct kube *)(void *)b;
}

void kube_say(struct kube *k, const char *who, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	k->progress(k->progress_arg, who, line);
}

/* ---- create, connect */

static int kubernetes_create(struct backend *b, const struct sandbox_spec *spec,
			     struct sandbox_info *ret, struct err *e)
{
	struct kube *k = kube_of(b);
	struct sandbox_info info = {.running = true};
	AUTO_POD p = {0};

	if (bringup(k, spec, &p, &info, e) < 0)
		return -1;
	podwatch_accept(k->watch, &p);
	info.name = xstrdup(spec->name);
	info.container_id = xstrdup(p.uid);
	info.image = xstrdup(p.image);
	info.policy_fingerprint = xstrdup(k->spec.fingerprint);
	*ret = info;
	return 0;
}

static const char *files_left(const struct kube *k, bool pod_is_there)
{
	if (pod_is_there)
		return "of its files those in /workspace, /artifacts and /tmp are kept";
	if (*k->conf->kube_volume_size)
		return "of its files those in /workspace are kept";
	return "its files are lost";
}

static int not_running(const struct kube *k, const struct pod *p, struct err *e)
{
	bool stays = p->state != PODSTATE_ENDED && p->state != PODSTATE_LEAVING;

	return err_set(e, ERR_CONFLICT,
		       "the sandbox is not running any more%s%s; what it was doing is "
		       "lost, %s: run the command again",
		       *p->words ? ": " : "", p->words, files_left(k, stays));
}

/* The pod as it is now, if it runs and is the one the runner knows. */
static int find_running(struct kube *k, const char *name, struct pod *p, struct err *e)
{
	bool there = false;

	if (pods_find(k, name, p, &there, e) < 0)
		return -1;
	if (!there)
		return err_set(
			e, ERR_CONFLICT,
			"the sandbox's pod was deleted in the cluster; what it was "
			"doing is lost, %s: run the command again",
			files_left(k, false));
	if (p->state != PODSTATE_RUNNING || !podwatch_is_same(k->watch, p))
		return not_running(k, p, e);
	return 0;
}

/* The runner sees an end; why it came is for the log. On the pump's thread. */
static void on_stream_over(void *arg, const char *pod, const struct err *why)
{
	kube_say(arg, BACKEND_NOBODY, "%s: its stream is over: %s", pod, why->msg);
}

static int exec_agent(struct kube *k, const char *name, const char *what, int *ret_fd,
		      struct kube_status *status, struct err *e)
{
	bool goes_on = strcmp(what, "connect") == 0;
	const char *const argv[] = {PODSPEC_AGENT, what, "--socket", PODSPEC_SOCKET,
				    NULL};

	return kube_exec_open(
		k->api, k->pump,
		&(struct kube_exec){.pod = name,
				    .container = k->conf->kube_container,
				    .argv = argv,
				    .ended = goes_on ? on_stream_over : NULL,
				    .arg = k,
				    .status = status},
		ret_fd, e);
}

/*
 * It is the way there that failed, not the agent at its end: no answer, a stream that
 * broke, or one that ended well and without a word.
 */
static bool is_out_of_reach(const struct kube_status *s)
{
	return (s->code == 0 && s->reason == KUBE_OTHER) || s->reason == KUBE_INTERNAL ||
	       s->reason == KUBE_TIMEOUT || s->reason == KUBE_BUSY;
}

/*
 * An exec failed: is it the API server, the pod, or its node? A node that is away for
 * a while is the cluster's to give up: then it ends the pod.
 */
static int explain(struct kube *k, const char *name, const struct kube_status *status,
		   const struct err *why, struct err *e)
{
	AUTO_POD p = {0};
	bool may_wait;

	if (find_running(k, name, &p, e) < 0)
		return -1;
	may_wait = is_out_of_reach(status) &&
		   podwatch_silent_ms(k->watch, name) < SILENT_MAX_MS;
	return err_set(e, may_wait ? ERR_BUSY : ERR_BACKEND, "%s%s%s", why->msg,
		       p.is_unreachable ? "; nothing is heard of its node " : "",
		       p.is_unreachable ? p.node : "");
}

static int kubernetes_connect(struct backend *b, const char *name, int *ret_fd,
			      struct err *e)
{
	struct kube *k = kube_of(b);
	struct kube_status status = {0};
	struct err why = ERR_INIT;
	AUTO_POD p = {0};

	if (find_running(k, name, &p, e) < 0)
		return -1;
	if (exec_agent(k, name, "connect", ret_fd, &status, &why) < 0)
		return explain(k, name, &status, &why, e);
	podwatch_accept(k->watch, &p);
	return 0;
}

/* ---- stop, remove, list */

/* Reads what `agent quiet` says; "ok" when nothing runs and the agent is well. */
static bool says_ok(int fd)
{
	int64_t deadline = clock_mono_ms() + QUIET_MS, left;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char word[8] = "";
	size_t n = 0;
	ssize_t r;

	while (n < 3 && (left = deadline - clock_mono_ms()) > 0 &&
	       poll(&p, 1, (int)left) > 0) {
		r = read(fd, word + n, sizeof word - 1 - n);
		if (r <= 0)
			break;
		n += (size_t)r;
	}
	return strncmp(word, "ok\n", 3) == 0;
}

/*
 * What runs in it ends; it stays, idle, with its files. Where its agent is not well
 * the pod goes, so that nothing goes on unseen.
 */
static int make_idle(struct kube *k, const struct pod *p, struct err *e)
{
	struct kube_status status = {0};
	struct err why = ERR_INIT;
	AUTO_CLOSE int fd = -1;

	if (exec_agent(k, p->name, "quiet", &fd, &status, &why) == 0 && says_ok(fd))
		return 0;
	if (why.kind != ERR_NONE && (is_out_of_reach(&status) || why.kind == ERR_BUSY))
		return err_set(e, ERR_BACKEND, "%s", why.msg);
	kube_say(k, BACKEND_NOBODY,
		 "%s cannot be made idle, so its pod is deleted, with its files%s%s",
		 p->name, why.kind == ERR_NONE ? "" : ": ", why.msg);
	return pods_begin_removal(k, p, e);
}

static int kubernetes_stop(struct backend *b, const char *name, struct err *e)
{
	struct kube *k = kube_of(b);
	AUTO_POD p = {0};
	bool there = false;

	if (pods_find(k, name, &p, &there, e) < 0)
		return -1;
	if (!there || p.state == PODSTATE_ENDED || p.state == PODSTATE_LEAVING)
		return 0;
	if (p.state == PODSTATE_RUNNING)
		return make_idle(k, &p, e);
	return 0; /* nothing of ours runs in it: the agent starts idle */
}

static int kubernetes_remove(struct backend *b, const char *name, bool *ret_existed,
			     struct err *e)
{
	struct kube *k = kube_of(b);
	AUTO_POD p = {0};
	bool there = false;

	if (pods_find(k, name, &p, &there, e) < 0)
		return -1;
	if ((there && pods_remove(k, &p, e) < 0) || claims_remove(k, name, &there, e) < 0)
		return -1;
	podwatch_forget(k->watch, name);
	*ret_existed = there;
	return 0;
}

static int kubernetes_list(struct backend *b, struct sandbox_list *ret, struct err *e)
{
	return podlist(kube_of(b), ret, e);
}

/* ---- the rest */

static int kubernetes_oom_kills(struct backend *b, const char *name, uint64_t *ret,
				struct err *e)
{
	(void)b;
	(void)name;
	(void)ret;
	return err_set(e, ERR_NOT_FOUND, "the kernel's count is on the pod's node");
}

static int kubernetes_probe(struct backend *b, struct err *e)
{
	return podwatch_health(kube_of(b)->watch, e);
}

/*
 * What owns nothing any more goes with the server. In doubt it stays: a claim that
 * goes with it has someone's files, and a stop does not wait for an API server.
 */
static void remove_owner_of_nothing(struct kube *k)
{
	int64_t deadline = clock_mono_ms() + CLOSE_MS, left;
	struct err ignored = ERR_INIT;
	bool any = true;

	if (podlist_any(k, deadline, &any, &ignored) < 0 || any)
		return;
	left = deadline - clock_mono_ms();
	if (left > 0)
		agentmap_remove(k->agents, left, &ignored);
}

static void kubernetes_close(struct backend *b)
{
	struct kube *k = kube_of(b);

	if (k->api)
		kube_api_stop(k->api);
	if (k->watch)
		remove_owner_of_nothing(k);
	podwatch_stop(k->watch);
	pump_stop(k->pump);
	agentmap_free(k->agents);
	kube_api_close(k->api);
	podspec_close(&k->spec);
	free(k->selector);
	free(k->pods_path);
	free(k);
}

static void warn(struct kube *k)
{
	if (k->conf->default_pids > 0)
		kube_say(k, BACKEND_NOBODY,
			 "DEFAULT_PIDS: a pod has no such limit of its own; the nodes' "
			 "kubelets have one for all (podPidsLimit)");
	if (strcmp(k->conf->network_mode, "none") == 0)
		kube_say(
			k, BACKEND_NOBODY,
			"SANDBOX_NETWORK_MODE=none: a pod has its network all the same, "
			"unless a NetworkPolicy for the label %snetwork=none is enforced",
			k->conf->kube_label_prefix);
}

/* Of earlier versions of the server. No more than tidiness: a failure is only told. */
static void remove_old_agents(struct kube *k)
{
	struct err why = ERR_INIT;

	if (agentmap_sweep(k->agents, k->selector, &why) < 0)
		kube_say(k, BACKEND_NOBODY,
			 "agents of earlier versions are not looked for: %s", why.msg);
}

static int reach(struct kube *k, struct err *e)
{
	const bool with_claims = *k->conf->kube_volume_size;
	AUTO_FREE char *owner = NULL;

	if (kube_api_open(&(struct kube_credentials_args){.conf = k->conf}, &k->api, e) <
	    0)
		return -1;
	kube_say(k, BACKEND_NOBODY, "Kubernetes at %s, namespace %s",
		 kube_credentials_where(kube_api_credentials(k->api)),
		 kube_api_namespace(k->api));
	k->pods_path = kube_path(k->api, "pods");
	if (access_check(k->api, with_claims, e) < 0 ||
	    agentmap_open(&k->spec, k->api, &k->agents, e) < 0 ||
	    agentmap_ensure(k->agents, &owner, e) < 0)
		return -1;
	if (podwatch_start(&(struct podwatch_args){.api = k->api,
						   .path = k->pods_path,
						   .label_selector = k->selector,
						   .reading = k->reading},
			   &k->watch, e) < 0)
		return -1;
	remove_old_agents(k);
	return 0;
}

static int set_up(struct kube *k, const char *instance_id, struct err *e)
{
	if (podspec_open(&k->spec, k->conf, instance_id, e) < 0)
		return -1;
	k->selector = podspec_selector(&k->spec, "sandbox");
	k->reading = (struct pod_reading){.label_prefix = k->conf->kube_label_prefix,
					  .container = k->conf->kube_container};
	if (reach(k, e) < 0 || pump_start(&k->pump, e) < 0)
		return -1;
	warn(k);
	return 0;
}

static int kubernetes_open(const struct conf *c, const char *instance_id,
			   backend_progress_fn *progress, void *arg, struct backend **ret,
			   struct err *e)
{
	struct kube *k = xcalloc(1, sizeof *k);

	k->base.ops = &backend_kubernetes;
	k->conf = c;
	k->progress = progress;
	k->progress_arg = arg;
	k->look_ms = LOOK_MS;
	k->gone_ms = GONE_MS;
	if (set_up(k, instance_id, e) < 0) {
		kubernetes_close(&k->base);
		return -1;
	}
	*ret = &k->base;
	return 0;
}

const struct backend_ops backend_kubernetes = {
	.name = "kubernetes",
	.open = kubernetes_open,
	.probe = kubernetes_probe,
	.create = kubernetes_create,
	.connect = kubernetes_connect,
	.stop = kubernetes_stop,
	.remove = kubernetes_remove,
	.list = kubernetes_list,
	.oom_kills = kubernetes_oom_kills,
	.close = kubernetes_close,
};
