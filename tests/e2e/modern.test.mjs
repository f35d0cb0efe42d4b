// SPDX-License-Identifier: MIT
// 2026-07-28 over HTTP: every tool, the resources, and what each header, each _meta and
// each status is held to.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, until } from "./rig.mjs";
import { LEGACY, MODERN, P, Wire, answer, frames as eachFrame, meta, request, runOf } from "./wire.mjs";

let server, wire;

before(async () => {
	server = await Server.start({ EDGE_PROCESSES: "2" });
	wire = new Wire(server);
});
after(() => server?.stop());

// A result of that kind; every one says who made it.
async function result(method, params, options) {
	const r = await wire.modern(method, params, options);
	assert.equal(r.status, 200);
	assert.equal(r.headers.get("mcp-session-id"), null);
	const got = await answer(r);
	assert.ok(got.result, JSON.stringify(got));
	assert.equal(got.result.resultType, "complete");
	assert.equal(got.result._meta[`${P}serverInfo`].name, "mcp-sandboxd");
	return got.result;
}
async function tool(name, args) {
	const r = await result("tools/call", { name, arguments: args });
	assert.ok(!r.isError, JSON.stringify(r.content));
	assert.ok(r.content.length > 0);
	return r;
}
async function refused(response, status, code) {
	assert.equal(response.status, status);
	const { id, error } = await response.json();
	assert.equal(error.code, code, error.message);
	return { id, error };
}

test("server/discover says what there is, and may be kept", async () => {
	const r = await result("server/discover", {});
	assert.deepEqual(r.supportedVersions, [MODERN]);
	assert.ok(r.capabilities.tools && r.capabilities.resources.subscribe && r.capabilities.extensions[`${P}tasks`]);
	assert.equal(r.capabilities.tools.listChanged, undefined);
	assert.ok(r.instructions.length > 100);
	assert.equal(r.cacheScope, "public");
	assert.ok(Number.isInteger(r.ttlMs));
	assert.match(r._meta[`${P}serverInfo`].icons[0].src, /^data:image\/svg/);
});

test("every tool does its work, at any process, without a session", async () => {
	const { tools } = await result("tools/list", {});
	const used = new Set();
	const call = (name, args) => (used.add(name), tool(name, args));
	const id = "modern tools";
	const ran = await call("run_sandbox", runOf(id, "echo out; echo err >&2; echo data >/artifacts/a.txt").arguments);
	const { final, run_id } = ran.structuredContent;
	assert.equal(final.state, "completed");
	assert.equal(ran.content.find((c) => c.type === "resource_link").name, "a.txt");
	assert.equal((await call("get_run", { run_id, command: 0 })).structuredContent.output.text, "out\n");
	await call("write_file", { identifier: id, path: "w.txt", text: "written\n" });
	assert.equal((await call("read_file", { identifier: id, path: "w.txt" })).content[0].text, "written\n");
	assert.ok((await call("list_files", { identifier: id })).structuredContent.entries.some((e) => e.path === "w.txt"));
	assert.deepEqual((await call("list_sandboxes", {})).structuredContent.sandboxes.map((s) => s.identifier), [id]);
	const long = (await call("run_sandbox", runOf(id, "sleep 300", { await_completion: false }).arguments)).structuredContent;
	assert.equal((await call("cancel_run", { run_id: long.run_id })).structuredContent.canceled, true);
	assert.equal((await server.ended(long.run_id)).state, "canceled");
	assert.ok((await call("restart_sandbox", { identifier: id })).structuredContent.sandbox.name);
	assert.equal((await call("delete_sandbox", { identifier: id })).structuredContent.deleted, true);
	assert.deepEqual([...used].sort(), tools.map((t) => t.name).sort());
	for (const t of tools) assert.equal(t.execution, undefined);
});

test("a tool's failure is a result with isError; an unknown tool and bad params are errors", async () => {
	for (const [name, args] of [
		["run_sandbox", { identifier: "x" }],
		["run_sandbox", { identifier: "x", commands: [{ shell: "true", surprise: 1 }] }],
		["get_run", { run_id: `run_${"0".repeat(32)}` }],
		["read_file", { identifier: "never was", path: "x" }],
	]) {
		const r = await result("tools/call", { name, arguments: args });
		assert.equal(r.isError, true, name);
		assert.ok(r.content[0].text.length > 10);
	}
	await refused(await wire.modern("tools/call", { name: "none", arguments: {} }), 200, -32602);
	await refused(await wire.modern("tools/call", { name: "run_sandbox", arguments: [] }), 200, -32602);
	await refused(await wire.modern("tools/list", { cursor: "none" }), 200, -32602);
});

test("resources are listed, read and completed, each with how long it may be kept", async () => {
	const { structuredContent: s } = await tool("run_sandbox", runOf("modern res", "echo hi; printf '\\0\\1' >'/artifacts/b ü.bin'").arguments);
	const list = await result("resources/list", {});
	const mine = list.resources.filter((r) => r.uri.includes(s.run_id));
	assert.deepEqual(mine.map((r) => r.name), [s.run_id, "b ü.bin"]);
	const templates = await result("resources/templates/list", {});
	assert.equal(templates.resourceTemplates.length, 4);
	for (const r of [list, templates]) assert.ok(Number.isInteger(r.ttlMs) && ["public", "private"].includes(r.cacheScope));
	for (const [uri, text] of [[mine[0].uri], [`sandbox://runs/${s.run_id}/commands/0/stdout`, "hi\n"]]) {
		const r = await result("resources/read", { uri });
		assert.equal(r.cacheScope, "private");
		if (text) assert.equal(r.contents[0].text, text);
		else assert.equal(JSON.parse(r.contents[0].text).run_id, s.run_id);
	}
	// What is no header's text travels encoded, and is compared decoded.
	const encoded = (uri) => `=?base64?${Buffer.from(uri).toString("base64")}?=`;
	const b = await result("resources/read", { uri: mine[1].uri }, { headers: { "mcp-name": encoded(mine[1].uri) } });
	assert.deepEqual([...Buffer.from(b.contents[0].blob, "base64")], [0, 1]);
	const missing = `sandbox://runs/run_${"0".repeat(32)}`;
	const { error } = await refused(await wire.modern("resources/read", { uri: missing }), 200, -32602);
	assert.equal(error.data.uri, missing);
	const { completion } = await result("completion/complete", { ref: { type: "ref/resource", uri: "sandbox://latest/{identifier}" }, argument: { name: "identifier", value: "modern" } });
	assert.ok(completion.values.includes("modern res"));
});

test("headers that are missing or say other than the body: 400, -32020, with the request's id", async () => {
	const cases = [
		{ "mcp-protocol-version": null },
		{ "mcp-method": null },
		{ "mcp-name": null },
		{ "mcp-protocol-version": LEGACY },
		{ "mcp-method": "tools/list" },
		{ "mcp-method": "TOOLS/CALL" },
		{ "mcp-name": "get_run" },
		{ "mcp-name": "=?base64?!!?=" },
		{ "mcp-name": "=?base64?cnVuX3NhbmRib3g?=" }, // without its padding
	];
	for (const headers of cases) {
		const { id } = await refused(await wire.modern("tools/call", runOf("never", "true"), { headers, id: "mine" }), 400, -32020);
		assert.equal(id, "mine", JSON.stringify(headers));
	}
	assert.equal((await result("tools/call", { name: "list_sandboxes", arguments: {} }, { headers: { "mcp-name": "  list_sandboxes " } })).isError, false);
});

test("_meta is asked for, and versions that are not spoken here are named", async () => {
	const post = (_meta, version = MODERN) => wire.post(request("tools/list", { _meta }), { "mcp-protocol-version": version, "mcp-method": "tools/list" });
	for (const key of ["protocolVersion", "clientCapabilities"]) {
		const m = meta();
		delete m[`${P}${key}`];
		await refused(await post(m), 400, -32602);
	}
	const bare = meta();
	delete bare[`${P}clientInfo`];
	assert.equal((await post(bare)).status, 200, "clientInfo is not demanded");
	for (const version of ["2030-01-01", LEGACY]) {
		const { error } = await refused(await post({ ...meta(), [`${P}protocolVersion`]: version }, version), 400, -32022);
		assert.deepEqual(error.data, { supported: [MODERN], requested: version });
	}
});

test("what the older versions have is no method here: 404, -32601", async () => {
	for (const method of ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "tasks/list", "tasks/result", "nothing"])
		await refused(await wire.modern(method, {}), 404, -32601);
	for (const method of ["GET", "DELETE"]) {
		const r = await fetch(server.url, { method, headers: { "mcp-protocol-version": MODERN, accept: "text/event-stream" } });
		assert.equal(r.status, 405);
		assert.match(r.headers.get("allow"), /POST/);
		await r.text();
	}
	await refused(await wire.post([request("tools/list", { _meta: meta() })], { "mcp-protocol-version": MODERN, "mcp-method": "tools/list" }), 400, -32600);
});

test("a session's id and an event's id mean nothing here", async () => {
	await result("tools/list", {}, { headers: { "mcp-session-id": "0".repeat(32), "last-event-id": "7" } });
});

test("progress comes on the response's stream, and then the result", async () => {
	const r = await wire.modern("tools/call", runOf("modern progress", "until [ -e /tmp/enough ]; do echo line; sleep 0.3; done"), { _meta: { progressToken: "p" } });
	assert.match(r.headers.get("content-type"), /event-stream/);
	const frames = [];
	for await (const f of eachFrame(r)) if (frames.push(f) === 4) await tool("run_sandbox", runOf("modern progress", "touch /tmp/enough").arguments);
	assert.ok(frames.every((f) => f.id === undefined), "no ids: it cannot be resumed");
	const list = frames.filter((f) => f.data).map((f) => JSON.parse(f.data));
	const told = list.slice(0, -1);
	assert.ok(told.length >= 2);
	assert.ok(told.every((m) => m.method === "notifications/progress" && m.params.progressToken === "p"));
	assert.equal(list.at(-1).result.structuredContent.final.state, "completed");
});

test("an awaited run that lasts is a task for those who know tasks, a handle for others", async () => {
	const quick = await Server.start({ AWAIT_ANSWER_MAX_MS: "1000", AWAIT_TASK_AFTER_MS: "500" });
	try {
		const w = new Wire(quick);
		const handle = await w.modernAnswer("tools/call", runOf("t", "sleep 3"));
		assert.equal(handle.result.resultType, "complete");
		assert.equal(handle.result.structuredContent.final, null);
		const capabilities = { extensions: { [`${P}tasks`]: {} } };
		const task = await w.modernAnswer("tools/call", runOf("t", "sleep 3; echo done"), { capabilities });
		assert.equal(task.result.resultType, "task");
		const { taskId } = task.result;
		const done = await until("the task", 20000, async () => {
			const t = await w.modernAnswer("tasks/get", { taskId }, { capabilities });
			return t.result.status === "completed" && t.result;
		});
		assert.equal(done.result.structuredContent.final.commands[0].stdout, "done\n");
	} finally {
		await quick.stop();
	}
});
