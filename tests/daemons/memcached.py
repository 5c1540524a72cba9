#!/usr/bin/env python3
"""Debian's memcached under load, recorded: it works, and its callbacks are those that its own
statistics explain.

A request of one packet is one callback of its connection. A connection has three more:
the listener's, one that only begins to wait for data, and the one that sees the end.
"""
import sys
import threading

sys.dont_write_bytecode = True
from libdaemons import (PATIENCE, ROOT, Daemon, can_trace, check, connect,  # noqa: E402
                        free_port, have, run, until)
from librecorded import ended  # noqa: E402

CONNECTIONS = 8
WORKERS = 4
PER_CONNECTION = 3


class Client:
    def __init__(self, port):
        self.socket = connect(port)
        self.file = self.socket.makefile("rb")

    def send(self, text):
        self.socket.sendall(text)

    def line(self):
        return self.file.readline().rstrip(b"\r\n")

    def close(self):
        self.file.close()
        self.socket.close()


def load(port, number, rounds, batch, problems):
    """Sets and gets, `batch` of each in one packet, and waits for all answers."""
    try:
        client = Client(port)
        for i in range(rounds):
            keys = [b"k%d-%d-%d" % (number, i, j) for j in range(batch)]
            client.send(b"".join(b"set %s 0 0 5\r\nvalue\r\n" % k for k in keys))
            answers = [client.line() for _ in keys]
            client.send(b"".join(b"get %s\r\n" % k for k in keys))
            answers += [client.line() for _ in keys for _ in range(3)]
            expected = [b"STORED"] * batch
            for k in keys:
                expected += [b"VALUE %s 0 5" % k, b"value", b"END"]
            if answers != expected:
                problems.append(f"client {number}, round {i}: {answers}")
                break
        client.close()
    except OSError as error:
        problems.append(f"client {number}: {error}")


class Statistics:
    """A connection that asks memcached for its own counts."""

    def __init__(self, port):
        self.client = Client(port)
        self.asked = 0

    def ask(self):
        self.client.send(b"stats\r\n")
        self.asked += 1
        out = {}
        while (line := self.client.line()) not in (b"END", b""):
            _, name, value = line.decode().split(" ", 2)
            out[name] = value
        return out

    def alone(self):
        """What it counts when all other connections have ended, which it has then seen."""
        found = {}

        def last():
            found.update(self.ask())
            # One of those that it counts is the listener's.
            return int(found.get("curr_connections", 0)) <= 2

        until(last)
        return found


def serve(name, rounds, batch, strace=False):
    with Daemon(strace) as daemon:
        port = free_port()
        user = ["-u", "root"] if ROOT else []
        daemon.start("memcached", "-l", "127.0.0.1", "-p", str(port), "-t", str(WORKERS), *user)
        statistics = Statistics(port)
        problems = []
        threads = [threading.Thread(target=load, args=(port, i, rounds, batch, problems))
                   for i in range(CONNECTIONS)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(PATIENCE)
        stats = statistics.alone()
        status = daemon.end()
        statistics.client.close()
        requests = 2 * CONNECTIONS * rounds * batch
        check(f"{name}: answers are right", not problems, problems[:3])
        counted = int(stats.get("cmd_get", 0)) + int(stats.get("cmd_set", 0))
        check(f"{name}: it counted the requests", counted == requests, stats)
        for recorded in ended(name, daemon, status):
            verify(name, recorded, counted // batch + statistics.asked, stats)
            if strace:
                recorded.same_waits(name, daemon)


def verify(name, recorded, packets, stats):
    recorded.whole(name, "callbacks", "libevent loop")
    events = {of: n for of, n in recorded.code.items() if of[0] == "event"}
    seen = max(events.values(), default=0)
    # The connection of the statistics has not ended.
    expected = packets + PER_CONNECTION * (CONNECTIONS + 1) - 1
    check(f"{name}: as many callbacks of connections as it had to do",
          expected - recorded.early() <= seen <= expected,
          f"{seen} polls, {expected} expected; {stats.get('total_connections')} connections")
    check(f"{name}: kinds of callbacks", set(recorded.polls) == {"event", "event timer"},
          recorded.polls)
    recorded.every_ready(name)
    check(f"{name}: five loops", len(recorded.loops) == WORKERS + 1, recorded.loops)
    threads = [t["name"] for t in recorded.process()["threads"]]
    check(f"{name}: its threads have their names", threads.count("mc-worker") == WORKERS, threads)
    check(f"{name}: it has its name", recorded.process()["program"] == "memcached",
          recorded.process()["program"])
    recorded.functions(name, ("event_handler", "thread_libevent_process", "clock_handler"))


def main():
    if not have("memcached", "memcached"):
        return
    serve("one request a packet", 400, 1)
    serve("ten requests a packet", 400, 10)
    if can_trace("counted by strace"):
        serve("counted by strace", 50, 1, strace=True)


run(main)
