// SPDX-License-Identifier: MIT
// The rows of the Kubernetes backend on a cluster of one node, beside what that cluster
// does by itself.
import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import fs from "node:fs";
import https from "node:https";
import path from "node:path";
import { Server, run } from "../e2e/rig.mjs";
import { Cluster, checkLeft, image, namespace } from "../e2e/with-kubernetes.mjs";

async function timed(n, each) {
	const took = [];
	for (let i = 0; i < n; i++) {
		const start = process.hrtime.bigint();
		await each(i);
		took.push(Number(process.hrtime.bigint() - start) / 1000);
	}
	return took;
}

// One exec as a program does it: a WebSocket to the API server, read to its end.
function execTrue(cluster, pod) {
	const token = fs.readFileSync(path.join(cluster.dir, "token"), "utf8");
	const ca = fs.readFileSync(path.join(cluster.dir, "pki/ca.crt"));
	return async () => {
		const r = https.request(`${cluster.server}/api/v1/namespaces/${namespace}/pods/${pod}/exec?command=true&stdin=true&stdout=true&stderr=true`, {
			ca, headers: { authorization: `Bearer ${token}`, connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13",
				"sec-websocket-key": randomBytes(16).toString("base64"), "sec-websocket-protocol": "v5.channel.k8s.io" },
		});
		r.end();
		const [, socket] = await once(r, "upgrade");
		for await (const data of socket) if (data.includes('"status":"')) break;
		socket.destroy();
	};
}

function barePod(name) {
	return { apiVersion: "v1", kind: "Pod", metadata: { name, namespace }, spec: {
		automountServiceAccountToken: false, terminationGracePeriodSeconds: 1,
		containers: [{ name: "c", image, imagePullPolicy: "IfNotPresent", command: ["sleep", "1d"], resources: { requests: { cpu: "10m", memory: "32Mi" } } }] } };
}

async function podStart(cluster, i) {
	const name = `bare-${i}`;
	cluster.apply(barePod(name));
	await cluster.wait("pod", name, "condition=Ready");
}

async function kubectlExec(cluster, pod) {
	execFileSync(path.join(cluster.bin, "kubectl"), ["--kubeconfig", cluster.admin, "-n", namespace, "exec", pod, "--", "true"]);
}

const remove = (client, identifier) => client.callTool({ name: "delete_sandbox", arguments: { identifier } });

async function warm(lib, cluster, server, client, spawned) {
	const { row, ms, times, median, tool, quick } = lib;
	const { sandbox_name } = await run(client, "bench", [{ argv: ["true"] }]);
	const n = quick ? 10 : 30;
	const exec = median(await timed(n, execTrue(cluster, sandbox_name)));
	const program = median(await timed(n, () => kubectlExec(cluster, sandbox_name)));
	row("kubernetes: exec of true, p50", `${ms(exec)} as a WebSocket, ${ms(program)} by kubectl`);
	const [file, done] = lib.warmFile(server, client);
	tool("bench_http", server.port, 1, 200, file, done);
	const one = tool("bench_http", server.port, 1, quick ? 300 : 3000, file, done);
	row("kubernetes: awaited argv true, 1 connection, p50", `${ms(one.p50_us)} = ${times(one.p50_us, spawned.p50_us)} posix_spawn, ${(exec / one.p50_us).toFixed(0)} x faster than exec`);
	row("kubernetes: the same, p99", ms(one.p99_us));
	const many = tool("bench_http", server.port, 64, quick ? 300 : 3000, file, done);
	row("kubernetes: awaited argv true, 64 connections", `${many.per_s.toFixed(0)}/s, p50 ${ms(many.p50_us)}, p99 ${ms(many.p99_us)}`);
	const bytes = quick ? 1e8 : 1e9;
	const r = await run(client, "bench", [{ argv: ["head", "-c", String(bytes), "/dev/zero"] }]);
	const c = r.final.commands[0];
	row("kubernetes: output beyond the cap, drained", `${(bytes / 1e3 / (Date.parse(c.ended_at) - Date.parse(c.started_at))).toFixed(0)} MB/s`);
	const sync = lib.syncMs(await run(client, "bench", ["head -c 60M /dev/urandom >/artifacts/big"]));
	row("kubernetes: an artifact through the stream", `${((60 << 20) / 1e3 / sync).toFixed(0)} MB/s`);
	await run(client, "bench", ["rm /artifacts/big"]);
}

async function cold(lib, cluster, client) {
	const { row, ms, times, median, quick } = lib;
	const n = quick ? 4 : 10;
	const ours = median(await timed(n, (i) => run(client, `cold-${i}`, [{ argv: ["true"] }])));
	for (let i = 0; i < n; i++) await remove(client, `cold-${i}`);
	const bare = median(await timed(n, (i) => podStart(cluster, i)));
	cluster.kubectl("-n", namespace, "delete", "pods", "--grace-period=1", ...Array.from({ length: n }, (_, i) => `bare-${i}`));
	row("kubernetes: new sandbox with its first command, p50", `${ms(ours)} = ${times(ours, bare)} a bare pod (${ms(bare)})`);
	const crowd = Array.from({ length: quick ? 8 : 40 }, (_, i) => `crowd-${i}`);
	const [all] = await timed(1, () => Promise.all(crowd.map((id) => run(client, id, [{ argv: ["true"] }]))));
	row(`kubernetes: ${crowd.length} sandboxes created at once`, `${ms(all)}, ${ms(all / crowd.length)} each`);
	await Promise.all(crowd.map((id) => remove(client, id)));
}

const cpuMs = (pid) => {
	const f = fs.readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
	return (Number(f[11]) + Number(f[12])) * 10;
};

// Several load makers at once, each with an identifier of its own; runs a second in all.
async function across(lib, server, client, names, connections) {
	const each = names.map(async (id) => {
		const [file, done] = lib.warmFile(server, client, id);
		const child = spawn(path.join(lib.tools, "bench_http"), [server.port, connections, lib.quick ? 100 : 400, file, done].map(String), { stdio: ["ignore", "pipe", "inherit"] });
		let out = "";
		for await (const d of child.stdout) out += d;
		return JSON.parse(out.trim().split("\n").pop()).per_s;
	});
	return (await Promise.all(each)).reduce((a, b) => a + b, 0);
}

// What a sandbox that stands there costs each of the processes that carry its stream.
async function scale(lib, cluster, server, client) {
	const { row, quick } = lib;
	const n = quick ? 10 : 100;
	const parts = { runner: server.pids().runner, "API server": cluster.hostPid("kube-apiserver"), kubelet: cluster.hostPid("kubelet"), containerd: cluster.hostPid("containerd") };
	const names = Array.from({ length: n }, (_, i) => `scale-${i}`);
	const memory = () => Object.values(parts).map((pid) => lib.pss(pid));
	const settled = (ms) => new Promise((r) => setTimeout(r, ms));
	const span = quick ? 5 : 30;
	// Processor time of each in a quiet span, in µs a second.
	const idle = async () => {
		const at = Object.values(parts).map(cpuMs);
		await settled(span * 1000);
		return Object.values(parts).map((pid, i) => (cpuMs(pid) - at[i]) / span * 1000);
	};
	await settled(5000);
	const alone = await idle();
	const before = memory();
	for (let i = 0; i < n; i += 10) await Promise.all(names.slice(i, i + 10).map((id) => run(client, id, [{ argv: ["true"] }])));
	await settled(5000);
	const grown = memory().map((kb, i) => (kb - before[i]) / n);
	row(`kubernetes: memory for each of ${n} idle sandboxes`, Object.keys(parts).map((name, i) => `${name} ${grown[i].toFixed(0)} KB`).join(", "));
	const busy = await idle();
	row("kubernetes: processor time for each of them", Object.keys(parts).map((name, i) => `${name} ${Math.max(0, (busy[i] - alone[i]) / n).toFixed(0)}`).join(", ") + " µs/s");
	const used = Object.values(parts).map(cpuMs), start = Date.now();
	const perSecond = await across(lib, server, client, names.slice(0, 16), 4);
	const total = perSecond * (Date.now() - start) / 1000;
	row("kubernetes: awaited argv true, 16 sandboxes, 64 connections", `${perSecond.toFixed(0)}/s`);
	row("kubernetes: processor time for each of these runs", Object.entries(parts).map(([name, pid], i) => `${name} ${((cpuMs(pid) - used[i]) / total * 1000).toFixed(0)}`).join(", ") + " µs");
	const at = Object.values(parts).map(cpuMs);
	const ends = (await Promise.all(names.slice(0, 4).map((id) => run(client, id, ["head -c 60M /dev/zero >/artifacts/big"])))).map((r) => [Date.parse(r.final.commands[0].ended_at), Date.parse(r.final.ended_at)]);
	const took = Math.max(...ends.map((e) => e[1])) - Math.min(...ends.map((e) => e[0])), bytes = 4 * (60 << 20);
	row("kubernetes: artifacts of 4 sandboxes at once", `${(bytes / 1e3 / took).toFixed(0)} MB/s`);
	row("kubernetes: processor time for each GB of them", Object.entries(parts).map(([name, pid], i) => `${name} ${((cpuMs(pid) - at[i]) / (bytes / 1e9)).toFixed(0)}`).join(", ") + " ms");
	await Promise.all(names.map((id) => remove(client, id)));
}

// lib: {row, ms, times, median, tool, tools, pss, warmFile, warmPool, syncMs, quick}
export async function kubernetes(lib, spawned) {
	const cluster = await Cluster.start();
	try {
		const server = await Server.start(cluster.env);
		const client = await server.connect("bench");
		try {
			await warm(lib, cluster, server, client, spawned);
			await cold(lib, cluster, client);
			await scale(lib, cluster, server, client);
		} finally {
			await client.close();
			await server.stop({ check: false });
		}
		await lib.warmPool("kubernetes: ", cluster.env, spawned);
		await checkLeft(cluster);
	} finally {
		await cluster.stop();
	}
}
