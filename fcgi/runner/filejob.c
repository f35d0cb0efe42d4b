/* SPDX-License-Identifier: MIT */
#include "runner/filejob.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "runner/agentlink.h"
#include "runner/audit.h"
#include "runner/filelist.h"
#include "runner/sandboxes.h"
#include "runner/sandboxrec.h"
#include "runner/sync.h"
#include "wire/idenc.h"

enum {
	JOBS_MAX = 64,    /* of one sandbox */
	GUARD_MS = 60000, /* an agent that has not ended it by then never will */
	LIST_CREDIT = 256 * 1024,
	UID_SANDBOX = 1000,
	BYTES_MAX = 256 * 1024 * 1024, /* content of all jobs together */
};

struct filejob {
	struct filejob *next;
	struct sandbox *sb;
	struct replyto to;
	enum file_op op;
	struct file_spec spec;
	uint32_t req; /* the request that is open; 0: it waits */
	int64_t guard_mono;
	struct buf got;        /* read */
	struct filelist list;  /* list */
	uint64_t sent, credit; /* write */
	bool is_ended;         /* write: all is sent */
};

uint32_t sandbox_next_req(struct sandbox *sb)
{
	sb->next_req = sb->next_req == UINT32_MAX ? 1 : sb->next_req + 1;
	return sb->next_req;
}

/* ---- life */

/* Bytes that a job may hold: of what it brings, or of what it fetches. */
static size_t weight(const struct filejob *j)
{
	return j->op == FILE_READ ? (size_t)j->spec.max_bytes : j->spec.data_len;
}

static void forget_progress(struct filejob *j)
{
	if (j->req)
		j->sb->open_files--;
	j->req = 0;
	j->guard_mono = 0;
	buf_release(&j->got);
	j->got = (struct buf)BUF_INIT((size_t)j->spec.max_bytes);
	filelist_release(&j->list);
	j->sent = j->credit = 0;
	j->is_ended = false;
}

static void unlist(struct filejob *j)
{
	struct filejob *before = j->sb->files;

	if (before == j) {
		j->sb->files = j->next;
		return;
	}
	while (before->next != j)
		before = before->next;
	before->next = j->next;
}

static void job_drop(struct filejob *j)
{
	unlist(j);
	j->sb->nfiles--;
	j->sb->r->file_bytes -= weight(j);
	forget_progress(j);
	buf_release(&j->got);
	filespec_release(&j->spec);
	free(j);
}

static void job_fail(struct filejob *j, const struct err *why)
{
	edges_err(j->sb->r->edges, j->to, why);
	job_drop(j);
}

/* Takes body. */
static void job_done(struct filejob *j, json_t *body)
{
	edges_ok(j->sb->r->edges, j->to, body);
	job_drop(j);
}

static struct filejob *owner(const struct sandbox *sb, uint32_t req)
{
	struct filejob *j = req ? sb->files : NULL;

	while (j && j->req != req)
		j = j->next;
	return j;
}

/* ---- accept */

static bool has_sandbox(const struct sandbox *sb)
{
	return sb && (sb->has_row || sb->state != SANDBOX_ABSENT) && !sb->removing &&
	       !sb->remove_next;
}

/* Only writing makes a sandbox: in a new one there is nothing to be read. */
static int find_sandbox(struct runner *r, const char *tenant, const struct filejob *j,
			struct sandbox **ret, struct err *e)
{
	*ret = sandbox_find(r, tenant, j->spec.identifier);
	if (j->op == FILE_WRITE)
		return sandbox_get(r, tenant, j->spec.identifier, ret, e);
	if (!has_sandbox(*ret))
		return err_set(e, ERR_NOT_FOUND,
			       "there is no sandbox for this identifier; run_sandbox or "
			       "write_file makes one");
	return 0;
}

static int check_room(const struct runner *r, const struct filejob *j,
		      const struct sandbox *sb, struct err *e)
{
	if (sb->nfiles >= JOBS_MAX || r->file_bytes + weight(j) > BYTES_MAX)
		return err_set(e, ERR_BUSY, "too many file requests wait");
	return 0;
}

static void enlist(struct filejob *j, struct sandbox *sb)
{
	struct filejob **p = &sb->files;

	while (*p)
		p = &(*p)->next;
	*p = j;
	j->sb = sb;
	sb->nfiles++;
	sb->r->file_bytes += weight(j);
}

static int accept_job(struct runner *r, const char *tenant, struct filejob *j,
		      struct err *e)
{
	struct sandbox *sb;

	if (find_sandbox(r, tenant, j, &sb, e) < 0)
		return -1;
	if (check_room(r, j, sb, e) < 0) {
		sandbox_kick(sb); /* one that was made for this goes again */
		return -1;
	}
	j->got = (struct buf)BUF_INIT((size_t)j->spec.max_bytes);
	enlist(j, sb);
	if (j->op == FILE_WRITE)
		audit(r, &(struct audit_event){AUDIT_CLIENT, tenant, "write_file",
					       j->spec.identifier});
	sandbox_extend(sb, clock_now_ms(),
		       sb->ttl_s ? sb->ttl_s : r->conf->default_ttl_s);
	sandbox_kick(sb);
	return 0;
}

int filejob_accept(struct runner *r, struct replyto to, const json_t *body,
		   enum file_op op, struct err *e)
{
	const char *tenant = json_get_string(body, "tenant");
	struct filejob *j;

	if (!tenant || !idenc_is_tenant(tenant))
		return err_set(e, ERR_INVALID, "bad tenant");
	j = xcalloc(1, sizeof(*j));
	j->to = to;
	j->op = op;
	if (filespec_parse(json_object_get(body, "args"), op, &j->spec, e) < 0 ||
	    accept_job(r, tenant, j, e) < 0) {
		filespec_release(&j->spec);
		free(j);
		return -1;
	}
	return 0;
}

/* ---- requests to the agent */

static struct ap_bytes bytes_of(const char *text)
{
	return (struct ap_bytes){.p = (const uint8_t *)text, .n = strlen(text)};
}

static void send_read(struct filejob *j)
{
	struct ap_msg m = {.type = AP_FS_READ};

	m.u.fs_read = (struct ap_fs_read){
		.req = j->req,
		.as_uid = j->spec.as_root ? 0 : UID_SANDBOX,
		.credit = (uint32_t)j->spec.max_bytes,
		.flags = AP_FS_FOLLOW,
		.offset = (uint64_t)j->spec.offset,
		.len = (uint64_t)j->spec.max_bytes,
		.root = bytes_of("/"),
		.path = bytes_of(j->spec.path + 1),
	};
	agentconn_send(j->sb->conn, &m);
}

static void send_list(struct filejob *j)
{
	struct ap_msg m = {.type = AP_FS_LIST};

	m.u.fs_list = (struct ap_fs_list){
		.req = j->req,
		.as_uid = j->spec.as_root ? 0 : UID_SANDBOX,
		.credit = LIST_CREDIT,
		.flags = AP_FS_FOLLOW,
		.depth = (uint32_t)j->spec.depth,
		.root = bytes_of(j->spec.path),
	};
	agentconn_send(j->sb->conn, &m);
}

static void send_write(struct filejob *j)
{
	struct ap_msg m = {.type = AP_FS_WRITE};

	m.u.fs_write = (struct ap_fs_write){
		.req = j->req,
		.uid = j->spec.as_root ? 0 : UID_SANDBOX,
		.mode = j->spec.mode < 0 ? 0644 : (uint32_t)j->spec.mode,
		.flags = AP_WRITE_MKDIRS | AP_WRITE_FOLLOW |
			 (j->spec.as_root ? 0 : (uint32_t)AP_WRITE_AS_OWNER) |
			 (j->spec.mode < 0 ? (uint32_t)AP_WRITE_KEEP : 0),
		.root = bytes_of("/"),
		.path = bytes_of(j->spec.path + 1),
	};
	agentconn_send(j->sb->conn, &m);
}

/* As much of the content as the agent takes now. */
static void feed(struct filejob *j)
{
	struct ap_msg m = {.type = AP_FS_WRITE_DATA};

	while (j->credit > 0 && j->sent < j->spec.data_len) {
		size_t left = j->spec.data_len - j->sent;
		size_t n = left < AP_CHUNK_MAX ? left : AP_CHUNK_MAX;

		if (n > j->credit)
			n = (size_t)j->credit;
		m.u.fs_data = (struct ap_fs_data){
			.req = j->req,
			.offset = j->sent,
			.bytes = {(const uint8_t *)j->spec.data + j->sent, n}};
		agentconn_send(j->sb->conn, &m);
		j->sent += n;
		j->credit -= n;
	}
	if (j->sent == j->spec.data_len && !j->is_ended) {
		j->is_ended = true;
		agentconn_send(j->sb->conn, &(struct ap_msg){.type = AP_FS_WRITE_END,
							     .u.fs_ref.req = j->req});
	}
	agentconn_flush(j->sb->conn);
}

static void send_job(struct filejob *j)
{
	static void (*const send[])(struct filejob *) = {[FILE_READ] = send_read,
							 [FILE_WRITE] = send_write,
							 [FILE_LIST] = send_list};

	j->req = sandbox_next_req(j->sb);
	j->sb->open_files++;
	j->guard_mono = clock_mono_ms() + GUARD_MS;
	send[j->op](j);
	agentconn_flush(j->sb->conn);
}

void filejobs_start(struct sandbox *sb)
{
	for (struct filejob *j = sb->files; j && sb->conn; j = j->next) {
		if (sb->state != SANDBOX_READY || sb->open_files >= FILEJOBS_OPEN_MAX)
			return;
		/* Freed ones are in no list. */
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
		if (!j->req)
			send_job(j);
	}
}

/* ---- what the agent says */

static void cancel_request(struct filejob *j)
{
	agentconn_send(j->sb->conn,
		       &(struct ap_msg){.type = AP_FS_CANCEL, .u.fs_ref.req = j->req});
	agentconn_flush(j->sb->conn);
}

bool filejobs_on_entries(struct sandbox *sb, const struct ap_fs_entries *m)
{
	struct filejob *j = owner(sb, m->req);
	struct ap_msg credit = {.type = AP_FS_CREDIT};
	struct ap_bytes list = m->entries;
	struct ap_entry entry;

	if (!j || j->op != FILE_LIST)
		return j != NULL;
	while (!j->list.cut && ap_entry_next(&list, &entry) > 0)
		if (!filelist_add(&j->list, &entry))
			cancel_request(j); /* what is there is the answer */
	if (j->list.cut)                   /* it gets no more of it */
		return true;
	credit.u.fs_credit =
		(struct ap_fs_credit){.req = m->req, .bytes = (uint32_t)m->entries.n};
	agentconn_send(sb->conn, &credit);
	agentconn_flush(sb->conn);
	return true;
}

bool filejobs_on_data(struct sandbox *sb, const struct ap_fs_data *m)
{
	struct filejob *j = owner(sb, m->req);

	if (!j)
		return false;
	if (j->op != FILE_READ || m->offset != (uint64_t)j->spec.offset + j->got.len ||
	    m->bytes.n > j->got.max - j->got.len)
		agentlink_distrust(sb, "the agent sent bytes of a file that were not "
				       "asked for");
	else
		buf_add(&j->got, m->bytes.p, m->bytes.n);
	return true;
}

bool filejobs_on_credit(struct sandbox *sb, const struct ap_fs_credit *m)
{
	struct filejob *j = owner(sb, m->req);

	if (!j)
		return false;
	if (j->op == FILE_WRITE && j->credit <= AP_FS_WRITE_WINDOW) {
		j->credit += m->bytes;
		feed(j);
	}
	return true;
}

static json_t *read_answer(const struct filejob *j, const struct ap_fs_end *m)
{
	AUTO_BUF b = BUF_INIT(j->got.len * 2 + 8);

	base64_add(&b, j->got.p, j->got.len);
	return json_must(json_pack("{s:s,s:I,s:I,s:o}", "path", j->spec.path, "size",
				   (json_int_t)(m->size & INT64_MAX), "offset",
				   (json_int_t)j->spec.offset, "data",
				   json_stringn(b.p, b.len)));
}

static json_t *answer_of(struct filejob *j, const struct ap_fs_end *m)
{
	switch (j->op) {
	case FILE_READ:
		return read_answer(j, m);
	case FILE_WRITE:
		return json_must(json_pack("{s:s,s:I}", "path", j->spec.path, "size",
					   (json_int_t)j->spec.data_len));
	case FILE_LIST:
		return filelist_page(&j->list, &j->spec);
	}
	return json_object();
}

static const struct {
	int error;
	enum err_kind kind;
	const char *words;
} errors[] = {
	{ENOENT, ERR_NOT_FOUND, "there is no such file or folder"},
	{EACCES, ERR_DENIED, "the user may not do that; as_user root may"},
	{EPERM, ERR_DENIED, "the user may not do that"},
	{EISDIR, ERR_INVALID, "it is a folder; list_files shows what is in it"},
	{ENOTDIR, ERR_INVALID, "it, or something on the way to it, is no folder"},
	{ELOOP, ERR_INVALID,
	 "it is a symbolic link that cannot be followed here; send the path it leads to"},
	{EINVAL, ERR_INVALID, "it is no regular file"},
	{ENXIO, ERR_INVALID, "it is no regular file"},
	{EEXIST, ERR_CONFLICT, "something of that name is in the way"},
	{ENAMETOOLONG, ERR_INVALID, "the path is too long"},
	{EROFS, ERR_DENIED, "it cannot be written there"},
	{ENOSPC, ERR_LIMIT, "there is no room left in the sandbox"},
	{EDQUOT, ERR_LIMIT, "there is no room left in the sandbox"},
	{EAGAIN, ERR_BUSY, "the sandbox is at too many files already"},
};

static void fail_with_errno(struct filejob *j, uint32_t error)
{
	struct err why = ERR_INIT;
	char words[128];

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if ((uint32_t)errors[i].error == error)
			err_set(&why, errors[i].kind, "%.300s: %s", j->spec.path,
				errors[i].words);
	if (why.kind == ERR_NONE)
		err_set(&why, ERR_BACKEND, "%.300s: %s", j->spec.path,
			strerror_r((int)(error % 4096), words, sizeof(words)));
	job_fail(j, &why);
}

bool filejobs_on_end(struct sandbox *sb, const struct ap_fs_end *m)
{
	struct filejob *j = owner(sb, m->req);

	if (!j)
		return false;
	if (m->error && !(j->list.cut && m->error == ECANCELED))
		fail_with_errno(j, m->error);
	else
		job_done(j, answer_of(j, m));
	filejobs_start(sb);
	return true;
}

/* ---- all of a sandbox */

void filejobs_link_lost(struct sandbox *sb)
{
	for (struct filejob *j = sb->files; j; j = j->next)
		forget_progress(j);
}

void filejobs_fail(struct sandbox *sb, const struct err *why)
{
	while (sb->files) {
		/* Freed ones are in no list. */
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
		if (sb->files->req && sb->conn)
			cancel_request(sb->files);
		job_fail(sb->files, why);
	}
}

void filejobs_fail_with(struct sandbox *sb, enum err_kind kind, const char *words)
{
	struct err why = ERR_INIT;

	err_set(&why, kind, "%s", words);
	filejobs_fail(sb, &why);
}

void filejobs_guard(struct sandbox *sb, int64_t mono_ms)
{
	struct filejob *next;
	struct err why = ERR_INIT;

	for (struct filejob *j = sb->files; j; j = next) {
		next = j->next;
		if (!j->guard_mono || mono_ms < j->guard_mono)
			continue;
		cancel_request(j);
		err_set(&why, ERR_TIMEOUT, "the sandbox did not answer in time");
		job_fail(j, &why);
	}
	filejobs_start(sb);
}
