#!/bin/sh
# A crash and a SIGKILL, and what is saved of them.
. "$(dirname "$0")/lib.sh"
crash=$out/crash.tacho
killed=$out/killed.tacho
rm -f "$crash" "$killed"
# Seen from outside, while it lasts.
hangs() { tacho report "$server" 2>/dev/null | grep -q 'waits for lock .* for [1-9][.0-9]* s,'; }
play='GET /guess-number?guess=# HTTP/1.1\nHost: guess\n\n'

title "A server crashes"
show_start crash "tacho run -o $crash -- $build/examples/guess_server"
port_of crash
run=$pid
start players "$build/examples/client $port '$play'"
sleep 1
start fatal "$build/examples/client $port 'GET /count?guess=1000 HTTP/1.1\nHost: guess\n\n' 1"
ended "$run"
[ "$status" = 139 ] || fail "the server ended with status $status, and should have crashed"
say "GET /count?guess=1000 was too much for it. Its last second is saved, and says how it ended:"
show "tacho report $crash"
grep -q 'killed by SIGSEGV' "$scratch/shown" || fail "the report does not say how it ended"
expect "$crash" crash on_count

title "A server hangs, and somebody kills it with kill -9"
start collector "$build/examples/collector"
port_of collector
collector=$pid
show_start hang "tacho run -o $killed -- $build/examples/guess_server -c $port"
port_of hang
run=$pid
kill -STOP "$collector" # it takes reports, and never answers
start more "$build/examples/client $port '$play'"
await "that the server has a process" server_of "$run"
await "that the server hangs" hangs
kill -KILL "$server"
ended "$run"
[ "$status" = 137 ] || fail "the server ended with status $status, and should have been killed"
say "A process that is killed can save nothing. tacho does: its box outlives it."
show "tacho report $killed"
grep -q 'killed by SIGKILL' "$scratch/shown" || fail "the report does not say how it ended"
grep -q 'waits for lock .* in on_guess .* held by thread reporter' "$scratch/shown" ||
	fail "the report does not say what the loop was in when it was killed"
grep -q 'reporter .*: blocked in read .* post (' "$scratch/shown" ||
	fail "the report does not say what held the lock"
