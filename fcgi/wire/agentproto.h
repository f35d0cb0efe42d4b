/* SPDX-License-Identifier: MIT */
#ifndef WIRE_AGENTPROTO_H
#define WIRE_AGENTPROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The protocol between the runner and the agent in a sandbox, over one byte
 * stream. Pure: bytes to structs and back, no I/O, no allocation, libc only;
 * both sides use this code, both treat the other's bytes as hostile. The order
 * of messages and their meaning are told in docs/agent.md; in short:
 *
 *   agent                               runner
 *   HELLO (boot id, known commands) ->
 *                                    <- HELLO, RESUME (offsets it has stored)
 *   GONE for ids it does not know   ->
 *   STARTED, OUTPUT, EXIT per command, from those offsets on
 *                                    <- START_BEGIN, START_DATA.., START_END
 *                                    <- ACK after each commit, FORGET after EXIT
 *
 * A frame is u32 payload length, u8 type, three zero bytes, payload. All
 * numbers are little-endian. A frame that does not decode ends the connection
 * (never the agent); commands go on and are resumed by the next one.
 */
enum {
	AP_VERSION = 2,
	AP_VERSION_MIN = 1,
	AP_HEADER = 8,
	AP_PAYLOAD_MAX = 65536,
	AP_FRAME_MAX = AP_HEADER + AP_PAYLOAD_MAX,
	AP_CHUNK_MAX = 60 * 1024,     /* data bytes in one frame, all kinds */
	AP_COMMANDS_MAX = 1024,       /* known to an agent, ended ones included */
	AP_STRINGS_MAX = 8 << 20,     /* cwd, argv and env of a command */
	AP_SCRIPT_MAX = 32 << 20,     /* script that travels beside argv */
	AP_ARGS_MAX = 65536,          /* argc, and envc */
	AP_RING_MAX = 1 << 20,        /* unacknowledged output per stream */
	AP_STDIN_WINDOW = 256 * 1024, /* stdin bytes sent beyond STDIN_ACK */
	AP_FS_REQUESTS_MAX = 16,      /* file requests at once */
	AP_FS_WRITE_WINDOW = 256 * 1024,
	AP_PATH_MAX = 4095,
	AP_LIST_DEPTH_MAX = 64,
};
static const uint64_t AP_OFFSET_MAX = UINT64_C(1) << 60; /* any size or offset */
#define AP_MAGIC     "MCPSBXAG"                          /* 8 bytes, the first of HELLO */
#define AP_ARTIFACTS "/artifacts" /* what is copied out after a run */

enum ap_type {
	AP_HELLO = 1, /* both ways, first */
	/* runner -> agent */
	AP_RESUME,
	AP_START_BEGIN, /* one start at a time: BEGIN, DATA.., END */
	AP_START_DATA,
	AP_START_END,
	AP_STDIN,
	AP_STDIN_EOF,
	AP_CANCEL,
	AP_ACK,
	AP_FORGET,
	AP_FS_LIST,
	AP_FS_READ,
	AP_FS_WRITE,
	AP_FS_WRITE_DATA,
	AP_FS_WRITE_END,
	AP_FS_CANCEL,
	/* both ways */
	AP_PING, /* answered by PONG with the same value */
	AP_PONG,
	AP_FS_CREDIT,
	/* agent -> runner */
	AP_GONE,
	AP_STARTED,
	AP_OUTPUT,
	AP_EXIT,
	AP_STDIN_ACK,
	AP_FS_ENTRIES,
	AP_FS_DATA,
	AP_FS_END,
	AP_BYE,
	AP_TYPE_COUNT
};

/* Bytes someone else owns; in a decoded message they lie in the input. */
struct ap_bytes {
	const uint8_t *p;
	size_t n;
};

/* A command's name: the 32 hex digits of the run id as bytes, and the index. */
struct ap_id {
	uint8_t run[16];
	uint32_t index;
};

enum ap_state { AP_RUNNING, AP_ENDED, AP_STATE_COUNT };
enum ap_stream { AP_STDOUT, AP_STDERR, AP_STREAM_COUNT };

/* Both ways. The runner's boot id is zero and its list empty. */
struct ap_hello {
	uint8_t magic[8];
	uint16_t version_min, version_max;
	uint8_t boot_id[16];   /* random per agent process: another one = all lost */
	struct ap_bytes known; /* struct ap_known items: ap_known_next() */
};
struct ap_known {
	struct ap_id id;
	uint8_t state; /* enum ap_state */
};

/* What the runner has durably stored. Commands that are not listed go on from
 * what was acknowledged last. Unknown ids are answered by GONE. */
struct ap_resume {
	struct ap_bytes offsets; /* struct ap_offsets items: ap_offsets_next() */
};
struct ap_offsets {
	struct ap_id id;
	uint64_t stdout_off, stderr_off;
};

enum ap_start_flags {
	AP_START_STDIN = 1,  /* stdin is a pipe fed by STDIN; else /dev/null */
	AP_START_SCRIPT = 2, /* argv[script_arg] becomes /dev/fd/N of the script */
	AP_START_FLAGS_ALL = 3,
};
#define AP_GID_OF_USER UINT32_MAX /* the primary group from /etc/passwd */

/*
 * The data of START_DATA frames, one after another: strings_bytes of
 * NUL-terminated strings (cwd, argc arguments, envc KEY=VALUE), then
 * script_bytes of script. A start of an id that is known is read and ignored,
 * and answered with STARTED or EXIT: all of it is told again from what was
 * acknowledged on. So OUTPUT and EXIT count after a STARTED only, but for the
 * EXIT of what could not be started.
 */
struct ap_start {
	struct ap_id id;
	uint32_t flags;
	uint32_t uid, gid;
	uint32_t timeout_ms;             /* 0: none; counted from exec */
	uint32_t kill_grace_ms;          /* between TERM and KILL at a time-out */
	uint64_t stdout_cap, stderr_cap; /* bytes kept, from the start */
	uint32_t argc, envc;             /* argc >= 1 */
	uint32_t strings_bytes, script_bytes;
	uint32_t script_arg;
};

/* START_DATA. */
struct ap_data {
	struct ap_bytes bytes;
};

/* STDIN, and STDIN_EOF with no bytes: data at that offset of the input. */
struct ap_stdin {
	struct ap_id id;
	uint64_t offset;
	struct ap_bytes bytes;
};
struct ap_stdin_ack {
	struct ap_id id;
	uint64_t offset; /* taken by the command up to here */
};

/* TERM to the whole tree, KILL after the grace. Known end: no effect. */
struct ap_cancel {
	struct ap_id id;
	uint32_t grace_ms;
};

/* FORGET: the EXIT is stored, drop the record (ignored while it runs).
 * GONE: the agent does not know this id. */
struct ap_ref {
	struct ap_id id;
};

struct ap_ping {
	uint64_t value;
};

struct ap_started {
	struct ap_id id;
	uint32_t pid;        /* in the sandbox's pid namespace */
	uint64_t elapsed_us; /* since exec */
	uint64_t stdin_off;  /* taken so far */
};

struct ap_output {
	struct ap_id id;
	uint8_t stream; /* enum ap_stream */
	uint64_t offset;
	struct ap_bytes bytes; /* 1..AP_CHUNK_MAX */
};

enum ap_how {
	AP_EXITED,       /* value: exit code */
	AP_SIGNALED,     /* value: signal number */
	AP_SPAWN_FAILED, /* value: errno; stage says where */
	AP_HOW_COUNT
};
enum ap_stage {
	AP_STAGE_NONE,
	AP_STAGE_LIMIT,  /* AP_COMMANDS_MAX reached */
	AP_STAGE_MEMORY, /* buffers, memfd */
	AP_STAGE_PIPE,
	AP_STAGE_FORK,
	AP_STAGE_USER, /* not in /etc/passwd, or setuid and friends refused */
	AP_STAGE_CWD,
	AP_STAGE_EXEC, /* argv[0]: ENOENT also when a #! interpreter is missing */
	AP_STAGE_COUNT
};
enum ap_exit_flags {
	AP_EXIT_TIMED_OUT = 1,        /* the agent ended it for its time limit */
	AP_EXIT_CANCELED = 2,         /* the agent ended it because of CANCEL */
	AP_EXIT_STDOUT_TRUNCATED = 4, /* produced more than its cap */
	AP_EXIT_STDERR_TRUNCATED = 8,
	AP_EXIT_OUTPUT_OPEN = 16,  /* the drain's time was up; someone held the pipe */
	AP_EXIT_NO_PROCESSES = 32, /* timed out while no process could be started */
	AP_EXIT_FLAGS_V1 = 63,
	AP_EXIT_NO_ARTIFACTS = 64, /* AP_ARTIFACTS is empty or missing; since version 2 */
	/* Since version 2, from an agent that sees its control group's counter. */
	AP_EXIT_OOM_KNOWN = 128,
	AP_EXIT_OOM = 256, /* a process of the sandbox was killed for memory meanwhile */
	AP_EXIT_FLAGS_ALL = 511,
};

/* Sent after the last OUTPUT; the runner has all of it when its own offsets are
 * equal to *_kept. */
struct ap_exit {
	struct ap_id id;
	uint8_t how;   /* enum ap_how */
	uint8_t stage; /* enum ap_stage */
	uint32_t value;
	uint32_t flags;
	uint32_t background;                 /* processes of its tree that live on */
	uint64_t stdout_total, stderr_total; /* produced */
	uint64_t stdout_kept, stderr_kept;   /* the head of it that is sent */
	uint64_t user_us, sys_us; /* cpu time of the leader and its waited-for */
	uint64_t max_rss_kib;
	uint64_t duration_us; /* exec to the leader's exit */
};

/*
 * File requests. req is the runner's choice, unique among those that are open.
 * Each ends with exactly one FS_END, also after FS_CANCEL. Paths are bytes
 * without NUL; root is absolute; path is relative and never leaves root (no ..).
 * No symlink is followed in either, unless the request says so: then those of
 * the file system are, relative to root, and never those of /proc that stand for
 * an open file.
 * Flow: LIST and READ carry the first credit in bytes; every FS_ENTRIES and
 * FS_DATA uses up as much as its bytes are; the runner adds with FS_CREDIT.
 * A frame is sent as long as any credit is left, so it may overdraw by one
 * frame. For WRITE the agent gives the credit in the same way.
 */
enum ap_fs_flags { AP_FS_FOLLOW = 1, AP_FS_FLAGS_ALL = 1 };
struct ap_fs_list {
	uint32_t req;
	uint32_t as_uid; /* file system identity; 0: the agent's own */
	uint32_t credit;
	uint32_t flags; /* AP_FS_FOLLOW: on the way to root; what is listed never is */
	uint32_t depth; /* 1: only what is in root itself; 0: AP_LIST_DEPTH_MAX */
	struct ap_bytes root;
};
struct ap_fs_read {
	uint32_t req;
	uint32_t as_uid;
	uint32_t credit;
	uint32_t flags;
	uint64_t offset, len;
	struct ap_bytes root, path;
};

enum ap_fs_write_flags {
	AP_WRITE_MKDIRS = 1, /* make missing parents, 0755, same owner */
	AP_WRITE_EXCL = 2,   /* EEXIST when it is there */
	AP_WRITE_FOLLOW = 4, /* symlinks on the way; the last component never */
	/* With the owner's file system identity: what that user may not write is
	 * refused. gid does not count then, it is the user's own. */
	AP_WRITE_AS_OWNER = 8,
	/* A file that is there keeps its mode, and its owner where that can be. */
	AP_WRITE_KEEP = 16,
	AP_WRITE_FLAGS_ALL = 31,
};
/* Written to a temporary name beside it, renamed at FS_WRITE_END: complete or
 * not at all. */
struct ap_fs_write {
	uint32_t req;
	uint32_t uid, gid; /* owner */
	uint32_t mode;     /* permission bits */
	uint32_t flags;
	struct ap_bytes root, path;
};
struct ap_fs_data {
	uint32_t req;
	uint64_t offset;
	struct ap_bytes bytes;
};
struct ap_fs_ref {
	uint32_t req;
};
struct ap_fs_credit {
	uint32_t req;
	uint32_t bytes;
};

enum ap_file_type {
	AP_FILE_REGULAR,
	AP_FILE_DIRECTORY,
	AP_FILE_SYMLINK,
	AP_FILE_FIFO,
	AP_FILE_SOCKET,
	AP_FILE_DEVICE,
	AP_FILE_OTHER,
	AP_FILE_TYPE_COUNT
};
struct ap_fs_entries {
	uint32_t req;
	struct ap_bytes entries; /* struct ap_entry items: ap_entry_next() */
};
/* A folder comes before what is in it; order is otherwise the file system's. */
struct ap_entry {
	uint8_t type;   /* enum ap_file_type */
	uint32_t error; /* errno: could not be looked at or entered; else 0 */
	uint32_t mode;  /* permission bits */
	uint32_t uid, gid;
	uint32_t nlink;
	uint64_t size;
	int64_t mtime_ns, ctime_ns;
	uint64_t dev, ino;
	struct ap_bytes path; /* relative to root, not empty */
};
struct ap_fs_end {
	uint32_t req;
	uint32_t error; /* errno, 0 = done; ECANCELED after FS_CANCEL */
	/* READ: of the file, after the last byte. WRITE: of the new file. LIST:
	 * of the root. Differs from the listing: it was changed meanwhile. */
	uint64_t size;
	int64_t mtime_ns, ctime_ns;
	uint64_t dev, ino;
	uint64_t count; /* entries listed; bytes read; bytes written */
};

enum ap_bye_reason {
	AP_BYE_EVICTED, /* a newer connection took over */
	AP_BYE_BAD_FRAME,
	AP_BYE_VERSION,
	AP_BYE_REASON_COUNT
};
/* The last frame before the agent closes, where it can still be sent. */
struct ap_bye {
	uint32_t reason;
};

struct ap_msg {
	enum ap_type type;
	union {
		struct ap_hello hello;
		struct ap_resume resume;
		struct ap_start start;
		struct ap_data data;
		struct ap_stdin stdin_data; /* STDIN, STDIN_EOF */
		struct ap_stdin_ack stdin_ack;
		struct ap_cancel cancel;
		struct ap_offsets ack;
		struct ap_ref ref;   /* FORGET, GONE */
		struct ap_ping ping; /* PING, PONG */
		struct ap_started started;
		struct ap_output output;
		struct ap_exit exit;
		struct ap_fs_list fs_list;
		struct ap_fs_read fs_read;
		struct ap_fs_write fs_write;
		struct ap_fs_data fs_data; /* FS_DATA, FS_WRITE_DATA */
		struct ap_fs_ref fs_ref;   /* FS_WRITE_END, FS_CANCEL */
		struct ap_fs_credit fs_credit;
		struct ap_fs_entries fs_entries;
		struct ap_fs_end fs_end;
		struct ap_bye bye;
	} u;
};

/* Who sent it: each type is legal from one side or from both. */
enum ap_side { AP_FROM_RUNNER = 1, AP_FROM_AGENT = 2 };

enum ap_result { AP_OK, AP_MORE, AP_BAD };

/*
 * Decode the frame at p. AP_OK: *ret is filled, its views point into p, and
 * *ret_used bytes belong to the frame. AP_MORE: not all there. AP_BAD: it can
 * never become a legal frame of that side. All enum, flag and size fields are
 * in range after AP_OK, list items are well formed, paths have no NUL.
 */
enum ap_result ap_decode(const void *p, size_t n, enum ap_side from, struct ap_msg *ret,
			 size_t *ret_used);

/*
 * Encode a frame into dst; its size, or 0 when it does not fit cap or
 * AP_PAYLOAD_MAX (cap >= AP_FRAME_MAX fits whatever decodes).
 * ap_encode_head leaves out the bytes of the trailing view (OUTPUT, STDIN,
 * *_DATA): the caller sends those after it, for writev.
 */
size_t ap_encode(const struct ap_msg *m, void *dst, size_t cap);
size_t ap_encode_head(const struct ap_msg *m, void *dst, size_t cap);

/* Items of a list view. next: 1 = *ret filled and the view moved on, 0 = end,
 * -1 = malformed. put: bytes written at dst, 0 = does not fit. */
int ap_known_next(struct ap_bytes *list, struct ap_known *ret);
int ap_offsets_next(struct ap_bytes *list, struct ap_offsets *ret);
int ap_entry_next(struct ap_bytes *list, struct ap_entry *ret);
size_t ap_known_put(void *dst, size_t cap, const struct ap_known *m);
size_t ap_offsets_put(void *dst, size_t cap, const struct ap_offsets *m);
size_t ap_entry_put(void *dst, size_t cap, const struct ap_entry *m);

/* A HELLO of ours, with no list and a zero boot id. */
struct ap_msg ap_hello_init(void);
/* The newest version both speak; 0: none. */
unsigned ap_version(const struct ap_hello *theirs);

bool ap_id_equal(const struct ap_id *a, const struct ap_id *b);

/*
 * A stream's receiving half: read into space(), say fed(n), then take messages
 * until AP_MORE. Messages live until the next space(). About 130 KiB: one per
 * connection, on the heap or static; zero it to start.
 */
struct ap_reader {
	size_t start, end;
	uint8_t buf[2 * AP_FRAME_MAX];
};
/* Room for at least one frame; *ret_n > 0 as long as messages are taken. */
void *ap_reader_space(struct ap_reader *r, size_t *ret_n);
void ap_reader_fed(struct ap_reader *r, size_t n);
enum ap_result ap_reader_next(struct ap_reader *r, enum ap_side from, struct ap_msg *ret);

#endif
