// SPDX-License-Identifier: MIT
// How the image of the sandboxes comes into the engine.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { api, engine, log, refusal, server, useEngine, withServer } from "./docker-rig.mjs";
import { Server, run, until } from "./rig.mjs";
import { ask } from "./with-docker.mjs";

let tiny;
useEngine({ then: async () => (tiny = await engine.tiny()) });

// A folder with a Dockerfile and what lies beside it.
function dockerfile(text, files = {}) {
	const dir = fs.mkdtempSync(path.join(server.dir, "build "));
	for (const [name, content] of Object.entries({ Dockerfile: text, ...files })) {
		fs.mkdirSync(path.dirname(path.join(dir, name)), { recursive: true });
		fs.writeFileSync(path.join(dir, name), content);
	}
	return path.join(dir, "Dockerfile");
}

const message = (e) => e.data.message;
async function progress(s, id) {
	const words = [];
	let first;
	for await (const e of await s.events(id)) {
		first ??= e.event;
		if (e.event === "sandbox_progress") words.push(message(e));
		if (e.event === "run_started") assert.equal(first, words.length ? "sandbox_progress" : "run_started");
	}
	return words;
}

test("a missing image is built once, and every run that waits sees how", async () => {
	const file = dockerfile(`FROM ${tiny}\nRUN sleep 5\nENV BUILT=yes\n`);
	const image = "mcp-test-built:1";
	await ask(engine.socket, "DELETE", `/images/${image}?force=1`); // of a test that failed
	await withServer({ SANDBOX_IMAGE: image, SANDBOX_DOCKERFILE_PATH: file }, async (s, c) => {
		assert.match(log(s), /Step 3\/3 : ENV BUILT=yes/);
		await api("DELETE", `/images/${image}`);
		await ask(engine.socket, "POST", "/build/prune?all=1");
		const seen = [];
		const all = await Promise.all(["a", "b", "c"].map((id) => run(c, id, ["echo up $BUILT"])));
		for (const r of all) {
			assert.equal(r.final.commands[0].stdout, "up yes\n"); // the image's ENV reaches commands
			const words = await progress(s, r.run_id);
			seen.push(words[0]); // one that comes a moment later begins with a later line
			assert.ok(words.some((w) => /Step 3\/3/.test(w)), words.join("\n"));
			assert.equal(words.at(-1), `the image ${image} is ready`);
			assert.deepEqual(await progress(s, r.run_id), words); // from the store, again
		}
		assert.ok(seen.some((w) => w.startsWith(`building the image ${image}`)), seen.join("\n"));
		assert.equal(log(s).match(/building the image/g).length, 2);
		assert.deepEqual(await progress(s, (await run(c, "a", ["true"])).run_id), []);
	});
	await ask(engine.socket, "DELETE", `/images/${image}`);
});

test("a run that comes while the first image is built sees it, too", async () => {
	const image = "mcp-test-first:1";
	const env = { SANDBOX_IMAGE: image, SANDBOX_DOCKERFILE_PATH: dockerfile(`FROM ${tiny}\nRUN sleep 10\nRUN true\n`) };
	const s = await Server.start({ ...engine.env, ...env }, { ready: false });
	try {
		await until("the build", 15000, () => log(s).includes("RUN sleep 10"));
		const c = await s.connect();
		const told = [];
		const r = await c.callTool({ name: "run_sandbox", arguments: { identifier: "early", commands: [{ shell: "echo up" }], options: { await_completion: true } } },
			undefined, { timeout: 300000, onprogress: (p) => told.push(p.message) });
		assert.equal(r.structuredContent.final.commands[0].stdout, "up\n");
		assert.ok((await progress(s, r.structuredContent.run_id)).some((w) => /Step 3\/3/.test(w)));
		assert.ok(told.some((w) => w.startsWith("waiting to start: ")), told.join("\n"));
		await c.callTool({ name: "delete_sandbox", arguments: { identifier: "early" } });
		await c.close();
	} finally {
		await s.stop();
		await ask(engine.socket, "DELETE", `/images/${image}`);
	}
});

test("a Dockerfile copies from its folder, without what .dockerignore names", async () => {
	const image = "mcp-test-copied:1";
	const file = dockerfile(`FROM ${tiny}\nCOPY . /copied\n`, { ".dockerignore": "secret\nlogs\n!logs/kept\n", secret: "s", "logs/dropped": "d", "logs/kept": "k", "deep/down": "x" });
	await withServer({ SANDBOX_IMAGE: image, SANDBOX_DOCKERFILE_PATH: file }, async (s, c) => {
		const { final } = await run(c, "copied", ["cd /copied; ls -a . logs; cat deep/down"]);
		assert.equal(final.commands[0].stdout, ".:\n.\n..\n.dockerignore\n.mcp-sandboxd.Dockerfile\nDockerfile\ndeep\nlogs\n\nlogs:\n.\n..\nkept\nx");
	});
	await ask(engine.socket, "DELETE", `/images/${image}`);
});

test("an image that knows nothing of us has its user and its folders all the same", async () => {
	const image = await engine.tiny("mcp-bare", { bare: true });
	for (const more of [{}, { SANDBOX_READ_ONLY: "true" }])
		await withServer({ SANDBOX_IMAGE: image, ...more }, async (s, c) => {
			const { final } = await run(c, "bare", ["id -u; pwd; echo $HOME; echo kept >here; cat here >/artifacts/there; cat here"]);
			assert.equal(final.commands[0].stdout, "1000\n/workspace\n/workspace\nkept\n", JSON.stringify(final));
			assert.deepEqual(final.artifacts.map((a) => a.path), ["there"]);
		});
	await ask(engine.socket, "DELETE", `/images/${image}`);
});

test("a Dockerfile that fails is said in its own words, and the server goes on asking", async () => {
	const file = dockerfile(`FROM ${tiny}\nRUN exit 7\n`);
	const words = await refusal({ SANDBOX_IMAGE: "mcp-test-bad:1", SANDBOX_DOCKERFILE_PATH: file }, /exit 7/, 30000);
	assert.match(words, /returned a non-zero code: 7/);
});

test("an image for other processors is refused in words", async () => {
	const dir = fs.mkdtempSync(path.join(server.dir, "arm "));
	const put = (name, content) => fs.writeFileSync(path.join(dir, name), content);
	execFileSync("tar", ["-C", dir, "-cf", path.join(dir, "layer.tar"), "-T", "/dev/null"]);
	const diff = createHash("sha256").update(fs.readFileSync(path.join(dir, "layer.tar"))).digest("hex");
	put("config.json", JSON.stringify({ architecture: "s390x", os: "linux", config: {}, rootfs: { type: "layers", diff_ids: [`sha256:${diff}`] } }));
	put("manifest.json", JSON.stringify([{ Config: "config.json", RepoTags: ["mcp-test-arch:1"], Layers: ["layer.tar"] }]));
	const body = execFileSync("tar", ["-C", dir, "-c", "config.json", "manifest.json", "layer.tar"]);
	const r = await ask(engine.socket, "POST", "/images/load", body, { "content-type": "application/x-tar" });
	assert.ok(!r.text.includes("error"), r.text);
	await refusal({ SANDBOX_IMAGE: "mcp-test-arch:1" }, /image mcp-test-arch:1: it is made for s390x processors and the engine's are/);
	await api("DELETE", "/images/mcp-test-arch:1");
});

test("a missing image is pulled from its registry, once, and a removed one again", async () => {
	const registry = await engine.registry();
	const image = "127.0.0.1:5000/mcp-test-pulled:1";
	try {
		await push(image);
		await withServer({ SANDBOX_IMAGE: image }, async (s, c) => {
			assert.match(log(s), /pulling the image 127\.0\.0\.1:5000\/mcp-test-pulled:1[\s\S]*image .* is ready/);
			assert.equal((await run(c, "first", ["echo up"])).final.commands[0].stdout, "up\n");
			await c.callTool({ name: "delete_sandbox", arguments: { identifier: "first" } });
			await api("DELETE", `/images/${image}`);
			const all = await Promise.all(["a", "b"].map((id) => run(c, id, ["echo up $BUILT"])));
			for (const r of all) {
				const words = await progress(s, r.run_id);
				assert.ok(words.some((w) => /Pull complete|Status: Downloaded/.test(w)), words.join("\n"));
			}
			assert.equal(log(s).match(/pulling the image/g).length, 2);
		});
		await refusal({ SANDBOX_IMAGE: image.replace(":1", ":2") }, /mcp-test-pulled:2.*(not found|unknown)/);
	} finally {
		await ask(engine.socket, "DELETE", `/images/${image}`);
		registry.kill();
		await registry.ended;
	}
});

async function push(image, password) {
	const [name, tag] = [image.slice(0, image.lastIndexOf(":")), image.split(":").at(-1)];
	await api("POST", `/images/${tiny}/tag?repo=${name}&tag=${tag}`);
	const auth = Buffer.from(JSON.stringify(password ? { username: "user", password } : {})).toString("base64url");
	const pushed = await ask(engine.socket, "POST", `/images/${name}/push?tag=${tag}`, null, { "x-registry-auth": auth });
	assert.ok(!pushed.text.includes('"error"'), pushed.text);
	await api("DELETE", `/images/${image}`);
}

test("a registry with a password gets the stored one, for pulls and for builds", async () => {
	const registry = await engine.registry("secret");
	const image = "127.0.0.1:5000/mcp-test-private:1";
	const config = (content) => {
		const dir = fs.mkdtempSync(path.join(server.dir, "docker config "));
		fs.writeFileSync(path.join(dir, "config.json"), JSON.stringify(content));
		return { DOCKER_CONFIG: dir, XDG_RUNTIME_DIR: dir, HOME: dir };
	};
	const login = (password) => ({ auths: { "127.0.0.1:5000": { auth: Buffer.from(`user:${password}`).toString("base64") } } });
	try {
		await push(image, "secret");
		await refusal({ ...config({}), SANDBOX_IMAGE: image }, /no credentials are stored for the registry/);
		await refusal({ ...config(login("other")), SANDBOX_IMAGE: image }, /stored credentials were not accepted/);
		await refusal({ ...config({ credsStore: "desktop" }), SANDBOX_IMAGE: image }, /with a helper program, which is not run/);
		const podman = config({});
		fs.mkdirSync(path.join(podman.HOME, "containers"));
		fs.writeFileSync(path.join(podman.HOME, "containers/auth.json"), JSON.stringify(login("secret")));
		for (const env of [config(login("secret")), podman]) {
			await withServer({ ...env, SANDBOX_IMAGE: image }, async (s, c) => {
				assert.ok(!log(s).includes("secret"));
				assert.equal((await run(c, "private", ["echo up"])).final.commands[0].stdout, "up\n");
			});
			await api("DELETE", `/images/${image}`);
		}
		const env = { ...config(login("secret")), SANDBOX_IMAGE: "mcp-test-from:1", SANDBOX_DOCKERFILE_PATH: dockerfile(`FROM ${image}\n`) };
		await withServer(env, async (s, c) => {
			assert.equal((await run(c, "private", ["echo up"])).final.commands[0].stdout, "up\n");
		});
	} finally {
		for (const name of [image, "mcp-test-from:1"]) await ask(engine.socket, "DELETE", `/images/${name}`);
		registry.kill();
		await registry.ended;
	}
});
