"""What the tests of node share: a server, its load, and whose libuv a node has."""
import http.client
import json
import os
import subprocess

from libdaemons import HERE, PATIENCE, check, program, until, wrk

CONNECTIONS, REQUESTS = 10, 60
KINDS = ("/", "/file", "/key", "/timer")
SERVER = os.path.join(HERE, "node_server.js")


def needs(path):
    """The libraries that a program loads."""
    return subprocess.run(["ldd", path], capture_output=True, text=True, timeout=60).stdout


def found():
    """The node in PATH and whether it uses the libuv of the system: (path, shared), or None."""
    path = program("node")
    return (path, "libuv.so" in needs(path)) if path else None


def ask(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("GET", path)
    answer = connection.getresponse().read().decode()
    connection.close()
    return answer


def load(name, daemon, rounds=REQUESTS, seconds=1):
    """Requests of all kinds on connections that are kept, then wrk; ends the server. What it
    counted itself."""
    line = until(lambda: daemon.said().endswith("\n") and daemon.said())
    if not check(f"{name}: it serves", line and line.strip().isdigit(), daemon.log()):
        return None
    port = int(line)
    right = 0
    for _ in range(CONNECTIONS):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        for i in range(rounds):
            connection.request("GET", KINDS[i % 4])
            right += valid(KINDS[i % 4], connection.getresponse().read().decode())
        connection.close()
    check(f"{name}: answers are right", right == CONNECTIONS * rounds, right)
    if seconds:
        answers, wrong = wrk(port, seconds)
        check(f"{name}: answers to wrk", answers > 50 and not wrong, f"{answers} {wrong}")
    # Until it has seen all connections end but the one that asks.
    until(lambda: json.loads(ask(port, "/counts"))["open"] == 1)
    counts = json.loads(ask(port, "/stop"))
    if seconds:
        check(f"{name}: it counted them", counts["served"] >= CONNECTIONS * rounds + answers,
              f"{counts} for {answers}")
    return counts


def valid(path, answer):
    return {"/": answer == "hello", "/timer": answer == "timer",
            "/file": answer == str(os.path.getsize(SERVER)),
            "/key": len(answer) == 64}[path]
