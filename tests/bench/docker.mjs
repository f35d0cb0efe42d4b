// SPDX-License-Identifier: MIT
// The rows of the docker backend, beside what the same engine does by itself.
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import http from "node:http";
import { Server, run } from "../e2e/rig.mjs";
import { Engine, checkLeft } from "../e2e/with-docker.mjs";

// `docker exec` as a program does it: two calls over kept connections, the output read
// to its end.
async function dockerExec(socketPath, container, n) {
	const agent = new http.Agent({ keepAlive: true });
	const call = async (where, body) => {
		const r = http.request({ socketPath, agent, method: "POST", path: where, headers: { "content-type": "application/json" } });
		r.end(JSON.stringify(body));
		const [answer] = await once(r, "response");
		let text = "";
		for await (const d of answer) text += d;
		return text;
	};
	const took = [];
	for (let i = 0; i < n; i++) {
		const start = process.hrtime.bigint();
		const { Id } = JSON.parse(await call(`/containers/${container}/exec`, { Cmd: ["true"], AttachStdout: true, AttachStderr: true }));
		await call(`/exec/${Id}/start`, {});
		took.push(Number(process.hrtime.bigint() - start) / 1000);
	}
	agent.destroy();
	return took;
}

function dockerRun(engine, n) {
	const took = [];
	for (let i = 0; i < n; i++) {
		const start = process.hrtime.bigint();
		execFileSync("docker", ["-H", `unix://${engine.socket}`, "run", "--rm", "--network", "none", engine.env.SANDBOX_IMAGE, "true"]);
		took.push(Number(process.hrtime.bigint() - start) / 1000);
	}
	return took;
}

async function timed(n, each) {
	const took = [];
	for (let i = 0; i < n; i++) {
		const start = process.hrtime.bigint();
		await each(i);
		took.push(Number(process.hrtime.bigint() - start) / 1000);
	}
	return took;
}

const remove = (client, identifier) => client.callTool({ name: "delete_sandbox", arguments: { identifier } });

// lib: {row, ms, times, median, tool, warmFile, warmPool, crowd, syncMs, quick}
export async function docker(lib, spawned) {
	const { row, ms, times, median, tool, quick } = lib;
	const engine = await Engine.start();
	try {
		await engine.import();
		const server = await Server.start({ ...engine.env, ARTIFACTS_MAX_EXTRACT_FILES: "20000" });
		const client = await server.connect("bench");
		try {
			const { sandbox_name } = await run(client, "bench", [{ argv: ["true"] }]);
			const exec = median(await dockerExec(engine.socket, sandbox_name, quick ? 20 : 60));
			row("docker: `docker exec` of true through its API, p50", ms(exec));
			const [file, done] = lib.warmFile(server, client);
			tool("bench_http", server.port, 1, 200, file, done);
			const one = tool("bench_http", server.port, 1, quick ? 300 : 3000, file, done);
			row("docker: awaited argv true, 1 connection, p50", `${ms(one.p50_us)} = ${times(one.p50_us, spawned.p50_us)} posix_spawn, ${(exec / one.p50_us).toFixed(0)} x faster than exec`,
				"<= 2.5 x, and 20 x faster", one.p50_us <= 2.5 * spawned.p50_us && exec >= 20 * one.p50_us);
			row("docker: the same, p99", ms(one.p99_us));
			const many = tool("bench_http", server.port, 64, quick ? 300 : 3000, file, done);
			row("docker: awaited argv true, 64 connections", `${many.per_s.toFixed(0)}/s, p50 ${ms(many.p50_us)}, p99 ${ms(many.p99_us)}`);
			const n = quick ? 5 : 12;
			const cold = median(await timed(n, (i) => run(client, `cold-${i}`, [{ argv: ["true"] }])));
			const plain = median(dockerRun(engine, n));
			row("docker: new sandbox with its first command, p50", `${ms(cold)} = ${times(cold, plain)} docker run (${ms(plain)})`);
			for (let i = 0; i < n; i++) await remove(client, `cold-${i}`);
			await lib.crowd("docker: ", client);
			const make = "mkdir -p /artifacts/d && cd /artifacts/d && for i in $(seq 10000); do echo $i > f$i; done";
			const first = lib.syncMs(await run(client, "bench", [make]));
			const again = lib.syncMs(await run(client, "bench", ["echo changed > /artifacts/d/f1"]));
			row("docker: 10 000 artifacts, first copy; 1 changed", `${first} ms; ${again} ms = ${((100 * again) / first).toFixed(1)} %`, "<= 5 %", again <= 0.05 * first);
		} finally {
			await client.close();
			await server.stop({ check: false });
		}
		await lib.warmPool("docker: ", engine.env, spawned);
		await checkLeft(engine);
	} finally {
		await engine.stop();
	}
}

