/* SPDX-License-Identifier: MIT */
#ifndef MASTER_NOTIFY_H
#define MASTER_NOTIFY_H

/*
 * sd_notify(3) without libsystemd: one datagram to $NOTIFY_SOCKET (a path, or
 * abstract when it begins with @). Without that variable, or when nobody
 * listens, nothing happens: telling systemd is never a reason to fail.
 */
void notify_systemd(const char *state);

#endif
