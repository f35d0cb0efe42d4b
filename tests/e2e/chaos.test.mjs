// SPDX-License-Identifier: MIT
// Processes are killed at random moments under load: whatever dies, every run that was
// accepted ends truthfully, its output is whole and there once, and nothing is left
// over. CHAOS_KILLS, CHAOS_CLIENTS and CHAOS_SEED make it longer, broader, repeatable.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { Server, tryKill, until } from "./rig.mjs";

const KILLS = Number(process.env.CHAOS_KILLS ?? 40);
const CLIENTS = Number(process.env.CHAOS_CLIENTS ?? 4);
const SEED = Number(process.env.CHAOS_SEED ?? Date.now() % 1e9);
const PAUSE_MS = [50, 900];
// What is killed, as often as it stands here.
const VICTIMS = ["runner", "runner", "runner", "edge", "edge", "edges", "master", "nginx"];

let server;
let killing = true;
// By script: what its command must have printed.
const expected = new Map();
// run_id -> what its client knows of it.
const accepted = new Map();
const removed = new Set();
const tally = { kills: {}, calls: 0, refused: 0, cut: 0, resumed: 0 };

function random(seed) {
	let a = seed;
	return (n) => {
		a = (a + 0x6d2b79f5) | 0;
		let t = Math.imul(a ^ (a >>> 15), a | 1);
		t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
		return ((t ^ (t >>> 14)) >>> 0) % n;
	};
}
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

function lines(tag, n, begin = 1) {
	let text = "";
	for (let i = begin; i <= n; i++) text += `${tag} ${i}\n`;
	return text;
}

// Every kind prints what is known to the byte, in its own rhythm.
const kinds = [
	(tag) => [`for i in $(seq 30); do echo ${tag} $i; sleep 0.03; done`, lines(tag, 30), ""],
	(tag) => [`seq 1 9000 | sed 's/^/${tag} /'`, lines(tag, 9000), ""],
	(tag) => [`for i in $(seq 20); do echo ${tag} $i; echo ${tag} $i >&2; sleep 0.02; done`, lines(tag, 20), lines(tag, 20)],
	(tag) => [`for i in 1 2 3; do printf '\\303'; sleep 0.1; printf '\\274'; done; echo ${tag}`, `üüü${tag}\n`, ""],
	(tag) => [`echo ${tag} >/artifacts/${tag}; cat /artifacts/${tag}`, `${tag}\n`, ""],
	(tag) => [`seq 1 200 | sed 's/^/${tag} /' >&2; true`, "", lines(tag, 200)],
];

function commands(tag, pick) {
	const n = 1 + pick(2);
	return Array.from({ length: n }, (_, i) => {
		const mark = `${tag}-${i}`;
		const [shell, stdout, stderr] = kinds[pick(kinds.length)](mark);
		expected.set(shell, { stdout, stderr, mark });
		return { shell };
	});
}

async function rpc(method, params, session) {
	const r = await fetch(server.url, {
		method: "POST",
		headers: {
			"content-type": "application/json",
			accept: "application/json, text/event-stream",
			...(session && { "mcp-session-id": session, "mcp-protocol-version": "2025-06-18" }),
		},
		body: JSON.stringify({ jsonrpc: "2.0", ...(method.startsWith("notifications/") ? {} : { id: 1 }), method, params }),
		signal: AbortSignal.timeout(60000),
	});
	const text = await r.text();
	if (r.status === 503) throw Object.assign(new Error("busy"), { busy: JSON.parse(text) });
	return { status: r.status, session: r.headers.get("mcp-session-id"), answer: text && JSON.parse(text) };
}

// What a client does when the server said no or went: wait a little, ask again.
async function again(what, ask) {
	return until(what, 60000, async () => {
		try {
			return await ask();
		} catch (error) {
			if (error.busy) tally.refused++;
			else if (error instanceof TypeError || error.name === "AbortError") tally.cut++;
			else throw Object.assign(error, { fatal: true });
			await sleep(50);
			return undefined;
		}
	});
}

// Follows a run's events to their end over any number of broken streams.
async function follow(run_id) {
	const seen = [];
	await again(`events of ${run_id}`, async () => {
		if (seen.length) tally.resumed++;
		try {
			for await (const e of await server.events(run_id, { lastEventId: seen.at(-1)?.id, signal: AbortSignal.timeout(60000) }))
				if (e.event !== "heartbeat") seen.push(e);
		} catch (error) {
			if (!/^events: 503/.test(error.message)) throw error;
			throw Object.assign(error, { busy: true });
		}
		return ["run_finished", "run_failed"].includes(seen.at(-1)?.event);
	});
	return seen;
}

// Only after the run has ended: nothing is canceled by it.
async function remove(identifier, session) {
	const { answer } = await again(`delete ${identifier}`, () =>
		rpc("tools/call", { name: "delete_sandbox", arguments: { identifier } }, session));
	if (!answer.result.isError) removed.add(identifier);
}

async function clientLoop(k) {
	const pick = random(SEED + k + 1);
	const { session } = await again("initialize", () =>
		rpc("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: `chaos-${k}`, version: "1" } }));
	assert.ok(session);
	await again("initialized", () => rpc("notifications/initialized", {}, session));
	for (let i = 0; killing; i++) {
		const await_completion = pick(2) === 0;
		// Now and then a sandbox of its own, so that starts and removals are hit too.
		const own = pick(8) === 0;
		const args = {
			identifier: own ? `chaos-${k}-${i}` : `chaos-${k}`,
			commands: commands(`c${k}-${i}`, pick),
			options: { await_completion, await_timeout_ms: 50000 },
		};
		tally.calls++;
		let said;
		try {
			said = await rpc("tools/call", { name: "run_sandbox", arguments: args }, session);
		} catch (error) {
			// Not known to be accepted; if it was, it must still have ended well.
			if (error.busy) tally.refused++;
			else tally.cut++;
			continue;
		}
		assert.equal(said.status, 200, JSON.stringify(said.answer));
		const { structuredContent: run, content, isError } = said.answer.result ?? {};
		if (!run?.run_id) {
			assert.ok(isError && content[0].text, JSON.stringify(said.answer));
			tally.refused++;
			tally.lastRefusal = content[0].text;
			continue;
		}
		accepted.set(run.run_id, { awaited: run.final });
		if (!await_completion) accepted.get(run.run_id).events = await follow(run.run_id);
		if (own && accepted.get(run.run_id).events) await remove(args.identifier, session);
	}
}

const victims = {
	runner: () => server.kill("runner"),
	edges: () => server.kill("edge"),
	nginx: () => server.nginx.kill("SIGHUP"),
	edge() {
		const [pid] = server.pids().edges;
		return pid && tryKill(pid, "SIGKILL");
	},
	async master() {
		await server.stopServer("SIGKILL");
		await server.startServer();
		return true;
	},
};

// What is not there just now is no kill; the next one comes soon.
async function killLoop() {
	const pick = random(SEED);
	for (let i = 0; i < KILLS; i++) {
		await sleep(PAUSE_MS[0] + pick(PAUSE_MS[1] - PAUSE_MS[0]));
		const who = VICTIMS[pick(VICTIMS.length)];
		if (await victims[who]()) tally.kills[who] = (tally.kills[who] ?? 0) + 1;
	}
	killing = false;
}

const db = (sql) =>
	JSON.parse(execFileSync("sqlite3", ["-json", "-readonly", path.join(server.dataDir, "db/mcp-sandboxd.sqlite"), sql], { maxBuffer: 1 << 28 }).toString() || "[]");

before(async () => {
	server = await Server.start({ EDGE_PROCESSES: "2", DEFAULT_PIDS: "64", WARM_POOL_SIZE: "2" });
});
after(async () => {
	killing = false;
	await server?.stop(); // fails when anything is left on the machine
});

test("processes die at random under load", { timeout: 3600000 }, async () => {
	console.log(`# seed ${SEED}`);
	const killer = killLoop().finally(() => (killing = false));
	await Promise.all([killer, ...Array.from({ length: CLIENTS }, (_, k) => clientLoop(k))]);
	await until("readyz", 20000, async () => (await server.get("/readyz")).status === 200);
	await until("end of all runs", 60000, () => db("select count(*) n from runs where state in ('queued','running')")[0].n === 0);
	console.log(`# ${JSON.stringify(tally)} accepted ${accepted.size}`);
	assert.ok(accepted.size > 0);
});

test("every accepted run is there, and every run completed", () => {
	const runs = new Map(db("select run_id, state, error from runs").map((r) => [r.run_id, r]));
	console.log(`# ${runs.size} runs`);
	for (const id of accepted.keys()) assert.ok(runs.has(id), `${id} is lost`);
	for (const r of runs.values()) assert.equal(r.state, "completed", JSON.stringify(r));
});

test("the output of every command is whole and there once, as bytes and as text", async () => {
	for (const { run_id } of db("select run_id from runs")) {
		const run = await server.run_status(run_id);
		for (const c of run.commands) {
			const want = expected.get(c.shell);
			for (const stream of ["stdout", "stderr"]) {
				const raw = await server.get(`/mcp/runs/${run_id}/commands/${c.index}/${stream}`);
				assert.equal(await raw.text(), want[stream], `${run_id} ${c.index} ${stream} ${c.shell}`);
				assert.equal(c[`${stream}_bytes`], Buffer.byteLength(want[stream]), `${run_id} ${c.index}`);
			}
			assert.equal(c.exit_code, 0);
		}
	}
});

function outputOf(events, index, stream) {
	return events.filter((e) => e.event === `command_${stream}` && e.data.index === index).map((e) => e.data.chunk).join("");
}

function assertEvents(events, run, what) {
	assert.deepEqual(events.map((e) => e.id), events.map((_, i) => i + 1), `${what} ${run.run_id}`);
	for (const c of run.commands)
		for (const stream of ["stdout", "stderr"])
			assert.equal(outputOf(events, c.index, stream), expected.get(c.shell)[stream], `${what} ${run.run_id}`);
	for (const name of ["command_started", "command_finished"])
		assert.equal(events.filter((e) => e.event === name).length, run.commands.length, `${what} ${run.run_id}: ${name}`);
	assert.equal(events.filter((e) => e.event === "run_started").length, 1, `${what} ${run.run_id}`);
}

test("streams that broke and went on had every event once, and so has the replay", async () => {
	for (const { run_id } of db("select run_id from runs")) {
		const run = await server.run_status(run_id);
		const replay = [];
		for await (const e of await server.events(run_id)) replay.push(e);
		assertEvents(replay, run, "replay");
		const known = accepted.get(run_id);
		if (known?.events) assertEvents(known.events, run, "live");
		if (known?.awaited)
			for (const c of known.awaited.commands) assert.equal(c.stdout_bytes, Buffer.byteLength(expected.get(c.shell).stdout));
	}
});

test("artifacts that a run lists are there, as it wrote them", async () => {
	for (const { run_id } of db("select run_id from runs")) {
		const run = await server.run_status(run_id);
		assert.equal(run.artifacts_error ?? null, null, run_id);
		for (const { mark } of run.commands.map((c) => expected.get(c.shell)).filter((w) => w.stdout === `${w.mark}\n`)) {
			assert.ok(run.artifacts.some((a) => a.path === mark), `${run_id} lists no ${mark}`);
			const r = await server.get(`/artifacts/${run.identifier}/${run_id}/${mark}`);
			assert.equal(await r.text(), `${mark}\n`);
		}
	}
});

test("the database is sound; no staging, no sandbox without its row is left", async () => {
	assert.equal(db("pragma integrity_check")[0].integrity_check, "ok");
	assert.deepEqual(db("pragma foreign_key_check"), []);
	const rows = db("select identifier from sandboxes").map((r) => r.identifier);
	for (const id of removed) assert.ok(!rows.includes(id), `${id} was deleted`);
	// Of an identifier or of the warm pool, which may be filling.
	await until("each sandbox to have its row", 20000, () => {
		const boxes = fs.readdirSync(path.join(server.dataDir, "sandboxes")).filter((n) => n.startsWith("mcp-sbx-"));
		const named = db("select name from v_sandboxes").map((r) => r.name);
		assert.deepEqual(boxes.sort(), named.sort());
		return true;
	});
	assert.equal(db("select name from v_sandboxes group by 1 having count(*) > 1").length, 0);
	const folders = fs.readdirSync(path.join(server.dataDir, "artifacts/default/chaos-0"));
	for (const f of folders) assert.match(f, /^(run_[0-9a-f]{32}|latest|\.state.*)$/);
});
