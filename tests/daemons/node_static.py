#!/usr/bin/env python3
"""A node that has libuv inside, as those of nodejs.org and NodeSource have, under wrk, recorded:
its callbacks cannot be seen, its waits can, and the trace says so."""
import sys

sys.dont_write_bytecode = True
import libnode  # noqa: E402
from libdaemons import Daemon, can_trace, check, have, run, skip  # noqa: E402
from librecorded import ended  # noqa: E402


def serve(name, node, rounds, seconds, strace=False):
    with Daemon(strace) as daemon:
        daemon.start(node, libnode.SERVER)
        counts = libnode.load(name, daemon, rounds, seconds)
        if not counts:
            return
        for recorded in ended(name, daemon, daemon.end(send=False)):
            recorded.whole(name, "waits", explained=recorded.NODE)
            # Each request is an event of its connection, each connection one of the listener
            # and one at its end.
            check(f"{name}: ready for each request",
                  counts["served"] <= recorded.events["in"], f"{recorded.events} for {counts}")
            check(f"{name}: what the waits returned is there one by one",
                  recorded.listed == recorded.ready, f"{recorded.listed} of {recorded.ready}")
            if strace:
                recorded.same_waits(name, daemon)
            else:
                recorded.stacks(name, "uv_run")


def main():
    node = libnode.found()
    if not node:
        skip("static node", "node: not installed")
    elif node[1]:
        skip("static node", f"{node[0]} uses the libuv of the system")
    elif have("static node", "wrk"):
        serve("static node", node[0], libnode.REQUESTS, 1)
        if can_trace("static node counted by strace"):
            serve("static node counted by strace", node[0], 20, 0, strace=True)


run(main)
