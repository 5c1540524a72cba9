#!/usr/bin/env python3
"""Debian's unbound with two threads under dnsperf, recorded: it answers, and each descriptor that
was ready has its callback. Nobody outside loopback is asked."""
import glob
import signal
import socket
import sys

sys.dont_write_bytecode = True
from libdaemons import (Daemon, can_trace, check, dnsperf, free_port, have,  # noqa: E402
                        resolve, run, serves_dns)
from librecorded import ended  # noqa: E402

AT_ONCE = 100  # questions that it reads in one callback
NAMES = [f"n{i}.test" for i in range(100)]
CONFIGURATION = """server:
  interface: 127.0.0.1@{port}
  username: ""
  chroot: ""
  directory: "{folder}"
  pidfile: ""
  use-syslog: no
  do-daemonize: no
  num-threads: 2
  statistics-cumulative: yes
  local-zone: "test." static
{data}
remote-control:
  control-enable: yes
  control-interface: {folder}/control
  control-use-cert: no
"""


def statistics(daemon):
    """What unbound-control prints, without it: over a socket in a folder it is plain text."""
    with socket.socket(socket.AF_UNIX) as s, s.makefile("rb") as f:
        s.settimeout(30)
        s.connect(daemon.path("control"))
        s.sendall(b"UBCT1 stats_noreset\n")
        return dict(line.decode().strip().split("=", 1) for line in f if b"=" in line)


def serve(name, rounds, single, strace=False):
    with Daemon(strace) as daemon:
        port = free_port()
        data = "\n".join(f'  local-data: "{n} A 10.0.0.{i}"' for i, n in enumerate(NAMES))
        daemon.start("unbound", "-d", "-c",
                     daemon.file("conf", CONFIGURATION.format(port=port, folder=daemon.folder,
                                                              data=data)),
                     traced="epoll_wait,recvfrom")
        asked = serves_dns(port, NAMES[0])
        right = resolve(port, NAMES[9], "10.0.0.9", single)
        check(f"{name}: answers one by one", right == single, right)
        sent, good, said = dnsperf(daemon, port, NAMES, rounds) if rounds else (0, 0, "")
        check(f"{name}: answers to dnsperf", sent == good == rounds * len(NAMES), said)
        stats = statistics(daemon)
        status = daemon.end(signal.SIGTERM)
        counted = int(stats["total.num.queries"])
        # Of the first ones some may have come before it listened.
        check(f"{name}: it counted the questions",
              1 <= counted - single - sent <= asked, f"{counted} for {asked}+{single}+{sent}")
        for recorded in ended(name, daemon, status):
            verify(name, recorded, counted)
            if strace:
                recorded.same_waits(name, daemon)
                looked_again(name, recorded, daemon)


def verify(name, recorded, counted):
    recorded.whole(name, "callbacks", "libevent loop")
    recorded.every_ready(name)
    recorded.functions(name, ("comm_point_udp_callback",))
    busiest = max((n for of, n in recorded.code.items() if of[0] == "event"), default=0)
    check(f"{name}: callbacks for its questions", counted // AT_ONCE <= busiest <= counted,
          f"{busiest} polls for {counted} questions")
    check(f"{name}: two loops", len(recorded.loops) == 2, recorded.loops)


def looked_again(name, recorded, daemon):
    """A callback reads questions until there is none, or a hundred: strace sees it do so."""
    seen = 0
    for path in glob.glob(f"{daemon.calls}/of.*"):
        got = 0
        with open(path, encoding="utf-8", errors="replace") as f:
            for line in f:
                if not line.startswith("recvfrom(") or "MSG_DONTWAIT" not in line:
                    continue
                got += 1
                if "EAGAIN" in line or got == AT_ONCE:
                    seen += 1
                    got = 0
    busiest = max((n for of, n in recorded.code.items() if of[0] == "event"), default=0)
    check(f"{name}: as many callbacks as strace sees it look for questions",
          busiest <= seen <= busiest + recorded.early(),
          f"{busiest} polls, looked for questions {seen} times; "
          f"{recorded.early()} early records lost")


def main():
    if not have("unbound", "unbound", "dnsperf"):
        return
    serve("unbound", 100, 200)
    if can_trace("unbound counted by strace"):
        serve("unbound counted by strace", 0, 500, strace=True)


run(main)
