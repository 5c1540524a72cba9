#!/usr/bin/env python3
"""A process that is stopped while work waits for it is named, with the time that it was stopped for,
whoever watches it; one that had nothing to do is no alarm."""
import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

from librun import (BIN, PYTHON, agent, check, end, environment, failures, finish, folder, fresh, script,
                    skip, start, traces, undisturbed, until)

STOPS = 5
STOP_S = 0.15
SOCKETS = 8
SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17  # of ptrace

# Takes what it is sent. It has done a little before it idles, and then nothing is due.
SERVER = """
import os, select, socket, sys
where = sys.argv[1]
loop, sockets = select.epoll(), {}
for i in range(%d):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.bind(f"{where}/{i}")
    sockets[s.fileno()] = s
    loop.register(s, select.EPOLLIN)
for i in range(50):
    loop.poll(0.002)
with open(where + "/ready", "w") as f:
    f.write(str(os.getpid()))
got = b""
while got != b"end":
    for fd, _ in loop.poll():
        got = sockets[fd].recv(64)
""" % SOCKETS


class Load(threading.Thread):
    """Sends to all sockets of a server each few milliseconds, whatever it does."""

    def __init__(self, place):
        super().__init__()
        self.place, self.over = place, False

    def run(self):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        s.setblocking(False)
        i = 0
        while not self.over:
            with contextlib.suppress(OSError):
                s.sendto(b"x", f"{self.place}/{i % SOCKETS}")
            i += 1
            time.sleep(0.001)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.join()


# ------------------------------------------------------------------------ ways to stop it


@contextlib.contextmanager
def by_signal(pid):
    os.kill(pid, signal.SIGSTOP)
    yield
    os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def by_debugger(pid):
    libc = ctypes.CDLL(None, use_errno=True)

    def ptrace(request):
        if libc.ptrace(request, pid, None, None):
            raise OSError(ctypes.get_errno(), "ptrace")
    ptrace(SEIZE)
    ptrace(INTERRUPT)
    os.waitpid(pid, 0x40000000)  # __WALL
    yield
    ptrace(DETACH)


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


@contextlib.contextmanager
def freezer():
    """(how a process gets there, how it is stopped), or None."""
    name = f"tacho-test-{os.getpid()}"
    for root, switch, on, off in (("/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED"),
                                  ("/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0"),
                                  ("/sys/fs/cgroup", "cgroup.freeze", "1", "0")):
        path = f"{root}/{name}"
        try:
            os.mkdir(path)
        except OSError:
            continue
        if os.path.exists(f"{path}/{switch}"):
            break
        os.rmdir(path)
    else:
        yield None, None
        return

    @contextlib.contextmanager
    def stop(_):
        write(f"{path}/{switch}", on)
        yield
        write(f"{path}/{switch}", off)
    try:
        yield (lambda pid: write(f"{path}/cgroup.procs", str(pid))), stop
    finally:
        write(f"{path}/{switch}", off)
        until(lambda: not os.path.exists(path) or not os.system(f"rmdir {path} 2>/dev/null"), 10)


# ---------------------------------------------------------------------------- what is said


def stop_often(pid, stop):
    """How long it was stopped in all, in ns: at least, at most."""
    least = most = 0
    for _ in range(STOPS):
        time.sleep(0.25)
        begun = time.monotonic_ns()
        with stop(pid):
            least -= time.monotonic_ns()
            time.sleep(STOP_S)
            least += time.monotonic_ns()
        most += time.monotonic_ns() - begun
    time.sleep(0.25)
    return least, most


def report(path):
    p = subprocess.run([BIN, "report", "--json", path], capture_output=True, text=True, timeout=60)
    return json.loads(p.stdout) if p.returncode in (0, 1) and p.stdout else {"findings": []}


def pauses(found):
    return [f for f in found["findings"] if f["rule"] == "process-pause"]


def alarms(found):
    return [f for f in found["findings"] if f["severity"] != "info"
            and f["rule"] != "kernel-scheduling-delay"]  # that is the machine's


def judge(name, found, took, by="a signal"):
    first = alarms(found)[:1]
    check(f"{name}: it is named first",
          first and first[0]["rule"] == "process-pause" and f"by {by}" in first[0]["summary"]
          and f"{STOPS} times" in first[0]["summary"], found["findings"])
    check(f"{name}: with the time that it took",
          first and 0.9 * took[0] <= first[0]["cost_ns"] <= 1.1 * took[1],
          (took, found["findings"]))
    check(f"{name}: and with what waited",
          first and first[0]["waiting_ns"] > took[0], found["findings"])


def is_quiet(name, found, least):
    """No alarm; a note, if it was seen."""
    noted = [f["severity"] for f in pauses(found)]
    check(name, not alarms(found) and noted in ([["info"]] if least else [["info"], []]),
          found["findings"])


# ---------------------------------------------------------------------------------- who watches


@contextlib.contextmanager
def served(place):
    """The server's process id, once it serves; it ends with the context."""
    until(lambda: os.path.exists(place + "/ready") and os.path.getsize(place + "/ready"))
    with open(place + "/ready") as f:
        pid = int(f.read() or 0)
    try:
        yield pid
    finally:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.sendto(b"end", place + "/0")


# Of the command itself tacho run is told, and does not look.
AS_A_CHILD = ("sh", "-c", '"$@" & wait', "sh")


def under_run(tmp, name, server, *, how=by_signal, load=True, wrap=(), enter=None):
    """(report, how long it was stopped)."""
    place = fresh(tmp, name)
    p = start("-q", "-o", place, "--", *wrap, PYTHON, server, place, cwd=place,
              preexec_fn=undisturbed)
    try:
        with served(place) as pid:
            if enter:
                enter(pid)
                time.sleep(1.5)  # where it is, is looked up once a second
            with Load(place) if load else contextlib.nullcontext():
                took = stop_often(pid, how)
        finish(p)
    finally:
        if p.poll() is None:
            end(p.pid)
    found = traces(place)
    return (report(found[0]) if found else {"findings": []}), took


def under_agent(tmp, name, server, load):
    place = fresh(tmp, name)
    preload = subprocess.run([BIN, "run", "-q", "--", "sh", "-c", "echo $LD_PRELOAD"],
                             capture_output=True, text=True, cwd=place,
                             env=environment(LD_PRELOAD=None)).stdout.strip()
    a = agent("-o", place, "--all-ends", preexec_fn=undisturbed)
    p = subprocess.Popen([PYTHON, server, place], env=environment(LD_PRELOAD=preload),
                         preexec_fn=undisturbed)
    try:
        with served(place) as pid, Load(place) if load else contextlib.nullcontext():
            time.sleep(0.5)
            took = stop_often(pid, by_signal)
        p.wait(60)
        found = until(lambda: traces(place))
    finally:
        end(p.pid)
        p.wait()
        a.terminate()
        finish(a)
    return (report(found[0]) if found else {"findings": []}), took


def main():
    with folder() as tmp:
        server = script(tmp, "server.py", SERVER)
        judge("run", *under_run(tmp, "run", server))
        judge("a child of the command",
              *under_run(tmp, "child", server, wrap=AS_A_CHILD))
        is_quiet("run: an idle loop that is stopped has a note",
                 under_run(tmp, "idle", server, load=False)[0], True)
        judge("agent", *under_agent(tmp, "agent", server, True))
        is_quiet("agent: an idle loop that is stopped is no alarm",
                 under_agent(tmp, "agent-idle", server, False)[0], False)
        try:
            judge("debugger", *under_run(tmp, "debugger", server, how=by_debugger,
                                         wrap=AS_A_CHILD), by="a debugger")
        except OSError as e:
            skip("debugger", f"ptrace is refused: {e}")
        with freezer() as (enter, stop):
            if enter:
                judge("freezer", *under_run(tmp, "freezer", server, how=stop, enter=enter,
                                            wrap=AS_A_CHILD), by="the freezer of its cgroup")
            else:
                skip("freezer", "no cgroup can be made here")


if __name__ == "__main__":
    main()
    sys.exit(bool(failures))
