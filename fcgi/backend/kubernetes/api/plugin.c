/* SPDX-License-Identifier: MIT */
#include "backend/kubernetes/api/plugin.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/base64.h"
#include "base/io.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/proc.h"

enum { PLUGIN_TIMEOUT_MS = 30000, OUTPUT_MAX = 256 * 1024, OFFSET_LEN = 6 };

void kube_ticket_release(struct kube_ticket *t)
{
	free(t->token);
	free(t->cert_pem);
	free(t->key_pem);
	*t = (struct kube_ticket){0};
}

/* ---- what it printed */

/* "+02:00": seconds east of UTC. */
static bool parse_offset(const char *s, int64_t *ret)
{
	static const char digits[] = "0123456789";
	int i, v[5];

	if (strlen(s) != OFFSET_LEN || (*s != '+' && *s != '-') || s[3] != ':')
		return false;
	for (i = 0; i < 5; i++) {
		if (i == 2)
			continue;
		if (!strchr(digits, s[1 + i]))
			return false;
		v[i] = s[1 + i] - '0';
	}
	*ret = ((v[0] * 10 + v[1]) * 60 + v[3] * 10 + v[4]) * (*s == '-' ? -60 : 60);
	return true;
}

/* RFC 3339; the fraction does not matter here. */
static bool parse_time(const char *s, int64_t *ret_ms)
{
	struct tm tm = {0};
	int64_t offset = 0;

	s = strptime(s, "%Y-%m-%dT%H:%M:%S", &tm);
	if (!s)
		return false;
	if (*s == '.')
		s += 1 + strspn(s + 1, "0123456789");
	if (strcmp(s, "Z") != 0 && !parse_offset(s, &offset))
		return false;
	*ret_ms = ((int64_t)timegm(&tm) - offset) * 1000;
	return true;
}

/* A string of a header's kind, or of PEM's. */
static char *dup_member(const json_t *status, const char *key)
{
	const char *s = json_get_string(status, key);

	return s && *s ? xstrdup(s) : NULL;
}

static int read_status(const json_t *status, struct kube_ticket *t, struct err *e)
{
	const char *expires = json_get_string(status, "expirationTimestamp");

	t->token = dup_member(status, "token");
	t->cert_pem = dup_member(status, "clientCertificateData");
	t->key_pem = dup_member(status, "clientKeyData");
	t->expires_ms = INT64_MAX;
	if (!t->cert_pem != !t->key_pem)
		return err_set(e, ERR_INVALID, "it gave a certificate or a key alone");
	if (!t->token && !t->cert_pem)
		return err_set(e, ERR_INVALID, "it gave neither token nor certificate");
	if (t->token && strpbrk(t->token, " \r\n\t"))
		return err_set(e, ERR_INVALID, "its token has a blank in it");
	if (expires && !parse_time(expires, &t->expires_ms))
		return err_set(e, ERR_INVALID, "its expirationTimestamp is no time");
	return 0;
}

int kube_plugin_parse(const char *api_version, struct str text, struct kube_ticket *ret,
		      struct err *e)
{
	struct kube_ticket t = {0};
	AUTO_JSON *root = NULL;
	const char *kind, *version;

	if (json_parse(text.p, text.n, &root, e) < 0)
		return err_wrap(e, "what it printed");
	kind = json_get_string(root, "kind");
	version = json_get_string(root, "apiVersion");
	if (!kind || strcmp(kind, "ExecCredential") != 0 || !version ||
	    strcmp(version, api_version) != 0)
		return err_set(e, ERR_INVALID, "it printed no ExecCredential of %.60s",
			       api_version);
	if (read_status(json_object_get(root, "status"), &t, e) < 0) {
		kube_ticket_release(&t);
		return -1;
	}
	*ret = t;
	return 0;
}

/* ---- how it is run */

static void put_text(json_t *o, const char *key, const char *value)
{
	if (value)
		json_put(o, key, json_must(json_string(value)));
}

static json_t *cluster_info(const struct kubeconfig *k)
{
	json_t *c = json_must(json_object());
	AUTO_BUF ca = BUF_INIT(2 << 20), file = BUF_INIT(1 << 20);
	struct err ignored = ERR_INIT; /* the login will say what is wrong with it */
	const char *pem = k->ca_pem;

	put_text(c, "server", k->server);
	put_text(c, "tls-server-name", k->tls_name);
	put_text(c, "proxy-url", k->proxy);
	if (k->insecure)
		json_put(c, "insecure-skip-tls-verify", json_true());
	if (!pem && k->ca_file && io_read_file(k->ca_file, &file, &ignored) == 0)
		pem = file.p;
	if (pem) {
		base64_add(&ca, pem, strlen(pem));
		put_text(c, "certificate-authority-data", ca.p);
	}
	return c;
}

/* KUBERNETES_EXEC_INFO: who asks, and that nobody sits at a terminal. */
static char *exec_info(const struct kubeconfig *k)
{
	AUTO_JSON *info = json_must(
		json_pack("{s:s,s:s,s:{s:b}}", "apiVersion", k->plugin.api_version,
			  "kind", "ExecCredential", "spec", "interactive", 0));
	AUTO_FREE char *text = NULL;

	if (k->plugin.wants_cluster)
		json_put(json_object_get(info, "spec"), "cluster", cluster_info(k));
	text = json_dumps(info, JSON_COMPACT);
	return xasprintf("KUBERNETES_EXEC_INFO=%s", text);
}

static bool has_name(const char *pair, const char *other)
{
	size_t n = strcspn(other, "=") + 1;

	return strncmp(pair, other, n) == 0;
}

/* Ours, then k's, which wins, then the info. */
static char **make_env(const struct kubeconfig *k)
{
	size_t n = 0, i, room = strv_len(environ) + strv_len(k->plugin.env) + 2;
	char **env = xcalloc(room, sizeof *env), **p, **q;

	for (p = environ; *p; p++) {
		for (q = k->plugin.env; *q && !has_name(*p, *q); q++)
			;
		if (!*q && !has_name(*p, "KUBERNETES_EXEC_INFO="))
			env[n++] = xstrdup(*p);
	}
	for (i = 0; k->plugin.env[i]; i++)
		env[n++] = xstrdup(k->plugin.env[i]);
	env[n] = exec_info(k);
	return env;
}

static int explain(const struct kubeconfig *k, struct err *e)
{
	const char *hint = k->plugin.install_hint;

	return err_wrap(
		e, "the credential plugin of the kubeconfig's context %.60s%s%.150s%s",
		k->context, hint ? " (" : "", hint ? hint : "", hint ? ")" : "");
}

int kube_plugin_run(const struct kubeconfig *k, const int *stop_fd,
		    struct kube_ticket *ret, struct err *e)
{
	char **env = make_env(k);
	struct proc p = {.argv = (const char *const *)k->plugin.argv,
			 .env = (const char *const *)env,
			 .timeout_ms = PLUGIN_TIMEOUT_MS,
			 .stop_fd = stop_fd,
			 .output_max = OUTPUT_MAX};
	AUTO_BUF out = BUF_INIT(OUTPUT_MAX);
	int rc = proc_run_ok(&p, &out, e);

	strv_free(env);
	if (rc == 0)
		rc = kube_plugin_parse(k->plugin.api_version,
				       (struct str){out.p, out.len}, ret, e);
	return rc < 0 ? explain(k, e) : 0;
}
