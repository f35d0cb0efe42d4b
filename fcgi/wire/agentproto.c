/* SPDX-License-Identifier: MIT */
#include "wire/agentproto.h"

#include <string.h>

/*
 * One table says for every message which fields it has, in which order they
 * travel and how large they may be. Encoder and decoder walk the same table,
 * so they cannot disagree.
 */
enum kind {
	U8,
	U16,
	U32,
	U64,
	I64,
	RAW8,  /* 8 bytes as they are */
	RAW16, /* 16 bytes as they are */
	ROOT,  /* u16 length, an absolute path */
	PATH,  /* u16 length, a relative path that stays inside */
	TAIL,  /* what is left of the payload, max bytes at most */
};

struct field {
	enum kind kind;
	uint16_t off; /* in the message's struct */
	uint64_t max;
};

#define F(kind, type, member, max)                                                       \
	{                                                                                \
		kind, (uint16_t)offsetof(struct type, member), max                       \
	}
#define ID(type) F(RAW16, type, id.run, 0), F(U32, type, id.index, UINT32_MAX)
#define U32_ANY  UINT32_MAX
#define OFFSET   (UINT64_C(1) << 60)

static const struct field hello_fields[] = {
	F(RAW8, ap_hello, magic, 0),
	F(U16, ap_hello, version_min, UINT16_MAX),
	F(U16, ap_hello, version_max, UINT16_MAX),
	F(RAW16, ap_hello, boot_id, 0),
	F(TAIL, ap_hello, known, AP_PAYLOAD_MAX),
};
static const struct field known_fields[] = {
	ID(ap_known),
	F(U8, ap_known, state, AP_STATE_COUNT - 1),
};
static const struct field resume_fields[] = {
	F(TAIL, ap_resume, offsets, AP_PAYLOAD_MAX),
};
static const struct field offsets_fields[] = {
	ID(ap_offsets),
	F(U64, ap_offsets, stdout_off, OFFSET),
	F(U64, ap_offsets, stderr_off, OFFSET),
};
static const struct field start_fields[] = {
	ID(ap_start),
	F(U32, ap_start, flags, AP_START_FLAGS_ALL),
	F(U32, ap_start, uid, U32_ANY),
	F(U32, ap_start, gid, U32_ANY),
	F(U32, ap_start, timeout_ms, U32_ANY),
	F(U32, ap_start, kill_grace_ms, U32_ANY),
	F(U64, ap_start, stdout_cap, OFFSET),
	F(U64, ap_start, stderr_cap, OFFSET),
	F(U32, ap_start, argc, AP_ARGS_MAX),
	F(U32, ap_start, envc, AP_ARGS_MAX),
	F(U32, ap_start, strings_bytes, AP_STRINGS_MAX),
	F(U32, ap_start, script_bytes, AP_SCRIPT_MAX),
	F(U32, ap_start, script_arg, AP_ARGS_MAX),
};
static const struct field data_fields[] = {
	F(TAIL, ap_data, bytes, AP_CHUNK_MAX),
};
static const struct field stdin_fields[] = {
	ID(ap_stdin),
	F(U64, ap_stdin, offset, OFFSET),
	F(TAIL, ap_stdin, bytes, AP_CHUNK_MAX),
};
static const struct field stdin_ack_fields[] = {
	ID(ap_stdin_ack),
	F(U64, ap_stdin_ack, offset, OFFSET),
};
static const struct field cancel_fields[] = {
	ID(ap_cancel),
	F(U32, ap_cancel, grace_ms, U32_ANY),
};
static const struct field ref_fields[] = {ID(ap_ref)};
static const struct field ping_fields[] = {F(U64, ap_ping, value, UINT64_MAX)};
static const struct field started_fields[] = {
	ID(ap_started),
	F(U32, ap_started, pid, U32_ANY),
	F(U64, ap_started, elapsed_us, OFFSET),
	F(U64, ap_started, stdin_off, OFFSET),
};
static const struct field output_fields[] = {
	ID(ap_output),
	F(U8, ap_output, stream, AP_STREAM_COUNT - 1),
	F(U64, ap_output, offset, OFFSET),
	F(TAIL, ap_output, bytes, AP_CHUNK_MAX),
};
static const struct field exit_fields[] = {
	ID(ap_exit),
	F(U8, ap_exit, how, AP_HOW_COUNT - 1),
	F(U8, ap_exit, stage, AP_STAGE_COUNT - 1),
	F(U32, ap_exit, value, U32_ANY),
	F(U32, ap_exit, flags, AP_EXIT_FLAGS_ALL),
	F(U32, ap_exit, background, U32_ANY),
	F(U64, ap_exit, stdout_total, OFFSET),
	F(U64, ap_exit, stderr_total, OFFSET),
	F(U64, ap_exit, stdout_kept, OFFSET),
	F(U64, ap_exit, stderr_kept, OFFSET),
	F(U64, ap_exit, user_us, OFFSET),
	F(U64, ap_exit, sys_us, OFFSET),
	F(U64, ap_exit, max_rss_kib, OFFSET),
	F(U64, ap_exit, duration_us, OFFSET),
};
static const struct field fs_list_fields[] = {
	F(U32, ap_fs_list, req, U32_ANY),
	F(U32, ap_fs_list, as_uid, U32_ANY),
	F(U32, ap_fs_list, credit, U32_ANY),
	F(U32, ap_fs_list, flags, AP_FS_FLAGS_ALL),
	F(U32, ap_fs_list, depth, AP_LIST_DEPTH_MAX),
	F(ROOT, ap_fs_list, root, AP_PATH_MAX),
};
static const struct field fs_read_fields[] = {
	F(U32, ap_fs_read, req, U32_ANY),
	F(U32, ap_fs_read, as_uid, U32_ANY),
	F(U32, ap_fs_read, credit, U32_ANY),
	F(U32, ap_fs_read, flags, AP_FS_FLAGS_ALL),
	F(U64, ap_fs_read, offset, OFFSET),
	F(U64, ap_fs_read, len, OFFSET),
	F(ROOT, ap_fs_read, root, AP_PATH_MAX),
	F(PATH, ap_fs_read, path, AP_PATH_MAX),
};
static const struct field fs_write_fields[] = {
	F(U32, ap_fs_write, req, U32_ANY),
	F(U32, ap_fs_write, uid, U32_ANY),
	F(U32, ap_fs_write, gid, U32_ANY),
	F(U32, ap_fs_write, mode, 07777),
	F(U32, ap_fs_write, flags, AP_WRITE_FLAGS_ALL),
	F(ROOT, ap_fs_write, root, AP_PATH_MAX),
	F(PATH, ap_fs_write, path, AP_PATH_MAX),
};
static const struct field fs_data_fields[] = {
	F(U32, ap_fs_data, req, U32_ANY),
	F(U64, ap_fs_data, offset, OFFSET),
	F(TAIL, ap_fs_data, bytes, AP_CHUNK_MAX),
};
static const struct field fs_ref_fields[] = {F(U32, ap_fs_ref, req, U32_ANY)};
static const struct field fs_credit_fields[] = {
	F(U32, ap_fs_credit, req, U32_ANY),
	F(U32, ap_fs_credit, bytes, U32_ANY),
};
static const struct field fs_entries_fields[] = {
	F(U32, ap_fs_entries, req, U32_ANY),
	F(TAIL, ap_fs_entries, entries, AP_CHUNK_MAX),
};
static const struct field entry_fields[] = {
	F(U8, ap_entry, type, AP_FILE_TYPE_COUNT - 1),
	F(U32, ap_entry, error, U32_ANY),
	F(U32, ap_entry, mode, 07777),
	F(U32, ap_entry, uid, U32_ANY),
	F(U32, ap_entry, gid, U32_ANY),
	F(U32, ap_entry, nlink, U32_ANY),
	F(U64, ap_entry, size, INT64_MAX),
	F(I64, ap_entry, mtime_ns, 0),
	F(I64, ap_entry, ctime_ns, 0),
	F(U64, ap_entry, dev, UINT64_MAX),
	F(U64, ap_entry, ino, UINT64_MAX),
	F(PATH, ap_entry, path, AP_PATH_MAX),
};
static const struct field fs_end_fields[] = {
	F(U32, ap_fs_end, req, U32_ANY),    F(U32, ap_fs_end, error, U32_ANY),
	F(U64, ap_fs_end, size, INT64_MAX), F(I64, ap_fs_end, mtime_ns, 0),
	F(I64, ap_fs_end, ctime_ns, 0),     F(U64, ap_fs_end, dev, UINT64_MAX),
	F(U64, ap_fs_end, ino, UINT64_MAX), F(U64, ap_fs_end, count, OFFSET),
};
static const struct field bye_fields[] = {
	F(U32, ap_bye, reason, AP_BYE_REASON_COUNT - 1),
};

struct layout {
	const struct field *fields;
	size_t n;
};
#define LAYOUT(name)                                                                     \
	{                                                                                \
		name##_fields, sizeof(name##_fields) / sizeof(name##_fields[0])          \
	}

static const struct layout known_layout = LAYOUT(known);
static const struct layout offsets_layout = LAYOUT(offsets);
static const struct layout entry_layout = LAYOUT(entry);

static uint64_t get_le(const uint8_t *p, size_t width)
{
	uint64_t v = 0;

	while (width-- > 0)
		v = v << 8 | p[width];
	return v;
}

static void put_le(uint8_t *p, size_t width, uint64_t v)
{
	for (size_t i = 0; i < width; i++, v >>= 8)
		p[i] = (uint8_t)v;
}

/* Bytes a field takes before what a view holds. */
static size_t fixed_width(enum kind kind)
{
	static const uint8_t width[] = {
		[U8] = 1,   [U16] = 2,    [U32] = 4,  [U64] = 8,  [I64] = 8,
		[RAW8] = 8, [RAW16] = 16, [ROOT] = 2, [PATH] = 2, [TAIL] = 0,
	};

	return width[kind];
}

static bool is_path_component(const uint8_t *p, size_t n)
{
	if (n == 0 || (n == 1 && p[0] == '.'))
		return false;
	return !(n == 2 && p[0] == '.' && p[1] == '.');
}

/* Relative, without NUL, empty components, "." or "..". */
static bool is_inner_path(struct ap_bytes path)
{
	size_t start = 0;

	if (path.n == 0 || memchr(path.p, '\0', path.n))
		return false;
	for (size_t i = 0; i <= path.n; i++) {
		if (i < path.n && path.p[i] != '/')
			continue;
		if (!is_path_component(path.p + start, i - start))
			return false;
		start = i + 1;
	}
	return true;
}

static bool is_root_path(struct ap_bytes path)
{
	return path.n > 0 && path.p[0] == '/' && !memchr(path.p, '\0', path.n);
}

/* Store a decoded number in the struct, in the member's own width. */
static void store_number(void *member, enum kind kind, uint64_t v)
{
	if (kind == U8)
		*(uint8_t *)member = (uint8_t)v;
	else if (kind == U16)
		*(uint16_t *)member = (uint16_t)v;
	else if (kind == U32)
		*(uint32_t *)member = (uint32_t)v;
	else if (kind == U64)
		*(uint64_t *)member = v;
	else
		*(int64_t *)member = (int64_t)v;
}

static uint64_t load_number(const void *member, enum kind kind)
{
	if (kind == U8)
		return *(const uint8_t *)member;
	if (kind == U16)
		return *(const uint16_t *)member;
	if (kind == U32)
		return *(const uint32_t *)member;
	if (kind == U64)
		return *(const uint64_t *)member;
	return (uint64_t) * (const int64_t *)member;
}

static bool get_view(const struct field *f, struct ap_bytes *in, struct ap_bytes *ret)
{
	size_t len = in->n;

	if (f->kind != TAIL) {
		len = (size_t)get_le(in->p, 2);
		in->p += 2;
		in->n -= 2;
	}
	if (len > in->n || len > f->max)
		return false;
	*ret = (struct ap_bytes){in->p, len};
	in->p += len;
	in->n -= len;
	if (f->kind == TAIL)
		return true;
	return f->kind == PATH ? is_inner_path(*ret) : is_root_path(*ret);
}

static bool get_field(const struct field *f, struct ap_bytes *in, void *base)
{
	void *member = (char *)base + f->off;
	size_t width = fixed_width(f->kind);
	uint64_t v;

	if (in->n < width)
		return false;
	if (f->kind >= ROOT)
		return get_view(f, in, member);
	if (f->kind == RAW8 || f->kind == RAW16) {
		memcpy(member, in->p, width);
	} else {
		v = get_le(in->p, width);
		if (f->kind != I64 && v > f->max)
			return false;
		store_number(member, f->kind, v);
	}
	in->p += width;
	in->n -= width;
	return true;
}

/* Fills base from the front of *in and moves it on. */
static bool get_fields(const struct layout *l, struct ap_bytes *in, void *base)
{
	for (size_t i = 0; i < l->n; i++) {
		if (!get_field(&l->fields[i], in, base))
			return false;
	}
	return true;
}

/* Bytes written for a field, SIZE_MAX when it does not fit. */
static size_t put_field(const struct field *f, const void *base, uint8_t *dst, size_t cap,
			bool head_only)
{
	const void *member = (const char *)base + f->off;
	size_t width = fixed_width(f->kind), len = 0;
	const struct ap_bytes *view = member;

	if (f->kind >= ROOT)
		len = view->n;
	if (len > AP_PAYLOAD_MAX || (f->kind >= ROOT && len > f->max))
		return SIZE_MAX;
	if (f->kind == TAIL && head_only)
		return 0;
	if (width + len > cap)
		return SIZE_MAX;
	if (f->kind == RAW8 || f->kind == RAW16)
		memcpy(dst, member, width);
	else if (f->kind < RAW8)
		put_le(dst, width, load_number(member, f->kind));
	else if (width)
		put_le(dst, width, len);
	if (len)
		memcpy(dst + width, view->p, len);
	return width + len;
}

static size_t put_fields(const struct layout *l, const void *base, uint8_t *dst,
			 size_t cap, bool head_only)
{
	size_t used = 0, n;

	for (size_t i = 0; i < l->n; i++) {
		n = put_field(&l->fields[i], base, dst + used, cap - used, head_only);
		if (n == SIZE_MAX)
			return SIZE_MAX;
		used += n;
	}
	return used;
}

/* The trailing view's length, 0 without one. */
static size_t tail_len(const struct layout *l, const void *base)
{
	const struct field *last;

	if (l->n == 0)
		return 0;
	last = &l->fields[l->n - 1];
	if (last->kind != TAIL)
		return 0;
	return ((const struct ap_bytes *)(const void *)((const char *)base + last->off))
		->n;
}

static int item_next(const struct layout *l, struct ap_bytes *list, void *ret)
{
	if (list->n == 0)
		return 0;
	return get_fields(l, list, ret) ? 1 : -1;
}

static size_t item_put(const struct layout *l, void *dst, size_t cap, const void *m)
{
	size_t n = put_fields(l, m, dst, cap, false);

	return n == SIZE_MAX ? 0 : n;
}

int ap_known_next(struct ap_bytes *list, struct ap_known *ret)
{
	return item_next(&known_layout, list, ret);
}

int ap_offsets_next(struct ap_bytes *list, struct ap_offsets *ret)
{
	return item_next(&offsets_layout, list, ret);
}

int ap_entry_next(struct ap_bytes *list, struct ap_entry *ret)
{
	return item_next(&entry_layout, list, ret);
}

size_t ap_known_put(void *dst, size_t cap, const struct ap_known *m)
{
	return item_put(&known_layout, dst, cap, m);
}

size_t ap_offsets_put(void *dst, size_t cap, const struct ap_offsets *m)
{
	return item_put(&offsets_layout, dst, cap, m);
}

size_t ap_entry_put(void *dst, size_t cap, const struct ap_entry *m)
{
	return item_put(&entry_layout, dst, cap, m);
}

/* Every item decodes, and there are no more than max. */
static bool is_list(const struct layout *l, struct ap_bytes list, size_t max)
{
	union {
		struct ap_known known;
		struct ap_offsets offsets;
		struct ap_entry entry;
	} item;
	size_t n = 0;
	int rc;

	while ((rc = item_next(l, &list, &item)) == 1) {
		if (++n > max)
			return false;
	}
	return rc == 0;
}

static bool check_hello(const struct ap_msg *m)
{
	const struct ap_hello *h = &m->u.hello;

	return memcmp(h->magic, AP_MAGIC, 8) == 0 && h->version_min <= h->version_max &&
	       is_list(&known_layout, h->known, AP_COMMANDS_MAX);
}

static bool check_resume(const struct ap_msg *m)
{
	return is_list(&offsets_layout, m->u.resume.offsets, AP_COMMANDS_MAX);
}

static bool check_start(const struct ap_msg *m)
{
	const struct ap_start *s = &m->u.start;

	/* Each string has its NUL: cwd, then the arguments and the environment. */
	if (s->argc == 0 || s->strings_bytes < 1 + s->argc + s->envc)
		return false;
	if (s->flags & AP_START_SCRIPT)
		return s->script_arg < s->argc;
	return s->script_bytes == 0 && s->script_arg == 0;
}

static bool check_entries(const struct ap_msg *m)
{
	return m->u.fs_entries.entries.n > 0 &&
	       is_list(&entry_layout, m->u.fs_entries.entries, SIZE_MAX);
}

static bool check_output(const struct ap_msg *m)
{
	return m->u.output.bytes.n > 0;
}

static bool check_stdin_eof(const struct ap_msg *m)
{
	return m->u.stdin_data.bytes.n == 0;
}

enum { BOTH = AP_FROM_RUNNER | AP_FROM_AGENT };

static const struct {
	struct layout layout;
	unsigned sides;
	/* Rules over several fields, and lists; NULL: none. */
	bool (*check)(const struct ap_msg *m);
} types[AP_TYPE_COUNT] = {
	[AP_HELLO] = {LAYOUT(hello), BOTH, check_hello},
	[AP_RESUME] = {LAYOUT(resume), AP_FROM_RUNNER, check_resume},
	[AP_START_BEGIN] = {LAYOUT(start), AP_FROM_RUNNER, check_start},
	[AP_START_DATA] = {LAYOUT(data), AP_FROM_RUNNER, NULL},
	[AP_START_END] = {{NULL, 0}, AP_FROM_RUNNER, NULL},
	[AP_STDIN] = {LAYOUT(stdin), AP_FROM_RUNNER, NULL},
	[AP_STDIN_EOF] = {LAYOUT(stdin), AP_FROM_RUNNER, check_stdin_eof},
	[AP_CANCEL] = {LAYOUT(cancel), AP_FROM_RUNNER, NULL},
	[AP_ACK] = {LAYOUT(offsets), AP_FROM_RUNNER, NULL},
	[AP_FORGET] = {LAYOUT(ref), AP_FROM_RUNNER, NULL},
	[AP_FS_LIST] = {LAYOUT(fs_list), AP_FROM_RUNNER, NULL},
	[AP_FS_READ] = {LAYOUT(fs_read), AP_FROM_RUNNER, NULL},
	[AP_FS_WRITE] = {LAYOUT(fs_write), AP_FROM_RUNNER, NULL},
	[AP_FS_WRITE_DATA] = {LAYOUT(fs_data), AP_FROM_RUNNER, NULL},
	[AP_FS_WRITE_END] = {LAYOUT(fs_ref), AP_FROM_RUNNER, NULL},
	[AP_FS_CANCEL] = {LAYOUT(fs_ref), AP_FROM_RUNNER, NULL},
	[AP_PING] = {LAYOUT(ping), BOTH, NULL},
	[AP_PONG] = {LAYOUT(ping), BOTH, NULL},
	[AP_FS_CREDIT] = {LAYOUT(fs_credit), BOTH, NULL},
	[AP_GONE] = {LAYOUT(ref), AP_FROM_AGENT, NULL},
	[AP_STARTED] = {LAYOUT(started), AP_FROM_AGENT, NULL},
	[AP_OUTPUT] = {LAYOUT(output), AP_FROM_AGENT, check_output},
	[AP_EXIT] = {LAYOUT(exit), AP_FROM_AGENT, NULL},
	[AP_STDIN_ACK] = {LAYOUT(stdin_ack), AP_FROM_AGENT, NULL},
	[AP_FS_ENTRIES] = {LAYOUT(fs_entries), AP_FROM_AGENT, check_entries},
	[AP_FS_DATA] = {LAYOUT(fs_data), AP_FROM_AGENT, NULL},
	[AP_FS_END] = {LAYOUT(fs_end), AP_FROM_AGENT, NULL},
	[AP_BYE] = {LAYOUT(bye), AP_FROM_AGENT, NULL},
};

enum ap_result ap_decode(const void *p, size_t n, enum ap_side from, struct ap_msg *ret,
			 size_t *ret_used)
{
	const uint8_t *in = p;
	struct ap_bytes payload;
	size_t len;
	uint8_t type;

	if (n < AP_HEADER)
		return AP_MORE;
	len = (size_t)get_le(in, 4);
	type = in[4];
	if (len > AP_PAYLOAD_MAX || in[5] || in[6] || in[7])
		return AP_BAD;
	if (type >= AP_TYPE_COUNT || !(types[type].sides & (unsigned)from))
		return AP_BAD;
	if (n - AP_HEADER < len)
		return AP_MORE;
	memset(ret, 0, sizeof(*ret));
	ret->type = (enum ap_type)type;
	payload = (struct ap_bytes){in + AP_HEADER, len};
	if (!get_fields(&types[type].layout, &payload, &ret->u) || payload.n > 0)
		return AP_BAD;
	if (types[type].check && !types[type].check(ret))
		return AP_BAD;
	*ret_used = AP_HEADER + len;
	return AP_OK;
}

static size_t encode(const struct ap_msg *m, uint8_t *dst, size_t cap, bool head_only)
{
	const struct layout *l = &types[m->type].layout;
	size_t used, len;

	if (cap < AP_HEADER)
		return 0;
	used = put_fields(l, &m->u, dst + AP_HEADER, cap - AP_HEADER, head_only);
	if (used == SIZE_MAX)
		return 0;
	len = used + (head_only ? tail_len(l, &m->u) : 0);
	if (len > AP_PAYLOAD_MAX)
		return 0;
	put_le(dst, 4, len);
	dst[4] = (uint8_t)m->type;
	memset(dst + 5, 0, 3);
	return AP_HEADER + used;
}

size_t ap_encode(const struct ap_msg *m, void *dst, size_t cap)
{
	return encode(m, dst, cap, false);
}

size_t ap_encode_head(const struct ap_msg *m, void *dst, size_t cap)
{
	return encode(m, dst, cap, true);
}

struct ap_msg ap_hello_init(void)
{
	struct ap_msg m = {.type = AP_HELLO};

	memcpy(m.u.hello.magic, AP_MAGIC, 8);
	m.u.hello.version_min = AP_VERSION_MIN;
	m.u.hello.version_max = AP_VERSION;
	return m;
}

unsigned ap_version(const struct ap_hello *theirs)
{
	if (theirs->version_min > AP_VERSION || theirs->version_max < AP_VERSION_MIN)
		return 0;
	return theirs->version_max < AP_VERSION ? theirs->version_max : AP_VERSION;
}

bool ap_id_equal(const struct ap_id *a, const struct ap_id *b)
{
	return a->index == b->index && memcmp(a->run, b->run, sizeof(a->run)) == 0;
}

void *ap_reader_space(struct ap_reader *r, size_t *ret_n)
{
	if (r->start == r->end) {
		r->start = r->end = 0;
	} else if (r->start > AP_FRAME_MAX) {
		memmove(r->buf, r->buf + r->start, r->end - r->start);
		r->end -= r->start;
		r->start = 0;
	}
	*ret_n = sizeof(r->buf) - r->end;
	return r->buf + r->end;
}

void ap_reader_fed(struct ap_reader *r, size_t n)
{
	r->end += n;
}

enum ap_result ap_reader_next(struct ap_reader *r, enum ap_side from, struct ap_msg *ret)
{
	size_t used;
	enum ap_result rc;

	rc = ap_decode(r->buf + r->start, r->end - r->start, from, ret, &used);
	if (rc == AP_OK)
		r->start += used;
	return rc;
}
