/* SPDX-License-Identifier: MIT */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

/* The program's version; the one place it is written down. */
#define MCP_SANDBOXD_VERSION "0.1.0"

#endif
