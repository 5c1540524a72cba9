#!/bin/sh
# A loop that is blocked by a library call: SQLite waits for somebody else's lock.
. "$(dirname "$0")/lib.sh"
trace=$out/blocked.tacho
rm -f "$trace"
[ -x "$build/examples/score_server" ] || skip "tacho was built without SQLite"

title "A server that saves scores with SQLite, from its event loop"
show_start server "tacho run -o $trace -- $build/examples/score_server $scratch/scores.db"
port_of server
server=$pid
start client "$build/examples/client $port 'GET /score?points=# HTTP/1.1\nHost: scores\n\n'"
client=$pid
python3 - "$scratch/scores.db" <<'END'
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
for _ in range(5):
    time.sleep(0.3)
    db.execute("BEGIN IMMEDIATE")
    time.sleep(0.15)
    db.execute("COMMIT")
END
finish "$client"
finish "$server"
[ "$status" = 0 ] || fail "the server ended with status $status"
say "Five times, somebody else locked the database for 150 ms." \
	"Eight players got $(cat "$scratch/client.out")."

title "What blocks the loop"
show "tacho report $trace"
expect "$trace" blocking-call sqlite3_step
say "One line of the program asks SQLite for an INSERT, and SQLite sleeps until the lock is free." \
	"These are the stacks of all time that was spent waiting, in nanoseconds:"
show "tacho flame --off-cpu $trace | grep usleep"
grep -q 'save_score;sqlite3_step;.*\[usleep\]' "$scratch/shown" ||
	fail "no stack leads from save_score to usleep"
