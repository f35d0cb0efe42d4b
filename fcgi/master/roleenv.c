/* SPDX-License-Identifier: MIT */
#include "master/roleenv.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/mem.h"

/* What the runner's backends read from the environment besides the configuration. */
static const char *const runner_patterns[] = {
	"DOCKER_*=*",    "KUBE*=*",       "HOME=*",          "CONTAINER_HOST=*",
	"HTTP_PROXY=*",  "HTTPS_PROXY=*", "NO_PROXY=*",      "http_proxy=*",
	"https_proxy=*", "no_proxy=*",    "POD_NAMESPACE=*", "XDG_RUNTIME_DIR=*",
};
/* What both need: where programs are, who reads the log, sanitizers' options in tests. */
static const char *const common_patterns[] = {"PATH=*", "TZ=*", "JOURNAL_STREAM=*",
					      "*SAN_OPTIONS=*"};

struct env {
	char **v;
	size_t n;
};

static void env_add(struct env *env, char *pair)
{
	env->v = xrealloc(env->v, (env->n + 2) * sizeof(*env->v));
	env->v[env->n++] = pair;
	env->v[env->n] = NULL;
}

static bool matches(const char *pair, const char *const *patterns, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (fnmatch(patterns[i], pair, 0) == 0)
			return true;
	return false;
}

static void env_pass(struct env *env, char **from, const char *const *patterns, size_t n)
{
	for (char **p = from; *p; p++)
		if (matches(*p, patterns, n))
			env_add(env, xstrdup(*p));
}

static int add_setting(void *arg, const char *key, const char *value, struct err *e)
{
	struct env *env = (struct env *)arg;

	(void)e;
	if (strcmp(key, "RUN_DIR") != 0) /* resolved by the master, added by itself */
		env_add(env, xasprintf("%s=%s", key, value));
	return 0;
}

/* The configuration as text, read back by the one reader of such text. */
static int env_add_conf(struct env *env, const struct conf *c, struct err *e)
{
	AUTO_FREE char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return err_sys(e, "open a memory stream");
	conf_print_effective(c, f);
	if (fclose(f) != 0)
		return err_sys(e, "write to memory");
	return conf_parse_env_text(text, n, add_setting, env, e);
}

int roleenv_make(enum role_kind kind, const struct conf *c, const char *run_dir,
		 char **environment, char ***ret, struct err *e)
{
	struct env env = {0};

	env_pass(&env, environment, common_patterns,
		 sizeof(common_patterns) / sizeof(common_patterns[0]));
	if (kind == ROLE_RUNNER)
		env_pass(&env, environment, runner_patterns,
			 sizeof(runner_patterns) / sizeof(runner_patterns[0]));
	if (env_add_conf(&env, c, e) < 0) {
		strv_free(env.v);
		return err_wrap(e, "the environment of the %s", role_name(kind));
	}
	env_add(&env, xasprintf("RUN_DIR=%s", run_dir));
	*ret = env.v;
	return 0;
}
