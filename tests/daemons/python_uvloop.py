#!/usr/bin/env python3
"""A server on Debian's uvloop, recorded: each callback of libuv is seen, as many as the server's
own counts explain. uvloop brings libuv in by dlopen, where only those who depend on it see it."""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
from libdaemons import (Daemon, can_trace, check, connect, echo, free_port, run,  # noqa: E402
                        skip)
from librecorded import ended  # noqa: E402

PYTHON = "/usr/bin/python3"  # the one that Debian's module is for
CONNECTIONS = 10
SERVER = """
import asyncio, sys, uvloop
echoes = connections = ends = 0
class Echo(asyncio.Protocol):
    def connection_made(self, transport):
        global connections
        connections += 1
        self.transport = transport
    def data_received(self, data):
        global echoes
        if data == b"stop":
            stop.set()
        echoes += data == b"question"
        self.transport.write(data)
    def connection_lost(self, error):
        global ends
        ends += 1
async def main():
    global stop
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Echo, "127.0.0.1", int(sys.argv[1]))
    await stop.wait()
    child = await asyncio.create_subprocess_exec("/bin/sh", "-c", "exit 3")
    status = await child.wait()
    for i in range(20):
        await asyncio.sleep(0.002)
    server.close()
    print(echoes, connections, ends, status)
uvloop.install()
asyncio.run(main())
"""


def serve(name, rounds, strace=False):
    with Daemon(strace) as daemon:
        port = free_port()
        daemon.start(PYTHON, daemon.file("server.py", SERVER), str(port))
        wrong = echo(port, CONNECTIONS, rounds)
        with connect(port) as s:
            s.sendall(b"stop")
            s.recv(100)
            status = daemon.end(send=False)
        check(f"{name}: answers are right", not wrong, wrong[:3])
        echoes, connections, ends, child = (int(w) for w in (daemon.said() or "0 0 0 0").split())
        check(f"{name}: it counted the requests, and its child ended", child == 3 and
              echoes == CONNECTIONS * rounds and connections == CONNECTIONS + 1 and
              ends == CONNECTIONS, daemon.said())
        for recorded in ended(name, daemon, status, mine="x86_64-linux-gnu.so"
                              if os.uname().machine == "x86_64" else ""):
            verify(name, recorded, echoes, connections, ends)
            if strace:
                recorded.same_waits(name, daemon)
            else:
                recorded.stacks(name, "uv_run")


def verify(name, recorded, echoes, connections, ends):
    recorded.whole(name, "callbacks", "uv loop", explained=recorded.DEEP)
    recorded.functions(name)
    polls = recorded.polls
    check(f"{name}: reads", polls["uv_tcp read"] == echoes + 1 + ends, f"{polls} for {echoes}")
    check(f"{name}: connections", polls["uv_tcp connection"] == connections, polls)
    check(f"{name}: the child", polls["uv_process"] == 1, polls)
    check(f"{name}: timers", polls["uv_timer"] >= 20, polls)


def main():
    if not os.path.exists(PYTHON) or subprocess.run([PYTHON, "-c", "import uvloop"],
                                                    capture_output=True).returncode:
        skip("uvloop", "python3-uvloop: not installed")
        return
    serve("uvloop", 500)
    if can_trace("uvloop counted by strace"):
        serve("uvloop counted by strace", 50, strace=True)


run(main)
