// SPDX-License-Identifier: MIT
// The story by the Python SDKs. Where they are installed says scripts/run-clients;
// what is not there is skipped by name.
import assert from "node:assert/strict";
import fs from "node:fs";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { Server } from "../e2e/rig.mjs";
import { python } from "./adapters.mjs";

const steps = ["list", "run", "artifact", "handle", "progress", "cancel", "refusal", "restart", "delete", "close"];
const modes = [
	["1", "v1-http"],
	["1", "v1-sse"],
	["2", "v2-default"],
	["2", "v2-legacy"],
	["2", "v2-2026-07-28"],
];
let server;

before(async () => {
	server = await Server.start({ AWAIT_ANSWER_MAX_MS: "3000", EDGE_PROCESSES: "3" });
});
after(() => server?.stop());

for (const [major, mode] of modes) {
	const venv = process.env[`MCP_TEST_PYTHON_${major}`] ?? "";
	const skip = !fs.existsSync(`${venv}/bin/python3`) && `the Python SDK ${major}.x is not installed`;
	test(`python-sdk ${major}, ${mode}`, { skip, timeout: 900000 }, async () => {
		const child = python(venv, server.url, mode, `${server.dataDir}/db/mcp-sandboxd.sqlite`);
		const done = [];
		for await (const line of createInterface(child.stdout)) {
			if (line.startsWith("ok ")) done.push(line.slice(3));
			if (line !== "restart?") continue;
			await server.restart();
			child.stdin.write("\n");
		}
		assert.deepEqual(done, steps);
	});
}
