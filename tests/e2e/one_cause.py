#!/usr/bin/env python3
"""What happens in several processes for one reason is one finding, with all of them and their sums; an idle
parent is no alarm, and never above what its workers do."""
import contextlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

from librun import (BIN, PYTHON, check, child_of, environment, failures, finish, folder, said, script, skip, start,
                    until)

PROGRAM = os.path.join(os.environ["TACHO_BUILD"], "tests/e2e/prefork")
WORKERS = 6
CONNECTIONS = 3  # to each worker
REQUESTS = 40  # of each connection
SLOW = 5  # of those of each worker
BETWEEN_S = 0.03  # two requests of a connection
FAULT = "fetch_from_upstream"

# The same in Python: see prefork.c.
SERVER = """
import os, selectors, signal, socket, sys, time
where, workers = sys.argv[1], int(sys.argv[2])
def fetch_from_upstream():
    time.sleep(0.06)
def serve(connection):
    byte = connection.recv(1)
    if byte == b"s":
        fetch_from_upstream()
    if byte:
        connection.send(byte)
    else:
        loop.unregister(connection)
        connection.close()
def work(listener):
    global loop
    loop = selectors.DefaultSelector()
    loop.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in loop.select():
            if key.fileobj is listener:
                loop.register(listener.accept()[0], selectors.EVENT_READ)
            else:
                serve(key.fileobj)
def wait_for_signals():
    while signal.sigtimedwait({signal.SIGTERM}, 0.3) is None:
        pass
pids = []
for i in range(workers):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{where}/{i}")
    listener.listen()
    pids.append(os.fork())
    if not pids[-1]:
        work(listener)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
open(where + "/ready", "w").close()
wait_for_signals()
for pid in pids:
    os.kill(pid, signal.SIGTERM)
for pid in pids:
    os.waitpid(pid, 0)
with open(where + "/done", "w") as f:
    f.writelines(f"{pid} %d 0 0\\n" for pid in pids)
""" % SLOW


def ask(where, worker, slow):
    """One connection: a request after the other, of which `slow` are slow."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(f"{where}/{worker}")
        for i in range(REQUESTS):
            s.send(b"s" if slow and i % (REQUESTS // slow) == 4 else b"f")
            s.recv(1)
            time.sleep(BETWEEN_S)


def ask_all(where, workers, slow):
    clients = [threading.Thread(target=ask, args=(where, w, 0 if c else slow))
               for w in range(workers) for c in range(CONNECTIONS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()


def record(tmp, name, workers, command, slow=SLOW):
    """(the report, what each worker did: {pid: (count, ns, longest)})"""
    where, path = f"{tmp}/{name}", f"{tmp}/{name}.tacho"
    os.mkdir(where)
    p = start("-q", "-o", path, "--", *command, where, str(workers))
    try:
        if not check(f"{name}: it runs", until(lambda: os.path.exists(f"{where}/ready")), name):
            return None, {}
        ask_all(where, workers, slow)
        os.kill(child_of(p.pid), signal.SIGTERM)
    finally:
        ended = finish(p)
    done = {}
    with contextlib.suppress(OSError), open(f"{where}/done", encoding="ascii") as f:
        done = {int(pid): tuple(map(int, more)) for pid, *more in map(str.split, f)}
    if not check(f"{name}: it ends in order", done, ended):
        return None, {}
    report = subprocess.run([BIN, "report", "--json", path], capture_output=True, text=True, timeout=60,
                            env=environment())
    check(f"{name}: it can be reported on", report.returncode == 0, said(report))
    return json.loads(report.stdout), done


def alarms(report):
    return [f for f in report["findings"] if f["severity"] != "info" and f["explained_by"] is None]


def is_kernels(finding):
    """The machine's doing, whatever else runs on it."""
    return finding["rule"] in ("kernel-scheduling-delay", "process-pause")


def judge(name, report, done, fault):
    """`fault`: whether a finding is about the planted one."""
    found = [f for f in alarms(report) if fault(f)]
    if not check(f"{name}: one cause is one finding", len(found) == 1, [f["summary"] for f in alarms(report)]):
        return None
    f = found[0]
    listed = {i["pid"]: i for i in f["instances"]}
    check(f"{name}: it is in all workers", f["processes"] == f["processes_in_all"] == len(done) and
          set(listed) == set(done), f)
    check(f"{name}: it says so", f" blocks {len(done)} of {len(done)} workers for up to " in f["summary"], f["summary"])
    check(f"{name}: each worker has its own count",
          {pid: i["count"] for pid, i in listed.items()} == {pid: d[0] for pid, d in done.items()}, (listed, done))
    check(f"{name}: counts add up", f["measure"]["count"] == sum(d[0] for d in done.values()), f["measure"])
    check(f"{name}: it is critical, as all of them together are", f["severity"] == "critical", f)
    check(f"{name}: nothing stands above it but the machine's doing",
          all(is_kernels(a) for a in alarms(report)[:alarms(report).index(f)]), [a["summary"] for a in alarms(report)])
    parents = [a for a in alarms(report) if a["pid"] not in done and not is_kernels(a)]
    check(f"{name}: an idle parent is no alarm", not parents, parents)
    return f


def test_c(tmp):
    def is_fault(f):
        return f["where"] and f["where"][0]["function"] == FAULT
    report, done = record(tmp, "C", WORKERS, [PROGRAM])
    f = report and judge("C", report, done, is_fault)
    if not f:
        return
    check("C: its place", f["rule"] == "blocking-call" and f["where"][0]["file"].endswith("prefork.c"), f["where"])
    longest = max(d[2] for d in done.values())
    check("C: the longest of all", abs(f["measure"]["longest_ns"] - longest) < 0.1 * longest, (f["measure"], longest))
    check("C: the verdict follows, or the machine comes first",
          report["verdict"]["summary"] == alarms(report)[0]["summary"], report["verdict"])
    text = subprocess.run([BIN, "report", f"{tmp}/C.tacho"], capture_output=True, text=True, timeout=60,
                          env=environment()).stdout
    check("C: the text names all processes", f"critical  blocking-call  in {WORKERS} of {WORKERS} processes\n" in text and
          all(f"prefork ({pid}): {d[0]} times, " in text for pid, d in done.items()), text)
    # A stall of 50 ms in each of them, of which three make it critical.
    rare, done = record(tmp, "rare", WORKERS, [PROGRAM], slow=1)
    if rare:
        judge("rare", rare, done, is_fault)
    fewer, done = record(tmp, "fewer", 2, [PROGRAM])
    if fewer and judge("fewer", fewer, done, is_fault):
        check("fewer workers have the same findings",
              {(a["rule"], str(a["where"][:1])) for a in alarms(fewer) if not is_kernels(a)} ==
              {(a["rule"], str(a["where"][:1])) for a in alarms(report) if not is_kernels(a)},
              [a["summary"] for a in alarms(fewer)])


def test_python(tmp):
    def is_fault(f):
        return f["rule"] == "blocking-call"
    report, done = record(tmp, "Python", WORKERS, [PYTHON, script(tmp, "server.py", SERVER)])
    if report:
        judge("Python", report, done, is_fault)


def test_gunicorn(tmp):
    """Threads of a pool in each worker, and a parent that waits in wait_for_signals."""
    if not importlib.util.find_spec("gunicorn"):
        skip("gunicorn", "it is not installed")
        return
    where = f"{tmp}/gunicorn"
    os.mkdir(where)
    script(where, "app.py", "import time\n"
           "def fetch_from_upstream():\n    time.sleep(0.06)\n"
           "def app(environ, start):\n"
           "    if environ['PATH_INFO'] == '/s':\n        fetch_from_upstream()\n"
           "    start('200 OK', [('Content-Length', '1')])\n    return [b'x']\n")
    p = start("-q", "-o", f"{tmp}/gunicorn.tacho", "--", PYTHON, "-m", "gunicorn", "--chdir", where, "-w",
              str(WORKERS), "--threads", "2", "-b", f"unix:{where}/socket", "app:app")
    try:
        check("gunicorn: it runs", until(lambda: os.path.exists(f"{where}/socket")), "no socket")
        for i in range(300):
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(f"{where}/socket")
                s.send(b"GET /%s HTTP/1.0\r\n\r\n" % (b"s" if i % 5 == 0 else b"f"))
                s.recv(1000)
        os.kill(child_of(p.pid), signal.SIGTERM)
    finally:
        finish(p)
    report = json.loads(subprocess.run([BIN, "report", "--json", f"{tmp}/gunicorn.tacho"], capture_output=True,
                                       timeout=60, env=environment(), check=True).stdout)
    sleeps = [f for f in alarms(report) if "nanosleep" in f["summary"]]
    check("gunicorn: one cause is one finding", len(sleeps) == 1 and sleeps[0]["processes"] > 1,
          [f["summary"] for f in alarms(report)])
    check("gunicorn: its parent does not come first", "wait_for_signals" not in report["verdict"]["summary"],
          report["verdict"])


def main():
    with folder() as tmp:
        test_c(tmp)
        test_python(tmp)
        test_gunicorn(tmp)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
