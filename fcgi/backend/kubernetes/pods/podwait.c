/* SPDX-License-Identifier: MIT */
#include "backend/kubernetes/pods/podwait.h"

#include <assert.h>

/* In front of a state's words when there is no sense in waiting. */
static const char *const fatal_words[PODSTATE_COUNT] = {
	[PODSTATE_UNSCHEDULABLE] = "no node of the cluster takes the sandbox's pod",
	[PODSTATE_NO_IMAGE] = "the image of the sandbox cannot be pulled",
	[PODSTATE_BROKEN] = "the sandbox's pod cannot start",
	[PODSTATE_CRASHED] = "the sandbox's pod does not stay up",
	[PODSTATE_ENDED] = "the sandbox's pod ended",
	[PODSTATE_LEAVING] = "the sandbox's pod was deleted by someone",
};

/* When it must be past that state; 0: now. */
static int64_t deadline_of(const struct podwait *w, enum podstate s)
{
	int64_t whole = w->began + w->start_ms;
	int64_t part = whole;

	switch (s) {
	case PODSTATE_UNSCHEDULABLE:
		part = w->unschedulable_since + w->unschedulable_ms;
		break;
	case PODSTATE_NO_IMAGE:
		part = w->no_image_since + PODWAIT_IMAGE_MS;
		break;
	case PODSTATE_CRASHED:
		part = w->is_new ? 0 : whole;
		break;
	case PODSTATE_BROKEN:
	case PODSTATE_ENDED:
	case PODSTATE_LEAVING:
		part = 0;
		break;
	case PODSTATE_WAITING:
	case PODSTATE_RUNNING:
	case PODSTATE_COUNT:
		break;
	}
	return part < whole ? part : whole;
}

/* Since when it is at that, by what was seen. */
static void note(struct podwait *w, enum podstate s, int64_t now)
{
	w->last = s;
	if (!w->began)
		w->began = now;
	if (s == PODSTATE_NO_IMAGE && !w->no_image_since)
		w->no_image_since = now;
	if (s != PODSTATE_UNSCHEDULABLE)
		w->unschedulable_since = 0;
	else if (!w->unschedulable_since)
		w->unschedulable_since = now;
}

static void say(const struct podwait *w, const struct pod *p, int64_t deadline,
		struct err *e)
{
	const char *sep = *p->words ? ": " : "";

	if (fatal_words[p->state] && deadline < w->began + w->start_ms)
		err_set(e, ERR_BACKEND, "%s%s%s", fatal_words[p->state], sep, p->words);
	else
		err_set(e, ERR_TIMEOUT,
			"the sandbox's pod did not run within %lld s "
			"(KUBERNETES_START_SECONDS)%s%s",
			(long long)(w->start_ms / 1000), sep, p->words);
}

enum podwait_verdict podwait_judge(struct podwait *w, const struct pod *p, int64_t now,
				   int64_t *ret_left_ms, struct err *e)
{
	int64_t deadline;

	assert(p->state < PODSTATE_COUNT);
	note(w, p->state, now);
	if (p->state == PODSTATE_RUNNING)
		return PODWAIT_RUNS;
	deadline = deadline_of(w, p->state);
	*ret_left_ms = deadline - now;
	if (now < deadline)
		return PODWAIT_MORE;
	say(w, p, deadline, e);
	return PODWAIT_FAILED;
}
