#!/usr/bin/env python3
"""Debian's pgbouncer between pgbench and a PostgreSQL of this test's own, recorded: it works, and
its callbacks are those that its own statistics explain."""
import glob
import os
import pwd
import re
import signal
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
from libdaemons import (PATIENCE, ROOT, Daemon, can_trace, check, connect, free_port,  # noqa: E402
                        have, run, skip, until)
from librecorded import ended  # noqa: E402

CLIENTS, SERVERS = 8, 4
# Neither of the two likes to be root's.
USER = "nobody" if ROOT else pwd.getpwuid(os.geteuid()).pw_name


def as_user():
    return {"user": USER, "group": pwd.getpwnam(USER).pw_gid, "extra_groups": []} if ROOT else {}


class Postgres:
    """A server with a folder and a port of its own, which need not survive anything."""

    def __init__(self, daemon, binaries):
        self.folder = daemon.path("postgres")
        self.port = free_port()
        self.log = daemon.path("postgres.log")
        self.binaries = binaries
        os.mkdir(self.folder)
        if ROOT:
            os.chown(self.folder, pwd.getpwnam(USER).pw_uid, -1)
        self.quietly(f"{binaries}/initdb", "-D", self.folder, "-A", "trust", "-U", "test",
                     "--no-sync", "-E", "UTF8", "--locale=C")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [f"{binaries}/postgres", "-D", self.folder, "-p", str(self.port), "-c",
                 "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c",
                 "fsync=off"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", **as_user())
        # It listens before it serves.
        until(lambda: subprocess.run([f"{binaries}/pg_isready", "-q", "-h", "127.0.0.1", "-p",
                                      str(self.port)], timeout=PATIENCE).returncode == 0)

    def quietly(self, *argv):
        p = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE * 2, cwd="/",
                           stdin=subprocess.DEVNULL, **as_user())
        if p.returncode:
            raise OSError(f"{argv[0]}: {p.stderr[-300:]}")

    def end(self):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGQUIT)  # its own processes end, too
            self.process.wait(PATIENCE)


def pgbench(postgres, port, *options):
    """What it printed, or how it failed."""
    argv = [f"{postgres.binaries}/pgbench", "-h", "127.0.0.1", "-p", str(port), "-U", "test",
            *options, "postgres"]
    p = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE * 2,
                       stdin=subprocess.DEVNULL)
    return p.stdout if p.returncode == 0 else f"exit {p.returncode}: {p.stdout} {p.stderr}"


def statistics(port):
    """SHOW STATS of the admin console, over the protocol of PostgreSQL: rows by database."""
    rows, names = {}, []
    with connect(port) as s, s.makefile("rb") as f:
        hello = struct.pack(">I", 196608) + b"user\0test\0database\0pgbouncer\0\0"
        query = b"SHOW STATS\0"
        s.sendall(struct.pack(">I", len(hello) + 4) + hello)
        s.sendall(struct.pack(">cI", b"Q", len(query) + 4) + query)
        ready = 0
        while ready < 2:
            kind, size = struct.unpack(">cI", f.read(5))
            body = f.read(size - 4)
            if kind == b"E":
                raise OSError(f"pgbouncer says {body}")
            if kind == b"T":
                names = [field.split(b"\0")[0].decode()
                         for field in re.findall(rb"([a-z_]+\0.{18})", body[2:], re.S)]
            if kind == b"D":
                row = dict(zip(names, values(body)))
                rows[row["database"]] = row
            ready += kind == b"Z"
    return rows


def values(body):
    at, out = 2, []
    for _ in range(int.from_bytes(body[:2], "big")):
        size = int.from_bytes(body[at:at + 4], "big")
        out.append(body[at + 4:at + 4 + size].decode())
        at += 4 + size
    return out


def serve(name, postgres, transactions, strace=False):
    with Daemon(strace) as daemon:
        port = free_port()
        user = ["-u", USER] if ROOT else []
        daemon.start("pgbouncer", *user, daemon.file("ini", f"""[databases]
postgres = host=127.0.0.1 port={postgres.port} user=test
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
admin_users = test
stats_users = test
pool_mode = transaction
default_pool_size = {SERVERS}
"""), own_boxes=not ROOT)
        connect(port).close()
        out = pgbench(postgres, port, "-n", "-S", "-c", str(CLIENTS), "-j", "2", "-t",
                      str(transactions))
        asked = CLIENTS * transactions
        check(f"{name}: pgbench had its answers",
              f"actually processed: {asked}/{asked}" in out and "failed transactions: 0 " in out,
              out)
        stats = statistics(port)["postgres"]
        check(f"{name}: it counted the transactions",
              asked <= int(stats["total_xact_count"]) <= asked + 10, stats)
        status = daemon.end(signal.SIGINT)  # in order
        for recorded in ended(name, daemon, status):
            verify(name, recorded, int(stats["total_query_count"]))
            if strace:
                recorded.same_waits(name, daemon)


def verify(name, recorded, queries):
    recorded.whole(name, "callbacks", "libevent loop")
    recorded.every_ready(name)
    recorded.functions(name, ("sbuf_recv_cb", "sbuf_connect_cb"))
    busiest = max((n for of, n in recorded.code.items() if of[0] == "event"), default=0)
    # One of the client for the query, one of the server for the answer; and some for logins.
    # What a client sent while it waited for a server may be read when it gets one.
    check(f"{name}: two callbacks for each query",
          0.95 * 2 * queries <= busiest <= 2 * queries + 100,
          f"{busiest} polls for {queries} queries")


def main():
    binaries = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))
    if not have("pgbouncer", "pgbouncer"):
        return
    if not binaries:
        skip("pgbouncer", "postgres: not installed")
        return
    with Daemon() as place:
        postgres = Postgres(place, os.path.dirname(binaries[-1]))
        try:
            ready = pgbench(postgres, postgres.port, "-i", "-q", "-s", "1")
            check("pgbouncer: PostgreSQL works behind it", not ready.startswith("exit"), ready)
            serve("pgbouncer", postgres, 500)
            if can_trace("pgbouncer counted by strace"):
                serve("pgbouncer counted by strace", postgres, 100, strace=True)
        finally:
            postgres.end()


run(main)
