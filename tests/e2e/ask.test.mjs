// SPDX-License-Identifier: MIT
// The user is asked before files are thrown away (CONFIRM_DELETE): through the official
// client, whatever process gets the answer, in both eras, and what becomes of silence.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { Server, run } from "./rig.mjs";
import { Wire, answer, messages, request } from "./wire.mjs";

let server, wire, client;

before(async () => {
	server = await Server.start({ CONFIRM_DELETE: "true", EDGE_PROCESSES: "3" });
	wire = new Wire(server);
	client = await server.connect();
});
after(async () => {
	await client?.close();
	await server?.stop();
});

const make = (identifier) => run(client, identifier, ["echo kept >/workspace/f"]);
const there = async (identifier) => (await run(client, identifier, ["cat /workspace/f 2>/dev/null || echo new"])).final.commands[0].stdout === "kept\n";
const remove = (identifier) => ({ name: "delete_sandbox", arguments: { identifier } });
const elicitation = { elicitation: {} };

async function asked(transport, action) {
	const c = new Client({ name: "asked", version: "1" }, { capabilities: elicitation });
	const seen = [];
	c.setRequestHandler(ElicitRequestSchema, (r) => {
		seen.push(r.params.message);
		return action === "accept" ? { action, content: {} } : { action };
	});
	await c.connect(transport(new URL(server.url)));
	return { c, seen };
}

for (const [name, transport] of [["streamable http", (u) => new StreamableHTTPClientTransport(u)], ["http+sse", (u) => new SSEClientTransport(u)]])
	test(`the official client's user is asked: ${name}`, async (t) => {
		for (let i = 0; i < 4; i++) {
			const id = `sdk ${name} ${i}`;
			await make(id);
			const action = i % 2 ? "accept" : "decline";
			const { c, seen } = await asked(transport, action);
			t.after(() => c.close());
			const r = await c.callTool(remove(id));
			assert.equal(seen.length, 1);
			assert.ok(seen[0].includes(`sandbox "${id}"`));
			assert.equal(Boolean(r.isError), action === "decline");
			assert.equal(await there(id), action === "decline");
		}
	});

test("who cannot ask is told so, and nothing is deleted", async () => {
	await make("bare");
	const r = await client.callTool(remove("bare"));
	assert.ok(r.isError);
	assert.match(r.content[0].text, /elicitation/);
	const modern = await wire.modern("tools/call", remove("bare"));
	assert.equal(modern.status, 400);
	const { error } = await modern.json();
	assert.equal(error.code, -32021);
	assert.deepEqual(error.data.requiredCapabilities, { elicitation: {} });
	assert.ok(await there("bare"));
});

test("an answer counts once, and only in its own session", async () => {
	await make("own");
	const s = await wire.session(undefined, elicitation);
	const other = await wire.session(undefined, elicitation);
	const r = await wire.post(request("tools/call", remove("own")), s);
	assert.match(r.headers.get("content-type"), /event-stream/);
	const stream = messages(r);
	const question = (await stream.next()).value;
	assert.equal(question.method, "elicitation/create");
	const yes = { jsonrpc: "2.0", id: question.id, result: { action: "accept", content: {} } };
	assert.equal((await wire.post(yes, other)).status, 202);
	assert.equal((await wire.post({ ...yes, id: "ask-0123456789abcdef-consent" }, s)).status, 202);
	assert.ok(await there("own"));
	assert.equal((await wire.post({ ...yes, result: { action: "cancel" } }, s)).status, 202);
	const end = (await stream.next()).value;
	assert.ok(end.result.isError);
	assert.equal((await wire.post(yes, s)).status, 202);
	assert.ok(await there("own"));
});

test("a client that leaves or cancels is asked no more", async () => {
	await make("left");
	const s = await wire.session(undefined, elicitation);
	for (const how of ["cancel", "leave"]) {
		const ac = new AbortController();
		const r = await wire.post(request("tools/call", remove("left"), how), s, { signal: ac.signal });
		const stream = messages(r);
		const question = (await stream.next()).value;
		if (how === "cancel") {
			await wire.post({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: how } }, s);
			assert.ok((await stream.next()).done);
		} else {
			ac.abort();
		}
		await wire.post({ jsonrpc: "2.0", id: question.id, result: { action: "accept", content: {} } }, s);
		assert.ok(await there("left"), how);
	}
});

test("in the modern era the question is a result, and the request comes again with the answer", async () => {
	const capabilities = elicitation;
	await make("modern");
	const ask = () => wire.modernAnswer("tools/call", remove("modern"), { capabilities });
	const again = (more) => wire.modernAnswer("tools/call", { ...remove("modern"), ...more }, { capabilities });
	const first = (await ask()).result;
	assert.equal(first.resultType, "input_required");
	assert.equal(first.inputRequests.consent.method, "elicitation/create");
	const yes = { inputResponses: { consent: { action: "accept", content: {} } }, requestState: first.requestState };
	const unasked = (await again({ inputResponses: yes.inputResponses })).result;
	assert.equal(unasked.resultType, "input_required", "an answer to what was never asked");
	const no = await again({ ...yes, inputResponses: { consent: { action: "decline" } } });
	assert.ok(no.result.isError);
	assert.equal((await again({ ...yes, requestState: `${first.requestState}x` })).error.code, -32602);
	const elsewhere = await wire.modernAnswer("tools/call", { ...remove("other"), ...yes }, { capabilities });
	assert.equal(elsewhere.error.code, -32602);
	assert.ok(await there("modern"));
	await server.restart(); // what was signed is good at any process, after any restart
	const done = await again(yes);
	assert.equal(done.result.structuredContent.deleted, true);
	await make("modern"); // made anew: the user was asked about another one
	const replayed = await again(yes);
	assert.ok(replayed.result.isError);
	assert.match(replayed.result.content[0].text, /another one/);
	assert.ok(await there("modern"));
});

test("restart_sandbox asks as well; what throws nothing away does not", async () => {
	const s = await wire.session(undefined, elicitation);
	const ac = new AbortController();
	const r = await wire.post(request("tools/call", { name: "restart_sandbox", arguments: { identifier: "x" } }), s, { signal: ac.signal });
	const stream = messages(r);
	assert.equal((await stream.next()).value.method, "elicitation/create");
	const list = await answer(await wire.post(request("tools/call", { name: "list_sandboxes", arguments: {} }), s));
	assert.ok(list.result.structuredContent.sandboxes);
	ac.abort();
});
