/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <string.h>

#include "conf/conf.h"
#include "conf/table.h"

static const char markdown_head[] =
	"# Configuration\n\n"
	"<!-- Printed by `mcp-sandboxd config markdown`; change fcgi/conf/table.c, then "
	"run `make docs`. -->\n\n"
	"Every setting is an environment variable. The server also reads a file `.env` "
	"in "
	"its working folder; a variable of\n"
	"the environment wins over the same one in the file. A value that breaks its "
	"rule "
	"stops the start with a sentence\n"
	"that names the variable, the value and the rule. `mcp-sandboxd config "
	"effective` "
	"prints what is in force.\n\n"
	"Switches take `true`, `false`, `1`, `0`, `yes`, `no`, `on`, `off`. An empty "
	"number, "
	"switch or choice means the default.\n\n"
	"## The .env file\n\n"
	"One `NAME=VALUE` a line; an `export ` before it, empty lines and lines that "
	"begin "
	"with `#` are fine; so are CRLF ends.\n"
	"A bare value ends at the end of the line or at a `#` after a blank, without the "
	"blanks around it. A value in `'single\n"
	"quotes'` is taken as it stands. In `\"double quotes\"` a backslash makes `\\n`, "
	"`\\r`, "
	"`\\t`, `\\\\`, `\\\"`, `\\$` and `` \\` ``.\n"
	"A quoted value may span lines. Nothing is expanded. The last of several lines "
	"with "
	"one name counts. Names of other\n"
	"programs are passed over; one that is nearly ours is refused as a slip.\n";

/* A cell of a table: | would end it. */
static void print_cell(FILE *f, const char *s)
{
	for (; *s; s++) {
		if (*s == '|')
			fputc('\\', f);
		fputc(*s, f);
	}
}

static void print_range(FILE *f, const struct conf_row *row)
{
	if (row->kind == CONF_BOOL)
		fputs("true, false", f);
	else if (row->kind == CONF_INT || row->kind == CONF_DECIMAL)
		fprintf(f, "%" PRId64 " to %" PRId64, row->min, row->max);
	else
		print_cell(f, row->kind == CONF_CHOICE ? row->words : row->values);
}

static void print_row(FILE *f, const struct conf_row *row)
{
	fprintf(f, "| `%s` | ", row->name);
	if (*row->def) {
		fputc('`', f);
		print_cell(f, row->def);
		fputc('`', f);
	}
	fputs(" | ", f);
	print_range(f, row);
	fputs(" | ", f);
	print_cell(f, row->doc);
	fputs(" |\n", f);
}

void conf_print_markdown(FILE *f)
{
	size_t s, i;

	fputs(markdown_head, f);
	for (s = 0; s < conf_nsections; s++) {
		fprintf(f,
			"\n## %s\n\n| variable | default | values | meaning |\n"
			"|---|---|---|---|\n",
			conf_sections[s].title);
		for (i = 0; i < conf_sections[s].n; i++)
			print_row(f, &conf_sections[s].rows[i]);
	}
}

/*
 * Quoted so that a shell and our own reader (envfile.c) both take it as it stands:
 * in single quotes, or in double ones when it holds a single one.
 */
static void print_quoted(FILE *f, const char *v)
{
	const char *escaped = strchr(v, '\'') ? "\\\"$`" : "";
	char quote = *escaped ? '"' : '\'';

	fputc(quote, f);
	for (; *v; v++) {
		if (*escaped && strchr(escaped, *v))
			fputc('\\', f);
		fputc(*v, f);
	}
	fputc(quote, f);
}

static bool is_plain(const char *v)
{
	return strspn(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			 ",._/:-") == strlen(v);
}

static void print_env_row(FILE *f, const struct conf_row *row)
{
	fprintf(f, "\n# %s\n# Values: ", row->doc);
	print_range(f, row);
	fprintf(f, "\n#%s=", row->name);
	if (is_plain(row->def))
		fputs(row->def, f);
	else
		print_quoted(f, row->def);
	fputc('\n', f);
}

void conf_print_env_example(FILE *f)
{
	size_t s, i;

	fputs("# Printed by `mcp-sandboxd config env`. Copy to .env and change what you "
	      "need;\n# every line shows its default. docs/configuration.md explains the "
	      "format.\n",
	      f);
	for (s = 0; s < conf_nsections; s++) {
		fprintf(f, "\n# == %s ==\n", conf_sections[s].title);
		for (i = 0; i < conf_sections[s].n; i++)
			print_env_row(f, &conf_sections[s].rows[i]);
	}
}

/* Digits and a point, as num_parse_decimal() reads them: %g would say 1e-05. */
static void print_decimal(FILE *f, double v)
{
	char text[64];
	size_t n = (size_t)snprintf(text, sizeof text, "%.9f", v);

	while (text[n - 1] == '0')
		n--;
	n -= text[n - 1] == '.';
	fprintf(f, "'%.*s'", (int)n, text);
}

void conf_print_effective(const struct conf *c, FILE *f)
{
	const struct conf_row *row;
	const char *at;
	size_t i;

	for (i = 0; (row = conf_row_at(i)) != NULL; i++) {
		at = (const char *)c + row->offset;
		fprintf(f, "%s=", row->name);
		switch (row->kind) {
		case CONF_BOOL:
			fputs(*(const bool *)at ? "'true'" : "'false'", f);
			break;
		case CONF_INT:
			fprintf(f, "'%" PRId64 "'", *(const int64_t *)(const void *)at);
			break;
		case CONF_DECIMAL:
			print_decimal(f, *(const double *)(const void *)at);
			break;
		case CONF_TEXT:
		case CONF_CHOICE:
		case CONF_PATH:
			print_quoted(f, *(char *const *)(const void *)at);
			break;
		}
		fputc('\n', f);
	}
}
