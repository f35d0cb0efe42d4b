// SPDX-License-Identifier: MIT
// Measures the product as it is used: the real server, the real nginx, real sandboxes.
// Everything is told as a ratio to a yardstick of the same run on the same machine;
// prints a table and writes build/bench.json. Never part of the tests: a slow machine
// is no fault.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { Server, freePort, repo, run, until } from "../e2e/rig.mjs";
import { docker } from "./docker.mjs";
import { kubernetes } from "./kubernetes.mjs";

const tools = path.join(repo, "build", process.env.V ?? "release", "tests/bench");
const quick = process.env.BENCH_QUICK === "1";
const only = process.argv.slice(2); // names of rows; none: all
const rows = [];

function tool(name, ...args) {
	const out = execFileSync(path.join(tools, name), args.map(String), { maxBuffer: 1 << 26 });
	return JSON.parse(String(out).trim().split("\n").pop());
}

// good: undefined when there is no target to hold it against.
function row(what, measured, target, good) {
	rows.push({ what, measured, target: target ?? "", good });
	const mark = good === undefined ? "    " : good ? "ok  " : "MISS";
	console.log(`${mark}  ${what.padEnd(52)} ${String(measured).padEnd(44)} ${target ?? ""}`);
}

const ms = (us) => `${(us / 1000).toFixed(2)} ms`;
const times = (a, b) => `${(a / b).toFixed(2)} x`;
const median = (v) => [...v].sort((a, b) => a - b)[Math.floor(v.length / 2)];

// posix_spawn on every processor at once: no server can start more of them.
async function spawnRate() {
	const one = () => new Promise((done) => {
		const p = spawn(path.join(tools, "bench_spawn"), [quick ? "300" : "1000", "true"], { stdio: ["ignore", "pipe", "inherit"] });
		let out = "";
		p.stdout.on("data", (d) => (out += d));
		p.on("exit", () => done(JSON.parse(out).per_s));
	});
	const rates = await Promise.all(Array.from({ length: os.availableParallelism() }, one));
	return rates.reduce((sum, n) => sum + n, 0);
}

// The same HTTP request as bytes in a file, for bench_http.
function requestFile(server, session, name, message) {
	const body = JSON.stringify({ jsonrpc: "2.0", id: 1, ...message });
	const file = path.join(server.dir, `${name}.http`);
	fs.writeFileSync(
		file,
		`POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nContent-Type: application/json\r\n` +
			`Accept: application/json, text/event-stream\r\nMcp-Session-Id: ${session}\r\n` +
			`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
	);
	return file;
}

function runMessage(identifier, command) {
	const options = { await_completion: true };
	return {
		method: "tools/call",
		params: { name: "run_sandbox", arguments: { identifier, commands: [command], options } },
	};
}

// The request of an awaited `true`, and what its answer must hold.
function warmFile(server, client, identifier = "bench") {
	return [requestFile(server, client.transport.sessionId, `argv-${identifier}`, runMessage(identifier, { argv: ["true"] })), '"state":"completed"'];
}

async function warmRuns(server, client, spawned) {
	const session = client.transport.sessionId;
	const done = '"state":"completed"';
	const argv = requestFile(server, session, "argv", runMessage("bench", { argv: ["true"] }));
	const shell = requestFile(server, session, "shell", runMessage("bench", { shell: "true" }));
	const count = quick ? 300 : 3000;

	tool("bench_http", server.port, 1, 200, argv, done);
	const one = tool("bench_http", server.port, 1, count, argv, done);
	row("awaited argv true, 1 connection, p50", `${ms(one.p50_us)} = ${times(one.p50_us, spawned.p50_us)} posix_spawn`,
		"<= 1.75 x", one.p50_us <= 1.75 * spawned.p50_us);
	row("awaited argv true, 1 connection, p99", `${ms(one.p99_us)} = ${times(one.p99_us, spawned.p50_us)} posix_spawn p50`,
		"<= 4 x", one.p99_us <= 4 * spawned.p50_us);
	const most = await spawnRate();
	for (const c of [16, 64]) {
		const m = tool("bench_http", server.port, c, count, argv, done);
		const good = c === 64 ? m.per_s >= 2000 && m.p99_us <= 60000 : undefined;
		row(`awaited argv true, ${c} connections`,
			`${m.per_s.toFixed(0)}/s = ${times(m.per_s, most)} posix_spawn on all processors (${most.toFixed(0)}/s), p50 ${ms(m.p50_us)}, p99 ${ms(m.p99_us)}`,
			c === 64 ? ">= 2000/s, p99 <= 60 ms" : undefined, good);
	}
	const inside = await bashInside(client);
	const sh = tool("bench_http", server.port, 1, quick ? 100 : 500, shell, done);
	row("awaited shell form, 1 connection, p50",
		`${ms(sh.p50_us)}; its own bash -lc in there ${ms(inside)}`,
		"<= bash -lc + 1 ms", sh.p50_us <= inside + 1000);
}

// p50 of spawning bash -lc in the sandbox, by a program in the sandbox.
async function bashInside(client) {
	const script = [
		"import os,time",
		"t=[]",
		"for i in range(200):",
		"  a=time.perf_counter_ns()",
		"  os.waitpid(os.posix_spawn('/bin/bash',['bash','-lc','true'],os.environ),0)",
		"  t.append(time.perf_counter_ns()-a)",
		"print(sorted(t)[100]//1000)",
	].join("\n");
	const r = await run(client, "bench", [{ argv: ["python3", "-c", script] }]);
	return Number(r.final.commands[0].stdout);
}

async function cold(client, spawned) {
	const took = [];
	for (let i = 0; i < (quick ? 5 : 20); i++) {
		const start = process.hrtime.bigint();
		await run(client, `cold-${i}`, [{ argv: ["true"] }]);
		took.push(Number(process.hrtime.bigint() - start) / 1000);
	}
	const docker = dockerRun();
	const p50 = median(took);
	row("new sandbox with its first command, p50",
		`${ms(p50)} = ${docker ? times(p50, docker) + " docker run" : times(p50, spawned.p50_us) + " posix_spawn"}`,
		docker ? "<= 0.35 x docker run" : "(no docker engine to compare with)",
		docker ? p50 <= 0.35 * docker : undefined);
	await crowd("", client);
}

// Many first calls at the same moment.
async function crowd(name, client) {
	const ids = Array.from({ length: quick ? 10 : 50 }, (_, i) => `crowd-${i}`);
	const start = process.hrtime.bigint();
	await Promise.all(ids.map((id) => run(client, id, [{ argv: ["true"] }])));
	const all = Number(process.hrtime.bigint() - start) / 1000;
	row(`${name}${ids.length} sandboxes created at once`, `${ms(all)}, ${ms(all / ids.length)} each`);
	await Promise.all(ids.map((identifier) => client.callTool({ name: "delete_sandbox", arguments: { identifier } })));
}

// First calls of new identifiers, each when one of the pool stands ready.
async function warmPool(name, env, spawned) {
	const server = await Server.start({ ...env, WARM_POOL_SIZE: "2" });
	const client = await server.connect("bench");
	const gauge = async (m) => Number(new RegExp(`^${m} (\\d+)`, "m").exec(await (await server.get("/metrics")).text())[1]);
	const took = [];
	try {
		for (let i = 0; i < (quick ? 5 : 25); i++) {
			await until("the pool", 30000, async () => (await gauge("mcp_warm_pool_ready")) === 2);
			const file = requestFile(server, client.transport.sessionId, "new", runMessage(`new-${i}`, { argv: ["true"] }));
			took.push(tool("bench_http", server.port, 1, 1, file, '"state":"completed"').p50_us);
		}
		const hits = await gauge("mcp_warm_pool_hits_total");
		const p50 = median(took);
		row(`${name}new identifier with its first command, warm pool, p50`,
			`${ms(p50)} = ${times(p50, spawned.p50_us)} posix_spawn, worst ${ms(Math.max(...took))}; ${hits} of ${took.length} from the pool`, "<= 5 ms", p50 <= 5000 && hits === took.length);
	} finally {
		await client.close();
		await server.stop({ check: false });
	}
}

// p50 of `docker run --rm IMAGE true` when an engine with an image is at hand.
function dockerRun() {
	const image = process.env.BENCH_DOCKER_IMAGE;
	if (!image) return 0;
	const took = [];
	for (let i = 0; i < 7; i++) {
		const start = process.hrtime.bigint();
		execFileSync("docker", ["run", "--rm", image, "true"]);
		took.push(Number(process.hrtime.bigint() - start) / 1000);
	}
	return median(took);
}

// The bare libfcgi program behind an nginx with the very same configuration.
async function ping(server, client) {
	const sock = path.join(server.runDir, "bench.sock");
	const hello = spawn(path.join(tools, "fcgi_hello"), [sock, "8"], { stdio: ["ignore", "inherit", "inherit"] });
	const port = await freePort();
	const dir = path.join(server.dataDir, "nginx-bench");
	fs.cpSync(path.join(server.dataDir, "nginx"), dir, { recursive: true });
	for (const f of fs.readdirSync(dir).filter((n) => n.endsWith(".conf"))) {
		const file = path.join(dir, f);
		fs.writeFileSync(file, fs.readFileSync(file, "utf8")
			.replaceAll(`${server.dataDir}/nginx/`, `${dir}/`)
			.replaceAll(`${server.runDir}/fcgi.sock`, sock)
			.replaceAll(`:${server.port}`, `:${port}`));
	}
	const front = server.spawn("nginx", ["-e", "stderr", "-c", path.join(dir, "nginx.conf")]);
	const file = requestFile(server, client.transport.sessionId, "ping", { method: "ping" });
	const count = quick ? 5000 : 40000;
	try {
		await until("the bare server", 5000, async () => (await fetch(`http://127.0.0.1:${port}/mcp`, { method: "POST", body: "{}", headers: { "content-type": "application/json" } })).status === 200);
		const best = (p) => Math.max(...[1, 2, 3].map(() => tool("bench_http", p, 32, count, file, "result").per_s));
		const bare = best(port);
		const ours = best(server.port);
		row("ping through nginx, 32 connections", `${ours.toFixed(0)}/s = ${times(ours, bare)} bare libfcgi (${bare.toFixed(0)}/s)`,
			">= 0.85 x", ours >= 0.85 * bare);
	} finally {
		front.kill("SIGTERM");
		await front.ended;
		hello.kill("SIGKILL");
	}
}

function pss(pid) {
	return Number(/^Pss:\s+(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))[1]);
}

async function streams(server, client) {
	const count = Number(process.env.BENCH_STREAMS ?? (quick ? 200 : 1000));
	const command = "until [ -e /workspace/go ]; do sleep 0.05; done; for i in $(seq 20); do date +T%s%N; sleep 0.1; done";
	await run(client, "streams", ["rm -f /workspace/go"]);
	const started = await client.callTool({ name: "run_sandbox", arguments: { identifier: "streams", commands: [{ shell: command }] } });
	const id = started.structuredContent.run_id;
	const edges = () => server.pids().edges.reduce((sum, pid) => sum + pss(pid), 0);
	const before = edges();
	const reader = spawn(path.join(tools, "bench_sse"), [server.port, count, `/mcp/events?run_id=${id}`], { stdio: ["ignore", "pipe", "inherit"] });
	let out = "";
	reader.stdout.on("data", (d) => (out += d));
	const ended = once(reader, "exit");
	await until("open streams", 60000, () => {
		if (reader.exitCode !== null) throw new Error("the reader ended");
		return out.startsWith("open");
	});
	const each = (edges() - before) / count;
	await run(client, "streams", ["touch /workspace/go"]);
	const [code] = await ended;
	if (code !== 0) throw new Error("bench_sse failed");
	const m = JSON.parse(out.trim().split("\n").pop());
	row(`${count} SSE streams on one run, delivery p99`, `${ms(m.p99_us)} (p50 ${ms(m.p50_us)}), ${m.n} of ${count * 20} events`,
		"<= 250 ms, none lost", m.p99_us <= 250000 && m.n === count * 20);
	row("edge memory per stream", `${each.toFixed(1)} KB`, "<= 12 KB", each <= 12);
}

function seconds(run) {
	const c = run.final.commands[0];
	return (Date.parse(c.ended_at) - Date.parse(c.started_at)) / 1000;
}

async function dropped(client) {
	const bytes = quick ? 2e9 : 8e9;
	const r = await run(client, "bench", [{ argv: ["head", "-c", String(bytes), "/dev/zero"] }]);
	if (r.final.commands[0].stdout_bytes !== bytes) throw new Error("not all output was counted");
	const rate = bytes / 1e6 / seconds(r);
	row("output beyond the cap, drained", `${rate.toFixed(0)} MB/s`, ">= 500 MB/s", rate >= 500);
}

// A server that keeps much; a reader that opened the stream and never reads.
async function kept() {
	const bytes = quick ? 50e6 : 200e6;
	const server = await Server.start({ DEFAULT_STDOUT_MAX_BYTES: String(1 << 28) });
	try {
		const client = await server.connect("bench");
		await run(client, "kept", [{ argv: ["true"] }]);
		const started = await client.callTool({
			name: "run_sandbox",
			arguments: { identifier: "kept", commands: [{ shell: `yes 0123456789012345678901234567890123456789 | head -c ${bytes}` }] },
		});
		const id = started.structuredContent.run_id;
		const stalled = net.connect(server.port, "127.0.0.1").on("error", () => {});
		stalled.write(`GET /mcp/events?run_id=${id} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n`);
		stalled.pause();
		const wal = path.join(server.dataDir, "db/mcp-sandboxd.sqlite-wal");
		let most = 0;
		const watch = setInterval(() => (most = Math.max(most, fs.statSync(wal).size)), 20);
		const final = await server.ended(id, 120000);
		clearInterval(watch);
		stalled.destroy();
		const rate = bytes / 1e6 / seconds({ final });
		if (final.commands[0].stdout_bytes !== bytes) throw new Error("not all output was counted");
		row("output kept, with a stalled reader", `${rate.toFixed(0)} MB/s, WAL at most ${(most / 1e6).toFixed(0)} MB`,
			">= 60 MB/s, WAL < 64 MB", rate >= 60 && most < 64e6);
		await client.close();
	} finally {
		await server.stop({ check: false });
	}
}

// What comes after the commands: the copy of /artifacts.
function syncMs(r) {
	const last = r.final.commands.at(-1);
	return Date.parse(r.final.ended_at) - Date.parse(last.ended_at);
}

async function artifacts(client) {
	const make = "mkdir -p /artifacts/d && cd /artifacts/d && for i in $(seq 10000); do echo $i > f$i; done";
	const first = syncMs(await run(client, "artifacts", [make]));
	const again = [];
	for (let i = 0; i < 3; i++) again.push(syncMs(await run(client, "artifacts", [`echo changed ${i} > /artifacts/d/f1`])));
	const second = median(again);
	row("10 000 artifacts, first copy", `${first} ms`);
	row("10 000 artifacts, 1 changed", `${second} ms = ${((100 * second) / first).toFixed(1)} % of the first`, "<= 5 %", second <= 0.05 * first);
}

function wakeups(pids) {
	let n = 0;
	for (const pid of pids)
		for (const t of fs.readdirSync(`/proc/${pid}/task`))
			n += Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/task/${t}/status`, "utf8"))[1]);
	return n;
}

async function idle() {
	const server = await Server.start();
	try {
		const client = await server.connect("bench");
		await new Promise((r) => setTimeout(r, 2000));
		const p = server.pids();
		const all = [p.master, p.runner, ...p.edges];
		const memory = all.reduce((sum, pid) => sum + pss(pid), 0) / 1024;
		const before = wakeups(all);
		const span = quick ? 5 : 20;
		await new Promise((r) => setTimeout(r, span * 1000));
		const rate = (wakeups(all) - before) / span;
		row("idle: master, runner and edges together", `${memory.toFixed(1)} MB`, "<= 25 MB", memory <= 25);
		row("idle: wake-ups of all their threads", `${rate.toFixed(1)}/s in ${all.length} processes`, "none faster than 1 s each", rate <= 2 * all.length);
		const n = 10;
		const runnerBefore = pss(p.runner);
		for (let i = 0; i < n; i++) await run(client, `idle-${i}`, [{ argv: ["true"] }]);
		const agents = agentPids(server).reduce((sum, pid) => sum + pss(pid), 0);
		const each = (agents + pss(p.runner) - runnerBefore) / n;
		row("memory per idle sandbox (agent and runner's share)", `${each.toFixed(0)} KB`, "<= 1500 KB", each <= 1500);
		await client.close();
	} finally {
		await server.stop({ check: false });
	}
}

// CPU of these processes until now, in milliseconds.
function cpuMs(pids) {
	return pids.reduce((sum, pid) => {
		const f = fs.readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
		return sum + (Number(f[11]) + Number(f[12])) * 10;
	}, 0);
}

// Streams of MCP that wait for nothing: sessions' own, and of the HTTP+SSE transport.
async function parked() {
	const server = await Server.start();
	const sockets = [];
	try {
		const client = await server.connect("bench");
		const n = Number(process.env.BENCH_STREAMS ?? 2000);
		const p = server.pids();
		const all = [p.master, p.runner, ...p.edges];
		const before = p.edges.reduce((sum, pid) => sum + pss(pid), 0);
		const open = (session) => new Promise((resolve, reject) => {
			const s = net.connect(server.port, "127.0.0.1", () => s.write(`GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n${session}\r\n`));
			s.once("data", (d) => (String(d).includes("200 OK") ? resolve() : reject(new Error(String(d)))));
			s.on("error", reject);
			sockets.push(s);
		});
		await open(`Mcp-Session-Id: ${client.transport.sessionId}\r\n`);
		while (sockets.length < n) await Promise.all(Array.from({ length: 100 }, () => open("")));
		await new Promise((r) => setTimeout(r, 2000));
		const each = (p.edges.reduce((sum, pid) => sum + pss(pid), 0) - before) / sockets.length;
		const span = quick ? 5 : 30; // two comment lines on each
		const cpu = cpuMs(all);
		await new Promise((r) => setTimeout(r, span * 1000));
		const used = (cpuMs(all) - cpu) / span / 10;
		row(`${sockets.length} parked GET streams: cpu of all processes`, `${used.toFixed(2)} % of one core, ${each.toFixed(1)} KB each`, "<= 0.5 %, <= 12 KB", used <= 0.5 && each <= 12);
		await client.close();
	} finally {
		for (const s of sockets) s.destroy();
		await server.stop({ check: false });
	}
}

function agentPids(server) {
	return fs.readdirSync("/proc").filter((pid) => {
		try {
			return /^\d+$/.test(pid) && fs.readFileSync(`/proc/${pid}/cgroup`, "utf8").includes(server.instance) &&
				fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("mcp-sandboxd-agent");
		} catch {
			return false; // ended meanwhile
		}
	});
}

const wants = (name) => only.length === 0 || only.includes(name);
const spawned = tool("bench_spawn", 1000, "true");
row("posix_spawn of true on this machine (the yardstick)", `p50 ${ms(spawned.p50_us)}, p99 ${ms(spawned.p99_us)}`);
const server = await Server.start({ ARTIFACTS_MAX_EXTRACT_FILES: "20000", MAX_PARKED_REQUESTS: "16384" });
try {
	const client = await server.connect("bench");
	await run(client, "bench", [{ argv: ["true"] }]);
	if (wants("warm")) await warmRuns(server, client, spawned);
	if (wants("cold")) await cold(client, spawned);
	if (wants("ping")) await ping(server, client);
	if (wants("streams")) await streams(server, client);
	if (wants("dropped")) await dropped(client);
	if (wants("artifacts")) await artifacts(client);
	await client.close();
} finally {
	await server.stop({ check: false });
}
if (wants("pool")) await warmPool("", {}, spawned);
if (wants("kept")) await kept();
if (wants("idle")) await idle();
if (wants("parked")) await parked();
const lib = { row, ms, times, median, tool, tools, pss, warmFile, warmPool, crowd, syncMs, quick };
if (wants("docker")) await docker(lib, spawned);
// Only when it is asked for: its cluster takes minutes to build.
if (only.includes("kubernetes")) await kubernetes(lib, spawned);
fs.writeFileSync(path.join(repo, "build/bench.json"), JSON.stringify({ at: new Date().toISOString(), rows }, null, "\t"));
console.log(`\n${rows.filter((r) => r.good).length} targets met, ${rows.filter((r) => r.good === false).length} missed; build/bench.json`);
