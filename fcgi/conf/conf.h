/* SPDX-License-Identifier: MIT */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/*
 * The configuration: one immutable struct, filled from the environment (which
 * wins) and a .env file by one table in conf/table.c. Each row of that table
 * names variable, type, default, range and meaning; docs/configuration.md and
 * .env.example are printed from it. Owned by who loaded it; strings are owned
 * by the struct. Read from any thread, written by none after conf_load().
 */
struct conf {
	/* general */
	char *data_dir;       /* DATA_DIR: state; absolute after conf_load() */
	char *run_dir;        /* RUN_DIR: sockets; "" = /run/mcp-sandboxd/<instance> */
	char *artifacts_dir;  /* ARTIFACTS_DIR: "" = <data_dir>/artifacts */
	char *listen_address; /* LISTEN_ADDRESS 127.0.0.1: only for the stand-alone nginx
			       */
	int64_t port;         /* PORT 8080 */
	char *mcp_path;       /* MCP_PATH /mcp */
	char *public_url;     /* PUBLIC_URL: "" = by each request's scheme and Host */
	char *edge_user;      /* EDGE_USER mcp-sandboxd */
	int64_t edges;        /* EDGE_PROCESSES 2 */
	int64_t edge_threads; /* EDGE_THREADS 4 */
	char *allowed_hosts;  /* ALLOWED_HOSTS: comma list; loopback names always pass */
	char *cors_allow_origins; /* CORS_ALLOW_ORIGINS: comma list or * */
	bool debug_ui;            /* DEBUG_UI_ENABLED false */

	/* sandboxes */
	char *backend;      /* SANDBOX_BACKEND local|docker|kubernetes */
	char *image;        /* SANDBOX_IMAGE default */
	char *network_mode; /* SANDBOX_NETWORK_MODE bridge|none|a network's name */
	bool no_new_privileges;
	char *cap_drop, *cap_add; /* comma lists without CAP_ */
	bool caps_strict, caps_bypass_check;
	char *oci_runtime; /* OCI_RUNTIME: "" = first of runc, crun, runsc that passes */
	char *agent_path;  /* AGENT_PATH: "" = beside the server's binary */
	char *rootfs_mirror; /* ROOTFS_MIRROR: "" = as the host's apt */
	char *rootfs_suite;  /* ROOTFS_SUITE: "" = the host's release */
	int64_t uid_base;    /* SANDBOX_UID_BASE: first host uid of the mapped range */
	int64_t default_ttl_s, max_ttl_s, reaper_interval_ms;
	double default_cpu_cores;
	int64_t default_memory_mb, default_pids;
	int64_t warm_pool_size; /* WARM_POOL_SIZE 0: none */
	int64_t default_command_timeout_ms;
	int64_t kill_grace_ms; /* KILL_GRACE_MS 2000: between TERM and KILL */
	int64_t stdout_max_bytes, stderr_max_bytes;

	/* engines */
	char *docker_host; /* DOCKER_HOST: "" = the usual sockets */
	bool docker_tls_verify;
	char *docker_cert_path; /* DOCKER_CERT_PATH: folder of ca, cert and key.pem */
	bool auto_build_image;  /* AUTO_BUILD_SANDBOX_IMAGE true */
	char *dockerfile_path;  /* SANDBOX_DOCKERFILE_PATH: "" = the server's own */
	char *sandbox_runtime;  /* SANDBOX_RUNTIME: "" = the engine's default */
	bool read_only;         /* SANDBOX_READ_ONLY false */
	int64_t disk_mb;        /* SANDBOX_DISK_MB 0: no limit */

	/* kubernetes */
	char *kubeconfig;     /* KUBECONFIG: "" = the pod's service account */
	char *kube_context;   /* KUBERNETES_CONTEXT: "" = the current one */
	char *kube_namespace; /* KUBERNETES_SANDBOX_NAMESPACE: "" = our own */
	char *kube_container; /* KUBERNETES_SANDBOX_CONTAINER_NAME sandbox */
	char *kube_label_prefix;
	char *kube_architectures; /* comma list; "" = those there is an agent for */
	char *kube_node_selector, *kube_tolerations, *kube_pull_secrets;
	char *kube_priority_class;
	char *kube_pod_template; /* KUBERNETES_POD_TEMPLATE: a file; "" = none */
	char *kube_volume_size;  /* KUBERNETES_VOLUME_SIZE: "" = no claim */
	char *kube_storage_class;
	int64_t kube_cpu_request_percent, kube_memory_request_percent;
	int64_t kube_start_s, kube_unschedulable_s;

	/* runs, limits */
	int64_t max_runs, max_run_age_s;
	bool default_await_completion;
	int64_t default_await_timeout_ms;
	int64_t await_answer_max_ms;  /* AWAIT_ANSWER_MAX_MS 50000 */
	int64_t await_task_after_ms;  /* AWAIT_TASK_AFTER_MS 5000 */
	int64_t max_body_bytes;       /* MAX_BODY_BYTES 8 MiB */
	int64_t max_parked;           /* MAX_PARKED_REQUESTS per edge 8192 */
	int64_t max_queued_runs;      /* MAX_QUEUED_RUNS per tenant 1000 */
	int64_t max_active_sandboxes; /* MAX_SANDBOXES 1000 */
	int64_t max_commands;         /* MAX_COMMANDS per run 100 */
	int64_t session_idle_s;       /* SESSION_IDLE_SECONDS 7 days */
	int64_t max_sessions;         /* MAX_SESSIONS 100000 */
	int64_t artifacts_max_bytes, artifacts_max_files, artifacts_max_file_bytes;
	char *store_synchronous; /* STORE_SYNCHRONOUS NORMAL|FULL */

	/* logging, policy */
	bool log_http, log_mcp, log_toolcalls;
	bool confirm_delete;
	bool mirror_identifier;
	bool denylist_enabled;
	char *denylist_patterns;
	char *tools; /* TOOLS: comma list of the offered ones; "" = all */
	int64_t result_images_max, result_image_max_bytes, result_links_max;
	bool tool_desc_overrides_enabled;
	char *tool_desc_override[3], *tool_desc_append[3]; /* run, delete, restart */
};

/* The names that TOOLS takes, in the order of tools/list; NULL-terminated. */
extern const char *const conf_tool_names[];

/*
 * Reads `env_file` (NULL or absent: none), then the process's environment over
 * it. Any bad value fails with the variable's name, the value and the rule.
 */
int conf_load(const char *env_file, struct conf *ret, struct err *e);
void conf_release(struct conf *c);

/* Parses one .env text of n bytes; pure. cb gets key and value, NUL-terminated. */
int conf_parse_env_text(const char *p, size_t n,
			int (*cb)(void *arg, const char *key, const char *value,
				  struct err *e),
			void *arg, struct err *e);

/* Print docs/configuration.md and .env.example. */
void conf_print_markdown(FILE *f);
void conf_print_env_example(FILE *f);
/* Print "NAME=value" of what is in force, shell-quoted; for scripts. */
void conf_print_effective(const struct conf *c, FILE *f);

#endif
