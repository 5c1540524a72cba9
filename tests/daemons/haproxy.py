#!/usr/bin/env python3
"""Debian's haproxy with two threads, in front of a server of its own, under wrk, recorded: each
thread is a loop, and what was ready is what its own counts explain."""
import signal
import socket
import sys

sys.dont_write_bytecode = True
from libdaemons import (Daemon, can_trace, check, connect, free_port, have, run,  # noqa: E402
                        until, wrk)
from librecorded import ended  # noqa: E402

CONFIGURATION = """
global
  nbthread 2
  stats socket {folder}/admin level admin
defaults
  mode http
  timeout connect 30s
  timeout client 30s
  timeout server 30s
frontend front
  bind 127.0.0.1:{front}
  default_backend back
backend back
  http-reuse always
  server one 127.0.0.1:{back}
frontend answers
  bind 127.0.0.1:{back}
  http-request return status 200 content-type text/plain string ok
"""


def admin(daemon, command):
    """What it says on its socket."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(30)
        s.connect(daemon.path("admin"))
        s.sendall(command.encode() + b"\n")
        out = b""
        while data := s.recv(65536):
            out += data
    return out.decode()


def statistics(daemon):
    lines = admin(daemon, "show stat").lstrip("# ").splitlines()
    names = lines[0].split(",")
    rows = [dict(zip(names, line.split(","))) for line in lines[1:] if line]
    return {(row["pxname"], row["svname"]): row for row in rows}


def serve(name, strace=False):
    with Daemon(strace) as daemon:
        front, back = free_port(), free_port()
        conf = CONFIGURATION.format(folder=daemon.folder, front=front, back=back)
        daemon.start("haproxy", "-db", "-f", daemon.file("conf", conf))
        connect(front).close()
        answers, wrong = wrk(front)
        stats = until(lambda: (s := statistics(daemon))["front", "FRONTEND"]["scur"] == "0" and s) \
            or statistics(daemon)
        status = daemon.end(signal.SIGUSR1)  # in order
        served = int(stats["front", "FRONTEND"]["hrsp_2xx"])
        behind = int(stats["answers", "FRONTEND"]["hrsp_2xx"])
        check(f"{name}: answers are right", not wrong and answers > 100, f"{answers} {wrong}")
        check(f"{name}: it counted them", answers <= served <= behind,
              f"{answers} {served} {behind}")
        for recorded in ended(name, daemon, status):
            verify(name, recorded, served)
            if strace:
                recorded.same_waits(name, daemon)
            else:
                recorded.stacks(name, "run_poll_loop")


def verify(name, recorded, requests):
    recorded.whole(name, "waits")
    check(f"{name}: two loops, with names", len(recorded.loops) == 2 and
          all(n.startswith("haproxy epoll ") for n, _ in recorded.loops), recorded.loops)
    # Three for each: the request, the same at the server behind, and its answer. What is there
    # when it looks again needs none; that is rare.
    check(f"{name}: ready for its requests",
          0.9 * 3 * requests <= recorded.events["in"] <= 1.1 * 3 * requests + 100,
          f"{recorded.events} for {requests} requests")
    check(f"{name}: what the waits returned is there one by one",
          recorded.listed == recorded.ready, f"{recorded.listed} of {recorded.ready}")


def main():
    if not have("haproxy", "haproxy", "wrk"):
        return
    serve("haproxy")
    if can_trace("haproxy counted by strace"):
        serve("haproxy counted by strace", strace=True)


run(main)
