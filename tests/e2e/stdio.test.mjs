// SPDX-License-Identifier: MIT
// MCP on standard input and output: the SDK's own stdio client, raw lines, and the
// server that is started when none is running.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import readline from "node:readline";
import { after, before, test } from "node:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { Server, binary, run, shareImages, traces, until } from "./rig.mjs";

let server;

before(async () => {
	server = await Server.start();
});
after(() => server?.stop());

async function connect(env) {
	const client = new Client({ name: "stdio", version: "1" });
	await client.connect(new StdioClientTransport({ command: binary, args: ["stdio"], env, stderr: "inherit" }));
	return client;
}

// Lines in, lines out; end() closes the input and gives all that came.
function raw(env) {
	const child = spawn(binary, ["stdio"], { env, stdio: ["pipe", "pipe", "inherit"] });
	const lines = [];
	readline.createInterface({ input: child.stdout }).on("line", (l) => lines.push(JSON.parse(l)));
	const ended = once(child, "close");
	return {
		child, lines, ended,
		send: (...all) => child.stdin.write(all.map((m) => (typeof m === "string" ? m : JSON.stringify(m)) + "\n").join("")),
		async end() {
			child.stdin.end();
			assert.equal((await ended)[0], 0);
			return lines;
		},
	};
}

const hello = { jsonrpc: "2.0", id: 0, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "raw", version: "1" } } };
const say = (id, shell, more = {}, options = {}) => ({
	jsonrpc: "2.0", id, method: "tools/call",
	params: { name: "run_sandbox", arguments: { identifier: "raw", commands: [{ shell }], options: { await_completion: true, ...options } }, ...more },
});
const modern = (m) => ({
	...m,
	params: { ...m.params, _meta: { ...m.params?._meta, "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} } },
});

test("what is piped in all at once belongs to the session that its first line opens", async () => {
	const io = raw(server.env);
	const list = { jsonrpc: "2.0", id: 7, method: "tools/list" };
	io.child.stdin.end([hello, { jsonrpc: "2.0", method: "notifications/initialized" }, list].map((m) => JSON.stringify(m)).join("\n"));
	assert.equal((await io.ended)[0], 0);
	assert.deepEqual(io.lines.map((l) => [l.id, Boolean(l.result)]), [[0, true], [7, true]]);
});

test("a notification is never answered, also before there is a session", async () => {
	const io = raw(server.env);
	io.send({ jsonrpc: "2.0", method: "notifications/initialized" }, { jsonrpc: "2.0", method: "notifications/x", params: [1] },
		{ jsonrpc: "2.0", id: 9, result: {} }, { jsonrpc: "2.0", id: 1, method: "ping" }, hello);
	await until("the answers", 15000, () => io.lines.length >= 2);
	io.send({ jsonrpc: "2.0", method: "notifications/x", params: [1] }, { jsonrpc: "2.0", id: 2, method: "ping" });
	assert.deepEqual((await io.end()).map((l) => [l.id, l.error?.code]), [[1, -32000], [0, undefined], [2, undefined]]);
});

test("the SDK's stdio client tells the story, beside one over HTTP", async () => {
	const client = await connect(server.env);
	assert.equal((await client.listTools()).tools.length, 9);
	const { final, run_id } = await run(client, "stdio", ["echo hi; echo file >/artifacts/f.txt"]);
	assert.equal(final.commands[0].stdout, "hi\n");
	const link = `sandbox://runs/${run_id}/artifacts/f.txt`;
	assert.equal((await client.readResource({ uri: link })).contents[0].text, "file\n");
	const http = await server.connect();
	assert.equal((await run(http, "stdio", ["cat /artifacts/f.txt"])).final.commands[0].stdout, "file\n");
	// Many at once, answered as they end: each when it is let go.
	const order = [];
	const all = ["a", "b", "c"].map((n) => run(client, "stdio", [`until [ -e /tmp/go-${n} ]; do sleep 0.05; done`]).then(() => order.push(n)));
	for (const [i, n] of [[1, "b"], [2, "c"], [0, "a"]]) {
		await run(http, "stdio", [`touch /tmp/go-${n}`]);
		await all[i];
	}
	assert.deepEqual(order, ["b", "c", "a"]);
	await http.close();
	await client.close();
});

test("what changes, what is logged and what is asked comes between the answers", async () => {
	const ask = { ...server.env, CONFIRM_DELETE: "true" };
	const c = raw(ask);
	const seen = (what, check) => until(what, 15000, () => c.lines.find(check));
	c.send({ ...hello, params: { ...hello.params, capabilities: { elicitation: {} } } });
	await seen("hello", (m) => m.id === 0);
	c.send({ jsonrpc: "2.0", id: "level", method: "logging/setLevel", params: { level: "info" } });
	await seen("the level", (m) => m.id === "level");
	c.send({ jsonrpc: "2.0", id: "sub", method: "resources/subscribe", params: { uri: "sandbox://latest/raw/artifacts/x" } });
	await seen("subscribed", (m) => m.id === "sub");
	c.send(say("run", "echo x >/artifacts/x"));
	await seen("the run", (m) => m.id === "run");
	await seen("a log message", (m) => m.method === "notifications/message" && m.params.level === "info");
	await seen("the change", (m) => m.method === "notifications/resources/updated");
	const remove = (id) => ({ jsonrpc: "2.0", id, method: "tools/call", params: { name: "delete_sandbox", arguments: { identifier: "raw" } } });
	for (const [id, action] of [["no", "decline"], ["yes", "accept"]]) {
		const asked = new Set(c.lines.filter((m) => m.method === "elicitation/create").map((m) => m.id));
		c.send(remove(id));
		const q = await seen("the question", (m) => m.method === "elicitation/create" && !asked.has(m.id));
		c.send({ jsonrpc: "2.0", id: q.id, result: { action, content: {} } });
		const done = await seen("the answer", (m) => m.id === id);
		assert.equal(Boolean(done.result.isError), action === "decline");
	}
	// Nobody answers any more: it is told, and the end of the input is the end.
	c.send(remove("silent"));
	await until("the last question", 5000, () => c.lines.filter((m) => m.method === "elicitation/create").length === 3);
	await c.end();
	assert.ok(c.lines.find((m) => m.id === "silent").result.isError);
});

test("subscriptions/listen lasts until it is canceled or the input ends", async () => {
	const c = raw(server.env);
	const seen = (what, check) => until(what, 15000, () => c.lines.find(check));
	const tag = "io.modelcontextprotocol/subscriptionId";
	const listen = (id) => modern({ jsonrpc: "2.0", id, method: "subscriptions/listen", params: { notifications: { resourceSubscriptions: ["sandbox://latest/raw/artifacts/y"] } } });
	c.send(listen(1), listen(2));
	for (const id of [1, 2]) await seen("acknowledged", (m) => m.method === "notifications/subscriptions/acknowledged" && m.params._meta[tag] === id);
	c.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } });
	c.send(modern(say(3, "echo y >/artifacts/y")));
	await seen("the change", (m) => m.method === "notifications/resources/updated" && m.params._meta[tag] === 2);
	assert.ok(!c.lines.some((m) => m.method === "notifications/resources/updated" && m.params._meta[tag] === 1));
	await c.end();
});

test("progress is told while a run is awaited", async () => {
	const client = await connect(server.env);
	const seen = [];
	const http = await server.connect();
	let enough;
	const r = await client.callTool(
		{ name: "run_sandbox", arguments: { identifier: "stdio", commands: [{ shell: "until [ -e /tmp/enough ]; do echo step; sleep 0.3; done" }], options: { await_completion: true } } },
		undefined, { onprogress(p) {
			seen.push(p);
			if (seen.length >= 2) enough ??= run(http, "stdio", ["touch /tmp/enough"]);
		} });
	await enough;
	await http.close();
	assert.equal(r.structuredContent.final.state, "completed");
	assert.ok(seen.length >= 2, `${seen.length} words of progress`);
	for (let i = 1; i < seen.length; i++) assert.ok(seen[i].progress > seen[i - 1].progress);
	await client.close();
});

test("the end of input ends it when all is answered; runs go on", async () => {
	const p = raw(server.env);
	p.send(hello);
	await until("initialize", 10000, () => p.lines.length === 1);
	p.send({ jsonrpc: "2.0", method: "notifications/initialized" }, say("a", "sleep 0.5; echo last"), { jsonrpc: "2.0", id: 2, method: "ping" });
	const lines = await p.end();
	assert.deepEqual(lines.map((l) => l.id), [0, 2, "a"]);
	assert.equal(lines[2].result.structuredContent.final.commands[0].stdout, "last\n");
});

test("what is no message is answered as such, and the rest goes on", async () => {
	const p = raw(server.env);
	p.send(hello);
	await until("initialize", 10000, () => p.lines.length === 1);
	p.send("not json", "", '{"jsonrpc":"2.0","id":5,"method":"nothing"}', "x".repeat(9 << 20), { jsonrpc: "2.0", id: 6, method: "ping" });
	const lines = await p.end();
	assert.deepEqual(lines.slice(1).map((l) => l.error?.code ?? l.result), [-32700, -32601, -32600, {}]);
});

test("a cancel ends the run of the request, in both eras", async () => {
	const p = raw(server.env);
	p.send(hello);
	await until("initialize", 10000, () => p.lines.length === 1);
	p.send(say(1, "echo begun; sleep 100"), modern(say(2, "echo begun; sleep 100")));
	const http = await server.connect();
	const running = () => execFileSync("sqlite3", ["-readonly", path.join(server.dataDir, "db/mcp-sandboxd.sqlite"),
		"SELECT count(*) FROM commands WHERE status = 'running' AND shell LIKE '%sleep 100'"]).toString().trim();
	await until("both run", 20000, () => running() === "2");
	p.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } },
		modern({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 2 } }));
	await until("both ended", 20000, () => running() === "0");
	const lines = await p.end();
	assert.ok(!lines.some((l) => l.id === 1), "a canceled request has no answer");
	await http.close();
});

test("the modern era needs no handshake and no headers", async () => {
	const p = raw(server.env);
	p.send(modern({ jsonrpc: "2.0", id: 1, method: "server/discover", params: {} }), modern(say(2, "echo modern")));
	const lines = await p.end();
	const by = Object.fromEntries(lines.map((l) => [l.id, l.result]));
	assert.ok(by[1].supportedVersions.includes("2026-07-28"));
	assert.equal(by[2].resultType, "complete");
	assert.equal(by[2].structuredContent.final.commands[0].stdout, "modern\n");
});

test("a killed runner is waited for", async () => {
	const client = await connect(server.env);
	const pending = run(client, "stdio", ["sleep 1; echo through"]);
	await new Promise((r) => setTimeout(r, 300));
	server.kill("runner");
	assert.equal((await pending).final.commands[0].stdout, "through\n");
	assert.equal((await run(client, "stdio", ["echo after"])).final.commands[0].stdout, "after\n");
	await client.close();
});

test("a server is started when none is running, and stays", async () => {
	const dir = fs.mkdtempSync(path.join(os.tmpdir(), "mcp-stdio-"));
	fs.chmodSync(dir, 0o755);
	const dataDir = path.join(dir, "data");
	const env = { PATH: process.env.PATH, HOME: "/root", DATA_DIR: dataDir };
	shareImages(dataDir);
	try {
		const client = await connect(env);
		assert.equal((await run(client, "x", ["echo hi"])).final.commands[0].stdout, "hi\n");
		await client.close();
		const again = await connect(env);
		assert.equal((await again.callTool({ name: "list_sandboxes", arguments: {} })).structuredContent.sandboxes.length, 1);
		await again.close();
	} finally {
		execFileSync(binary, ["stop"], { env });
		const instance = fs.readFileSync(path.join(dataDir, "instance"), "utf8").trim();
		const left = traces([dir, instance], instance);
		fs.rmSync(dir, { recursive: true, force: true });
		assert.deepEqual(left, []);
	}
});

test("a member of the server's group may use it", async () => {
	const gid = Number(execFileSync("id", ["-g", server.env.EDGE_USER ?? "mcp-sandboxd"]));
	const child = spawn(binary, ["stdio"], { env: { PATH: process.env.PATH, DATA_DIR: server.dataDir }, uid: 65534, gid, cwd: "/", stdio: ["pipe", "pipe", "inherit"] });
	let out = "";
	child.stdout.on("data", (d) => (out += d));
	child.stdin.end([modern(say(1, "echo member >/artifacts/m; cat /artifacts/m"))].map((m) => JSON.stringify(m) + "\n").join(""));
	await once(child, "close");
	assert.equal(JSON.parse(out).result.structuredContent.final.commands[0].stdout, "member\n");
});

test("who may not use or start a server is told so in words", async () => {
	const dir = fs.mkdtempSync(path.join(os.tmpdir(), "mcp-stdio-"));
	fs.chmodSync(dir, 0o755);
	const as = (data) => new Promise((resolve) => {
		const child = spawn(binary, ["stdio"], { env: { PATH: process.env.PATH, DATA_DIR: data }, uid: 65534, gid: 65534, cwd: "/", stdio: ["pipe", "ignore", "pipe"] });
		let words = "";
		child.stderr.on("data", (d) => (words += d));
		child.on("close", (code) => resolve({ code, words }));
	});
	const none = await as(path.join(dir, "none"));
	assert.equal(none.code, 1);
	assert.match(none.words, /only root can start one/);
	const other = await as(server.dataDir);
	assert.equal(other.code, 1);
	assert.match(other.words, /group/);
	fs.rmSync(dir, { recursive: true });
});
