#!/usr/bin/env python3
"""memcached under load for long, recorded continuously: neither it nor tacho grows in memory or
in descriptors, and the segments stay under their cap.

Twenty seconds in `make test`, twenty minutes in `make soak`; TACHO_LONG_SECONDS says otherwise.
"""
import json
import os
import sys
import threading
import time

sys.dont_write_bytecode = True
from libdaemons import (BIN, ROOT, Daemon, check, comm, connect, descendants, free_port,  # noqa: E402
                        have, run, tool)

SOAK = os.environ.get("TACHO_SOAK") == "1"
SECONDS = float(os.environ.get("TACHO_LONG_SECONDS") or (1200 if SOAK else 20))
SAMPLES = 200
CLIENTS = 4
KEYS = 500
LONG = SECONDS > 600
CAP = 64 << 20 if LONG else 1 << 20
# The window must be full before memory can be flat.
MEMORY = "32M" if LONG else "2M"
# Hundreds of segments in any case.
SEGMENT_TIME = "10s" if LONG else "100ms"
# A pause after each round keeps the load at some thousand requests a second, for as long as it takes.
PAUSE = 0.05
# What the last quarter may be above the second: of memcached, whose connections and items come
# to rest late, and of tacho, which holds no more for a hundredth segment than for a tenth: but what
# malloc gives back of the top of its heap, or not, comes to some 4 MiB.
GROWTH = {"memcached": (1.10, 2 << 20), "tacho": (1.0, 6 << 20)}


def load(port, number, stop, served, problems):
    try:
        client = connect(port)
        stream = client.makefile("rb")
        value = b"v" * 100
        i = 0
        while not stop.is_set():
            key = b"k%d-%d" % (number, i % KEYS)
            client.sendall(b"set %s 0 0 100\r\n%s\r\nget %s\r\n" % (key, value, key))
            answer = [stream.readline().rstrip() for _ in range(4)]
            if answer != [b"STORED", b"VALUE %s 0 100" % key, value, b"END"]:
                problems.append(f"client {number}: {answer}")
                return
            served[number] += 2
            i += 1
            if i % 50 == 0:
                time.sleep(PAUSE)
        stream.close()
        client.close()
    except OSError as error:
        problems.append(f"client {number}: {error}")


def resident(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith("VmRSS"))


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def on_disk(folder):
    """Bytes of all segments, the one that is being written too; a file may go meanwhile."""
    total = 0
    for name in os.listdir(folder):
        try:
            total += os.path.getsize(os.path.join(folder, name))
        except FileNotFoundError:
            pass
    return total


class Watched:
    """Memory and descriptors of one process over time."""

    def __init__(self, name, pid):
        self.name, self.pid = name, pid
        self.memory, self.open = [], []

    def look(self):
        self.memory.append(resident(self.pid))
        self.open.append(descriptors(self.pid))

    def is_flat(self):
        """The last quarter against the second: the first fills pools and the window. The least of
        each: what a segment takes while it is finished is given back."""
        quarter = len(self.memory) // 4
        before = min(self.memory[quarter:2 * quarter])
        after = min(self.memory[-quarter:])
        part, slack = GROWTH[self.name]
        check(f"resident memory of {self.name} stays flat", after <= part * before + slack,
              f"{before / 2**20:.1f} MiB, then {after / 2**20:.1f} MiB")
        first = min(self.open[quarter:2 * quarter])
        last = min(self.open[-quarter:])
        check(f"descriptors of {self.name} stay flat", last <= first + 1, f"{first}, then {last}")
        return f"{self.name}: {before / 2**20:.1f} to {after / 2**20:.1f} MiB, " \
               f"{first:.0f} to {last:.0f} descriptors"


def main():
    if not have("memcached", "memcached"):
        return
    with Daemon() as daemon:
        port = free_port()
        user = ["-u", "root"] if ROOT else []
        folder = daemon.path("segments")
        daemon.start("memcached", "-l", "127.0.0.1", "-p", str(port), "-t", "2", *user,
                     options=["--continuous", "-o", folder, "--memory", MEMORY,
                              "--segment-bytes", str(CAP // 8), "--segment-time", SEGMENT_TIME,
                              "--max-bytes", str(CAP), "--sched"])
        connect(port).close()
        server = next(p for p in descendants(daemon.process) if comm(p) == "memcached")
        watched = [Watched("memcached", server), Watched("tacho", daemon.process)]
        stop, served, problems, most = threading.Event(), [0] * CLIENTS, [], 0
        threads = [threading.Thread(target=load, args=(port, i, stop, served, problems))
                   for i in range(CLIENTS)]
        for t in threads:
            t.start()
        try:
            end = time.monotonic() + SECONDS
            while time.monotonic() < end and not problems:
                time.sleep(SECONDS / SAMPLES)
                for w in watched:
                    w.look()
                most = max(most, on_disk(folder))
        finally:
            stop.set()
            for t in threads:
                t.join()
        status = daemon.end()
        check("all answers are right", not problems and sum(served) > 0, problems[:3])
        check("memcached ends in order", status == 0, status)
        for w in watched:
            print(f"# {w.is_flat()}")
        check("segments stay under their cap", 0 < most <= CAP, f"{most} of {CAP} bytes")
        print(f"# {sum(served)} requests in {SECONDS:.0f} s, at most {most / 2**20:.1f} MiB on disk")
        names = sorted(n for n in os.listdir(folder) if n.endswith(".tacho"))
        check("several segments are there, and none is unfinished",
              len(names) > 1 and not any(n.endswith(".part") for n in os.listdir(folder)), names)
        for name in (names[0], names[-1]):
            info = json.loads(tool(BIN, "info", "--json", os.path.join(folder, name)))
            check(f"the {'first' if name == names[0] else 'last'} segment is whole",
                  not info["problems"] and info["processes"][0]["events"], info["problems"])


run(main)
