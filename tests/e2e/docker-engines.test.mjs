// SPDX-License-Identifier: MIT
// The ways to an engine, and what is said when there is none.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { api, background, client, engine, log, refusal, server, useEngine, withServer } from "./docker-rig.mjs";
import { repo, run, until } from "./rig.mjs";
import { Engine, Podman, RootlessDocker, RootlessPodman, ask } from "./with-docker.mjs";

// Two CAs, each with a certificate for an engine, one that has expired and one for a
// client, as Docker's documentation makes them.
const top = fs.mkdtempSync(path.join(os.tmpdir(), "mcp certs "));
const certs = (name, file = "") => path.join(top, name, file);
const pem = (name, file) => fs.readFileSync(certs(name, file));
for (const name of ["right", "wrong"]) {
	fs.mkdirSync(certs(name));
	const ssl = (...args) => execFileSync("openssl", args, { cwd: certs(name), stdio: ["ignore", "ignore", "ignore"] });
	ssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", `/CN=ca-${name}`, "-keyout", "ca-key.pem", "-out", "ca.pem");
	for (const [who, cert, key, days, extension] of [
		["engine", "engine-cert.pem", "engine-key.pem", "2", "subjectAltName=IP:127.0.0.1"],
		["engine", "old-cert.pem", "old-key.pem", "-1", "subjectAltName=IP:127.0.0.1"],
		["elsewhere", "far-cert.pem", "far-key.pem", "2", "subjectAltName=DNS:elsewhere"],
		["client", "cert.pem", "key.pem", "2", "extendedKeyUsage=clientAuth"],
	]) {
		fs.writeFileSync(certs(name, "ext"), extension);
		ssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", `/CN=${who}`, "-keyout", key, "-out", "csr");
		ssl("x509", "-req", "-in", "csr", "-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAcreateserial", "-days", days, "-extfile", "ext", "-out", cert);
	}
}
fs.mkdirSync(certs("no client"));
fs.copyFileSync(certs("right", "ca.pem"), certs("no client", "ca.pem"));
fs.mkdirSync(certs("foreign client"));
fs.copyFileSync(certs("right", "ca.pem"), certs("foreign client", "ca.pem"));
for (const file of ["cert.pem", "key.pem"]) fs.copyFileSync(certs("wrong", file), certs("foreign client", file));
after(() => fs.rmSync(top, { recursive: true }));

useEngine({ more: ["-H", "tcp://127.0.0.1:2375", "-H", "tcp://127.0.0.1:2376", "--tlsverify", "--tlscacert", certs("right", "ca.pem"),
	"--tlscert", certs("right", "engine-cert.pem"), "--tlskey", certs("right", "engine-key.pem")] });
const tcp = async (n) => `tcp://127.0.0.1:${await engine.port(n)}`;

test("a socket that is missing, or no engine, is named with what to do", async () => {
	await refusal({ DOCKER_HOST: "unix:///run/mcp-test-nothing.sock" }, /there is no socket .*DOCKER_HOST/);
	await refusal({ DOCKER_HOST: `tcp://127.0.0.1:${server.port}` }, /no Docker-compatible engine/);
});

async function megabytesBothWays(c) {
	const script = `${": filler\n".repeat(200000)}head -c 3000000 /dev/zero | tr '\\0' y; echo end >&2`;
	const { final } = await run(c, "far", [script, "echo after"]);
	assert.equal(final.commands[0].stdout_bytes, 3000000);
	assert.equal(final.commands[0].stderr, "end\n");
	assert.equal(final.commands[1].stdout, "after\n");
}

// Its agent is missed after AGENTCONN_SILENCE_MS; meanwhile the other tests run.
let held;
test("a container is paused under a running command", async () => {
	const { sandbox_name } = await run(client, "held", ["true"]);
	held = await background("held", "echo on; sleep 1; echo off");
	await api("POST", `/containers/${sandbox_name}/pause`);
});

test("an engine behind a socket of this machine carries megabytes both ways", async () => {
	await megabytesBothWays(client);
});

test("an engine on a TCP port works, megabytes go both ways", async () => {
	await withServer({ DOCKER_HOST: `tcp://127.0.0.1:${await engine.carry()}` }, async (s, c) => {
		await megabytesBothWays(c);
		const made = await run(c, "far", ["head -c 20000000 /dev/urandom >/artifacts/big; sha256sum </artifacts/big"]);
		const r = await s.get(`/artifacts/far/${made.run_id}/big`);
		const argv = ["python3", "-c", "x = bytearray(4 << 30); print(len(x))"];
		const full = await run(c, "far", [{ argv, allow_failure: true }, { shell: "exit 3", allow_failure: true }]);
		assert.deepEqual(full.final.commands.map((o) => o.oom), [true, false]); // by the agent's own look
		assert.equal(`${createHash("sha256").update(Buffer.from(await r.arrayBuffer())).digest("hex")}  -\n`, made.final.commands[0].stdout);
	});
});

test("one relay serves a sandbox, however often it was reconnected", async () => {
	await withServer({ DOCKER_HOST: `tcp://127.0.0.1:${await engine.carry()}` }, async (s, c) => {
		const shell = async (text) => (await run(c, "relay", [text], { as_user: "root" })).final.commands[0].stdout;
		for (let i = 0; i < 4; i++) {
			assert.equal(await shell("echo on"), "on\n");
			s.kill("runner");
		}
		const relays = "grep -l '[c]onnect' /proc/[0-9]*/cmdline 2>/dev/null | wc -l";
		await until("old relays to end", 5000, async () => (await shell(relays)) === "1\n");
	});
});

test("an engine behind TLS works with the right certificates", async () => {
	const env = { DOCKER_HOST: await tcp(2376), DOCKER_TLS_VERIFY: "1", DOCKER_CERT_PATH: certs("right") };
	await withServer(env, async (s, c) => megabytesBothWays(c));
	// As Docker's own client: with certificates and without verifying.
	await withServer({ ...env, DOCKER_TLS_VERIFY: "", DOCKER_CERT_PATH: certs("right") }, async (s, c) => {
		assert.equal((await run(c, "far", ["echo on"])).final.commands[0].stdout, "on\n");
	});
});

test("what is wrong with certificates is said with what to do", async () => {
	const host = await tcp(2376);
	const env = (name, DOCKER_HOST = host) => ({ DOCKER_HOST, DOCKER_TLS_VERIFY: "1", DOCKER_CERT_PATH: certs(name) });
	for (const [name, words] of [["old", /must be renewed/], ["far", /is for another name/]]) {
		const port = await engine.carry(engine.socket, { key: pem("right", `${name}-key.pem`), cert: pem("right", `${name}-cert.pem`) });
		await refusal(env("right", `tcp://127.0.0.1:${port}`), words);
	}
	await refusal(env("wrong"), /not signed by the CA in .*ca\.pem/);
	await refusal(env("no client"), /wants a client's certificate|does not accept our certificate/);
	await refusal(env("foreign client"), /does not accept our certificate/);
	await refusal({ ...env("right"), DOCKER_CERT_PATH: certs("none") }, /DOCKER_CERT_PATH: .*none\/ca\.pem/);
	await refusal({ DOCKER_HOST: host }, /it speaks TLS: set DOCKER_TLS_VERIFY=1/);
	await refusal(env("right", `tcp://127.0.0.1:${await engine.carry()}`), /does not speak TLS there/);
});

// The inner engine is a real one, in a container with the rights that it needs (not
// "privileged": a machine may lack some of those); its programs are this machine's,
// mounted read-only, its root, data and network its container's own or the outer one's.
test("an engine in a container of another engine works over TCP", async () => {
	const image = await engine.tiny("mcp-dind");
	const call = async (method, where, body) => {
		const r = await ask(engine.socket, method, where, body);
		assert.ok(r.status < 400, r.text);
		return r.text ? JSON.parse(r.text) : null;
	};
	const { Id } = await call("POST", "/containers/create", {
		Image: image,
		Entrypoint: ["/usr/sbin/dockerd", "-H", "tcp://127.0.0.1:2377", "--tls=false", "--iptables=false", "--ip6tables=false"],
		Volumes: { "/var/lib/docker": {}, "/run": {} },
		HostConfig: {
			CapAdd: ["SYS_ADMIN", "NET_ADMIN", "SYS_PTRACE"], SecurityOpt: ["seccomp=unconfined", "apparmor=unconfined"], MaskedPaths: [], ReadonlyPaths: [],
			NetworkMode: "host", Binds: ["/usr:/usr:ro", "/etc/ssl:/etc/ssl:ro", "/sys/fs/cgroup:/sys/fs/cgroup"],
		},
	});
	try {
		await call("POST", `/containers/${Id}/start`);
		const host = await tcp(2377);
		const inner = Object.create(engine, { socket: { value: { host: "127.0.0.1", port: Number(host.split(":")[2]) } } });
		await until("the inner engine", 20000, async () => (await ask(inner.socket, "GET", "/_ping")).status === 200);
		const { SANDBOX_IMAGE } = { SANDBOX_IMAGE: await inner.tiny() };
		await withServer({ DOCKER_HOST: host, SANDBOX_IMAGE }, async (s, c) => {
			const { final, sandbox_name } = await run(c, "inner", ["echo from inside; echo kept >/artifacts/a"]);
			assert.equal(final.commands[0].stdout, "from inside\n");
			assert.equal(await (await s.get("/artifacts/inner/latest/a")).text(), "kept\n");
			assert.equal((await ask(inner.socket, "GET", `/containers/${sandbox_name}/json`)).status, 200);
			assert.equal((await ask(engine.socket, "GET", `/containers/${sandbox_name}/json`)).status, 404);
			await megabytesBothWays(c);
		});
	} catch (error) {
		error.message += (await ask(engine.socket, "GET", `/containers/${Id}/logs?stdout=1&stderr=1`)).text.slice(-1500);
		throw error;
	} finally {
		await call("DELETE", `/containers/${Id}?force=1&v=1`);
		await ask(engine.socket, "DELETE", `/images/${image}`);
	}
});

// Its containers are of a user namespace that even root here is nobody in; without
// control groups of its user's it keeps no limits.
for (const [Kind, place] of [[RootlessDocker, "docker.sock"], [RootlessPodman, "podman/podman.sock"]])
	test(`a rootless engine works, found by the user's runtime folder: ${place}`, async (t) => {
		if (Kind.missing()) return t.skip(Kind.missing());
		const top = fs.mkdtempSync("/var/tmp/mcp-test-rootless-");
		const rootless = await Kind.start([], top);
		try {
			const there = path.join(rootless.run, place);
			fs.mkdirSync(path.dirname(there), { recursive: true });
			fs.symlinkSync(rootless.socket, there);
			const found = fs.existsSync("/var/run/docker.sock") ? {} : { DOCKER_HOST: "", XDG_RUNTIME_DIR: rootless.run };
			const env = { DOCKER_HOST: `unix://${rootless.socket}`, ...found, SANDBOX_IMAGE: await rootless.tiny() };
			await withServer(env, async (s, c) => {
				assert.match(log(s), /keeps no limits of processors, memory, processes/);
				const r = await run(c, "user", ["id -u; echo kept >/workspace/note; echo a >/artifacts/a"]);
				assert.equal(r.final.commands[0].stdout, "1000\n");
				assert.deepEqual(r.final.artifacts.map((a) => a.path), ["a"]);
				assert.equal((await run(c, "user", ["id -u; cat /workspace/note"], { as_user: "root" })).final.commands[0].stdout, "0\nkept\n");
				await megabytesBothWays(c);
				await s.restart();
				assert.equal((await run(c, "user", ["cat /workspace/note"])).final.commands[0].stdout, "kept\n");
			});
		} finally {
			await rootless.stop();
			fs.rmSync(top, { recursive: true });
		}
	});

class Filtering extends Engine {
	firewall = true;
}

// Who listens is put into the first one's network from outside: a tiny image has nothing for it.
for (const Kind of [Filtering, Podman])
	test(`on the bridge, sandboxes do not reach each other: ${Kind.name}`, async () => {
		const top = fs.mkdtempSync("/var/tmp/mcp-test-apart-");
		const apart = await Kind.start([], top);
		const get = async (where) => JSON.parse((await ask(apart.socket, "GET", where)).text);
		let listener;
		try {
			const env = { DOCKER_HOST: `unix://${apart.socket}`, SANDBOX_IMAGE: await apart.tiny(), SANDBOX_NETWORK_MODE: "bridge" };
			await withServer(env, async (s, c) => {
				const { sandbox_name } = await run(c, "a", ["true"]);
				const { State, NetworkSettings } = await get(`/containers/${sandbox_name}/json`);
				const [{ IPAddress }] = Object.values(NetworkSettings.Networks);
				const near = ["nsenter", "-t", String(State.Pid), "--net"];
				listener = spawn(near[0], [...near.slice(1), "python3", "-m", "http.server", "8000"], { stdio: "ignore", cwd: top });
				const reached = { argv: ["bash", "-c", `exec 3<>/dev/tcp/${IPAddress}/8000 && echo reached`], timeout_ms: 3000, allow_failure: true };
				await until("the listener", 20000, async () => (await run(c, "a", [reached])).final.commands[0].stdout === "reached\n");
				assert.equal((await run(c, "b", [reached])).final.commands[0].stdout, "");
				assert.notEqual((await get("/networks")).filter((n) => n.Labels?.["mcp.instance"] === s.instance).length, 0);
				env.instance = s.instance;
			});
			assert.deepEqual((await get("/networks")).filter((n) => n.Labels?.["mcp.instance"] === env.instance), []);
		} finally {
			listener?.kill();
			await apart.stop();
			fs.rmSync(top, { recursive: true });
		}
	});

// The rules of docs/docker.md, in front of a network namespace that stands for the rest
// of the world: one host with a public and a private address.
test("the documented rules close a network to the host and to private addresses", async () => {
	const top = fs.mkdtempSync("/var/tmp/mcp-test-filter-");
	const filter = await Filtering.start([], top);
	const children = [];
	const inside = (...args) => String(execFileSync(...filter.within(...args)));
	const server = (pid) => children.push(spawn("nsenter", ["-t", pid, "--net", "python3", "-m", "http.server", "8000"], { stdio: "ignore", cwd: top }));
	try {
		const image = await filter.tiny();
		inside("sh", "-c", "ip link add near type veth peer name far; ip addr add 198.51.100.1/24 dev near; ip addr add 10.9.9.1/24 dev near; ip link set near up");
		const world = spawn(...filter.within("unshare", "--net", "sh", "-c", "echo $$; exec sleep 3600"), { stdio: ["ignore", "pipe", "inherit"] });
		children.push(world);
		const pid = String((await once(world.stdout, "data"))[0]).trim();
		inside("ip", "link", "set", "far", "netns", pid);
		execFileSync("nsenter", ["-t", pid, "--net", "sh", "-c", "ip addr add 198.51.100.2/24 dev far; ip addr add 10.9.9.2/24 dev far; ip link set far up; ip route add default via 198.51.100.1"]);
		server(pid);
		server(String(filter.dockerd()));
		const [, network, rules] = /```sh\n(docker network create .*)\n([^`]*)```/.exec(fs.readFileSync(path.join(repo, "docs/docker.md"), "utf8"));
		const env = { PATH: process.env.PATH, DOCKER_HOST: `unix://${filter.socket}` };
		execFileSync("sh", ["-c", network], { env, stdio: "ignore" });
		await withServer({ DOCKER_HOST: env.DOCKER_HOST, SANDBOX_IMAGE: image, SANDBOX_NETWORK_MODE: "sandboxes" }, async (s, c) => {
			const reached = async () => (await run(c, "net", [{ argv: ["bash", "-c", 'for a in 198.51.100.2 10.9.9.2 10.9.9.1; do (exec 3<>/dev/tcp/$a/8000) 2>/dev/null && echo $a; done; true'] }])).final.commands[0].stdout;
			await until("the servers", 10000, async () => (await reached()) === "198.51.100.2\n10.9.9.2\n10.9.9.1\n");
			inside("sh", "-ec", rules);
			assert.equal(await reached(), "198.51.100.2\n");
		});
	} finally {
		for (const child of children) child.kill();
		await filter.stop();
		fs.rmSync(top, { recursive: true });
	}
});

test("what was paused goes on by itself, and nothing is lost", async () => {
	const final = await server.ended(held);
	assert.equal(final.commands[0].stdout, "on\noff\n");
	assert.equal(final.state, "completed");
});
