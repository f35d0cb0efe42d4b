// SPDX-License-Identifier: MIT
// Whatever bytes a client sends through nginx, the answer is JSON in words, at once:
// never a page of HTML, never a cut in silence.
import assert from "node:assert/strict";
import net from "node:net";
import { after, before, test } from "node:test";
import { Server, run } from "./rig.mjs";
import { LEGACY, MODERN, P, Wire, meta, request } from "./wire.mjs";

let server, wire, client, runId;

before(async () => {
	server = await Server.start();
	wire = new Wire(server);
	client = await server.connect();
	({ run_id: runId } = await run(client, "http", ["echo hello >/artifacts/a.txt; echo out"]));
});
after(async () => {
	await client?.close();
	await server?.stop();
});

// The answer to exactly these bytes: {status, body}.
async function raw(bytes) {
	const socket = net.connect(server.port, "127.0.0.1");
	const chunks = [];
	socket.on("data", (d) => chunks.push(d));
	socket.on("error", () => {}); // a reset after the answer
	socket.setTimeout(120000, () => socket.destroy());
	socket.write(bytes);
	await new Promise((done) => socket.once("close", done));
	const text = Buffer.concat(chunks).toString("latin1");
	const [head, ...body] = text.split("\r\n\r\n");
	return { status: Number(/^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1]), head, body: body.join("\r\n\r\n") };
}

const close = "Host: localhost\r\nConnection: close\r\n";
const long = (n) => "a".repeat(n);

const refused = [
	["bytes that are no HTTP", "\x16\x03\x01\x02\x00\x01\r\n\r\n", 400],
	["a request line of one word", "FOO\r\n\r\n", 400],
	["a method in small letters", `get / HTTP/1.1\r\n${close}\r\n`, 400],
	["a version to come", `GET / HTTP/3.0\r\n${close}\r\n`, 505],
	["the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400],
	["no Host", "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n", 400],
	["two Hosts", `GET /healthz HTTP/1.1\r\nHost: a\r\n${close}\r\n`, 400],
	["another Host", "GET /mcp/events HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", 403],
	["a path above the root", `GET /../../etc/passwd HTTP/1.1\r\n${close}\r\n`, 400],
	["a NUL in the path", `GET /mcp%00 HTTP/1.1\r\n${close}\r\n`, 400],
	["a bad escape in the path", `GET /mcp%zz HTTP/1.1\r\n${close}\r\n`, 400],
	["a request line too long", `GET /${long(40000)} HTTP/1.1\r\n${close}\r\n`, 414],
	["one header too long", `GET /healthz HTTP/1.1\r\n${close}X: ${long(40000)}\r\n\r\n`, 431],
	["too many long headers", `GET /healthz HTTP/1.1\r\n${close}${Array.from({ length: 9 }, (_, i) => `X${i}: ${long(12000)}\r\n`).join("")}\r\n`, 431],
	["too many small headers", `GET /healthz HTTP/1.1\r\n${close}${"X: y\r\n".repeat(20000)}\r\n`, 431],
	["a NUL in a header", `GET /healthz HTTP/1.1\r\n${close}X: a\0b\r\n\r\n`, 400],
	["both lengths", `POST /mcp HTTP/1.1\r\n${close}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400],
	["an unknown transfer encoding", `POST /mcp HTTP/1.1\r\n${close}Transfer-Encoding: gzip\r\n\r\n`, 501],
	["a negative length", `POST /mcp HTTP/1.1\r\n${close}Content-Length: -5\r\n\r\n`, 400],
	["a body over the limit", `POST /mcp HTTP/1.1\r\n${close}Content-Length: 999999999\r\n\r\n`, 413],
	["a chunk over the limit", `POST /mcp HTTP/1.1\r\n${close}Transfer-Encoding: chunked\r\n\r\nFFFFFFFF\r\na`, 413],
	["a bad chunk", `POST /mcp HTTP/1.1\r\n${close}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`, 400],
	["TRACE", `TRACE /mcp HTTP/1.1\r\n${close}\r\n`, 405],
	["CONNECT", `CONNECT example.com:80 HTTP/1.1\r\n${close}\r\n`, 400],
	["OPTIONS *", `OPTIONS * HTTP/1.1\r\n${close}\r\n`, 400],
	["a method nobody knows", `BREW /mcp HTTP/1.1\r\n${close}\r\n`, 405],
	["the folder of artifacts without its slash", `GET /artifacts HTTP/1.1\r\n${close}\r\n`, 404],
	["an internal location", `GET /_mcp_said/400 HTTP/1.1\r\n${close}\r\n`, 404],
	["the internal location of artifacts", `GET /_mcp_artifacts/default/http/latest/a.txt HTTP/1.1\r\n${close}\r\n`, 404],
];

for (const [name, bytes, status] of refused)
	test(`${name}: ${status} in JSON`, async () => {
		const r = await raw(bytes);
		assert.equal(r.status, status, r.head);
		const { error } = JSON.parse(r.body);
		assert.ok(error.message.length > 10);
		if (status === 405) assert.match(r.head, /\r\nAllow: /);
	});

test("headers and a path as long as they may be reach the edge", async () => {
	const headers = `X1: ${long(15000)}\r\nX2: ${long(15000)}\r\n`;
	const r = await raw(`GET /mcp/events?${long(14000)}&run_id=${runId}&after=1 HTTP/1.1\r\n${close}${headers}\r\n`);
	assert.equal(r.status, 200, r.head + r.body);
	assert.match(r.body, /run_finished/);
});

test("OPTIONS on an artifact names its methods", async () => {
	for (const path of [`http/${runId}/a.txt`, "http/latest/a.txt", "a%20b/latest/a.txt"]) {
		const r = await raw(`OPTIONS /artifacts/${path} HTTP/1.1\r\n${close}\r\n`);
		assert.equal(r.status, 204, path + r.head);
		assert.match(r.head, /\r\nAllow: GET, HEAD, OPTIONS/);
	}
	const r = await raw(`GET /artifacts/http/latest/a.txt HTTP/1.1\r\n${close}\r\n`);
	assert.match(r.head, /X-Content-Type-Options: nosniff/i);
});

test("no path leads out of the artifacts", async () => {
	const base = `/artifacts/http/${runId}`;
	assert.equal((await raw(`GET ${base}/a.txt HTTP/1.1\r\n${close}\r\n`)).body, "hello\n");
	for (const path of [
		`${base}/../../../../instance`,
		`${base}/%2e%2e/%2e%2e/%2e%2e/%2e%2e/instance`,
		`${base}/..%2f..%2f..%2f..%2finstance`,
		`${base}/%252e%252e/%252e%252e/instance`,
		`${base}/a.txt%00.png`,
		`${base}/a.txt/`,
		`${base}/..`,
		base,
		`${base}/`,
		"/artifacts/%2e%2e/latest/instance",
		`/artifacts/a%20b/latest/..%2f..%2f..%2f..%2finstance`,
		`/artifacts/a%20b/latest/x%0d%0aSet-Cookie:%20a`,
	]) {
		const r = await raw(`GET ${path} HTTP/1.1\r\n${close}\r\n`);
		assert.ok([400, 404].includes(r.status), `${path}: ${r.head}`);
		assert.ok(JSON.parse(r.body).error.message, path);
		assert.doesNotMatch(r.head, /Set-Cookie/);
	}
});

const modern = { "mcp-protocol-version": MODERN, "mcp-method": "tools/list" };
const ping = JSON.stringify(request("ping", {}));
const none = "0".repeat(32);
const deep = (n) => `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":${"[".repeat(n)}${"]".repeat(n)}}}`;
const about = (_meta) => JSON.stringify(request("tools/list", { _meta }));

// What a body or its headers are refused for, in both eras: status and code. s: with a
// session of that version.
const faults = [
	["no session", ping, {}, 400, -32000],
	["an unknown session", ping, { "mcp-session-id": none }, 404, -32001],
	["what is no session's id", ping, { "mcp-session-id": "'; DROP TABLE sessions" }, 404, -32001],
	["a wrong version", ping, { s: "2025-06-18", "mcp-protocol-version": "nonsense" }, 400, -32022],
	["a version to come", ping, { s: "2025-11-25", "mcp-protocol-version": "2030-01-01" }, 400, -32022],
	["no JSON", "{", { s: LEGACY }, 400, -32700],
	["nothing", "", { s: LEGACY }, 400, -32700],
	["two values", "{} {}", { s: LEGACY }, 400, -32700],
	["no UTF-8", "{\"a\":\"\xff\"}", { s: LEGACY }, 400, -32700],
	["JSON too deep", deep(64), { s: LEGACY }, 400, -32700],
	["JSON far too deep", deep(100000), { s: LEGACY }, 400, -32700],
	["a key twice", '{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}', { s: LEGACY }, 400, -32700],
	["no object", "7", { s: LEGACY }, 400, -32600],
	["no version of JSON-RPC", '{"id":1,"method":"ping"}', { s: LEGACY }, 400, -32600],
	["no method", '{"jsonrpc":"2.0","id":1}', { s: LEGACY }, 400, -32600],
	["an id that is null", '{"jsonrpc":"2.0","id":null,"method":"ping"}', { s: LEGACY }, 400, -32600],
	["an id that is a fraction", '{"jsonrpc":"2.0","id":1.5,"method":"ping"}', { s: LEGACY }, 400, -32600],
	["params that are a list", '{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', { s: LEGACY }, 400, -32600],
	["a batch in a version without", `[${ping}]`, { s: LEGACY }, 400, -32600],
	["an empty batch", "[]", { s: "2025-03-26" }, 400, -32600],
	["a form", ping, { s: LEGACY, "content-type": "application/x-www-form-urlencoded" }, 415, -32000],
	["plain text", ping, { s: LEGACY, "content-type": "text/plain" }, 415, -32000],
	["modern: no JSON", "{", modern, 400, -32700],
	["modern: JSON too deep", deep(64), modern, 400, -32700],
	["modern: a key twice", '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{},"params":{}}', modern, 400, -32700],
	["modern: no _meta", JSON.stringify(request("tools/list", {})), modern, 400, -32602],
	["modern: another method in the header", about(meta()), { ...modern, "mcp-method": "tools/call" }, 400, -32020],
	["modern: another version in the header", about(meta()), { ...modern, "mcp-protocol-version": LEGACY }, 400, -32020],
	["modern: an unknown version", about({ ...meta(), [`${P}protocolVersion`]: "2030-01-01" }), { ...modern, "mcp-protocol-version": "2030-01-01" }, 400, -32022],
	["modern: an unknown method", JSON.stringify(request("nope", { _meta: meta() })), { ...modern, "mcp-method": "nope" }, 404, -32601],
	["modern: an answer", '{"jsonrpc":"2.0","id":1,"result":{}}', modern, 400, -32600],
];

for (const [name, body, { s, ...headers }, status, code] of faults)
	test(`MCP, ${name}: ${status}, ${code}`, async () => {
		const session = s ? await wire.session(s) : {};
		const r = await wire.post(name === "no UTF-8" ? Buffer.from(body, "latin1") : body, { ...session, ...headers });
		const got = await r.json();
		assert.equal(r.status, status, JSON.stringify(got));
		assert.equal(got.error.code, code);
		assert.ok(got.error.message.length > 10);
	});

test("a foreign Host or Origin is 403 whatever is asked, and gets no CORS headers", async () => {
	const s = await wire.session();
	const lines = Object.entries(s).map(([k, v]) => `${k}: ${v}\r\n`).join("");
	for (const method of ["POST", "GET", "DELETE", "OPTIONS"])
		for (const foreign of ["Host: evil.example\r\n", "Host: localhost\r\nOrigin: http://evil.example\r\n", "Host: localhost.evil.example\r\n", "Host: localhost\r\nOrigin: null\r\n"]) {
			const r = await raw(`${method} /mcp HTTP/1.1\r\n${foreign}${lines}Accept: text/event-stream\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
			assert.equal(r.status, 403, `${method} ${foreign}`);
			assert.doesNotMatch(r.head, /access-control/i);
		}
	assert.deepEqual((await wire.legacy(s, "ping")).result, {}, "it did nothing");
});

test("an ended or unknown session is 404 for every method, none is 400 for those that need it", async () => {
	const s = await wire.session();
	for (const [headers, expected] of [[{ ...s, "mcp-session-id": none }, 404], [{}, 400]]) {
		const r = await fetch(server.url, { method: "DELETE", headers });
		assert.equal(r.status, expected);
		await r.text();
	}
	assert.equal((await wire.stream({ ...s, "mcp-session-id": none })).status, 404);
	assert.equal((await fetch(server.url, { method: "DELETE", headers: s })).status, 204);
	assert.equal((await wire.post(ping, s)).status, 404);
	assert.equal((await wire.stream(s)).status, 404);
});

test("a browser of a listed origin may send what both eras send, and read what they answer", async () => {
	const listed = await Server.start({ CORS_ALLOW_ORIGINS: "https://ui.example" });
	try {
		const origin = "https://ui.example";
		const asked = "content-type,mcp-method,mcp-name,mcp-param-identifier,mcp-protocol-version,mcp-session-id,last-event-id,authorization,accept";
		const pre = await fetch(listed.url, { method: "OPTIONS", headers: { origin, "access-control-request-method": "POST", "access-control-request-headers": asked } });
		assert.equal(pre.status, 204);
		const granted = pre.headers.get("access-control-allow-headers").toLowerCase().split(/, */);
		for (const name of asked.split(",")) assert.ok(granted.includes(name), name);
		assert.match(pre.headers.get("access-control-allow-methods"), /DELETE/);
		const r = await new Wire(listed).post(request("initialize", { protocolVersion: LEGACY, capabilities: {}, clientInfo: { name: "b", version: "1" } }), { origin });
		assert.equal(r.headers.get("access-control-allow-origin"), origin);
		assert.match(r.headers.get("access-control-expose-headers"), /Mcp-Session-Id/i);
		assert.ok(r.headers.get("mcp-session-id"));
	} finally {
		await listed.stop();
	}
});

test("a slow client is let wait, and holds nobody up", async () => {
	const slow = Array.from({ length: 200 }, () => {
		const s = net.connect(server.port, "127.0.0.1");
		s.on("error", () => {});
		s.write(`POST /mcp HTTP/1.1\r\n${close}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`);
		return s;
	});
	let closed = 0;
	for (const s of slow) s.on("close", () => closed++);
	const { final } = await run(client, "http", ["echo quick"]);
	assert.equal(final.commands[0].stdout, "quick\n");
	assert.equal(closed, 0); // they are let wait, all the time
	for (const s of slow) s.destroy();
});
