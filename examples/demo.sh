#!/bin/sh
# Records a small service, kills it with SIGKILL, and looks at its last second.
set -eu
build=${TACHO_BUILD:-build}
tacho=$build/src/cli/tacho
dir=$(mktemp -d)
# Boxes of this demo in a place of their own, so that it touches no others.
TACHO_BOX_DIR=$(mktemp -d /dev/shm/tacho-demo.XXXXXX)
export TACHO_BOX_DIR
pid=
cleanup() {
	[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || true
	rm -rf "$dir" "$TACHO_BOX_DIR"
}
trap cleanup EXIT INT TERM

say() { printf '\n== %s\n' "$*"; }

say "A service with two loops and 96 tasks starts, and records itself."
"$build/examples/demo" &
pid=$!
sleep 3
"$tacho" ls
say "It is killed: kill -KILL $pid"
kill -KILL "$pid"
wait "$pid" 2>/dev/null || true
killed=$pid
pid=
"$tacho" ls
say "Its box is still there: tacho recover"
"$tacho" recover -o "$dir"
trace=$(ls "$dir"/*.tacho)
say "What it is: tacho info"
"$tacho" info "$trace"
say "Its last second: tacho cat --last 1s"
"$tacho" cat --last 1s "$trace" >"$dir/last"
lines=$(wc -l <"$dir/last")
cat "$dir/last"
say "These were the $lines events of the last second of process $killed."
[ "$lines" -gt 0 ]
