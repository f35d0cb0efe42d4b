// SPDX-License-Identifier: MIT
// Attacks on a running cluster: what a hostile sandbox can reach and tell, what people and
// faults take away under load, and what is left of /workspace with a volume.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { Server, run, until } from "./rig.mjs";
import { Cluster, checkLeft, namespace } from "./with-kubernetes.mjs";

let cluster, server, client;

before(async () => {
	cluster = await Cluster.start();
	// Many pods at once on a slow machine take their time.
	server = await Server.start({ ...cluster.env, KUBERNETES_START_SECONDS: "1800" });
	client = await server.connect();
});
after(async () => {
	try {
		await client?.close();
		await server?.stop();
		if (cluster) await checkLeft(cluster);
	} finally {
		await cluster?.stop();
	}
});

const kubectl = (...args) => cluster.kubectl("-n", namespace, ...args);
const pod = (name) => cluster.json("-n", namespace, "get", "pod", name);
const one = async (id, shell, c = client) => (await run(c, id, [{ shell, allow_failure: true }])).final.commands[0];

const pods = async (s = server) => (await cluster.json("-n", namespace, "get", "pods", "-l", `mcp.instance=${s.instance}`)).items;
const remove = (id, c = client) => c.callTool({ name: "delete_sandbox", arguments: { identifier: id } });
// The words of a run that failed, or of a call that was refused.
const words = (id, c = client) => run(c, id, ["true"]).then((r) => r.final?.error ?? JSON.stringify(r), (e) => e.message);
const seconds = (n) => new Promise((r) => setTimeout(r, n * 1000));

async function background(id, shell, s = server, c = client) {
	const r = await run(c, id, [shell], { await_completion: false });
	await until("start", 120000, async () => (await s.run_status(r.run_id)).commands[0].stdout_bytes > 0);
	return r.run_id;
}

// A server of its own for one test; its sandboxes go with it.
async function withServer(env, work) {
	const s = await Server.start({ ...cluster.env, ...env });
	try {
		const c = await s.connect();
		await work(s, c);
		await c.close();
	} finally {
		await s.stop();
		kubectl("delete", "configmap,pods,persistentvolumeclaims", "-l", `mcp.instance=${s.instance}`);
	}
}

// Prints 1..N slowly enough to be caught in the middle, and counts its own starts.
const counting = (n) => `echo x >>/workspace/starts; for i in $(seq ${n}); do echo $i; sleep 0.1; done`;
const counted = (n) => Array.from({ length: n }, (_, i) => `${i + 1}\n`).join("");

async function assertOnce(id, runId, n) {
	const final = await server.ended(runId, 300000);
	assert.equal(final.state, "completed", JSON.stringify(final));
	assert.equal(final.commands[0].stdout, counted(n));
	assert.equal((await one(id, "cat /workspace/starts")).stdout, "x\n");
}

// ---- from inside a sandbox

test("a sandbox has no token, no path of the node, and a folder of the agent that it cannot use", async () => {
	const tried = await one("inside", `
		ls /var/run/secrets /run/secrets 2>&1 | grep -c 'cannot access'
		for f in /.mcp-sandboxd/bin/x /.mcp-sandboxd/bin/agent /.mcp-sandboxd/run/x /proc/1/fd/1 /proc/1/mem /proc/sysrq-trigger /sys/kernel/x; do
			(echo x >$f) 2>/dev/null && echo wrote $f
		done
		ln -sfn /workspace /.mcp-sandboxd/bin/..data 2>/dev/null && echo swapped
		ls /.mcp-sandboxd/run 2>/dev/null && echo listed
		/.mcp-sandboxd/bin/agent connect --socket /.mcp-sandboxd/run/socket </dev/null && echo connected
		/.mcp-sandboxd/bin/agent quiet --socket /.mcp-sandboxd/run/socket </dev/null && echo quieted
		kill -9 1 2>/dev/null && echo killed
		true`);
	assert.equal(tried.stdout, "2\n");
	// Only what a pod needs is mounted from the node, and all of it is the pod's own.
	const mounts = (await one("inside", "cut -d' ' -f4,5 /proc/self/mountinfo")).stdout.trim().split("\n").map((l) => l.split(" "));
	const { metadata } = await pod((await run(client, "inside", ["true"])).sandbox_name);
	const foreign = mounts.filter(([root]) => root !== "/" && !/^\/(null|urandom|sys|bus|fs|irq|sysrq-trigger|mcpk\d+.*|[a-z]+\/?.*\/containerd\/.*)$/.test(root) && !root.includes(metadata.uid));
	assert.deepEqual(foreign, []);
});

test("API server and kubelet can be reached where no policy is enforced, and take no orders from a sandbox", async () => {
	const node = new URL(cluster.server).hostname;
	const ask = (url) => `python3 - <<'P'
import ssl, urllib.request, urllib.error
c = ssl._create_unverified_context()
try: print(urllib.request.urlopen("${url}", context=c, timeout=20).status)
except urllib.error.HTTPError as e: print(e.code)
P`;
	for (const [url, code] of [
		[`https://${node}:6443/api/v1/namespaces/${namespace}/pods`, /^40[13]$/],
		[`https://${node}:6443/api/v1/namespaces/${namespace}/secrets`, /^40[13]$/],
		[`https://10.96.0.1/api/v1/nodes`, /^40[13]$/],
		[`https://${node}:10250/pods`, /^401$/],
		[`https://${node}:10250/run/${namespace}/x/sandbox?cmd=id`, /^401$/],
	])
		assert.match((await one("inside", ask(url))).stdout.trim(), code, url);
	const listening = await one("inside", "cat /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6 | awk '$4 == \"0A\" || $4 == \"07\"'");
	assert.equal(listening.stdout, ""); // so nothing of ours is there for another pod
});

test("the policies of deploy/kubernetes select the pods that are made, by their labels", async () => {
	const { items } = await cluster.json("-n", namespace, "get", "networkpolicies");
	const selecting = (labels) => items.filter((p) => Object.entries(p.spec.podSelector.matchLabels ?? {}).every(([k, v]) => labels[k] === v)).map((p) => p.metadata.name).sort();
	const { metadata } = await pod((await run(client, "inside", ["true"])).sandbox_name);
	assert.deepEqual(selecting(metadata.labels), ["nothing", "public"]);
	await withServer({ SANDBOX_NETWORK_MODE: "none" }, async (s, c) => {
		await run(c, "closed", ["true"]);
		assert.deepEqual((await pods(s)).map((p) => selecting(p.metadata.labels)), [["nothing"]]);
	});
	// Nothing is denied by one and allowed by the other: what "public" lets out is what it names.
	const [{ spec }] = items.filter((p) => p.metadata.name === "public");
	assert.deepEqual(spec.policyTypes, ["Egress"]);
	assert.equal(spec.egress.length, 2);
});

// ---- what people do

test("labels and annotations that were changed by hand: said, and nothing of another's is touched", async () => {
	const { sandbox_name } = await run(client, "labels", ["echo kept >/workspace/note"]);
	kubectl("annotate", "pod", sandbox_name, "--overwrite", "mcp.identifier=other", "mcp.tenant=x", "mcp.expires_at_unix_ms=1");
	assert.equal((await one("labels", "cat /workspace/note")).stdout, "kept\n"); // the database is the truth
	kubectl("label", "pod", sandbox_name, "mcp.instance-");
	await server.restart();
	client = await server.connect();
	assert.match(await words("labels"), /not this server's/);
	kubectl("label", "pod", sandbox_name, `mcp.instance=${server.instance}`);
	assert.equal((await one("labels", "cat /workspace/note")).stdout, "kept\n");
	kubectl("annotate", "pod", sandbox_name, "--overwrite", "mcp.policy_fingerprint=old");
	await server.restart();
	client = await server.connect();
	const r = await run(client, "labels", [{ shell: "cat /workspace/note", allow_failure: true }]);
	assert.notEqual(r.final.commands[0].exit_code, 0); // made under another policy: replaced
});

test("the agents' ConfigMaps are deleted: what runs goes on, and what is new is made", async () => {
	await run(client, "maps", ["true"]);
	const id = await background("maps", counting(30));
	const maps = (await cluster.json("-n", namespace, "get", "configmaps", "-l", `mcp.role=agent,mcp.instance=${server.instance}`)).items;
	kubectl("delete", "configmap", ...maps.map((m) => m.metadata.name));
	const made = one("maps-new", "echo new"); // its pod waits for what is not there
	await assertOnce("maps", id, 30);
	assert.equal((await made).stdout, "new\n");
	await remove("maps-new");
});

test("the owner of all is deleted: all goes, is said, and begins anew", async () => {
	await withServer({}, async (s, c) => {
		await run(c, "owned", ["true"]);
		const id = await background("owned", "echo on; sleep 300", s, c);
		kubectl("delete", "configmap", `mcp-sandboxd-${s.instance}`);
		const final = await s.ended(id, 120000);
		assert.equal(final.state, "failed");
		assert.match(final.error, /deleted|not running any more/);
		assert.equal((await one("owned", "echo anew", c)).stdout, "anew\n");
	});
});

test("the namespace is deleted: runs end with the reason, and all works when it is back", async () => {
	await run(client, "space", ["true"]);
	const id = await background("space", "echo on; sleep 300");
	cluster.kubectl("delete", "namespace", namespace, "--wait=false");
	const final = await server.ended(id, 120000);
	assert.equal(final.state, "failed");
	assert.match(final.error, /deleted|not running any more|may not|forbidden/i);
	assert.match(await words("space-new"), /terminat|namespace|forbidden|Role/i);
	await until("the namespace to go", 120000, () => !cluster.kubectl("get", "namespaces", "-o", "name").includes(`/${namespace}`));
	await cluster.deploy();
	assert.equal((await one("space", "echo back")).stdout, "back\n");
});

// Its data folder was copied, or restored while it ran: both are the same server to the cluster.
test("two servers with a copy of one data folder: neither tells an untruth, and what was cut off says so", async () => {
	await withServer({}, async (s, c) => {
		await run(c, "twin", ["true"]);
		const copy = await Server.start(cluster.env, { ready: false });
		try {
			await copy.stopServer();
			await s.stopServer();
			for (const name of ["db", "instance"]) {
				fs.rmSync(path.join(copy.dataDir, name), { recursive: true });
				execFileSync("cp", ["-a", path.join(s.dataDir, name), copy.dataDir]);
			}
			await s.startServer();
			await s.waitReady();
			c = await s.connect();
			const id = await background("twin-new", "echo on; sleep 300", s, c); // the copy does not know it
			copy.env.RUN_DIR = path.join(copy.dir, "run");
			await copy.startServer();
			const final = await s.ended(id, 120000);
			assert.equal(final.state, "failed");
			assert.match(final.error, /deleted|not running any more/);
		} finally {
			await copy.stop({ check: false });
		}
		assert.equal((await one("twin", "echo on", c)).stdout, "on\n");
	});
});

// ---- faults under load

test("every program of the cluster is killed under load: every command goes on, once, with its whole output", async () => {
	const ids = Array.from({ length: 6 }, (_, i) => `load-${i}`), n = 400;
	await Promise.all(ids.map((id) => one(id, "true")));
	const runs = await Promise.all(ids.map((id) => background(id, counting(n))));
	for (const program of ["kubelet", "containerd", "kube-controller-manager", "kube-scheduler", "etcd", "kube-apiserver"]) {
		cluster.program("stop", program);
		await seconds(1); // the others find out
		cluster.program("start", program);
		await until("the API server", 120000, () => cluster.kubectl("get", "--raw", "/readyz") === "ok");
	}
	await cluster.apiserverReady();
	await Promise.all(runs.map((id, i) => assertOnce(ids[i], id, n)));
	assert.equal((await one("after-load", "echo new")).stdout, "new\n");
});

test("64 sandboxes are asked for at once: each is made, answers for itself, and goes", async () => {
	const ids = Array.from({ length: 64 }, (_, i) => `crowd-${i}`);
	const all = await Promise.all(ids.map((id) => run(client, id, [`echo ${id}`], { await_completion: false })));
	const finals = await Promise.all(all.map((r) => server.ended(r.run_id, 900000)));
	finals.forEach((r, i) => assert.equal(r.commands[0].stdout, `${ids[i]}\n`, JSON.stringify(r)));
	assert.equal(new Set((await pods()).map((p) => p.metadata.name).filter((name) => name.includes("crowd-"))).size, 64);
	await Promise.all(ids.map((id) => remove(id)));
	await until("the pods to go", 300000, async () => !(await pods()).some((p) => p.metadata.name.includes("crowd-")));
});

// ---- volumes

// What a storage class would make: a folder of the node for each of n claims.
function volumes(n) {
	for (let i = 0; i < n; i++) {
		const dir = path.join(cluster.dir, `volumes/${Date.now()}-${i}`);
		fs.mkdirSync(dir, { recursive: true });
		cluster.apply({ apiVersion: "v1", kind: "PersistentVolume", metadata: { name: `rig-${i}`, labels: { rig: "volumes" } }, spec: {
			capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], storageClassName: "rig", persistentVolumeReclaimPolicy: "Retain", hostPath: { path: dir } } });
	}
}
// What is bound to none of them any more would not be given out again.
const removeVolumes = () => cluster.kubectl("delete", "pv", "-l", "rig=volumes", "--wait=false");
const events = async (s, id) => {
	const all = [];
	for await (const e of await s.events(id)) all.push(e);
	return all;
};

test("with a volume /workspace outlives a deleted pod, and the caller is told what was lost", async () => {
	const role = await cluster.json("-n", namespace, "get", "role", "mcp-sandboxd");
	const rules = role.rules.map((r) => r.resources[0] === "persistentvolumeclaims" ? { ...r, verbs: ["create", "delete", "get", "list", "watch"] } : r);
	const setRules = (v) => cluster.apply({ apiVersion: role.apiVersion, kind: role.kind, metadata: { name: "mcp-sandboxd", namespace }, rules: v });
	setRules(rules);
	volumes(3);
	try {
		await withServer({ KUBERNETES_VOLUME_SIZE: "1Gi", KUBERNETES_STORAGE_CLASS: "rig", KUBERNETES_UNSCHEDULABLE_SECONDS: "60" }, async (s, c) => {
			const { sandbox_name } = await run(c, "disk", ["echo kept >/workspace/note; echo lost >/artifacts/note; echo lost >/tmp/note"]);
			const id = await background("disk", "echo on; sleep 300", s, c);
			kubectl("delete", "pod", sandbox_name, "--grace-period=1", "--wait=false");
			const final = await s.ended(id);
			assert.equal(final.state, "failed");
			assert.match(final.error, /of its files those in \/workspace are kept/);
			const next = await run(c, "disk", [{ shell: "cat /workspace/note; cat /artifacts/note /tmp/note", allow_failure: true }]);
			assert.equal(next.final.commands[0].stdout, "kept\n");
			const started = (await events(s, next.run_id)).find((e) => e.event === "run_started");
			assert.match(JSON.stringify(started.data), /\/workspace is kept, everything else is as in the image/);
			// A restart by the caller begins anew: the old volume goes first.
			const claim = () => cluster.json("-n", namespace, "get", "pvc", sandbox_name);
			const before = (await claim()).metadata.uid;
			await c.callTool({ name: "restart_sandbox", arguments: { identifier: "disk" } }, undefined, { timeout: 120000 });
			assert.notEqual((await one("disk", "cat /workspace/note", c)).exit_code, 0);
			assert.notEqual((await claim()).metadata.uid, before);
			// Deleted by someone while the pod uses it: it goes with the pod, and a new one is made.
			kubectl("delete", "pvc", sandbox_name, "--wait=false");
			kubectl("delete", "pod", sandbox_name, "--grace-period=1", "--wait=false");
			await until("a new one", 120000, async () => (await one("disk", "echo anew", c)).stdout === "anew\n");
			await remove("disk", c);
			await until("the volume to go", 60000, async () => !(await cluster.json("-n", namespace, "get", "pvc")).items.some((p) => p.metadata.name === sandbox_name));
		});
	} finally {
		setRules(role.rules);
		removeVolumes();
	}
});
