// SPDX-License-Identifier: MIT
// What engines and people do to containers under commands that run.
import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";
import { engine, server, client, api, inspect, one, background, useEngine } from "./docker-rig.mjs";
import { Server, run, until } from "./rig.mjs";

useEngine();

test("a container removed under a running command fails the run with the reason", async () => {
	const { sandbox_name } = await run(client, "pulled", ["true"]);
	const id = await background("pulled", "echo on; sleep 300");
	await api("DELETE", `/containers/${sandbox_name}?force=1`);
	const final = await server.ended(id);
	assert.equal(final.state, "failed");
	assert.match(final.error, /not running any more/);
	assert.equal((await one("pulled", "echo back")).stdout, "back\n");
});

test("a paused container goes on when it is needed", async () => {
	const { sandbox_name } = await run(client, "paused", ["true"]);
	await api("POST", `/containers/${sandbox_name}/stop?t=1`);
	await run(client, "paused", ["true"]);
	await api("POST", `/containers/${sandbox_name}/pause`);
	server.kill("runner"); // the next one finds it paused
	assert.equal((await one("paused", "echo on")).stdout, "on\n");
	assert.equal((await inspect(sandbox_name)).State.Paused, false);
});

test("the engine is killed and comes back: runs fail with the reason, files are kept", async () => {
	await run(client, "engine", ["echo kept >/workspace/note"]);
	const id = await background("engine", "echo on; sleep 300");
	await engine.down("SIGKILL");
	const refused = await run(client, "engine-none", ["true"]).then((r) => r.final?.error ?? "", (e) => e.message);
	assert.match(refused, /engine is not running/);
	await engine.up();
	const final = await server.ended(id, 60000);
	assert.ok(["failed", "completed"].includes(final.state));
	assert.match(final.error ?? "", /not running any more|does not answer|stopped/);
	assert.equal((await one("engine", "cat /workspace/note")).stdout, "kept\n");
});

test("an engine that hangs is named, and served again when it goes on", async () => {
	process.kill(engine.dockerd(), "SIGSTOP");
	let s;
	try {
		s = await Server.start(engine.env, { ready: false });
		await until("the reason", 25000, async () => /does not answer in time/.test(await (await fetch(`${s.base}/readyz`)).text()));
	} finally {
		process.kill(engine.dockerd(), "SIGCONT");
	}
	await s.waitReady();
	await s.stop();
	assert.equal((await one("hung", "echo on")).stdout, "on\n");
});

test("a shim killed under a command fails the run with the reason, and the files are kept", async () => {
	const { sandbox_name } = await run(client, "shim", ["echo kept >/workspace/note"]);
	const { Id } = await inspect(sandbox_name);
	const id = await background("shim", "echo on; sleep 300");
	const shim = fs.readdirSync("/proc").find((pid) => {
		try {
			const line = fs.readFileSync(`/proc/${pid}/cmdline`, "utf8");
			return /^\d+$/.test(pid) && line.includes("containerd-shim") && line.includes(Id);
		} catch {
			return false; // ended meanwhile
		}
	});
	process.kill(Number(shim), "SIGKILL");
	const final = await server.ended(id, 60000);
	assert.equal(final.state, "failed");
	assert.match(final.error, /not running any more|does not answer/);
	assert.equal((await one("shim", "cat /workspace/note")).stdout, "kept\n");
});
