// SPDX-License-Identifier: MIT
// One story, told by every client: meet, list, run and fetch the artifact, wait longer
// than the client would, follow the progress, cancel, be refused, go on after a restart
// of the server, delete. Each part is a test; what a client cannot do is skipped by name.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";
import { Server, run, until } from "../e2e/rig.mjs";
import { runOf } from "../e2e/wire.mjs";
import { clients } from "./adapters.mjs";

const ANSWER_MAX_MS = 3000;
let server;

before(async () => {
	server = await Server.start({ AWAIT_ANSWER_MAX_MS: String(ANSWER_MAX_MS), EDGE_PROCESSES: "3" });
});
after(() => server?.stop());

const say = (identifier, shell) => runOf(identifier, shell, { await_timeout_ms: 100000 });
const text = (r) => r.content.map((c) => c.text ?? "").join("\n");

// What the server's own store knows of an identifier's runs.
function recent(id) {
	const sql = `SELECT run_id, state FROM runs WHERE identifier = '${id}' ORDER BY created_at DESC`;
	const out = execFileSync("sqlite3", ["-json", "-readonly", `${server.dataDir}/db/mcp-sandboxd.sqlite`, sql], { encoding: "utf8" });
	return out ? JSON.parse(out) : [];
}

// s: {c: the client, id: its identifier, has: (part) => can it}.
const parts = {
	async meet(s) {
		assert.equal(s.c.name, "mcp-sandboxd");
	},
	async list(s) {
		assert.ok((await s.c.list()).some((x) => x.name === "run_sandbox"));
	},
	async artifact(s) {
		const made = await s.c.call(say(s.id, "echo hello; echo data > /artifacts/data.txt"));
		assert.equal(made.structuredContent.final.state, "completed");
		const { url } = made.structuredContent.final.artifacts[0];
		assert.equal(await (await server.get(url)).text(), "data\n");
	},
	async handle(s) {
		const slow = await s.c.call(say(s.id, "sleep 6; echo slept"), { timeout: 120000 });
		assert.equal(slow.structuredContent.final, null);
		assert.ok(!slow.isError);
		assert.match(text(slow), /get_run|run_id/);
		assert.equal((await server.ended(slow.structuredContent.run_id)).state, "completed");
	},
	async progress(s) {
		const seen = [];
		const other = await server.connect();
		let enough;
		const r = await s.c.call(say(s.id, "i=0; until [ -e /tmp/enough ]; do echo line $((i++ % 10)); sleep 0.5; done; rm /tmp/enough"), {
			onprogress(p) {
				seen.push(p);
				if (seen.length >= 3) enough ??= run(other, s.id, ["touch /tmp/enough"]);
			},
			resetTimeoutOnProgress: true,
			timeout: 60000,
		});
		await enough;
		await other.close();
		assert.equal(r.structuredContent.final.state, "completed");
		assert.ok(seen.length >= 2, `progress came ${seen.length} times`);
		for (let i = 1; i < seen.length; i++) assert.ok(seen[i].progress > seen[i - 1].progress);
		assert.match(seen[1].message, /^command 1 of 1: line \d$/);
	},
	async cancel(s) {
		const ac = new AbortController();
		const called = s.c.call(say(s.id, "echo here; sleep 300"), { signal: ac.signal });
		called.catch(() => {});
		const run = await until("the run to cancel", 20000, () => recent(s.id).find((r) => r.state === "running"));
		ac.abort("enough");
		await assert.rejects(called);
		assert.equal((await server.ended(run.run_id, 15000)).state, "canceled");
	},
	async refusal(s) {
		const bad = await s.c.call({ name: "run_sandbox", arguments: { identifier: s.id, commands: [{ argv: ["true"], cwd: "not absolute" }] } });
		assert.ok(bad.isError);
		assert.match(text(bad), /cwd/);
	},
	async restart(s) {
		await server.restart();
		await goesOn(s);
	},
	async delete(s) {
		// Who could not go on after the restart begins anew, and finds all there.
		if (!s.has("restart")) {
			await server.restart();
			await s.c.close();
			s.c = await s.connect(server.url);
			await goesOn(s);
		}
		const gone = await s.c.call({ name: "delete_sandbox", arguments: { identifier: s.id } });
		assert.equal(gone.structuredContent.deleted, true);
	},
};

function goesOn(s) {
	return until("the client to go on", 30000, async () => {
		const r = await s.c.call(say(s.id, "cat /artifacts/data.txt"), { timeout: 30000 });
		return r.structuredContent.final.commands[0].stdout === "data\n";
	});
}

for (const [i, { name, connect, lacks = {} }] of clients.entries()) {
	const s = { id: `client-${i}`, connect, has: (part) => !(part in lacks) };
	const steps = Object.keys(parts);
	for (const part of steps)
		test(`${name}: ${part}`, { skip: lacks[part] ?? false, timeout: 600000 }, async () => {
			s.c ??= await connect(server.url);
			await parts[part](s);
			if (part === steps.at(-1)) await s.c.close();
		});
}
