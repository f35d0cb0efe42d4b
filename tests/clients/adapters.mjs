// SPDX-License-Identifier: MIT
// Every client that people use, behind one face: list(), call(params, options),
// close(). What a client cannot do is said in `lacks`: that part of the story is
// skipped by name, with the reason.
import { spawn, execFile } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import * as v2 from "@modelcontextprotocol/client";

const here = path.dirname(fileURLToPath(import.meta.url));
export const bin = path.join(here, "node_modules/.bin");
const run = promisify(execFile);

function face(client, call) {
	return {
		name: client.getServerVersion?.()?.name,
		list: async () => (await client.listTools()).tools,
		call,
		close: () => client.close(),
	};
}

async function first(transport) {
	const client = new Client({ name: "story", version: "1" });
	await client.connect(transport);
	return face(client, (p, o) => client.callTool(p, undefined, o));
}

async function second(url, versionNegotiation) {
	const client = new v2.Client({ name: "story", version: "2" }, { versionNegotiation });
	await client.connect(new v2.StreamableHTTPClientTransport(new URL(url)));
	return face(client, (p, o) => client.callTool(p, o));
}

// Its locks and logins: of this suite alone.
const remoteDir = fs.mkdtempSync(path.join(os.tmpdir(), "mcp-remote-"));
process.on("exit", () => fs.rmSync(remoteDir, { recursive: true, force: true }));

function bridge(url, transport) {
	return first(new StdioClientTransport({
		command: process.execPath,
		args: [path.join(bin, "mcp-remote"), url, "--transport", transport],
		env: { ...process.env, MCP_REMOTE_CONFIG_DIR: path.join(remoteDir, transport) },
		stderr: "ignore",
	}));
}

// A program that is started for each call and prints the answer as JSON.
async function json(file, args, { signal } = {}) {
	const child = run(process.execPath, [path.join(bin, file), ...args], { timeout: 60000, maxBuffer: 1 << 26, signal });
	child.child.stdin.end();
	const { stdout } = await child.catch((e) => {
		if (e.stdout) return e; // a tool's own failure has its status
		throw e;
	});
	return JSON.parse(stdout.slice(stdout.indexOf("{")));
}

function inspector(url, ...mode) {
	const base = ["--cli", url, ...mode];
	return {
		list: async () => (await json("mcp-inspector", [...base, "--method", "tools/list"])).tools,
		call: (p, o) => json("mcp-inspector", [...base, "--method", "tools/call", "--tool-name", p.name,
			"--tool-args-json", JSON.stringify(p.arguments), "--format", "json"], o).then((r) => r.result ?? r),
		close() {},
	};
}

function mcporter(url) {
	return {
		list: async () => (await json("mcporter", ["list", url, "--allow-http", "--json"])).tools,
		call: (p) => json("mcporter", ["call", "--http-url", url, "--allow-http", "--name", "story", "--tool", p.name,
			"--args", JSON.stringify(p.arguments), "--output", "json"])
			// It prints the structured part alone.
			.then((r) => (r.content ? r : { structuredContent: r, content: [{ text: JSON.stringify(r) }] })),
		close() {},
	};
}

const oneShot = {
	meet: "a program for each call, which does not tell whom it met",
	progress: "prints the result alone",
};
const endsUnheard = { ...oneShot, cancel: "it sends no cancel when it is killed, and to leave is none before 2026-07-28" };
const bridged = {
	meet: "it tells its own name",
	restart: "it does not connect again; it is started anew",
};
const oneUrl = (mode) => (u) => inspector(u, ...mode);
export const clients = [
	{ name: "typescript-sdk 1, streamable http", connect: (u) => first(new StreamableHTTPClientTransport(new URL(u))) },
	{ name: "typescript-sdk 1, http+sse", connect: (u) => first(new SSEClientTransport(new URL(u))) },
	{ name: "typescript-sdk 2, legacy", connect: (u) => second(u, undefined) },
	{ name: "typescript-sdk 2, auto", connect: (u) => second(u, { mode: "auto" }) },
	{ name: "typescript-sdk 2, pinned to 2026-07-28", connect: (u) => second(u, { mode: { pin: "2026-07-28" } }) },
	{ name: "mcp-remote, http", connect: (u) => bridge(u, "http-only"), lacks: bridged },
	{ name: "mcp-remote, sse", connect: (u) => bridge(u, "sse-only"), lacks: bridged },
	{ name: "inspector, legacy", connect: oneUrl(["--transport", "http"]), lacks: endsUnheard },
	{ name: "inspector, auto", connect: oneUrl(["--transport", "http", "--protocol-era", "auto"]), lacks: oneShot },
	{ name: "inspector, modern", connect: oneUrl(["--transport", "http", "--protocol-era", "modern"]), lacks: oneShot },
	{ name: "inspector, sse", connect: oneUrl(["--transport", "sse"]), lacks: endsUnheard },
	{ name: "mcporter", connect: (u) => mcporter(u), lacks: endsUnheard },
];

// The story in another language: prints "ok STEP" lines, waits after "restart?".
export function python(venv, url, mode, db) {
	return spawn(path.join(venv, "bin/python3"), [path.join(here, "story.py"), url, mode, db], { stdio: ["pipe", "pipe", "inherit"] });
}
