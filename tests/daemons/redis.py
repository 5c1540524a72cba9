#!/usr/bin/env python3
"""Debian's redis under redis-benchmark, recorded: its loop is seen at the level of waits, and what
was ready is what its own statistics explain."""
import sys

sys.dont_write_bytecode = True
from libdaemons import Daemon, can_trace, check, connect, free_port, have, run, tool  # noqa: E402
from librecorded import ended  # noqa: E402

CONNECTIONS = 20


def statistics(port):
    out = tool("redis-cli", "-p", str(port), "info", "all")
    return dict(line.split(":", 1) for line in out.splitlines() if ":" in line)


def serve(name, requests, strace=False):
    with Daemon(strace) as daemon:
        port = free_port()
        daemon.start("redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                     "--daemonize", "no", "--dir", daemon.folder)
        connect(port).close()
        before = statistics(port)
        bench = tool("redis-benchmark", "-p", str(port), "-n", str(requests), "-c",
                     str(CONNECTIONS), "-q", "-t", "set,get")
        after = statistics(port)
        tool("redis-cli", "-p", str(port), "shutdown", "nosave")
        status = daemon.end(send=False)
        check(f"{name}: redis-benchmark had its answers",
              bench.count("requests per second") == 2, bench)
        calls = {command: int(after[f"cmdstat_{command}"].split("calls=")[1].split(",")[0])
                 for command in ("get", "set")}
        check(f"{name}: it counted the requests", calls == {"get": requests, "set": requests},
              calls)
        commands = (int(after["total_commands_processed"]) -
                    int(before["total_commands_processed"]))
        connections = int(after["total_connections_received"])
        for recorded in ended(name, daemon, status):
            verify(name, recorded, commands, connections)
            if strace:
                recorded.same_waits(name, daemon)
            else:
                recorded.stacks(name, "aeMain", "readQueryFromClient")


def verify(name, recorded, commands, connections):
    recorded.whole(name, "waits")
    # A descriptor is ready for each request, for each new connection (or several of
    # them at once) and at its end. Few are for others: threads that report, the commands before.
    check(f"{name}: ready for each request", commands <= recorded.events["in"] <=
          commands + 2 * connections + 20,
          f"{recorded.events} for {commands} commands on {connections} connections")
    check(f"{name}: what the waits returned is there one by one",
          recorded.listed == recorded.ready, f"{recorded.listed} of {recorded.ready}")
    check(f"{name}: one loop with the name of its thread", len(recorded.loops) == 1 and
          all(n.startswith("redis-server epoll ") for n, _ in recorded.loops), recorded.loops)


def main():
    if not have("redis", "redis-server", "redis-benchmark", "redis-cli"):
        return
    serve("redis", 20000)
    if can_trace("redis counted by strace"):
        serve("redis counted by strace", 2000, strace=True)


run(main)
