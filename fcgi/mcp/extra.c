/* SPDX-License-Identifier: MIT */
#include "mcp/extra.h"

const struct mcp_extra mcp_extra;
