// SPDX-License-Identifier: MIT
// deploy/kubernetes is what a cluster takes, and what is made of it works: with the images
// that its manifests name, built as the documentation says.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { repo, until } from "./rig.mjs";
import { buildImages, dind, image as serverImage } from "./server-image.mjs";
import { Cluster, checkLeft } from "./with-kubernetes.mjs";

let cluster;

before(async () => {
	cluster = await Cluster.start();
});
after(async () => {
	try {
		if (cluster) await checkLeft(cluster);
	} finally {
		await cluster?.stop();
	}
});

for (const variant of ["base", "nginx-ingress", "shards", "docker-sidecar"])
	test(`the API server takes deploy/kubernetes/${variant} without a warning`, () => {
		const yaml = cluster.kubectl("kustomize", path.join(repo, "deploy/kubernetes", variant));
		// The namespaces first: what is in them is checked against them.
		for (const doc of yaml.split(/^---$/m).filter((d) => /^kind: Namespace$/m.test(d))) cluster.apply(doc);
		const r = spawnSync(path.join(cluster.bin, "kubectl"),
			["--kubeconfig", cluster.admin, "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-"], { input: yaml, encoding: "utf8" });
		assert.equal(r.status, 0, r.stderr);
		assert.equal(r.stderr, "");
		assert.match(r.stdout, /statefulset.apps\/mcp-sandboxd serverside-applied \(server dry run\)/);
	});

// The volume of a claim, as a storage class would make it.
const volume = (ns, claim, dir) => cluster.apply({ apiVersion: "v1", kind: "PersistentVolume", metadata: { name: claim, labels: { rig: "deploy" } }, spec: {
	capacity: { storage: "100Gi" }, accessModes: ["ReadWriteOnce"], hostPath: { path: dir, type: "DirectoryOrCreate" },
	claimRef: { namespace: ns, name: claim }, persistentVolumeReclaimPolicy: "Retain" } });
const removeDeployed = (ns) => {
	cluster.kubectl("-n", ns, "delete", "statefulset,pvc", "--all", "--wait=true");
	cluster.kubectl("delete", "pv", "-l", "rig=deploy");
};
const rollout = (ns) => {
	const r = spawnSync(path.join(cluster.bin, "kubectl"), ["--kubeconfig", cluster.admin, "-n", ns, "rollout", "status", "statefulset/mcp-sandboxd", "--timeout=600s"], { encoding: "utf8" });
	const more = () => spawnSync("sh", ["-c", `"$0" --kubeconfig "$1" -n "$2" describe pod mcp-sandboxd-0; "$0" --kubeconfig "$1" -n "$2" logs --all-containers --tail=40 mcp-sandboxd-0`,
		path.join(cluster.bin, "kubectl"), cluster.admin, ns], { encoding: "utf8" }).stdout;
	assert.equal(r.status, 0, r.status === 0 ? "" : `${r.stderr}\n${more()}`);
};

// An identifier's first run by plain HTTP, as scripts/run tells people to.
async function runInside(ns, shell) {
	const { status } = await cluster.json("-n", ns, "get", "pod", "mcp-sandboxd-0");
	const post = `curl -sS --max-time 120 http://${status.podIP}:8080/mcp -H 'content-type: application/json'`;
	const hello = { jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "curl", version: "1" } } };
	const call = { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "run_sandbox", arguments: { identifier: "inside", commands: [{ shell }], options: { await_completion: true } } } };
	return cluster.inside("sh", "-c", `S=$(${post} -D- -o/dev/null -d '${JSON.stringify(hello)}' | sed -n 's/\\r$//; s/^mcp-session-id: //ip'); ${post} -H "mcp-session-id: $S" -d '${JSON.stringify(call)}'`);
}

test("the images that deploy/kubernetes names are built and brought to the node", async () => {
	const tars = [serverImage, dind].map((name) => [name, path.join(cluster.dir, `${name.split(":")[0]}.tar`)]);
	await buildImages((docker) => tars.forEach(([name, tar]) => docker("save", "-o", tar, name)));
	for (const [, tar] of tars) {
		cluster.program("import", tar);
		fs.rmSync(tar);
	}
});

test("the server of deploy/kubernetes runs in the cluster with the Role it is given", async () => {
	volume("mcp-sandboxd", "data-mcp-sandboxd-0", path.join(cluster.dir, "volume"));
	cluster.apply(cluster.kubectl("kustomize", path.join(repo, "deploy/kubernetes/base"))
		.replace("SANDBOX_IMAGE: mcp-sandbox:latest", `SANDBOX_IMAGE: ${cluster.env.SANDBOX_IMAGE}`).replace("image: mcp-sandboxd:latest", `image: ${serverImage}`));
	try {
		rollout("mcp-sandboxd");
		assert.match(await runInside("mcp-sandboxd", "echo from a pod"), /"stdout":"from a pod\\n"/);
		const who = cluster.kubectl("-n", "mcp-sandboxd", "exec", "mcp-sandboxd-0", "--", "sh", "-c", "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline; stat -c %u $p; done");
		assert.match(who, /role edge.*10001\n/);
	} finally {
		removeDeployed("mcp-sandboxd");
	}
});

// What root lacks on this machine a privileged container cannot have: such a pod gets a
// runtime that leaves it out.
const thereAre = { apiVersion: "node.k8s.io/v1", kind: "RuntimeClass", metadata: { name: "there-are" }, handler: "there-are" };

test("the server of deploy/kubernetes/docker-sidecar runs with its engine beside it", async () => {
	const ns = "mcp-sandboxd-docker";
	cluster.apply(thereAre);
	for (const name of ["data", "docker"]) volume(ns, `${name}-mcp-sandboxd-0`, path.join(cluster.dir, `sidecar-${name}`));
	cluster.apply(cluster.kubectl("kustomize", path.join(repo, "deploy/kubernetes/docker-sidecar")).replace("image: mcp-sandboxd:latest", `image: ${serverImage}`)
		.replace("image: docker:dind", `image: ${dind}`).replace("automountServiceAccountToken: false", "automountServiceAccountToken: false\n      runtimeClassName: there-are"));
	try {
		// The engine has no image yet: a registry is what it would take one from.
		const engine = (...args) => ["--kubeconfig", cluster.admin, "-n", ns, "exec", "-i", "mcp-sandboxd-0", "-c", "docker", "--", "docker", "-H", "unix:///run/docker/docker.sock", ...args];
		await until("the engine", 300000, () => spawnSync(path.join(cluster.bin, "kubectl"), engine("info")).status === 0);
		const rootfs = path.basename(fs.realpathSync(path.join(cluster.cache, "images/default/rootfs")));
		const tar = fs.openSync(path.join(cluster.cache, `kubernetes/${rootfs}.tar`));
		const r = spawnSync(path.join(cluster.bin, "kubectl"), engine("import", "-", "mcp-sandbox:latest"), { stdio: [tar, "ignore", "inherit"] });
		fs.closeSync(tar);
		assert.equal(r.status, 0);
		rollout(ns);
		assert.match(await runInside(ns, "echo from a container"), /"stdout":"from a container\\n"/);
	} finally {
		removeDeployed(ns);
	}
});
