/* SPDX-License-Identifier: MIT */
#include "conf/check.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"

enum { LABEL_MAX = 63, SUBDOMAIN_MAX = 253 };

static const char lower_digits[] = "abcdefghijklmnopqrstuvwxyz0123456789";
static const char letters_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789";

/* 1 to max characters of `ends` or `inside`, the first and the last of `ends`. */
static bool is_made_of(struct str s, const char *ends, const char *inside, size_t max)
{
	size_t i;

	if (s.n == 0 || s.n > max || !strchr(ends, s.p[0]) || !strchr(ends, s.p[s.n - 1]))
		return false;
	for (i = 0; i < s.n; i++)
		if (!s.p[i] || (!strchr(ends, s.p[i]) && !strchr(inside, s.p[i])))
			return false;
	return true;
}

static bool is_dns_label(struct str s)
{
	return is_made_of(s, lower_digits, "-", LABEL_MAX);
}

static bool is_subdomain(struct str s)
{
	struct str part;

	if (s.n == 0 || s.n > SUBDOMAIN_MAX)
		return false;
	while (str_cut(&s, '.', &part))
		if (!is_dns_label(part))
			return false;
	return true;
}

/* The part of a label's key behind the '/'. */
static bool is_label_name(struct str s)
{
	return is_made_of(s, letters_digits, "-_.", LABEL_MAX);
}

static bool is_label_value(struct str s)
{
	return s.n == 0 || is_label_name(s);
}

static bool is_label_key(struct str s)
{
	struct str domain;

	if (s.n == 0 || !memchr(s.p, '/', s.n))
		return is_label_name(s);
	str_cut(&s, '/', &domain);
	return is_subdomain(domain) && is_label_name(s);
}

int check_kube_container(const char *v, struct err *e)
{
	if (!is_dns_label(str_of(v)))
		return err_set(e, ERR_INVALID,
			       "must be 1 to 63 lower-case letters, digits and - with a "
			       "letter or digit at both ends");
	return 0;
}

int check_kube_name(const char *v, struct err *e)
{
	return *v ? check_kube_container(v, e) : 0;
}

int check_kube_subdomain(const char *v, struct err *e)
{
	if (*v && !is_subdomain(str_of(v)))
		return err_set(e, ERR_INVALID,
			       "must be the name of a Kubernetes object: lower-case "
			       "letters, digits, - and .");
	return 0;
}

int check_kube_names(const char *v, struct err *e)
{
	struct str rest = str_of(v), word;

	while (*v && str_cut(&rest, ',', &word))
		if (!is_subdomain(str_trim(word)))
			return err_set(e, ERR_INVALID,
				       "must be a comma list of names of Kubernetes "
				       "objects");
	return 0;
}

/* Something follows it: "<prefix>policy_fingerprint" must be a label's key. */
int check_kube_prefix(const char *v, struct err *e)
{
	struct str rest = str_of(v), domain;
	bool has_domain = strchr(v, '/') != NULL;

	if (has_domain)
		str_cut(&rest, '/', &domain);
	if ((has_domain && !is_subdomain(domain)) || rest.n > LABEL_MAX - 24 ||
	    (rest.n > 0 && !is_made_of((struct str){rest.p, 1}, letters_digits, "", 1)) ||
	    strspn(rest.p, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
			   "0123456789-_.") < rest.n)
		return err_set(e, ERR_INVALID,
			       "must be what a label's name can begin with, such as mcp. "
			       "or example.org/");
	return 0;
}

int check_kube_selector(const char *v, struct err *e)
{
	struct str rest = str_of(v), word, key;

	while (*v && str_cut(&rest, ',', &word)) {
		word = str_trim(word);
		str_cut(&word, '=', &key);
		if (!word.p || !is_label_key(key) || !is_label_value(word))
			return err_set(e, ERR_INVALID,
				       "must be a comma list of label=value");
	}
	return 0;
}

static bool is_effect(struct str s)
{
	return str_eq(s, "NoSchedule") || str_eq(s, "PreferNoSchedule") ||
	       str_eq(s, "NoExecute");
}

int check_kube_tolerations(const char *v, struct err *e)
{
	struct str rest = str_of(v), word, key;

	while (*v && str_cut(&rest, ',', &word)) {
		struct str before;

		word = str_trim(word);
		str_cut(&word, ':', &before);
		str_cut(&before, '=', &key);
		if (!word.p || !is_effect(word) || !is_label_key(key) ||
		    (before.p && !is_label_value(before)))
			return err_set(e, ERR_INVALID,
				       "must be a comma list of key=value:effect or "
				       "key:effect with the effects NoSchedule, "
				       "PreferNoSchedule and NoExecute");
	}
	return 0;
}

int check_kube_architectures(const char *v, struct err *e)
{
	struct str rest = str_of(v), word;

	while (*v && str_cut(&rest, ',', &word)) {
		word = str_trim(word);
		if (!str_eq(word, "amd64") && !str_eq(word, "arm64"))
			return err_set(e, ERR_INVALID,
				       "must be amd64, arm64, or both with a comma");
	}
	return 0;
}

int check_kube_quantity(const char *v, struct err *e)
{
	static const char *const units[] = {"",  "Ki", "Mi", "Gi", "Ti", "Pi",
					    "k", "M",  "G",  "T",  "P"};
	size_t digits = strspn(v, "0123456789"), i;

	if (!*v)
		return 0;
	for (i = 0; digits > 0 && digits < 16 && i < sizeof units / sizeof *units; i++)
		if (strcmp(v + digits, units[i]) == 0)
			return 0;
	return err_set(e, ERR_INVALID, "must be an amount such as 10Gi");
}
