// SPDX-License-Identifier: MIT
// What is the docker backend's own: what people and the engine do to its containers.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import tls from "node:tls";
import { after, before, test } from "node:test";
import { Server, run, until } from "./rig.mjs";
import { Engine, ask, checkLeft } from "./with-docker.mjs";

let engine, server, client;

before(async () => {
	engine = await Engine.start();
	await engine.import();
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

const api = async (method, where, body) => {
	const r = await ask(engine.socket, method, where, body);
	assert.ok(r.status < 400, `${method} ${where}: ${r.status} ${r.text}`);
	return r.text ? JSON.parse(r.text) : null;
};
const inspect = (name) => api("GET", `/containers/${name}/json`);
const list = async (instance) =>
	(await api("GET", "/containers/json?all=1")).filter((c) => c.Labels["mcp.instance"] === (instance ?? server.instance));
const one = async (id, shell, options) => (await run(client, id, [{ shell, allow_failure: true }], options)).final.commands[0];
const log = () => fs.readFileSync(server.log, "utf8");

async function background(id, shell) {
	const r = await run(client, id, [shell], { await_completion: false });
	await until("start", 20000, async () => (await server.run_status(r.run_id)).commands[0].stdout_bytes > 0);
	return r.run_id;
}

test("a container carries the policy, the labels and the limits that were asked for", async () => {
	const { sandbox_name } = await run(client, "shape", ["true"]);
	const c = await inspect(sandbox_name);
	assert.match(sandbox_name, /^mcp-sbx-shape-[0-9a-f]{8}$/);
	assert.equal(c.Config.Labels["mcp.role"], "sandbox");
	assert.equal(c.Config.Labels["mcp.identifier"], "shape");
	assert.equal(c.Config.Labels["mcp.instance"], server.instance);
	assert.ok(Number(c.Config.Labels["mcp.expires_at_unix_ms"]) > Number(c.Config.Labels["mcp.created_at_unix_ms"]));
	assert.match(c.Config.Labels["mcp.policy_fingerprint"], /^[0-9a-f]{16}$/);
	assert.deepEqual(c.HostConfig.CapDrop, ["ALL"]);
	assert.deepEqual(c.HostConfig.CapAdd.map((n) => n.replace(/^CAP_/, "")).sort(), ["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID"]);
	assert.deepEqual(c.HostConfig.SecurityOpt, ["no-new-privileges"]);
	assert.equal(c.HostConfig.NetworkMode, "none");
	assert.equal(c.HostConfig.Memory, 1024 * 1024 * 1024);
	assert.equal(c.HostConfig.MemorySwap, c.HostConfig.Memory);
	assert.equal(c.HostConfig.NanoCpus, 1e9);
	assert.equal(c.HostConfig.PidsLimit, 256);
	assert.equal(c.HostConfig.Privileged, false);
	assert.equal(c.HostConfig.LogConfig.Type, "none");
	assert.equal(c.HostConfig.RestartPolicy.Name, "no");
});

test("a container that was stopped by hand is started again with its files", async () => {
	const { sandbox_name } = await run(client, "stopped", ["echo kept >/workspace/note"]);
	await api("POST", `/containers/${sandbox_name}/stop?t=1`);
	assert.equal((await one("stopped", "cat /workspace/note")).stdout, "kept\n");
});

test("a container that was removed by hand is replaced by a fresh one", async () => {
	const { sandbox_name } = await run(client, "removed", ["echo kept >/workspace/note"]);
	await api("DELETE", `/containers/${sandbox_name}?force=1`);
	assert.notEqual((await one("removed", "cat /workspace/note")).exit_code, 0);
});

test("a container removed under a running command fails the run with the reason", async () => {
	const { sandbox_name } = await run(client, "pulled", ["true"]);
	const id = await background("pulled", "echo on; sleep 300");
	await api("DELETE", `/containers/${sandbox_name}?force=1`);
	const final = await server.ended(id);
	assert.equal(final.state, "failed");
	assert.match(final.error, /not running any more/);
	assert.equal((await one("pulled", "echo back")).stdout, "back\n");
});

test("a paused container goes on when it is needed", async () => {
	const { sandbox_name } = await run(client, "paused", ["true"]);
	await api("POST", `/containers/${sandbox_name}/stop?t=1`);
	await run(client, "paused", ["true"]);
	await api("POST", `/containers/${sandbox_name}/pause`);
	server.kill("runner"); // the next one finds it paused
	assert.equal((await one("paused", "echo on")).stdout, "on\n");
	assert.equal((await inspect(sandbox_name)).State.Paused, false);
});

test("what root broke of the agent is mended by the next start", async () => {
	const { sandbox_name } = await run(client, "broken", ["echo kept >/workspace/note"]);
	await one("broken", "rm -rf /.mcp-sandboxd", { as_user: "root" });
	await api("POST", `/containers/${sandbox_name}/stop?t=1`);
	assert.equal((await one("broken", "cat /workspace/note")).stdout, "kept\n");
});

test("one relay serves a sandbox, however often it was reconnected", async () => {
	await run(client, "relay", ["true"]);
	for (let i = 0; i < 4; i++) {
		server.kill("runner");
		assert.equal((await one("relay", "echo on")).stdout, "on\n");
	}
	await until("old relays to end", 5000, async () =>
		(await one("relay", "grep -l '[c]onnect' /proc/[0-9]*/cmdline 2>/dev/null | wc -l", { as_user: "root" })).stdout === "1\n");
});

test("many first calls at once share one container, many identifiers have their own", async () => {
	const same = await Promise.all(Array.from({ length: 20 }, (_, i) => run(client, "crowd", [`echo ${i}`])));
	assert.equal(new Set(same.map((r) => r.sandbox_name)).size, 1);
	same.forEach((r, i) => assert.equal(r.final.commands[0].stdout, `${i}\n`));
	const many = await Promise.all(Array.from({ length: 8 }, (_, i) => run(client, `many-${i}`, [`echo ${i}`])));
	assert.equal(new Set(many.map((r) => r.sandbox_name)).size, 8);
	await Promise.all(many.map((r) => client.callTool({ name: "delete_sandbox", arguments: { identifier: r.identifier } })));
	assert.ok(!(await list()).some((c) => c.Names[0].includes("many-")));
});

test("the engine is killed and comes back: runs fail with the reason, files are kept", async () => {
	await run(client, "engine", ["echo kept >/workspace/note"]);
	const id = await background("engine", "echo on; sleep 300");
	await engine.down("SIGKILL");
	const refused = await run(client, "engine-none", ["true"]).then((r) => r.final?.error ?? "", (e) => e.message);
	assert.match(refused, /engine is not running/);
	await engine.up();
	const final = await server.ended(id, 60000);
	assert.ok(["failed", "completed"].includes(final.state));
	assert.match(final.error ?? "", /not running any more|does not answer|stopped/);
	assert.equal((await one("engine", "cat /workspace/note")).stdout, "kept\n");
});

test("two servers on one engine do not touch each other's containers", async () => {
	await run(client, "both", ["echo first >/workspace/who"]);
	const other = await Server.start(engine.env);
	try {
		const second = await other.connect();
		const r = await run(second, "both", ["cat /workspace/who || echo second"]);
		assert.match(r.final.commands[0].stdout, /second/);
		await second.callTool({ name: "delete_sandbox", arguments: { identifier: "both" } });
		await second.close();
	} finally {
		await other.stop();
	}
	assert.equal((await list(other.instance)).length, 0);
	assert.equal((await one("both", "cat /workspace/who")).stdout, "first\n");
});

test("a container of somebody else with our name is left alone", async () => {
	const { sandbox_name } = await run(client, "foreign", ["true"]);
	await client.callTool({ name: "delete_sandbox", arguments: { identifier: "foreign" } });
	const { Id } = await api("POST", `/containers/create?name=${sandbox_name}`, { Image: engine.env.SANDBOX_IMAGE, Cmd: ["true"] });
	const words = await run(client, "foreign", ["true"]).then((r) => r.final.error, (e) => e.message);
	assert.match(words, /not this server's/);
	assert.equal((await inspect(sandbox_name)).Id, Id);
	await api("DELETE", `/containers/${Id}`);
	assert.equal((await one("foreign", "echo ok")).stdout, "ok\n");
});

test("unknown containers of this instance are removed at the start", async () => {
	const name = "mcp-sbx-orphan-00000000";
	await api("POST", `/containers/create?name=${name}`, {
		Image: engine.env.SANDBOX_IMAGE, Cmd: ["true"],
		Labels: { "mcp.role": "sandbox", "mcp.instance": server.instance, "mcp.policy_fingerprint": (await inspect((await list())[0].Id)).Config.Labels["mcp.policy_fingerprint"] },
	});
	await server.restart();
	await until("the orphan to go", 10000, async () => (await ask(engine.socket, "GET", `/containers/${name}/json`)).status === 404);
});

test("a changed policy replaces the containers, and the state is fresh", async () => {
	await run(client, "policy", ["echo kept >/workspace/note"]);
	await server.stopServer();
	server.env.SANDBOX_CAP_ADD = "SETUID,SETGID,CHOWN,FOWNER";
	await server.startServer();
	await server.waitReady();
	const c = await one("policy", "cat /workspace/note");
	assert.notEqual(c.exit_code, 0);
	assert.match(log(), /another policy/);
	delete server.env.SANDBOX_CAP_ADD;
	await server.restart();
});

test("a missing image is built from the Dockerfile, once, and its steps are in the log", async () => {
	const file = path.join(server.dir, "Dockerfile");
	fs.writeFileSync(file, `FROM ${engine.env.SANDBOX_IMAGE}\nENV BUILT=yes\n`);
	const other = await Server.start({ ...engine.env, SANDBOX_IMAGE: "mcp-test-built:1", SANDBOX_DOCKERFILE_PATH: file });
	try {
		const c = await other.connect();
		const words = fs.readFileSync(other.log, "utf8");
		assert.match(words, /Step 2\/2 : ENV BUILT=yes/);
		await api("DELETE", "/images/mcp-test-built:1");
		const all = await Promise.all(["a", "b", "c"].map((id) => run(c, id, ["echo up"])));
		for (const r of all) assert.equal(r.final.commands[0].stdout, "up\n");
		assert.equal(fs.readFileSync(other.log, "utf8").match(/building the image/g).length, 2);
		for (const id of ["a", "b", "c"]) await c.callTool({ name: "delete_sandbox", arguments: { identifier: id } });
		await c.close();
	} finally {
		await other.stop();
		await ask(engine.socket, "DELETE", "/images/mcp-test-built:1");
	}
});

test("a Dockerfile that fails is said in its own words, and the server goes on asking", async () => {
	const file = path.join(server.dir, "Dockerfile");
	fs.writeFileSync(file, `FROM ${engine.env.SANDBOX_IMAGE}\nRUN echo tried; exit 7\n`);
	const env = { ...engine.env, SANDBOX_IMAGE: "mcp-test-bad:1", SANDBOX_DOCKERFILE_PATH: file };
	const s = await Server.start(env, { ready: false });
	try {
		const words = await until("the reason", 30000, async () => {
			const r = await fetch(`${s.base}/readyz`);
			const text = await r.text();
			return text.includes("exit 7") && text;
		});
		assert.match(words, /returned a non-zero code: 7/);
	} finally {
		await s.stop();
	}
});

test("a read-only root has writable places and no others", async () => {
	const s = await Server.start({ ...engine.env, SANDBOX_READ_ONLY: "true" });
	try {
		const c = await s.connect();
		const { final } = await run(c, "ro", ["echo a >/workspace/a; echo b >/artifacts/b; echo c >/tmp/c; cat /workspace/a /tmp/c; touch /etc/x || echo refused"], { as_user: "root" });
		assert.equal(final.commands[0].stdout, "a\nc\nrefused\n");
		assert.deepEqual(final.artifacts.map((a) => a.path), ["b"]);
		await s.restart();
		assert.equal((await run(c, "ro", ["cat /workspace/a"])).final.commands[0].stdout, "a\n");
		await c.callTool({ name: "delete_sandbox", arguments: { identifier: "ro" } });
		await c.close();
	} finally {
		await s.stop();
	}
	assert.deepEqual((await api("GET", "/volumes")).Volumes ?? [], []);
});

test("on the bridge, sandboxes do not reach each other", async () => {
	const s = await Server.start({ ...engine.env, SANDBOX_NETWORK_MODE: "bridge" });
	try {
		const c = await s.connect();
		const a = await run(c, "a", ["hostname -I; (python3 -m http.server 8000 >/dev/null 2>&1 &)"]);
		const ip = a.final.commands[0].stdout.trim();
		assert.match(ip, /^\d+\.\d+\.\d+\.\d+$/);
		assert.equal((await run(c, "a", [`curl -s -o /dev/null --max-time 5 --retry 5 --retry-connrefused -w '%{http_code}' http://${ip}:8000/`])).final.commands[0].stdout, "200");
		const names = (await api("GET", "/networks")).map((n) => n.Name);
		assert.ok(names.includes(`mcp-sandboxd-${s.instance}`));
		await c.callTool({ name: "delete_sandbox", arguments: { identifier: "a" } });
		await api("DELETE", `/networks/mcp-sandboxd-${s.instance}`); // somebody tidies up
		assert.equal((await run(c, "b", ["echo up"])).final.commands[0].stdout, "up\n");
		await c.callTool({ name: "delete_sandbox", arguments: { identifier: "b" } });
		await c.close();
	} finally {
		await s.stop();
	}
	assert.ok(!(await api("GET", "/networks")).some((n) => n.Name === `mcp-sandboxd-${s.instance}`));
});

test("a socket that is missing, or no engine, is named with what to do", async () => {
	for (const [host, words] of [
		["unix:///run/mcp-test-nothing.sock", /there is no socket .*DOCKER_HOST/],
		[`tcp://127.0.0.1:${server.port}`, /no Docker-compatible engine/],
	]) {
		const s = await Server.start({ ...engine.env, DOCKER_HOST: host }, { ready: false });
		try {
			await until("the reason", 15000, async () => words.test(await (await fetch(`${s.base}/readyz`)).text()));
		} finally {
			await s.stop();
		}
	}
});

// The engine's socket on a port of the loopback, through TLS when options are given.
async function onTcp(options) {
	const carry = (socket) => {
		const to = net.connect(engine.socket);
		for (const [a, b] of [[socket, to], [to, socket]]) a.on("error", () => b.destroy()).pipe(b);
	};
	const listener = (options ? tls.createServer(options, carry) : net.createServer({ allowHalfOpen: true }, carry)).listen(0, "127.0.0.1");
	await once(listener, "listening");
	return listener;
}

// A CA, a server's and a client's certificate, as Docker's documentation makes them.
function makeCertificates(dir) {
	fs.mkdirSync(dir);
	const ssl = (...args) => execFileSync("openssl", args, { cwd: dir, stdio: ["ignore", "ignore", "ignore"] });
	ssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=ca", "-keyout", "ca-key.pem", "-out", "ca.pem");
	for (const [name, file, san] of [["server", "server", "subjectAltName=IP:127.0.0.1"], ["client", "", "extendedKeyUsage=clientAuth"]]) {
		const [key, cert] = file ? [`${file}-key.pem`, `${file}-cert.pem`] : ["key.pem", "cert.pem"];
		fs.writeFileSync(path.join(dir, "ext"), san);
		ssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", `/CN=${name}`, "-keyout", key, "-out", "csr");
		ssl("x509", "-req", "-in", "csr", "-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAcreateserial", "-days", "2", "-extfile", "ext", "-out", cert);
	}
}

async function workOver(env) {
	const s = await Server.start({ ...engine.env, ...env });
	try {
		const c = await s.connect();
		const script = `${": filler\n".repeat(200000)}head -c 3000000 /dev/zero | tr '\\0' y; echo end >&2`;
		const { final } = await run(c, "far", [script, "echo after"]);
		assert.equal(final.commands[0].stdout_bytes, 3000000);
		assert.equal(final.commands[0].stderr, "end\n");
		assert.equal(final.commands[1].stdout, "after\n");
		const made = await run(c, "far", ["head -c 20000000 /dev/urandom >/artifacts/big; sha256sum </artifacts/big"]);
		const r = await s.get(`/artifacts/far/${made.run_id}/big`);
		const { createHash } = await import("node:crypto");
		assert.equal(`${createHash("sha256").update(Buffer.from(await r.arrayBuffer())).digest("hex")}  -\n`, made.final.commands[0].stdout);
		await c.callTool({ name: "delete_sandbox", arguments: { identifier: "far" } });
		await c.close();
	} finally {
		await s.stop();
	}
}

test("an engine on a TCP port works, megabytes go both ways", async () => {
	const listener = await onTcp();
	try {
		await workOver({ DOCKER_HOST: `tcp://127.0.0.1:${listener.address().port}` });
	} finally {
		listener.close();
	}
});

test("an engine behind TLS works with the right certificates and is refused with others", async () => {
	const dir = path.join(server.dir, "certs");
	makeCertificates(dir);
	const read = (name) => fs.readFileSync(path.join(dir, name));
	const listener = await onTcp({ key: read("server-key.pem"), cert: read("server-cert.pem"), ca: read("ca.pem"), requestCert: true, rejectUnauthorized: true });
	const env = { DOCKER_HOST: `tcp://127.0.0.1:${listener.address().port}`, DOCKER_TLS_VERIFY: "1", DOCKER_CERT_PATH: dir };
	try {
		await workOver(env);
		const other = path.join(server.dir, "other certs");
		makeCertificates(other);
		const s = await Server.start({ ...engine.env, ...env, DOCKER_CERT_PATH: other }, { ready: false });
		try {
			await until("the reason", 15000, async () => /certificate/.test(await (await fetch(`${s.base}/readyz`)).text()));
		} finally {
			await s.stop();
		}
	} finally {
		listener.close();
	}
});

test("an engine that hangs is named, and served again when it goes on", async () => {
	process.kill(engine.dockerd(), "SIGSTOP");
	let s;
	try {
		s = await Server.start(engine.env, { ready: false });
		await until("the reason", 25000, async () => /does not answer in time/.test(await (await fetch(`${s.base}/readyz`)).text()));
	} finally {
		process.kill(engine.dockerd(), "SIGCONT");
	}
	await s.waitReady();
	await s.stop();
	assert.equal((await one("hung", "echo on")).stdout, "on\n");
});

test("a shim killed under a command fails the run with the reason, and the files are kept", async () => {
	const { sandbox_name } = await run(client, "shim", ["echo kept >/workspace/note"]);
	const { Id } = await inspect(sandbox_name);
	const id = await background("shim", "echo on; sleep 300");
	const shim = fs.readdirSync("/proc").find((pid) => {
		try {
			const line = fs.readFileSync(`/proc/${pid}/cmdline`, "utf8");
			return /^\d+$/.test(pid) && line.includes("containerd-shim") && line.includes(Id);
		} catch {
			return false; // ended meanwhile
		}
	});
	process.kill(Number(shim), "SIGKILL");
	const final = await server.ended(id, 60000);
	assert.equal(final.state, "failed");
	assert.match(final.error, /not running any more|does not answer/);
	assert.equal((await one("shim", "cat /workspace/note")).stdout, "kept\n");
});

test("a missing image is pulled from its registry, and the layers are in the log", async () => {
	const registry = await engine.registry();
	const name = `127.0.0.1:5000/mcp-test-pulled`;
	try {
		await api("POST", `/images/${engine.env.SANDBOX_IMAGE}/tag?repo=${name}&tag=1`);
		const pushed = await ask(engine.socket, "POST", `/images/${name}/push?tag=1`, null, { "x-registry-auth": "e30=" });
		assert.ok(!pushed.text.includes('"error"'), pushed.text);
		await api("DELETE", `/images/${name}:1`);
		const s = await Server.start({ ...engine.env, SANDBOX_IMAGE: `${name}:1` });
		try {
			assert.match(fs.readFileSync(s.log, "utf8"), /pulling the image 127\.0\.0\.1:5000\/mcp-test-pulled:1[\s\S]*image .* is ready/);
			const c = await s.connect();
			assert.equal((await run(c, "pulled", ["echo up"])).final.commands[0].stdout, "up\n");
			await c.callTool({ name: "delete_sandbox", arguments: { identifier: "pulled" } });
			await c.close();
		} finally {
			await s.stop();
		}
		const missing = await Server.start({ ...engine.env, SANDBOX_IMAGE: `${name}:2` }, { ready: false });
		try {
			await until("the reason", 15000, async () => /mcp-test-pulled:2.*(not found|unknown)/.test(await (await fetch(`${missing.base}/readyz`)).text()));
		} finally {
			await missing.stop();
		}
	} finally {
		await ask(engine.socket, "DELETE", `/images/${name}:1`);
		registry.kill();
		await registry.ended;
	}
});

test("a warm sandbox of an image that was built anew is replaced", async () => {
	await api("POST", "/images/mcp-sandbox:test/tag?repo=mcp-sandbox&tag=pool");
	const other = await Server.start({ ...engine.env, SANDBOX_IMAGE: "mcp-sandbox:pool", WARM_POOL_SIZE: "1" });
	const warm = async () => (await list(other.instance)).filter((c) => c.State === "running").map((c) => c.Names[0].slice(1));
	try {
		const [name] = await until("a warm sandbox", 60000, async () => (await warm()).length === 1 && warm());
		await until("its row", 10000, async () => / 1$/m.test(/^mcp_warm_pool_ready.*$/m.exec(await (await other.get("/metrics")).text())[0]));
		await api("POST", `/commit?container=${name}&repo=mcp-sandbox&tag=pool`);
		other.kill("master", "SIGUSR2");
		await until("another one", 60000, async () => (await warm()).length === 1 && !(await warm()).includes(name));
		assert.deepEqual((await list(other.instance)).map((c) => c.Image), ["mcp-sandbox:pool"]);
	} finally {
		await other.stop();
		await api("DELETE", "/images/mcp-sandbox:pool?force=1");
	}
	assert.deepEqual(await list(other.instance), []);
});
