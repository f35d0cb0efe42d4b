// SPDX-License-Identifier: MIT
// Runs a command with a Kubernetes cluster of its own at hand, and the suites' servers set
// to use it:   node with-kubernetes.mjs COMMAND [ARG...]
// The cluster is tests/kubernetes/cluster: real, of one node, gone with this process. The
// server has the rights of deploy/kubernetes' service account and no others.
import { spawn, execFile, execFileSync } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { fileURLToPath } from "node:url";
import { Server, repo, traces, until } from "./rig.mjs";

const cache = process.env.MCP_TEST_CACHE ?? "/var/cache/mcp-sandboxd-test";
const script = path.join(repo, "tests/kubernetes/cluster");
const execute = promisify(execFile);
export const namespace = "mcp-sandboxes";
export const image = "registry.local/mcp-sandbox:test";

export class Cluster {
	// MCP_TEST_CLUSTER: the folder of one that is up already, and stays up.
	static async start() {
		const c = new Cluster();
		if (process.env.MCP_TEST_CLUSTER) {
			c.dir = process.env.MCP_TEST_CLUSTER;
			await c.open(path.join(c.dir, "admin.conf"));
			return c;
		}
		c.dir = path.join(cache, "kubernetes/cluster");
		fs.mkdirSync(path.dirname(c.dir), { recursive: true });
		// Two clusters in one folder would ruin each other.
		c.lock = spawn("flock", [`${c.dir}.lock`, "sh", "-c", "echo locked; exec cat"], { stdio: ["pipe", "pipe", "inherit"] });
		await once(c.lock.stdout, "data");
		execFileSync(script, ["down", c.dir]); // of a test that was killed
		// The sandboxes' image is made from what the local backend makes at its first start.
		if (!fs.existsSync(path.join(cache, "images/default/rootfs"))) await (await Server.start({ SANDBOX_BACKEND: "local" })).stop();
		// Its standard input is its life: it ends with us, however we end.
		c.child = spawn(script, ["hold", c.dir], { stdio: ["pipe", "pipe", "inherit"], detached: true });
		c.child.ended = once(c.child, "exit");
		let out = "";
		c.child.stdout.on("data", (d) => (out += d));
		try {
			await until("the cluster", 15 * 60000, () => {
				if (c.child.exitCode !== null) throw new Error("the cluster ended");
				return out.endsWith("\n");
			});
			await c.open(out.trim());
		} catch (error) {
			await c.stop();
			throw error;
		}
		return c;
	}

	async open(admin) {
		this.bin = fs.readFileSync(path.join(this.dir, "run/bin"), "utf8").trim();
		this.admin = admin;
		await this.deploy();
	}

	kubectl(...args) {
		return execFileSync(path.join(this.bin, "kubectl"), ["--kubeconfig", this.admin, ...args],
			{ encoding: "utf8", maxBuffer: 1 << 26, stdio: ["ignore", "pipe", "pipe"] });
	}

	async json(...args) {
		const r = await execute(path.join(this.bin, "kubectl"), ["--kubeconfig", this.admin, ...args, "-o", "json"], { maxBuffer: 1 << 26 });
		return JSON.parse(r.stdout);
	}

	// Until the API server says so; kubectl watches.
	async wait(kind, name, what, seconds = 60) {
		await execute(path.join(this.bin, "kubectl"), ["--kubeconfig", this.admin, "-n", namespace, "wait", kind, name, `--for=${what}`, `--timeout=${seconds}s`]);
	}

	apply(object) {
		execFileSync(path.join(this.bin, "kubectl"), ["--kubeconfig", this.admin, "apply", "--server-side", "--force-conflicts", "-f", "-"],
			{ input: typeof object === "string" ? object : JSON.stringify(object), stdio: ["pipe", "ignore", "inherit"] });
	}

	// What an administrator does first, but for the server itself, which runs here.
	async deploy() {
		const all = this.kubectl("kustomize", path.join(repo, "deploy/kubernetes/base"));
		const wanted = all.split(/^---$/m).filter((d) => /^kind: (Namespace|ServiceAccount|Role|RoleBinding|LimitRange|ResourceQuota|NetworkPolicy)$/m.test(d));
		this.apply(wanted.join("\n---\n"));
		await until("the default service account", 20000, () => this.json("-n", namespace, "get", "serviceaccount", "default"));
		this.kubeconfig = path.join(this.dir, "server.conf");
		this.writeKubeconfig(this.kubeconfig, { tokenFile: this.writeToken() });
	}

	// A token of the server's service account, in a file as in a pod.
	writeToken(name = "token", ...args) {
		const file = path.join(this.dir, name);
		fs.writeFileSync(`${file}.new`, this.kubectl("-n", "mcp-sandboxd", "create", "token", "mcp-sandboxd", ...args), { mode: 0o600 });
		fs.renameSync(`${file}.new`, file);
		return file;
	}

	writeKubeconfig(file, user, server) {
		const config = JSON.parse(this.kubectl("config", "view", "--raw", "-o", "json"));
		config.users[0].user = user;
		if (server) config.clusters[0].cluster.server = server;
		fs.writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
		return file;
	}

	get cache() {
		return cache;
	}

	get server() {
		return JSON.parse(this.kubectl("config", "view", "-o", "json")).clusters[0].cluster.server;
	}

	// kill and start for its programs: etcd, kube-apiserver, kubelet, containerd, ...
	program(verb, name, ...args) {
		execFileSync(script, [verb, this.dir, name, ...args]);
	}

	// A command in the cluster's namespaces; its output.
	inside(...command) {
		return execFileSync(script, ["exec", this.dir, ...command], { encoding: "utf8" });
	}

	// The pid of one of them on this side of its namespaces.
	hostPid(name) {
		return Number(fs.readdirSync("/proc").filter((n) => /^\d+$/.test(n)).find((pid) => {
			try {
				const [file, ...args] = fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
				return path.basename(file) === name && args.some((a) => a.includes(`${this.dir}/`));
			} catch {
				return false; // ended meanwhile
			}
		}));
	}

	// The other programs go on by themselves when the API server is back, after a minute.
	async apiserverReady() {
		await until("the API server", 60000, () => this.kubectl("get", "--raw", "/readyz") === "ok");
		for (const name of ["kube-controller-manager", "kube-scheduler", "kubelet"]) {
			this.program("stop", name);
			this.program("start", name);
		}
		await this.nodeReady();
	}

	async nodeReady() {
		await until("the node", 60000, async () => {
			const { spec, status } = await this.json("get", "node", "n1");
			return !spec.taints && status.conditions.some((c) => c.type === "Ready" && c.status === "True");
		});
	}

	get env() {
		return { SANDBOX_BACKEND: "kubernetes", KUBECONFIG: this.kubeconfig, SANDBOX_IMAGE: image, KUBERNETES_SANDBOX_NAMESPACE: namespace,
			// The one node has few processors.
			KUBERNETES_CPU_REQUEST_PERCENT: "1", KUBERNETES_MEMORY_REQUEST_PERCENT: "3" };
	}

	async stop() {
		if (!this.child) return;
		const number = path.join(this.dir, "run/number");
		const name = fs.existsSync(number) ? `mcpk${fs.readFileSync(number, "utf8").trim()}` : "mcpk-none";
		this.child.stdin.end();
		await this.child.ended;
		const left = traces([`${this.dir}/`], name, this.dir);
		if (fs.existsSync(`/sys/class/net/${name}`)) left.push(`network ${name}`);
		execFileSync(script, ["down", this.dir]);
		this.lock.stdin.end();
		await once(this.lock, "exit");
		if (left.length) throw new Error(`left behind:\n${left.join("\n")}`);
	}
}

// A stopped server's pods keep running and keep their files. All of them belong to its
// ConfigMap: when that goes, because the data folder is gone, they go too. Anything else
// that is left is a fault.
export async function checkLeft(cluster) {
	cluster.kubectl("-n", namespace, "delete", "configmaps", "-l", "app.kubernetes.io/managed-by=mcp-sandboxd");
	await until("all that the servers owned to go", 60000, async () =>
		["pods", "persistentvolumeclaims"].every((kind) => cluster.kubectl("-n", namespace, "get", kind, "-o", "name") === ""));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
	const args = process.argv.slice(2);
	const cluster = await Cluster.start();
	let code = 1;
	try {
		const child = spawn(args[0], args.slice(1), {
			stdio: "inherit",
			env: { ...process.env, MCP_TEST_ENV: JSON.stringify(cluster.env), MCP_TEST_CLUSTER: cluster.dir },
		});
		const [ended] = await once(child, "exit");
		await checkLeft(cluster);
		code = ended ?? 1;
	} finally {
		await cluster.stop();
	}
	process.exitCode = code;
}
