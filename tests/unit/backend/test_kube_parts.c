/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend/kubernetes/elfarch.h"
#include "backend/kubernetes/pods/jsonmerge.h"
#include "backend/kubernetes/pods/podspec.h"
#include "backend/kubernetes/pods/podstate.h"
#include "backend/kubernetes/pods/podwait.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "tests/unit/testdir.h"

/* JSON with ' for ", so that it can be read here. */
static json_t *json_of(const char *text)
{
	AUTO_FREE char *copy = xstrdup(text);
	struct err e = ERR_INIT;
	json_t *root = NULL;
	char *c;

	for (c = copy; *c; c++)
		if (*c == '\'')
			*c = '"';
	if (json_parse(copy, strlen(copy), &root, &e) < 0)
		fail_msg("%s: %s", e.msg, copy);
	return root;
}

/* ---- merging */

static const struct {
	const char *base, *over, *result;
} merges[] = {
	{"{'a':1,'b':{'c':2,'d':3}}", "{'b':{'c':4}}", "{'a':1,'b':{'c':4,'d':3}}"},
	{"{'a':1,'b':2}", "{'b':null}", "{'a':1}"},
	{"{'a':{'b':1}}", "{'a':'x'}", "{'a':'x'}"},
	{"{'a':'x'}", "{'a':{'b':1,'c':null}}", "{'a':{'b':1}}"},
	{"{'args':['a','b']}", "{'args':['c']}", "{'args':['c']}"},
	{"{'containers':[{'name':'a','image':'x'}]}",
	 "{'containers':[{'name':'b'},{'name':'a','tty':true}]}",
	 "{'containers':[{'name':'a','image':'x','tty':true},{'name':'b'}]}"},
	{"{'volumeMounts':[{'mountPath':'/tmp','name':'x'}]}",
	 "{'volumeMounts':[{'mountPath':'/tmp','name':'y'},{'mountPath':'/z'}]}",
	 "{'volumeMounts':[{'mountPath':'/tmp','name':'y'},{'mountPath':'/z'}]}"},
	{"{'tolerations':[{'key':'a'}]}", "{'tolerations':[{'key':'b'}]}",
	 "{'tolerations':[{'key':'a'},{'key':'b'}]}"},
	{"{'containers':[{'name':'a'}]}", "{'containers':['b',{'image':'x'}]}",
	 "{'containers':[{'name':'a'},'b',{'image':'x'}]}"},
};

static void one_description_is_laid_over_another(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof merges / sizeof *merges; i++) {
		AUTO_JSON *base = json_of(merges[i].base);
		AUTO_JSON *over = json_of(merges[i].over);
		AUTO_JSON *want = json_of(merges[i].result);
		AUTO_JSON *base_before = json_deep_copy(base);
		AUTO_JSON *got = jsonmerge(base, over);

		if (!json_equal(got, want))
			fail_msg("%s over %s", merges[i].over, merges[i].base);
		assert_true(json_equal(base, base_before));
	}
}

/* ---- what a pod is at */

#define POD(rest)    "{'metadata':{'name':'mcp-sbx-a','uid':'u1'}," rest "}"
#define STATUS(rest) POD("'status':{" rest "}")
#define CONTAINER(state)                                                                 \
	STATUS("'phase':'Running','containerStatuses':[{'name':'other','state':{"        \
	       "'waiting':{'reason':'InvalidImageName'}}},{'name':'sandbox',"            \
	       "'restartCount':3,'ready':true," state "}]")
#define WAITS(reason, message)                                                           \
	CONTAINER("'state':{'waiting':{'reason':'" reason "','message':'" message "'}}")

static const struct {
	const char *pod;
	enum podstate state;
	const char *words; /* part of them; "" : there are none */
} states[] = {
	{STATUS("'phase':'Pending'"), PODSTATE_WAITING, "no scheduler has looked"},
	{POD("'spec':{'nodeName':'n'},'status':{}"), PODSTATE_WAITING, ""},
	{STATUS("'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False',"
		"'reason':'Unschedulable','message':'0/1 nodes: 1 Insufficient cpu.'}]"),
	 PODSTATE_UNSCHEDULABLE, "Unschedulable: 0/1 nodes: 1 Insufficient cpu."},
	{STATUS("'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False',"
		"'reason':'SchedulingGated','message':'gated'}]"),
	 PODSTATE_WAITING, "SchedulingGated: gated"},
	{WAITS("ContainerCreating", ""), PODSTATE_WAITING, "ContainerCreating"},
	{WAITS("ErrImagePull", "not found"), PODSTATE_NO_IMAGE,
	 "ErrImagePull: not found"},
	{WAITS("ImagePullBackOff", "Back-off"), PODSTATE_NO_IMAGE, "Back-off"},
	{WAITS("InvalidImageName", "bad"), PODSTATE_BROKEN, "InvalidImageName: bad"},
	{WAITS("ErrImageNeverPull", "x"), PODSTATE_BROKEN, "x"},
	{WAITS("CreateContainerConfigError", "secret"), PODSTATE_BROKEN, "secret"},
	{WAITS("RunContainerError", "permission denied"), PODSTATE_BROKEN, "denied"},
	{CONTAINER("'state':{'waiting':{'reason':'CrashLoopBackOff'}},'lastState':{"
		   "'terminated':{'reason':'OOMKilled','exitCode':137}}"),
	 PODSTATE_CRASHED, "its container ended (OOMKilled, exit code 137)"},
	{CONTAINER("'state':{'terminated':{'reason':'Error','exitCode':2,"
		   "'message':'line\\nbreak'}}"),
	 PODSTATE_CRASHED, "(Error, exit code 2): line break"},
	{CONTAINER("'state':{'running':{'startedAt':'x'}},'lastState':{}"),
	 PODSTATE_RUNNING, ""},
	{CONTAINER("'state':{'running':{}},'lastState':{'terminated':{'reason':"
		   "'OOMKilled','exitCode':137}}"),
	 PODSTATE_RUNNING, "its container was started again (OOMKilled, exit code 137)"},
	{STATUS("'phase':'Failed','reason':'Evicted','message':'Pod ephemeral storage'"),
	 PODSTATE_ENDED, "Evicted: Pod ephemeral storage"},
	{STATUS("'phase':'Failed','containerStatuses':[{'name':'sandbox','state':{"
		"'terminated':{'reason':'OOMKilled','exitCode':137}}}]"),
	 PODSTATE_ENDED, "its container ended (OOMKilled, exit code 137)"},
	{"{'metadata':{'name':'x','uid':'u','deletionTimestamp':'2026'},'status':{"
	 "'phase':'Succeeded'}}",
	 PODSTATE_LEAVING, "its pod was deleted in the cluster"},
	{CONTAINER("'state':{'terminated':{'reason':'OOMKilled','exitCode':0}}"),
	 PODSTATE_CRASHED, "its container ended (Completed, exit code 0)"},
	{STATUS("'phase':'Succeeded'"), PODSTATE_ENDED, ""},
	{"{'metadata':{'name':'x','uid':'u','deletionTimestamp':'2026'},'status':{"
	 "'phase':'Running','conditions':[{'type':'DisruptionTarget','status':'True',"
	 "'reason':'DeletionByTaintManager','message':'taint'}]}}",
	 PODSTATE_LEAVING, "DeletionByTaintManager: taint"},
	{STATUS("'phase':'Pending','initContainerStatuses':[{'name':'i','state':{"
		"'terminated':{'exitCode':0}}},{'name':'j','state':{'waiting':{"
		"'reason':'ImagePullBackOff','message':'no j'}}}]"),
	 PODSTATE_NO_IMAGE, "no j"},
	{POD("'status':7"), PODSTATE_WAITING, "no scheduler"},
	{STATUS("'containerStatuses':[7,{'name':'sandbox','state':[]}]"),
	 PODSTATE_WAITING, ""},
};

static const struct pod_reading reading = {.label_prefix = "mcp.",
					   .container = "sandbox"};

static void a_pods_state_is_read_with_the_clusters_words(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof states / sizeof *states; i++) {
		AUTO_JSON *root = json_of(states[i].pod);
		struct err e = ERR_INIT;
		AUTO_POD p = {0};

		assert_int_equal(pod_parse(root, &reading, &p, &e), 0);
		if (p.state != states[i].state || !strstr(p.words, states[i].words) ||
		    (!*states[i].words && *p.words))
			fail_msg("%s: %d, %s", states[i].pod, (int)p.state, p.words);
	}
}

static void a_pods_names_and_counts_are_read(void **state)
{
	AUTO_JSON *root = json_of(
		"{'metadata':{'name':'x','uid':'u','labels':{'mcp.instance':'0a'},"
		"'annotations':{'mcp.policy_fingerprint':'fp'}},'spec':{'nodeName':'n1',"
		"'containers':[{'name':'side','image':'s'},{'name':'sandbox','image':'i'"
		"}]},'status':{'phase':'Running','conditions':[{'type':'Ready','status':"
		"'False'}],'containerStatuses':[{'name':'sandbox','restartCount':2,"
		"'ready':true,'state':{'running':{}}}]}}");
	struct err e = ERR_INIT;
	AUTO_POD p = {0};

	(void)state;
	assert_int_equal(pod_parse(root, &reading, &p, &e), 0);
	assert_string_equal(p.instance, "0a");
	assert_string_equal(p.fingerprint, "fp");
	assert_string_equal(p.node, "n1");
	assert_string_equal(p.image, "i");
	assert_int_equal(p.restarts, 2);
	assert_true(p.is_unreachable);
}

static void what_is_no_pod_is_refused(void **state)
{
	static const char *const bad[] = {"[]", "{}", "{'metadata':{'name':'x'}}",
					  "{'metadata':{'name':'','uid':'u'}}",
					  "{'metadata':{'name':'x','uid':7}}"};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		AUTO_JSON *root = json_of(bad[i]);
		struct err e = ERR_INIT;
		AUTO_POD p = {0};

		assert_int_equal(pod_parse(root, &reading, &p, &e), -1);
		assert_int_equal(e.kind, ERR_BACKEND);
	}
}

static void long_words_are_cut_where_a_character_ends(void **state)
{
	AUTO_BUF text = BUF_INIT(8192);
	AUTO_JSON *root = NULL;
	struct err e = ERR_INIT;
	AUTO_POD p = {0};
	int i;

	(void)state;
	buf_puts(&text, "{'metadata':{'name':'x','uid':'u'},'status':{'phase':'Failed',"
			"'reason':'R','message':'");
	for (i = 0; i < 1000; i++)
		buf_puts(&text, "\xc3\xa4");
	buf_puts(&text, "'}}");
	root = json_of(text.p);
	assert_int_equal(pod_parse(root, &reading, &p, &e), 0);
	assert_int_equal(strlen(p.words), 399); /* "R: ", and no half of a letter */
}

/* ---- how long a pod is waited for */

#define W PODSTATE_WAITING
#define U PODSTATE_UNSCHEDULABLE
#define I PODSTATE_NO_IMAGE

static const struct {
	const char *what;
	bool is_new;
	struct {
		int64_t at;
		enum podstate state;
	} seen[5]; /* the last one gives the verdict */
	size_t n;
	enum podwait_verdict verdict;
	int64_t left;
	const char *words;
} waits[] = {
	{"a start", true, {{1000, W}}, 1, PODWAIT_MORE, 100000, ""},
	{"too late",
	 true,
	 {{1000, W}, {101000, W}},
	 2,
	 PODWAIT_FAILED,
	 0,
	 "within 100 s"},
	{"it runs", true, {{1000, W}, {2000, PODSTATE_RUNNING}}, 2, PODWAIT_RUNS, 0, ""},
	{"no node yet", true, {{1000, U}, {30999, U}}, 2, PODWAIT_MORE, 1, ""},
	{"no node", true, {{1000, U}, {31000, U}}, 2, PODWAIT_FAILED, 0, "no node of"},
	{"a node came and went",
	 true,
	 {{1000, U}, {30000, W}, {32000, U}, {40000, U}},
	 4,
	 PODWAIT_MORE,
	 22000,
	 ""},
	{"a registry blinks", true, {{1000, I}, {5000, W}}, 2, PODWAIT_MORE, 96000, ""},
	{"no image",
	 true,
	 {{1000, I}, {11000, W}, {21000, I}},
	 3,
	 PODWAIT_FAILED,
	 0,
	 "cannot be pulled: because"},
	{"broken", true, {{1000, PODSTATE_BROKEN}}, 1, PODWAIT_FAILED, 0, "cannot start"},
	{"ended", false, {{1000, PODSTATE_ENDED}}, 1, PODWAIT_FAILED, 0, "pod ended"},
	{"deleted",
	 false,
	 {{1000, PODSTATE_LEAVING}},
	 1,
	 PODWAIT_FAILED,
	 0,
	 "by someone"},
	{"a new one falls over",
	 true,
	 {{1000, PODSTATE_CRASHED}},
	 1,
	 PODWAIT_FAILED,
	 0,
	 "does not stay up: because"},
	{"an old one comes again",
	 false,
	 {{1000, PODSTATE_CRASHED}},
	 1,
	 PODWAIT_MORE,
	 100000,
	 ""},
	{"an old one does not",
	 false,
	 {{1000, PODSTATE_CRASHED}, {101000, PODSTATE_CRASHED}},
	 2,
	 PODWAIT_FAILED,
	 0,
	 "within 100 s"},
};

static void a_pod_is_waited_for_as_long_as_there_is_sense_in_it(void **state)
{
	size_t i, j;

	(void)state;
	for (i = 0; i < sizeof waits / sizeof *waits; i++) {
		struct podwait w = {.start_ms = 100000,
				    .unschedulable_ms = 30000,
				    .is_new = waits[i].is_new};
		enum podwait_verdict v = PODWAIT_MORE;
		struct err e = ERR_INIT;
		int64_t left = 0;

		for (j = 0; j < waits[i].n; j++) {
			struct pod p = {.state = waits[i].seen[j].state,
					.words = (char *)(uintptr_t) "because"};

			assert_int_equal(v, PODWAIT_MORE);
			v = podwait_judge(&w, &p, waits[i].seen[j].at, &left, &e);
		}
		if (v != waits[i].verdict || (v == PODWAIT_MORE && left != waits[i].left))
			fail_msg("%s: %d, %lld ms left", waits[i].what, (int)v,
				 (long long)left);
		if (!strstr(e.msg, waits[i].words))
			fail_msg("%s: %s", waits[i].what, e.msg);
	}
}

/* ---- what a pod is made of */

static char template_path[64];

static void load_conf(struct conf *c)
{
	struct err e = ERR_INIT;

	if (conf_load(NULL, c, &e) < 0)
		fail_msg("%s", e.msg);
}

static json_t *make_pod(const struct conf *c, struct podspec *s)
{
	const struct sandbox_spec spec = {.name = "mcp-sbx-a-01234567",
					  .identifier = "Ä long/identifier",
					  .tenant = "t",
					  .cpu_cores = 1.5,
					  .memory_mb = 512,
					  .created_at_ms = 1,
					  .expires_at_ms = 2};
	const struct podspec_args args = {.spec = &spec,
					  .arch = "arm64",
					  .agent_map = "map",
					  .owner_name = "owner",
					  .owner_uid = "owner-uid"};
	struct err e = ERR_INIT;

	if (podspec_open(s, c, "0123abcd", &e) < 0)
		fail_msg("%s", e.msg);
	return podspec_pod(s, &args);
}

/* What all pods must have, whatever settings and templates say. */
static const char must[] =
	"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'mcp-sbx-a-01234567',"
	"'labels':{'mcp.role':'sandbox','mcp.instance':'0123abcd','mcp.network':'bridge',"
	"'app.kubernetes.io/managed-by':'mcp-sandboxd'},'annotations':{'mcp.identifier':"
	"'Ä long/identifier','mcp.tenant':'t'},'ownerReferences':[{'apiVersion':'v1',"
	"'kind':'ConfigMap','name':'owner','uid':'owner-uid'}]},'spec':{'restartPolicy':"
	"'Always','automountServiceAccountToken':false,'enableServiceLinks':false,"
	"'hostNetwork':false,'hostPID':false,'hostIPC':false,'shareProcessNamespace':"
	"false,'terminationGracePeriodSeconds':2,'nodeSelector':{'kubernetes.io/arch':"
	"'arm64','kubernetes.io/os':'linux'},'containers':[{'name':'sandbox','image':"
	"'mcp-sandbox:latest','command':['/.mcp-sandboxd/bin/agent','init','--socket',"
	"'/.mcp-sandboxd/run/"
	"socket','--own-folders'],'securityContext':{'privileged':false,'runAsUser':"
	"0,'runAsGroup':0,'runAsNonRoot':false,'allowPrivilegeEscalation':false,"
	"'readOnlyRootFilesystem':false,'capabilities':{'drop':['ALL'],'add':['CHOWN',"
	"'DAC_OVERRIDE','FOWNER','KILL','SETGID','SETUID']},'seccompProfile':{'type':"
	"'RuntimeDefault'}},'resources':{'limits':{'cpu':'1500m','memory':'512Mi'}}}]}}";

/* Every member of want is in got; lists are compared item by item from the front. */
static void check_has(const json_t *got, const json_t *want, const char *where)
{
	const char *key;
	json_t *value;
	size_t i;

	if (json_is_object(want)) {
		json_object_foreach((json_t *)(uintptr_t)want, key, value)
			check_has(json_object_get(got, key), value, key);
	} else if (json_is_array(want) && json_is_object(json_array_get(want, 0))) {
		json_array_foreach(want, i, value)
			check_has(json_array_get(got, i), value, where);
	} else if (!json_equal(got, want)) {
		AUTO_FREE char *text = json_dumps(got, JSON_ENCODE_ANY);

		fail_msg("%s: %s", where, text ? text : "is missing");
	}
}

static void a_pod_is_what_the_settings_say_and_closed(void **state)
{
	AUTO_JSON *want = json_of(must), *pod = NULL, *requests = NULL;
	struct podspec s;
	struct conf c;

	(void)state;
	load_conf(&c);
	pod = make_pod(&c, &s);
	check_has(pod, want, "");
	requests =
		json_of("{'spec':{'containers':[{'imagePullPolicy':'IfNotPresent',"
			"'resources':{'requests':{'cpu':'375m','memory':'512Mi'}}}]}}");
	check_has(pod, requests, "");
	podspec_close(&s);
	conf_release(&c);
}

static void settings_of_the_cluster_are_in_the_pod(void **state)
{
	AUTO_JSON *want = json_of(
		"{'metadata':{'labels':{'example.org/role':'sandbox','example.org/"
		"network'"
		":'none'}},'spec':{'nodeSelector':{'a':'b','c/d':'','kubernetes.io/arch':"
		"'arm64'},'tolerations':[{'key':'k','operator':'Equal','value':'v','"
		"effect'"
		":'NoSchedule'},{'key':'l','operator':'Exists','effect':'NoExecute'}],"
		"'imagePullSecrets':[{'name':'s1'},{'name':'s2'}],'priorityClassName':'"
		"low'"
		",'runtimeClassName':'gvisor','securityContext':{'fsGroup':1000},"
		"'containers':[{'name':'box','image':'r.example/i:1','securityContext':{"
		"'allowPrivilegeEscalation':true,'readOnlyRootFilesystem':true},"
		"'resources':{'limits':{'ephemeral-storage':'1000Mi'},'requests':{"
		"'ephemeral-storage':'100Mi','cpu':'1500m','memory':'256Mi'}}}]}}");
	static const char *const env[][2] = {
		{"SANDBOX_IMAGE", "r.example/i:1"},
		{"SANDBOX_BACKEND", "kubernetes"},
		{"SANDBOX_RUNTIME", "gvisor"},
		{"SANDBOX_DISK_MB", "1000"},
		{"SANDBOX_READ_ONLY", "true"},
		{"SANDBOX_NETWORK_MODE", "none"},
		{"SANDBOX_NO_NEW_PRIVILEGES", "false"},
		{"KUBERNETES_SANDBOX_CONTAINER_NAME", "box"},
		{"KUBERNETES_LABEL_PREFIX", "example.org/"},
		{"KUBERNETES_NODE_SELECTOR", "a=b, c/d="},
		{"KUBERNETES_TOLERATIONS", "k=v:NoSchedule,l:NoExecute"},
		{"KUBERNETES_IMAGE_PULL_SECRETS", "s1,s2"},
		{"KUBERNETES_PRIORITY_CLASS", "low"},
		{"KUBERNETES_VOLUME_SIZE", "1Gi"},
		{"KUBERNETES_CPU_REQUEST_PERCENT", "100"},
		{"KUBERNETES_MEMORY_REQUEST_PERCENT", "50"},
	};
	AUTO_JSON *pod = NULL;
	struct podspec s;
	struct conf c;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof env / sizeof *env; i++)
		setenv(env[i][0], env[i][1], 1);
	load_conf(&c);
	pod = make_pod(&c, &s);
	check_has(pod, want, "");
	podspec_close(&s);
	conf_release(&c);
	for (i = 0; i < sizeof env / sizeof *env; i++)
		unsetenv(env[i][0]);
}

static void write_template(const char *text)
{
	FILE *f = fopen(template_path, "we");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	setenv("KUBERNETES_POD_TEMPLATE", template_path, 1);
}

/* It asks for all that it must not have, and for some that it may. */
static const char greedy[] =
	"metadata:\n"
	"  name: other\n"
	"  namespace: kube-system\n"
	"  labels: {team: a, mcp.instance: stolen}\n"
	"spec:\n"
	"  hostNetwork: true\n"
	"  hostPID: true\n"
	"  automountServiceAccountToken: true\n"
	"  restartPolicy: Never\n"
	"  nodeSelector: {kubernetes.io/arch: amd64, disk: ssd}\n"
	"  hostUsers: false\n"
	"  containers:\n"
	"  - name: sandbox\n"
	"    image: evil\n"
	"    command: [sh]\n"
	"    args: [-c, evil]\n"
	"    env: [{name: A, value: b}]\n"
	"    livenessProbe: {exec: {command: [x]}}\n"
	"    securityContext: {privileged: true, runAsUser: 7, procMount: Unmasked,\n"
	"      capabilities: {add: [SYS_ADMIN]}, allowPrivilegeEscalation: true}\n"
	"    resources: {limits: {cpu: '99', example.com/gpu: 1},"
	" requests: {cpu: 100m}}\n"
	"    volumeMounts: [{name: cache, mountPath: /cache},"
	" {name: cache, mountPath: /tmp}]\n"
	"  - name: side\n"
	"    image: side:1\n"
	"  volumes: [{name: cache, emptyDir: {}}]\n";

static void a_template_adds_and_cannot_loosen(void **state)
{
	AUTO_JSON *want = json_of(must), *pod = NULL;
	AUTO_JSON *added = json_of(
		"{'metadata':{'labels':{'team':'a'}},'spec':{'hostUsers':false,"
		"'nodeSelector':{'disk':'ssd'},'containers':[{'env':[{'name':'A'}],"
		"'resources':{'limits':{'example.com/gpu':1},'requests':{'cpu':'100m'}},"
		"'volumeMounts':[{'mountPath':'/cache','name':'cache'},{'mountPath':"
		"'/tmp','name':'mcp-tmp'}]},{'name':'side'}],'volumes':[{'name':"
		"'cache'}]}}");
	const json_t *ours;
	struct podspec s;
	struct conf c;

	(void)state;
	write_template(greedy);
	load_conf(&c);
	pod = make_pod(&c, &s);
	check_has(pod, want, "");
	check_has(pod, added, "");
	assert_null(json_object_get(json_object_get(pod, "metadata"), "namespace"));
	ours = json_array_get(json_object_get(json_object_get(pod, "spec"), "containers"),
			      0);
	assert_null(json_object_get(ours, "args"));
	assert_null(json_object_get(ours, "livenessProbe"));
	assert_null(
		json_object_get(json_object_get(ours, "securityContext"), "procMount"));
	podspec_close(&s);
	conf_release(&c);
	unsetenv("KUBERNETES_POD_TEMPLATE");
}

static void a_template_that_is_none_is_refused(void **state)
{
	struct err e = ERR_INIT;
	struct podspec s;
	struct conf c;

	(void)state;
	write_template("kind: Pod\n");
	load_conf(&c);
	assert_int_equal(podspec_open(&s, &c, "0123abcd", &e), -1);
	assert_non_null(strstr(e.msg, "must have a spec"));
	conf_release(&c);
	setenv("KUBERNETES_POD_TEMPLATE", "/nowhere/x.yaml", 1);
	load_conf(&c);
	e = (struct err)ERR_INIT;
	assert_int_equal(podspec_open(&s, &c, "0123abcd", &e), -1);
	assert_non_null(strstr(e.msg, "KUBERNETES_POD_TEMPLATE=/nowhere/x.yaml"));
	conf_release(&c);
	unsetenv("KUBERNETES_POD_TEMPLATE");
}

static char *fingerprint_with(const char *name, const char *value)
{
	struct err e = ERR_INIT;
	struct podspec s;
	struct conf c;
	char *f;

	if (name)
		setenv(name, value, 1);
	load_conf(&c);
	assert_int_equal(podspec_open(&s, &c, "0123abcd", &e), 0);
	f = xstrdup(s.fingerprint);
	podspec_close(&s);
	conf_release(&c);
	if (name)
		unsetenv(name);
	return f;
}

static void the_fingerprint_is_of_what_a_sandbox_may_do(void **state)
{
	static const struct {
		const char *name, *value;
		bool counts;
	} all[] = {
		{"SANDBOX_CAP_ADD", "CHOWN", true},
		{"SANDBOX_NO_NEW_PRIVILEGES", "false", true},
		{"SANDBOX_RUNTIME", "gvisor", true},
		{"SANDBOX_NETWORK_MODE", "none", true},
		{"SANDBOX_READ_ONLY", "true", true},
		{"SANDBOX_DISK_MB", "5", true},
		{"KUBERNETES_POD_TEMPLATE", template_path, true},
		{"KUBERNETES_NODE_SELECTOR", "a=b", false},
		{"SANDBOX_IMAGE", "other", false},
	};
	AUTO_FREE char *plain = fingerprint_with(NULL, NULL);
	size_t i;

	(void)state;
	write_template("spec: {hostUsers: false}\n");
	unsetenv("KUBERNETES_POD_TEMPLATE");
	for (i = 0; i < sizeof all / sizeof *all; i++) {
		AUTO_FREE char *f = fingerprint_with(all[i].name, all[i].value);

		if ((strcmp(f, plain) != 0) != all[i].counts)
			fail_msg("%s", all[i].name);
	}
}

static void a_claim_is_named_and_owned_as_its_pod(void **state)
{
	AUTO_JSON *want = json_of(
		"{'kind':'PersistentVolumeClaim','metadata':{'name':'mcp-sbx-a-0',"
		"'labels':{'mcp.role':'sandbox'},'ownerReferences':[{'uid':'owner-uid'}]}"
		","
		"'spec':{'accessModes':['ReadWriteOnce'],'storageClassName':'fast',"
		"'resources':{'requests':{'storage':'10Gi'}}}}");
	const struct sandbox_spec spec = {
		.name = "mcp-sbx-a-0", .identifier = "a", .tenant = "t"};
	AUTO_JSON *claim = NULL;
	struct err e = ERR_INIT;
	struct podspec s;
	struct conf c;

	(void)state;
	setenv("KUBERNETES_VOLUME_SIZE", "10Gi", 1);
	setenv("KUBERNETES_STORAGE_CLASS", "fast", 1);
	load_conf(&c);
	assert_int_equal(podspec_open(&s, &c, "0123abcd", &e), 0);
	claim = podspec_claim(&s, &(struct podspec_args){.spec = &spec,
							 .owner_name = "owner",
							 .owner_uid = "owner-uid"});
	check_has(claim, want, "");
	podspec_close(&s);
	conf_release(&c);
	unsetenv("KUBERNETES_VOLUME_SIZE");
	unsetenv("KUBERNETES_STORAGE_CLASS");
}

static void a_programs_architecture_is_in_its_head(void **state)
{
	char elf[20] = "\177ELF\2\1\1";

	(void)state;
	elf[18] = 62;
	assert_string_equal(elfarch(elf, sizeof elf), "amd64");
	elf[18] = (char)183;
	assert_string_equal(elfarch(elf, sizeof elf), "arm64");
	assert_null(elfarch(elf, 19));
	elf[18] = 40;
	assert_null(elfarch(elf, sizeof elf));
	assert_null(elfarch("#!/bin/sh; and more", 19));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_description_is_laid_over_another),
		cmocka_unit_test(a_pods_state_is_read_with_the_clusters_words),
		cmocka_unit_test(a_pods_names_and_counts_are_read),
		cmocka_unit_test(what_is_no_pod_is_refused),
		cmocka_unit_test(long_words_are_cut_where_a_character_ends),
		cmocka_unit_test(a_pod_is_waited_for_as_long_as_there_is_sense_in_it),
		cmocka_unit_test(a_pod_is_what_the_settings_say_and_closed),
		cmocka_unit_test(settings_of_the_cluster_are_in_the_pod),
		cmocka_unit_test(a_template_adds_and_cannot_loosen),
		cmocka_unit_test(a_template_that_is_none_is_refused),
		cmocka_unit_test(the_fingerprint_is_of_what_a_sandbox_may_do),
		cmocka_unit_test(a_claim_is_named_and_owned_as_its_pod),
		cmocka_unit_test(a_programs_architecture_is_in_its_head),
	};
	int rc;

	test_file(template_path, sizeof template_path, "template");
	cmocka_set_message_output(CM_OUTPUT_TAP);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(template_path);
	return rc;
}
