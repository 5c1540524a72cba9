#!/bin/sh
# The demo: a server is slow now and then; a sentinel keeps what led to it, and a report says why.
. "$(dirname "$0")/lib.sh"
trace=$out/guess.tacho
page=$out/guess.html
rm -f "$trace" "$page"

start collector "$build/examples/collector"
port_of collector
collector=$port

title "A server that is slow now and then"
say "A number-guessing game over HTTP, examples/guess_server.c, runs as it is, without a word of tacho in it." \
	"tacho records it in memory, and keeps the last seconds when its event loop is away for 100 ms:"
show_start server "tacho run --on 'lag>100ms or exit!=0' -o $trace -- $build/examples/guess_server -c $collector"
port_of server
server=$pid
start client "$build/examples/client $port 'GET /guess-number?guess=# HTTP/1.1\nHost: guess\n\n'"
await "that the sentinel fires" is_there "$trace"
finish "$pid"
say "Eight players got $(cat "$scratch/client.out")."
finish "$server"
[ "$status" = 0 ] || fail "the server ended with status $status"
grep -q 'snapshot of guess_server.*lag>100ms' "$scratch/server.err" ||
	fail "tacho run does not say why it kept the window: $(cat "$scratch/server.err")"
say "The slow ones are over before anybody looks. tacho has kept them, in $trace, and the server went on."

title "Why was it slow?"
show "tacho report $trace"
expect "$trace" lock-contention send_report
expect "$trace" lock-contention on_guess
line=$(sed -n 's/^lock: .* holds in send_report (guess_server\.c:\([0-9]*\)).*/\1/p' "$scratch/shown")
[ -n "$line" ] || fail "the verdict names no line of send_report"
say "Players wait in on_guess for a lock that send_report holds while it waits for a slow POST:"
sed -n "$((line - 2)),${line}s/^/        /p" examples/guess_server.c

title "See it"
show "tacho view --html $page $trace"
[ -s "$page" ] || fail "there is no page"
say "Open this page in a browser, and click on the finding to see that moment of every thread:" \
	"    file://$(cd "$out" && pwd)/$(basename "$page")" \
	"Next: tacho run -- YOUR SERVER. More examples are in examples/README.md."
