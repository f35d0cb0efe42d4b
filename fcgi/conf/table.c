/* SPDX-License-Identifier: MIT */
#include "conf/table.h"

#include "conf/check.h"
#include "conf/conf.h"

#define AT(member) offsetof(struct conf, member)
#define TEXT(n, m, d, c, v, t)                                                           \
	{                                                                                \
		n, CONF_TEXT, AT(m), d, 0, 0, NULL, c, v, t                              \
	}
#define PATH(n, m, d, t)                                                                 \
	{                                                                                \
		n, CONF_PATH, AT(m), d, 0, 0, NULL, check_plain_path, "path", t          \
	}
#define CHOICE(n, m, d, w, c, t)                                                         \
	{                                                                                \
		n, CONF_CHOICE, AT(m), d, 0, 0, w, c, NULL, t                            \
	}
#define INT(n, m, d, lo, hi, t)                                                          \
	{                                                                                \
		n, CONF_INT, AT(m), d, lo, hi, NULL, NULL, NULL, t                       \
	}
#define DECIMAL(n, m, d, lo, hi, t)                                                      \
	{                                                                                \
		n, CONF_DECIMAL, AT(m), d, lo, hi, NULL, NULL, NULL, t                   \
	}
#define BOOL(n, m, d, t)                                                                 \
	{                                                                                \
		n, CONF_BOOL, AT(m), d, 0, 0, NULL, NULL, NULL, t                        \
	}

#define MIB     ((int64_t)1024 * 1024)
#define GIB     (1024 * MIB)
#define DAY_MS  ((int64_t)24 * 3600 * 1000)
#define YEARS_S ((int64_t)10 * 365 * 24 * 3600)

/*
 * What stands where a command may: after the start, ; & | ( or sudo. A pattern
 * that begins with it does not hit the word inside an argument.
 */
#define COMMAND "(^|[;&|(])[[:space:]]*(sudo[[:space:]]+)?"
#define ENDS    "([[:space:]]|$)"
#define DENYLIST_DEFAULT                                                                 \
	COMMAND "u?mount[[:space:]]+[^|;&<>[:space:]]," COMMAND                          \
		"(nsenter|insmod|modprobe|rmmod|kexec|reboot|shutdown|poweroff|"         \
		"halt)" ENDS "," COMMAND "mkfs(\\.[a-z0-9]+)?" ENDS "," COMMAND          \
		"rm[[:space:]]+(-[-a-zA-Z]+[[:space:]]+)*/[*]?" ENDS ","                 \
		":\\(\\)[[:space:]]*\\{[[:space:]]*:[[:space:]]*\\|[[:space:]]*:,"       \
		"(docker|containerd)\\.sock"                                             \
		",169\\.254\\.169\\.254"

static const struct conf_row general[] = {
	PATH("DATA_DIR", data_dir, "data",
	     "Folder of all state: database, artifacts, images, sandboxes. Every folder "
	     "above it must be open to others (mode o+x), because nginx and the "
	     "sandboxes' users read below it."),
	TEXT("RUN_DIR", run_dir, "", check_run_dir, "absolute path",
	     "Folder of the sockets. Empty: /run/mcp-sandboxd/<instance>."),
	PATH("ARTIFACTS_DIR", artifacts_dir, "",
	     "Folder of the artifacts. Empty: artifacts below DATA_DIR."),
	TEXT("LISTEN_ADDRESS", listen_address, "127.0.0.1", check_address, "IP address",
	     "Address of the stand-alone nginx."),
	INT("PORT", port, "8080", 1, 65535, "Port of the stand-alone nginx."),
	TEXT("MCP_PATH", mcp_path, "/mcp", check_mcp_path, "path of a url",
	     "Where MCP is served."),
	TEXT("PUBLIC_URL", public_url, "", check_public_url, "url",
	     "How clients reach the server, for the urls in answers. Empty: by the "
	     "scheme "
	     "and Host of each request."),
	TEXT("EDGE_USER", edge_user, "mcp-sandboxd", check_user, "user name",
	     "System user of the edge processes, which read what comes from outside."),
	INT("EDGE_PROCESSES", edges, "2", 1, 64, "Edge processes."),
	INT("EDGE_THREADS", edge_threads, "4", 1, 64, "Threads of each edge process."),
	TEXT("ALLOWED_HOSTS", allowed_hosts, "", check_hosts, "comma list",
	     "Host headers to accept; names of the loopback always pass. * accepts "
	     "every host."),
	TEXT("CORS_ALLOW_ORIGINS", cors_allow_origins, "", check_origins, "comma list",
	     "Origins of web pages that may call the server, or *."),
	BOOL("DEBUG_UI_ENABLED", debug_ui, "false", "Serve the debug page at /debug."),
	CHOICE("STORE_SYNCHRONOUS", store_synchronous, "NORMAL", "NORMAL|FULL", NULL,
	       "SQLite's synchronous. NORMAL: a crash of the machine may lose the last "
	       "moments, a crash of the server nothing. FULL: neither; slower."),
};

static const struct conf_row sandboxes[] = {
	CHOICE("SANDBOX_BACKEND", backend, "local", "local|docker|kubernetes", NULL,
	       "What runs the sandboxes: this machine itself, a Docker-compatible "
	       "engine, or a Kubernetes cluster."),
	TEXT("SANDBOX_IMAGE", image, "default", check_image, "name",
	     "Image of new sandboxes. local: a folder below DATA_DIR/images. docker and "
	     "kubernetes: an image's name; default is mcp-sandbox:latest."),
	TEXT("SANDBOX_NETWORK_MODE", network_mode, "bridge", check_network,
	     "bridge, none or the name of a network",
	     "bridge: local: public addresses only; not the host, not private ranges, "
	     "not other sandboxes; docker: a network of the server's own, on which "
	     "sandboxes do not reach each other. none: no network. docker: or the name "
	     "of one of the engine's networks. kubernetes: a label of the pods, for "
	     "network policies to choose by. host is refused."),
	BOOL("SANDBOX_NO_NEW_PRIVILEGES", no_new_privileges, "true",
	     "Set-uid programs give nothing in a sandbox."),
	TEXT("SANDBOX_CAP_DROP", cap_drop, "ALL", NULL, "comma list",
	     "Capabilities taken away first."),
	TEXT("SANDBOX_CAP_ADD", cap_add, "SETUID,SETGID,CHOWN,FOWNER,DAC_OVERRIDE", NULL,
	     "comma list",
	     "Capabilities of root in a sandbox, inside its user namespace. It has KILL "
	     "besides."),
	BOOL("SANDBOX_CAPS_STRICT", caps_strict, "true",
	     "Refuse a SANDBOX_CAP_ADD that helps out of a sandbox."),
	BOOL("SANDBOX_CAPS_BYPASS_CHECK", caps_bypass_check, "false",
	     "Start although SANDBOX_CAPS_STRICT would refuse."),
	TEXT("OCI_RUNTIME", oci_runtime, "", check_runtime, "name or absolute path",
	     "The OCI runtime. Empty: the first of runc, crun, runsc that works here. "
	     "With "
	     "runsc (gVisor) see security.md."),
	TEXT("AGENT_PATH", agent_path, "", check_plain_path, "path",
	     "The agent's program. Empty: mcp-sandboxd-agent beside the server's."),
	TEXT("ROOTFS_MIRROR", rootfs_mirror, "", check_mirror, "url",
	     "Debian mirror for the default image. Empty: what the host's apt uses."),
	TEXT("ROOTFS_SUITE", rootfs_suite, "", check_suite, "name",
	     "Release of the default image, such as bookworm; empty: this host's own."),
	INT("SANDBOX_UID_BASE", uid_base, "1879048192", 65536, 4294836224,
	    "First of the 65536 host uids and gids that stand for 0 to 65535 in a "
	    "sandbox."),
	INT("DEFAULT_TTL_SECONDS", default_ttl_s, "3600", 1, YEARS_S,
	    "How long an unused sandbox lives."),
	INT("MAX_TTL_SECONDS", max_ttl_s, "604800", 1, YEARS_S,
	    "The longest ttl_seconds a client may ask for."),
	INT("REAPER_INTERVAL_MS", reaper_interval_ms, "5000", 1000, DAY_MS,
	    "How often expired sandboxes are looked for."),
	DECIMAL("DEFAULT_CPU_CORES", default_cpu_cores, "1", 0, 1024,
		"Processors of a sandbox; 0: no limit."),
	INT("DEFAULT_MEMORY_MB", default_memory_mb, "1024", 0, 16777216,
	    "Memory of a sandbox in MiB; 0: no limit."),
	INT("DEFAULT_PIDS", default_pids, "256", 0, 4194304,
	    "Processes and threads of a sandbox; 0: no limit."),
	INT("WARM_POOL_SIZE", warm_pool_size, "0", 0, 1000,
	    "Sandboxes that stand ready, so that a new identifier is served at once "
	    "instead of after a create; 0: none. Each costs what an idle sandbox "
	    "costs: local 0.2 MB, docker the processes of a container."),
	INT("DEFAULT_COMMAND_TIMEOUT_MS", default_command_timeout_ms, "120000", 1, DAY_MS,
	    "Time of a command that names none."),
	INT("KILL_GRACE_MS", kill_grace_ms, "2000", 0, 600000,
	    "Between TERM and KILL when a command is ended."),
	INT("DEFAULT_STDOUT_MAX_BYTES", stdout_max_bytes, "1048576", 0, GIB,
	    "Standard output kept of a command; the rest is dropped and said so."),
	INT("DEFAULT_STDERR_MAX_BYTES", stderr_max_bytes, "1048576", 0, GIB,
	    "The same for standard error."),
};

static const struct conf_row engines[] = {
	TEXT("DOCKER_HOST", docker_host, "", check_docker_host,
	     "unix:///path, tcp://host:port, http(s)://host:port",
	     "The engine. Empty: the first socket found of Docker, rootless Docker, "
	     "rootless Podman, Podman."),
	BOOL("DOCKER_TLS_VERIFY", docker_tls_verify, "false",
	     "tcp: with TLS, and only to the engine that ca.pem vouches for."),
	TEXT("DOCKER_CERT_PATH", docker_cert_path, "", check_plain_path, "path",
	     "Folder of ca.pem, cert.pem and key.pem; with it tcp means TLS. Empty: "
	     "~/.docker, when DOCKER_TLS_VERIFY is set."),
	BOOL("AUTO_BUILD_SANDBOX_IMAGE", auto_build_image, "true",
	     "Build a missing image from a Dockerfile. It is pulled instead when this is "
	     "false, or when SANDBOX_IMAGE has a name and SANDBOX_DOCKERFILE_PATH is "
	     "empty."),
	TEXT("SANDBOX_DOCKERFILE_PATH", dockerfile_path, "", check_plain_path, "path",
	     "What a missing image is built from; see images.md for what it can COPY. "
	     "Empty: the server's own recipe."),
	TEXT("SANDBOX_RUNTIME", sandbox_runtime, "", check_runtime, "name",
	     "The engine's runtime for sandboxes, such as runsc; kubernetes: the name of "
	     "a RuntimeClass. Empty: the default."),
	BOOL("SANDBOX_READ_ONLY", read_only, "false",
	     "A root file system that nothing can be written to; /workspace, /artifacts "
	     "and /tmp are volumes."),
	INT("SANDBOX_DISK_MB", disk_mb, "0", 0, 1000000000,
	    "Disk of a sandbox in MiB, where the engine's storage driver can limit it; "
	    "kubernetes: its ephemeral storage. 0: no limit."),
};

static const struct conf_row kubernetes[] = {
	TEXT("KUBECONFIG", kubeconfig, "", check_plain_path, "path",
	     "A kubeconfig file. Empty: the service account of the pod the server runs "
	     "in."),
	TEXT("KUBERNETES_CONTEXT", kube_context, "", NULL, "name",
	     "The context of the kubeconfig. Empty: its current one."),
	TEXT("KUBERNETES_SANDBOX_NAMESPACE", kube_namespace, "", check_kube_name, "name",
	     "Namespace of the sandboxes' pods. Empty: POD_NAMESPACE, else the "
	     "context's or the service account's, else default."),
	TEXT("KUBERNETES_SANDBOX_CONTAINER_NAME", kube_container, "sandbox",
	     check_kube_container, "name", "Name of the container in a sandbox's pod."),
	TEXT("KUBERNETES_LABEL_PREFIX", kube_label_prefix, "mcp.", check_kube_prefix,
	     "text",
	     "What the names of our labels and annotations begin with, such as "
	     "example.org/."),
	TEXT("KUBERNETES_ARCHITECTURES", kube_architectures, "", check_kube_architectures,
	     "amd64, arm64 or both",
	     "Processors of the nodes that sandboxes may be on, the preferred one "
	     "first. Empty: those that an agent is installed for."),
	TEXT("KUBERNETES_NODE_SELECTOR", kube_node_selector, "", check_kube_selector,
	     "label=value comma list", "Nodes that sandboxes may be on."),
	TEXT("KUBERNETES_TOLERATIONS", kube_tolerations, "", check_kube_tolerations,
	     "key=value:effect or key:effect comma list",
	     "Taints of nodes that sandboxes tolerate."),
	TEXT("KUBERNETES_IMAGE_PULL_SECRETS", kube_pull_secrets, "", check_kube_names,
	     "comma list", "Secrets of the namespace that the image is pulled with."),
	TEXT("KUBERNETES_PRIORITY_CLASS", kube_priority_class, "", check_kube_subdomain,
	     "name", "PriorityClass of sandboxes."),
	TEXT("KUBERNETES_POD_TEMPLATE", kube_pod_template, "", check_plain_path, "path",
	     "A file with metadata and spec of a pod, YAML or JSON, for everything "
	     "else; see kubernetes.md for what wins."),
	TEXT("KUBERNETES_VOLUME_SIZE", kube_volume_size, "", check_kube_quantity,
	     "quantity such as 10Gi",
	     "A persistent volume of that size holds each identifier's /workspace, so "
	     "that it survives the loss of a node. Empty: none."),
	TEXT("KUBERNETES_STORAGE_CLASS", kube_storage_class, "", check_kube_subdomain,
	     "name", "Its StorageClass. Empty: the cluster's default."),
	INT("KUBERNETES_CPU_REQUEST_PERCENT", kube_cpu_request_percent, "25", 1, 100,
	    "How much of its processors is set aside for a sandbox."),
	INT("KUBERNETES_MEMORY_REQUEST_PERCENT", kube_memory_request_percent, "100", 1,
	    100, "The same for its memory."),
	INT("KUBERNETES_START_SECONDS", kube_start_s, "180", 5, 3600,
	    "How long a sandbox's pod may take to start, the pull of its image "
	    "included."),
	INT("KUBERNETES_UNSCHEDULABLE_SECONDS", kube_unschedulable_s, "30", 1, 3600,
	    "How long a pod that fits on no node waits for one. More where an "
	    "autoscaler adds nodes."),
};

static const struct conf_row limits[] = {
	INT("MAX_RUNS", max_runs, "10000", 1, 1000000000, "Runs kept in the database."),
	INT("MAX_RUN_AGE_SECONDS", max_run_age_s, "604800", 60, YEARS_S,
	    "How long an ended run is kept."),
	BOOL("DEFAULT_AWAIT_COMPLETION", default_await_completion, "false",
	     "await_completion of a call that does not name it."),
	INT("DEFAULT_AWAIT_TIMEOUT_MS", default_await_timeout_ms, "30000", 1, DAY_MS,
	    "await_timeout_ms of a call that does not name it."),
	INT("AWAIT_ANSWER_MAX_MS", await_answer_max_ms, "50000", 100, DAY_MS,
	    "An awaited run is answered by then with its run_id, whatever was asked for, "
	    "unless the client follows its progress: many clients give up after 60 s."),
	INT("AWAIT_TASK_AFTER_MS", await_task_after_ms, "5000", 0, DAY_MS,
	    "A client of 2026-07-28 that declares the tasks extension is given an "
	    "awaited "
	    "run as a task when it takes longer than this."),
	INT("MAX_BODY_BYTES", max_body_bytes, "8388608", 1024, 24 * MIB,
	    "Largest request body; more is answered 413."),
	INT("MAX_PARKED_REQUESTS", max_parked, "8192", 1, 1000000,
	    "Waiting requests (streams, awaited runs) of each edge process."),
	INT("MAX_QUEUED_RUNS", max_queued_runs, "1000", 1, 1000000,
	    "Runs that wait, for each tenant."),
	INT("MAX_SANDBOXES", max_active_sandboxes, "1000", 1, 100000,
	    "Sandboxes at one time."),
	INT("MAX_COMMANDS", max_commands, "100", 1, 10000, "Commands of one run."),
	INT("SESSION_IDLE_SECONDS", session_idle_s, "604800", 60, YEARS_S,
	    "How long an unused MCP session lives."),
	INT("MAX_SESSIONS", max_sessions, "100000", 1, 10000000,
	    "MCP sessions that are kept; of more, those unused the longest end."),
	INT("ARTIFACTS_MAX_EXTRACT_BYTES", artifacts_max_bytes, "268435456", 0,
	    1024 * 1024 * MIB, "Artifacts of one run in bytes; 0: no limit."),
	INT("ARTIFACTS_MAX_EXTRACT_FILES", artifacts_max_files, "5000", 0, 10000000,
	    "Artifacts of one run; 0: no limit."),
	INT("ARTIFACTS_MAX_EXTRACT_FILE_BYTES", artifacts_max_file_bytes, "67108864", 0,
	    1024 * 1024 * MIB, "One artifact in bytes; 0: no limit."),
};

static const struct conf_row policy[] = {
	BOOL("LOG_HTTP_REQUESTS", log_http, "false", "Log each HTTP request."),
	BOOL("LOG_MCP_REQUESTS", log_mcp, "false", "Log each MCP request's method."),
	BOOL("LOG_TOOLCALLS", log_toolcalls, "false",
	     "Log each tool call: its name and time, not its arguments."),
	BOOL("MIRROR_IDENTIFIER", mirror_identifier, "false",
	     "Clients of 2026-07-28 must repeat a tool's identifier in the header "
	     "Mcp-Param-Identifier, so that nginx can log it and limit by it."),
	BOOL("CONFIRM_DELETE", confirm_delete, "false",
	     "Before delete_sandbox and restart_sandbox the user is asked, through a "
	     "client that declares elicitation; through others they are refused."),
	BOOL("DENYLIST_ENABLED", denylist_enabled, "true",
	     "Refuse commands that match DENYLIST_PATTERNS. It spares an agent useless "
	     "tries; it is no security boundary."),
	TEXT("DENYLIST_PATTERNS", denylist_patterns, DENYLIST_DEFAULT, check_patterns,
	     "comma list",
	     "POSIX extended regular expressions, matched on a command's shell text, or "
	     "on its argv joined with blanks. A comma inside brackets or braces, or "
	     "after a backslash, belongs to its expression."),
	TEXT("TOOLS", tools, "", check_tools, "comma list",
	     "The tools that are offered. Empty: all of run_sandbox, get_run, "
	     "cancel_run, "
	     "list_sandboxes, restart_sandbox, delete_sandbox, write_file, read_file, "
	     "list_files."),
	INT("RESULT_IMAGES_MAX", result_images_max, "3", 0, 100,
	    "Pictures among the artifacts that a run's result shows as pictures; 0: "
	    "none."),
	INT("RESULT_IMAGE_MAX_BYTES", result_image_max_bytes, "262144", 1, 4 * MIB,
	    "The largest picture that a result shows."),
	INT("RESULT_LINKS_MAX", result_links_max, "20", 0, 1000,
	    "Artifacts that a run's result links to; 0: none."),
	BOOL("TOOL_DESC_OVERRIDES_ENABLED", tool_desc_overrides_enabled, "true",
	     "Use the TOOL_DESC_ variables."),
#define TOOL_DESC(tool, i)                                                               \
	TEXT("TOOL_DESC_" tool "_SANDBOX_OVERRIDE", tool_desc_override[i], "", NULL,     \
	     "text", "Replaces the description of the tool."),                           \
		TEXT("TOOL_DESC_" tool "_SANDBOX_APPEND", tool_desc_append[i], "", NULL, \
		     "text", "Is added to the description of the tool.")
	TOOL_DESC("RUN", 0),
	TOOL_DESC("DELETE", 1),
	TOOL_DESC("RESTART", 2),
};

#define SECTION(title, rows)                                                             \
	{                                                                                \
		title, rows, sizeof(rows) / sizeof *(rows)                               \
	}
const struct conf_section conf_sections[] = {
	SECTION("General", general),        SECTION("Sandboxes", sandboxes),
	SECTION("Docker", engines),         SECTION("Kubernetes", kubernetes),
	SECTION("Runs and limits", limits), SECTION("Logging and policy", policy),
};
const size_t conf_nsections = sizeof conf_sections / sizeof *conf_sections;

const struct conf_row *conf_row_at(size_t i)
{
	size_t s;

	for (s = 0; s < conf_nsections; s++) {
		if (i < conf_sections[s].n)
			return &conf_sections[s].rows[i];
		i -= conf_sections[s].n;
	}
	return NULL;
}
