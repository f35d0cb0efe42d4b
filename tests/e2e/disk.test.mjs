// SPDX-License-Identifier: MIT
// A sandbox fills the disk that holds the database. Its run ends in words, a delete
// makes room, and the server goes on by itself.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { Server, run, until } from "./rig.mjs";

let server, client, disk;

before(async () => {
	disk = fs.mkdtempSync(path.join(os.tmpdir(), "mcp-disk-"));
	execFileSync("mount", ["-t", "tmpfs", "-o", "size=96m,mode=755", "mcp-disk", disk]);
	server = await Server.start({ SANDBOX_NETWORK_MODE: "none" }, { where: disk });
	client = await server.connect();
	await run(client, "other", ["true"]);
	const reserve = path.join(server.dataDir, "db/reserve");
	await until("the reserve", 15000, () => fs.statSync(reserve).blocks * 512 >= 16 << 20);
});
after(async () => {
	await client?.close();
	await server?.stop();
	execFileSync("umount", [disk]);
	fs.rmdirSync(disk);
});

const ready = async () => (await server.get("/readyz")).status === 200;

test("a disk that is full for a moment costs nothing", async () => {
	const { run_id } = await run(client, "other", ["for i in $(seq 60); do echo $i; sleep 0.1; done"], { await_completion: false });
	await until("output", 5000, async () => (await server.run_status(run_id)).commands[0].stdout_bytes > 0);
	const fill = path.join(disk, "fill");
	assert.throws(() => fs.writeFileSync(fill, Buffer.alloc(128 << 20)), /ENOSPC/);
	await until("readyz says so", 10000, async () => /disk is full/.test(await (await server.get("/readyz")).text()));
	fs.rmSync(fill);
	const final = await server.ended(run_id);
	assert.equal(final.state, "completed");
	assert.equal(final.commands[0].stdout, Array.from({ length: 60 }, (_, i) => `${i + 1}\n`).join(""));
	await until("readyz", 10000, ready);
});

test("one that a sandbox keeps full ends its run in words; a delete makes room", async () => {
	await run(client, "other", ["sleep 100"], { await_completion: false, lock_sandbox: true });
	const { run_id: waiting } = await run(client, "other", ["echo waited"], { await_completion: false, lock_sandbox: true });
	const { run_id } = await run(client, "greedy", ["while :; do cat /dev/zero >>/workspace/all; done"], { await_completion: false });
	const final = await server.ended(run_id, 60000);
	assert.equal(final.state, "failed");
	assert.match(final.error, /disk is full.*delete_sandbox/);
	await assert.rejects(run(client, "other", ["true"]), /disk is full.*delete_sandbox/);
	await new Promise((r) => setTimeout(r, 6000)); // more than one beat
	assert.equal((await server.run_status(waiting)).state, "queued");
	const r = await client.callTool({ name: "delete_sandbox", arguments: { identifier: "greedy" } });
	assert.ok(!r.isError, JSON.stringify(r));
	await until("readyz", 20000, ready);
	const waited = await server.ended(waiting);
	assert.equal(waited.state, "completed");
	assert.equal(waited.commands[0].stdout, "waited\n");
	const { final: next } = await run(client, "other", ["echo on"]);
	assert.equal(next.commands[0].stdout, "on\n");
});

test("a disk too small for a reserve: a delete still makes room", async () => {
	const small = fs.mkdtempSync(path.join(os.tmpdir(), "mcp-disk-"));
	execFileSync("mount", ["-t", "tmpfs", "-o", "size=24m,mode=755", "mcp-disk", small]);
	const s = await Server.start({ SANDBOX_NETWORK_MODE: "none" }, { where: small });
	const c = await s.connect();
	try {
		assert.ok(!fs.existsSync(path.join(s.dataDir, "db/reserve")));
		await run(c, "greedy", ["while :; do cat /dev/zero >>/workspace/all; date; done"], { await_completion: false });
		await until("readyz says so", 20000, async () => /disk is full|I\/O/.test(await (await s.get("/readyz")).text()));
		const r = await c.callTool({ name: "delete_sandbox", arguments: { identifier: "greedy" } });
		assert.ok(!r.isError, JSON.stringify(r));
		await until("readyz", 20000, async () => (await s.get("/readyz")).status === 200);
		const { final } = await run(c, "greedy", ["ls /workspace | wc -l"]);
		assert.equal(final.commands[0].stdout, "0\n");
	} finally {
		await c.close();
		await s.stop();
		execFileSync("umount", [small]);
		fs.rmdirSync(small);
	}
});
