// SPDX-License-Identifier: MIT
// Runs a command with an engine of its own at hand, and the suites' servers set to use
// it:   node with-docker.mjs [--podman] COMMAND [ARG...]
// The engine has a socket, data folder and network namespace of its own, so that one
// which is already on the machine is never touched, nor its bridge and firewall. The
// sandboxes' image is the local backend's root file system, imported once and kept in
// the data folder of the cache.
import { spawn, execFileSync } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { until } from "./rig.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const cache = process.env.MCP_TEST_CACHE ?? "/var/cache/mcp-sandboxd-test";
const image = "mcp-sandbox:test";
const uidBase = "1879048192";

// One request to an engine; {status, text}.
export function ask(socketPath, method, where, body, headers = {}) {
	return new Promise((resolve, reject) => {
		const r = http.request({ socketPath, method, path: where, headers: body ? { "content-type": "application/json", ...headers } : headers }, (answer) => {
			let text = "";
			answer.setEncoding("utf8").on("data", (d) => (text += d)).on("end", () => resolve({ status: answer.statusCode, text }));
		});
		r.on("error", reject);
		r.end(body && JSON.stringify(body));
	});
}

export class Engine {
	name = "docker";

	// ip netns would leave a name behind; unshare leaves nothing.
	command() {
		return { file: "unshare", args: ["--net", "dockerd", "-H", `unix://${this.socket}`,
			"--data-root", path.join(this.top, "data"), "--exec-root", path.join(this.run, "exec"),
			"--pidfile", path.join(this.run, "pid"), "--iptables=false", "--ip6tables=false"] };
	}

	static async start() {
		const engine = new this();
		engine.top = path.join(cache, engine.name);
		engine.run = fs.mkdtempSync("/run/mcp-test-engine-");
		engine.socket = path.join(engine.run, "engine.sock");
		fs.mkdirSync(engine.top, { recursive: true, mode: 0o700 });
		// Two engines on one data folder would ruin it.
		engine.lock = spawn("flock", [path.join(engine.top, "lock"), "sh", "-c", "echo locked; exec cat"], { stdio: ["pipe", "pipe", "inherit"] });
		await once(engine.lock.stdout, "data");
		try {
			await engine.up();
			await checkLeft(engine).catch(() => {}); // of a test that was killed
		} catch (error) {
			await engine.stop();
			throw error;
		}
		return engine;
	}

	// The containerd that dockerd started dies with it, a moment later; a dockerd that
	// is started in that moment waits for it in vain.
	async containerdGone() {
		const file = path.join(this.run, "exec/containerd/containerd.pid");
		const pid = fs.existsSync(file) && fs.readFileSync(file, "utf8").trim();
		await until("containerd to end", 10000, () => !pid || !fs.existsSync(`/proc/${pid}`));
	}

	// Also after a kill(): the engine again, on the same folders.
	async up() {
		const log = path.join(this.run, "log");
		const out = fs.openSync(log, "a");
		const { file, args, env } = this.command();
		this.child = spawn(file, args, { stdio: ["ignore", out, out], detached: true, env: { ...process.env, ...env } });
		fs.closeSync(out);
		this.child.ended = once(this.child, "exit");
		await until("the engine", 60000, async () => {
			if (this.child.exitCode !== null) throw new Error(`the engine ended:\n${fs.readFileSync(log, "utf8").slice(-4000)}`);
			return (await ask(this.socket, "GET", "/_ping")).status === 200;
		});
	}

	// The local backend has made it, or the suites before did.
	async import() {
		if ((await ask(this.socket, "GET", `/images/${image}/json`)).status === 200) return;
		const rootfs = fs.realpathSync(path.join(cache, "images/default/rootfs"));
		const tar = spawn(path.join(here, "rootfs-tar"), [rootfs, uidBase], { stdio: ["ignore", "pipe", "inherit"] });
		const [name, tag] = image.split(":");
		await new Promise((resolve, reject) => {
			const r = http.request({ socketPath: this.socket, method: "POST", path: `/images/create?fromSrc=-&repo=${name}&tag=${tag}`, headers: { "content-type": "application/x-tar" } }, (answer) => {
				let text = "";
				answer.on("data", (d) => (text += d)).on("end", () => (answer.statusCode === 200 && !text.includes('"error"') ? resolve() : reject(new Error(text))));
			});
			r.on("error", reject);
			tar.stdout.pipe(r);
		});
		// Podman takes the tag of an import for latest.
		await ask(this.socket, "POST", `/images/${name}:latest/tag?repo=${name}&tag=${tag}`);
	}

	get env() {
		return { SANDBOX_BACKEND: "docker", DOCKER_HOST: `unix://${this.socket}`, SANDBOX_IMAGE: image, SANDBOX_NETWORK_MODE: "none" };
	}

	// Debian's docker-registry on the engine's own loopback, port 5000.
	async registry() {
		const dir = path.join(this.run, "registry");
		const config = path.join(this.run, "registry.yml");
		fs.writeFileSync(config, `version: 0.1\nstorage: {filesystem: {rootdirectory: ${dir}}}\nhttp: {addr: "127.0.0.1:5000"}\n`);
		const net = ["-t", String(this.dockerd()), "--net"];
		execFileSync("nsenter", [...net, "ip", "link", "set", "lo", "up"]);
		const child = spawn("nsenter", [...net, "docker-registry", "serve", config], { stdio: "ignore" });
		child.ended = once(child, "exit");
		await until("the registry", 10000, () => execFileSync("nsenter", [...net, "curl", "-sf", "http://127.0.0.1:5000/v2/"]));
		return child;
	}

	dockerd() {
		return this.child.pid; // unshare has become it
	}

	async down(signal = "SIGTERM") {
		if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill(signal);
		await this.child.ended;
		await this.containerdGone();
	}

	// What runs under our folder in spite of that: shims whose engine was killed.
	killShims() {
		for (const pid of fs.readdirSync("/proc").filter((n) => /^\d+$/.test(n)))
			try {
				if (!fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(this.run + "/exec")) continue;
				for (const child of fs.readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" "))
					if (child) process.kill(Number(child), "SIGKILL");
				process.kill(Number(pid), "SIGKILL");
			} catch {
				// ended meanwhile
			}
	}

	async stop() {
		await this.down();
		this.killShims();
		await until("the engine's mounts to go", 5000, () => {
			const ours = (l) => l.includes(this.run) || l.includes(path.join(this.top, "data"));
			const mounts = fs.readFileSync("/proc/self/mountinfo", "utf8").split("\n").filter(ours);
			for (const m of mounts) execFileSync("umount", ["-l", m.split(" ")[4]], { stdio: "ignore" });
			return mounts.length === 0;
		});
		fs.rmSync(this.run, { recursive: true, force: true });
		this.lock.stdin.end();
		await once(this.lock, "exit");
	}
}

export class Podman extends Engine {
	name = "podman";

	command() {
		const file = (name, text) => {
			const where = path.join(this.run, name);
			fs.writeFileSync(where, text);
			return where;
		};
		// crun refuses hybrid control groups; a container may not ask for more files
		// than this process has.
		const files = execFileSync("bash", ["-c", "ulimit -Hn"]).toString().trim();
		return {
			file: "unshare",
			args: ["--net", "podman", "--tmpdir", path.join(this.run, "tmp"), "--network-config-dir", path.join(this.run, "net"),
				"system", "service", "-t", "0", `unix://${this.socket}`],
			env: {
				CONTAINERS_CONF: file("containers.conf", `[containers]\ndefault_ulimits = ["nofile=${files}:${files}", "nproc=4096:4096"]\n` +
					'[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n'),
				CONTAINERS_STORAGE_CONF: file("storage.conf", `[storage]\ndriver = "overlay"\nrunroot = "${this.run}/exec"\ngraphroot = "${this.top}/data"\n`),
			},
		};
	}
}

// A stopped server's sandboxes are stopped and keep their files; their data folder is
// gone, so they go too. Anything else that is left is a fault.
export async function checkLeft(engine) {
	const all = JSON.parse((await ask(engine.socket, "GET", "/containers/json?all=1")).text);
	for (const c of all) await ask(engine.socket, "DELETE", `/containers/${c.Id}?force=1&v=1`);
	const volumes = JSON.parse((await ask(engine.socket, "GET", "/volumes")).text).Volumes ?? [];
	const left = all.filter((c) => c.State !== "exited").map((c) => `${c.Names[0]} ${c.State}`);
	left.push(...volumes.map((v) => `volume ${v.Name}`));
	if (left.length > 0) throw new Error(`left in the engine: ${left.join(", ")}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
	const args = process.argv.slice(2);
	const engine = await (args[0] === "--podman" ? Podman : Engine).start();
	if (args[0] === "--podman") args.shift();
	let code = 1;
	try {
		await engine.import();
		const child = spawn(args[0], args.slice(1), {
			stdio: "inherit",
			env: { ...process.env, MCP_TEST_ENV: JSON.stringify(engine.env), MCP_TEST_ENGINE: engine.socket },
		});
		const [ended] = await once(child, "exit");
		await checkLeft(engine);
		code = ended ?? 1;
	} finally {
		await engine.stop();
	}
	process.exitCode = code;
}
