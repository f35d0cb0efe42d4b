/* SPDX-License-Identifier: MIT */
#ifndef STORE_READER_H
#define STORE_READER_H

#include "base/buf.h"
#include "base/err.h"
#include "store/types.h"

/*
 * The reading half: a read-only connection for one thread. Works for a user who
 * can only read the files by group, before, while and after the writer runs.
 * Every function takes its own short snapshot and holds none when it returns, so
 * a caller that waits never keeps the write-ahead log from being reset.
 *
 * All return 0, or -1: ERR_NOT_FOUND (also: belongs to another tenant, or is
 * being removed by retention), ERR_STORE for everything the database refused.
 * Filled structs are released by the caller; on -1 they are untouched.
 */
struct store_reader;

int store_reader_open(const char *path, struct store_reader **ret, struct err *e);
void store_reader_close(struct store_reader *r); /* NULL is fine */

int store_read_session(struct store_reader *r, const char *tenant, const char *id,
		       struct store_session *ret, struct err *e);

/* A value of `meta`, as text; ERR_NOT_FOUND when it was never set. */
enum { STORE_META_SIZE = 128 };
int store_read_meta(struct store_reader *r, const char *key, char ret[STORE_META_SIZE],
		    struct err *e);

/*
 * The run with its commands and artifacts (skipped ones too, see
 * skipped_reason). Output is read with store_read_output().
 */
int store_read_run(struct store_reader *r, const char *tenant, const char *run_id,
		   struct store_run *ret, struct err *e);
/* Only the state: cheap. */
int store_read_run_state(struct store_reader *r, const char *tenant, const char *run_id,
			 enum store_run_state *ret, struct err *e);
/* The newest `limit` runs of a tenant (NULL: of all), without commands. */
int store_read_recent_runs(struct store_reader *r, const char *tenant, size_t limit,
			   struct store_runs *ret, struct err *e);
/*
 * The same from a place on, for lists in pages: the runs after `after` (a run_id;
 * NULL: from the newest). One that retention took meanwhile is ERR_NOT_FOUND.
 */
int store_read_runs_after(struct store_reader *r, const char *tenant, const char *after,
			  size_t limit, struct store_runs *ret, struct err *e);
/* The newest ended run of the identifier that left artifacts: its run_id. */
enum { STORE_RUN_ID_SIZE = 64 };
int store_read_latest_artifacts(struct store_reader *r, const char *tenant,
				const char *identifier, char ret[STORE_RUN_ID_SIZE],
				struct err *e);
/* The identifier whose such run this one is; to free(). ERR_NOT_FOUND: it is none. */
int store_read_latest_of(struct store_reader *r, const char *tenant, const char *run_id,
			 char **ret_identifier, struct err *e);

/*
 * Events of one run with seq > after_seq, in order; at most max_events and
 * about max_bytes of data (at least one event, so it always gets on). The caller
 * has checked that the run is the tenant's.
 */
struct store_run_query {
	const char *run_id;
	int64_t after_seq;
	size_t max_events, max_bytes;
};
int store_read_run_events(struct store_reader *r, const struct store_run_query *q,
			  struct store_events *ret, struct err *e);

/*
 * For the doorbell: events of all runs with id > after_id, in order, of which
 * only those are taken for which wanted() says true (called from within, on
 * this thread; it must not use the reader). *ret_last_id: ask after this next
 * time; it also passes over what was not wanted.
 */
struct store_new_query {
	int64_t after_id;
	bool (*wanted)(void *arg, const char *run_id, enum store_event_type type);
	void *arg;
	size_t max_events, max_bytes;
};
int store_read_new_events(struct store_reader *r, const struct store_new_query *q,
			  struct store_events *ret, int64_t *ret_last_id, struct err *e);
int store_read_newest_event_id(struct store_reader *r, int64_t *ret, struct err *e);

/*
 * Raw bytes of a command's stream from `offset` on, at most `max`, appended to
 * out. *ret_n = 0: nothing stored there (yet). The caller has checked the run.
 */
struct store_output_query {
	const char *run_id;
	int64_t command_index;
	enum store_stream stream;
	int64_t offset;
	size_t max;
};
int store_read_output(struct store_reader *r, const struct store_output_query *q,
		      struct buf *out, size_t *ret_n, struct err *e);

/* tenant NULL: all. */
int store_read_sandboxes(struct store_reader *r, const char *tenant,
			 struct store_sandboxes *ret, struct err *e);

/* Of one tenant, by identifier, those after `after` (NULL: from the first). */
int store_read_sandboxes_after(struct store_reader *r, const char *tenant,
			       const char *after, size_t limit,
			       struct store_sandboxes *ret, struct err *e);

/* When the sandbox of that identifier was made; 0: there is none. */
int store_read_sandbox_created(struct store_reader *r, const char *tenant,
			       const char *identifier, int64_t *ret, struct err *e);

/*
 * For completion: identifiers of sandboxes and runs, or run ids, that begin with
 * prefix, at most limit; the most recently used first.
 */
enum store_word { STORE_WORD_IDENTIFIER, STORE_WORD_RUN_ID };
struct store_words {
	const char **v;
	size_t n;
	bool more;
	struct store_arena *mem;
};
struct store_words_query {
	const char *tenant, *prefix;
	enum store_word what;
	size_t limit;
};
int store_read_words(struct store_reader *r, const struct store_words_query *q,
		     struct store_words *ret, struct err *e);
void store_words_release(struct store_words *w);

/* The uris that a session has subscribed to, at most limit. */
int store_read_subscriptions(struct store_reader *r, const char *session_id, size_t limit,
			     struct store_words *ret, struct err *e);

struct store_counts {
	int64_t sandboxes[STORE_SANDBOX_STATE_COUNT];
	int64_t runs[STORE_RUN_STATE_COUNT];
	int64_t sessions;
	int64_t warm; /* sandboxes that are nobody's yet */
};
int store_read_counts(struct store_reader *r, struct store_counts *ret, struct err *e);

/* Changes whenever another process committed something; once a second is enough. */
int store_read_data_version(struct store_reader *r, int64_t *ret, struct err *e);

static inline void store_reader_closep(struct store_reader **r)
{
	store_reader_close(*r);
}
#define AUTO_STORE_WORDS __attribute__((cleanup(store_words_release))) struct store_words
#define AUTO_STORE_READER                                                                \
	__attribute__((cleanup(store_reader_closep))) struct store_reader

#endif
