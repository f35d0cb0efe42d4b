// SPDX-License-Identifier: MIT
// What is the docker backend's own of a container's life.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { engine, server, client, api, inspect, list, one, log, useEngine } from "./docker-rig.mjs";
import { Server, run, until } from "./rig.mjs";
import { ask } from "./with-docker.mjs";

useEngine();

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

test("what root broke of the agent is mended by the next start", async () => {
	const { sandbox_name } = await run(client, "broken", ["echo kept >/workspace/note"]);
	await one("broken", "rm -rf /.mcp-sandboxd", { as_user: "root" });
	await api("POST", `/containers/${sandbox_name}/stop?t=1`);
	assert.equal((await one("broken", "cat /workspace/note")).stdout, "kept\n");
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

test("a limit of the disk that the engine cannot keep is refused at the start, in its words", async () => {
	const s = await Server.start({ ...engine.env, SANDBOX_DISK_MB: "100" }, { ready: false });
	try {
		const words = await until("an answer", 15000, async () => {
			const r = await fetch(`${s.base}/readyz`);
			const text = await r.text();
			return !text.includes("being prepared") && text;
		});
		assert.match(words, /SANDBOX_DISK_MB=100: .*storage-opt/);
		assert.deepEqual(await list(s.instance), []);
	} finally {
		await s.stop();
	}
});

test("the network of the bridge is made, made again when it was removed, and goes with the server", async () => {
	const s = await Server.start({ ...engine.env, SANDBOX_NETWORK_MODE: "bridge" });
	try {
		const c = await s.connect();
		const a = await run(c, "a", ["hostname -I; (python3 -m http.server 8000 >/dev/null 2>&1 &)"]);
		const ip = a.final.commands[0].stdout.trim();
		assert.match(ip, /^\d+\.\d+\.\d+\.\d+$/);
		assert.equal((await run(c, "a", [`curl -s -o /dev/null --max-time 30 --retry 30 --retry-connrefused -w '%{http_code}' http://${ip}:8000/`])).final.commands[0].stdout, "200");
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

test("changed limits reach a container that runs, and what runs in it goes on", async () => {
	const other = await Server.start(engine.env);
	const user = await other.connect();
	const described = (name) => api("GET", `/containers/${name}/json`);
	try {
		const { sandbox_name } = await run(user, "limits", ["sleep 300 >/dev/null 2>&1 & echo $! >/workspace/pid"]);
		const before = await described(sandbox_name);
		fs.writeFileSync(path.join(other.dir, ".env"), "DEFAULT_MEMORY_MB=600\nDEFAULT_CPU_CORES=0.5\nDEFAULT_PIDS=100\n");
		const old = other.pids().runner;
		other.kill("master", "SIGHUP");
		await until("another runner", 30000, () => ![0, old].includes(other.pids().runner));
		await other.waitReady();
		const r = await run(user, "limits", ["kill -0 $(cat /workspace/pid)"]);
		assert.equal(r.final.state, "completed");
		const { HostConfig, State } = await described(sandbox_name);
		assert.equal(State.StartedAt, before.State.StartedAt);
		const limits = (h) => [h.Memory, h.MemorySwap, h.NanoCpus, h.PidsLimit];
		assert.deepEqual(limits(HostConfig), [600 << 20, 600 << 20, 5e8, 100]);
		// What is taken away altogether.
		fs.writeFileSync(path.join(other.dir, ".env"), "DEFAULT_MEMORY_MB=0\nDEFAULT_CPU_CORES=0\nDEFAULT_PIDS=0\n");
		const next = other.pids().runner;
		other.kill("master", "SIGHUP");
		await until("another runner", 30000, () => ![0, next].includes(other.pids().runner));
		await other.waitReady();
		assert.equal((await run(user, "limits", ["kill -0 $(cat /workspace/pid)"])).final.state, "completed");
		const { MemTotal, NCPU } = await api("GET", "/info");
		const pids = limits((await described(sandbox_name)).HostConfig).pop();
		assert.deepEqual(limits((await described(sandbox_name)).HostConfig), [MemTotal, MemTotal, NCPU * 1e9, pids]);
		assert.ok(!(pids > 0));
	} finally {
		await user.callTool({ name: "delete_sandbox", arguments: { identifier: "limits" } });
		await user.close();
		await other.stop();
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
		await until("another one alone", 60000, async () => {
			const there = await list(other.instance);
			return there.length === 1 && there[0].Image === "mcp-sandbox:pool" && there[0].Names[0] !== `/${name}`;
		});
	} finally {
		await other.stop();
		await api("DELETE", "/images/mcp-sandbox:pool?force=1");
	}
	assert.deepEqual(await list(other.instance), []);
});
