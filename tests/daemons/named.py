#!/usr/bin/env python3
"""Debian's named under dnsperf, recorded: each question is a read of libuv, each answer a send, as
many as its own statistics say; callbacks have the names that libisc exports."""
import json
import signal
import sys
import urllib.request

sys.dont_write_bytecode = True
from libdaemons import (Daemon, can_trace, check, dnsperf, free_port, have,  # noqa: E402
                        resolve, run, serves_dns)
from librecorded import ended  # noqa: E402

NAMES = [f"n{i}.t.test" for i in range(100)]
CONFIGURATION = """options {{ directory "{folder}"; listen-on port {port} {{ 127.0.0.1; }};
  listen-on-v6 {{ none; }}; pid-file none; recursion no; dnssec-validation no;
  session-keyfile "{folder}/key"; notify no; }};
controls {{ }};
statistics-channels {{ inet 127.0.0.1 port {statistics} allow {{ 127.0.0.1; }}; }};
zone "t.test" {{ type primary; file "{folder}/zone"; }};
"""
ZONE = "$TTL 60\n@ IN SOA a. b. 1 1 1 1 1\n@ IN NS ns\nns IN A 127.0.0.1\n"


def statistics(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/v1/server", timeout=30) as answer:
        return json.load(answer)["nsstats"]


def serve(name, rounds, single, strace=False):
    with Daemon(strace) as daemon:
        port, channel = free_port(), free_port()
        daemon.file("zone", ZONE + "".join(f"{n.split('.')[0]} IN A 10.0.0.{i}\n"
                                           for i, n in enumerate(NAMES)))
        daemon.start("named", "-g", "-c", daemon.file("conf", CONFIGURATION.format(
            folder=daemon.folder, port=port, statistics=channel)))
        asked = serves_dns(port, NAMES[0])
        right = resolve(port, NAMES[9], "10.0.0.9", single)
        check(f"{name}: answers one by one", right == single, right)
        sent, good, said = dnsperf(daemon, port, NAMES, rounds) if rounds else (0, 0, "")
        check(f"{name}: answers to dnsperf", sent == good == rounds * len(NAMES), said)
        stats = statistics(channel)
        status = daemon.end(signal.SIGTERM)
        check(f"{name}: it counted the questions",
              single + sent + 1 <= stats["QrySuccess"] <= stats["Requestv4"] <=
              single + sent + asked,
              f"{stats} for {asked} + {single} + {sent}")
        for recorded in ended(name, daemon, status, mine="Debian.so"):
            verify(name, recorded, stats["Requestv4"])
            if strace:
                recorded.same_waits(name, daemon)


def verify(name, recorded, questions):
    recorded.whole(name, "callbacks", "uv loop")
    check(f"{name}: an answer is a uv_udp_send", recorded.polls["uv_udp_send"] == questions,
          f"{recorded.polls} for {questions}")
    # libuv reads several at once, and says when it is done with the memory it was given for that.
    check(f"{name}: a question is a read", recorded.polls["uv_udp read"] ==
          questions + recorded.polls["uv_udp alloc"], f"{recorded.polls} for {questions}")
    check(f"{name}: it has several loops", len(recorded.loops) >= 2, recorded.loops)
    check(f"{name}: all callbacks are libisc's", not recorded.others, recorded.others)
    recorded.functions(name, ("isc__nm_alloc_cb", "isc__nm_tcp_read_cb", "udp_recv_cb",
                              "udp_send_cb"))


def main():
    if not have("named", "named", "dnsperf"):
        return
    serve("named", 100, 200)
    if can_trace("named counted by strace"):
        serve("named counted by strace", 0, 300, strace=True)


run(main)
