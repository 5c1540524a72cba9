#!/usr/bin/env python3
"""Debian's memcached under load, recorded: it works, and its callbacks are those that its own
statistics explain.

A request of one packet is one callback of its connection. A connection has three more:
the listener's, one that only begins to wait for data, and the one that sees the end.
"""
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from libevent_hooks import (Recorded, box_folder, boxes_in, check, finish, hooked,  # noqa: E402
                            skip)

MEMCACHED = shutil.which("memcached") or "/usr/bin/memcached"
CONNECTIONS = 8
ROUNDS = 400
PER_CONNECTION = 3


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.file = self.socket.makefile("rb")

    def send(self, text):
        self.socket.sendall(text)

    def line(self):
        return self.file.readline().rstrip(b"\r\n")

    def close(self):
        self.file.close()
        self.socket.close()


def load(port, number, batch, problems):
    """Sets and gets, `batch` of each in one packet, and waits for all answers."""
    try:
        client = Client(port)
        for i in range(ROUNDS):
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


def statistics(port):
    client = Client(port)
    client.send(b"stats\r\n")
    out = {}
    while (line := client.line()) not in (b"END", b""):
        _, name, value = line.decode().split(" ", 2)
        out[name] = value
    client.close()
    return out


def start(folder, port):
    user = ["-u", "root"] if os.geteuid() == 0 else []
    process = subprocess.Popen([MEMCACHED, "-l", "127.0.0.1", "-p", str(port), "-t", "4", *user],
                               env=hooked(folder), stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    for _ in range(200):
        try:
            Client(port).close()
            return process
        except OSError:
            time.sleep(0.05)
    return process


def one(name, batch):
    with box_folder() as folder:
        port = free_port()
        process = start(folder, port)
        problems = []
        threads = [threading.Thread(target=load, args=(port, i, batch, problems))
                   for i in range(CONNECTIONS)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        try:
            stats = statistics(port)
            time.sleep(0.5)  # the end of the last connection is seen
        except OSError as error:
            problems.append(str(error))
            stats = {}
        process.send_signal(signal.SIGTERM)
        status = process.wait(30)
        said = process.stderr.read()
        requests = 2 * CONNECTIONS * ROUNDS * batch
        check(f"{name}: answers are right", not problems, problems[:3])
        check(f"{name}: ends in order", status == 0, f"status {status}: {said}")
        counted = int(stats.get("cmd_get", 0)) + int(stats.get("cmd_set", 0))
        check(f"{name}: it counted the requests", counted == requests, stats)
        boxes = boxes_in(folder)
        if check(f"{name}: one box", len(boxes) == 1, boxes):
            verify(name, Recorded(boxes[0]), counted // batch, stats)


def verify(name, recorded, packets, stats):
    recorded.whole(name)
    events = {address: n for (kind, address), n in recorded.calls.items() if kind == "event"}
    handler = max(events, key=events.get, default=0)
    # Clients, the one that looked whether it is up, which sent nothing, and that of the
    # statistics.
    connections = CONNECTIONS + 2
    silent = 1
    expected = packets + 1 + PER_CONNECTION * connections
    seen = events.get(handler, 0)
    # Whoever connects and goes at once is noticed by one callback less when its end is
    # there before memcached looks for data.
    check(f"{name}: callbacks of connections", expected - silent <= seen <= expected,
          f"{seen} polls, {expected} expected; {stats.get('total_connections')} connections")
    kinds = {kind for kind, _ in recorded.calls}
    check(f"{name}: kinds of callbacks", kinds == {"event", "event timer"}, kinds)
    check(f"{name}: a callback for each descriptor that was ready",
          recorded.types["ready"] == sum(events.values()),
          f"{recorded.types['ready']} ready, {sum(events.values())} polls")
    check(f"{name}: five loops, their callbacks seen", len(recorded.loops) == 5 and
          set(recorded.parks) == {("libevent loop", "callbacks")},
          f"{recorded.parks} {recorded.loops}")


def main():
    if not os.path.exists(MEMCACHED):
        skip("memcached", "memcached is not installed")
        return
    one("one request a packet", 1)
    one("ten requests a packet", 10)


main()
finish()
