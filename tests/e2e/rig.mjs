// SPDX-License-Identifier: MIT
// A whole product for one suite: the server with a data folder of its own, the real
// nginx in front, and the official SDK as the client. What it starts it stops, and
// stop() fails when anything of it is left on the machine.
import { spawn, spawnSync, execFileSync } from "node:child_process";
import dgram from "node:dgram";
import { once } from "node:events";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

export const repo = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const variant = process.env.V ?? "release";
export const binary = process.env.MCP_SANDBOXD ?? path.join(repo, "build", variant, "mcp-sandboxd");
// The sandboxes' root file system takes minutes: made once, shared by all suites.
// MCP_TEST_ENV: variables for every server, as JSON: the same suites on another backend.
const cache = process.env.MCP_TEST_CACHE ?? "/var/cache/mcp-sandboxd-test";

export function shareImages(dataDir) {
	fs.mkdirSync(path.join(cache, "images"), { recursive: true, mode: 0o755 });
	fs.mkdirSync(dataDir, { mode: 0o755 });
	fs.symlinkSync(path.join(cache, "images"), path.join(dataDir, "images"));
}

// Listens and closes again, or fails.
async function tryPort(port) {
	const s = net.createServer().listen(port, "127.0.0.1");
	await once(s, "listening");
	s.close();
	await once(s, "close");
}

// A port that stays this process's until something listens on it: below those that the
// kernel gives to connections, and with its number held on UDP, which is how the suites
// that run at the same time on this machine see that it is taken.
export async function freePort() {
	const [low] = fs.readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8").split("\t").map(Number);
	for (let tries = 0; tries < 1000; tries++) {
		const port = 10000 + Math.floor(Math.random() * (low - 10000));
		const held = dgram.createSocket("udp4");
		try {
			held.bind({ port, address: "127.0.0.1", exclusive: true });
			await once(held, "listening");
			await tryPort(port);
			held.unref();
			return port;
		} catch {
			held.close();
		}
	}
	throw new Error("there is no free port");
}

// Asks until ask() gives something; for states that nothing announces. ms: on a machine
// that has time; a busy one gets a minute for whatever.
export async function until(what, ms, ask) {
	const end = Date.now() + Math.max(ms, 60000);
	let last;
	while (Date.now() < end) {
		try {
			const got = await ask();
			if (got) return got;
		} catch (error) {
			last = error;
		}
		await new Promise((r) => setTimeout(r, 20));
	}
	throw new Error(`${what}: not within ${ms} ms${last ? ` (${last.message})` : ""}`);
}

// What must not be there after a stop: mounts, processes, cgroups, sockets.
export function traces(words, instance, runDir = `/run/mcp-sandboxd/${instance}`) {
	const has = (text) => words.some((w) => w && text.includes(w));
	const left = fs
		.readFileSync("/proc/self/mountinfo", "utf8")
		.replaceAll("\\040", " ")
		.split("\n")
		.filter(has)
		.map((l) => `mount ${l}`);
	for (const pid of fs.readdirSync("/proc").filter((n) => /^\d+$/.test(n))) {
		try {
			const line = fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
			const cgroup = fs.readFileSync(`/proc/${pid}/cgroup`, "utf8");
			if (!line) continue; // ended, its parent has not looked yet
			if (has(line) || cgroup.includes(instance)) left.push(`process ${pid} ${line}`);
		} catch {
			// ended while we looked
		}
	}
	// It fails when a group goes while it looks; another run's does.
	const cgroups = spawnSync("find", ["/sys/fs/cgroup", "-type", "d", "-name", `*${instance}*`]).stdout;
	left.push(...String(cgroups).split("\n").filter(Boolean).map((l) => `cgroup ${l}`));
	if (fs.existsSync(runDir)) left.push(`folder ${runDir}`);
	return left;
}

// What look() still finds after a while: a process that was killed may need a moment for
// its end where others want the processor too.
export async function remains(look) {
	let left = [];
	await until("nothing to be left", 20000, () => (left = look()).length === 0).catch(() => {});
	return left;
}

// "event:", "id:" and "data:" of one SSE answer, as objects; ends with the stream.
export async function* sse(response) {
	const decoder = new TextDecoder();
	let text = "";
	for await (const chunk of response.body) {
		text += decoder.decode(chunk, { stream: true });
		for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
			const event = { data: "" };
			for (const line of text.slice(0, end).split("\n")) {
				const m = /^(event|id|data): ?(.*)$/.exec(line);
				if (m) event[m[1]] = m[2];
			}
			if (event.event) yield { id: Number(event.id), event: event.event, data: JSON.parse(event.data) };
		}
	}
}

// False: it has ended meanwhile.
export function tryKill(pid, signal) {
	try {
		return process.kill(pid, signal);
	} catch (error) {
		if (error.code !== "ESRCH") throw error;
		return false;
	}
}

export class Server {
	static async start(env = {}, { ready = true, where = process.env.MCP_TEST_DIR ?? os.tmpdir() } = {}) {
		const s = new Server();
		s.dir = fs.mkdtempSync(path.join(where, "mcp e2e "));
		fs.chmodSync(s.dir, 0o755);
		s.dataDir = path.join(s.dir, "data");
		s.port = await freePort();
		s.base = `http://127.0.0.1:${s.port}`;
		s.url = `${s.base}/mcp`;
		s.env = {
			PATH: process.env.PATH,
			HOME: "/root",
			DATA_DIR: s.dataDir,
			PORT: String(s.port),
			...JSON.parse(process.env.MCP_TEST_ENV ?? "{}"),
			...env,
		};
		shareImages(s.dataDir);
		s.log = path.join(s.dir, "server.log");
		try {
			await s.startServer();
			await s.startNginx();
			if (ready) await s.waitReady();
		} catch (error) {
			console.error(fs.readFileSync(s.log, "utf8"));
			await s.stop({ check: false });
			throw error;
		}
		return s;
	}

	spawn(file, args) {
		const out = fs.openSync(this.log, "a");
		const child = spawn(file, args, {
			cwd: this.dir,
			env: this.env,
			stdio: ["ignore", out, out],
			detached: true,
		});
		fs.closeSync(out);
		child.ended = once(child, "exit");
		return child;
	}

	async startServer() {
		this.logStart = fs.existsSync(this.log) ? fs.statSync(this.log).size : 0;
		this.master = this.spawn(binary, ["serve"]);
		await until("the server's socket", 30000, () => {
			if (this.master.exitCode !== null) throw new Error("the server ended");
			this.instance = fs.readFileSync(path.join(this.dataDir, "instance"), "utf8").trim();
			this.runDir = this.env.RUN_DIR ?? `/run/mcp-sandboxd/${this.instance}`;
			const owner = fs.readFileSync(path.join(this.dataDir, "lock"), "utf8").trim();
			return owner === String(this.master.pid) && fs.existsSync(path.join(this.runDir, "fcgi.sock"));
		});
	}

	async startNginx() {
		const out = fs.openSync(this.log, "a");
		execFileSync(path.join(repo, "scripts/render-nginx"), ["--env-file", "/dev/null", this.dataDir], {
			env: { ...this.env, MCP_SANDBOXD: binary },
			stdio: ["ignore", "ignore", out],
		});
		fs.closeSync(out);
		this.nginx = this.spawn("nginx", ["-e", "stderr", "-c", path.join(this.dataDir, "nginx/nginx.conf")]);
	}

	// Minutes when the image has to be made first.
	async waitReady() {
		await until("readyz", 15 * 60000, async () => {
			if (this.master.exitCode !== null) throw new Error("the server ended");
			if (fs.readFileSync(this.log, "utf8").slice(this.logStart).includes("keeps dying")) return "a role keeps dying";
			const r = await fetch(`${this.base}/readyz`);
			const text = await r.text();
			if (r.status !== 200) throw new Error(text);
			return "ready";
		}).then((state) => {
			if (state !== "ready") throw new Error(state);
		});
	}

	// {master, runner, edges: []} as pids.
	pids() {
		const m = this.master.pid;
		const found = { master: m, runner: 0, edges: [] };
		for (const pid of fs.readFileSync(`/proc/${m}/task/${m}/children`, "utf8").trim().split(" ")) {
			let argv;
			try {
				argv = fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
			} catch {
				continue; // ended meanwhile
			}
			if (argv[1] !== "role") continue;
			if (argv[2] === "runner") found.runner = Number(pid);
			else found.edges.push(Number(pid));
		}
		return found;
	}

	kill(role, signal = "SIGKILL") {
		const p = this.pids();
		// 0: not there just now; kill(0) would be our own process group.
		const pids = [p[role === "edge" ? "edges" : role]].flat().filter(Boolean);
		return pids.filter((pid) => tryKill(pid, signal)).length;
	}

	async connect(name = "e2e") {
		const client = new Client({ name, version: "1" });
		await client.connect(new StreamableHTTPClientTransport(new URL(this.url)));
		return client;
	}

	get(where, init) {
		return fetch(new URL(where, this.base), init);
	}

	async run_status(id) {
		const r = await this.get(`/mcp/runs/${id}`);
		if (r.status !== 200) throw new Error(`GET run: ${r.status} ${await r.text()}`);
		return r.json();
	}

	async events(id, { after, lastEventId, signal } = {}) {
		const query = after === undefined ? "" : `&after=${after}`;
		const headers = { accept: "text/event-stream" };
		if (lastEventId !== undefined) headers["last-event-id"] = String(lastEventId);
		const r = await this.get(`/mcp/events?run_id=${id}${query}`, { headers, signal });
		if (r.status !== 200) throw new Error(`events: ${r.status} ${await r.text()}`);
		return sse(r);
	}

	ended(id, ms = 180000) {
		return until(`end of ${id}`, ms, async () => {
			const run = await this.run_status(id);
			return ["completed", "failed", "canceled"].includes(run.state) && run;
		});
	}

	async stopServer(signal = "SIGTERM") {
		if (this.master?.exitCode === null && this.master.signalCode === null) this.master.kill(signal);
		await this.master?.ended;
	}

	async restart(signal = "SIGTERM") {
		await this.stopServer(signal);
		await this.startServer();
		await this.waitReady();
	}

	async stop({ check = true } = {}) {
		if (this.nginx?.exitCode === null) this.nginx.kill("SIGTERM");
		await this.nginx?.ended;
		await this.stopServer();
		const left = check ? await remains(() => traces([this.dir, this.instance], this.instance, this.runDir)) : [];
		if (process.env.MCP_TEST_KEEP) console.error(`kept: ${this.dir}`);
		else fs.rmSync(this.dir, { recursive: true, force: true });
		if (left.length) throw new Error(`left behind:\n${left.join("\n")}`);
	}
}

// Calls run_sandbox; gives the structured result of a run, or throws the words of a
// refusal. Who awaits the end gets it, also where that takes longer than one answer may.
export async function run(client, identifier, commands, options = {}) {
	const r = await client.callTool({
		name: "run_sandbox",
		arguments: {
			identifier,
			commands: commands.map((c) => (typeof c === "string" ? { shell: c } : c)),
			options: { await_completion: true, await_timeout_ms: 120000, ...options },
		},
	}, undefined, { timeout: 180000 });
	// A run that failed is an error to the model, and still a run.
	const told = r.structuredContent;
	if (!told?.run_id) throw new Error(r.content.map((c) => c.text).join("\n"));
	while ((options.await_completion ?? true) && told.final === null) {
		const more = await client.callTool({ name: "get_run", arguments: { run_id: told.run_id, wait_ms: 20000 } });
		told.final = more.structuredContent.final;
	}
	return told;
}
