/* SPDX-License-Identifier: MIT */
#include "backend/kubernetes/api/kubeconfig.h"

#include <string.h>

#include "base/auto.h"
#include "base/base64.h"
#include "base/io.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/yaml.h"

enum { FILE_MAX = 1 << 20, LIST_MAX = 256 };

void kubeconfig_release(struct kubeconfig *k)
{
	free(k->context);
	free(k->server);
	free(k->tls_name);
	free(k->proxy);
	free(k->ns);
	free(k->ca_pem);
	free(k->ca_file);
	free(k->cert_pem);
	free(k->cert_file);
	free(k->key_pem);
	free(k->key_file);
	free(k->token);
	free(k->token_file);
	free(k->username);
	free(k->password);
	free(k->as);
	free(k->as_uid);
	strv_free(k->as_groups);
	free(k->plugin.api_version);
	strv_free(k->plugin.argv);
	strv_free(k->plugin.env);
	free(k->plugin.install_hint);
	*k = (struct kubeconfig){0};
}

/* ---- members */

/* One section: what it is called in errors, and its object. */
struct part {
	const char *what, *name;
	const json_t *obj;
};

static int wrong(const struct part *p, const char *key, const char *why, struct err *e)
{
	return err_set(e, ERR_INVALID, "the kubeconfig's %s %.100s: %s %s", p->what,
		       p->name, key, why);
}

/* What goes into a header or a url has no control character. */
static bool is_printable(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

/* An absent, null or empty member leaves *ret NULL. */
static int get_text(const struct part *p, const char *key, char **ret, struct err *e)
{
	const json_t *v = json_object_get(p->obj, key);

	if (!v || json_is_null(v))
		return 0;
	if (!json_is_string(v))
		return wrong(p, key, "is no string", e);
	if (!is_printable(json_string_value(v)))
		return wrong(p, key, "has a control character", e);
	if (json_string_length(v) > 0)
		*ret = xstrdup(json_string_value(v));
	return 0;
}

static int get_bool(const struct part *p, const char *key, bool *ret, struct err *e)
{
	const json_t *v = json_object_get(p->obj, key);

	if (v && !json_is_boolean(v) && !json_is_null(v))
		return wrong(p, key, "is neither true nor false", e);
	*ret = json_is_true(v);
	return 0;
}

static int get_path(const struct part *p, const char *key, const char *dir, char **ret,
		    struct err *e)
{
	char *path;

	if (get_text(p, key, ret, e) < 0)
		return -1;
	if (*ret && **ret != '/') {
		path = xasprintf("%s/%s", dir, *ret);
		free(*ret);
		*ret = path;
	}
	return 0;
}

/* Base64 of PEM text, which may be written on several lines. */
static bool decode_pem(const char *p, size_t n, struct buf *pem)
{
	AUTO_BUF text = BUF_INIT(FILE_MAX);
	struct err ignored = ERR_INIT;
	size_t i;

	for (i = 0; i < n; i++)
		if (!strchr(" \t\r\n", p[i]) || !p[i])
			buf_add(&text, &p[i], 1);
	return base64_decode(pem, text.p, text.len, &ignored) == 0 && buf_ok(pem) &&
	       !memchr(pem->p, '\0', pem->len);
}

/* KEY-data holds it and wins; else KEY names a file. */
static int get_pem(const struct part *p, const char *key, const char *dir, char **ret_pem,
		   char **ret_file, struct err *e)
{
	AUTO_FREE char *data_key = xasprintf("%s-data", key);
	AUTO_BUF pem = BUF_INIT(FILE_MAX);
	const json_t *data = json_object_get(p->obj, data_key);

	if (!data || json_is_null(data) ||
	    (json_is_string(data) && json_string_length(data) == 0))
		return get_path(p, key, dir, ret_file, e);
	if (!json_is_string(data) ||
	    !decode_pem(json_string_value(data), json_string_length(data), &pem))
		return wrong(p, data_key, "is no base64 of PEM text", e);
	*ret_pem = xstrdup(pem.p);
	return 0;
}

/* A list of strings as a vector; absent: NULL. */
static int get_list(const struct part *p, const char *key, char ***ret, struct err *e)
{
	const json_t *list = json_object_get(p->obj, key), *v;
	size_t i, n = json_array_size(list);

	if (!list || json_is_null(list))
		return 0;
	if (!json_is_array(list) || n > LIST_MAX)
		return wrong(p, key, "is no list, or a very long one", e);
	*ret = xcalloc(n + 1, sizeof **ret);
	for (i = 0; i < n; i++) {
		v = json_array_get(list, i);
		if (!json_is_string(v) || !is_printable(json_string_value(v)))
			return wrong(p, key, "has an item that is no plain string", e);
		(*ret)[i] = xstrdup(json_string_value(v));
	}
	return 0;
}

/* ---- sections */

/* clusters, users and contexts are lists of {name, <what>: {...}}. */
static int find_part(const json_t *root, const char *list_key, const char *what,
		     const char *name, struct part *ret, struct err *e)
{
	const json_t *list = json_object_get(root, list_key), *item;
	const char *found;
	size_t i;

	for (i = 0; i < json_array_size(list); i++) {
		item = json_array_get(list, i);
		found = json_get_string(item, "name");
		if (!found || strcmp(found, name) != 0)
			continue;
		*ret = (struct part){what, name, json_object_get(item, what)};
		if (json_is_object(ret->obj))
			return 0;
		return err_set(e, ERR_INVALID, "the kubeconfig's %s %.100s is empty",
			       what, name);
	}
	return err_set(e, ERR_INVALID, "the kubeconfig has no %s %.100s", what, name);
}

static bool is_server_url(const char *s)
{
	const char *host = strstr(s, "://");

	return (strncmp(s, "https://", 8) == 0 || strncmp(s, "http://", 7) == 0) &&
	       host[3] && !strpbrk(host + 3, " ?#@\"\\");
}

static int read_cluster(const struct part *p, const char *dir, struct kubeconfig *k,
			struct err *e)
{
	size_t n;

	if (get_text(p, "server", &k->server, e) < 0 ||
	    get_text(p, "tls-server-name", &k->tls_name, e) < 0 ||
	    get_text(p, "proxy-url", &k->proxy, e) < 0 ||
	    get_bool(p, "insecure-skip-tls-verify", &k->insecure, e) < 0 ||
	    get_pem(p, "certificate-authority", dir, &k->ca_pem, &k->ca_file, e) < 0)
		return -1;
	if (!k->server || !is_server_url(k->server))
		return wrong(p, "server", "is not the http or https url of an API server",
			     e);
	if (k->insecure && (k->ca_pem || k->ca_file))
		return wrong(p, "insecure-skip-tls-verify",
			     "is true although there is a certificate-authority", e);
	for (n = strlen(k->server); n > 0 && k->server[n - 1] == '/'; n--)
		k->server[n - 1] = '\0';
	return 0;
}

static int read_plugin_env(const struct part *p, struct kube_plugin *x, struct err *e)
{
	const json_t *list = json_object_get(p->obj, "env"), *item;
	size_t i, n = json_array_size(list);
	const char *name, *value;

	if (n > LIST_MAX)
		return wrong(p, "env", "is very long", e);
	x->env = xcalloc(n + 1, sizeof *x->env);
	for (i = 0; i < n; i++) {
		item = json_array_get(list, i);
		name = json_get_string(item, "name");
		value = json_get_string(item, "value");
		if (!name || !*name || strchr(name, '=') || !value)
			return wrong(p, "env", "has an item without name and value", e);
		x->env[i] = xasprintf("%s=%s", name, value);
	}
	return 0;
}

/* A command with a slash that is no absolute path is relative to the file. */
static char *plugin_program(const char *command, const char *dir)
{
	return *command != '/' && strchr(command, '/') ? xasprintf("%s/%s", dir, command)
						       : xstrdup(command);
}

static int read_plugin(const struct part *user, const char *dir, struct kube_plugin *x,
		       struct err *e)
{
	struct part p = {"exec plugin of user", user->name,
			 json_object_get(user->obj, "exec")};
	AUTO_FREE char *command = NULL, *interactive = NULL;
	char **args = NULL;
	size_t i, n;

	if (!p.obj || json_is_null(p.obj))
		return 0;
	if (get_text(&p, "command", &command, e) < 0 ||
	    get_text(&p, "apiVersion", &x->api_version, e) < 0 ||
	    get_text(&p, "installHint", &x->install_hint, e) < 0 ||
	    get_text(&p, "interactiveMode", &interactive, e) < 0 ||
	    get_bool(&p, "provideClusterInfo", &x->wants_cluster, e) < 0 ||
	    read_plugin_env(&p, x, e) < 0)
		return -1;
	if (!command)
		return wrong(&p, "command", "is missing", e);
	if (!x->api_version ||
	    (strcmp(x->api_version, "client.authentication.k8s.io/v1") != 0 &&
	     strcmp(x->api_version, "client.authentication.k8s.io/v1beta1") != 0))
		return wrong(&p, "apiVersion",
			     "is not client.authentication.k8s.io/v1 or v1beta1", e);
	if (interactive && strcmp(interactive, "Always") == 0)
		return wrong(&p, "interactiveMode",
			     "is Always, and a server has nobody to ask", e);
	if (get_list(&p, "args", &args, e) < 0) {
		strv_free(args);
		return -1;
	}
	n = args ? strv_len(args) : 0;
	x->argv = xcalloc(n + 2, sizeof *x->argv);
	x->argv[0] = plugin_program(command, dir);
	for (i = 0; i < n; i++)
		x->argv[i + 1] = args[i];
	free(args);
	return 0;
}

static int refuse_unknown_ways(const struct part *p, struct err *e)
{
	if (json_object_get(p->obj, "auth-provider"))
		return wrong(p, "auth-provider",
			     "is not supported (nor by kubectl since 1.26): use exec", e);
	if (json_object_get(p->obj, "as-user-extra"))
		return wrong(p, "as-user-extra", "is not supported", e);
	return 0;
}

static int check_user(const struct part *p, const struct kubeconfig *k, struct err *e)
{
	bool cert = k->cert_pem || k->cert_file, key = k->key_pem || k->key_file;

	if (cert != key)
		return wrong(p, cert ? "client-key" : "client-certificate", "is missing",
			     e);
	if ((k->as_uid || k->as_groups) && !k->as)
		return wrong(p, "as", "is missing beside as-uid or as-groups", e);
	return 0;
}

static int read_user(const struct part *p, const char *dir, struct kubeconfig *k,
		     struct err *e)
{
	if (refuse_unknown_ways(p, e) < 0 ||
	    get_pem(p, "client-certificate", dir, &k->cert_pem, &k->cert_file, e) < 0 ||
	    get_pem(p, "client-key", dir, &k->key_pem, &k->key_file, e) < 0 ||
	    get_text(p, "token", &k->token, e) < 0 ||
	    get_path(p, "tokenFile", dir, &k->token_file, e) < 0 ||
	    get_text(p, "username", &k->username, e) < 0 ||
	    get_text(p, "password", &k->password, e) < 0 ||
	    get_text(p, "as", &k->as, e) < 0 ||
	    get_text(p, "as-uid", &k->as_uid, e) < 0 ||
	    get_list(p, "as-groups", &k->as_groups, e) < 0 ||
	    read_plugin(p, dir, &k->plugin, e) < 0)
		return -1;
	return check_user(p, k, e);
}

/* The context, then what it names. */
static int read_all(const json_t *root, const char *dir, const char *context,
		    struct kubeconfig *k, struct err *e)
{
	AUTO_FREE char *cluster = NULL, *user = NULL;
	struct part p = {"", "", NULL};

	if (find_part(root, "contexts", "context", context, &p, e) < 0 ||
	    get_text(&p, "cluster", &cluster, e) < 0 ||
	    get_text(&p, "user", &user, e) < 0 ||
	    get_text(&p, "namespace", &k->ns, e) < 0)
		return -1;
	k->context = xstrdup(context);
	if (!cluster)
		return wrong(&p, "cluster", "is missing", e);
	if (find_part(root, "clusters", "cluster", cluster, &p, e) < 0 ||
	    read_cluster(&p, dir, k, e) < 0)
		return -1;
	if (!user) /* as kubectl: anonymous */
		return 0;
	if (find_part(root, "users", "user", user, &p, e) < 0)
		return -1;
	return read_user(&p, dir, k, e);
}

int kubeconfig_parse(struct str text, const char *dir, const char *context,
		     struct kubeconfig *ret, struct err *e)
{
	AUTO_KUBECONFIG k = {0};
	AUTO_JSON *root = NULL;

	if (yaml_parse(text.p, text.n, &root, e) < 0)
		return err_wrap(e, "the kubeconfig");
	if (!json_is_object(root))
		return err_set(e, ERR_INVALID, "the kubeconfig is empty");
	if (!context || !*context)
		context = json_get_string(root, "current-context");
	if (!context || !*context)
		return err_set(e, ERR_INVALID,
			       "the kubeconfig names no current-context: set "
			       "KUBERNETES_CONTEXT");
	if (read_all(root, dir, context, &k, e) < 0)
		return -1;
	*ret = k;
	k = (struct kubeconfig){0};
	return 0;
}

int kubeconfig_load(const char *path, const char *context, struct kubeconfig *ret,
		    struct err *e)
{
	AUTO_BUF text = BUF_INIT(FILE_MAX);
	const char *slash = strrchr(path, '/');
	AUTO_FREE char *dir =
		slash ? xstrndup(path, (size_t)(slash - path)) : xstrdup(".");

	if (strchr(path, ':'))
		return err_set(e, ERR_INVALID,
			       "KUBECONFIG=%.200s: a list of files is not supported; "
			       "name one file (kubectl config view --flatten makes it)",
			       path);
	if (io_read_file(path, &text, e) < 0)
		return err_wrap(e, "KUBECONFIG");
	if (kubeconfig_parse((struct str){text.p, text.len}, dir, context, ret, e) < 0)
		return err_wrap(e, "%.200s", path);
	return 0;
}
