# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Shared by the scripts here; bash. Sourced with the repository as current folder.

# A root shell by `su` may lack these; nginx, runc and useradd are there.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

say() { printf '%s\n' "$*" >&2; }
die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# setting NAME DEFAULT: the environment, then .env, then the default. Only for what
# is needed before the server is built; the server reads .env with its own rules.
setting() {
	local line=
	if [ -n "${!1+set}" ]; then
		printf '%s' "${!1}"
		return
	fi
	if [ -r .env ]; then
		line=$(grep -E "^[[:space:]]*(export[[:space:]]+)?$1=" .env | tail -n 1) || true
	fi
	if [ -z "$line" ]; then
		printf '%s' "$2"
		return
	fi
	line=${line#*=}
	case $line in
	\"*\") line=${line#\"} line=${line%\"} ;;
	\'*\') line=${line#\'} line=${line%\'} ;;
	esac
	printf '%s' "$line"
}

# need_root WHY: ends here when this user can in no way become root.
need_root() {
	[ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null ||
		die "$1 needs root: run it as root, or install sudo"
}

# become_root WHY "$@": runs this script again under sudo when we are not root.
become_root() {
	need_root "$1"
	shift
	[ "$(id -u)" -ne 0 ] || return 0
	exec sudo --preserve-env -- "$PWD/scripts/${0##*/}" "$@"
}

# passable FOLDER: may other users pass it and every folder above it?
passable() {
	local d=$1
	while :; do
		if [ -e "$d" ]; then
			case $(stat -Lc %A "$d") in
			*[xt]) ;;
			*) return 1 ;;
			esac
		fi
		[ "$d" = / ] && return 0
		d=$(dirname "$d")
	done
}

# default_data_dir: ./data when every other user can reach it, else /var/lib.
default_data_dir() {
	if passable "$PWD"; then
		printf '%s/data' "$PWD"
	else
		printf /var/lib/mcp-sandboxd
	fi
}

# url_host ADDRESS: as it stands in a url, and in nginx's listen.
url_host() {
	case $1 in *:*) printf '[%s]' "$1" ;; *) printf '%s' "$1" ;; esac
}

port_is_free() { # address port
	case $1 in 0.0.0.0 | '') set -- 127.0.0.1 "$2" ;; ::) set -- ::1 "$2" ;; esac
	! (exec 3<>"/dev/tcp/$1/$2") 2>/dev/null
}

# The pid of the server that holds a data folder; fails when none does.
data_dir_owner() {
	[ -r "$1/lock" ] || return 1
	flock -n -s "$1/lock" true && return 1
	head -n 1 "$1/lock"
}

ensure_user() {
	id -u "$1" >/dev/null 2>&1 && return
	say "making the system user $1 (the edges run as it)"
	useradd --system --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "$1"
}

# render IN OUT NAME=VALUE...: @NAME@ becomes VALUE, taken literally. A value must
# not hold what nginx would read as its own syntax.
render() {
	local in=$1 out=$2 text name value
	shift 2
	text=$(<"$in")
	for pair; do
		name=${pair%%=*} value=${pair#*=}
		case $value in
		*[\"\$\\\']* | *$'\n'*) die "$name must not contain quotes, \$ or backslashes for nginx: $value" ;;
		esac
		text=${text//"@$name@"/"$value"}
	done
	printf '%s\n' "$text" >"$out"
}

# render_nginx DATA_DIR RUN_DIR: the snippet and the stand-alone configuration into
# DATA_DIR/nginx. Settings come from the variables of `mcp-sandboxd config`.
render_nginx() {
	local dir=$1/nginx run=$2 user group listen nofile f
	group=$(id -gn "$EDGE_USER")
	user="user $(id -un www-data 2>/dev/null || echo nobody) $group;"
	[ "$(id -u)" -eq 0 ] || user='' # its own, whoever that is
	listen=$(url_host "$LISTEN_ADDRESS"):$PORT
	nofile=$(ulimit -Hn)
	case $nofile in unlimited) nofile=65536 ;; esac
	install -d -m 0755 "$dir" "$dir/tmp"
	for f in edge.conf artifact.conf mcp-sandboxd.conf nginx.conf; do
		render "nginx/$f.in" "$dir/$f" "NGINX_DIR=$dir" "RUN_DIR=$run" \
			"ARTIFACTS_DIR=${ARTIFACTS_DIR:-$1/artifacts}" "MCP_PATH=$MCP_PATH" \
			"MAX_BODY_BYTES=$MAX_BODY_BYTES" "EDGE_GROUP=$group" \
			"USER_LINE=$user" "LISTEN=$listen" "ACCESS_LOG=off" \
			"NOFILE=$nofile" "CONNECTIONS=$((nofile > 40000 ? 20000 : nofile / 2))"
	done
}

# load_settings BINARY [--env-file FILE]: what is in force, as shell variables.
load_settings() {
	local text
	text=$("$1" config effective "${@:2}") || exit 1
	eval "$text"
}

# The client packages of the end-to-end tests and the benchmark, as locked.
node_packages() {
	local dir=tests/e2e
	(
		flock 9 # two suites may start side by side
		[ -e $dir/node_modules/.package-lock.json ] &&
			[ ! $dir/package-lock.json -nt $dir/node_modules/.package-lock.json ] && exit
		cd $dir && npm ci --no-progress --loglevel=error >/dev/null && touch node_modules/.package-lock.json
	) 9<tests
}
