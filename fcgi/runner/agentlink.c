/* SPDX-License-Identifier: MIT */
#include "runner/agentlink.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "runner/filejob.h"
#include "runner/runs.h"
#include "runner/sandboxes.h"
#include "runner/sandboxrec.h"
#include "runner/strangers.h"
#include "runner/sync.h"
#include "runner/turn.h"

static void send_ref(struct sandbox *sb, enum ap_type type, const struct ap_id *id)
{
	agentconn_reply(sb->conn, &(struct ap_msg){.type = type, .u.ref.id = *id});
}

static void send_cancel(struct sandbox *sb, const struct ap_id *id)
{
	agentconn_reply(sb->conn,
			&(struct ap_msg){.type = AP_CANCEL, .u.cancel.id = *id});
}

/* A command that no run of ours is at: its run was ended, or never stored. */
static void end_stranger(struct sandbox *sb, const struct ap_known *k)
{
	if (k->state == AP_ENDED)
		send_ref(sb, AP_FORGET, &k->id);
	else
		send_cancel(sb, &k->id);
}

static void end_strangers(struct sandbox *sb, struct ap_bytes known)
{
	struct ap_known k;

	while (ap_known_next(&known, &k) > 0)
		if (!runs_is_wanted(sb, &k.id) && !strangers_keep(sb, &k.id))
			end_stranger(sb, &k);
}

static void send_resume(struct sandbox *sb)
{
	uint8_t *list = xmalloc(AP_PAYLOAD_MAX);
	struct ap_msg m = {.type = AP_RESUME};

	m.u.resume.offsets.p = list;
	m.u.resume.offsets.n = runs_offsets(sb, list, AP_PAYLOAD_MAX);
	agentconn_send(sb->conn, &m);
	free(list);
}

static void on_hello(void *arg, const struct ap_hello *h)
{
	struct sandbox *sb = arg;
	bool same = sb->has_boot && memcmp(sb->boot_id, h->boot_id, 16) == 0;

	if (!sb->has_boot || sb->boot_restored)
		strangers_expect(sb);
	if (sb->has_boot && !same)
		runs_lose_commands(sb, "the sandbox was started again while the command "
				       "ran; its files are kept: run the command again");
	memcpy(sb->boot_id, h->boot_id, sizeof(sb->boot_id));
	sb->has_boot = true;
	sb->boot_restored = false;
	send_resume(sb);
	end_strangers(sb, h->known);
	agentconn_flush(sb->conn);
	sandbox_link_ready(sb);
}

static void on_started(struct sandbox *sb, const struct ap_msg *m)
{
	if (!runs_on_started(sb, &m->u.started) &&
	    !runs_is_wanted(sb, &m->u.started.id) &&
	    !strangers_keep(sb, &m->u.started.id))
		send_cancel(sb, &m->u.started.id);
	agentconn_flush(sb->conn);
}

static void on_stdin_ack(struct sandbox *sb, const struct ap_msg *m)
{
	runs_on_stdin_ack(sb, &m->u.stdin_ack);
	agentconn_flush(sb->conn);
}

static void on_output(struct sandbox *sb, const struct ap_msg *m)
{
	runs_on_output(sb, &m->u.output);
}

static void on_exit_msg(struct sandbox *sb, const struct ap_msg *m)
{
	struct ap_id id = m->u.exit.id;

	/* Said again because our FORGET was lost, or a stranger's. One that is yet
	 * to be started is said once more then. */
	if (!runs_on_exit(sb, &m->u.exit) && sb->conn && !runs_is_wanted(sb, &id) &&
	    !strangers_keep(sb, &id))
		sandbox_forget_command(sb, &id);
}

static void on_gone(struct sandbox *sb, const struct ap_msg *m)
{
	runs_on_gone(sb, &m->u.ref.id);
}

static void on_fs_entries(struct sandbox *sb, const struct ap_msg *m)
{
	if (!filejobs_on_entries(sb, &m->u.fs_entries))
		sync_on_entries(sb, &m->u.fs_entries);
}

static void on_fs_data(struct sandbox *sb, const struct ap_msg *m)
{
	if (!filejobs_on_data(sb, &m->u.fs_data))
		sync_on_data(sb, &m->u.fs_data);
}

static void on_fs_end(struct sandbox *sb, const struct ap_msg *m)
{
	if (!filejobs_on_end(sb, &m->u.fs_end))
		sync_on_end(sb, &m->u.fs_end);
}

static void on_fs_credit(struct sandbox *sb, const struct ap_msg *m)
{
	filejobs_on_credit(sb, &m->u.fs_credit);
}

static void on_bye(struct sandbox *sb, const struct ap_msg *m)
{
	static const char *const words[AP_BYE_REASON_COUNT] = {
		[AP_BYE_EVICTED] = "another connection took over",
		[AP_BYE_BAD_FRAME] = "the agent did not understand us",
		[AP_BYE_VERSION] = "the agent speaks another version",
	};

	log_warn("sandbox %s: %s", sb->name, words[m->u.bye.reason]);
}

static void (*const handlers[AP_TYPE_COUNT])(struct sandbox *, const struct ap_msg *) = {
	[AP_STARTED] = on_started,     [AP_STDIN_ACK] = on_stdin_ack,
	[AP_OUTPUT] = on_output,       [AP_EXIT] = on_exit_msg,
	[AP_GONE] = on_gone,           [AP_FS_ENTRIES] = on_fs_entries,
	[AP_FS_DATA] = on_fs_data,     [AP_FS_END] = on_fs_end,
	[AP_FS_CREDIT] = on_fs_credit, [AP_BYE] = on_bye,
};

static void on_message(void *arg, const struct ap_msg *m)
{
	if (handlers[m->type])
		handlers[m->type](arg, m);
}

static void on_closed(void *arg, const char *why)
{
	sandbox_link_lost(arg, why);
}

void agentlink_distrust(struct sandbox *sb, const char *why)
{
	log_error("sandbox %s: %s", sb->name, why);
	sandbox_link_lost(sb, why);
}

static const struct agentconn_events events = {
	.hello = on_hello, .message = on_message, .closed = on_closed};

void agentlink_take(struct sandbox *sb, struct agentconn *conn)
{
	sb->conn = conn;
	agentconn_hand_over(conn, &events, sb);
}

int agentlink_open(struct sandbox *sb, int fd, struct err *e)
{
	return agentconn_new(&(struct agentconn_args){.loop = &sb->r->loop,
						      .all = &sb->r->conns,
						      .fd = fd,
						      .ev = &events,
						      .arg = sb},
			     &sb->conn, e);
}
