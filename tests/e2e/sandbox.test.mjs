// SPDX-License-Identifier: MIT
// From the inside: what a command may do, what it may not, and how it ends.
import assert from "node:assert/strict";
import http from "node:http";
import os from "node:os";
import { after, before, test } from "node:test";
import { Server, run, until } from "./rig.mjs";

// gVisor counts its own threads and ends as a whole where the kernel refuses it
// something (docs/security.md); its files stay, and the next run starts it again.
const gvisor = JSON.parse(process.env.MCP_TEST_ENV ?? "{}").OCI_RUNTIME === "runsc";
// An ordinary user's engine may have no control groups (docs/docker.md): no bombs there.
const unlimited = { skip: process.env.MCP_TEST_UNLIMITED && "this engine keeps no limits" };
const inOneCommand = unlimited.skip ? unlimited : { skip: gvisor && "with gVisor the whole sandbox ends" };
let server, client;

before(async () => {
	server = await Server.start({ DENYLIST_ENABLED: "false" });
	client = await server.connect();
	await run(client, "inside", ["true"]);
});
after(async () => {
	await client?.close();
	await server?.stop();
});

async function one(command, options = {}, id = "inside") {
	const { final } = await run(client, id, [command], options);
	return final.commands[0];
}

test("exit codes are the command's own, also 124 and 137", async () => {
	for (const code of [0, 1, 42, 124, 137, 255])
		assert.equal((await one({ shell: `exit ${code}`, allow_failure: true })).exit_code, code);
});

test("a time-out ends the whole tree, also what ignores TERM and what left its session", async () => {
	const mark = "31.4159";
	const c = await one({ shell: `trap '' TERM; setsid sleep ${mark} & sleep ${mark} & wait; wait`, timeout_ms: 500 });
	assert.equal(c.status, "timed_out");
	const left = await one(`pgrep -fc '[s]leep ${mark}' || true`);
	assert.equal(left.stdout, "0\n");
});

test("a command whose child lives on ends when it ends", async () => {
	const c = await one("sleep 3600.7 & echo started");
	assert.equal(c.stdout, "started\n");
	await one("pkill -f '[s]leep 3600.7'");
});

test("bytes that are no text, a huge line and a character over a chunk's edge are kept", async () => {
	const { final, run_id } = await run(client, "inside", [
		"head -c 100000 /dev/urandom | tee /workspace/random",
		"head -c 300000 /dev/zero | tr '\\0' x",
		"printf '\\303'; sleep 0.2; printf '\\274'",
	]);
	const raw = Buffer.from(await (await server.get(`/mcp/runs/${run_id}/commands/0/stdout`)).arrayBuffer());
	const sum = (await one("sha256sum </workspace/random | cut -d' ' -f1")).stdout.trim();
	const { createHash } = await import("node:crypto");
	assert.equal(createHash("sha256").update(raw).digest("hex"), sum);
	assert.equal(final.commands[1].stdout_bytes, 300000);
	assert.equal(final.commands[2].stdout, "ü");
});

test("endless output is cut at the cap, drained, and said so", async () => {
	const c = await one({ shell: "head -c 20000000 /dev/zero | tr '\\0' y", timeout_ms: 60000 });
	assert.equal(c.status, "completed");
	assert.equal(c.stdout_truncated, true);
	assert.equal(c.stdout_bytes, 20000000);
});

test("standard input is empty, not a hang", async () => {
	assert.equal((await one("cat; echo end")).stdout, "end\n");
});

test("the environment arrives as given: quotes, newlines, dollars, bytes", async () => {
	const value = "a 'b' \"c\" $HOME `id` \\ \n ü \t end";
	const c = await one({ argv: ["sh", "-c", 'printf %s "$X"'], env: { X: value } });
	assert.equal(c.stdout, value);
});

test("a script of megabytes runs", async () => {
	const c = await one(`${": filler\n".repeat(250000)}echo big`);
	assert.equal(c.stdout, "big\n");
});

test("a fork bomb meets the pids limit; ended by its time, it leaves the sandbox usable", unlimited, async () => {
	const c = await one({ shell: "f() { f | f; }; f", timeout_ms: 2000 }, {}, "bomb");
	if (gvisor) assert.ok(["timed_out", "failed"].includes(c.status) && c.reason, JSON.stringify(c));
	else assert.equal(c.status, "timed_out");
	const { stdout, stderr, reason } = await one("echo ok", {}, "bomb");
	assert.deepEqual({ stdout, stderr, reason }, { stdout: "ok\n", stderr: "", reason: null });
});

test("a time-out at the limit of processes names it", inOneCommand, async () => {
	const fill = ["import os, time", "while True:", " try:", "  if os.fork() == 0: time.sleep(60); os._exit(0)",
		" except OSError: time.sleep(0.1)"].join("\n");
	// A busy machine may need longer to come to that limit.
	let c = {};
	for (let ms = 3000; ms <= 48000 && !/limit of processes/.test(c.reason); ms *= 4) {
		c = await one({ argv: ["python3", "-c", fill], timeout_ms: ms }, {}, "full");
		assert.equal(c.status, "timed_out");
		assert.match(c.reason, new RegExp(`time limit of ${ms} ms`));
	}
	assert.match(c.reason, /limit of processes/);
	assert.equal((await one("echo ok", {}, "full")).stdout, "ok\n");
	assert.match((await one({ shell: "sleep 9", timeout_ms: 200 }, {}, "full")).reason, /larger timeout_ms/);
});

test("a fork bomb that lives on in the background is named as the reason, restart helps", inOneCommand, async () => {
	// Every process fills each place that becomes free, so there is none for a command.
	const bomb = ["import os, time", "def fill():", " while True:",
		"  try: os.fork()", "  except OSError: time.sleep(0.005)",
		"if os.fork() == 0: fill()", "time.sleep(1)"].join("\n");
	await one({ argv: ["python3", "-c", bomb] }, {}, "bomb");
	// Once all places are taken.
	await until("the reason", 30000, async () => {
		const c = await one({ shell: "echo ok", allow_failure: true }, {}, "bomb");
		return /limit of processes.*restart_sandbox|fork: .*unavailable/.test(`${c.reason} ${c.stderr}`);
	});
	await client.callTool({ name: "restart_sandbox", arguments: { identifier: "bomb" } });
	assert.equal((await one("echo ok", {}, "bomb")).stdout, "ok\n");
	await client.callTool({ name: "delete_sandbox", arguments: { identifier: "bomb" } });
});

test("filling memory ends the command, or with gVisor the sandbox, and says so", unlimited, async () => {
	const c = await one({ argv: ["python3", "-c", "x = bytearray(4 << 30); print(len(x))"], allow_failure: true, timeout_ms: 60000 });
	assert.equal(c.status, "failed");
	if (!gvisor) assert.equal(c.oom, true);
	assert.match(c.reason, /memory/);
	assert.equal((await one("echo ok")).stdout, "ok\n");
});

test("there is a public network or none, and never the host or a private one", async () => {
	const victim = http.createServer((_, r) => r.end("reached")).listen(0, "0.0.0.0");
	await new Promise((r) => victim.on("listening", r));
	const { port } = victim.address();
	const own = Object.values(os.networkInterfaces()).flat().filter((a) => a.family === "IPv4").map((a) => a.address);
	try {
		for (const host of [...own, "169.254.169.254", "10.0.2.2", "192.168.0.1"]) {
			const c = await one({ shell: `curl -s --max-time 2 http://${host}:${port}/ || echo closed`, allow_failure: true });
			assert.equal(c.stdout, "closed\n", host);
		}
	} finally {
		victim.close();
	}
});

test("sandboxes do not see each other or the host", async () => {
	await one("sleep 50 & echo secret >/workspace/secret; echo $!", {}, "other");
	assert.notEqual((await one({ shell: "cat /workspace/secret", allow_failure: true })).exit_code, 0);
	const c = await one("ls /proc | grep -c '^[0-9]'", { as_user: "root" });
	assert.ok(Number(c.stdout) < 20);
	assert.notEqual((await one({ shell: "ls /run/mcp-sandboxd", allow_failure: true })).exit_code, 0);
	const environ = await one({ shell: "tr '\\0' '\\n' </proc/1/environ", allow_failure: true });
	// gVisor lets everybody read it: there is nothing in it.
	if (gvisor) assert.doesNotMatch(environ.stdout, /^(?!PATH=|HOME=|LANG=)./m);
	else assert.notEqual(environ.exit_code, 0);
	await client.callTool({ name: "delete_sandbox", arguments: { identifier: "other" } });
});

test("root in a sandbox cannot mount, load or reach devices", async () => {
	for (const shell of ["mount -t tmpfs x /mnt", "mknod /tmp/sda b 8 0", "echo b >/proc/sysrq-trigger", "chroot / dmesg", "python3 -c 'import ctypes; exit(ctypes.CDLL(None).ptrace(0x4206, 1, 0, 0) != 0)'"]) {
		const c = await one({ shell, allow_failure: true }, { as_user: "root" });
		assert.notEqual(c.exit_code, 0, shell);
	}
});

test("only regular files come out as artifacts; links, fifos and devices do not", async () => {
	const { final, run_id } = await run(client, "inside", [
		"cd /artifacts && ln -s /etc/shadow link && ln -s / root && mkfifo fifo && echo ok >file && mkdir -p d && ln file d/hard && truncate -s 10G sparse && echo odd >'a b;\"c.txt'",
	]);
	const paths = final.artifacts.map((a) => a.path);
	assert.ok(paths.includes("file"));
	for (const p of ["link", "root", "fifo", "sparse"]) assert.ok(!paths.includes(p), p);
	for (const p of ["link", "root/etc/passwd", "fifo", "sparse"]) {
		const r = await server.get(`/artifacts/inside/${run_id}/${p}`);
		await r.body.cancel();
		assert.equal(r.status, 404, p);
	}
	const odd = await server.get(`/artifacts/inside/${run_id}/${encodeURIComponent('a b;"c.txt')}`);
	assert.equal(await odd.text(), "odd\n");
	await run(client, "inside", ["rm -rf /artifacts/*"]);
});

test("many first calls for one identifier share one sandbox", async () => {
	const all = await Promise.all(Array.from({ length: 8 }, (_, i) => run(client, "crowd", [`echo ${i}; cat /proc/sys/kernel/hostname`])));
	assert.equal(new Set(all.map((r) => r.sandbox_name)).size, 1);
	all.forEach((r, i) => assert.equal(r.final.commands[0].stdout.split("\n")[0], String(i)));
	await client.callTool({ name: "delete_sandbox", arguments: { identifier: "crowd" } });
});

test("a delete in the middle of a run ends it as canceled or failed, with the reason", async () => {
	const { run_id } = await run(client, "doomed", ["sleep 100"], { await_completion: false });
	await new Promise((r) => setTimeout(r, 1500));
	await client.callTool({ name: "delete_sandbox", arguments: { identifier: "doomed" } });
	const final = await server.ended(run_id);
	assert.ok(["canceled", "failed"].includes(final.state));
	assert.match(final.error, /delete/);
});
