/* SPDX-License-Identifier: MIT */
#include "agent/fs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include "agent/fsreq.h"
#include "agent/users.h"

void fsreq_fail(struct fs_request *r, int error)
{
	r->end.error = (uint32_t)error;
	r->is_over = true;
}

static int64_t nanoseconds(struct timespec t)
{
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void fsreq_describe(struct fs_request *r, const struct stat *st)
{
	r->end.size = (uint64_t)st->st_size;
	r->end.mtime_ns = nanoseconds(st->st_mtim);
	r->end.ctime_ns = nanoseconds(st->st_ctim);
	r->end.dev = st->st_dev;
	r->end.ino = st->st_ino;
}

void fsreq_enter(const struct fs_request *r)
{
	if (r->uid == 0)
		return;
	setfsgid(r->gid);
	setfsuid(r->uid);
}

void fsreq_leave(const struct fs_request *r)
{
	if (r->uid == 0)
		return;
	setfsuid(geteuid());
	setfsgid(getegid());
}

void fsreq_copy(char dst[AP_PATH_MAX + 1], struct ap_bytes b)
{
	memcpy(dst, b.p, b.n);
	dst[b.n] = '\0';
}

static struct fs_request **find(struct fs *f, uint32_t req)
{
	for (size_t i = 0; i < AP_FS_REQUESTS_MAX; i++) {
		if (f->v[i] && f->v[i]->end.req == req)
			return &f->v[i];
	}
	return NULL;
}

static void drop(struct fs_request **slot)
{
	if ((*slot)->ops)
		(*slot)->ops->release(*slot);
	free(*slot);
	*slot = NULL;
}

static void put_end(const struct ap_fs_end *end, struct out *o)
{
	struct ap_msg m = {.type = AP_FS_END, .u.fs_end = *end};

	out_put(o, &m);
}

/* An empty place and a new request in it; NULL after it was refused. */
static struct fs_request *begin(struct fs *f, uint32_t req, uid_t uid, struct out *o)
{
	struct ap_fs_end refusal = {.req = req, .error = EAGAIN};
	struct fs_request *r = NULL;
	struct user u;

	if (find(f, req))
		refusal.error = EEXIST;
	for (size_t i = 0; i < AP_FS_REQUESTS_MAX && !r && refusal.error != EEXIST; i++) {
		if (f->v[i])
			continue;
		r = f->v[i] = calloc(1, sizeof(*r));
		if (!r)
			refusal.error = ENOMEM;
		break;
	}
	if (!r) {
		put_end(&refusal, o);
		return NULL;
	}
	r->end.req = req;
	r->fd = r->dirfd = -1;
	r->uid = uid;
	if (uid == 0)
		return r;
	if (users_find(uid, "/etc/passwd", "/etc/group", &u) < 0)
		fsreq_fail(r, errno);
	else
		r->gid = u.gid;
	return r;
}

static void add_credit(struct fs *f, const struct ap_fs_credit *m)
{
	struct fs_request **slot = find(f, m->req);

	/* Bounded, so that adding can never overflow. */
	if (slot && (*slot)->credit < INT64_MAX / 2)
		(*slot)->credit += m->bytes;
}

static void write_message(struct fs *f, const struct ap_msg *m, struct out *o)
{
	uint32_t req = m->type == AP_FS_WRITE_DATA ? m->u.fs_data.req : m->u.fs_ref.req;
	struct fs_request **slot = find(f, req);
	struct ap_msg credit = {.type = AP_FS_CREDIT, .u.fs_credit = {.req = req}};

	if (!slot || !fswrite_is(*slot) || (*slot)->is_over)
		return;
	if (m->type == AP_FS_WRITE_END) {
		fswrite_end(*slot);
		return;
	}
	fswrite_data(*slot, &m->u.fs_data);
	credit.u.fs_credit.bytes = (uint32_t)m->u.fs_data.bytes.n;
	if (!(*slot)->is_over)
		out_put(o, &credit);
}

static void write_begin(struct fs_request *r, const struct ap_fs_write *m, struct out *o)
{
	struct ap_msg credit = {.type = AP_FS_CREDIT,
				.u.fs_credit = {m->req, AP_FS_WRITE_WINDOW}};

	fswrite_start(r, m);
	if (!r->is_over)
		out_put(o, &credit);
}

static void cancel(struct fs *f, uint32_t req)
{
	struct fs_request **slot = find(f, req);

	if (slot && !(*slot)->is_over)
		fsreq_fail(*slot, ECANCELED);
}

void fs_message(struct fs *f, const struct ap_msg *m, struct out *o)
{
	struct fs_request *r;

	if (m->type == AP_FS_CREDIT) {
		add_credit(f, &m->u.fs_credit);
	} else if (m->type == AP_FS_CANCEL) {
		cancel(f, m->u.fs_ref.req);
	} else if (m->type == AP_FS_WRITE_DATA || m->type == AP_FS_WRITE_END) {
		write_message(f, m, o);
	} else if (m->type == AP_FS_LIST) {
		r = begin(f, m->u.fs_list.req, m->u.fs_list.as_uid, o);
		if (r && !r->is_over)
			fslist_start(r, &m->u.fs_list);
	} else if (m->type == AP_FS_READ) {
		r = begin(f, m->u.fs_read.req, m->u.fs_read.as_uid, o);
		if (r && !r->is_over)
			fsread_start(r, &m->u.fs_read);
	} else if (m->type == AP_FS_WRITE) {
		const struct ap_fs_write *w = &m->u.fs_write;

		r = begin(f, w->req, w->flags & AP_WRITE_AS_OWNER ? w->uid : 0, o);
		if (r && !r->is_over)
			write_begin(r, &m->u.fs_write, o);
	}
}

static bool put_from(struct fs_request **slot, struct out *o)
{
	struct fs_request *r = *slot;

	if (!r->is_over && r->ops->next && r->credit > 0) {
		r->ops->next(r, o);
		return true;
	}
	if (!r->is_over)
		return false;
	put_end(&r->end, o);
	drop(slot);
	return true;
}

bool fs_put_next(struct fs *f, struct out *o)
{
	for (size_t i = 0; i < AP_FS_REQUESTS_MAX; i++) {
		struct fs_request **slot = &f->v[f->turn++ % AP_FS_REQUESTS_MAX];

		if (*slot && put_from(slot, o))
			return true;
	}
	return false;
}

void fs_reset(struct fs *f)
{
	for (size_t i = 0; i < AP_FS_REQUESTS_MAX; i++) {
		if (f->v[i])
			drop(&f->v[i]);
	}
}
