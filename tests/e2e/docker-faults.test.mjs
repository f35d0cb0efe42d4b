// SPDX-License-Identifier: MIT
// What engines and people do to containers under commands that run.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { engine, server, client, api, inspect, one, background, useEngine, withServer } from "./docker-rig.mjs";
import { Server, run, until } from "./rig.mjs";
import { Engine } from "./with-docker.mjs";

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

const finishes = "echo on; sleep 1; echo off";

test("an engine that hangs does not hold up a command that runs", async () => {
	await run(client, "calm", ["true"]);
	const id = await background("calm", finishes);
	process.kill(engine.dockerd(), "SIGSTOP");
	try {
		assert.equal((await server.ended(id, 8000)).commands[0].stdout, "on\noff\n");
		assert.equal((await one("calm", "echo again")).stdout, "again\n");
	} finally {
		process.kill(engine.dockerd(), "SIGCONT");
	}
});

test("over TCP, a hung engine and a half-closed stream lose nothing", async () => {
	await withServer({ DOCKER_HOST: `tcp://127.0.0.1:${await engine.carry()}` }, async (s, c) => {
		const start = async (shell) => {
			const r = await run(c, "far", [shell], { await_completion: false });
			await until("start", 20000, async () => (await s.run_status(r.run_id)).commands[0].stdout_bytes > 0);
			return r.run_id;
		};
		const halved = await start(finishes);
		for (const socket of engine.carried) socket.end(); // the other way stays open
		assert.equal((await s.ended(halved)).commands[0].stdout, "on\noff\n");
		const hung = await start(finishes);
		process.kill(engine.dockerd(), "SIGSTOP");
		await new Promise((r) => setTimeout(r, 3000));
		process.kill(engine.dockerd(), "SIGCONT");
		assert.equal((await s.ended(hung)).commands[0].stdout, "on\noff\n");
	});
});

test("an engine whose disk is full says so, and serves again when there is room", async () => {
	const top = fs.mkdtempSync("/run/mcp-test-small-");
	execFileSync("mount", ["-t", "tmpfs", "-o", "size=80m", "tmpfs", top]);
	let small;
	try {
		small = await Engine.start([], top);
		const env = { DOCKER_HOST: `unix://${small.socket}`, SANDBOX_IMAGE: await small.tiny() };
		await withServer(env, async (s, c) => {
			const full = await run(c, "full", ["head -c 100000000 /dev/zero >/workspace/big"]);
			assert.equal(full.final.state, "failed");
			assert.match(full.final.commands[0].stderr, /No space left on device/);
			const refused = await run(c, "other", ["true"]).then((r) => r.final.error, (e) => e.message);
			assert.match(refused, /no space left on device/);
			await c.callTool({ name: "restart_sandbox", arguments: { identifier: "full" } });
			assert.equal((await run(c, "other", ["echo up"])).final.commands[0].stdout, "up\n");
		});
	} finally {
		await small?.stop();
		execFileSync("umount", ["-l", top]);
		fs.rmdirSync(top);
	}
});

test("a limit of the disk is kept where the engine's storage can", async (t) => {
	const top = fs.mkdtempSync("/run/mcp-test-btrfs-");
	const file = path.join(server.dir, "btrfs.img");
	let small;
	try {
		fs.closeSync(fs.openSync(file, "w"));
		fs.truncateSync(file, 700 << 20);
		try {
			execFileSync("mkfs.btrfs", ["-q", file], { stdio: "ignore" });
			execFileSync("mount", ["-o", "loop", file, top], { stdio: "ignore" });
		} catch (error) {
			return t.skip(`no btrfs here: ${error.message}`);
		}
		small = await Engine.start(["--storage-driver=btrfs"], top);
		const env = { DOCKER_HOST: `unix://${small.socket}`, SANDBOX_IMAGE: await small.tiny(), SANDBOX_DISK_MB: "50" };
		await withServer(env, async (s, c) => {
			const { final } = await run(c, "a", ["head -c 80000000 /dev/zero >/workspace/big"]);
			assert.match(final.commands[0].stderr, /quota exceeded|No space left/);
			assert.equal((await run(c, "b", ["head -c 30000000 /dev/zero >/workspace/big; echo up"])).final.commands[0].stdout, "up\n");
		});
	} finally {
		await small?.stop();
		spawnSync("umount", ["-l", top]);
		fs.rmdirSync(top);
		fs.rmSync(file);
	}
});
