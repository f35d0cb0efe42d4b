/* SPDX-License-Identifier: MIT */
#include "backend/kubernetes/api/credentials.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/mem.h"

enum {
	LOOK_AGAIN_MS = 60000,   /* client-go's period too */
	PLUGIN_PAUSE_MS = 10000, /* between its runs, whatever became of them */
	EXPIRY_EARLY_MS = 10000, /* a ticket is renewed that long before its end */
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
	const struct kube_login *now;
	struct kube_ticket ticket; /* of the plugin */
	int64_t looked_ms, ran_ms; /* monotonic: files read, plugin run */
	bool files_doubted, ticket_doubted;
	bool plugin_runs; /* on somebody's thread */
	bool stopping;
};

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

static int renew(struct kube_credentials *c, struct err *e)
{
	const struct kube_login_args a = {&c->k, c->base, &c->ticket};

	if (needs_plugin(c) && run_plugin(c, e) < 0)
		return -1;
	c->looked_ms = clock_mono_ms();
	if (kube_login_renew(&a, &c->now, e) < 0)
		return -1;
	c->files_doubted = false;
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
		kube_login_hold(c->now);
		*ret = c->now;
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
	if (c->now && l == c->now) {
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
	kube_login_put(c->now);
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
