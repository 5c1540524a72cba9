#!/usr/bin/env python3
"""An echo server of Python's asyncio, recorded: as many parks as its selector counted selects, as
many ready descriptors as selects returned."""
import sys

sys.dont_write_bytecode = True
from libdaemons import (PYTHON, Daemon, can_trace, check, connect, echo,  # noqa: E402
                        free_port, run)
from librecorded import ended  # noqa: E402

CONNECTIONS = 8
SERVER = """
import asyncio, selectors, sys
class Counting(selectors.EpollSelector):
    selects = ready = 0
    def select(self, timeout=None):
        Counting.selects += 1
        found = super().select(timeout)
        Counting.ready += len(found)
        return found
echoes = 0
async def serve(reader, writer):
    global echoes
    while data := await reader.read(100):
        if data == b"stop":
            stop.set()
        echoes += data == b"question"
        writer.write(data)
        await writer.drain()
    writer.close()
async def main():
    global stop
    stop = asyncio.Event()
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    await stop.wait()
    server.close()
loop = asyncio.SelectorEventLoop(Counting())
loop.run_until_complete(main())
print(echoes, Counting.selects, Counting.ready)
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
        echoes, selects, ready = (int(word) for word in (daemon.said() or "0 0 0").split())
        check(f"{name}: it counted the requests", echoes == CONNECTIONS * rounds, daemon.said())
        for recorded in ended(name, daemon, status):
            recorded.whole(name, "waits", explained=recorded.DEEP)
            check(f"{name}: as many parks as it waited", recorded.types["park"] == selects,
                  f"{recorded.types} for {selects}")
            check(f"{name}: as many ready as it was told", recorded.listed == recorded.ready ==
                  ready, f"{recorded.ready}, {recorded.listed} listed, for {ready}")
            if strace:
                recorded.same_waits(name, daemon)
            else:
                recorded.stacks(name, "_PyEval_EvalFrameDefault")


def main():
    serve("asyncio", 500)
    if can_trace("asyncio counted by strace"):
        serve("asyncio counted by strace", 100, strace=True)


run(main)
