/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/clock.h"
#include "net/httpcurl.h"

enum { POLL_MAX_MS = 60000 };

/* How long to wait for the next thing; <= 0: it has been silent for too long. */
static int64_t time_left(const struct http_wait *w)
{
	int64_t left;

	if (w->idle_ms == 0)
		return POLL_MAX_MS;
	left = *w->heard_ms + w->idle_ms - clock_mono_ms();
	return left < POLL_MAX_MS ? left : POLL_MAX_MS;
}

/* False: the call is over, for a reason in w or because it cannot be waited. */
static bool wait_for_more(CURLM *m, struct http_wait *w)
{
	struct curl_waitfd stop = {.fd = w->stop_fd ? *w->stop_fd : -1,
				   .events = CURL_WAIT_POLLIN};
	int64_t left = time_left(w);

	w->was_idle = left <= 0;
	if (w->was_idle)
		return false;
	if (curl_multi_poll(m, &stop, w->stop_fd ? 1 : 0, (int)left, NULL) != CURLM_OK)
		return false;
	w->was_stopped = stop.revents != 0;
	return !w->was_stopped;
}

static CURLcode run(CURLM *m, struct http_wait *w)
{
	int running = 1, left;
	CURLMsg *msg;

	while (curl_multi_perform(m, &running) == CURLM_OK && running > 0)
		if (!wait_for_more(m, w))
			return CURLE_ABORTED_BY_CALLBACK;
	msg = curl_multi_info_read(m, &left);
	return msg && msg->msg == CURLMSG_DONE ? msg->data.result : CURLE_FAILED_INIT;
}

CURLcode http_perform(CURL *c, struct http_wait *w)
{
	CURLcode rc = CURLE_FAILED_INIT;
	CURLM *m;

	if (w->idle_ms == 0 && !w->stop_fd)
		return curl_easy_perform(c);
	m = curl_multi_init();
	if (!m)
		abort();
	if (curl_multi_add_handle(m, c) == CURLM_OK) {
		rc = run(m, w);
		curl_multi_remove_handle(m, c);
	}
	curl_multi_cleanup(m);
	return rc;
}
