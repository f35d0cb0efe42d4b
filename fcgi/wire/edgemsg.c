/* SPDX-License-Identifier: MIT */
#include "wire/edgemsg.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/io.h"
#include "base/json.h"

enum {
	MAGIC = 0x314d4745, /* "EGM1" */
	SEALS = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL,
	/* A message carries one descriptor; room for more so that extras are seen
	 * and closed, not left to the kernel's mercy. */
	FDS_MAX = 4,
};

/* Both ends are one binary on one machine: native byte order. */
struct header {
	uint32_t magic;
	uint16_t type;
	uint16_t in_memfd; /* 0 or 1 */
	uint64_t id;
	uint64_t length; /* of the body */
};

union control {
	struct cmsghdr align;
	char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
};

static int dump_body(const json_t *body, struct buf *b, struct err *e)
{
	if (!json_is_object(body))
		return err_set(e, ERR_SYSTEM, "a message's body must be a JSON object");
	json_dump_buf(body, b);
	if (!buf_ok(b))
		return err_set(e, ERR_LIMIT, "a message's body is over %d bytes",
			       EDGEMSG_BODY_MAX);
	return 0;
}

static int sealed_memfd(const struct buf *b, int *ret, struct err *e)
{
	AUTO_CLOSE int fd =
		memfd_create("mcp-sandboxd-message", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return err_sys(e, "memfd_create");
	if (io_write_all(fd, b->p, b->len, e) < 0)
		return -1;
	if (fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		return err_sys(e, "seal a message");
	*ret = MOVE_FD(fd);
	return 0;
}

static void attach_fd(struct msghdr *m, union control *control, int fd)
{
	struct cmsghdr *c;

	*control = (union control){.room = {0}};
	m->msg_control = control->room;
	m->msg_controllen = CMSG_SPACE(sizeof fd);
	c = CMSG_FIRSTHDR(m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
}

static int send_packet(int sock, const struct msghdr *m, struct err *e)
{
	ssize_t n;

	do
		n = sendmsg(sock, m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return 0;
	if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)
		return err_set(e, ERR_BUSY, "the other side is not reading");
	return err_sys(e, "send a message");
}

int edgemsg_send(int fd, enum edgemsg_type type, uint64_t id, const json_t *body,
		 struct err *e)
{
	AUTO_BUF b = BUF_INIT(EDGEMSG_BODY_MAX);
	AUTO_CLOSE int memfd = -1;
	union control control;
	struct header h = {.magic = MAGIC, .type = (uint16_t)type, .id = id};
	struct iovec iov[2] = {{&h, sizeof h}, {NULL, 0}};
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = 1};

	if (dump_body(body, &b, e) < 0)
		return -1;
	h.length = b.len;
	if (b.len <= EDGEMSG_INLINE_MAX) {
		iov[1] = (struct iovec){b.p, b.len};
		m.msg_iovlen = 2;
	} else {
		if (sealed_memfd(&b, &memfd, e) < 0)
			return -1;
		h.in_memfd = 1;
		attach_fd(&m, &control, memfd);
	}
	return send_packet(fd, &m, e);
}

static int check_header(const void *p, size_t n, struct header *ret, struct err *e)
{
	if (n < sizeof *ret)
		return err_set(e, ERR_INVALID, "a message of %zu bytes is too short", n);
	memcpy(ret, p, sizeof *ret);
	if (ret->magic != MAGIC)
		return err_set(e, ERR_INVALID, "not a message of this version");
	if (ret->type == 0 || ret->type >= MSG_TYPE_COUNT)
		return err_set(e, ERR_INVALID, "unknown message type %u", ret->type);
	if (ret->in_memfd > 1 ||
	    ret->length > (ret->in_memfd ? EDGEMSG_BODY_MAX : EDGEMSG_INLINE_MAX))
		return err_set(e, ERR_INVALID, "a message's length is out of range");
	return 0;
}

static int parse_body(const struct header *h, const char *p, struct edgemsg *ret,
		      struct err *e)
{
	AUTO_JSON *body = NULL;

	if (json_parse(p, h->length, &body, e) < 0)
		return err_wrap(e, "a message's body");
	if (!json_is_object(body))
		return err_set(e, ERR_INVALID, "a message's body is no JSON object");
	ret->type = (enum edgemsg_type)h->type;
	ret->id = h->id;
	ret->body = MOVE(body);
	return 0;
}

int edgemsg_decode(const void *p, size_t n, struct edgemsg *ret, struct err *e)
{
	struct header h = {0};

	if (check_header(p, n, &h, e) < 0)
		return -1;
	if (h.in_memfd)
		return err_set(e, ERR_INVALID, "a message's memfd is missing");
	if (n - sizeof h != h.length)
		return err_set(e, ERR_INVALID, "a message's length is not its body's");
	return parse_body(&h, (const char *)p + sizeof h, ret, e);
}

/* The bytes cannot change under the parser: the seals are looked at first. */
static int decode_memfd(const struct header *h, int fd, struct edgemsg *ret,
			struct err *e)
{
	struct stat st;
	void *p;
	int rc, seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & SEALS) != SEALS)
		return err_set(e, ERR_INVALID, "a message's memfd is not sealed");
	if (fstat(fd, &st) < 0)
		return err_sys(e, "look at a message");
	if (h->length == 0 || (uint64_t)st.st_size != h->length)
		return err_set(e, ERR_INVALID, "a message's length is not its memfd's");
	p = mmap(NULL, h->length, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return err_sys(e, "map a message");
	rc = parse_body(h, p, ret, e);
	munmap(p, h->length);
	return rc;
}

/* All descriptors that came, CLOEXEC; the number, at most FDS_MAX. */
static int take_fds(struct msghdr *m, int fds[static FDS_MAX])
{
	struct cmsghdr *c;
	size_t i, n;
	int fd, count = 0;

	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof fd;
		for (i = 0; i < n && count < FDS_MAX; i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
			fds[count++] = fd;
		}
	}
	return count;
}

static int decode_packet(const struct msghdr *m, size_t n, const int *fds, int nfds,
			 struct edgemsg *ret, struct err *e)
{
	const void *p = m->msg_iov[0].iov_base;
	struct header h = {0};

	if (m->msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return err_set(e, ERR_INVALID, "a message is too long");
	if (check_header(p, n, &h, e) < 0)
		return -1;
	if (nfds != h.in_memfd)
		return err_set(e, ERR_INVALID, "a message has %d descriptors, not %d",
			       nfds, h.in_memfd);
	if (!h.in_memfd)
		return edgemsg_decode(p, n, ret, e);
	if (n != sizeof h)
		return err_set(e, ERR_INVALID, "a message has a body and a memfd");
	return decode_memfd(&h, fds[0], ret, e);
}

/* An empty packet, which we never send, reads like the end. */
static bool is_over(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLRDHUP};

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

int edgemsg_recv(int fd, struct edgemsg *ret, int *ret_eof, struct err *e)
{
	/* Static per thread: a frame this large is more than a small stack holds. */
	static _Thread_local char packet[sizeof(struct header) + EDGEMSG_INLINE_MAX];
	union control control = {.room = {0}};
	struct iovec iov = {packet, sizeof packet};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.room,
			   .msg_controllen = sizeof control.room};
	int fds[FDS_MAX], nfds, rc;
	ssize_t n;

	do
		n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	*ret_eof = 0;
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	if (n < 0)
		return err_sys(e, "receive a message");
	nfds = take_fds(&m, fds);
	if (n == 0 && nfds == 0 && is_over(fd)) {
		*ret_eof = 1;
		return 0;
	}
	rc = decode_packet(&m, (size_t)n, fds, nfds, ret, e);
	while (nfds > 0)
		close(fds[--nfds]);
	return rc < 0 ? -1 : 1;
}

void edgemsg_release(struct edgemsg *m)
{
	json_decref(m->body);
	m->body = NULL;
}
