// SPDX-License-Identifier: MIT
// The server as a container image: built, run with an engine's socket and beside an
// engine in a container, spoken to over HTTP and on standard input and output.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";
import readline from "node:readline";
import { after, before, test } from "node:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { repo, run, until } from "./rig.mjs";
import { base, buildImages, dind, dockerEnv, image } from "./server-image.mjs";
import { Engine, ask, checkLeft } from "./with-docker.mjs";

const volume = "mcp-test-image";
const socketMount = () => `${engine.socket}:/var/run/docker.sock`;
let engine, env, url;

// This machine's root may lack capabilities, and the runtime refuses to start what asks
// for all of them: here it asks for all that there are.
class Privileged extends Engine {
	firewall = true; // which keeps networks apart

	command() {
		this.more = ["--add-runtime", `there-are=${path.join(repo, "tests/e2e/runc-all-there-are")}`, "--default-runtime", "there-are"];
		return super.command();
	}
}

const docker = (...args) => String(execFileSync("docker", args, { env, stdio: ["ignore", "pipe", "pipe"] })).trim();
const log = (name) => String(execFileSync("sh", ["-c", 'docker logs "$0" 2>&1', name], { env }));
const inspect = (name) => JSON.parse(docker("inspect", name))[0];
const use = (e) => {
	engine = e;
	env = dockerEnv(e);
};

before(async () => {
	await buildImages();
	use(await Privileged.start());
	url = `http://127.0.0.1:${await engine.port(8080)}`;
});
after(async () => {
	try {
		await ask(engine.socket, "DELETE", `/volumes/${volume}?force=1`);
		await checkLeft(engine);
	} finally {
		await engine.stop();
	}
});

async function connect(transport) {
	const client = new Client({ name: "image", version: "1" });
	await client.connect(transport ?? new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
	return client;
}
const one = async (c, identifier, shell) => (await run(c, identifier, [shell])).final.commands[0].stdout;
const state = (name) => inspect(name).State;
const pidIn = (name, words) => docker("top", name, "-o", "pid,args").split("\n").find((l) => l.includes(words)).trim().split(" ")[0];
const healthy = (name, ms = 60000) => until(`${name} to be healthy`, ms, () => {
	const { Running, Health } = state(name);
	if (!Running) throw new Error(log(name));
	return Health.Status === "healthy";
});

// As in the compose file: nothing but what the first process needs.
const tight = ["--read-only", "--tmpfs=/run", "--tmpfs=/tmp", "--security-opt=no-new-privileges", "--cap-drop=ALL",
	...["CHOWN", "DAC_OVERRIDE", "SETGID", "SETUID"].map((c) => `--cap-add=${c}`)];
const settings = ["-v", `${volume}:/var/lib/mcp-sandboxd`, "-e", `SANDBOX_IMAGE=${base}`, "-e", "SANDBOX_NETWORK_MODE=none"];
const start = (name, ...more) => docker("run", "-d", "--name", name, "--health-interval=1s", ...settings, ...more, image);
const stdio = (...more) => ["run", "--rm", "-i", ...settings, "-v", socketMount(), ...more, image, "stdio"];

// Modern requests need no handshake: lines in, by id the results that came out.
async function lines(args, ...messages) {
	const child = spawn("docker", args, { env, stdio: ["pipe", "pipe", "inherit"] });
	const seen = [];
	readline.createInterface({ input: child.stdout }).on("line", (l) => seen.push(JSON.parse(l)));
	const _meta = { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": { name: "image", version: "1" }, "io.modelcontextprotocol/clientCapabilities": {} };
	child.stdin.end(messages.map((m) => JSON.stringify({ jsonrpc: "2.0", ...m, params: { ...m.params, _meta } }) + "\n").join(""));
	assert.equal((await once(child, "close"))[0], 0);
	return Object.fromEntries(seen.map((l) => [l.id, l.result]));
}
const say = (id, shell) => ({ id, method: "tools/call", params: { name: "run_sandbox", arguments: { identifier: "talk", commands: [{ shell }], options: { await_completion: true } } } });

test("the image has the programs and neither compiler nor sources", () => {
	const { Config } = inspect(image);
	assert.deepEqual(Object.keys(Config.Volumes), ["/var/lib/mcp-sandboxd"]);
	assert.deepEqual(Object.keys(Config.ExposedPorts), ["8080/tcp"]);
	assert.match(docker("run", "--rm", image, "version"), /^mcp-sandboxd \d/);
	assert.equal(docker("run", "--rm", "--entrypoint", "sh", image, "-c", "command -v gcc; ls -d /src /tmp/* 2>/dev/null; true"), "");
});

test("with the engine's socket it becomes healthy, as another user than root", async () => {
	start("served", ...tight, "-p", "127.0.0.1:8080:8080", "-v", socketMount());
	await healthy("served");
	const users = docker("top", "served", "-o", "user,pid,args").split("\n").slice(1);
	assert.ok(users.some((l) => l.includes("nginx: worker")) && users.some((l) => l.includes("role runner")), users.join("\n"));
	assert.deepEqual(users.filter((l) => !l.startsWith("10001 ")), []);
});

test("the story works through the published port, the sandbox is a container beside it", async () => {
	const c = await connect();
	const r = await run(c, "told", ["echo kept >/workspace/note; head -c 3000000 /dev/zero >/artifacts/big; id -u"]);
	assert.equal(r.final.commands[0].stdout, "1000\n");
	const got = await fetch(`${url}/artifacts/told/latest/big`, { headers: { range: "bytes=0-9" } });
	assert.equal(got.status, 206);
	assert.equal((await got.arrayBuffer()).byteLength, 10);
	assert.equal(state(r.sandbox_name).Running, true);
	await c.close();
});

test("a second container of the volume speaks on standard input and output with the same server", async () => {
	const by = await lines(stdio(), say(1, "echo beside"), { id: 2, method: "tools/call", params: { name: "list_sandboxes", arguments: {} } });
	assert.equal(by[1].structuredContent.final.commands[0].stdout, "beside\n");
	assert.ok(by[2].structuredContent.sandboxes.some((s) => s.identifier === "told"));
	assert.equal(state("served").Running, true);
	assert.match(docker("exec", "served", "mcp-sandboxd", "status"), /told/);
});

test("TERM stops it in seconds, its runs are told why", async () => {
	const c = await connect();
	const running = run(c, "told", ["echo begun; sleep 100"]);
	await until("the command", 20000, async () => docker("exec", "served", "mcp-sandboxd", "status").includes("running"));
	docker("stop", "-t", "60", "served"); // then it would be killed, and say so
	assert.equal((await running).final.state, "canceled");
	assert.equal(state("served").ExitCode, 0);
	assert.deepEqual(docker("ps", "-q"), "");
	await c.close().catch(() => {});
});

test("another container of the volume has the sandboxes and the artifacts", async () => {
	docker("rm", "served");
	start("served", ...tight, "-p", "127.0.0.1:8080:8080", "-v", socketMount());
	await healthy("served");
	const c = await connect();
	assert.equal(await one(c, "told", "cat /workspace/note"), "kept\n");
	assert.equal((await fetch(`${url}/artifacts/told/latest/big`, { method: "HEAD" })).headers.get("content-length"), "3000000");
	for (const identifier of ["told", "talk"]) await c.callTool({ name: "delete_sandbox", arguments: { identifier } });
	await c.close();
});

test("when nginx or the server ends, the container ends and says which", async () => {
	for (const [process, words] of [["nginx: master", /nginx ended/], ["mcp-sandboxd serve", /the server ended/]]) {
		execFileSync("kill", ["-KILL", pidIn("served", process)]);
		await until("the container to end", 15000, () => !state("served").Running);
		assert.equal(state("served").ExitCode, 1);
		assert.match(log("served"), words);
		docker("start", "served");
		await until("the server", 15000, async () => (await fetch(`${url}/healthz`)).ok);
	}
	docker("rm", "-f", "served");
});

test("docker run -i is a client's stdio server, in both eras, and leaves nothing running", async () => {
	const c = await connect(new StdioClientTransport({ command: "docker", args: stdio(), env, stderr: "ignore" }));
	assert.equal(c.getServerVersion().name, "mcp-sandboxd");
	assert.equal(await one(c, "talk", "echo legacy | tee /workspace/note"), "legacy\n");
	await c.close();
	await until("the containers to end", 15000, () => docker("ps", "-q") === "");
	const by = await lines(stdio(), { id: 1, method: "server/discover", params: {} }, say(2, "cat /workspace/note"));
	assert.ok(by[1].supportedVersions.includes("2026-07-28"));
	assert.equal(by[2].structuredContent.final.commands[0].stdout, "legacy\n");
	await until("the containers to end", 15000, () => docker("ps", "-q") === "");
});

test("a client on stdio whose server is killed is told at once, and the next goes on", async () => {
	const said = [];
	const transport = new StdioClientTransport({ command: "docker", args: stdio("--name", "dying"), env, stderr: "pipe" });
	transport.stderr.on("data", (d) => said.push(String(d)));
	const c = await connect(transport);
	const running = run(c, "talk", ["echo begun; until [ -e go ]; do sleep 0.05; done; rm go; echo ended"]).then(() => "", (e) => e.message);
	await until("the command", 20000, () => docker("exec", "dying", "mcp-sandboxd", "status").includes("running"));
	execFileSync("kill", ["-KILL", pidIn("dying", "mcp-sandboxd serve")]);
	assert.match(await running, /closed/);
	assert.match(said.join(""), /the server ended/);
	await until("the container to end", 15000, () => docker("ps", "-aq", "--filter", "name=dying") === "");
	const next = await connect(new StdioClientTransport({ command: "docker", args: stdio(), env, stderr: "ignore" }));
	assert.equal(await one(next, "talk", "touch go; until [ ! -e go ]; do sleep 0.05; done"), "");
	await next.close();
	await until("the containers to end", 15000, () => docker("ps", "-q") === "");
});

const owners = (name) => docker("top", name, "-o", "user,pid,args").split("\n").filter((l) => /role |nginx: worker/.test(l)).map((l) => l.split(" ")[0]);

test("a volume that root's server had becomes the user's, with the sandboxes in it", async () => {
	fs.chmodSync(engine.socket, 0o600); // its group may not
	start("served", "-p", "127.0.0.1:8080:8080", "-v", socketMount());
	await healthy("served");
	assert.match(log("served"), /the server stays root/);
	assert.ok(owners("served").includes("root"));
	const c = await connect();
	await run(c, "old", ["echo kept >/workspace/note; echo a >/artifacts/a"]);
	await c.close();
	docker("stop", "served");
	docker("rm", "served");
	fs.chmodSync(engine.socket, 0o660);
	start("served", ...tight, "-p", "127.0.0.1:8080:8080", "-v", socketMount());
	await healthy("served");
	assert.deepEqual(owners("served").filter((u) => u !== "10001"), []);
	assert.equal(docker("exec", "served", "find", "/var/lib/mcp-sandboxd", "!", "-user", "10001"), "");
	const again = await connect();
	assert.equal(await one(again, "old", "cat /workspace/note; echo b >/artifacts/b"), "kept\n");
	assert.equal(await (await fetch(`${url}/artifacts/old/latest/b`)).text(), "b\n");
	await again.callTool({ name: "delete_sandbox", arguments: { identifier: "old" } });
	await again.close();
	docker("rm", "-f", "served");
});

test("for a cluster it starts without an engine, and says what it misses", async () => {
	start("served", "-p", "127.0.0.1:8080:8080", "-e", "SANDBOX_BACKEND=kubernetes");
	const words = await until("the reason", 30000, async () => {
		const text = await (await fetch(`${url}/readyz`)).text();
		return /KUBECONFIG|cluster/.test(text) && text;
	});
	assert.match(words, /KUBECONFIG/);
	assert.equal((await fetch(`${url}/healthz`)).status, 200);
	assert.deepEqual([...new Set(owners("served"))], ["root", "10001", "www-data"]);
	docker("rm", "-f", "served");
});

const composed = { IMAGE: image, SANDBOX_NETWORK_MODE: "none", DIND_IMAGE: dind };
const compose = (file, ...args) => String(execFileSync("docker-compose", ["-p", "mcp-test", "-f", path.join(repo, "deploy/docker", file), ...args], {
	env: { ...env, ...composed, SANDBOX_IMAGE: file.includes("dind") ? "mcp-inner:1" : base, DOCKER_SOCKET: engine.socket }, stdio: ["ignore", "pipe", "pipe"],
}));
const without = !execFileSync("sh", ["-c", "command -v docker-compose || true"]).length && "docker-compose is not installed";

test("the compose file for a socket brings up the same", { skip: without }, async () => {
	compose("compose.socket.yaml", "up", "-d", "--no-build");
	try {
		const name = docker("ps", "--format", "{{.Names}}");
		await healthy(name);
		const c = await connect();
		assert.equal(await one(c, "composed", "echo up"), "up\n");
		await c.close();
	} finally {
		compose("compose.socket.yaml", "down", "-v");
	}
});

// The engine in a container whose socket is in that volume.
async function innerEngine(volume) {
	const socket = await until("the inner engine", 60000, async () => {
		const at = path.join(inspect(volume).Mountpoint, "docker.sock");
		return (await ask(at, "GET", "/_ping")).status === 200 && at;
	});
	const inner = Object.create(engine, { socket: { value: socket } });
	await inner.tiny("mcp-inner");
	return inner;
}

// An engine's host is what its sandboxes reach; anyone who reaches the server may use it.
function notFromInside(engineName, serverName) {
	const [{ IPAddress }] = Object.values(inspect(serverName).NetworkSettings.Networks);
	const reached = `(exec 3<>/dev/tcp/${IPAddress}/8080) 2>/dev/null && echo reached`;
	assert.match(String(execFileSync(...engine.within("bash", "-c", reached))), /reached/);
	assert.equal(docker("exec", engineName, "bash", "-c", `timeout 3 bash -c '${reached}'; true`), "");
}

async function insideTold(inner) {
	const c = await connect();
	const r = await run(c, "inner", ["echo from inside; echo kept >/artifacts/a"]);
	assert.equal(r.final.commands[0].stdout, "from inside\n");
	assert.equal(await (await fetch(`${url}/artifacts/inner/latest/a`)).text(), "kept\n");
	assert.equal((await ask(inner.socket, "GET", `/containers/${r.sandbox_name}/json`)).status, 200);
	assert.equal((await ask(engine.socket, "GET", `/containers/${r.sandbox_name}/json`)).status, 404);
	await c.close();
}

test("the compose file beside an engine in a container has the sandboxes in that one", { skip: without }, async () => {
	try {
		compose("compose.dind.yaml", "up", "-d", "engine");
		const inner = await innerEngine("mcp-test_socket");
		compose("compose.dind.yaml", "up", "-d", "--no-build");
		const [server, outer] = [image, dind].map((i) => docker("ps", "--format", "{{.Names}}", "--filter", `ancestor=${i}`));
		await healthy(server);
		await insideTold(inner);
		notFromInside(outer, server);
		compose("compose.dind.yaml", "restart", "-t", "60");
		await until("readyz", 60000, async () => (await fetch(`${url}/readyz`)).ok);
		await insideTold(inner);
	} catch (error) {
		error.message += compose("compose.dind.yaml", "logs", "--tail=20");
		throw error;
	} finally {
		compose("compose.dind.yaml", "down", "-v");
	}
	assert.equal(docker("ps", "-aq", "--filter", "label=com.docker.compose.project=mcp-test"), "");
});

test("make docker-run is the same in the foreground, until it is interrupted", async () => {
	const name = "mcp-test-dind";
	// As the second time: the engine's volume is kept, with the sandboxes' image in it.
	docker("run", "-d", "--privileged", "--name", "first", "-v", `${name}-engine:/var/lib/docker`, "-v", `${name}-socket:/run/docker`, dind, "dockerd", "--host=unix:///run/docker/docker.sock");
	await innerEngine(`${name}-socket`);
	docker("stop", "first");
	docker("rm", "first");
	const child = spawn("make", ["-s", "-C", repo, "docker-run", `IMAGE=${image}`, `BASE=${base}`, "DOCKER_FLAGS=--network=host"], {
		env: { ...env, ...composed, SANDBOX_IMAGE: "mcp-inner:1", NAME: name, PORT: "8080", LISTEN_ADDRESS: "127.0.0.1" }, stdio: ["ignore", "pipe", "pipe"], detached: true,
	});
	let words = "";
	for (const s of [child.stdout, child.stderr]) s.on("data", (d) => (words += d));
	const ended = once(child, "exit");
	try {
		await until("the engine's container", 600000, () => {
			if (child.exitCode !== null) throw new Error(words);
			return inspect(`${name}-engine`).State.Running;
		});
		const inner = { socket: path.join(inspect(`${name}-socket`).Mountpoint, "docker.sock") };
		await until("readyz", 60000, async () => (await fetch(`${url}/readyz`)).ok);
		await insideTold(inner);
		notFromInside(`${name}-engine`, name);
	} catch (error) {
		error.message += `\n${words}`;
		throw error;
	} finally {
		process.kill(-child.pid, "SIGINT"); // Ctrl-C
		await ended;
	}
	assert.equal(docker("ps", "-aq", "--filter", `name=${name}`), "");
	docker("volume", "rm", name, `${name}-engine`);
});
