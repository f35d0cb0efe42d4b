// SPDX-License-Identifier: MIT
// MCP as it is on the wire, for what no SDK shows: requests of both eras with their
// headers, and event streams frame by frame.
import assert from "node:assert/strict";

export const LEGACY = "2025-11-25";
export const MODERN = "2026-07-28";
export const P = "io.modelcontextprotocol/";
const json = { "content-type": "application/json", accept: "application/json, text/event-stream" };
let nextId = 1;

export function request(method, params, id = nextId++) {
	return { jsonrpc: "2.0", id, method, params };
}

export const meta = (capabilities = {}) => ({
	[`${P}protocolVersion`]: MODERN,
	[`${P}clientCapabilities`]: capabilities,
	[`${P}clientInfo`]: { name: "wire", version: "1" },
});

export const runOf = (identifier, shell, options = {}) => ({
	name: "run_sandbox",
	arguments: { identifier, commands: [{ shell }], options: { await_completion: true, await_timeout_ms: 60000, ...options } },
});

// Frames of an event stream: {id, event, data, retry}; ends with the stream.
export async function* frames(response) {
	let text = "";
	const decoder = new TextDecoder();
	for await (const piece of response.body) {
		text += decoder.decode(piece, { stream: true });
		for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
			const frame = {};
			for (const line of text.slice(0, end).split("\n")) {
				const m = /^(id|event|data|retry): ?(.*)$/.exec(line);
				if (m) frame[m[1]] = m[2];
			}
			if (Object.keys(frame).length) yield frame;
		}
	}
}

export async function all(response) {
	const list = [];
	for await (const f of frames(response)) list.push(f);
	return list;
}

// The messages of a stream, parsed, one after the other.
export async function* messages(response) {
	for await (const f of frames(response)) if (f.data) yield JSON.parse(f.data);
}

// An answer, whether it came as JSON or as a stream: its last message.
export async function answer(response) {
	if (!(response.headers.get("content-type") ?? "").startsWith("text/event-stream")) return response.json();
	return JSON.parse((await all(response)).filter((f) => f.data).at(-1).data);
}

export class Wire {
	constructor(server) {
		this.server = server;
	}

	post(body, headers = {}, { where = "/mcp", signal } = {}) {
		const text = typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
		return fetch(new URL(where, this.server.base), { method: "POST", headers: { ...json, ...headers }, body: text, signal });
	}

	// The headers of a new session.
	async session(version = LEGACY, capabilities = {}) {
		const r = await this.post(request("initialize", { protocolVersion: version, capabilities, clientInfo: { name: "wire", version: "1" } }));
		assert.equal(r.status, 200);
		assert.equal((await r.json()).result.protocolVersion, version);
		return { "mcp-session-id": r.headers.get("mcp-session-id"), "mcp-protocol-version": version };
	}

	// A request of that session, answered.
	async legacy(session, method, params = {}) {
		return answer(await this.post(request(method, params), session));
	}

	stream(session, { signal, lastEventId } = {}) {
		const headers = { ...session, accept: "text/event-stream" };
		if (lastEventId) headers["last-event-id"] = lastEventId;
		return this.server.get("/mcp", { headers, signal });
	}

	modern(method, params = {}, { capabilities, signal, headers = {}, _meta = {}, id } = {}) {
		const all = { "mcp-protocol-version": MODERN, "mcp-method": method, ...headers };
		const name = params.name ?? params.taskId ?? (method === "resources/read" ? params.uri : undefined);
		if (name !== undefined && !("mcp-name" in headers)) all["mcp-name"] = name;
		for (const key of Object.keys(all)) if (all[key] === null) delete all[key];
		return this.post(request(method, { ...params, _meta: { ...meta(capabilities), ..._meta } }, id), all, { signal });
	}

	async modernAnswer(method, params, options) {
		return answer(await this.modern(method, params, options));
	}
}
