# What the examples share; they source it. Programs are those of the build folder. What an example
# starts is ended when it ends, however that is. What it leaves is in $out.
set -eu
cd "$(dirname "$0")/.."
example=$(basename "$0" .sh)
build=${TACHO_BUILD:-build}
build=${build#"$PWD"/}
out=${TACHO_EXAMPLE_DIR:-$build/demo}
PATH=$(cd "$build/src/cli" && pwd):$PATH
# Boxes in a place of their own, so that those of others are not seen.
if [ -d /dev/shm ]; then
	TACHO_BOX_DIR=$(mktemp -d /dev/shm/tacho-example.XXXXXX)
else
	TACHO_BOX_DIR=$(mktemp -d)
fi
scratch=$(mktemp -d)
export TACHO_BOX_DIR PATH
mkdir -p "$out"
started=

# A process and all that it started.
family() {
	for child in $(cat "/proc/$1/task/"*/children 2>/dev/null || true); do
		family "$child"
	done
	echo "$1"
}

end_all() {
	for pid in $started; do
		# Whoever runs as part of it may outlive it.
		for one in $(family "$pid"); do
			kill -KILL "$one" 2>/dev/null || true
		done
		wait "$pid" 2>/dev/null || true
	done
	rm -rf "$scratch" "$TACHO_BOX_DIR"
}
trap end_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
trap 'exit 141' PIPE

say() { printf '%s\n' "$@"; }

title() { printf '\n== %s\n' "$*"; }

fail() {
	echo "$example: $*" >&2
	exit 1
}

skip() {
	echo "$example: skipped: $*"
	exit 0
}

# Starts a command in the background; what it says is in files of that name. Its id is in $pid.
start() {
	name=$1
	eval "exec $2" >"$scratch/$name.out" 2>"$scratch/$name.err" </dev/null &
	pid=$!
	started="$started $pid"
}

# The same, shown as one would type it.
show_start() {
	printf '    $ %s\n' "$2"
	start "$@"
}

# Runs a command that is shown as one would type it; its output is in $scratch/shown, too.
show() {
	printf '    $ %s\n' "$1"
	if ! eval "$1" >"$scratch/shown" 2>&1 </dev/null; then
		cat "$scratch/shown" >&2
		fail "this did not work: $1"
	fi
	# Of a report, what comes after the findings is for those who want to know more.
	sed -e '/^callbacks by length:/,$d' -e '/^$/d' -e 's/^/    /' "$scratch/shown"
}

# Waits until a command succeeds.
await() {
	what=$1
	shift
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt 600 ] || {
			cat "$scratch"/*.err >&2
			fail "$what did not happen within half a minute"
		}
		sleep 0.05
	done
}

# The port that a program says it listens on.
port_of() {
	await "that $1 listens" grep -qs 'listens on' "$scratch/$1.out"
	port=$(sed -n 's/.*listens on 127.0.0.1:\([0-9]*\)$/\1/p' "$scratch/$1.out")
}

# Waits for the end of a process; its status is in $status.
ended() {
	status=0
	wait "$1" || status=$?
	# Another process may get its id.
	started=$(for one in $started; do [ "$one" = "$1" ] || echo "$one"; done)
}

# Ends a process in order.
finish() {
	kill -TERM "$1"
	ended "$1"
}

is_there() { [ -e "$1" ]; }

# The first finding of a trace must be of one of these rules, "none" where there is no finding, and
# name this function.
expect() {
	tacho report --json "$1" >"$scratch/report.json"
	python3 - "$scratch/report.json" "$2" "${3:-}" <<-'END' || fail "the report does not say what it should"
		import json, sys
		path, rules, function = sys.argv[1:]
		report = json.load(open(path))
		findings = [f for f in report["findings"] if f["severity"] != "info"]
		rule = findings[0]["rule"] if findings else "none"
		names = [w["function"] for w in findings[0]["where"]] if findings else []
		if rule not in rules.split() or (function and function not in names):
		    sys.exit(f"{rules} {function} was expected, but the report says {rule} {names}: "
		             + report["verdict"]["summary"])
	END
}

# The process that a tacho run has started; its id is in $server.
server_of() {
	server=$(cat "/proc/$1/task/$1/children")
	server=${server%% *}
	[ -n "$server" ]
}
