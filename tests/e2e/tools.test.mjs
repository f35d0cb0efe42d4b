// SPDX-License-Identifier: MIT
// The tools beside run_sandbox: following and ending runs, files, sandboxes.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { encode } from "gpt-tokenizer";
import { Server, run, until } from "./rig.mjs";

let server, client;

before(async () => {
	server = await Server.start();
	client = await server.connect();
});
after(async () => {
	await client?.close();
	await server?.stop();
});

const call = (name, args) => client.callTool({ name, arguments: args });
const text = (r) => r.content.map((c) => c.text ?? "").join("\n");
async function good(name, args) {
	const r = await call(name, args);
	assert.ok(!r.isError, text(r));
	return r;
}
async function bad(name, args, words) {
	const r = await call(name, args);
	assert.ok(r.isError, text(r));
	assert.match(text(r), words);
}

test("the list of all tools costs less than 2000 tokens", async () => {
	const list = await client.listTools();
	assert.deepEqual(list.tools.map((t) => t.name), [
		"run_sandbox", "get_run", "cancel_run", "list_sandboxes", "restart_sandbox",
		"delete_sandbox", "write_file", "read_file", "list_files",
	]);
	const tokens = encode(JSON.stringify(list)).length;
	assert.ok(tokens < 2000, `${tokens} tokens`);
	for (const t of list.tools) {
		assert.ok(t.title && t.description);
		assert.equal(typeof t.annotations.readOnlyHint, "boolean");
	}
});

test("a run is followed by get_run: its state, its output from an offset, its end", async () => {
	const { run_id } = await run(client, "t", [
		"for i in 1 2 3; do echo line $i; done; until [ -e /tmp/go ]; do sleep 0.05; done; echo last",
	], { await_completion: false });
	const early = await until("output", 20000, async () => {
		const r = await good("get_run", { run_id, command: 0 });
		return r.structuredContent.output.text === "line 1\nline 2\nline 3\n" && r.structuredContent;
	});
	assert.equal(early.state, "running");
	assert.equal(early.output.at_end, false);
	const waited = await good("get_run", { run_id, wait_ms: 200 });
	assert.equal(waited.structuredContent.final, null);
	assert.match(text(waited), /^running\n/);
	const end = good("get_run", { run_id, wait_ms: 45000 });
	await run(client, "t", ["touch /tmp/go"]);
	const { final, state } = (await end).structuredContent;
	assert.equal(state, "completed");
	assert.equal(final.commands[0].exit_code, 0);
	const rest = (await good("get_run", { run_id, offset: early.output.next_offset })).structuredContent.output;
	assert.equal(rest.text, "last\n");
	assert.equal(rest.at_end, true);
	const few = (await good("get_run", { run_id, offset: 5, max_bytes: 4 })).structuredContent.output;
	assert.deepEqual([few.text, few.next_offset, few.at_end], ["1\nli", 9, false]);
	await bad("get_run", { run_id, command: 5 }, /command must be less than 1/);
	await bad("get_run", { run_id: "run_0000000000000000000000000000000f" }, /there is no run/);
	await bad("get_run", { run_id: "x" }, /32 hex digits/);
});

test("a call that is sent again with its key is the same run, also after a restart of the server", async () => {
	const call = (key, n = 1) => client.callTool({
		name: "run_sandbox", _meta: { "mcp-sandboxd/idempotency-key": key },
		arguments: { identifier: "t", commands: [{ shell: `echo x >>/workspace/times; wc -l </workspace/times; true ${n}` }], options: { await_completion: true } },
	});
	const told = (r) => [r.structuredContent.run_id, r.structuredContent.final.commands[0].stdout];
	const first = told(await call("k1"));
	assert.equal(first[1], "1\n");
	assert.deepEqual(told(await call("k1")), first);
	await server.restart();
	assert.deepEqual(told(await call("k1")), first);
	assert.equal(told(await call("k2"))[1], "2\n");
	assert.equal(told(await call("k1", 2))[1], "3\n", "other arguments are another run");
	const both = await Promise.all([call("k3"), call("k3"), call("k3")]);
	assert.equal(new Set(both.map((r) => told(r).join())).size, 1);
});

test("a run is ended by cancel_run", async () => {
	const { run_id } = await run(client, "t", ["sleep 100"], { await_completion: false });
	await until("start", 20000, async () => (await server.run_status(run_id)).state === "running");
	const r = await good("cancel_run", { run_id });
	assert.equal(r.structuredContent.canceled, true);
	const end = await good("get_run", { run_id, wait_ms: 45000 });
	assert.equal(end.structuredContent.state, "canceled");
	const again = await good("cancel_run", { run_id });
	assert.equal(again.structuredContent.canceled, false);
	assert.match(text(again), /ended as canceled/);
	await bad("cancel_run", { run_id: "run_0000000000000000000000000000000f" }, /there is no run/);
});

test("a command gets its standard input", async () => {
	const big = "0123456789abcdef\n".repeat(60000); // a megabyte
	const { final } = await run(client, "t", [
		{ argv: ["cat"], stdin: "hello\nüber\n" },
		{ shell: "sleep 0.1; md5sum; cat", stdin: big },
		{ shell: "true", stdin: big },
	]);
	assert.equal(final.state, "completed");
	assert.equal(final.commands[0].stdout, "hello\nüber\n");
	const { createHash } = await import("node:crypto");
	assert.match(final.commands[1].stdout, new RegExp(createHash("md5").update(big).digest("hex")));
});

test("a background command lives on as a run of its own", async () => {
	const r = await run(client, "t", [
		{ shell: "echo serving; while :; do sleep 0.1; done", background: true },
		{ shell: "echo front" },
	]);
	assert.equal(r.final.state, "completed");
	assert.equal(r.final.commands[1].stdout, "front\n");
	const id = r.final.commands[0].background_run_id;
	assert.match(id, /^run_[0-9a-f]{32}$/);
	await until("its output", 20000, async () =>
		/serving/.test(text(await good("get_run", { run_id: id }))));
	assert.equal((await server.run_status(id)).state, "running");
	assert.equal((await server.run_status(id)).background_of, r.run_id);
	await server.kill("runner");
	await server.waitReady();
	assert.equal((await server.run_status(id)).state, "running");
	await until("cancel", 20000, async () => !(await call("cancel_run", { run_id: id })).isError);
	assert.equal((await good("get_run", { run_id: id, wait_ms: 45000 })).structuredContent.state, "canceled");
});

test("files are written, read in ranges and listed", async () => {
	const w = await good("write_file", { identifier: "files", path: "src/a.txt", text: "one\ntwo über\nthree\n" });
	assert.deepEqual(w.structuredContent, { path: "/workspace/src/a.txt", size: 20 });
	const r = await good("read_file", { identifier: "files", path: "src/a.txt" });
	assert.deepEqual(r.content, [{ type: "text", text: "one\ntwo über\nthree\n" }]);
	const part = await good("read_file", { identifier: "files", path: "/workspace/src/a.txt", offset: 4, max_bytes: 5 });
	assert.equal(part.content[0].text, "two "); // not half an ü
	assert.match(part.content[1].text, /bytes 4 to 8 of 20; go on with offset 8/);
	const { final } = await run(client, "files", ["stat -c '%U %a' src/a.txt; cat src/a.txt"]);
	assert.equal(final.commands[0].stdout, "sandbox 644\none\ntwo über\nthree\n");
	await good("write_file", { identifier: "files", path: "run.sh", text: "#!/bin/sh\necho ran", mode: "755" });
	await good("write_file", { identifier: "files", path: "run.sh", text: "#!/bin/sh\necho again" });
	assert.equal((await run(client, "files", ["./run.sh"])).final.commands[0].stdout, "again\n");
	const l = await good("list_files", { identifier: "files", depth: 2 });
	assert.deepEqual(l.structuredContent.entries.map((e) => [e.path, e.type]), [
		["run.sh", "file"], ["src", "folder"], ["src/a.txt", "file"],
	]);
	await run(client, "files", ["mkdir many; cd many; seq -f %04g 0 449 | xargs touch"]);
	const seen = [];
	for (let cursor, page = {}; ; cursor = page.next_cursor) {
		page = (await good("list_files", { identifier: "files", path: "many", ...(cursor && { cursor }) })).structuredContent;
		seen.push(...page.entries.map((e) => e.path));
		assert.equal(page.total, 450);
		if (!page.next_cursor) break;
	}
	assert.equal(new Set(seen).size, 450);
});

test("binary files travel as base64, pictures as pictures", async () => {
	const bytes = Buffer.from(Array.from({ length: 5000 }, (_, i) => (i * 37) % 256));
	await good("write_file", { identifier: "files", path: "b.bin", base64: bytes.toString("base64") });
	const r = await good("read_file", { identifier: "files", path: "b.bin" });
	assert.equal(r.content[0].type, "resource");
	assert.deepEqual(Buffer.from(r.content[0].resource.blob, "base64"), bytes);
	const png = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64");
	await good("write_file", { identifier: "files", path: "p", base64: png.toString("base64") });
	const p = await good("read_file", { identifier: "files", path: "p" });
	assert.deepEqual(p.content[0], { type: "image", data: png.toString("base64"), mimeType: "image/png" });
	const { final } = await run(client, "files", ["cp p /artifacts/dot.png; cp b.bin '/artifacts/b 1.bin'"]);
	assert.equal(final.state, "completed");
});

test("a run's result shows small pictures and links to the rest", async () => {
	const r = await call("run_sandbox", { identifier: "files", commands: [{ shell: "true" }], options: { await_completion: true } });
	assert.equal(r.content.filter((c) => c.type === "image").length, 1);
	const links = r.content.filter((c) => c.type === "resource_link");
	assert.deepEqual(links.map((l) => [l.name, l.mimeType, l.size]), [
		["b 1.bin", "application/octet-stream", 5000], ["dot.png", "image/png", 70],
	]);
	assert.match(links[0].uri, /^sandbox:\/\/runs\/run_[0-9a-f]{32}\/artifacts\/b%201\.bin$/);
});

test("the rights are those of the user that is named", async () => {
	await bad("write_file", { identifier: "files", path: "/etc/x", text: "" }, /as_user root/);
	await good("write_file", { identifier: "files", path: "/etc/x", text: "1", as_user: "root" });
	await bad("read_file", { identifier: "files", path: "/etc/shadow" }, /may not/);
	await good("read_file", { identifier: "files", path: "/etc/shadow", as_user: "root" });
	await bad("list_files", { identifier: "files", path: "/root" }, /may not/);
	// Links are followed inside the sandbox, never out of it.
	await run(client, "files", ["ln -s /etc/passwd name; ln -s /proc/1/root/etc/shadow out; ln -s ../../../../etc/x up"]);
	await good("read_file", { identifier: "files", path: "name" });
	assert.equal((await good("read_file", { identifier: "files", path: "up" })).content[0].text, "1");
	await bad("read_file", { identifier: "files", path: "out", as_user: "root" }, /./);
	await bad("read_file", { identifier: "files", path: "a/../b" }, /\.\./);
	await bad("read_file", { identifier: "files", path: "nothing" }, /no such file/);
	await bad("read_file", { identifier: "never was", path: "x" }, /no sandbox/);
	await bad("list_files", { identifier: "never was" }, /no sandbox/);
});

test("sandboxes are listed", async () => {
	const { sandboxes } = (await good("list_sandboxes", {})).structuredContent;
	assert.deepEqual(sandboxes.map((s) => s.identifier), ["files", "t"]);
	assert.equal(sandboxes[0].state, "ready");
	await bad("list_sandboxes", { cursor: "***" }, /cursor/);
});

test("TOOLS says which tools there are", async () => {
	const small = await Server.start({ TOOLS: "run_sandbox, get_run" });
	try {
		const c = await small.connect();
		assert.deepEqual((await c.listTools()).tools.map((t) => t.name), ["run_sandbox", "get_run"]);
		await assert.rejects(c.callTool({ name: "read_file", arguments: {} }), /unknown tool/);
		await c.close();
	} finally {
		await small.stop();
	}
});
