/* SPDX-License-Identifier: MIT */
#include "runner/strangers.h"

#include <stdlib.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/mem.h"
#include "runner/runs.h"

/* An edge asks again as soon as the runner says hello; it may be busy. */
enum { CLAIM_MS = 3000 };

void strangers_expect(struct sandbox *sb)
{
	sb->claim_until_mono = clock_mono_ms() + CLAIM_MS;
}

bool strangers_keep(struct sandbox *sb, const struct ap_id *id)
{
	if (clock_mono_ms() >= sb->claim_until_mono || sb->nstrangers == AP_COMMANDS_MAX)
		return false;
	for (size_t i = 0; i < sb->nstrangers; i++)
		if (ap_id_equal(&sb->strangers[i], id))
			return true;
	if (!sb->strangers)
		sb->strangers = xcalloc(AP_COMMANDS_MAX, sizeof(*id));
	sb->strangers[sb->nstrangers++] = *id;
	return true;
}

/* Each does nothing where the other is meant. */
static void end(struct sandbox *sb, const struct ap_id *id)
{
	agentconn_reply(sb->conn,
			&(struct ap_msg){.type = AP_CANCEL, .u.cancel.id = *id});
	agentconn_reply(sb->conn, &(struct ap_msg){.type = AP_FORGET, .u.ref.id = *id});
}

void strangers_end(struct sandbox *sb, int64_t mono_ms)
{
	if (sb->nstrangers == 0 || mono_ms < sb->claim_until_mono)
		return;
	for (size_t i = 0; i < sb->nstrangers; i++)
		if (!runs_is_wanted(sb, &sb->strangers[i]))
			end(sb, &sb->strangers[i]);
	strangers_release(sb);
}

void strangers_release(struct sandbox *sb)
{
	free(MOVE(sb->strangers));
	sb->nstrangers = 0;
}
