/* SPDX-License-Identifier: MIT */
#include "backend/kubernetes/api/credentials.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backend/kubernetes/api/kubeconfig.h"
#include "backend/kubernetes/api/plugin.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "base/version.h"

enum {
	LOOK_AGAIN_MS = 60000,   /* client-go's period too */
	PLUGIN_PAUSE_MS = 10000, /* between its runs, whatever became of them */
	EXPIRY_EARLY_MS = 10000, /* a ticket is renewed that long before its end */
	PEM_MAX = 1 << 20,
	TOKEN_MAX = 64 * 1024,
};

/* A client of one set of certificates; logins that differ in the token share it. */
struct shared_http {
	atomic_uint refs;
	struct http *http;
	char print[SHA256_HEX_LEN + 1]; /* of the certificates and keys */
};

struct login {
	struct kube_login pub; /* first */
	atomic_uint refs;
	struct shared_http *shared;
};

struct kube_credentials {
	/* fixed after open */
	struct kubeconfig k; /* a pod's service account is put in the same form */
	char *base, *host, *where;
	const char *path; /* in k.server */
	int64_t plugin_pause_ms, expiry_early_ms;
	int stop_fd; /* readable: stopping */
	/* the rest is under lock; it is held while files are read, not for the plugin */
	pthread_mutex_t lock;
	pthread_cond_t plugin_ended;
	struct login *now;
	struct kube_ticket ticket; /* of the plugin */
	int64_t looked_ms, ran_ms; /* monotonic: files read, plugin run */
	bool files_doubted, ticket_doubted;
	bool plugin_runs; /* on somebody's thread */
	bool stopping;
};

/* ---- logins */

static void shared_put(struct shared_http *s)
{
	if (!s || atomic_fetch_sub(&s->refs, 1) > 1)
		return;
	http_free(s->http);
	free(s);
}

void kube_login_put(const struct kube_login *pub)
{
	struct login *l = (struct login *)(uintptr_t)pub;

	if (!l || atomic_fetch_sub(&l->refs, 1) > 1)
		return;
	shared_put(l->shared);
	strv_free(l->pub.headers);
	free(l);
}

/* What a login is made of, read just now. */
struct material {
	struct buf ca, cert, key; /* PEM */
	struct buf token;
};
#define MATERIAL_INIT                                                                    \
	{                                                                                \
		.ca = BUF_INIT(PEM_MAX), .cert = BUF_INIT(PEM_MAX),                      \
		.key = BUF_INIT(PEM_MAX), .token = BUF_INIT(TOKEN_MAX)                   \
	}

static void material_release(struct material *m)
{
	buf_release(&m->ca);
	buf_release(&m->cert);
	buf_release(&m->key);
	buf_release(&m->token);
}
#define AUTO_MATERIAL __attribute__((cleanup(material_release))) struct material

static int read_pem(const char *pem, const char *file, struct buf *ret, struct err *e)
{
	if (pem)
		buf_puts(ret, pem);
	else if (file)
		return io_read_file(file, ret, e);
	return 0;
}

/* A token is one word; files end in a newline now and then. */
static int read_token(const struct kubeconfig *k, struct buf *ret, struct err *e)
{
	AUTO_BUF text = BUF_INIT(TOKEN_MAX);
	struct str word;

	if (!k->token_file) {
		buf_puts(ret, k->token ? k->token : "");
		return 0;
	}
	if (io_read_file(k->token_file, &text, e) < 0)
		return -1;
	word = str_trim((struct str){text.p, text.len});
	buf_add(ret, word.p, word.n);
	if (ret->len == 0 || strcspn(ret->p, " \r\n\t") != ret->len)
		return err_set(e, ERR_INVALID, "%.200s holds no token", k->token_file);
	return 0;
}

static int read_material(const struct kube_credentials *c, struct material *m,
			 struct err *e)
{
	const struct kubeconfig *k = &c->k;
	const struct kube_ticket *t = &c->ticket;

	if (read_pem(k->ca_pem, k->ca_file, &m->ca, e) < 0 ||
	    read_pem(t->cert_pem ? t->cert_pem : k->cert_pem, k->cert_file, &m->cert, e) <
		    0 ||
	    read_pem(t->key_pem ? t->key_pem : k->key_pem, k->key_file, &m->key, e) < 0)
		return -1;
	if (!t->token)
		return read_token(k, &m->token, e);
	buf_puts(&m->token, t->token);
	return 0;
}

static void fingerprint(const struct material *m, char out[static SHA256_HEX_LEN + 1])
{
	AUTO_BUF all = BUF_INIT((size_t)4 * PEM_MAX);

	buf_add(&all, m->ca.p, m->ca.len + 1);
	buf_add(&all, m->cert.p, m->cert.len + 1);
	buf_add(&all, m->key.p, m->key.len + 1);
	sha256_hex(all.p, all.len, out);
}

static struct str pem_of(const struct buf *b)
{
	return b->len > 0 ? (struct str){b->p, b->len} : (struct str){0};
}

/* The one we have when its certificates are still these. */
static struct shared_http *shared_get(const struct kube_credentials *c,
				      const struct material *m)
{
	char print[SHA256_HEX_LEN + 1];
	struct shared_http *s;

	fingerprint(m, print);
	if (c->now && strcmp(c->now->shared->print, print) == 0) {
		atomic_fetch_add(&c->now->shared->refs, 1);
		return c->now->shared;
	}
	s = xcalloc(1, sizeof *s);
	atomic_init(&s->refs, 1);
	memcpy(s->print, print, sizeof print);
	s->http = http_new(&(struct http_target){.base = c->base,
						 .no_verify = c->k.insecure,
						 .ca_pem = pem_of(&m->ca),
						 .cert_pem = pem_of(&m->cert),
						 .key_pem = pem_of(&m->key),
						 .tls_name = c->k.tls_name,
						 .proxy = c->k.proxy});
	return s;
}

struct lines {
	char **v;
	size_t n;
};

static void add_line(struct lines *l, char *line)
{
	l->v = xreallocarray(l->v, l->n + 2, sizeof *l->v);
	l->v[l->n++] = line;
	l->v[l->n] = NULL;
}

static char *basic(const struct kubeconfig *k)
{
	AUTO_FREE char *pair =
		xasprintf("%s:%s", k->username, k->password ? k->password : "");
	AUTO_BUF b = BUF_INIT(TOKEN_MAX);

	base64_add(&b, pair, strlen(pair));
	return xasprintf("Authorization: Basic %s", b.p);
}

static char **make_headers(const struct kubeconfig *k, const struct material *m)
{
	struct lines l = {0};
	char **g;

	add_line(&l, xstrdup("User-Agent: mcp-sandboxd/" MCP_SANDBOXD_VERSION));
	if (m->token.len > 0)
		add_line(&l, xasprintf("Authorization: Bearer %s", m->token.p));
	else if (k->username)
		add_line(&l, basic(k));
	if (k->as)
		add_line(&l, xasprintf("Impersonate-User: %s", k->as));
	if (k->as_uid)
		add_line(&l, xasprintf("Impersonate-Uid: %s", k->as_uid));
	for (g = k->as_groups; g && *g; g++)
		add_line(&l, xasprintf("Impersonate-Group: %s", *g));
	return l.v;
}

static bool same_lines(char *const *a, char *const *b)
{
	size_t i;

	if (strv_len(a) != strv_len(b))
		return false;
	for (i = 0; a[i]; i++)
		if (strcmp(a[i], b[i]) != 0)
			return false;
	return true;
}

/* ---- renewal, under the lock */

/* It may take long: the lock is given up meanwhile. */
static int run_plugin(struct kube_credentials *c, struct err *e)
{
	struct kube_ticket t = {0};
	int rc;

	c->plugin_runs = true;
	pthread_mutex_unlock(&c->lock);
	rc = kube_plugin_run(&c->k, &c->stop_fd, &t, e);
	pthread_mutex_lock(&c->lock);
	c->plugin_runs = false;
	c->ran_ms = clock_mono_ms();
	pthread_cond_broadcast(&c->plugin_ended);
	if (rc < 0)
		return -1;
	kube_ticket_release(&c->ticket);
	c->ticket = t;
	c->ticket_doubted = false;
	return 0;
}

static bool needs_plugin(const struct kube_credentials *c)
{
	if (!c->k.plugin.argv || c->plugin_runs || c->stopping ||
	    (c->now && clock_mono_ms() - c->ran_ms < c->plugin_pause_ms))
		return false;
	return !c->now || c->ticket_doubted ||
	       (c->ticket.expires_ms != INT64_MAX &&
		clock_now_ms() >= c->ticket.expires_ms - c->expiry_early_ms);
}

/* As far as is known, and for now. */
static bool is_valid(const struct kube_credentials *c)
{
	return c->now && !c->ticket_doubted && clock_now_ms() < c->ticket.expires_ms;
}

/* No newer one comes any more. */
static bool is_over(const struct kube_credentials *c)
{
	return c->stopping && c->k.plugin.argv && !is_valid(c);
}

static bool is_due(const struct kube_credentials *c)
{
	return !c->now || c->files_doubted || needs_plugin(c) ||
	       clock_mono_ms() - c->looked_ms >= LOOK_AGAIN_MS;
}

/* A login that says the same stays, so that its user sees that nothing is new. */
static int renew(struct kube_credentials *c, struct err *e)
{
	AUTO_MATERIAL m = MATERIAL_INIT;
	struct login *l;

	if (needs_plugin(c) && run_plugin(c, e) < 0)
		return -1;
	c->looked_ms = clock_mono_ms();
	if (read_material(c, &m, e) < 0)
		return -1;
	c->files_doubted = false;
	l = xcalloc(1, sizeof *l);
	atomic_init(&l->refs, 1);
	l->shared = shared_get(c, &m);
	l->pub = (struct kube_login){.http = l->shared->http,
				     .headers = make_headers(&c->k, &m)};
	if (c->now && c->now->shared == l->shared &&
	    same_lines(c->now->pub.headers, l->pub.headers)) {
		kube_login_put(&l->pub);
		return 0;
	}
	if (c->now)
		kube_login_put(&c->now->pub);
	c->now = l;
	return 0;
}

/*
 * A file that cannot be read for a moment is no reason to stop: what it said goes
 * on until the server refuses it.
 */
int kube_login_get(struct kube_credentials *c, const struct kube_login **ret,
		   struct err *e)
{
	struct err why = ERR_INIT;
	bool usable = true;

	pthread_mutex_lock(&c->lock);
	while (c->plugin_runs && !is_valid(c))
		pthread_cond_wait(&c->plugin_ended, &c->lock);
	if (!is_over(c) && is_due(c) && renew(c, &why) < 0)
		usable = c->now && !c->files_doubted && !c->ticket_doubted;
	if (is_over(c))
		usable = err_set(&why, ERR_BUSY, "the server is stopping") == 0;
	if (usable) {
		atomic_fetch_add(&c->now->refs, 1);
		*ret = &c->now->pub;
	}
	pthread_mutex_unlock(&c->lock);
	if (!usable)
		*e = why;
	return usable ? 0 : -1;
}

void kube_login_refused(struct kube_credentials *c, const struct kube_login *l,
			bool is_401)
{
	pthread_mutex_lock(&c->lock);
	if (c->now && l == &c->now->pub) {
		c->files_doubted = true;
		c->ticket_doubted |= is_401;
	}
	pthread_mutex_unlock(&c->lock);
}

void kube_credentials_stop(struct kube_credentials *c)
{
	uint64_t one = 1;

	pthread_mutex_lock(&c->lock);
	c->stopping = true;
	pthread_mutex_unlock(&c->lock);
	while (write(c->stop_fd, &one, sizeof one) < 0 && errno == EINTR)
		;
}

/* ---- opening */

/* "https://host:port/path" is the client's base, the Host header and the path. */
static void split_server(struct kube_credentials *c)
{
	const char *host = strstr(c->k.server, "://") + 3;
	size_t n = strcspn(host, "/");

	c->path = host + n;
	c->host = xstrndup(host, n);
	c->base = xstrndup(c->k.server, (size_t)(host - c->k.server) + n);
}

static int use_service_account(struct kube_credentials *c, const char *dir, struct err *e)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");
	AUTO_FREE char *ns_file = xasprintf("%s/namespace", dir);
	AUTO_BUF ns = BUF_INIT(256);
	bool v6;

	c->k.token_file = xasprintf("%s/token", dir);
	c->k.ca_file = xasprintf("%s/ca.crt", dir);
	if (!host || !*host || !io_exists(c->k.token_file))
		return err_set(e, ERR_INVALID,
			       "no cluster to log in to: KUBECONFIG is not set, and this "
			       "is no pod with a service account (%s)",
			       host && *host ? c->k.token_file
					     : "KUBERNETES_SERVICE_HOST is not set");
	v6 = strchr(host, ':') != NULL;
	c->k.server = xasprintf("https://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "",
				port && *port ? port : "443");
	c->where = xasprintf("%s (service account)", c->k.server);
	if (io_exists(ns_file)) {
		if (io_read_file(ns_file, &ns, e) < 0)
			return -1;
		c->k.ns = xstrndup(ns.p, strcspn(ns.p, " \r\n\t"));
	}
	return 0;
}

static int use_kubeconfig(struct kube_credentials *c, const struct conf *conf,
			  struct err *e)
{
	if (kubeconfig_load(conf->kubeconfig, conf->kube_context, &c->k, e) < 0)
		return -1;
	c->where = xasprintf("%s (context %s)", c->k.server, c->k.context);
	return 0;
}

/* KUBERNETES_SANDBOX_NAMESPACE, POD_NAMESPACE, the context's or account's own. */
static int choose_namespace(struct kube_credentials *c, const struct conf *conf,
			    struct err *e)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
	const char *pod = getenv("POD_NAMESPACE"), *ns = "default";
	char *chosen;

	if (conf->kube_namespace && *conf->kube_namespace)
		ns = conf->kube_namespace;
	else if (pod && *pod)
		ns = pod;
	else if (c->k.ns && *c->k.ns)
		ns = c->k.ns;
	if (strlen(ns) > 63 || strspn(ns, allowed) != strlen(ns) || *ns == '-')
		return err_set(e, ERR_INVALID, "%.70s is not the name of a namespace",
			       ns);
	chosen = xstrdup(ns);
	free(c->k.ns);
	c->k.ns = chosen;
	return 0;
}

static int set_up(struct kube_credentials *c, const struct kube_credentials_args *a,
		  struct err *e)
{
	const char *dir = a->service_account ? a->service_account : KUBE_SERVICE_ACCOUNT;
	int rc = a->conf->kubeconfig && *a->conf->kubeconfig
			 ? use_kubeconfig(c, a->conf, e)
			 : use_service_account(c, dir, e);

	if (rc < 0 || choose_namespace(c, a->conf, e) < 0)
		return -1;
	split_server(c);
	pthread_mutex_lock(&c->lock);
	rc = renew(c, e);
	pthread_mutex_unlock(&c->lock);
	return rc;
}

int kube_credentials_open(const struct kube_credentials_args *a,
			  struct kube_credentials **ret, struct err *e)
{
	struct kube_credentials *c = xcalloc(1, sizeof *c);

	c->plugin_pause_ms = a->plugin_pause_ms ? a->plugin_pause_ms : PLUGIN_PAUSE_MS;
	c->expiry_early_ms = a->expiry_early_ms ? a->expiry_early_ms : EXPIRY_EARLY_MS;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->plugin_ended, NULL);
	c->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if ((c->stop_fd < 0 && err_sys(e, "eventfd") < 0) || set_up(c, a, e) < 0) {
		kube_credentials_free(c);
		return -1;
	}
	*ret = c;
	return 0;
}

void kube_credentials_free(struct kube_credentials *c)
{
	if (!c)
		return;
	if (c->now)
		kube_login_put(&c->now->pub);
	kube_ticket_release(&c->ticket);
	kubeconfig_release(&c->k);
	pthread_cond_destroy(&c->plugin_ended);
	pthread_mutex_destroy(&c->lock);
	auto_close(&c->stop_fd);
	free(c->base);
	free(c->host);
	free(c->where);
	free(c);
}

const char *kube_credentials_namespace(const struct kube_credentials *c)
{
	return c->k.ns;
}

const char *kube_credentials_where(const struct kube_credentials *c)
{
	return c->where;
}

const char *kube_credentials_host(const struct kube_credentials *c)
{
	return c->host;
}

const char *kube_credentials_path(const struct kube_credentials *c)
{
	return c->path;
}
