/* SPDX-License-Identifier: MIT */
#ifndef MASTER_STATUS_H
#define MASTER_STATUS_H

#include <stdio.h>

#include "base/err.h"

/* Print who serves the data folder, its sandboxes and newest runs; reads only. */
int status_print(const char *env_file, FILE *f, struct err *e);

#endif
