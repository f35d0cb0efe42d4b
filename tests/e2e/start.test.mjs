// SPDX-License-Identifier: MIT
// scripts/run as a person uses it: what it prints works, what is wrong is said in one
// sentence before anything is built, Ctrl-C leaves nothing.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { freePort, remains, repo, shareImages, traces, until } from "./rig.mjs";

const exec = promisify(execFile);
const script = path.join(repo, "scripts/run");
let dir, env, child;
let text = "";

function start() {
	text = "";
	child = spawn(script, [], { env, cwd: "/", detached: true });
	child.ended = once(child, "exit");
	for (const s of [child.stdout, child.stderr]) s.on("data", (d) => (text += d));
}

const ready = () =>
	until("Ready", 15 * 60000, () => {
		if (child.exitCode !== null) throw new Error("ended");
		return text.includes("For a shell:\n");
	}).catch((e) => {
		throw new Error(`${e.message}\n${text}`);
	});

// Ctrl-C in a terminal reaches the whole foreground group.
async function interrupt() {
	process.kill(-child.pid, "SIGINT");
	const [code] = await child.ended;
	assert.equal(code, 0, text);
}

async function refused(more, words) {
	const e = await exec(script, [], { env: { ...env, ...more } }).then(
		() => assert.fail("it started"),
		(error) => error,
	);
	assert.match(e.stderr, words);
	assert.equal(e.stderr.trim().split("\n").length, 1, e.stderr);
}

before(async () => {
	dir = fs.mkdtempSync(path.join(process.env.MCP_TEST_DIR ?? os.tmpdir(), "mcp run "));
	fs.chmodSync(dir, 0o755);
	env = {
		PATH: process.env.PATH,
		HOME: "/root",
		DATA_DIR: path.join(dir, "data"),
		PORT: String(await freePort()),
	};
	shareImages(env.DATA_DIR);
	start();
	await ready();
});
after(async () => {
	if (child?.exitCode === null) await interrupt();
	fs.rmSync(dir, { recursive: true, force: true });
});

test("it prints the url and a client's configuration that is JSON", async () => {
	const url = `http://127.0.0.1:${env.PORT}/mcp`;
	assert.ok(text.includes(`Ready: ${url}`));
	const lines = text.split("\n").map((l) => l.trim()).filter((l) => l.startsWith("{"));
	assert.equal(lines.length, 2);
	for (const l of lines) assert.ok(JSON.stringify(JSON.parse(l)).includes(url));
});

test("the line for the shell runs a command when it is pasted", async () => {
	const line = text.slice(text.indexOf("For a shell:\n") + 13).trim().split("\n")[0];
	const { stdout } = await exec("bash", ["-c", line], { env });
	const answer = JSON.parse(stdout);
	assert.equal(answer.result.structuredContent.final.state, "completed", stdout);
	assert.match(answer.result.structuredContent.final.commands[0].stdout, /uid=1000\(sandbox\)/);
});

test("a second one on the same state is refused by pid", () =>
	refused({ PORT: "1" }, /a server \(pid \d+\) already uses .*data/));

test("a port in use is refused by number", () =>
	refused({ DATA_DIR: path.join(dir, "other") }, new RegExp(`port ${env.PORT} on 127.0.0.1 is in use`)));

test("Ctrl-C stops all and leaves nothing; the next start is fast", async () => {
	const instance = fs.readFileSync(path.join(env.DATA_DIR, "instance"), "utf8").trim();
	const image = () => fs.statSync(path.join(env.DATA_DIR, "images/default/rootfs"));
	const before = image();
	await interrupt();
	assert.deepEqual(await remains(() => traces([dir, instance], instance)), []);
	start();
	await ready();
	await interrupt();
	assert.equal(image().ino, before.ino, "what takes minutes is not made again");
});
