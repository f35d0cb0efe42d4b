// SPDX-License-Identifier: MIT
// Runs, their output and their artifacts as resources, and completion of ids.
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

const read = async (uri) => (await client.readResource({ uri })).contents[0];

test("what a run left is listed, read and found by its links", async () => {
	const bytes = Buffer.from([0, 1, 2, 255]);
	const { run_id, final } = await run(client, "res 1", [
		"echo out; echo err >&2; mkdir -p /artifacts/d; echo hi >'/artifacts/d/ü 1.txt'; printf '\\0\\1\\2\\377' >/artifacts/b.bin",
	]);
	assert.equal(final.state, "completed");
	const { resources } = await client.listResources();
	const mine = resources.filter((r) => r.uri.includes(run_id));
	assert.deepEqual(mine.map((r) => r.name), [run_id, "b.bin", "d/ü 1.txt"]);
	assert.deepEqual(mine.map((r) => r.size), [undefined, 4, 3]);
	assert.equal(JSON.parse((await read(mine[0].uri)).text).run_id, run_id);
	const b = await read(mine[1].uri);
	assert.deepEqual(Buffer.from(b.blob, "base64"), bytes);
	assert.equal(b.text, undefined);
	const t = await read(mine[2].uri);
	assert.deepEqual([t.text, t.mimeType, t.uri], ["hi\n", "text/plain", mine[2].uri]);
	assert.equal((await read(`sandbox://runs/${run_id}/commands/0/stdout`)).text, "out\n");
	assert.equal((await read(`sandbox://runs/${run_id}/commands/0/stderr`)).text, "err\n");
	assert.equal((await read("sandbox://latest/res%201/artifacts/d/%C3%BC%201.txt")).text, "hi\n");
});

test("the templates are told, and what is not there is -32002 with its uri", async () => {
	const { resourceTemplates } = await client.listResourceTemplates();
	assert.equal(resourceTemplates.length, 4);
	const { run_id } = await run(client, "res 1", ["true"]);
	for (const uri of [
		"sandbox://runs/run_00000000000000000000000000000000",
		`sandbox://runs/${run_id}/commands/1/stdout`,
		`sandbox://runs/${run_id}/artifacts/none`,
		`sandbox://runs/${run_id}/artifacts/../${run_id}/b.bin`,
		`sandbox://runs/${run_id}/artifacts/%2e%2e/%2e%2e/x`,
		`sandbox://runs/${run_id}/artifacts//etc/passwd`,
		"sandbox://latest/nobody/artifacts/x",
		"file:///etc/passwd",
	])
		await assert.rejects(client.readResource({ uri }), (e) => e.code === -32002 && e.data.uri === uri, uri);
});

test("a long list comes in pages", async () => {
	for (let i = 0; i < 30; i++) await run(client, "many", [{ argv: ["true"] }]);
	const ids = new Set();
	let pages = 0;
	for (let cursor; ; pages++) {
		const page = await client.listResources(cursor ? { cursor } : undefined);
		for (const r of page.resources) if (r.name.startsWith("run_")) ids.add(r.name);
		cursor = page.nextCursor;
		if (!cursor) break;
	}
	assert.ok(pages >= 1);
	assert.equal(ids.size, 32);
	await assert.rejects(client.listResources({ cursor: "***" }), /cursor/);
});

test("identifiers, run ids and streams complete", async () => {
	const complete = async (name, value) =>
		(await client.complete({ ref: { type: "ref/resource", uri: "sandbox://runs/{run_id}" }, argument: { name, value } })).completion;
	assert.deepEqual((await complete("identifier", "re")).values, ["res 1"]);
	const { values, hasMore } = await complete("run_id", "run_");
	assert.equal(values.length, 32);
	assert.equal(hasMore, false);
	assert.deepEqual((await complete("stream", "stde")).values, ["stderr"]);
	assert.deepEqual((await complete("other", "")).values, []);
});

// The folder of a run that changed few of many files has only these (runner/oldfiles.h).
test("of many files the changed and the unchanged ones are served alike", async () => {
	for (const id of ["many", "many 1"]) {
		const before = await run(client, id, [
			"mkdir '/artifacts/d 1'; cd '/artifacts/d 1'; for i in $(seq 300); do echo $i >$i.txt; done; echo odd >'a?b%41&c.txt'",
		]);
		const { run_id, final } = await run(client, id, ["cd '/artifacts/d 1'; echo new >1.txt; echo more >more.txt"]);
		assert.equal(final.artifacts_total, 302);
		const get = (path, at = run_id, headers = {}) => server.get(`/artifacts/${encodeURIComponent(id)}/${at}/${path}`, { headers });
		for (const [path, text] of [["1.txt", "new\n"], ["2.txt", "2\n"], ["more.txt", "more\n"], ["a%3Fb%2541%26c.txt", "odd\n"]]) {
			for (const at of [run_id, "latest"]) {
				const r = await get(`d%201/${path}`, at);
				assert.equal(await r.text(), text, `${at} ${path}`);
				assert.equal(r.headers.get("content-type"), "text/plain; charset=utf-8");
				assert.equal(r.headers.get("x-content-type-options"), "nosniff");
			}
			assert.equal((await read(`sandbox://runs/${run_id}/artifacts/d%201/${path}`)).text, text);
		}
		assert.equal(await (await get("d%201/1.txt", before.run_id)).text(), "1\n");
		const part = await get("d%201/123.txt", run_id, { range: "bytes=1-1" });
		assert.deepEqual([part.status, await part.text()], [206, "2"]);
		for (const path of ["d%201/none.txt", "d%201", "d%201/", ".unchanged/d%201/1.txt", ".unchanged"]) {
			const r = await get(path);
			assert.equal(r.status, 404, path);
			assert.equal((await r.json()).error.kind, "not_found");
		}
		assert.equal((await get("d%201/more.txt", before.run_id)).status, 404);
	}
});
