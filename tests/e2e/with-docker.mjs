// SPDX-License-Identifier: MIT
// Runs a command with an engine of its own at hand, and the suites' servers set to use
// it:   node with-docker.mjs [--podman|--gvisor|--tcp|--rootless] COMMAND [ARG...]
// The engine has a socket, data folder and network namespace of its own, so that one
// which is already on the machine is never touched, nor its bridge and firewall. The
// sandboxes' image is the local backend's root file system, imported once and kept in
// the data folder of the cache.
import { spawn, spawnSync, execFileSync } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import path from "node:path";
import tls from "node:tls";
import { fileURLToPath } from "node:url";
import { tryKill, until } from "./rig.mjs";
import { asUser } from "./rootless.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const cache = process.env.MCP_TEST_CACHE ?? "/var/cache/mcp-sandboxd-test";
const image = "mcp-sandbox:test";
const uidBase = "1879048192";

// One request to an engine, by its socket or {host, port}; {status, text}.
export function ask(at, method, where, body, headers = {}) {
	return new Promise((resolve, reject) => {
		const r = http.request({ ...(typeof at === "string" ? { socketPath: at } : at), method, path: where, headers: body ? { "content-type": "application/json", ...headers } : headers }, (answer) => {
			let text = "";
			answer.setEncoding("utf8").on("data", (d) => (text += d)).on("end", () => resolve({ status: answer.statusCode, text }));
		});
		r.on("error", reject);
		r.end(body && (Buffer.isBuffer(body) ? body : JSON.stringify(body)));
	});
}

export class Engine {
	name = "docker";
	firewall = false; // of its own network namespace
	relays = []; // with a kill()
	ports = new Map();
	carried = new Set(); // the connections that carry() carries

	get data() {
		return path.join(this.top, "data");
	}

	// Becomes the program, with a network namespace of its own: ip netns would leave a
	// name behind, unshare leaves nothing.
	alone(...args) {
		return { file: "unshare", args: ["--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", ...args] };
	}

	command() {
		return this.alone("dockerd", "-H", `unix://${this.socket}`,
			"--data-root", this.data, "--exec-root", path.join(this.run, "exec"),
			"--pidfile", path.join(this.run, "pid"), `--iptables=${this.firewall}`, "--ip6tables=false", ...this.more);
	}

	// more: arguments of the engine besides; top: where its data are
	static async start(more = [], top) {
		const engine = new this();
		engine.more = more;
		engine.top = top ?? path.join(cache, engine.name);
		engine.run = fs.mkdtempSync("/run/mcp-test-engine-");
		engine.socket = path.join(engine.run, "engine.sock");
		fs.mkdirSync(engine.top, { recursive: true, mode: 0o700 });
		// Two engines on one data folder would ruin it.
		engine.lock = spawn("flock", [path.join(engine.top, "lock"), "sh", "-c", "echo locked; exec cat"], { stdio: ["pipe", "pipe", "inherit"] });
		await once(engine.lock.stdout, "data");
		try {
			await engine.clear();
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

	// What a test that was killed has left on these data, whose lock we have: two would
	// wait for each other.
	async clear() {
		const left = () => fs.readdirSync("/proc").filter((n) => /^\d+$/.test(n)).filter((pid) => {
			try {
				const argv = fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
				return argv.includes("--data-root") && argv.includes(this.data);
			} catch {
				return false; // ended meanwhile
			}
		});
		for (const pid of left()) for (const signal of ["SIGTERM", "SIGCONT"]) tryKill(Number(pid), signal);
		await until("an engine that was left to end", 60000, () => left().length === 0);
	}

	// Also after a kill(): the engine again, on the same folders. It gives its containerd
	// 15 seconds, which may be too few on a busy machine.
	async up() {
		for (let tries = 1; ; tries++) {
			try {
				return await this.tryUp();
			} catch (error) {
				if (tries === 5 || !/timeout waiting for containerd/.test(error.message)) throw error;
				await this.containerdGone();
			}
		}
	}

	async tryUp() {
		const log = path.join(this.run, "log");
		const out = fs.openSync(log, "a");
		const { file, args, env } = this.command();
		// It is in a session of its own, and ends with us all the same.
		this.child = spawn("setpriv", ["--pdeathsig", "TERM", file, ...args], { stdio: ["ignore", out, out], detached: true, env: { ...process.env, ...env } });
		fs.closeSync(out);
		this.child.ended = once(this.child, "exit");
		await until("the engine", 180000, async () => {
			if (this.child.exitCode !== null) return true;
			return (await ask(this.socket, "GET", "/_ping")).status === 200;
		});
		if (this.child.exitCode !== null) throw new Error(`the engine ended:\n${fs.readFileSync(log, "utf8").slice(-4000)}`);
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
		await this.tagLatest(name, tag);
	}

	// Podman takes the tag of an import for latest.
	tagLatest(name, tag) {
		return ask(this.socket, "POST", `/images/${name}:latest/tag?repo=${name}&tag=${tag}`);
	}

	get env() {
		return { SANDBOX_BACKEND: "docker", DOCKER_HOST: `unix://${this.socket}`, SANDBOX_IMAGE: image, SANDBOX_NETWORK_MODE: "none" };
	}

	// Becomes the program, in the engine's network namespace.
	within(...args) {
		return ["nsenter", ["-t", String(this.dockerd()), "--net", ...args]];
	}

	// An image of some megabytes: the shell and a few programs of this machine. A bare one
	// knows nothing of our user and our folders.
	async tiny(name = "mcp-tiny", { bare } = {}) {
		const dir = path.join(this.run, "tiny");
		const programs = ["bash", "cat", "head", "id", "ls", "sha256sum", "sleep", "tr", "true"].map((p) => `/usr/bin/${p}`);
		const libraries = String(execFileSync("ldd", programs)).match(/\/\S*lib\S*\.so\S*/g).map((l) => l.replace(/:$/, ""));
		for (const file of new Set([...programs, ...libraries])) {
			const to = path.join(dir, file.replace(/^\/lib/, "/usr/lib"));
			fs.mkdirSync(path.dirname(to), { recursive: true });
			fs.copyFileSync(fs.realpathSync(file), to);
			fs.chmodSync(to, 0o755);
		}
		fs.symlinkSync("bash", path.join(dir, "usr/bin/sh"));
		for (const link of ["bin", "lib", "lib64"]) fs.symlinkSync(`usr/${link}`, path.join(dir, link));
		fs.mkdirSync(path.join(dir, "etc"));
		if (!bare)
			fs.writeFileSync(path.join(dir, "etc/passwd"), "root:x:0:0::/root:/bin/bash\nsandbox:x:1000:1000::/workspace:/bin/bash\n");
		for (const owned of bare ? [] : ["workspace", "artifacts", "tmp"]) {
			fs.mkdirSync(path.join(dir, owned));
			fs.chownSync(path.join(dir, owned), 1000, 1000);
		}
		const body = execFileSync("tar", ["-C", dir, "-c", "."], { maxBuffer: 1 << 28 });
		fs.rmSync(dir, { recursive: true });
		const r = await ask(this.socket, "POST", `/images/create?fromSrc=-&repo=${name}&tag=1`, body, { "content-type": "application/x-tar" });
		if (r.status !== 200 || r.text.includes('"error"')) throw new Error(r.text);
		await this.tagLatest(name, "1");
		return `${name}:1`;
	}

	// Debian's docker-registry on the engine's own loopback, port 5000; with a password
	// for `user`, or open.
	async registry(password) {
		const dir = path.join(this.run, "registry");
		const config = path.join(this.run, "registry.yml");
		let text = `version: 0.1\nstorage: {filesystem: {rootdirectory: ${dir}}}\nhttp: {addr: "127.0.0.1:5000"}\n`;
		if (password) {
			const hash = execFileSync("perl", ["-e", 'print crypt(shift, q($2b$05$abcdefghijklmnopqrstuu))', password]);
			fs.writeFileSync(path.join(this.run, "htpasswd"), `user:${hash}\n`);
			text += `auth: {htpasswd: {realm: test, path: ${path.join(this.run, "htpasswd")}}}\n`;
		}
		fs.writeFileSync(config, text);
		const child = spawn(...this.within("docker-registry", "serve", config), { stdio: "ignore" });
		child.ended = once(child, "exit");
		await until("the registry", 10000, () => execFileSync(...this.within("curl", "-s", "http://127.0.0.1:5000/v2/")));
		return child;
	}

	// A port of this machine's loopback that leads to one of the engine's.
	async port(n) {
		if (this.ports.has(n)) return this.ports.get(n);
		const socket = path.join(this.run, `port-${n}`);
		const relay = `const net = require("net");
			net.createServer({ allowHalfOpen: true }, (a) => {
				const b = net.connect({ port: ${n}, host: "127.0.0.1", allowHalfOpen: true });
				for (const [x, y] of [[a, b], [b, a]]) x.on("error", () => y.destroy()).pipe(y);
			}).listen(process.argv[1], () => console.log("up"));`;
		const child = spawn(...this.within(process.execPath, "-e", relay, socket), { stdio: ["ignore", "pipe", "inherit"] });
		this.relays.push(child);
		await once(child.stdout, "data");
		this.ports.set(n, await this.carry(socket));
		return this.ports.get(n);
	}

	// A port of the loopback that leads to a unix socket, through TLS when options are given.
	async carry(socketPath = this.socket, options) {
		const carry = (socket) => {
			const to = net.connect({ path: socketPath, allowHalfOpen: true });
			for (const [a, b] of [[socket, to], [to, socket]]) a.on("error", () => b.destroy()).pipe(b);
			this.carried.add(socket);
			socket.on("close", () => this.carried.delete(socket));
		};
		const listener = (options ? tls.createServer(options, carry) : net.createServer({ allowHalfOpen: true }, carry)).listen(0, "127.0.0.1");
		await once(listener, "listening");
		this.relays.push({ kill: () => listener.close() });
		return listener.address().port;
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
		for (const relay of this.relays) relay.kill();
		await this.down();
		this.killShims();
		await until("the engine's mounts to go", 5000, () => {
			const ours = (l) => l.includes(this.run) || l.includes(this.data);
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
			...this.alone("podman", "--tmpdir", path.join(this.run, "tmp"), "--network-config-dir", path.join(this.run, "net"),
				"system", "service", "-t", "0", `unix://${this.socket}`),
			env: {
				CONTAINERS_CONF: file("containers.conf", `[containers]\ndefault_ulimits = ["nofile=${files}:${files}", "nproc=4096:4096"]\n` +
					'[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n'),
				CONTAINERS_STORAGE_CONF: file("storage.conf", `[storage]\ndriver = "overlay"\nrunroot = "${this.run}/exec"\ngraphroot = "${this.data}"\n`),
			},
		};
	}
}

export class RootlessPodman extends asUser(Podman) {
	name = "podman-rootless";

	static missing() {
		return false;
	}
}

// The script comes with Debian's docker.io; rootlesskit and slirp4netns with their own.
export class RootlessDocker extends asUser(Engine) {
	name = "docker-rootless";

	static missing() {
		return ["/usr/share/docker.io/contrib/dockerd-rootless.sh", "/usr/bin/rootlesskit"].some((f) => !fs.existsSync(f)) && "there is no rootless Docker";
	}

	unlimited = "1"; // it wants control groups of version 2 and a systemd of the user

	alone(program, ...args) {
		return super.alone("env", `PATH=${process.env.PATH}:/usr/share/docker.io/contrib`, "dockerd-rootless.sh", ...args);
	}

	dockerd() {
		return Number(fs.readFileSync(path.join(this.run, "pid"), "utf8"));
	}

	// Its parents end with it.
	async down(signal = "SIGTERM") {
		const runs = this.child.exitCode === null && this.child.signalCode === null;
		if (runs && !fs.existsSync(path.join(this.run, "pid"))) this.child.kill("SIGKILL"); // it never came up
		else if (runs) process.kill(this.dockerd(), signal);
		await this.child.ended;
		await this.containerdGone();
	}
}

// Docker over TCP, as an engine of another machine: the agent is reached by an exec.
export class Remote extends Engine {
	async import() {
		await super.import();
		this.host = `tcp://127.0.0.1:${await this.carry()}`;
	}

	get env() {
		return { ...super.env, DOCKER_HOST: this.host };
	}
}

// Docker with gVisor for a runtime.
export class Gvisor extends Engine {
	command() {
		const config = path.join(this.run, "daemon.json");
		// What root installs is to last; limits and networks it cannot have everywhere.
		const runtimeArgs = ["--overlay2=none", "--ignore-cgroups", "--network=none"];
		fs.writeFileSync(config, JSON.stringify({ runtimes: { runsc: { path: "/usr/bin/runsc", runtimeArgs } } }));
		this.more = ["--config-file", config];
		return super.command();
	}

	get env() {
		return { ...super.env, SANDBOX_RUNTIME: "runsc" };
	}
}

// A stopped server's sandboxes are stopped and keep their files; their data folder is
// gone, so they go too. Anything else that is left is a fault.
export async function checkLeft(engine) {
	const all = JSON.parse((await ask(engine.socket, "GET", "/containers/json?all=1")).text);
	for (const c of all) await ask(engine.socket, "DELETE", `/containers/${c.Id}?force=1&v=1`);
	const volumes = JSON.parse((await ask(engine.socket, "GET", "/volumes")).text).Volumes ?? [];
	const left = all.filter((c) => c.State !== "exited").map((c) => `${c.Names[0]} ${c.State}`);
	for (const v of volumes) await ask(engine.socket, "DELETE", `/volumes/${v.Name}?force=1`);
	left.push(...volumes.map((v) => `volume ${v.Name}`));
	if (left.length > 0) throw new Error(`left in the engine: ${left.join(", ")}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
	const args = process.argv.slice(2);
	const kinds = { "--podman": Podman, "--gvisor": Gvisor, "--tcp": Remote, "--rootless": RootlessDocker };
	const engine = await (kinds[args[0]] ?? Engine).start();
	if (kinds[args[0]]) args.shift();
	let code = 1;
	try {
		await engine.import();
		const child = spawn(args[0], args.slice(1), {
			stdio: "inherit",
			env: { ...process.env, MCP_TEST_ENV: JSON.stringify(engine.env), MCP_TEST_ENGINE: engine.socket, MCP_TEST_UNLIMITED: engine.unlimited ?? "" },
		});
		const [ended] = await once(child, "exit");
		await checkLeft(engine);
		code = ended ?? 1;
	} finally {
		await engine.stop();
	}
	process.exitCode = code;
}
