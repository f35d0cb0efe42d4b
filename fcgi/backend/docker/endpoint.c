/* SPDX-License-Identifier: MIT */
#include "backend/docker/endpoint.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/str.h"

static const char advice[] =
	"install Docker (docker.io) or Podman and start it, or set DOCKER_HOST";

void endpoint_release(struct endpoint *ep)
{
	free(ep->where);
	free(ep->unix_socket);
	free(ep->base);
	free(ep->host);
	free(ep->ca);
	free(ep->cert);
	free(ep->key);
	*ep = (struct endpoint){0};
}

static void set_unix(struct endpoint *ep, const char *path)
{
	ep->where = xasprintf("unix://%s", path);
	ep->unix_socket = xstrdup(path);
	ep->base = xstrdup("http://docker");
	ep->host = xstrdup("docker");
}

static void set_tls(struct endpoint *ep, bool verify, const char *cert_path)
{
	ep->no_verify = !verify;
	if (!*cert_path)
		return;
	if (verify)
		ep->ca = xasprintf("%s/ca.pem", cert_path);
	ep->cert = xasprintf("%s/cert.pem", cert_path);
	ep->key = xasprintf("%s/key.pem", cert_path);
}

/* host or host:port, nothing that means something else in a url. */
static bool is_authority(const char *s)
{
	static const char ok[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "0123456789.-_:[]";

	return *s && strlen(s) <= 255 && strspn(s, ok) == strlen(s);
}

static void set_tcp(struct endpoint *ep, const char *authority, bool tls)
{
	bool has_port = strrchr(authority, ':') != NULL &&
			strchr(strrchr(authority, ':'), ']') == NULL;

	ep->host = has_port ? xstrdup(authority)
			    : xasprintf("%s:%d", authority, tls ? 2376 : 2375);
	ep->base = xasprintf("%s://%s", tls ? "https" : "http", ep->host);
	ep->where = xasprintf("tcp://%s%s", ep->host, tls ? " (TLS)" : "");
}

int endpoint_parse(const char *docker_host, bool tls_verify, const char *cert_path,
		   struct endpoint *ret, struct err *e)
{
	static const char *const schemes[] = {"tcp://", "https://", "http://"};
	bool tls = tls_verify || *cert_path;
	size_t i;

	if (str_starts(docker_host, "unix://") && docker_host[7] == '/') {
		set_unix(ret, docker_host + 7);
		return 0;
	}
	for (i = 0; i < sizeof schemes / sizeof *schemes; i++) {
		AUTO_FREE char *authority = NULL;
		size_t n;

		if (!str_starts(docker_host, schemes[i]))
			continue;
		authority = xstrdup(docker_host + strlen(schemes[i]));
		n = strlen(authority);
		if (n > 0 && authority[n - 1] == '/')
			authority[n - 1] = '\0';
		if (!is_authority(authority))
			break;
		tls = i == 1 || (i == 0 && tls);
		set_tcp(ret, authority, tls);
		if (tls)
			set_tls(ret, tls_verify, cert_path);
		return 0;
	}
	return err_set(e, ERR_INVALID,
		       "DOCKER_HOST=%.80s: must be unix:///path/of/a/socket, "
		       "tcp://host:port, http://host:port or https://host:port",
		       docker_host);
}

static bool is_socket(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* In the order of preference; up to n paths, to free(). */
static size_t usual_places(char **v)
{
	const char *run = getenv("XDG_RUNTIME_DIR");
	AUTO_FREE char *own = run && *run == '/'
				      ? xstrdup(run)
				      : xasprintf("/run/user/%u", (unsigned)geteuid());
	size_t n = 0;

	v[n++] = xstrdup("/var/run/docker.sock");
	v[n++] = xasprintf("%s/docker.sock", own);
	v[n++] = xasprintf("%s/podman/podman.sock", own);
	v[n++] = xstrdup("/run/podman/podman.sock");
	return n;
}

static int find_usual(struct endpoint *ret, struct err *e)
{
	AUTO_BUF words = BUF_INIT(2048);
	char *places[8];
	size_t i, n = usual_places(places);

	for (i = 0; i < n; i++) {
		if (!ret->where && is_socket(places[i]))
			set_unix(ret, places[i]);
		buf_printf(&words, "%s%s", i ? ", " : "", places[i]);
		free(places[i]);
	}
	if (ret->where)
		return 0;
	return err_set(e, ERR_BACKEND, "no engine: there is no socket at any of %s; %s",
		       words.p, advice);
}

/* As with Docker's own client, there may be none of our own. */
static void forget_absent_pair(struct endpoint *ep)
{
	if (!ep->cert || io_exists(ep->cert) || io_exists(ep->key))
		return;
	free(ep->cert);
	free(ep->key);
	ep->cert = ep->key = NULL;
}

static int check_files(struct endpoint *ep, struct err *e)
{
	const char *files[3];
	size_t i;

	forget_absent_pair(ep);
	files[0] = ep->ca;
	files[1] = ep->cert;
	files[2] = ep->key;
	for (i = 0; i < sizeof files / sizeof *files; i++)
		if (files[i] && access(files[i], R_OK) < 0)
			return err_sys(e, "DOCKER_CERT_PATH: %s", files[i]);
	return 0;
}

int endpoint_find(const struct conf *c, struct endpoint *ret, struct err *e)
{
	AUTO_FREE char *certs = xstrdup(c->docker_cert_path);
	const char *home = getenv("HOME");

	if (!*c->docker_host)
		return find_usual(ret, e);
	if (!*certs && c->docker_tls_verify && home) {
		free(certs);
		certs = xasprintf("%s/.docker", home);
	}
	if (endpoint_parse(c->docker_host, c->docker_tls_verify, certs, ret, e) < 0)
		return -1;
	return check_files(ret, e);
}

static char *user_name(uid_t uid)
{
	struct passwd pw, *found = NULL;
	char buf[4096];

	if (getpwuid_r(uid, &pw, buf, sizeof buf, &found) == 0 && found)
		return xasprintf("%s (uid %u)", pw.pw_name, (unsigned)uid);
	return xasprintf("uid %u", (unsigned)uid);
}

static char *group_name(gid_t gid)
{
	struct group gr, *found = NULL;
	char buf[8192];

	if (getgrgid_r(gid, &gr, buf, sizeof buf, &found) == 0 && found)
		return xstrdup(gr.gr_name);
	return xasprintf("gid %u", (unsigned)gid);
}

static int denied(const char *path, struct err *e)
{
	AUTO_FREE char *us = user_name(geteuid());
	AUTO_FREE char *owner = NULL, *group = NULL;
	struct stat st;

	if (stat(path, &st) < 0)
		return err_set(e, ERR_DENIED, "the user %s may not reach %s", us, path);
	owner = user_name(st.st_uid);
	group = group_name(st.st_gid);
	return err_set(e, ERR_DENIED,
		       "the user %s may not open %s, which belongs to %s and the group "
		       "%s with mode %04o: add the user to that group, or run the server "
		       "as root",
		       us, path, owner, group, (unsigned)(st.st_mode & 07777));
}

int endpoint_refused(const char *where, const char *unix_socket, int sys, struct err *e)
{
	char why[128];

	if (unix_socket && (sys == EACCES || sys == EPERM))
		return denied(unix_socket, e);
	if (unix_socket && sys == ENOENT)
		return err_set(e, ERR_BACKEND, "there is no socket %s; %s", unix_socket,
			       advice);
	if (unix_socket && sys == ECONNREFUSED)
		return err_set(e, ERR_BACKEND,
			       "nobody listens at %s: the engine is not running; start "
			       "it (systemctl start docker), or set DOCKER_HOST",
			       unix_socket);
	return err_set(e, ERR_BACKEND, "the engine at %s is not reached: %s", where,
		       strerror_r(sys, why, sizeof why));
}

const char *endpoint_tls_advice(const char *words)
{
	static const struct {
		const char *has, *advice;
	} table[] = {
		{"certificate required",
		 "; it wants a client's certificate: put cert.pem and key.pem into "
		 "DOCKER_CERT_PATH"},
		{"handshake failure",
		 "; it wants a client's certificate: put cert.pem and key.pem into "
		 "DOCKER_CERT_PATH"},
		{"unknown ca", "; it does not accept our certificate: cert.pem in "
			       "DOCKER_CERT_PATH is not signed by the CA it trusts"},
		{"bad certificate", "; it does not accept our certificate: look at "
				    "cert.pem in DOCKER_CERT_PATH"},
		{"expired certificate",
		 "; our certificate has expired: renew cert.pem in "
		 "DOCKER_CERT_PATH"},
		{"certificate expired",
		 "; our certificate has expired: renew cert.pem in "
		 "DOCKER_CERT_PATH"},
		{"certificate has expired",
		 "; the engine's own certificate must be renewed"},
		{"issuer certificate", "; its certificate is not signed by the CA in "
				       "DOCKER_CERT_PATH/ca.pem"},
		{"self-signed certificate",
		 "; its certificate is not signed by the CA in "
		 "DOCKER_CERT_PATH/ca.pem"},
		{"subject name", "; its certificate is for another name than DOCKER_HOST "
				 "has"},
		{"wrong version number", "; it does not speak TLS there: unset "
					 "DOCKER_TLS_VERIFY and DOCKER_CERT_PATH, or use "
					 "its other port"},
		{"HTTP request to an HTTPS server",
		 "; it speaks TLS: set DOCKER_TLS_VERIFY=1 and DOCKER_CERT_PATH"},
	};
	size_t i;

	for (i = 0; i < sizeof table / sizeof *table; i++)
		if (strcasestr(words, table[i].has))
			return table[i].advice;
	return "";
}
