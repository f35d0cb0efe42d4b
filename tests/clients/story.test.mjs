// SPDX-License-Identifier: MIT
// One story, told by every client: meet, list, run with progress, wait longer than
// the client would, cancel, artifact, go on after a restart of the server, delete.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, until } from "../e2e/rig.mjs";
import { clients } from "./adapters.mjs";

const ANSWER_MAX_MS = 3000;
let server;

before(async () => {
	server = await Server.start({ AWAIT_ANSWER_MAX_MS: String(ANSWER_MAX_MS), EDGE_PROCESSES: "3" });
});
after(() => server?.stop());

const say = (identifier, shell, options = {}) => ({
	name: "run_sandbox",
	arguments: {
		identifier,
		commands: [{ shell }],
		options: { await_completion: true, await_timeout_ms: 100000, ...options },
	},
});
const text = (r) => r.content.map((c) => c.text ?? "").join("\n");

async function progress(c, id) {
	const seen = [];
	const r = await c.call(say(id, "for i in 1 2 3; do echo line $i; sleep 1.1; done"), {
		onprogress: (p) => seen.push(p),
		resetTimeoutOnProgress: true,
		timeout: 5000,
	});
	assert.equal(r.structuredContent.final.state, "completed");
	assert.ok(seen.length >= 2, `progress came ${seen.length} times`);
	for (let i = 1; i < seen.length; i++) assert.ok(seen[i].progress > seen[i - 1].progress);
	assert.match(seen[1].message, /^command 1 of 1: line \d$/);
}

async function cancel(c, id) {
	const ac = new AbortController();
	const called = c.call(say(id, `echo here > /workspace/${id}; sleep 300`), { signal: ac.signal });
	called.catch(() => {});
	const run = await until("the run to cancel", 10000, async () => (await recent(id)).find((r) => r.state === "running"));
	ac.abort("enough");
	await assert.rejects(called);
	const ended = await server.ended(run.run_id, 15000);
	assert.equal(ended.state, "canceled");
}

// What the server's own store knows of an identifier's runs.
async function recent(id) {
	const { execFileSync } = await import("node:child_process");
	const sql = `SELECT run_id, state FROM runs WHERE identifier = '${id}' ORDER BY created_at DESC`;
	const out = execFileSync("sqlite3", ["-json", "-readonly", `${server.dataDir}/db/mcp-sandboxd.sqlite`, sql], { encoding: "utf8" });
	return out ? JSON.parse(out) : [];
}

for (const [i, { name, connect, lacks = [] }] of clients.entries()) {
	test(name, { timeout: 180000 }, async (t) => {
		const id = `client-${i}`;
		const has = (part) => !lacks.includes(part);
		let c = await connect(server.url);
		t.after(() => c.close());
		if (has("name")) assert.equal(c.name, "mcp-sandboxd");
		const tools = await c.list();
		assert.ok(tools.some((x) => x.name === "run_sandbox"));

		const made = await c.call(say(id, "echo hello; echo data > /artifacts/data.txt"));
		assert.equal(made.structuredContent.final.state, "completed");
		const url = made.structuredContent.final.artifacts[0].url;
		assert.equal(await (await server.get(url)).text(), "data\n");

		const began = Date.now();
		const slow = await c.call(say(id, "sleep 6; echo slept"), { timeout: 20000 });
		assert.equal(slow.structuredContent.final, null);
		assert.ok(!slow.isError);
		assert.ok(has("progress") ? Date.now() - began < ANSWER_MAX_MS + 2000 : true);
		assert.equal((await server.ended(slow.structuredContent.run_id)).state, "completed");

		if (has("progress")) await progress(c, id);
		if (has("cancel")) await cancel(c, id);

		const bad = await c.call({ name: "run_sandbox", arguments: { identifier: id, commands: [{ argv: ["true"], cwd: "not absolute" }] } });
		assert.ok(bad.isError);
		assert.match(text(bad), /cwd/);

		await server.restart();
		if (!has("restart")) {
			await c.close();
			c = await connect(server.url);
		}
		await until("the client to go on", 30000, async () => {
			const r = await c.call(say(id, "cat /artifacts/data.txt"), { timeout: 8000 });
			return r.structuredContent.final.commands[0].stdout === "data\n";
		});
		const gone = await c.call({ name: "delete_sandbox", arguments: { identifier: id } });
		assert.equal(gone.structuredContent.deleted, true);
	});
}
