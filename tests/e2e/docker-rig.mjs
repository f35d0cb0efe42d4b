// SPDX-License-Identifier: MIT
// What the suites of the docker backend share: an engine of their own, a server on it,
// and the engine's API beside it.
import assert from "node:assert/strict";
import fs from "node:fs";
import { after, before } from "node:test";
import { Server, run, until } from "./rig.mjs";
import { Engine, ask, checkLeft } from "./with-docker.mjs";

export let engine, server, client;

// more: arguments of the engine; then: what is to be done with it at the start.
export function useEngine({ more, then } = {}) {
	before(async () => {
		engine = await Engine.start(more);
		await engine.import();
		await then?.();
		server = await Server.start(engine.env);
		client = await server.connect();
	});
	after(async () => {
		await client?.close();
		await server?.stop();
		try {
			await checkLeft(engine);
		} finally {
			await engine?.stop();
		}
	});
}

export const api = async (method, where, body) => {
	const r = await ask(engine.socket, method, where, body);
	assert.ok(r.status < 400, `${method} ${where}: ${r.status} ${r.text}`);
	return r.text ? JSON.parse(r.text) : null;
};
export const inspect = (name) => api("GET", `/containers/${name}/json`);
export const list = async (instance) =>
	(await api("GET", "/containers/json?all=1")).filter((c) => c.Labels["mcp.instance"] === (instance ?? server.instance));
export const one = async (id, shell, options) => (await run(client, id, [{ shell, allow_failure: true }], options)).final.commands[0];
export const log = (s = server) => fs.readFileSync(s.log, "utf8");

export async function background(id, shell) {
	const r = await run(client, id, [shell], { await_completion: false });
	await until("start", 20000, async () => (await server.run_status(r.run_id)).commands[0].stdout_bytes > 0);
	return r.run_id;
}

// A server of its own for one test: work(server, client); its sandboxes are removed.
export async function withServer(env, work) {
	const s = await Server.start({ ...engine.env, ...env });
	try {
		const c = await s.connect();
		await work(s, c);
		const { structuredContent } = await c.callTool({ name: "list_sandboxes", arguments: {} });
		for (const { identifier } of structuredContent.sandboxes) await c.callTool({ name: "delete_sandbox", arguments: { identifier } });
		await c.close();
	} finally {
		await s.stop();
	}
}

// A server that cannot work with that environment says why: the words of readyz.
export async function refusal(env, words, ms = 15000) {
	const s = await Server.start({ ...engine.env, ...env }, { ready: false });
	try {
		return await until(`readyz to say ${words}`, ms, async () => {
			const text = await (await fetch(`${s.base}/readyz`)).text();
			if (!words.test(text)) throw new Error(text);
			return text;
		});
	} finally {
		await s.stop();
	}
}
