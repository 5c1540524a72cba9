#!/usr/bin/env python3
"""Debian's tor with no network, asked through its control port, recorded: each request has its
callback."""
import sys

sys.dont_write_bytecode = True
from libdaemons import Daemon, can_trace, check, connect, free_port, have, run  # noqa: E402
from librecorded import ended  # noqa: E402


def ask(port, requests):
    """How many answers were right. At the end it is told to stop."""
    right = 0
    with connect(port) as s, s.makefile("rb") as f:
        s.sendall(b"AUTHENTICATE\r\n")
        f.readline()
        for _ in range(requests):
            s.sendall(b"GETINFO version\r\n")
            right += f.readline().startswith(b"250-version=") and f.readline() == b"250 OK\r\n"
        s.sendall(b"SIGNAL SHUTDOWN\r\n")
        f.readline()
    return right


def serve(name, requests, strace=False):
    with Daemon(strace) as daemon:
        port = free_port()
        daemon.start("tor", "-f", daemon.file("torrc", ""), "--DataDirectory",
                     daemon.path("data"), "--DisableNetwork", "1", "--SocksPort", "0",
                     "--ControlPort", f"127.0.0.1:{port}", "--Log", "warn stderr")
        right = ask(port, requests)
        check(f"{name}: answers are right", right == requests, right)
        for recorded in ended(name, daemon, daemon.end(send=False)):
            recorded.whole(name, "callbacks", "libevent loop")
            recorded.every_ready(name)
            recorded.functions(name, ("conn_read_callback",))
            busiest = max((n for of, n in recorded.code.items() if of[0] == "event"), default=0)
            # Also: the connection, the authentication, the order to stop, the end.
            check(f"{name}: callbacks for its requests", requests <= busiest <= requests + 10,
                  f"{busiest} polls, {requests} requests")
            if strace:
                recorded.same_waits(name, daemon)


def main():
    if not have("tor", "tor"):
        return
    serve("tor", 2000)
    if can_trace("tor counted by strace"):
        serve("tor counted by strace", 300, strace=True)


run(main)
