// SPDX-License-Identifier: MIT
// Real work: root installs a compiler, a project is built and tested, a report and a
// picture are downloaded, and after a restart of the server the work goes on.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, run } from "./rig.mjs";

let server, client;
const id = "work";

before(async () => {
	server = await Server.start();
	client = await server.connect();
});
after(async () => {
	await client?.close();
	await server?.stop();
});

const makefile = `all: calc
calc: calc.c
	gcc -Wall -O2 -o calc calc.c
test: calc
	test "$$(./calc 6 7)" = 42
`;
const source = `#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	return argc == 3 ? printf("%d\\n", atoi(argv[1]) * atoi(argv[2])) < 0 : 1;
}
`;

test("root installs packages of the distribution", async () => {
	const { final } = await run(client, id, [
		{ shell: "apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev make", timeout_ms: 600000 },
	], { as_user: "root", await_timeout_ms: 170000 });
	assert.equal(final.state, "completed", JSON.stringify(final).slice(-2000));
});

test("a project is built and its tests run", async () => {
	const { final } = await run(client, id, [
		{ shell: 'mkdir -p /workspace/calc && cd /workspace/calc && printf %s "$MAKEFILE" >Makefile && printf %s "$SOURCE" >calc.c && git init -q .', env: { MAKEFILE: makefile, SOURCE: source } },
		{ shell: "make && make test", cwd: "/workspace/calc" },
	]);
	assert.equal(final.state, "completed", JSON.stringify(final));
});

test("python with venv leaves a report and a picture", async () => {
	const picture = `import struct, zlib
w, h = 64, 48
raw = b"".join(b"\\0" + b"".join(bytes((x * 4 % 256, y * 5 % 256, 99)) for x in range(w)) for y in range(h))
def chunk(t, d): return struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d))
open("/artifacts/picture.png", "wb").write(b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))
open("/artifacts/report.md", "w").write("# It works\\n")
`;
	const { final } = await run(client, id, [
		"python3 -m venv /workspace/venv && /workspace/venv/bin/pip --version",
		{ argv: ["/workspace/venv/bin/python", "-c", picture] },
	]);
	assert.equal(final.state, "completed", JSON.stringify(final));
	const r = await server.get(`/artifacts/${id}/latest/picture.png`);
	assert.equal(r.headers.get("content-type"), "image/png");
	const png = Buffer.from(await r.arrayBuffer());
	assert.equal(png.readUInt32BE(16), 64);
	assert.equal(await (await server.get(`/artifacts/${id}/latest/report.md`)).text(), "# It works\n");
});

test("after a restart of the server the work goes on", async () => {
	await server.restart();
	const { final } = await run(client, id, [{ shell: "touch calc.c && make test && ./calc 3 5", cwd: "/workspace/calc" }]);
	assert.equal(final.state, "completed", JSON.stringify(final));
	assert.match(final.commands[0].stdout, /15\n$/);
});
