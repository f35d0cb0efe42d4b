/* SPDX-License-Identifier: MIT */
#include "backend/kubernetes/api/login.h"

#include <stdatomic.h>
#include <string.h>

#include "base/auto.h"
#include "base/base64.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "base/version.h"

enum { PEM_MAX = 1 << 20, TOKEN_MAX = 64 * 1024 };

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

static void shared_put(struct shared_http *s)
{
	if (!s || atomic_fetch_sub(&s->refs, 1) > 1)
		return;
	http_free(s->http);
	free(s);
}

static struct login *login_of(const struct kube_login *pub)
{
	return (struct login *)(uintptr_t)pub;
}

void kube_login_hold(const struct kube_login *pub)
{
	atomic_fetch_add(&login_of(pub)->refs, 1);
}

void kube_login_put(const struct kube_login *pub)
{
	struct login *l = login_of(pub);

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

static int read_material(const struct kubeconfig *k, const struct kube_ticket *t,
			 struct material *m, struct err *e)
{
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

static struct http *new_http(const struct kube_login_args *a, const struct material *m)
{
	return http_new(&(struct http_target){.base = a->base,
					      .no_verify = a->k->insecure,
					      .ca_pem = pem_of(&m->ca),
					      .cert_pem = pem_of(&m->cert),
					      .key_pem = pem_of(&m->key),
					      .tls_name = a->k->tls_name,
					      .proxy = a->k->proxy});
}

/* The one that now has when its certificates are still these. */
static struct shared_http *shared_get(const struct kube_login_args *a,
				      const struct material *m, const struct login *now)
{
	char print[SHA256_HEX_LEN + 1];
	struct shared_http *s;

	fingerprint(m, print);
	if (now && strcmp(now->shared->print, print) == 0) {
		atomic_fetch_add(&now->shared->refs, 1);
		return now->shared;
	}
	s = xcalloc(1, sizeof *s);
	atomic_init(&s->refs, 1);
	memcpy(s->print, print, sizeof print);
	s->http = new_http(a, m);
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

int kube_login_renew(const struct kube_login_args *a, const struct kube_login **now,
		     struct err *e)
{
	const struct login *before = login_of(*now);
	AUTO_MATERIAL m = MATERIAL_INIT;
	struct login *l;

	if (read_material(a->k, a->ticket, &m, e) < 0)
		return -1;
	l = xcalloc(1, sizeof *l);
	atomic_init(&l->refs, 1);
	l->shared = shared_get(a, &m, before);
	l->pub = (struct kube_login){.http = l->shared->http,
				     .headers = make_headers(a->k, &m)};
	if (before && before->shared == l->shared &&
	    same_lines(before->pub.headers, l->pub.headers)) {
		kube_login_put(&l->pub);
		return 0;
	}
	kube_login_put(*now);
	*now = &l->pub;
	return 0;
}
