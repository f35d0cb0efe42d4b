/* SPDX-License-Identifier: MIT */
#include "backend/kubernetes/pods/podstate.h"

#include <string.h>

#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"

enum { WORDS_MAX = 400, TEXT_MAX = 512 };

void pod_release(struct pod *p)
{
	free(p->name);
	free(p->uid);
	free(p->node);
	free(p->image);
	free(p->instance);
	free(p->fingerprint);
	free(p->owner);
	free(p->words);
	*p = (struct pod){0};
}

struct pod pod_copy(const struct pod *p)
{
	struct pod c = *p;

	c.name = xstrdup(p->name);
	c.uid = xstrdup(p->uid);
	c.node = xstrdup(p->node);
	c.image = xstrdup(p->image);
	c.instance = xstrdup(p->instance);
	c.fingerprint = xstrdup(p->fingerprint);
	c.owner = xstrdup(p->owner);
	c.words = xstrdup(p->words);
	return c;
}

/* ---- words */

/* One line: no control character, cut where a character ends. */
static char *one_line(const char *s, size_t n)
{
	char *line;
	size_t i;

	if (n > WORDS_MAX)
		for (n = WORDS_MAX; n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80; n--)
			;
	line = xstrndup(s, n);
	for (i = 0; line[i]; i++)
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = ' ';
	return line;
}

/* "Reason: message", of whichever there is. */
static void add_why(struct buf *b, const json_t *o)
{
	const char *reason = json_get_string(o, "reason");
	const char *message = json_get_string(o, "message");
	bool both = reason && *reason && message && *message;

	buf_printf(b, "%s%s%s", reason ? reason : "", both ? ": " : "",
		   message ? message : "");
}

/*
 * "its container ended (OOMKilled, exit code 137)". Some runtimes keep that reason
 * after they have killed any process of it, also when it ended by itself much later.
 */
static void add_terminated(struct buf *b, const char *what, const json_t *t)
{
	const char *reason = json_get_string(t, "reason");
	const char *message = json_get_string(t, "message");
	json_int_t code = json_integer_value(json_object_get(t, "exitCode"));

	if (!reason || (code == 0 && strcmp(reason, "OOMKilled") == 0))
		reason = "Completed";
	buf_printf(b, "%s (%s, exit code %lld)", what, reason, (long long)code);
	if (message && *message)
		buf_printf(b, ": %s", message);
}

/* ---- conditions and containers */

static const json_t *named(const json_t *list, const char *key, const char *value)
{
	const json_t *item;
	const char *s;
	size_t i;

	json_array_foreach(list, i, item) {
		s = json_get_string(item, key);
		if (s && strcmp(s, value) == 0)
			return item;
	}
	return NULL;
}

/* The condition when it has that status; else NULL. */
static const json_t *condition(const json_t *status, const char *type, const char *is)
{
	const json_t *c = named(json_object_get(status, "conditions"), "type", type);
	const char *now = json_get_string(c, "status");

	return now && strcmp(now, is) == 0 ? c : NULL;
}

/*
 * What a container waits for. What is not here is a step on its way
 * (ContainerCreating, PodInitializing).
 */
static const struct {
	const char *reason;
	enum podstate state;
} waits[] = {
	{"ErrImagePull", PODSTATE_NO_IMAGE},
	{"ImagePullBackOff", PODSTATE_NO_IMAGE},
	{"ImageInspectError", PODSTATE_NO_IMAGE},
	{"RegistryUnavailable", PODSTATE_NO_IMAGE},
	{"SignatureValidationFailed", PODSTATE_BROKEN},
	{"InvalidImageName", PODSTATE_BROKEN},
	{"ErrImageNeverPull", PODSTATE_BROKEN},
	{"CreateContainerConfigError", PODSTATE_BROKEN},
	{"CreateContainerError", PODSTATE_BROKEN},
	{"RunContainerError", PODSTATE_BROKEN},
	{"PreStartHookError", PODSTATE_BROKEN},
	{"PostStartHookError", PODSTATE_BROKEN},
	{"CrashLoopBackOff", PODSTATE_CRASHED},
};

static enum podstate wait_of(const char *reason)
{
	size_t i;

	for (i = 0; reason && i < sizeof waits / sizeof *waits; i++)
		if (strcmp(waits[i].reason, reason) == 0)
			return waits[i].state;
	return PODSTATE_WAITING;
}

static enum podstate waiting(const json_t *container, const json_t *w, struct buf *words)
{
	const json_t *last =
		json_object_get(json_object_get(container, "lastState"), "terminated");
	enum podstate state = wait_of(json_get_string(w, "reason"));

	if (state == PODSTATE_CRASHED && last)
		add_terminated(words, "its container ended", last);
	else
		add_why(words, w);
	return state;
}

/* `running` and `terminated` come first: some runtimes call what runs OOMKilled. */
static enum podstate container_state(const json_t *container, struct buf *words)
{
	const json_t *state = json_object_get(container, "state");
	const json_t *last =
		json_object_get(json_object_get(container, "lastState"), "terminated");
	const json_t *t = json_object_get(state, "terminated");

	if (json_object_get(state, "running")) {
		if (last)
			add_terminated(words, "its container was started again", last);
		return PODSTATE_RUNNING;
	}
	if (t) {
		add_terminated(words, "its container ended", t);
		return PODSTATE_CRASHED;
	}
	return waiting(container, json_object_get(state, "waiting"), words);
}

/* An init container of the template may be what holds all up. */
static enum podstate init_state(const json_t *status, struct buf *words)
{
	const json_t *list = json_object_get(status, "initContainerStatuses"), *item;
	enum podstate state;
	size_t i;

	json_array_foreach(list, i, item) {
		const json_t *w =
			json_object_get(json_object_get(item, "state"), "waiting");

		state = w ? waiting(item, w, words) : PODSTATE_WAITING;
		if (state != PODSTATE_WAITING)
			return state;
		words->len = 0;
	}
	return PODSTATE_WAITING;
}

static bool text_is(const json_t *o, const char *key, const char *value)
{
	const char *s = json_get_string(o, key);

	return s && strcmp(s, value) == 0;
}

static void add_ended(const json_t *status, const json_t *container, struct buf *words)
{
	const json_t *t =
		json_object_get(json_object_get(container, "state"), "terminated");
	const json_t *why = condition(status, "DisruptionTarget", "True");

	add_why(words, status);
	if (words->len == 0 && why)
		add_why(words, why);
	if (t && (words->len == 0 || text_is(t, "reason", "OOMKilled")))
		add_terminated(
			words,
			words->len ? "; its container ended" : "its container ended", t);
}

static enum podstate unscheduled(const json_t *root, struct buf *words)
{
	const json_t *status = json_object_get(root, "status");
	const json_t *c = condition(status, "PodScheduled", "False");

	if (c)
		add_why(words, c);
	else if (!json_get_string(json_object_get(root, "spec"), "nodeName"))
		buf_puts(words, "no scheduler has looked at it yet");
	return c && text_is(c, "reason", "Unschedulable") ? PODSTATE_UNSCHEDULABLE
							  : PODSTATE_WAITING;
}

static enum podstate state_of(const json_t *root, const json_t *container,
			      struct buf *words)
{
	const json_t *status = json_object_get(root, "status"), *why;
	enum podstate state;

	if (json_object_get(json_object_get(root, "metadata"), "deletionTimestamp")) {
		why = condition(status, "DisruptionTarget", "True");
		add_why(words, why ? why : status);
		if (words->len == 0)
			buf_puts(words, "its pod was deleted in the cluster");
		return PODSTATE_LEAVING;
	}
	if (text_is(status, "phase", "Failed") || text_is(status, "phase", "Succeeded")) {
		add_ended(status, container, words);
		return PODSTATE_ENDED;
	}
	state = init_state(status, words);
	if (state != PODSTATE_WAITING)
		return state;
	if (container)
		return container_state(container, words);
	return unscheduled(root, words);
}

/* ---- the whole */

/* A member's string of bounded length; "" when there is none. */
static char *text(const json_t *o, const char *key)
{
	const char *s = json_get_string(o, key);

	return xstrndup(s ? s : "", TEXT_MAX);
}

static char *prefixed(const json_t *o, const char *prefix, const char *key)
{
	AUTO_FREE char *whole = xasprintf("%s%s", prefix, key);

	return text(o, whole);
}

int pod_parse(const json_t *root, const struct pod_reading *how, struct pod *ret,
	      struct err *e)
{
	const json_t *meta = json_object_get(root, "metadata");
	const json_t *spec = json_object_get(root, "spec");
	const json_t *status = json_object_get(root, "status");
	const json_t *container = named(json_object_get(status, "containerStatuses"),
					"name", how->container);
	const char *name = json_get_string(meta, "name");
	const char *uid = json_get_string(meta, "uid");
	AUTO_BUF words = BUF_INIT(65536);
	struct pod p = {0};

	if (!name || !*name || strlen(name) > 253 || !uid || !*uid || strlen(uid) > 128)
		return err_set(e, ERR_BACKEND,
			       "the API server's description of a pod "
			       "has no name or uid");
	p.state = state_of(root, container, &words);
	p.name = xstrdup(name);
	p.uid = xstrdup(uid);
	p.node = text(spec, "nodeName");
	p.image = text(named(json_object_get(spec, "containers"), "name", how->container),
		       "image");
	p.instance =
		prefixed(json_object_get(meta, "labels"), how->label_prefix, "instance");
	p.fingerprint = prefixed(json_object_get(meta, "annotations"), how->label_prefix,
				 "policy_fingerprint");
	p.owner =
		text(json_array_get(json_object_get(meta, "ownerReferences"), 0), "uid");
	p.words = one_line(words.p, words.len);
	p.restarts = json_integer_value(json_object_get(container, "restartCount"));
	p.is_unreachable = p.state == PODSTATE_RUNNING &&
			   json_is_true(json_object_get(container, "ready")) &&
			   condition(status, "Ready", "False");
	*ret = p;
	return 0;
}
