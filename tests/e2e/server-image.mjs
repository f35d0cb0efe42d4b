// SPDX-License-Identifier: MIT
// The server's image as deploy/docker/server.Dockerfile makes it, and an engine's: built by
// an engine that is started for it, kept in its cache.
import { execFileSync } from "node:child_process";
import { repo } from "./rig.mjs";
import { Engine } from "./with-docker.mjs";

export const image = "mcp-sandboxd:test";
export const base = "mcp-sandbox:test"; // plain Debian, and the sandboxes' image as well
export const dind = "mcp-dind:test"; // that and Debian's engine, in the place of docker:dind

const engineImage = `FROM ${base}
RUN apt-get update && apt-get install -y --no-install-recommends docker.io iptables && rm -rf /var/lib/apt/lists/*
`;

// Packages come from where this machine's come from. It makes no network and no firewall
// rule of its own.
class Online extends Engine {
	alone(file, ...args) {
		return { file, args };
	}
}

export const dockerEnv = (engine) => ({ PATH: process.env.PATH, HOME: "/root", DOCKER_HOST: `unix://${engine.socket}`, DOCKER_BUILDKIT: "0" });

// then(docker): what is to be done with them while that engine runs; docker(...args).
export async function buildImages(then = () => {}) {
	const engine = await Online.start(["--bridge=none"]);
	const env = dockerEnv(engine);
	const docker = (...args) => execFileSync("docker", args, { env, stdio: ["ignore", "ignore", "inherit"] });
	try {
		await engine.import();
		// The first stage has a name so that it is kept for the next time, and old ones go.
		for (const [name, flags] of [[image, ""], [`${image}-build`, " --target=build"]])
			execFileSync("make", ["-s", "-C", repo, "docker-build", `IMAGE=${name}`, `BASE=${base}`, `DOCKER_FLAGS=--network=host${flags}`],
				{ env, stdio: ["ignore", "ignore", "inherit"] });
		execFileSync("docker", ["build", "-q", "--network=host", "-t", dind, "-"], { env, input: engineImage, stdio: ["pipe", "ignore", "inherit"] });
		docker("image", "prune", "-f");
		then(docker);
	} finally {
		await engine.stop();
	}
}
