// SPDX-License-Identifier: MIT
// An engine as an ordinary user's own. The user is known to the engine's processes
// alone: in their mount namespace the files of users are copies, and the devices that
// udev opens to everyone are there for everyone.
import fs from "node:fs";
import path from "node:path";
import { until } from "./rig.mjs";

const user = "mcp-test-rootless";

const private_files = `set -e
cd "$1"; uid=$2 top=$3; shift 3
mkdir -p home data devices
for file in passwd group subuid subgid; do cp -L /etc/$file $file; done
echo "${user}:x:$uid:$uid::$PWD/home:/bin/sh" >>passwd
echo "${user}:x:$uid:" >>group
echo "${user}:1900000000:65536" | tee -a subuid >>subgid
for file in passwd group subuid subgid; do mount --bind $file /etc/$file; done
mount -t tmpfs tmpfs devices
mknod -m 666 devices/tun c 10 200; mount --bind devices/tun /dev/net/tun
[ ! -e /dev/fuse ] || { mknod -m 666 devices/fuse c 10 229; mount --bind devices/fuse /dev/fuse; }
mount --bind "$top/data" data
ip link set lo up
exec setpriv --reuid=$uid --regid=$uid --init-groups env HOME=$PWD/home XDG_RUNTIME_DIR=$PWD "$@"`;

export const asUser = (Kind) => class extends Kind {
	// Whose the data are, if some were kept; a process of this machine has no such number.
	get uid() {
		const data = fs.statSync(path.join(this.top, "data"), { throwIfNoEntry: false });
		return data?.uid || 200000000 + process.pid;
	}

	get data() {
		return path.join(this.run, "data");
	}

	alone(...args) {
		const { uid } = this;
		fs.mkdirSync(path.join(this.top, "data"), { recursive: true });
		fs.mkdirSync(path.join(this.run, "home"), { recursive: true });
		for (const dir of [this.run, path.join(this.run, "home"), path.join(this.top, "data")]) fs.chownSync(dir, uid, uid);
		return { file: "unshare", args: ["--net", "--mount", "sh", "-c", private_files, "sh", this.run, String(uid), this.top, ...args] };
	}

	// Podman's process that holds the user namespace stays otherwise.
	async stop() {
		const { uid } = this;
		await super.stop();
		await until("the user's processes to end", 5000, () => {
			const own = fs.readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && fs.statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid === uid);
			for (const pid of own) process.kill(Number(pid), "SIGKILL");
			return own.length === 0;
		});
	}
};
