/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_REQUESTS_H
#define RUNNER_REQUESTS_H

#include "runner/state.h"

/* An edge asks: checks everything again, does it or refuses in words. */
void requests_handle(struct runner *r, struct replyto to, const struct edgemsg *m);

#endif
