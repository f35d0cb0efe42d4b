/* SPDX-License-Identifier: MIT */
#include "backend/docker/image.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "backend/docker/context.h"
#include "backend/docker/joblines.h"
#include "backend/docker/registryauth.h"
#include "base/auto.h"
#include "base/io.h"
#include "base/json.h"
#include "base/mem.h"

enum { BUILD_MS = 3600 * 1000 };

static const char default_name[] = "default";
static const char default_reference[] = "mcp-sandbox:latest";

char *image_reference(const char *image)
{
	const char *slash = strrchr(image, '/');

	if (strcmp(image, default_name) == 0)
		return xstrdup(default_reference);
	if (strchr(image, '@') || strchr(slash ? slash : image, ':'))
		return xstrdup(image);
	return xasprintf("%s:latest", image);
}

static void say(void *arg, const char *line)
{
	docker_say(arg, BACKEND_WAITING, "%s", line);
}

static int on_data(void *arg, const char *p, size_t n, struct err *e)
{
	(void)e;
	joblines_feed(arg, p, n);
	return 0;
}

/* A long call whose answer is lines of progress. */
static int long_call(struct docker *d, const struct engine_call *what, struct err *e)
{
	struct joblines lines = JOBLINES_INIT(say, d);
	struct engine_call c = *what;
	int rc;

	c.timeout_ms = BUILD_MS;
	c.on_data = on_data;
	c.arg = &lines;
	rc = engine_call(&d->engine, &c, NULL, e);
	if (rc == 0)
		rc = joblines_end(&lines, e);
	joblines_release(&lines);
	return rc;
}

/* The recipe that comes with the server: installed beside it, or in its source. */
static int own_dockerfile(char **ret, struct err *e)
{
	static const char *const places[] = {"sandbox.Dockerfile",
					     "../../deploy/docker/sandbox.Dockerfile"};
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	size_t i;

	if (n < 0)
		return err_sys(e, "find this program's folder");
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	for (i = 0; i < sizeof places / sizeof *places; i++) {
		char *path = xasprintf("%s/%s", self, places[i]);

		if (io_exists(path)) {
			*ret = path;
			return 0;
		}
		free(path);
	}
	return err_set(
		e, ERR_NOT_FOUND,
		"the recipe sandbox.Dockerfile is not beside the server in %s; set "
		"SANDBOX_DOCKERFILE_PATH",
		self);
}

static int build(struct docker *d, struct err *e)
{
	AUTO_FREE char *file = NULL, *path = NULL, *auth = registryauth_build_header();
	AUTO_BUF tar = BUF_INIT(CONTEXT_MAX);
	struct engine_call c = {.method = "POST", .content_type = "application/x-tar"};

	if (*d->conf->dockerfile_path)
		file = xstrdup(d->conf->dockerfile_path);
	else if (own_dockerfile(&file, e) < 0)
		return -1;
	if (context_make(file, &tar, e) < 0)
		return err_wrap(e, "SANDBOX_DOCKERFILE_PATH");
	docker_say(d, BACKEND_WAITING, "building the image %s from %s", d->image, file);
	path = xasprintf("/build?t=%s&dockerfile=" CONTEXT_DOCKERFILE "&rm=1&forcerm=1",
			 d->image);
	c.path = path;
	c.header = auth;
	c.bytes = tar.p;
	c.len = tar.len;
	return long_call(d, &c, e);
}

/* What a registry's "no" may be for; its own words are kept. */
static int refused_pull(struct docker *d, bool had_auth, struct err *e)
{
	static const char *const words[] = {"unauthorized", "authentication required",
					    "denied", "no basic auth credentials"};
	size_t i;

	for (i = 0; i < sizeof words / sizeof *words; i++)
		if (strcasestr(e->msg, words[i]))
			break;
	if (i == sizeof words / sizeof *words)
		return -1;
	if (had_auth)
		return err_wrap(e, "the stored credentials were not accepted");
	if (registryauth_needs_helper(d->image))
		return err_wrap(e, "the credentials are with a helper program, which is "
				   "not run: store them in config.json (`auths`)");
	return err_wrap(e, "no credentials are stored for the registry; `docker login` "
			   "as the server's user stores them");
}

static int pull(struct docker *d, struct err *e)
{
	AUTO_FREE char *path = xasprintf("/images/create?fromImage=%s", d->image);
	AUTO_FREE char *auth = registryauth_header(d->image);
	struct engine_call c = {.method = "POST", .path = path, .header = auth};

	docker_say(d, BACKEND_WAITING, "pulling the image %s%s", d->image,
		   auth ? " with the credentials of Docker's configuration" : "");
	return long_call(d, &c, e) < 0 ? refused_pull(d, auth != NULL, e) : 0;
}

/* 1: it is there; 0: it is missing. */
static int inspect(struct docker *d, json_t **ret, struct err *e)
{
	AUTO_FREE char *path = xasprintf("/images/%s/json", d->image);
	struct engine_call c = {.method = "GET", .path = path};

	if (engine_call(&d->engine, &c, ret, e) == 0)
		return 1;
	if (e->kind != ERR_NOT_FOUND)
		return -1;
	*e = (struct err)ERR_INIT;
	return 0;
}

int image_fits(const json_t *image, const char *engine_arch, struct err *e)
{
	const char *arch = json_get_string(image, "Architecture");

	if (!arch || !*arch || !*engine_arch || strcmp(arch, engine_arch) == 0)
		return 0;
	return err_set(e, ERR_BACKEND,
		       "it is made for %.32s processors and the engine's are %s; "
		       "build or pull it for %s",
		       arch, engine_arch, engine_arch);
}

/* 1: it is there and fits; 0: it is missing. */
static int look(struct docker *d, struct err *e)
{
	AUTO_JSON *root = NULL;
	int there = inspect(d, &root, e);

	if (there <= 0)
		return there;
	return image_fits(root, d->engine.arch, e) < 0 ? -1 : 1;
}

static bool wants_build(const struct conf *c)
{
	return c->auto_build_image &&
	       (*c->dockerfile_path || strcmp(c->image, default_name) == 0);
}

static int ensure(struct docker *d, struct err *e)
{
	int there = look(d, e);

	if (there != 0)
		return there < 0 ? -1 : 0;
	if ((wants_build(d->conf) ? build(d, e) : pull(d, e)) < 0)
		return -1;
	there = look(d, e);
	if (there == 0)
		return err_set(e, ERR_BACKEND,
			       "the engine says it is made, and has it not");
	if (there > 0)
		docker_say(d, BACKEND_WAITING, "the image %s is ready", d->image);
	return there < 0 ? -1 : 0;
}

int image_ensure_present(struct docker *d, struct err *e)
{
	int rc;

	pthread_mutex_lock(&d->image_lock);
	rc = ensure(d, e);
	pthread_mutex_unlock(&d->image_lock);
	return rc < 0 ? err_wrap(e, "image %s", d->image) : 0;
}

int image_id(struct docker *d, char **ret, struct err *e)
{
	AUTO_JSON *root = NULL;
	const char *id;

	if (inspect(d, &root, e) < 0)
		return -1;
	id = json_get_string(root, "Id");
	*ret = id ? xstrdup(id) : NULL;
	return 0;
}
