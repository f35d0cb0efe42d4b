// SPDX-License-Identifier: MIT
// The warm pool: what a new identifier is given, and that it is nobody else's, whoever
// dies in between. The size comes from a .env file, which SIGHUP reads again.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { Server, run, until } from "./rig.mjs";
import { ask } from "./with-docker.mjs";

const SIZE = 3;
const WARM = /^mcp-sbx-warm-[0-9a-f]{12}$/;
let server, client;

// As server.waitReady(), which takes our own kills for a fault.
const ready = () => until("readyz", 60000, async () => (await server.get("/readyz")).status === 200);

async function configure(settings) {
	const old = server.pids().runner;
	fs.writeFileSync(path.join(server.dir, ".env"), settings);
	server.kill("master", "SIGHUP");
	await until("another runner", 30000, () => ![0, old].includes(server.pids().runner));
	await ready();
}

before(async () => {
	server = await Server.start();
	client = await server.connect();
	await configure(`WARM_POOL_SIZE=${SIZE}\n`);
});
after(async () => {
	await client?.close();
	await server?.stop();
});

const metric = async (name) => Number(new RegExp(`^${name} (\\d+)`, "m").exec(await (await server.get("/metrics")).text())[1]);
const full = (n = SIZE) => until("a full pool", 60000, async () => (await metric("mcp_warm_pool_ready")) === n);
const rows = (sql) => JSON.parse(execFileSync("sqlite3", ["-json", "-readonly", "-cmd", ".timeout 60000", path.join(server.dataDir, "db/mcp-sandboxd.sqlite"), sql]).toString() || "[]");
const call = (name, args) => client.callTool({ name, arguments: args });

// The names of all that the backend holds.
async function held() {
	if (!process.env.MCP_TEST_ENGINE) return fs.readdirSync(path.join(server.dataDir, "sandboxes")).filter((n) => n.startsWith("mcp-sbx-"));
	const all = JSON.parse((await ask(process.env.MCP_TEST_ENGINE, "GET", "/containers/json?all=1")).text);
	return all.filter((c) => c.Labels["mcp.instance"] === server.instance).map((c) => c.Names[0].slice(1));
}

// Nothing but what the store knows, and every name once.
async function settled() {
	const known = rows("SELECT name FROM v_sandboxes").map((r) => r.name).sort();
	assert.equal(new Set(known).size, known.length);
	await until("nothing else at the backend", 30000, async () => {
		const there = (await held()).sort();
		return JSON.stringify(there) === JSON.stringify(rows("SELECT name FROM v_sandboxes ORDER BY name").map((r) => r.name));
	});
}

test("a pool that is asked for by a reload is filled", async () => {
	await full();
	assert.equal(await metric("mcp_warm_pool_size"), SIZE);
	await settled();
});

test("a new identifier is given one, and keeps it under its name", async () => {
	const first = await run(client, "new", ["echo mine >/workspace/f; cat /proc/sys/kernel/hostname"]);
	assert.match(first.sandbox_name, WARM);
	assert.equal(first.final.commands[0].stdout.trim(), first.sandbox_name);
	const again = await run(client, "new", ["cat /workspace/f"]);
	assert.equal(again.sandbox_name, first.sandbox_name);
	assert.equal(again.final.commands[0].stdout, "mine\n");
	assert.equal(await metric("mcp_warm_pool_hits_total"), 1);
	const listed = (await call("list_sandboxes", {})).structuredContent.sandboxes;
	assert.deepEqual(listed.map((s) => s.identifier), ["new"]);
	await full();
	assert.deepEqual(rows("SELECT state, count(*) AS n FROM v_sandboxes GROUP BY 1 ORDER BY 1"), [{ state: "ready", n: 1 }, { state: "warm", n: SIZE }]);
});

test("its time to live is what its caller asked for", async () => {
	await full();
	await run(client, "short", ["true"], { ttl_seconds: 100 });
	const [{ left }] = rows("SELECT expires_in_s AS left FROM v_sandboxes WHERE identifier = 'short'");
	assert.ok(left > 60 && left <= 100, String(left));
});

test("20 first calls at once for one identifier get one sandbox", async () => {
	await full();
	const before = await metric("mcp_warm_pool_hits_total");
	const all = await Promise.all(Array.from({ length: 20 }, () => run(client, "crowd", ["echo x >>/workspace/all"])));
	assert.deepEqual([...new Set(all.map((r) => r.final.state))], ["completed"]);
	assert.equal(new Set(all.map((r) => r.sandbox_name)).size, 1);
	assert.equal((await metric("mcp_warm_pool_hits_total")) - before, 1);
	assert.equal((await run(client, "crowd", ["wc -l </workspace/all"])).final.commands[0].stdout.trim(), "20");
});

test("more new identifiers at once than stand ready are all served, each alone", async () => {
	await full();
	const n = SIZE + 5;
	const served = async () => (await metric("mcp_warm_pool_misses_total")) + (await metric("mcp_warm_pool_hits_total"));
	const before = await served();
	const all = await Promise.all(Array.from({ length: n }, (_, i) =>
		run(client, `many-${i}`, ["[ ! -e /workspace/mark ] && touch /workspace/mark"])));
	for (const r of all) assert.equal(r.final.state, "completed");
	assert.equal(new Set(all.map((r) => r.sandbox_name)).size, n);
	assert.equal((await served()) - before, n);
	for (let i = 0; i < n; i++) await call("delete_sandbox", { identifier: `many-${i}` });
	await full();
	await settled();
});

test("a restart takes a fresh one, a delete leaves none", async () => {
	await full();
	const first = await run(client, "again", ["touch /workspace/f"]);
	await full();
	const restarted = (await call("restart_sandbox", { identifier: "again" })).structuredContent;
	const second = await run(client, "again", ["[ ! -e /workspace/f ]"]);
	assert.equal(second.final.state, "completed");
	assert.match(second.sandbox_name, WARM);
	assert.notEqual(second.sandbox_name, first.sandbox_name);
	assert.equal(restarted.sandbox?.name ?? second.sandbox_name, second.sandbox_name);
	await call("delete_sandbox", { identifier: "again" });
	await full();
	await settled();
	assert.ok(!(await held()).some((n) => [first.sandbox_name, second.sandbox_name].includes(n)));
});

test("a file can be the first thing it gets", async () => {
	await full();
	const hits = await metric("mcp_warm_pool_hits_total");
	await call("write_file", { identifier: "file", path: "/workspace/f", text: "written\n" });
	assert.equal((await metric("mcp_warm_pool_hits_total")) - hits, 1);
	assert.equal((await run(client, "file", ["cat /workspace/f"])).final.commands[0].stdout, "written\n");
});

test("the runner is killed while the pool fills: nothing is left over", async () => {
	for (let i = 0; i < 6; i++) {
		await full();
		const old = server.pids().runner;
		await Promise.all([0, 1, 2].map((k) => call("delete_sandbox", { identifier: `fill-${k}` })));
		await Promise.all([0, 1, 2].map((k) => run(client, `fill-${k}`, ["true"])));
		await new Promise((r) => setTimeout(r, 40 * i)); // somewhere in the filling
		server.kill("runner");
		await until("another runner", 30000, () => ![0, old].includes(server.pids().runner));
		await ready();
	}
	await full();
	await settled();
});

test("the runner is killed at the binding: a sandbox is never given to two", async () => {
	const body = (id) => ({
		method: "POST",
		headers: { "content-type": "application/json", accept: "application/json, text/event-stream", "mcp-session-id": client.transport.sessionId },
		body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "run_sandbox", arguments: {
			identifier: id, commands: [{ shell: "[ ! -e /workspace/mark ] && touch /workspace/mark" }], options: { await_completion: true } } } }),
	});
	for (let i = 0; i < 12; i++) {
		await full();
		const old = server.pids().runner;
		const answer = server.get("/mcp", body(`bind-${i}`)).then((r) => r.text());
		await new Promise((r) => setTimeout(r, i % 6));
		server.kill("runner");
		await until("another runner", 30000, () => ![0, old].includes(server.pids().runner));
		const { result } = JSON.parse(await answer);
		// Accepted: it went as it should. Or refused in words.
		if (result.structuredContent?.run_id) assert.equal(result.structuredContent.final.state, "completed", JSON.stringify(result));
		else assert.ok(result.isError);
		await ready();
	}
	await full();
	assert.equal((await run(client, "bind-last", ["[ ! -e /workspace/mark ]"])).final.state, "completed");
	await full();
	await settled();
});

test("one that is killed is replaced and not given out", async () => {
	await full();
	const [{ name }] = rows("SELECT name FROM warm_sandboxes ORDER BY created_at LIMIT 1");
	if (process.env.MCP_TEST_ENGINE) await ask(process.env.MCP_TEST_ENGINE, "DELETE", `/containers/${name}?force=1`);
	else process.kill(JSON.parse(fs.readFileSync(path.join(server.dataDir, "sandboxes", name, "state.json"), "utf8")).pid, "SIGKILL");
	await until("its row to go", 20000, () => rows(`SELECT 1 FROM warm_sandboxes WHERE name = '${name}'`).length === 0);
	await full();
	await settled();
	assert.ok(!(await held()).includes(name));
});

test("other limits replace those that stand, a smaller size lets the rest go", async () => {
	await full();
	const old = rows("SELECT name FROM warm_sandboxes").map((r) => r.name);
	await configure(`WARM_POOL_SIZE=${SIZE}\nDEFAULT_MEMORY_MB=700\n`);
	await full();
	for (const { name } of rows("SELECT name FROM warm_sandboxes")) assert.ok(!old.includes(name));
	await settled();
	const kept = rows("SELECT name FROM warm_sandboxes").map((r) => r.name);
	await configure("WARM_POOL_SIZE=1\nDEFAULT_MEMORY_MB=700\n");
	await full(1);
	await settled();
	assert.ok(kept.includes(rows("SELECT name FROM warm_sandboxes")[0].name));
});

test("after a stop its files are there, in the sandbox it had", async () => {
	const [{ name }] = rows("SELECT name FROM sandboxes WHERE identifier = 'new'");
	await server.restart();
	const r = await run(client, "new", ["cat /workspace/f"]).catch(async () => {
		client = await server.connect();
		return run(client, "new", ["cat /workspace/f"]);
	});
	assert.equal(r.final.commands[0].stdout, "mine\n");
	assert.equal(r.sandbox_name, name);
	await full(1);
	await settled();
});

test("a stop leaves none of the pool behind", async () => {
	await full(1);
	await server.stopServer();
	assert.deepEqual(rows("SELECT name FROM warm_sandboxes"), []);
	assert.deepEqual((await held()).sort(), rows("SELECT name FROM sandboxes ORDER BY name").map((r) => r.name));
	await server.startServer();
	await server.waitReady();
});
