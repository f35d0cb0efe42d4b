/* SPDX-License-Identifier: MIT */
#include "backend/local/aptsource.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/str.h"

static const char folder[] = "/etc/apt/sources.list.d";

int aptsource_suite(const char *wanted, char **ret, struct err *e)
{
	static const char key[] = "VERSION_CODENAME=";
	AUTO_BUF text = BUF_INIT(65536);
	struct str rest, line;

	if (wanted && *wanted) {
		*ret = xstrdup(wanted);
		return 0;
	}
	if (io_read_file("/etc/os-release", &text, e) < 0)
		return -1;
	rest = (struct str){text.p, text.len};
	while (str_cut(&rest, '\n', &line)) {
		line = str_trim(line);
		if (line.n > strlen(key) && strncmp(line.p, key, strlen(key)) == 0) {
			*ret = xstrndup(line.p + strlen(key), line.n - strlen(key));
			return 0;
		}
	}
	return err_set(e, ERR_NOT_FOUND,
		       "this host's release has no code name: set ROOTFS_SUITE (and "
		       "ROOTFS_MIRROR)");
}

static bool has_word(struct str line, const char *word)
{
	struct str part;

	while (str_cut(&line, ' ', &part))
		if (str_eq(str_trim(part), word))
			return true;
	return false;
}

/*
 * The suite is named, and it is signed by the distribution: a keyring of its
 * archive, or none named. A third party's source has a key the image lacks.
 */
bool aptsource_fits(const char *p, size_t n, const char *suite)
{
	AUTO_FREE char *text = xstrndup(p, n);
	struct str rest = str_of(text), line;
	bool named = false;

	while (str_cut(&rest, '\n', &line)) {
		line = str_trim(line);
		if (line.n == 0 || line.p[0] == '#')
			continue;
		named = named || has_word(line, suite);
	}
	return named &&
	       (!strcasestr(text, "signed-by") || strstr(text, "-archive-keyring"));
}

static void add(char **v, const char *s)
{
	size_t n = strv_len(v);

	if (n < APT_SOURCES_MAX)
		v[n] = xstrdup(s);
}

static void add_file(char **v, const char *path, const char *suite)
{
	AUTO_BUF text = BUF_INIT(1 << 20);
	struct err e = ERR_INIT;

	if (io_read_file(path, &text, &e) == 0 && aptsource_fits(text.p, text.len, suite))
		add(v, path);
}

char **aptsource_list(const char *suite, const char *mirror)
{
	char **v = xcalloc(APT_SOURCES_MAX + 1, sizeof *v);
	struct dirent **names = NULL;
	int i, n;

	if (mirror && *mirror) {
		v[0] = xasprintf("deb %s %s main%s", mirror, suite,
				 strstr(mirror, "ubuntu") ? " universe" : "");
		return v;
	}
	add_file(v, "/etc/apt/sources.list", suite);
	n = scandir(folder, &names, NULL, alphasort);
	for (i = 0; i < n; i++) {
		AUTO_FREE char *path = xasprintf("%s/%s", folder, names[i]->d_name);

		if (str_ends(path, ".list") || str_ends(path, ".sources"))
			add_file(v, path, suite);
		free(names[i]);
	}
	free(names);
	return v;
}
