/* SPDX-License-Identifier: MIT */
#include "edge/errand.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/log.h"
#include "base/mem.h"
#include "edge/calls.h"

enum { WEIGHT = 512 };

struct errand {
	struct request request; /* first */
	struct errands *all;
	struct errand *next, **link;
};

struct errands {
	struct edge *edge;
	struct errand *first;
};

static void drop(struct errand *x)
{
	*x->link = x->next;
	if (x->next)
		x->next->link = x->link;
	json_decref(x->request.body);
	free(x);
}

static void on_answered(struct request *r, const struct edgemsg *m)
{
	struct errand *x = (struct errand *)r;
	const char *text = json_string_value(json_object_get(m->body, "message"));

	if (m->type != MSG_OK)
		log_warn("the runner refused message %d: %s", (int)r->type,
			 text ? text : "without words");
	drop(x);
}

struct errands *errands_new(struct edge *edge)
{
	struct errands *all = xcalloc(1, sizeof(*all));

	all->edge = edge;
	return all;
}

void errands_free(struct errands *all)
{
	struct errand *x, *next;

	for (x = all->first; x; x = next) {
		next = x->next;
		calls_forget(all->edge->calls, &x->request);
		json_decref(x->request.body);
		free(x);
	}
	free(all);
}

/* What a body takes in memory: its long texts are what counts. */
static size_t weight_of(const json_t *body)
{
	return WEIGHT + json_string_length(json_object_get(body, "text"));
}

void errand_run(struct errands *all, enum edgemsg_type type, json_t *body)
{
	struct errand *x = xcalloc(1, sizeof(*x));
	struct err e = ERR_INIT;

	*x = (struct errand){
		.request = {.type = type,
			    .body = body,
			    .weight = weight_of(body),
			    .answered = on_answered},
		.all = all,
		.next = all->first,
		.link = &all->first,
	};
	if (x->next)
		x->next->link = &x->next;
	all->first = x;
	if (calls_ask(all->edge->calls, &x->request, NULL, &e) == 0) {
		calls_kick(all->edge->calls);
		return;
	}
	log_warn("message %d to the runner is lost: %s", (int)type, e.msg);
	drop(x);
}
