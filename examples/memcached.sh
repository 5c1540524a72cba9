#!/bin/sh
# An unchanged memcached: what its threads do with their time, and that nothing is wrong.
. "$(dirname "$0")/lib.sh"
trace=$out/memcached.tacho
rm -f "$trace"
command -v memcached >/dev/null || skip "there is no memcached here"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
answers() { python3 -c "import socket; socket.create_connection(('127.0.0.1', $port))" 2>/dev/null; }

title "memcached, as Debian made it"
show_start server "tacho run -o $trace -- memcached -l 127.0.0.1 -p $port -U 0 -t 2 -u $(id -un)"
server=$pid
await "that memcached listens" answers
start client "$build/examples/client $port 'set key# 0 0 5\nhello\n'"
sleep 3
finish "$pid"
say "Eight clients got $(cat "$scratch/client.out")."
finish "$server"
[ "$status" = 0 ] || fail "memcached ended with status $status"

title "What is wrong with it"
show "tacho report $trace"
# On a machine that is busy with something else, that is said.
expect "$trace" "none kernel-scheduling-delay"

title "What its threads did with their time"
show "tacho stats $trace"
grep -q 'turns of' "$scratch/shown" || fail "there are no turns of its loops"
