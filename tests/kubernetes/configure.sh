# shellcheck shell=bash disable=SC2154 # dir, bin, number and node_ip are the caller's
# SPDX-License-Identifier: MIT
# What the programs of a cluster read: certificates, kubeconfigs, settings, and one start
# script each in $dir/run.

# certificate NAME SUBJECT [EXTENSION...]: signed by the cluster's own authority.
certificate() {
	local name=$dir/pki/$1 subject=$2
	shift 2
	openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "$subject" \
		-keyout "$name.key" -out "$name.csr" 2>/dev/null
	openssl x509 -req -in "$name.csr" -CA "$dir/pki/ca.crt" -CAkey "$dir/pki/ca.key" -CAcreateserial \
		-days 3 -out "$name.crt" -extfile <(printf '%s\n' 'extendedKeyUsage=clientAuth,serverAuth' "$@") 2>/dev/null
}

# kubeconfig NAME FILE: the certificate's owner at the API server.
kubeconfig() {
	cat >"$2" <<-EOF
		apiVersion: v1
		kind: Config
		clusters:
		- name: test
		  cluster:
		    server: https://$node_ip:6443
		    certificate-authority-data: $(base64 -w0 "$dir/pki/ca.crt")
		users:
		- name: $1
		  user:
		    client-certificate-data: $(base64 -w0 "$dir/pki/$1.crt")
		    client-key-data: $(base64 -w0 "$dir/pki/$1.key")
		contexts:
		- name: test
		  context: {cluster: test, user: $1}
		current-context: test
	EOF
}

# program NAME COMMAND...: its start script.
program() {
	local name=$1
	shift
	printf '#!/bin/sh\nexec %s\n' "$*" >"$dir/run/$name"
	chmod 755 "$dir/run/$name"
}

configure_pki() {
	mkdir -p "$dir/pki"
	chmod 700 "$dir/pki"
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3 -subj /CN=test-ca \
		-keyout "$dir/pki/ca.key" -out "$dir/pki/ca.crt" 2>/dev/null
	openssl ecparam -name prime256v1 -genkey -noout -out "$dir/pki/accounts.key"
	openssl ec -in "$dir/pki/accounts.key" -pubout -out "$dir/pki/accounts.pub" 2>/dev/null
	certificate apiserver /CN=kube-apiserver \
		"subjectAltName=IP:127.0.0.1,IP:$node_ip,IP:10.96.0.1,DNS:kubernetes.default.svc"
	certificate admin /O=system:masters/CN=admin
	certificate kube-controller-manager /CN=system:kube-controller-manager
	certificate kube-scheduler /CN=system:kube-scheduler
	certificate kubelet /O=system:nodes/CN=system:node:n1
	kubeconfig admin "$dir/admin.conf"
	local name
	for name in kube-controller-manager kube-scheduler kubelet; do
		kubeconfig "$name" "$dir/run/$name.conf"
	done
}

# restrict_oom_score_adj: root without CAP_SYS_RESOURCE may not lower it, and runc dies of
# that with words that tell nothing. The handler there-are: for privileged pods, which ask
# for all capabilities; on a machine whose root lacks some they get those that there are.
configure_containerd() {
	mkdir -p "$dir"/{containerd,cni/net.d}
	cat >"$dir/containerd/config.toml" <<-EOF
		version = 2
		root = "$dir/containerd/root"
		state = "$dir/containerd/state"
		[grpc]
		address = "$dir/containerd/sock"
		[ttrpc]
		address = "$dir/containerd/sock.ttrpc"
		[plugins."io.containerd.internal.v1.opt"]
		path = "$dir/containerd/opt"
		[plugins."io.containerd.grpc.v1.cri"]
		sandbox_image = "registry.local/pause:1"
		stream_server_address = "127.0.0.1"
		stream_server_port = "0"
		restrict_oom_score_adj = true
		[plugins."io.containerd.grpc.v1.cri".containerd]
		snapshotter = "overlayfs"
		default_runtime_name = "runc"
		[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
		runtime_type = "io.containerd.runc.v2"
		[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
		SystemdCgroup = false
		[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.there-are]
		runtime_type = "io.containerd.runc.v2"
		[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.there-are.options]
		SystemdCgroup = false
		BinaryName = "$here/../e2e/runc-all-there-are"
		[plugins."io.containerd.grpc.v1.cri".cni]
		bin_dir = "/usr/lib/cni"
		conf_dir = "$dir/cni/net.d"
	EOF
	cat >"$dir/cni/net.d/10-pods.conflist" <<-EOF
		{"cniVersion": "0.4.0", "name": "pods", "plugins": [
		  {"type": "bridge", "bridge": "pods0", "isGateway": true, "isDefaultGateway": true,
		   "ipam": {"type": "host-local", "dataDir": "$dir/cni/ipam",
		            "ranges": [[{"subnet": "10.244.0.0/16"}]]}},
		  {"type": "portmap", "capabilities": {"portMappings": true}}]}
	EOF
	program containerd containerd --config "$dir/containerd/config.toml"
}

# Version 1 of control groups still counts for the kubelet up to 1.34.
configure_kubelet() {
	: >"$dir/run/resolv.conf"
	cat >"$dir/run/kubelet.yaml" <<-EOF
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		containerRuntimeEndpoint: unix://$dir/containerd/sock
		cgroupDriver: cgroupfs
		cgroupRoot: /mcpk$number
		cgroupsPerQOS: true
		enforceNodeAllocatable: [pods]
		failCgroupV1: false
		failSwapOn: false
		staticPodPath: ""
		podLogsDir: /var/log/pods
		authentication:
		  anonymous: {enabled: false}
		  webhook: {enabled: false}
		  x509: {clientCAFile: $dir/pki/ca.crt}
		authorization: {mode: AlwaysAllow}
		oomScoreAdj: 0
		maxOpenFiles: 20000
		evictionHard: {memory.available: "0%", nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.available: "0%", imagefs.inodesFree: "0%"}
		evictionPressureTransitionPeriod: 1s
		imageGCHighThresholdPercent: 100
		imageMinimumGCAge: 24h
		resolvConf: $dir/run/resolv.conf
		clusterDNS: []
		podPidsLimit: 512
		maxPods: 250
		makeIPTablesUtilChains: false
		nodeStatusUpdateFrequency: 2s
		nodeStatusReportFrequency: 2s
		nodeLeaseDurationSeconds: 10
	EOF
	program kubelet "$bin/kubelet" --config="$dir/run/kubelet.yaml" --kubeconfig="$dir/run/kubelet.conf" \
		--root-dir="/var/lib/kubelet" --cert-dir="$dir/run/kubelet-pki" --hostname-override=n1 --node-ip="$node_ip"
}

# What service accounts do is written to log/audit: it shows which rights are used.
configure_audit() {
	cat >"$dir/run/audit.yaml" <<-EOF
		apiVersion: audit.k8s.io/v1
		kind: Policy
		omitStages: [RequestReceived]
		rules:
		- {level: Metadata, userGroups: ["system:serviceaccounts:mcp-sandboxd"]}
		- {level: None}
	EOF
}

# A node that is silent is found out in seconds, not minutes.
configure_control_plane() {
	program etcd "$bin/etcd" --name=test --data-dir="$dir/etcd/data" --unsafe-no-fsync \
		--listen-client-urls=http://127.0.0.1:2379 --advertise-client-urls=http://127.0.0.1:2379 \
		--listen-peer-urls=http://127.0.0.1:2380 --initial-advertise-peer-urls=http://127.0.0.1:2380 \
		--initial-cluster=test=http://127.0.0.1:2380
	program kube-apiserver "$bin/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 \
		--bind-address=0.0.0.0 --secure-port=6443 --advertise-address="$node_ip" \
		--tls-cert-file="$dir/pki/apiserver.crt" --tls-private-key-file="$dir/pki/apiserver.key" \
		--client-ca-file="$dir/pki/ca.crt" --authorization-mode=Node,RBAC --allow-privileged=true \
		--service-account-issuer=https://kubernetes.default.svc \
		--service-account-signing-key-file="$dir/pki/accounts.key" \
		--service-account-key-file="$dir/pki/accounts.pub" --service-cluster-ip-range=10.96.0.0/16 \
		--kubelet-client-certificate="$dir/pki/admin.crt" --kubelet-client-key="$dir/pki/admin.key" \
		--kubelet-preferred-address-types=InternalIP --enable-admission-plugins=NodeRestriction \
		--default-not-ready-toleration-seconds=5 --default-unreachable-toleration-seconds=5 \
		--audit-policy-file="$dir/run/audit.yaml" --audit-log-path="$dir/log/audit"
	program kube-controller-manager "$bin/kube-controller-manager" \
		--kubeconfig="$dir/run/kube-controller-manager.conf" --leader-elect=false \
		--use-service-account-credentials=true --allocate-node-cidrs=false \
		--service-account-private-key-file="$dir/pki/accounts.key" --root-ca-file="$dir/pki/ca.crt" \
		--cluster-signing-cert-file= --node-monitor-period=1s --node-monitor-grace-period=12s
	program kube-scheduler "$bin/kube-scheduler" --kubeconfig="$dir/run/kube-scheduler.conf" --leader-elect=false
}

configure() {
	configure_pki
	configure_containerd
	configure_kubelet
	configure_audit
	configure_control_plane
}
