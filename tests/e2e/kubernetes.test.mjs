// SPDX-License-Identifier: MIT
// What is the Kubernetes backend's own: what people, nodes and the API server do to its
// pods, and that deploy/kubernetes is what a cluster takes.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import path from "node:path";
import { after, before, test } from "node:test";
import { repo } from "./rig.mjs";
import { Cluster, checkLeft } from "./with-kubernetes.mjs";

let cluster;

before(async () => {
	cluster = await Cluster.start();
});
after(async () => {
	try {
		await checkLeft(cluster);
	} finally {
		await cluster?.stop();
	}
});

for (const variant of ["base", "nginx-ingress", "docker-sidecar"])
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
