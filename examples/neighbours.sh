#!/bin/sh
# Neighbours that take the CPU: the server is slow, and it is not its fault.
. "$(dirname "$0")/lib.sh"
trace=$out/neighbours.tacho
rm -f "$trace"
# One CPU for all of them, one of those that this shell may use.
cpu=$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')

title "A server without a fault, and two others that want its CPU"
show_start server "tacho run -o $trace -- taskset -c $cpu $build/examples/guess_server -w 2000"
port_of server
server=$pid
start client "$build/examples/client $port 'GET /guess-number?guess=# HTTP/1.1\nHost: guess\n\n'"
client=$pid
for i in 1 2; do
	start "neighbour$i" "taskset -c $cpu sh -c 'while :; do :; done'"
done
sleep 3
finish "$client"
say "Eight players got $(cat "$scratch/client.out")."
finish "$server"
[ "$status" = 0 ] || fail "the server ended with status $status"

title "Whose fault it is"
show "tacho report $trace"
expect "$trace" kernel-scheduling-delay
say "No function is named: the server could have run, and the kernel ran others."
