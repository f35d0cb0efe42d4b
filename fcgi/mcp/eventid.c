/* SPDX-License-Identifier: MIT */
#include "mcp/eventid.h"

#include <inttypes.h>
#include <string.h>

#include "base/auto.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/num.h"
#include "base/str.h"
#include "mcp/jsonrpc.h"
#include "wire/idenc.h"

enum { TEXT_MAX = 8192, NUMBER_MAX = 24 };

void eventid_add(const struct eventid *x, struct buf *b)
{
	AUTO_JSON *doc =
		json_pack("[O, O?, I]", x->id, x->token, (json_int_t)x->until_ms);
	AUTO_BUF text = BUF_INIT(TEXT_MAX);

	rpc_add_json(&text, doc);
	buf_printf(b, "%s.%" PRId64 ".", x->run_id, x->place);
	base64url_add(b, text.p, text.len);
}

static bool is_id(const json_t *v)
{
	return json_is_string(v) || json_is_integer(v);
}

static int copy_part(struct str part, char *dst, size_t size, struct err *e)
{
	if (part.n >= size)
		return err_set(e, ERR_INVALID, "too long");
	memcpy(dst, part.p, part.n);
	dst[part.n] = '\0';
	return 0;
}

static int parse_doc(struct str text, struct eventid *x, struct err *e)
{
	AUTO_BUF plain = BUF_INIT(TEXT_MAX);
	AUTO_JSON *doc = NULL;
	const json_t *token, *until;

	if (base64_decode(&plain, text.p, text.n, e) < 0 ||
	    json_parse(plain.p, plain.len, &doc, e) < 0)
		return -1;
	x->id = json_array_get(doc, 0);
	token = json_array_get(doc, 1);
	until = json_array_get(doc, 2);
	if (!is_id(x->id) || !json_is_integer(until) ||
	    !(is_id(token) || json_is_null(token)))
		return err_set(e, ERR_INVALID, "not a request");
	x->token = json_is_null(token) ? NULL : token;
	x->until_ms = json_integer_value(until);
	x->doc = MOVE(doc);
	return 0;
}

int eventid_parse(const char *text, struct eventid *ret, struct err *e)
{
	struct str rest = str_of(text), run_id, place;
	char number[NUMBER_MAX];
	struct eventid x = {0};

	if (rest.n > TEXT_MAX || !str_cut(&rest, '.', &run_id) ||
	    !str_cut(&rest, '.', &place) || !rest.p)
		return err_set(e, ERR_INVALID, "no event id of ours");
	if (copy_part(run_id, x.run_id, sizeof(x.run_id), e) < 0 ||
	    copy_part(place, number, sizeof(number), e) < 0 ||
	    num_parse(number, 0, INT64_MAX / 2, &x.place, e) < 0)
		return -1;
	if (!idenc_is_run_id(x.run_id))
		return err_set(e, ERR_INVALID, "no event id of ours");
	if (parse_doc(rest, &x, e) < 0)
		return -1;
	*ret = x;
	return 0;
}
