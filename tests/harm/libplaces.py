"""What the tests of places and habits share: one command, run as it is, by `tacho run`, and with the
library in LD_PRELOAD. It does the same three times."""
import concurrent.futures
import os
import subprocess
import tempfile
import threading

from libharm import BIN, check, environment, librun, row, same, skip

BUILD = os.environ["TACHO_BUILD"]
REPORTING = threading.Lock()
WORKERS = 4
HABITS = f"{BUILD}/tests/harm/habits"
PYTHON = librun.PYTHON
# A loop, a thread that works, and a child: what most servers do.
SERVER = r"""
import os, select, subprocess, sys, threading, time
poll = select.epoll()
read, write = os.pipe()
poll.register(read, select.EPOLLIN)
def work():
    end = time.thread_time() + 0.03
    while time.thread_time() < end:
        pass
    os.write(write, b'x')
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
got = 0
while got < 2:
    for fd, _ in poll.poll(5):
        got += len(os.read(fd, 1))
for thread in threads:
    thread.join()
print(got, os.spawnv(os.P_WAIT, '/bin/sh', ['sh', '-c', 'exit 4']), flush=True)
"""


def preload():
    """The library that `tacho run` would give to a program of this glibc."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(BIN)))
    return os.environ.get("TACHO_TEST_PRELOAD") or f"{folder}/hooks/libtacho-preload.so"


def run(argv, timeout=60, **more):
    """A command to its end, by a deadline."""
    try:
        return subprocess.run([str(a) for a in argv], capture_output=True, text=True,
                              timeout=timeout, stdin=subprocess.DEVNULL, **more)
    except subprocess.TimeoutExpired as late:
        return subprocess.CompletedProcess(argv, -999, "", f"after {late.timeout} s it still ran")


def first_line(text):
    """What tacho said first, without paths of this run."""
    lines = [line for line in text.strip().split("\n") if line.startswith("tacho run: ") and
             "tacho itself used" not in line and " events in " not in line]
    return lines[0].removeprefix("tacho run: ") if lines else ""


def thrice(situation, argv, within=(), env=None, recorded=True, by_run=True, status=0,
           options=()):
    """Runs a command in a place that `within` makes, without tacho and with it, and adds a row.
    `recorded`: events are expected in the trace; None: either is right. `options`: of tacho run."""
    with tempfile.TemporaryDirectory(prefix="tacho-harm-") as tmp:
        os.chmod(tmp, 0o777)  # other users write their trace here
        trace, names = os.path.join(tmp, "t.tacho"), environment(**(env or {}))
        before = f"{names['LD_PRELOAD']}:" if names.get("LD_PRELOAD") else ""
        plain = run([*within, *argv], cwd=tmp, env=names)
        loaded = run([*within, "env", f"LD_PRELOAD={before}{preload()}", *argv], cwd=tmp, env=names)
        taped = run([*within, BIN, "run", "-o", trace, *options, "--", *argv], cwd=tmp,
                    env=names) if by_run else None
        events = len(librun.events(trace) or []) if os.path.exists(trace) else 0
    with REPORTING:
        check(f"{situation}: it runs without tacho", plain.returncode == status,
              f"{plain.returncode} {plain.stdout!r} {plain.stderr!r}")
        same(f"{situation}, LD_PRELOAD", plain, loaded)
        if taped:
            same(f"{situation}, tacho run", plain, taped)
        if taped and recorded is not None:
            check(f"{situation}: {'events are' if recorded else 'nothing is'} recorded",
                  bool(events) == recorded, f"{events} events, {taped.stderr!r}")
        row(situation, f"exit {plain.returncode}", f"exit {(taped or loaded).returncode}",
            "a window" if events else "nothing" if taped else "not looked at",
            first_line(taped.stderr) if taped else "")


def each(jobs):
    """Rows beside each other: most of the time they wait."""
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for done in [pool.submit(thrice, *job[0], **job[1]) for job in jobs]:
            done.result()


def job(*arguments, **more):
    return arguments, more


def mounted(script):
    """A mount namespace of its own in which `script` was run first."""
    return ["unshare", "-m", "--propagation", "private", "sh", "-c", script + ' && exec "$@"', "sh"]


__all__ = ["BUILD", "HABITS", "PYTHON", "SERVER", "each", "job", "mounted", "preload", "run",
           "skip", "thrice"]
