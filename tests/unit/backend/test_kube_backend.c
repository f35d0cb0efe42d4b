/* SPDX-License-Identifier: MIT */
#include "fakekube.h"

#include <fcntl.h>
#include <signal.h>

#include "backend/kubernetes/kubernetes.h"
#include "base/json.h"
#include "tests/unit/testdir.h"

/*
 * The whole backend against a small cluster: one pod at a time, made by what is
 * posted, whose status goes through what the test says, told by a watch.
 */
struct world {
	struct fakekube k;
	struct conf conf;
	struct backend *b;
	/* under k.lock */
	json_t *pod;                 /* as it is now; NULL: there is none */
	json_t *maps;                /* by name */
	const char *const *statuses; /* of the next new pod, one after another */
	int uids, map_uids, version;
	struct buf events;   /* a line each; of all watches */
	const char *refusal; /* of the next POST of a pod: its Status */
	int refusal_code;
	bool drops_post;   /* the answer to the next POST of a pod is lost */
	const char *quiet; /* what `agent quiet` says */
	bool is_node_away; /* no exec reaches it */
	bool is_away;      /* no pod can be asked for */
	int claims_code;   /* of the answer to a list of claims; 0: 200 */
	const char *claims;
	json_t *claim;     /* of the sandbox's volume; NULL: there is none */
	int claim_uids;    /* made so far */
	int claim_watches; /* begun so far */
	bool is_watch_silent;
	bool has_finalizer;  /* the pod: nothing ends it */
	const char *renamed; /* what answers about a pod call it; NULL: as it is */
	int lists;           /* of pods, that were asked for */
	char said[8192];
};

static char agent_path[64];
static const char name[] = "mcp-sbx-a-01234567";
#define PODS   "/api/v1/namespaces/sbx/pods"
#define POD    PODS "/mcp-sbx-a-01234567"
#define REVIEW "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
#define MAPS   "/api/v1/namespaces/sbx/configmaps"
#define CLAIMS "/api/v1/namespaces/sbx/persistentvolumeclaims"
#define NONE   "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}"
#define RUNNING                                                                          \
	"{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"sandbox\","           \
	"\"ready\":true,\"restartCount\":0,\"state\":{\"running\":{}}}]}"
#define WAITING(reason, message)                                                         \
	"{\"phase\":\"Pending\",\"containerStatuses\":[{\"name\":\"sandbox\","           \
	"\"state\":{\"waiting\":{\"reason\":\"" reason "\",\"message\":\"" message       \
	"\"}}}]}"
#define RESTARTED                                                                        \
	"{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"sandbox\","           \
	"\"restartCount\":1,\"state\":{\"running\":{}},\"lastState\":{\"terminated\":{"  \
	"\"reason\":\"OOMKilled\",\"exitCode\":137}}}]}"
#define EVICTED "{\"phase\":\"Failed\",\"reason\":\"Evicted\",\"message\":\"disk\"}"

static const char *const runs[] = {"{\"phase\":\"Pending\"}", RUNNING, NULL};

/* ---- the cluster; k.lock is held unless said otherwise */

static json_t *parsed(const char *text)
{
	struct err e = ERR_INIT;
	json_t *root = NULL;

	if (json_parse(text, strlen(text), &root, &e) < 0)
		fail_msg("%s: %s", e.msg, text);
	return root;
}

static void push(struct world *w, const char *type)
{
	AUTO_JSON *event = NULL;
	char version[16];

	snprintf(version, sizeof version, "%d", ++w->version);
	json_put(json_object_get(w->pod, "metadata"), "resourceVersion",
		 json_string(version));
	event = json_must(json_pack("{s:s,s:O}", "type", type, "object", w->pod));
	json_dump_buf(event, &w->events);
	buf_puts(&w->events, "\n");
	pthread_cond_broadcast(&w->k.changed);
}

static void set_status(struct world *w, const char *status)
{
	json_t *now = json_deep_copy(w->pod);

	json_put(now, "status", parsed(status));
	json_decref(w->pod);
	w->pod = now;
	push(w, "MODIFIED");
}

/* Not from the server's threads: takes the lock. */
static void becomes(struct world *w, const char *status)
{
	pthread_mutex_lock(&w->k.lock);
	set_status(w, status);
	pthread_mutex_unlock(&w->k.lock);
}

static void vanish(struct world *w)
{
	push(w, "DELETED");
	json_decref(w->pod);
	w->pod = NULL;
}

static void answer(int fd, int code, const char *body)
{
	fakekube_answer(fd, &(struct fakekube_step){.status = code, .body = body});
}

static void answer_pod(int fd, const json_t *pod)
{
	AUTO_BUF text = BUF_INIT(1 << 20);

	json_dump_buf(pod, &text);
	answer(fd, 200, text.p);
}

static void serve_watch(struct world *w, int fd)
{
	size_t at = 0;

	fakekube_write(fd, FAKEKUBE_CHUNKED, strlen(FAKEKUBE_CHUNKED));
	pthread_mutex_lock(&w->k.lock);
	while (!w->k.stopping) {
		if (at < w->events.len && !w->is_watch_silent)
			fakekube_chunk(fd, w->events.p + at);
		at = w->events.len;
		pthread_cond_wait(&w->k.changed, &w->k.lock);
	}
	pthread_mutex_unlock(&w->k.lock);
}

static void serve_collection(struct fakekube *k, int fd, const char *request)
{
	struct world *w = k->arg;
	AUTO_JSON *list = NULL;

	if (strstr(request, "watch=1")) {
		serve_watch(w, fd);
		return;
	}
	pthread_mutex_lock(&k->lock);
	w->lists++;
	list = json_must(json_pack("{s:{s:s},s:[O*]}", "metadata", "resourceVersion", "1",
				   "items", w->pod));
	if (w->is_away)
		answer(fd, 503, FAKEKUBE_STATUS(503, "ServiceUnavailable", "away"));
	else
		answer_pod(fd, list);
	pthread_mutex_unlock(&k->lock);
}

/* Tells of its end alone. */
static void serve_claim_watch(struct world *w, int fd)
{
	int uid = w->claim_uids;

	fakekube_write(fd, FAKEKUBE_CHUNKED, strlen(FAKEKUBE_CHUNKED));
	w->claim_watches++;
	pthread_cond_broadcast(&w->k.changed);
	while (!w->k.stopping && w->claim && uid == w->claim_uids)
		pthread_cond_wait(&w->k.changed, &w->k.lock);
	fakekube_chunk(fd, "{\"type\":\"DELETED\",\"object\":{\"metadata\":{"
			   "\"resourceVersion\":\"9\"}}}\n");
}

static void serve_claims(struct fakekube *k, int fd, const char *request)
{
	struct world *w = k->arg;
	AUTO_JSON *list = NULL;

	pthread_mutex_lock(&k->lock);
	list = json_must(json_pack("{s:{s:s},s:[O*]}", "metadata", "resourceVersion", "1",
				   "items", w->claim));
	if (strstr(request, "watch=1"))
		serve_claim_watch(w, fd);
	else if (w->claims_code || w->claims)
		answer(fd, w->claims_code, w->claims);
	else
		answer_pod(fd, list);
	pthread_mutex_unlock(&k->lock);
}

static void serve_new_claim(struct fakekube *k, int fd, const char *request)
{
	struct world *w = k->arg;

	pthread_mutex_lock(&k->lock);
	if (w->claim) {
		answer(fd, 409, FAKEKUBE_STATUS(409, "AlreadyExists", "exists"));
	} else {
		w->claim = parsed(strstr(request, "\r\n\r\n") + 4);
		w->claim_uids++;
		answer_pod(fd, w->claim);
	}
	pthread_mutex_unlock(&k->lock);
}

static json_t *metadata_of(json_t *object)
{
	return json_object_get(object, "metadata");
}

/* One that is deleted goes when the test says so. */
static void serve_claim(struct fakekube *k, int fd, const char *request)
{
	struct world *w = k->arg;

	pthread_mutex_lock(&k->lock);
	if (!w->claim) {
		answer(fd, 404, FAKEKUBE_STATUS(404, "NotFound", "no such claim"));
	} else {
		if (strncmp(request, "DELETE", 6) == 0)
			json_put(metadata_of(w->claim), "deletionTimestamp",
				 json_string("2026-01-01T00:00:00Z"));
		answer_pod(fd, w->claim);
	}
	pthread_mutex_unlock(&k->lock);
}

static void claim_goes(struct world *w)
{
	json_decref(MOVE(w->claim));
	pthread_cond_broadcast(&w->k.changed);
}

static void serve_post(struct fakekube *k, int fd, const char *request)
{
	struct world *w = k->arg;
	char uid[16];
	int i;

	pthread_mutex_lock(&k->lock);
	if (w->refusal) {
		answer(fd, w->refusal_code, w->refusal);
		w->refusal = NULL;
	} else if (w->pod) {
		answer(fd, 409, FAKEKUBE_STATUS(409, "AlreadyExists", "exists"));
	} else {
		w->pod = parsed(strstr(request, "\r\n\r\n") + 4);
		snprintf(uid, sizeof uid, "u%d", ++w->uids);
		json_put(json_object_get(w->pod, "metadata"), "uid", json_string(uid));
		json_put(w->pod, "status", parsed("{\"phase\":\"Pending\"}"));
		if (!w->drops_post)
			answer_pod(fd, w->pod);
		w->drops_post = false;
		push(w, "ADDED");
		for (i = 0; w->statuses[i]; i++)
			set_status(w, w->statuses[i]);
	}
	pthread_mutex_unlock(&k->lock);
}

static void serve_pod(struct fakekube *k, int fd, const char *request)
{
	struct world *w = k->arg;

	pthread_mutex_lock(&k->lock);
	if (w->is_away) {
		answer(fd, 503,
		       FAKEKUBE_STATUS(503, "ServiceUnavailable", "etcd is away"));
	} else if (!w->pod) {
		answer(fd, 404, FAKEKUBE_STATUS(404, "NotFound", "no such pod"));
	} else {
		AUTO_JSON *shown = json_deep_copy(w->pod);

		if (w->renamed)
			json_put(metadata_of(shown), "name", json_string(w->renamed));
		answer_pod(fd, shown);
		if (strncmp(request, "DELETE", 6) == 0 && !w->has_finalizer)
			vanish(w);
	}
	pthread_mutex_unlock(&k->lock);
}

static void serve_exec(struct fakekube *k, int fd, const char *request)
{
	struct world *w = k->arg;
	const char *says = strstr(request, "command=quiet") ? w->quiet : "hello";

	if (w->is_node_away) {
		answer(fd, 500, FAKEKUBE_STATUS(500, "InternalError", "dial tcp: no"));
		return;
	}
	fakekube_ws_accept(fd, request, "v5.channel.k8s.io");
	if (!*says) /* cut, or its end lost on the way */
		return;
	fakekube_ws_send(fd, 1, says, strlen(says));
	fakekube_wait_close(fd);
}

/* The name at the end of the request's path. */
static char *map_name(const char *request)
{
	const char *at = strstr(request, MAPS "/");

	assert_non_null(at);
	at += strlen(MAPS "/");
	return xstrndup(at, strcspn(at, " ?"));
}

static void serve_map(struct fakekube *k, int fd, const char *request)
{
	struct world *w = k->arg;
	AUTO_FREE char *map = map_name(request);
	const json_t *found;

	pthread_mutex_lock(&k->lock);
	found = json_object_get(w->maps, map);
	if (found)
		answer_pod(fd, found);
	else
		answer(fd, 404, FAKEKUBE_STATUS(404, "NotFound", "no such map"));
	if (strncmp(request, "DELETE", 6) == 0)
		json_object_del(w->maps, map);
	pthread_mutex_unlock(&k->lock);
}

static void serve_maps(struct fakekube *k, int fd, const char *request)
{
	struct world *w = k->arg;
	AUTO_JSON *items = json_array();
	AUTO_JSON *list = json_must(json_pack("{s:{s:s},s:O}", "metadata",
					      "resourceVersion", "1", "items", items));
	const char *key;
	json_t *map;

	assert_non_null(strstr(request, "labelSelector=mcp.role%3Dagent%2Cmcp.instance"));
	pthread_mutex_lock(&k->lock);
	json_object_foreach(w->maps, key, map)
		if (strstr(key, "amd64"))
			json_array_append(items, map);
	answer_pod(fd, list);
	pthread_mutex_unlock(&k->lock);
}

/* What was posted, made: with a uid. */
static void serve_new_map(struct fakekube *k, int fd, const char *request)
{
	struct world *w = k->arg;
	json_t *map = parsed(strstr(request, "\r\n\r\n") + 4);
	json_t *meta = json_object_get(map, "metadata");
	char uid[16];

	pthread_mutex_lock(&k->lock);
	snprintf(uid, sizeof uid, "map%d", ++w->map_uids);
	json_put(meta, "uid", json_string(uid));
	json_put(w->maps, json_get_string(meta, "name"), map);
	answer_pod(fd, map);
	pthread_mutex_unlock(&k->lock);
}

static const struct fakekube_step cluster[] = {
	{.request = REVIEW, .body = "{\"status\":{\"allowed\":true}}", .times = -1},
	{.request = "GET " MAPS "?", .serve = serve_maps, .times = -1, .is_kept = true},
	{.request = "GET " MAPS, .serve = serve_map, .times = -1, .is_kept = true},
	{.request = "POST " MAPS, .serve = serve_new_map, .times = -1, .is_kept = true},
	{.request = "DELETE " MAPS, .serve = serve_map, .times = -1, .is_kept = true},
	{.request = "GET " CLAIMS "?", .serve = serve_claims, .times = -1},
	{.request = "GET " CLAIMS "/",
	 .serve = serve_claim,
	 .times = -1,
	 .is_kept = true},
	{.request = "DELETE " CLAIMS "/",
	 .serve = serve_claim,
	 .times = -1,
	 .is_kept = true},
	{.request = "POST " CLAIMS,
	 .serve = serve_new_claim,
	 .times = -1,
	 .is_kept = true},
	{.request = "GET " PODS "?", .serve = serve_collection, .times = -1},
	{.request = "POST " PODS, .serve = serve_post, .times = -1},
	{.request = "GET " POD "/exec?", .serve = serve_exec, .times = -1},
	{.request = "GET " POD, .serve = serve_pod, .times = -1, .is_kept = true},
	{.request = "DELETE " POD, .serve = serve_pod, .times = -1, .is_kept = true},
	{0}};

/* ---- the backend in it */

static void on_progress(void *arg, const char *who, const char *line)
{
	struct world *w = arg;
	size_t n;

	pthread_mutex_lock(&w->k.lock);
	n = strlen(w->said);
	snprintf(w->said + n, sizeof w->said - n, "%s| %s\n", who ? who : "", line);
	pthread_mutex_unlock(&w->k.lock);
}

static int open_in(struct world *w, const struct fakekube_step *steps, struct err *e)
{
	AUTO_FREE char *kubeconfig = NULL;

	*w = (struct world){.statuses = runs,
			    .maps = json_object(),
			    .events = BUF_INIT(1 << 20),
			    .quiet = "ok\n"};
	fakekube_start(&w->k, steps);
	w->k.arg = w;
	kubeconfig = fakekube_kubeconfig(&w->k);
	setenv("KUBECONFIG", kubeconfig, 1);
	setenv("SANDBOX_BACKEND", "kubernetes", 1);
	setenv("AGENT_PATH", agent_path, 1);
	if (conf_load(NULL, &w->conf, e) < 0)
		return -1;
	w->conf.kube_unschedulable_s = 0;
	return backend_find("kubernetes")
		->open(&w->conf, "0123abcd", on_progress, w, &w->b, e);
}

static void world_open(struct world *w)
{
	struct err e = ERR_INIT;

	if (open_in(w, cluster, &e) < 0)
		fail_msg("%s", e.msg);
}

static void world_close(struct world *w)
{
	if (w->b)
		w->b->ops->close(w->b);
	fakekube_stop(&w->k);
	conf_release(&w->conf);
	json_decref(w->pod);
	json_decref(w->maps);
	json_decref(w->claim);
	buf_release(&w->events);
}

/* The backend's own settings. */
static struct kube *kube_of(struct world *w)
{
	return (struct kube *)(void *)w->b;
}

static int create(struct world *w, bool fresh, struct sandbox_info *ret, struct err *e)
{
	const struct sandbox_spec spec = {.name = name,
					  .identifier = "a",
					  .tenant = "default",
					  .cpu_cores = 1,
					  .memory_mb = 64,
					  .fresh = fresh};

	*e = (struct err)ERR_INIT;
	return w->b->ops->create(w->b, &spec, ret, e);
}

/* A sandbox that runs, connected to. */
static void begin(struct world *w)
{
	struct sandbox_info info = {0};
	struct err e = ERR_INIT;
	int fd = -1;

	world_open(w);
	if (create(w, true, &info, &e) < 0 || w->b->ops->connect(w->b, name, &fd, &e) < 0)
		fail_msg("%s", e.msg);
	assert_true(info.fresh);
	assert_string_equal(info.container_id, "u1");
	sandbox_info_release(&info);
	close(fd);
}

static void check_words(const struct err *e, enum err_kind kind, const char *words)
{
	if (e->kind != kind || !strstr(e->msg, words))
		fail_msg("%s (%s), not %s (%s)", e->msg, err_kind_name(e->kind), words,
			 err_kind_name(kind));
}

/* ---- what is tried */

static void a_pod_is_made_reached_and_removed(void **state)
{
	bool existed = false;
	struct err e = ERR_INIT;
	struct world w;

	(void)state;
	begin(&w);
	assert_int_equal(w.b->ops->probe(w.b, &e), 0);
	assert_int_equal(w.b->ops->remove(w.b, name, &existed, &e), 0);
	assert_true(existed);
	assert_int_equal(w.b->ops->remove(w.b, name, &existed, &e), 0);
	assert_false(existed);
	world_close(&w);
}

/* What is in the way of a new pod, and what is said of it. */
static const struct {
	const char *what;
	const char *statuses[3];
	int refusal_code;
	const char *refusal;
	enum err_kind kind;
	const char *words;
} failures[] = {
	{"no node",
	 {"{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":"
	  "\"False\",\"reason\":\"Unschedulable\",\"message\":\"0/3 nodes: cpu\"}]}"},
	 0,
	 NULL,
	 ERR_BACKEND,
	 "Unschedulable: 0/3 nodes: cpu"},
	{"a bad name of an image",
	 {WAITING("InvalidImageName", "bad")},
	 0,
	 NULL,
	 ERR_BACKEND,
	 "cannot start: InvalidImageName: bad"},
	{"a missing secret",
	 {WAITING("CreateContainerConfigError", "no secret")},
	 0,
	 NULL,
	 ERR_BACKEND,
	 "cannot start: CreateContainerConfigError: no secret"},
	{"a container that ends",
	 {"{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"sandbox\",\"state\":"
	  "{\"terminated\":{\"reason\":\"StartError\",\"exitCode\":128}}}]}"},
	 0,
	 NULL,
	 ERR_BACKEND,
	 "does not stay up: its container ended (StartError"},
	{"evicted", {EVICTED}, 0, NULL, ERR_BACKEND, "Evicted: disk"},
	{"quota",
	 {NULL},
	 403,
	 FAKEKUBE_STATUS(403, "Forbidden", "pods is forbidden: exceeded quota: q"),
	 ERR_LIMIT,
	 "exceeded quota: q"},
	{"Pod Security",
	 {NULL},
	 403,
	 FAKEKUBE_STATUS(403, "Forbidden", "violates PodSecurity: runAsUser=0"),
	 ERR_BACKEND,
	 "violates PodSecurity: runAsUser=0"},
	{"a webhook",
	 {NULL},
	 403,
	 FAKEKUBE_STATUS(403, "Forbidden", "admission webhook said no"),
	 ERR_BACKEND,
	 "admission webhook said no"},
	{"an invalid pod",
	 {NULL},
	 422,
	 FAKEKUBE_STATUS(422, "Invalid", "Pod is invalid: spec.x"),
	 ERR_BACKEND,
	 "Pod is invalid: spec.x"},
};

static void what_keeps_a_pod_from_running_is_told_and_the_pod_removed(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof failures / sizeof *failures; i++) {
		struct sandbox_info info = {0};
		struct err e = ERR_INIT;
		struct world w;

		world_open(&w);
		w.conf.kube_start_s = 60;
		w.statuses = failures[i].statuses;
		w.refusal = failures[i].refusal;
		w.refusal_code = failures[i].refusal_code;
		assert_int_equal(create(&w, true, &info, &e), -1);
		check_words(&e, failures[i].kind, failures[i].words);
		assert_int_equal(fakekube_saw(&w.k, "DELETE " POD),
				 failures[i].refusal ? 0 : 1);
		world_close(&w);
	}
}

/* Where the cluster's word takes longer than the time there is, there is more. */
static void an_image_that_does_not_come_in_time_is_told(void **state)
{
	static const char *const statuses[] = {WAITING("ErrImagePull", "denied"),
					       WAITING("ImagePullBackOff", "back-off"),
					       NULL};
	bool is_told = false;
	int s;

	(void)state;
	for (s = 1; !is_told && s <= 64; s *= 4) {
		struct sandbox_info info = {0};
		struct err e = ERR_INIT;
		struct world w;
		char words[100];

		world_open(&w);
		w.conf.kube_start_s = s;
		w.statuses = statuses;
		assert_int_equal(create(&w, true, &info, &e), -1);
		snprintf(words, sizeof words, "within %d s (KUBERNETES_START_SECONDS)",
			 s);
		check_words(&e, ERR_TIMEOUT, words);
		is_told = strstr(e.msg, ": ImagePullBackOff") != NULL;
		assert_int_equal(fakekube_saw(&w.k, "DELETE " POD), 1);
		world_close(&w);
	}
	assert_true(is_told);
}

static void a_pod_whose_making_was_not_answered_is_found_again(void **state)
{
	struct sandbox_info info = {0};
	struct err e = ERR_INIT;
	struct world w;

	(void)state;
	world_open(&w);
	w.drops_post = true;
	if (create(&w, true, &info, &e) < 0)
		fail_msg("%s", e.msg);
	assert_string_equal(info.container_id, "u1");
	assert_int_equal(fakekube_saw(&w.k, "POST " PODS), 2);
	sandbox_info_release(&info);
	world_close(&w);
}

static void a_container_that_was_started_again_has_lost_what_ran(void **state)
{
	struct sandbox_info info = {0};
	struct err e = ERR_INIT;
	struct world w;
	int fd = -1;

	(void)state;
	begin(&w);
	becomes(&w, RESTARTED);
	assert_int_equal(w.b->ops->connect(w.b, name, &fd, &e), -1);
	check_words(&e, ERR_CONFLICT, "started again (OOMKilled, exit code 137)");
	assert_non_null(strstr(e.msg, "/workspace, /artifacts and /tmp are kept"));
	assert_int_equal(create(&w, false, &info, &e), 0);
	assert_false(info.fresh);
	assert_string_equal(info.container_id, "u1");
	assert_non_null(strstr(info.recreated, "everything else is as in the image"));
	assert_int_equal(w.b->ops->connect(w.b, name, &fd, &e), 0);
	close(fd);
	sandbox_info_release(&info);
	world_close(&w);
}

static void an_evicted_pod_is_replaced_by_a_fresh_one(void **state)
{
	struct sandbox_info info = {0};
	struct err e = ERR_INIT;
	struct world w;
	int fd = -1;

	(void)state;
	begin(&w);
	becomes(&w, EVICTED);
	assert_int_equal(w.b->ops->connect(w.b, name, &fd, &e), -1);
	check_words(&e, ERR_CONFLICT,
		    "Evicted: disk; what it was doing is lost, its "
		    "files are lost");
	assert_int_equal(create(&w, false, &info, &e), 0);
	assert_true(info.fresh);
	assert_string_equal(info.container_id, "u2");
	assert_non_null(strstr(w.said, "mcp-sbx-a-01234567| mcp-sbx-a-01234567 is "
				       "replaced: Evicted: disk"));
	sandbox_info_release(&info);
	world_close(&w);
}

static void a_deleted_pod_is_told(void **state)
{
	struct err e = ERR_INIT;
	struct world w;
	int fd = -1;

	(void)state;
	begin(&w);
	pthread_mutex_lock(&w.k.lock);
	vanish(&w);
	pthread_mutex_unlock(&w.k.lock);
	assert_int_equal(w.b->ops->connect(w.b, name, &fd, &e), -1);
	check_words(&e, ERR_CONFLICT, "pod was deleted in the cluster");
	world_close(&w);
}

static void a_pod_of_another_policy_is_replaced(void **state)
{
	struct sandbox_info info = {0};
	struct err e = ERR_INIT;
	struct sandbox_list l = {0};
	struct world w;

	(void)state;
	begin(&w);
	pthread_mutex_lock(&w.k.lock);
	json_put(json_object_get(json_object_get(w.pod, "metadata"), "annotations"),
		 "mcp.policy_fingerprint", json_string("old"));
	pthread_mutex_unlock(&w.k.lock);
	assert_int_equal(w.b->ops->list(w.b, &l, &e), 0);
	assert_int_equal(l.n, 1);
	assert_true(l.v[0].outdated && l.v[0].running && !l.v[0].old_image);
	sandbox_list_release(&l);
	assert_int_equal(create(&w, false, &info, &e), 0);
	assert_true(info.fresh);
	assert_string_equal(info.container_id, "u2");
	sandbox_info_release(&info);
	world_close(&w);
}

static void another_servers_pod_of_that_name_is_left_alone(void **state)
{
	struct sandbox_info info = {0};
	struct err e = ERR_INIT;
	bool existed;
	struct world w;

	(void)state;
	begin(&w);
	pthread_mutex_lock(&w.k.lock);
	json_put(json_object_get(json_object_get(w.pod, "metadata"), "labels"),
		 "mcp.instance", json_string("beef0000"));
	pthread_mutex_unlock(&w.k.lock);
	assert_int_equal(create(&w, true, &info, &e), -1);
	check_words(&e, ERR_CONFLICT, "not this server's");
	e = (struct err)ERR_INIT;
	assert_int_equal(w.b->ops->remove(w.b, name, &existed, &e), -1);
	assert_int_equal(fakekube_saw(&w.k, "DELETE " POD), 0);
	world_close(&w);
}

static void an_api_server_that_is_away_says_nothing_about_a_sandbox(void **state)
{
	struct err e = ERR_INIT;
	struct world w;
	int fd = -1;

	(void)state;
	begin(&w);
	w.is_away = true;
	kube_api_set_patience(kube_of(&w)->api, 1);
	assert_int_equal(w.b->ops->connect(w.b, name, &fd, &e), -1);
	check_words(&e, ERR_BUSY, "etcd is away");
	w.is_away = false;
	world_close(&w);
}

static void a_node_that_is_away_is_the_clusters_to_give_up(void **state)
{
	struct err e = ERR_INIT;
	struct world w;
	int fd = -1;

	(void)state;
	begin(&w);
	w.is_node_away = true;
	assert_int_equal(w.b->ops->connect(w.b, name, &fd, &e), -1);
	check_words(&e, ERR_BUSY, "dial tcp: no");
	e = (struct err)ERR_INIT;
	assert_int_equal(w.b->ops->stop(w.b, name, &e), -1);
	assert_int_equal(fakekube_saw(&w.k, "DELETE " POD), 0);
	pthread_mutex_lock(&w.k.lock);
	json_put(json_object_get(w.pod, "metadata"), "deletionTimestamp",
		 json_string("2026-01-01T00:00:00Z"));
	pthread_mutex_unlock(&w.k.lock);
	e = (struct err)ERR_INIT;
	assert_int_equal(w.b->ops->connect(w.b, name, &fd, &e), -1);
	check_words(&e, ERR_CONFLICT, "its files are lost");
	world_close(&w);
}

static void a_stop_makes_a_pod_idle_or_deletes_it(void **state)
{
	struct err e = ERR_INIT;
	struct world w;

	(void)state;
	begin(&w);
	assert_int_equal(w.b->ops->stop(w.b, name, &e), 0);
	assert_int_equal(fakekube_saw(&w.k, "DELETE " POD), 0);
	w.quiet = ""; /* nobody knows: its files are not given up for that */
	assert_int_equal(w.b->ops->stop(w.b, name, &e), -1);
	assert_int_equal(fakekube_saw(&w.k, "DELETE " POD), 0);
	e = (struct err)ERR_INIT;
	w.quiet = "no\n";
	assert_int_equal(w.b->ops->stop(w.b, name, &e), 0);
	assert_int_equal(fakekube_saw(&w.k, "DELETE " POD), 1);
	assert_non_null(strstr(w.said, "cannot be made idle"));
	assert_int_equal(w.b->ops->stop(w.b, name, &e), 0); /* gone: fine */
	world_close(&w);
}

static void all_that_a_role_lacks_is_said_at_once(void **state)
{
	static const struct fakekube_step steps[] = {
		{.request = REVIEW,
		 .body = "{\"status\":{\"allowed\":true}}",
		 .times = 3},
		{.request = REVIEW,
		 .body = "{\"status\":{\"allowed\":false}}",
		 .times = 1},
		{.request = REVIEW,
		 .body = "{\"status\":{\"allowed\":true}}",
		 .times = 2},
		{.request = REVIEW,
		 .body = "{\"status\":{\"allowed\":false}}",
		 .times = 1},
		{.request = REVIEW,
		 .body = "{\"status\":{\"allowed\":true}}",
		 .times = -1},
		{0}};
	struct err e = ERR_INIT;
	struct world w;

	(void)state;
	assert_int_equal(open_in(&w, steps, &e), -1);
	check_words(&e, ERR_DENIED,
		    "may not, in the namespace sbx: create pods, create pods/exec;");
	world_close(&w);
}

static void what_owns_nothing_any_more_goes_with_the_server(void **state)
{
	struct err e = ERR_INIT;
	bool existed;
	struct world w;

	(void)state;
	begin(&w);
	w.b->ops->close(w.b);
	assert_int_equal(fakekube_saw(&w.k, "DELETE " MAPS "/mcp-sandboxd-0123abcd"), 0);
	assert_int_equal(backend_find("kubernetes")
				 ->open(&w.conf, "0123abcd", on_progress, &w, &w.b, &e),
			 0);
	assert_int_equal(w.b->ops->remove(w.b, name, &existed, &e), 0);
	w.b->ops->close(w.b);
	w.b = NULL;
	assert_int_equal(fakekube_saw(&w.k, "DELETE " MAPS "/mcp-sandboxd-0123abcd"), 1);
	world_close(&w);
}

/* KUBERNETES_VOLUME_SIZE is not set (any more). */
static void the_owner_of_a_volume_stays(void **state)
{
	struct world w;

	(void)state;
	world_open(&w);
	w.claims = "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{\"metadata\":"
		   "{\"name\":\"mcp-sbx-a-01234567\"}}]}";
	w.b->ops->close(w.b);
	w.b = NULL;
	assert_int_equal(fakekube_saw(&w.k, "DELETE " MAPS), 0);
	world_close(&w);
}

static void an_owner_stays_when_claims_may_not_be_listed(void **state)
{
	struct world w;

	(void)state;
	world_open(&w);
	w.claims_code = 403;
	w.claims = FAKEKUBE_STATUS(403, "Forbidden", "no");
	w.b->ops->close(w.b);
	w.b = NULL;
	assert_int_equal(fakekube_saw(&w.k, "DELETE " MAPS), 0);
	world_close(&w);
}

static void a_close_asks_an_api_server_that_is_away_once(void **state)
{
	struct world w;
	int lists;

	(void)state;
	world_open(&w);
	lists = w.lists;
	w.is_away = true;
	w.b->ops->close(w.b);
	w.b = NULL;
	assert_int_equal(w.lists, lists + 1);
	assert_int_equal(fakekube_saw(&w.k, "DELETE " MAPS), 0);
	world_close(&w);
}

/* The cluster removes it when it has seen that its owner went. */
static void an_agent_of_an_owner_that_went_is_made_again(void **state)
{
	struct err e = ERR_INIT;
	struct world w;

	(void)state;
	world_open(&w);
	w.b->ops->close(w.b);
	assert_int_equal(fakekube_saw(&w.k, "POST " MAPS), 2);
	assert_int_equal(backend_find("kubernetes")
				 ->open(&w.conf, "0123abcd", on_progress, &w, &w.b, &e),
			 0);
	assert_int_equal(fakekube_saw(&w.k, "POST " MAPS), 4);
	assert_int_equal(fakekube_saw(&w.k, "DELETE " MAPS "/mcp-sandboxd-0123abcd-"), 1);
	world_close(&w);
}

static void agents_of_earlier_versions_go_unless_a_pod_has_them(void **state)
{
	static const char used[] = "mcp-sandboxd-0123abcd-amd64-aaaaaaaaaaaa";
	static const char unused[] = "mcp-sandboxd-0123abcd-amd64-bbbbbbbbbbbb";
	static const char strange[] = "mcp-sandboxd-0123abcd-amd64/../../x";
	struct err e = ERR_INIT;
	struct world w;

	(void)state;
	begin(&w);
	w.b->ops->close(w.b);
	pthread_mutex_lock(&w.k.lock);
	json_put(w.maps, used, parsed("{\"metadata\":{\"uid\":\"m1\"}}"));
	json_put(w.maps, unused, parsed("{\"metadata\":{\"uid\":\"m2\"}}"));
	json_put(w.maps, strange, parsed("{\"metadata\":{\"uid\":\"m3\"}}"));
	for (size_t i = 0; i < 3; i++) {
		const char *map = i == 0 ? used : i == 1 ? unused : strange;

		json_put(metadata_of(json_object_get(w.maps, map)), "name",
			 json_string(map));
	}
	json_put(json_object_get(w.pod, "spec"), "volumes",
		 json_must(json_pack("[{s:s},{s:{s:s}}]", "name", "x", "configMap",
				     "name", used)));
	pthread_mutex_unlock(&w.k.lock);
	if (backend_find("kubernetes")
		    ->open(&w.conf, "0123abcd", on_progress, &w, &w.b, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(fakekube_saw(&w.k, "DELETE " MAPS), 1);
	assert_non_null(json_object_get(w.maps, used));
	assert_null(json_object_get(w.maps, unused));
	assert_non_null(json_object_get(w.maps, strange));
	world_close(&w);
}

static void a_pod_that_runs_is_found_although_the_watch_is_silent(void **state)
{
	struct sandbox_info info = {0};
	struct err e = ERR_INIT;
	struct world w;

	(void)state;
	world_open(&w);
	kube_of(&w)->look_ms = 1;
	w.is_watch_silent = true;
	if (create(&w, true, &info, &e) < 0)
		fail_msg("%s", e.msg);
	assert_string_equal(info.container_id, "u1");
	sandbox_info_release(&info);
	world_close(&w);
}

/* arg when what it made is a fresh one. */
static void *create_it(void *arg)
{
	struct sandbox_info info = {0};
	struct err e = ERR_INIT;

	bool fresh;

	if (create(arg, false, &info, &e) < 0)
		fail_msg("%s", e.msg);
	fresh = info.fresh;
	sandbox_info_release(&info);
	return fresh ? arg : NULL;
}

/* Someone deleted it when it had just been looked for: the pod would wait for ever. */
static void an_agent_that_was_deleted_is_made_again_while_a_pod_waits(void **state)
{
	static const char *const waits[] = {"{\"phase\":\"Pending\"}", NULL};
	pthread_t thread;
	struct world w;

	(void)state;
	world_open(&w);
	kube_of(&w)->look_ms = 1;
	w.statuses = waits;
	assert_int_equal(pthread_create(&thread, NULL, create_it, &w), 0);
	fakekube_await(&w.k, "POST " PODS, 1);
	pthread_mutex_lock(&w.k.lock);
	json_object_clear(w.maps);
	pthread_mutex_unlock(&w.k.lock);
	fakekube_await(&w.k, "POST " MAPS, 4); /* two at the start */
	becomes(&w, RUNNING);
	pthread_join(thread, NULL);
	world_close(&w);
}

static void an_answer_about_another_pod_is_none(void **state)
{
	struct err e = ERR_INIT;
	struct world w;
	bool existed;

	(void)state;
	begin(&w);
	w.renamed = "../../../nodes/n1";
	assert_int_equal(w.b->ops->remove(w.b, name, &existed, &e), -1);
	check_words(&e, ERR_BACKEND, "answered with another pod");
	assert_int_equal(fakekube_saw(&w.k, "DELETE "), 0);
	w.renamed = NULL;
	world_close(&w);
}

static void a_pod_that_does_not_go_is_forced_and_then_said(void **state)
{
	struct err e = ERR_INIT;
	struct world w;
	bool existed;

	(void)state;
	begin(&w);
	kube_of(&w)->gone_ms = 2;
	w.has_finalizer = true;
	assert_int_equal(w.b->ops->remove(w.b, name, &existed, &e), -1);
	check_words(&e, ERR_TIMEOUT, "does it have a finalizer?");
	assert_int_equal(fakekube_saw(&w.k, "DELETE " POD), 2);
	assert_non_null(strstr(w.k.log.p, "\"gracePeriodSeconds\":0"));
	assert_non_null(strstr(w.said, "removed from the API server alone"));
	world_close(&w);
}

/* The cluster deletes what it owned, soon; what is made meanwhile is not of it. */
static void a_pod_of_an_owner_that_went_is_replaced_at_once(void **state)
{
	struct sandbox_info info = {0};
	struct err e = ERR_INIT;
	struct world w;

	(void)state;
	begin(&w);
	pthread_mutex_lock(&w.k.lock);
	json_object_clear(w.maps);
	pthread_mutex_unlock(&w.k.lock);
	if (create(&w, false, &info, &e) < 0)
		fail_msg("%s", e.msg);
	assert_true(info.fresh);
	assert_string_equal(info.container_id, "u2");
	assert_non_null(strstr(w.said, "is replaced: its owner was deleted"));
	assert_int_equal(fakekube_saw(&w.k, "POST " MAPS), 4);
	sandbox_info_release(&info);
	world_close(&w);
}

/* ---- with a volume */

static void begin_with_volume(struct world *w)
{
	setenv("KUBERNETES_VOLUME_SIZE", "1Gi", 1);
	begin(w);
	unsetenv("KUBERNETES_VOLUME_SIZE");
	assert_int_equal(w->claim_uids, 1);
}

static void a_volume_outlives_its_pod_and_that_is_told(void **state)
{
	struct sandbox_info info = {0};
	struct err e = ERR_INIT;
	struct world w;
	bool existed = false;
	int fd = -1;

	(void)state;
	begin_with_volume(&w);
	pthread_mutex_lock(&w.k.lock);
	vanish(&w);
	pthread_mutex_unlock(&w.k.lock);
	assert_int_equal(w.b->ops->connect(w.b, name, &fd, &e), -1);
	check_words(&e, ERR_CONFLICT, "of its files those in /workspace are kept");
	assert_int_equal(create(&w, false, &info, &e), 0);
	assert_false(info.fresh);
	assert_non_null(strstr(info.recreated, "/workspace is kept, everything else"));
	assert_int_equal(w.claim_uids, 1);
	assert_int_equal(w.b->ops->remove(w.b, name, &existed, &e), 0);
	assert_true(existed);
	/* one before the first was made, which was to be a fresh one */
	assert_int_equal(fakekube_saw(&w.k, "DELETE " CLAIMS), 2);
	sandbox_info_release(&info);
	world_close(&w);
}

/* Until the cluster says that the old one is gone, no new one is made. */
static void check_waits_for_the_claim(struct world *w)
{
	pthread_t thread;
	void *was_fresh = NULL;

	assert_int_equal(pthread_create(&thread, NULL, create_it, w), 0);
	pthread_mutex_lock(&w->k.lock);
	while (w->claim_watches == 0)
		pthread_cond_wait(&w->k.changed, &w->k.lock);
	assert_int_equal(w->claim_uids, 1);
	claim_goes(w);
	pthread_mutex_unlock(&w->k.lock);
	pthread_join(thread, &was_fresh);
	assert_non_null(was_fresh);
	assert_int_equal(w->claim_uids, 2);
}

static void a_volume_that_was_deleted_is_waited_for_and_made_anew(void **state)
{
	struct world w;

	(void)state;
	begin_with_volume(&w);
	pthread_mutex_lock(&w.k.lock);
	vanish(&w);
	json_put(metadata_of(w.claim), "deletionTimestamp",
		 json_string("2026-01-01T00:00:00Z"));
	pthread_mutex_unlock(&w.k.lock);
	check_waits_for_the_claim(&w);
	world_close(&w);
}

/* The owner was deleted: the cluster will remove the volume, at a time of its own. */
static void a_volume_of_an_owner_that_went_is_made_anew(void **state)
{
	struct world w;

	(void)state;
	begin_with_volume(&w);
	pthread_mutex_lock(&w.k.lock);
	vanish(&w);
	json_put(json_array_get(json_object_get(metadata_of(w.claim), "ownerReferences"),
				0),
		 "uid", json_string("earlier"));
	pthread_mutex_unlock(&w.k.lock);
	check_waits_for_the_claim(&w);
	assert_int_equal(fakekube_saw(&w.k, "DELETE " CLAIMS), 2);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pod_is_made_reached_and_removed),
		cmocka_unit_test(
			what_keeps_a_pod_from_running_is_told_and_the_pod_removed),
		cmocka_unit_test(an_image_that_does_not_come_in_time_is_told),
		cmocka_unit_test(a_pod_whose_making_was_not_answered_is_found_again),
		cmocka_unit_test(a_container_that_was_started_again_has_lost_what_ran),
		cmocka_unit_test(an_evicted_pod_is_replaced_by_a_fresh_one),
		cmocka_unit_test(a_deleted_pod_is_told),
		cmocka_unit_test(a_pod_of_another_policy_is_replaced),
		cmocka_unit_test(another_servers_pod_of_that_name_is_left_alone),
		cmocka_unit_test(an_api_server_that_is_away_says_nothing_about_a_sandbox),
		cmocka_unit_test(a_node_that_is_away_is_the_clusters_to_give_up),
		cmocka_unit_test(a_stop_makes_a_pod_idle_or_deletes_it),
		cmocka_unit_test(all_that_a_role_lacks_is_said_at_once),
		cmocka_unit_test(what_owns_nothing_any_more_goes_with_the_server),
		cmocka_unit_test(the_owner_of_a_volume_stays),
		cmocka_unit_test(an_owner_stays_when_claims_may_not_be_listed),
		cmocka_unit_test(a_close_asks_an_api_server_that_is_away_once),
		cmocka_unit_test(an_agent_of_an_owner_that_went_is_made_again),
		cmocka_unit_test(agents_of_earlier_versions_go_unless_a_pod_has_them),
		cmocka_unit_test(a_pod_that_runs_is_found_although_the_watch_is_silent),
		cmocka_unit_test(
			an_agent_that_was_deleted_is_made_again_while_a_pod_waits),
		cmocka_unit_test(an_answer_about_another_pod_is_none),
		cmocka_unit_test(a_pod_of_an_owner_that_went_is_replaced_at_once),
		cmocka_unit_test(a_pod_that_does_not_go_is_forced_and_then_said),
		cmocka_unit_test(a_volume_outlives_its_pod_and_that_is_told),
		cmocka_unit_test(a_volume_that_was_deleted_is_waited_for_and_made_anew),
		cmocka_unit_test(a_volume_of_an_owner_that_went_is_made_anew),
	};

	const char elf[20] = "\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0\76"; /* of amd64 */
	int fd, rc;

	test_file(agent_path, sizeof agent_path, "agent");
	fd = open(agent_path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, elf, sizeof elf) != sizeof elf)
		return 1;
	close(fd);
	signal(SIGPIPE, SIG_IGN); /* as the runner has it */
	cmocka_set_message_output(CM_OUTPUT_TAP);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(agent_path);
	return rc;
}
