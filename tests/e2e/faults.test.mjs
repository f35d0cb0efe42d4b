// SPDX-License-Identifier: MIT
// Processes are killed in the middle of runs. Every run ends truthfully, with its
// output whole and once.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, run, until } from "./rig.mjs";

let server, client;
// Prints 1..N slowly enough to be caught in the middle.
const COUNT = 40;
const counting = `for i in $(seq ${COUNT}); do echo $i; sleep 0.05; done`;
const counted = Array.from({ length: COUNT }, (_, i) => `${i + 1}\n`).join("");

before(async () => {
	server = await Server.start();
	client = await server.connect();
	await run(client, "faults", ["true"]);
});
after(async () => {
	await client?.close();
	await server?.stop();
});

async function started(id) {
	await until("first output", 10000, async () => (await server.run_status(id)).commands[0].stdout_bytes > 0);
}

function assertWhole(final) {
	assert.equal(final.state, "completed", JSON.stringify(final));
	assert.equal(final.commands[0].exit_code, 0);
	assert.equal(final.commands[0].stdout, counted);
}

for (const signal of ["SIGKILL", "SIGUSR1"]) {
	test(`the runner goes by ${signal} in the middle of a command and picks it up again`, async () => {
		const { run_id } = await run(client, "faults", [counting], { await_completion: false });
		await started(run_id);
		const before = server.pids().runner;
		server.kill("runner", signal);
		assertWhole(await server.ended(run_id));
		assert.notEqual(server.pids().runner, before);
	});
}

test("the runner is killed while a client awaits: the answer comes", async () => {
	const waiting = run(client, "faults", [counting]);
	await new Promise((r) => setTimeout(r, 500));
	server.kill("runner");
	assertWhole((await waiting).final);
});

test("the runner is killed again and again under one command", async () => {
	const { run_id } = await run(client, "faults", [counting], { await_completion: false });
	await started(run_id);
	for (let i = 0; i < 3; i++) {
		await until("a runner", 5000, () => server.pids().runner);
		server.kill("runner");
		await new Promise((r) => setTimeout(r, 250));
	}
	assertWhole(await server.ended(run_id));
});

test("the edges are killed: the run goes on, a stream resumes where it was", async () => {
	// It ends when the stream has broken, however much of it was on its way.
	const halves = `rm -f go; ${counting.replace(String(COUNT), "20")}; until [ -e go ]; do sleep 0.05; done; ${counting.replace(`seq ${COUNT}`, `seq 21 ${COUNT}`)}`;
	const { run_id } = await run(client, "faults", [halves], { await_completion: false });
	const seen = [];
	try {
		for await (const e of await server.events(run_id)) {
			seen.push(e);
			if (seen.length === 8) server.kill("edge");
		}
	} catch {
		// the stream broke, as it must
	}
	assert.ok(seen.length >= 8 && !seen.some((e) => e.event === "run_finished"));
	const rest = await until("an edge", 10000, () => server.events(run_id, { lastEventId: seen.at(-1).id }));
	await run(client, "faults", ["touch go"]);
	for await (const e of rest) seen.push(e);
	assert.deepEqual(seen.map((e) => e.id), seen.map((_, i) => i + 1));
	const out = seen.filter((e) => e.event === "command_stdout").map((e) => e.data.chunk).join("");
	assert.equal(out, counted);
	assert.equal(seen.at(-1).event, "run_finished");
});

test("the session of a client lives on when the edges are killed", async () => {
	server.kill("edge");
	await until("an edge", 10000, async () => (await server.get("/healthz")).status === 200);
	const { final } = await run(client, "faults", ["echo on"]);
	assert.equal(final.commands[0].stdout, "on\n");
});

test("the master is killed: nothing stays, a new one picks the command up", async () => {
	const { run_id } = await run(client, "faults", [counting], { await_completion: false });
	await started(run_id);
	await server.restart("SIGKILL");
	assertWhole(await server.ended(run_id));
});

test("a new configuration keeps running commands", async () => {
	const { run_id } = await run(client, "faults", [counting], { await_completion: false });
	await started(run_id);
	const old = server.pids();
	server.kill("master", "SIGHUP");
	await until("new roles", 20000, () => {
		const p = server.pids();
		return p.runner && p.runner !== old.runner && p.edges.length === old.edges.length && !p.edges.some((e) => old.edges.includes(e));
	});
	await server.waitReady();
	assertWhole(await server.ended(run_id));
});

test("a stop ends a running command as canceled and says why", async () => {
	const { run_id } = await run(client, "faults", ["sleep 300"], { await_completion: false });
	await until("start", 10000, async () => (await server.run_status(run_id)).state === "running");
	await server.restart("SIGTERM");
	const final = await server.run_status(run_id);
	assert.equal(final.state, "canceled");
	assert.match(final.error, /stop/);
	const again = await run(client, "faults", ["echo back"]);
	assert.equal(again.final.commands[0].stdout, "back\n");
});
