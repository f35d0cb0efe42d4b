// SPDX-License-Identifier: MIT
// What the server says without being asked: resources and tasks that changed, and log
// messages; in both eras, from every process, to clients that do not read as well.
import assert from "node:assert/strict";
import fs from "node:fs";
import net from "node:net";
import { after, before, test } from "node:test";
import { Server, run, until } from "./rig.mjs";
import { P, Wire, all, messages, request, runOf } from "./wire.mjs";

let server, wire, client;

before(async () => {
	server = await Server.start({ EDGE_PROCESSES: "3" });
	wire = new Wire(server);
	client = await server.connect();
});
after(async () => {
	await client?.close();
	await server?.stop();
});

const updated = (uri) => (m) => m.method === "notifications/resources/updated" && m.params.uri === uri;

// Reads a stream in the background; seen(check) waits for a message.
function listen(response) {
	const list = [];
	(async () => {
		for await (const m of messages(response)) list.push(m);
	})().catch(() => {});
	return { list, seen: (what, check) => until(what, 15000, () => list.find(check)) };
}

async function waiting(identifier, name) {
	const { run_id } = await run(client, identifier, [
		`echo first; until [ -e /tmp/${name} ]; do sleep 0.05; done; echo second; echo file >/artifacts/f.txt`,
	], { await_completion: false });
	await until("start", 20000, async () => (await server.run_status(run_id)).state === "running");
	return { run_id, go: () => run(client, identifier, [`touch /tmp/${name}`]) };
}

test("a session hears of the resources it has subscribed to, and of no others", async () => {
	const s = await wire.session();
	const ac = new AbortController();
	const stream = listen(await wire.stream(s, { signal: ac.signal }));
	const { run_id, go } = await waiting("sub", "a");
	const uris = {
		out: `sandbox://runs/${run_id}/commands/0/stdout`,
		err: `sandbox://runs/${run_id}/commands/0/stderr`,
		file: `sandbox://runs/${run_id}/artifacts/f.txt`,
		latest: "sandbox://latest/sub/artifacts/f.txt",
		other: "sandbox://latest/another/artifacts/f.txt",
	};
	for (const uri of [...Object.values(uris), `sandbox://runs/${run_id}`])
		assert.deepEqual((await wire.legacy(s, "resources/subscribe", { uri })).result, {});
	assert.deepEqual((await wire.legacy(s, "resources/unsubscribe", { uri: `sandbox://runs/${run_id}` })).result, {});
	await go();
	for (const what of ["out", "file", "latest"]) await stream.seen(what, updated(uris[what]));
	await server.ended(run_id);
	for (const not of [uris.err, uris.other, `sandbox://runs/${run_id}`]) assert.ok(!stream.list.some(updated(not)), not);
	assert.ok(!stream.list.some((m) => m.params._meta), "no subscriptionId in this era");
	ac.abort();
});

test("subscriptions outlive the stream, the process and the server; what was missed is told", async () => {
	const s = await wire.session();
	const { run_id, go } = await waiting("outlive", "b");
	const uri = `sandbox://runs/${run_id}/commands/0/stdout`;
	await wire.legacy(s, "resources/subscribe", { uri });
	server.kill("edge");
	await until("the edges", 10000, async () => (await server.get("/healthz")).status === 200);
	await go();
	await server.ended(run_id);
	await server.restart();
	const ac = new AbortController();
	await listen(await wire.stream(s, { signal: ac.signal })).seen("what was missed", updated(uri));
	ac.abort();
});

test("what is no resource cannot be subscribed to, and not more than 100 of them", async () => {
	const s = await wire.session();
	for (const uri of ["file:///etc/passwd", `sandbox://runs/run_${"0".repeat(32)}`])
		assert.equal((await wire.legacy(s, "resources/subscribe", { uri })).error.code, -32002, uri);
	assert.equal((await wire.legacy(s, "resources/subscribe", { uri: 1 })).error.code, -32602);
	for (let i = 0; i < 100; i++) await wire.legacy(s, "resources/subscribe", { uri: `sandbox://latest/many/artifacts/${i}` });
	const more = await wire.legacy(s, "resources/subscribe", { uri: "sandbox://latest/many/artifacts/100" });
	assert.equal(more.error.code, -32602);
	assert.match(more.error.message, /100/);
	assert.deepEqual((await wire.legacy(s, "resources/subscribe", { uri: "sandbox://latest/many/artifacts/99" })).result, {});
});

test("subscriptions/listen: acknowledged first, tagged, coalesced, and ended with a result", async () => {
	const { run_id, go } = await waiting("listen", "c");
	const uri = `sandbox://runs/${run_id}/commands/0/stdout`;
	const capabilities = { extensions: { [`${P}tasks`]: {} } };
	const r = await wire.modern("subscriptions/listen", {
		notifications: { toolsListChanged: true, resourceSubscriptions: [uri, "sandbox://runs/none"], taskIds: [run_id] },
	}, { capabilities, id: "sub-1" });
	assert.equal(r.status, 200);
	assert.equal(r.headers.get("mcp-session-id"), null);
	const stream = listen(r);
	await stream.seen("acknowledgment", (m) => m.method === "notifications/subscriptions/acknowledged");
	assert.deepEqual(stream.list[0].params.notifications, { resourceSubscriptions: [uri], taskIds: [run_id] });
	await go();
	await stream.seen("update", updated(uri));
	const done = await stream.seen("task", (m) => m.method === "notifications/tasks" && m.params.status === "completed");
	assert.equal(done.params.taskId, run_id);
	assert.equal(done.params.result.structuredContent.final.state, "completed");
	for (const m of stream.list) assert.equal(m.params._meta[`${P}subscriptionId`], "sub-1");
	await server.restart();
	const last = await stream.seen("the end", (m) => m.id === "sub-1");
	assert.equal(last.result.resultType, "complete");
	assert.equal(last.result._meta[`${P}subscriptionId`], "sub-1");
});

test("what has ended before it is listened to is told once: nobody waits for it in vain", async () => {
	const { run_id } = await run(client, "ended", ["true"]);
	const uri = `sandbox://runs/${run_id}`;
	const ac = new AbortController();
	const stream = listen(await wire.modern("subscriptions/listen", {
		notifications: { resourceSubscriptions: [uri], taskIds: [run_id] },
	}, { capabilities: { extensions: { [`${P}tasks`]: {} } }, signal: ac.signal }));
	await stream.seen("update", updated(uri));
	await stream.seen("task", (m) => m.method === "notifications/tasks" && m.params.status === "completed");
	assert.equal(stream.list.length, 3, "and the acknowledgment");
	const s = await wire.session();
	const own = listen(await wire.stream(s, { signal: ac.signal }));
	await wire.legacy(s, "resources/subscribe", { uri });
	await own.seen("update", updated(uri));
	ac.abort();
});

test("subscriptions/listen refuses what it cannot do", async () => {
	const bare = await wire.modern("subscriptions/listen", {});
	assert.equal((await bare.json()).error.code, -32602);
	const tasks = await wire.modern("subscriptions/listen", { notifications: { taskIds: [] } });
	assert.equal(tasks.status, 400);
	assert.equal((await tasks.json()).error.code, -32021);
	const old = await wire.modern("resources/subscribe", { uri: "sandbox://latest/x/artifacts/y" });
	assert.equal(old.status, 404);
});

test("log messages come after logging/setLevel, on the stream of the call, at its level", async () => {
	const s = await wire.session();
	const params = runOf("logs", "echo out; sleep 0.2");
	const quiet = await wire.post(request("tools/call", params), s);
	assert.match(quiet.headers.get("content-type"), /json/);
	await quiet.json();
	assert.equal((await wire.legacy(s, "logging/setLevel", { level: "loud" })).error.code, -32602);
	for (const [level, text] of [["debug", true], ["info", false]]) {
		assert.deepEqual((await wire.legacy(s, "logging/setLevel", { level })).result, {});
		const got = await until("a stream", 5000, async () => {
			const r = await wire.post(request("tools/call", params), s);
			const list = (await all(r)).filter((f) => f.data).map((f) => JSON.parse(f.data));
			const logs = list.filter((m) => m.method === "notifications/message");
			// Every process has heard of the new level within a second.
			return logs.some((m) => m.params.level === "debug") === text && list;
		});
		const logs = got.slice(0, -1);
		assert.ok(logs.every((m) => m.params.logger === "run"));
		assert.ok(logs.some((m) => m.params.level === "info"));
		if (text) assert.ok(logs.some((m) => JSON.stringify(m.params.data).includes("out")));
		assert.equal(got.at(-1).result.structuredContent.final.state, "completed");
	}
	await wire.legacy(s, "logging/setLevel", { level: "emergency" });
});

test("in the modern era a request says itself that it wants log messages", async () => {
	const params = runOf("logs", "echo out; sleep 0.2");
	const plain = await wire.modern("tools/call", params);
	assert.match(plain.headers.get("content-type"), /json/);
	await plain.json();
	const r = await wire.modern("tools/call", params, { _meta: { [`${P}logLevel`]: "info" } });
	const list = (await all(r)).filter((f) => f.data).map((f) => JSON.parse(f.data));
	assert.ok(list.slice(0, -1).some((m) => m.method === "notifications/message" && m.params.level === "info"));
	assert.equal(list.at(-1).result.resultType, "complete");
	const bad = await wire.modern("tools/call", params, { _meta: { [`${P}logLevel`]: "loud" } });
	assert.equal(bad.status, 400);
	assert.equal((await bad.json()).error.code, -32602);
	assert.equal((await wire.modern("logging/setLevel", { level: "info" })).status, 404);
});

test("a client that never reads its stream costs little and loses nothing it can ask for", { timeout: 600000 }, async () => {
	const s = await wire.session();
	const memory = () => server.pids().edges.reduce((sum, pid) => sum + rss(pid), 0);
	const socket = net.connect(server.port, "127.0.0.1");
	socket.write(`GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: ${s["mcp-session-id"]}\r\n\r\n`);
	await new Promise((r) => socket.once("data", r));
	socket.pause();
	const { run_id } = await run(client, "deaf", ["for i in $(seq 30); do head -c 100000 /dev/zero | tr '\\0' x; sleep 0.1; done"], { await_completion: false });
	await wire.legacy(s, "resources/subscribe", { uri: `sandbox://runs/${run_id}` });
	const before = memory();
	await server.ended(run_id);
	assert.ok(memory() - before < bound(32));
	const read = await wire.legacy(s, "resources/read", { uri: `sandbox://runs/${run_id}` });
	assert.equal(JSON.parse(read.result.contents[0].text).state, "completed");
	socket.destroy();
});

test("a stream that is not read ends at a bound, and the answers can be had again", { timeout: 600000 }, async () => {
	const { run_id } = await run(client, "flood", ["head -c 1000000 /dev/zero | tr '\\0' x"]);
	const memory = () => server.pids().edges.reduce((sum, pid) => sum + rss(pid), 0);
	const socket = net.connect(server.port, "127.0.0.1");
	let closed = false;
	socket.on("close", () => (closed = true));
	socket.on("error", () => {});
	socket.write("GET /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept: text/event-stream\r\n\r\n");
	const head = String(await new Promise((r) => socket.once("data", r)));
	const where = /data: (\/mcp\?sessionId=[0-9a-f]{32})/.exec(head)[1];
	socket.pause();
	const before = memory();
	const uri = `sandbox://runs/${run_id}/commands/0/stdout`;
	for (let i = 0; i < 60; i++) {
		const r = await wire.post(request("resources/read", { uri }), {}, { where });
		assert.equal(r.status, 202);
	}
	assert.ok(memory() - before < bound(96), `${memory() - before} bytes`);
	socket.resume();
	await until("the end of the stream", 20000, () => closed);
	const s = await wire.session("2024-11-05");
	assert.equal((await wire.legacy(s, "resources/read", { uri })).result.contents[0].text.length, 1000000);
});

// Megabytes; a sanitizer keeps what was freed.
const bound = (mb) => (process.env.V && process.env.V !== "release" ? Infinity : mb * 1024 * 1024);

function rss(pid) {
	return Number(/VmRSS:\s+(\d+) kB/.exec(fs.readFileSync(`/proc/${pid}/status`, "utf8"))[1]) * 1024;
}
