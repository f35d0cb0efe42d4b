// SPDX-License-Identifier: MIT
// The README's story, told by a client: first call to downloaded artifact, and on
// after a restart.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, run } from "./rig.mjs";

let server, client;

before(async () => {
	server = await Server.start();
	client = await server.connect();
});
after(async () => {
	await client?.close();
	await server?.stop();
});

test("the server introduces itself and its tools", async () => {
	assert.equal(client.getServerVersion().name, "mcp-sandboxd");
	const { tools } = await client.listTools();
	for (const name of ["delete_sandbox", "restart_sandbox", "run_sandbox"]) assert.ok(tools.some((t) => t.name === name));
	for (const t of tools) assert.equal(t.inputSchema.type, "object");
});

test("an awaited run gives output, exit code and times", async () => {
	const { final } = await run(client, "story", ["echo out; echo err >&2", { argv: ["sh", "-c", "exit 3"], allow_failure: true }]);
	assert.equal(final.state, "completed");
	assert.equal(final.commands[0].stdout, "out\n");
	assert.equal(final.commands[0].stderr, "err\n");
	assert.equal(final.commands[0].exit_code, 0);
	assert.equal(final.commands[1].exit_code, 3);
	assert.match(final.ended_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
});

test("commands run as the user sandbox in /workspace, as root when asked", async () => {
	const a = await run(client, "story", ["id -u; id -un; pwd"]);
	assert.equal(a.final.commands[0].stdout, "1000\nsandbox\n/workspace\n");
	const b = await run(client, "story", ["id -u; pwd"], { as_user: "root", default_cwd: "/tmp" });
	assert.equal(b.final.commands[0].stdout, "0\n/tmp\n");
});

test("a failing command ends the run as failed and later ones do not start", async () => {
	const { final } = await run(client, "story", ["false", "echo never"]);
	assert.equal(final.state, "failed");
	assert.equal(final.commands[0].status, "failed");
	assert.equal(final.commands[1].status, "queued");
	const on = await run(client, "story", ["false", "echo still"], { continue_on_error: true });
	assert.equal(on.final.state, "failed");
	assert.equal(on.final.commands[1].stdout, "still\n");
});

test("a run's events come while it runs, in order, and the stream ends", async () => {
	const { run_id, events_url } = await run(client, "story", ["echo one; until [ -e go ]; do sleep 0.05; done; rm go; echo two"], { await_completion: false });
	assert.ok(events_url.includes(run_id));
	const seen = [];
	for await (const e of await server.events(run_id)) {
		seen.push(e);
		// The second line waits until the first one was seen.
		if (e.event === "command_stdout" && e.data.chunk === "one\n") await run(client, "story", ["touch go"]);
	}
	assert.deepEqual(seen.map((e) => e.id), seen.map((_, i) => i + 1));
	const names = seen.map((e) => e.event);
	assert.equal(names[0], "run_started");
	assert.equal(names[1], "command_started");
	assert.equal(names.at(-1), "run_finished");
	assert.ok(names.includes("command_finished"));
	const out = seen.filter((e) => e.event === "command_stdout").map((e) => e.data.chunk).join("");
	assert.equal(out, "one\ntwo\n");

	const rest = [];
	for await (const e of await server.events(run_id, { after: 2 })) rest.push(e);
	assert.deepEqual(rest, seen.slice(2));
	const resumed = [];
	for await (const e of await server.events(run_id, { lastEventId: seen.length - 1 })) resumed.push(e);
	assert.deepEqual(resumed, seen.slice(-1));
});

test("artifacts are downloaded through nginx, with ranges and as untrusted content", async () => {
	const { run_id, final } = await run(client, "story", [
		"mkdir -p /artifacts/sub && echo '<script>1</script>' >/artifacts/page.html && seq 1000 >/artifacts/sub/numbers.txt",
	]);
	assert.equal(final.artifacts_error ?? null, null);
	assert.deepEqual(final.artifacts.map((a) => a.path).sort(), ["page.html", "sub/numbers.txt"]);
	const numbers = Array.from({ length: 1000 }, (_, i) => `${i + 1}\n`).join("");
	for (const which of [run_id, "latest"]) {
		const r = await server.get(`/artifacts/story/${which}/sub/numbers.txt`);
		assert.equal(r.status, 200);
		assert.equal(await r.text(), numbers);
		assert.match(r.headers.get("content-type"), /^text\/plain/);
		assert.equal(r.headers.get("x-content-type-options"), "nosniff");
	}
	const part = await server.get(`/artifacts/story/latest/sub/numbers.txt`, { headers: { range: "bytes=2-5" } });
	assert.equal(part.status, 206);
	assert.equal(await part.text(), numbers.slice(2, 6));
	const page = await server.get(`/artifacts/story/latest/page.html`);
	assert.equal(page.headers.get("content-disposition"), "attachment; filename*=UTF-8''page.html");
	assert.match(page.headers.get("content-security-policy"), /sandbox/);
	await page.body.cancel();
});

test("an identifier that is no folder name has its artifacts too", async () => {
	const id = "chat/ü 1?";
	const { run_id } = await run(client, id, ["echo hi >/artifacts/a.txt"]);
	const r = await server.get(`/artifacts/${encodeURIComponent(id)}/${run_id}/a.txt`);
	assert.equal(r.status, 200);
	assert.equal(await r.text(), "hi\n");
	assert.equal(r.headers.get("x-content-type-options"), "nosniff");
	await client.callTool({ name: "delete_sandbox", arguments: { identifier: id } });
});

test("what is missing or wrong is answered in JSON", async () => {
	for (const [where, init, status] of [
		["/artifacts/story/latest/nothing", {}, 404],
		["/artifacts/nobody/latest/x", {}, 404],
		["/nothing", {}, 404],
		["/mcp", {}, 405],
		["/mcp/runs/run_00000000000000000000000000000000", {}, 404],
		["/mcp", { method: "POST", body: "{}", headers: { "content-type": "text/plain" } }, 415],
		["/mcp", { method: "POST", body: "x".repeat(9 << 20), headers: { "content-type": "application/json" } }, 413],
	]) {
		const r = await server.get(where, init);
		const text = await r.text();
		assert.equal(r.status, status, `${where}: ${text}`);
		assert.match(r.headers.get("content-type"), /^application\/json/, where);
		assert.ok(JSON.parse(text).error, where);
	}
});

test("bad arguments come back as words a model can act on", async () => {
	for (const [args, words] of [
		[{ identifier: "x", commands: [] }, /commands/],
		[{ identifier: "x", commands: [{ shell: "a", argv: ["b"] }] }, /shell|argv/],
		[{ identifier: "", commands: [{ shell: "a" }] }, /identifier/],
		[{ identifier: "x", commands: [{ shell: "a", cwd: "rel" }] }, /cwd/],
		[{ identifier: "x", commands: [{ shell: "a" }], options: { as_user: "nobody" } }, /as_user/],
	]) {
		const r = await client.callTool({ name: "run_sandbox", arguments: args });
		assert.equal(r.isError, true, JSON.stringify(args));
		assert.match(r.content[0].text, words);
	}
	await assert.rejects(client.callTool({ name: "no_such_tool", arguments: {} }), /-32602/);
});

test("what root installs and what is written is there after a restart of the server", async () => {
	await run(client, "story", ["echo kept >/workspace/note; touch /usr/local/bin/mine"], { as_user: "root" });
	await server.restart();
	const { final } = await run(client, "story", ["cat /workspace/note; ls /usr/local/bin/mine"]);
	assert.equal(final.commands[0].stdout, "kept\n/usr/local/bin/mine\n");
	const r = await server.get("/artifacts/story/latest/page.html");
	assert.equal(r.status, 200);
	await r.body.cancel();
});

test("a restarted sandbox is a fresh one, a deleted one is gone", async () => {
	const r = await client.callTool({ name: "restart_sandbox", arguments: { identifier: "story" } }, undefined, { timeout: 120000 });
	assert.equal(r.structuredContent.sandbox.identifier, "story");
	const { final } = await run(client, "story", ["ls /workspace/note"]);
	assert.notEqual(final.commands[0].exit_code, 0);
	const d = await client.callTool({ name: "delete_sandbox", arguments: { identifier: "story" } });
	assert.deepEqual(d.structuredContent, { deleted: true, identifier: "story" });
	const again = await client.callTool({ name: "delete_sandbox", arguments: { identifier: "story" } });
	assert.deepEqual(again.structuredContent, { deleted: false, identifier: "story" });
});
