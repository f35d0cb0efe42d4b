# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# The server and its nginx, which live and end together. Sourced after lib.sh by who
# starts them (scripts/run, the image's entrypoint); needs bin, DATA_DIR and the
# settings of load_settings.

master='' nginx='' run='' # pids; the folder of the sockets

stop_all() {
	trap '' INT TERM HUP
	# nginx last: who waits for a run hears how it ended.
	[ -z "$master" ] || kill -TERM "$master" 2>/dev/null || true
	[ -z "$master" ] || wait "$master" || true
	[ -z "$nginx" ] || kill -TERM "$nginx" 2>/dev/null || true
	wait || true
}

# The server makes its sockets before anything slow: wait for that, or for its end.
start_server() {
	setsid "$bin" serve >&2 &
	master=$!
	local owner
	while :; do
		kill -0 "$master" 2>/dev/null || { master='' && exit 1; }
		if [ -s "$DATA_DIR/instance" ]; then
			run=${RUN_DIR:-/run/mcp-sandboxd/$(<"$DATA_DIR/instance")}
			# a stale socket does not count: who holds the lock is the server
			[ -S "$run/fcgi.sock" ] && owner=$(data_dir_owner "$DATA_DIR") &&
				[ "$owner" = "$master" ] && break
		fi
		sleep 0.02
	done
}

start_nginx() {
	local conf=$DATA_DIR/nginx/nginx.conf
	render_nginx "$DATA_DIR" "$run"
	nginx -q -t -e stderr -c "$conf" || die "nginx refuses $conf"
	setsid nginx -e stderr -c "$conf" &
	nginx=$!
}

alive() {
	kill -0 "$master" 2>/dev/null || { master='' && stop_all && die "the server ended; see its lines above"; }
	kill -0 "$nginx" 2>/dev/null || { nginx='' && stop_all && die "nginx ended; see its lines above"; }
}

# Until one of the two ends, which ends the other. A signal's trap may come in between.
watch_both() {
	while :; do
		wait -n || true
		alive
	done
}
