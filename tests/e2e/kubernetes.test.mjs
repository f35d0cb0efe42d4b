// SPDX-License-Identifier: MIT
// What is the Kubernetes backend's own: what people, nodes and the API server do to its
// pods.
import assert from "node:assert/strict";
import { once } from "node:events";
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import path from "node:path";
import { after, before, test } from "node:test";
import { Server, freePort, repo, run, until } from "./rig.mjs";
import { Cluster, checkLeft, namespace } from "./with-kubernetes.mjs";

let cluster, server, client;

before(async () => {
	cluster = await Cluster.start();
	server = await Server.start(cluster.env);
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
const pods = async (instance) =>
	(await cluster.json("-n", namespace, "get", "pods")).items.filter((p) => p.metadata.labels["mcp.instance"] === (instance ?? server.instance));
const one = async (id, shell, options) => (await run(client, id, [{ shell, allow_failure: true }], options)).final.commands[0];
const log = () => fs.readFileSync(server.log, "utf8");
const remove = (id, c = client) => c.callTool({ name: "delete_sandbox", arguments: { identifier: id } });
// The words of a run that failed, or of a call that was refused.
const words = (id, c = client) => run(c, id, ["true"]).then((r) => r.final?.error ?? JSON.stringify(r), (e) => e.message);

async function background(id, shell, s = server, c = client) {
	const r = await run(c, id, [shell], { await_completion: false });
	await until("start", 60000, async () => (await s.run_status(r.run_id)).commands[0].stdout_bytes > 0);
	return r.run_id;
}

// Prints 1..N slowly enough to be caught in the middle, and counts its own starts.
const COUNT = 100;
const counting = `echo x >>/workspace/starts; for i in $(seq ${COUNT}); do echo $i; sleep 0.1; done`;
const counted = Array.from({ length: COUNT }, (_, i) => `${i + 1}\n`).join("");

async function assertOnce(id, runId, s = server, c = client) {
	const final = await s.ended(runId, 120000);
	assert.equal(final.state, "completed", JSON.stringify(final));
	assert.equal(final.commands[0].stdout, counted);
	const { final: starts } = await run(c, id, ["cat /workspace/starts"]);
	assert.equal(starts.commands[0].stdout, "x\n");
}

// A server of its own for one test; its sandboxes go with it.
async function withServer(env, work, options) {
	const s = await Server.start({ ...cluster.env, ...env }, options);
	try {
		const c = options?.ready === false ? undefined : await s.connect();
		await work(s, c);
		await c?.close();
	} finally {
		await s.stop();
		kubectl("delete", "pods", "-l", `mcp.instance=${s.instance}`, "--grace-period=1");
	}
}

test("a pod carries the policy, the labels and the limits that were asked for", async () => {
	const { sandbox_name } = await run(client, "shape", ["true"]);
	const p = await pod(sandbox_name);
	assert.match(sandbox_name, /^mcp-sbx-shape-[0-9a-f]{8}$/);
	assert.equal(p.metadata.labels["mcp.role"], "sandbox");
	assert.equal(p.metadata.annotations["mcp.identifier"], "shape");
	assert.equal(p.metadata.ownerReferences.length, 1);
	assert.equal(p.spec.automountServiceAccountToken, false);
	assert.equal(p.spec.enableServiceLinks, false);
	const [c] = p.spec.containers;
	assert.deepEqual(c.resources.limits.memory, "1Gi");
	assert.deepEqual(c.resources.limits.cpu, "1");
	assert.deepEqual(c.securityContext.capabilities.drop, ["ALL"]);
	assert.deepEqual([...c.securityContext.capabilities.add].sort(), ["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID"]);
	assert.equal(c.securityContext.allowPrivilegeEscalation, false);
	assert.equal(c.securityContext.seccompProfile.type, "RuntimeDefault");
	const inside = await one("shape", "id -u; ls /var/run/secrets 2>&1; env | grep -c KUBERNETES_; grep -E 'NoNewPrivs|Seccomp:' /proc/self/status");
	assert.match(inside.stdout, /^1000\nls: .*\n0\nNoNewPrivs:\t1\nSeccomp:\t2\n$/);
});

test("the API server is killed under a running command: it goes on, once, with its whole output", async () => {
	await run(client, "api", ["true"]);
	const id = await background("api", counting);
	cluster.program("stop", "kube-apiserver");
	await new Promise((r) => setTimeout(r, 2000));
	cluster.program("start", "kube-apiserver");
	await assertOnce("api", id);
	await cluster.apiserverReady();
});

test("while the API server is away a new sandbox fails with that reason, and what runs goes on later", async () => {
	await run(client, "away", ["true"]);
	cluster.program("stop", "kube-apiserver");
	try {
		assert.match(await words("away-new"), /API server/);
	} finally {
		cluster.program("start", "kube-apiserver");
		await cluster.apiserverReady();
	}
	await server.waitReady();
	// The API server answers before it lets everybody in: until then a run fails with that.
	await until("a run in the old sandbox", 60000, async () => {
		const r = await run(client, "away", [{ shell: "echo back", allow_failure: true }]);
		if (r.final.commands[0].stdout === "back\n") return true;
		assert.ok(r.final.error || r.final.commands[0].reason, JSON.stringify(r));
	});
});

test("the stream is cut and stalls: a command goes on, once, with its whole output", async () => {
	const proxy = await Proxy.start(new URL(cluster.server));
	const kubeconfig = cluster.writeKubeconfig(path.join(cluster.dir, "proxied.conf"), { tokenFile: path.join(cluster.dir, "token") }, `https://127.0.0.1:${proxy.port}`);
	try {
		await withServer({ KUBECONFIG: kubeconfig }, async (s, c) => {
			await run(c, "cut", ["true"]);
			const id = await background("cut", counting, s, c);
			for (let i = 0; i < 4; i++) {
				proxy.cut();
				await new Promise((r) => setTimeout(r, 1000));
			}
			await assertOnce("cut", id, s, c);
			await remove("cut", c);
		});
	} finally {
		proxy.stop();
	}
});

// A way to the API server that can be broken.
class Proxy {
	sockets = new Set();

	static async start(to) {
		const p = new Proxy();
		p.listener = net.createServer({ allowHalfOpen: true }, (a) => {
			const b = net.connect({ host: to.hostname, port: to.port, allowHalfOpen: true });
			for (const [x, y] of [[a, b], [b, a]]) {
				p.sockets.add(x);
				// One that is reset while nobody reads it may never tell of its end.
				x.unref().on("error", () => y.destroy()).on("close", () => p.sockets.delete(x)).pipe(y);
			}
		}).listen(0, "127.0.0.1");
		await once(p.listener, "listening");
		p.port = p.listener.address().port;
		return p;
	}

	cut() {
		for (const s of this.sockets) s.resetAndDestroy();
	}

	stop() {
		this.cut();
		this.listener.close();
	}
}

test("a pod that was deleted under a running command fails the run with the reason", async () => {
	const { sandbox_name } = await run(client, "pulled", ["echo kept >/workspace/note"]);
	const id = await background("pulled", "echo on; sleep 300");
	kubectl("delete", "pod", sandbox_name, "--grace-period=1", "--wait=false");
	const final = await server.ended(id);
	assert.equal(final.state, "failed");
	assert.match(final.error, /deleted|not running any more/);
	assert.notEqual((await one("pulled", "cat /workspace/note")).exit_code, 0);
});

test("a pod that was deleted while nothing ran is replaced by a fresh one", async () => {
	const { sandbox_name } = await run(client, "removed", ["echo kept >/workspace/note"]);
	kubectl("delete", "pod", sandbox_name, "--grace-period=1");
	assert.notEqual((await one("removed", "cat /workspace/note")).exit_code, 0);
});

test("a command beyond the memory limit is ended for it, and the sandbox goes on", async () => {
	await withServer({ DEFAULT_MEMORY_MB: "128" }, async (s, c) => {
		await run(c, "memory", ["echo kept >/workspace/note"]);
		const { final } = await run(c, "memory", ["python3 -c 'x = bytearray(1 << 29)'; echo code $?; cat /workspace/note"]);
		assert.equal(final.commands[0].stdout, "code 137\nkept\n");
	});
});

test("a container that ends is started again: the run fails with the reason, the volumes are kept", async () => {
	const { sandbox_name } = await run(client, "crash", ["echo kept >/workspace/note"]);
	const id = await background("crash", "echo on; sleep 300");
	const status = (await pod(sandbox_name)).status.containerStatuses[0];
	cluster.program("exec", "ctr", "-a", path.join(cluster.dir, "containerd/sock"), "-n", "k8s.io", "task", "kill", "-s", "SIGKILL", status.containerID.replace("containerd://", ""));
	const final = await server.ended(id);
	assert.equal(final.state, "failed");
	assert.match(final.error, /container|not running any more/);
	assert.equal((await one("crash", "cat /workspace/note")).stdout, "kept\n");
	assert.equal((await pod(sandbox_name)).status.containerStatuses[0].restartCount, 1);
});

test("a token that counts no more is replaced by the one in its file", async () => {
	await run(client, "token", ["true"]);
	// With its account all its tokens end.
	cluster.kubectl("-n", "mcp-sandboxd", "delete", "serviceaccount", "mcp-sandboxd");
	cluster.kubectl("-n", "mcp-sandboxd", "create", "serviceaccount", "mcp-sandboxd");
	cluster.writeToken();
	assert.equal((await one("token-new", "echo in")).stdout, "in\n");
	assert.equal((await one("token", "echo on")).stdout, "on\n");
	await remove("token-new");
});

test("a full quota is said in the cluster's words", async () => {
	await run(client, "quota", ["true"]);
	const used = (await pods()).length;
	cluster.apply({ apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "full", namespace }, spec: { hard: { pods: String(used) } } });
	try {
		await until("the quota", 10000, async () => (await cluster.json("-n", namespace, "get", "resourcequota", "full")).status.used?.pods === String(used));
		assert.match(await words("quota-new"), /exceeded quota: full/);
		assert.equal((await one("quota", "echo on")).stdout, "on\n");
	} finally {
		kubectl("delete", "resourcequota", "full");
	}
	assert.equal((await one("quota-new", "echo in")).stdout, "in\n");
	await remove("quota-new");
});

test("no node for a pod: the scheduler's words, after the time that is set", async () => {
	await withServer({ KUBERNETES_NODE_SELECTOR: "disk=fast", KUBERNETES_UNSCHEDULABLE_SECONDS: "3" }, async (s, c) => {
		assert.match(await words("nowhere", c), /no node .*0\/1 nodes are available/);
		assert.deepEqual(await pods(s.instance), []);
	});
});

test("an image that is not there: the words of the node, soon", async () => {
	await withServer({ SANDBOX_IMAGE: "registry.local/none:1" }, async (s, c) => {
		assert.match(await words("image", c), /image of the sandbox cannot be pulled: .*(ErrImagePull|ImagePullBackOff).*registry\.local\/none:1/);
		await until("the pod to go", 10000, async () => (await pods(s.instance)).length === 0);
	});
});

test("a pod that the cluster's policy forbids: the words of the admission", async () => {
	cluster.kubectl("label", "--overwrite", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted");
	try {
		assert.match(await words("forbidden"), /violates PodSecurity "restricted:latest"/);
	} finally {
		cluster.kubectl("label", "--overwrite", "namespace", namespace, "pod-security.kubernetes.io/enforce=baseline");
	}
});

test("what is over its disk limit is evicted, and the run says so", async () => {
	await withServer({ SANDBOX_DISK_MB: "64" }, async (s, c) => {
		await run(c, "disk", ["true"]);
		const id = await background("disk", "echo on; head -c 200M /dev/zero >/workspace/big; sleep 300", s, c);
		const final = await s.ended(id, 120000);
		assert.equal(final.state, "failed");
		assert.match(final.error, /Evicted|ephemeral/);
	});
});

test("many first calls at once share one pod, many identifiers have their own", async () => {
	const same = await Promise.all(Array.from({ length: 20 }, (_, i) => run(client, "crowd", [`echo ${i}`])));
	assert.equal(new Set(same.map((r) => r.sandbox_name)).size, 1);
	same.forEach((r, i) => assert.equal(r.final.commands[0].stdout, `${i}\n`));
	const many = await Promise.all(Array.from({ length: 8 }, (_, i) => run(client, `many-${i}`, [`echo ${i}`])));
	assert.equal(new Set(many.map((r) => r.sandbox_name)).size, 8);
	await Promise.all(many.map((r) => remove(r.identifier)));
	await until("the pods to go", 20000, async () => !(await pods()).some((p) => p.metadata.name.includes("many-")));
});

test("two servers on one cluster do not touch each other's pods", async () => {
	await run(client, "both", ["echo first >/workspace/who"]);
	await withServer({}, async (s, c) => {
		const r = await run(c, "both", ["cat /workspace/who || echo second"]);
		assert.match(r.final.commands[0].stdout, /second/);
		await remove("both", c);
		assert.deepEqual(await pods(s.instance), []);
	});
	assert.equal((await one("both", "cat /workspace/who")).stdout, "first\n");
});

test("unknown pods of this instance are removed at the start", async () => {
	const { sandbox_name } = await run(client, "orphans", ["true"]);
	const { metadata, spec } = await pod(sandbox_name);
	cluster.apply({ apiVersion: "v1", kind: "Pod", metadata: { name: "mcp-sbx-orphan-00000000", namespace, labels: metadata.labels, annotations: metadata.annotations },
		spec: { ...spec, nodeName: undefined } });
	await server.restart();
	await until("the orphan to go", 20000, async () => !(await pods()).some((p) => p.metadata.name === "mcp-sbx-orphan-00000000" && !p.metadata.deletionTimestamp));
	assert.equal((await one("orphans", "echo on")).stdout, "on\n");
});

test("a right that is missing is named at the start", async () => {
	const role = await cluster.json("-n", namespace, "get", "role", "mcp-sandboxd");
	kubectl("patch", "role", "mcp-sandboxd", "--type=json", "-p", JSON.stringify([{ op: "replace", path: "/rules/0/verbs", value: ["create", "get", "list", "watch"] }]));
	try {
		await withServer({}, async (s) => {
			await until("the reason", 15000, async () => /delete pods/.test(await (await fetch(`${s.base}/readyz`)).text()));
		}, { ready: false });
	} finally {
		cluster.apply({ apiVersion: role.apiVersion, kind: role.kind, metadata: { name: "mcp-sandboxd", namespace }, rules: role.rules });
	}
});

test("a node that is lost is named, and the sandbox begins anew elsewhere or later", async () => {
	await run(client, "lost", ["true"]);
	const id = await background("lost", "echo on; sleep 900");
	cluster.program("stop", "kubelet");
	const final = await server.ended(id, 400000).finally(() => cluster.program("start", "kubelet"));
	assert.equal(final.state, "failed");
	assert.match(final.error, /its node n1|NoExecute taint/);
	await cluster.nodeReady();
	assert.equal((await one("lost", "echo back")).stdout, "back\n");
});

// One request to a host by name, wherever it really is; {headers, text}.
function ask(port, host, method, where, headers = {}, body) {
	return new Promise((resolve, reject) => {
		const r = http.request({ host: "127.0.0.1", port, method, path: where, headers: { host, ...headers } }, (answer) => {
			let text = "";
			answer.setEncoding("utf8").on("data", (d) => (text += d)).on("end", () =>
				answer.statusCode === 200 ? resolve({ headers: answer.headers, text }) : reject(new Error(`${answer.statusCode} ${text}`)));
		});
		r.on("error", reject);
		r.end(body && JSON.stringify({ jsonrpc: "2.0", id: 1, ...body }));
	});
}

// A tenant's whole way: a session, runs in it, a run's status, an artifact of it.
async function tenant(port, host) {
	const json = { "content-type": "application/json", accept: "application/json, text/event-stream" };
	const hello = { method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "shard", version: "1" } } };
	const session = { "mcp-session-id": (await ask(port, host, "POST", "/mcp", json, hello)).headers["mcp-session-id"] };
	let run_id;
	for (let i = 0; i < 3; i++) {
		const call = { name: "run_sandbox", arguments: { identifier: host, commands: [{ shell: `echo ${host} ${i} >/artifacts/who` }], options: { await_completion: true } } };
		({ run_id } = JSON.parse((await ask(port, host, "POST", "/mcp", { ...json, ...session }, { method: "tools/call", params: call })).text).result.structuredContent);
		assert.equal(JSON.parse((await ask(port, host, "GET", `/mcp/runs/${run_id}`)).text).state, "completed");
		assert.equal((await ask(port, host, "GET", `/artifacts/${host}/${run_id}/who`)).text, `${host} ${i}\n`);
	}
}

test("several servers on one cluster, behind the nginx of docs/scaling.md: a host name's requests all reach the same one", async () => {
	const env = { ALLOWED_HOSTS: "*" };
	await withServer(env, (a) => withServer(env, async (b) => {
		const port = await freePort();
		const [, block] = /```nginx\n([\s\S]*?)```/.exec(fs.readFileSync(path.join(repo, "docs/scaling.md"), "utf8"));
		const conf = path.join(a.dir, "front.conf");
		fs.writeFileSync(conf, `daemon off; pid "${a.dir}/front.pid"; events {} http { access_log off; client_body_temp_path "${a.dir}/front"; proxy_temp_path "${a.dir}/front-proxy";\n` +
			`fastcgi_temp_path "${a.dir}/front-f"; uwsgi_temp_path "${a.dir}/front-u"; scgi_temp_path "${a.dir}/front-s";\n` +
			block.replace("listen 443 ssl", `listen 127.0.0.1:${port}`).replace(/server 10\.0\.0\.11:8080;\s*server 10\.0\.0\.12:8080;\s*server 10\.0\.0\.13:8080;/,
				`server 127.0.0.1:${a.port}; server 127.0.0.1:${b.port};`) + "}\n");
		const front = a.spawn("nginx", ["-e", "stderr", "-c", conf]);
		try {
			await until("nginx", 10000, () => ask(port, "a.sandbox.example.com", "GET", "/healthz"));
			await Promise.all(Array.from({ length: 8 }, (_, i) => tenant(port, `t${i}.sandbox.example.com`)));
			assert.equal((await pods(a.instance)).length + (await pods(b.instance)).length, 8);
		} finally {
			front.kill();
			await front.ended;
		}
	}));
});

// Last: it reads what all tests above have done.
test("the Role of deploy/kubernetes is enough, and nothing in it is unused", async () => {
	const role = await cluster.json("-n", namespace, "get", "role", "mcp-sandboxd");
	const granted = role.rules.flatMap((r) => r.resources.flatMap((res) => r.verbs.map((v) => `${v} ${res}`)));
	const audit = fs.readFileSync(path.join(cluster.dir, "log/audit"), "utf8").trim().split("\n").map((l) => JSON.parse(l));
	const used = new Set(), denied = new Set();
	for (const e of audit.filter((e) => e.objectRef?.namespace === namespace)) {
		const what = `${e.verb} ${e.objectRef.resource}${e.objectRef.subresource ? `/${e.objectRef.subresource}` : ""}`;
		if (e.annotations?.["authorization.k8s.io/decision"] === "forbid") denied.add(what);
		else used.add(what);
	}
	// From 1.35 on the API server asks for it besides; this one does not.
	used.add("create pods/exec");
	assert.deepEqual([...used].sort(), granted.sort());
	// An API server that has just started knows no roles for a moment, and denies everything.
	assert.deepEqual([...denied].filter((what) => !granted.includes(what)), []);
});
