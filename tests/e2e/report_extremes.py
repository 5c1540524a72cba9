#!/usr/bin/env python3
"""Clocks that jumped or have just begun, windows without time, four thousand threads: what says
what of them."""
import json
import os
import resource
import struct
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../golden"))
import make  # noqa: E402
from libjump import begin_at, jump  # noqa: E402
from librun import (BIN, PYTHON, check, folder, run, said, script, skip,  # noqa: E402
                    undisturbed)

HOUR = 3600 * 10**9
CENTURIES = 400 * 365 * 86400 * 10**9
THREADS = 4000
MODELLED = 32768  # threads of a trace that are kept track of
MEMORY = 1 << 30  # address space for each command; the traces are of a megabyte

# Many waits, so that there are many stretches of records, and a long turn now and then.
BUSY = """import select, time, sys
loop = select.epoll()
end = time.monotonic() + float(sys.argv[1])
n = 0
while time.monotonic() < end:
    for i in range(30): loop.poll(0)
    loop.poll(0.001)
    n += 1
    if n % 300 == 0:
        t = time.monotonic() + 0.08
        while time.monotonic() < t: pass
"""


def bounded():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def tacho(*arguments):
    return subprocess.run([BIN, *arguments], capture_output=True, text=True, timeout=300,
                          stdin=subprocess.DEVNULL, preexec_fn=bounded)


def read(*arguments):
    """What it prints as JSON; {} and what it said otherwise when it does not."""
    p = tacho(*arguments, "--json")
    try:
        return json.loads(p.stdout), p
    except ValueError:
        return {}, p


def rules(found):
    return [f["rule"] for f in found.get("findings", [])]


def all_commands(name, path, out):
    """Each command comes to an end, with an answer or with one sentence."""
    commands = {
        "report": ("report", path), "stats": ("stats", path), "diff": ("diff", path, path),
        "blame": ("blame", path, "--slowest", "10"), "flame": ("flame", path),
        "sql": ("sql", path, "SELECT count(*) FROM turns"),
        "perfetto": ("export", path, "--format", "perfetto", "-o", os.path.join(out, name + ".pf")),
        "jsonl": ("export", path, "--format", "jsonl", "-o", os.path.join(out, name + ".jsonl")),
    }
    for command, arguments in commands.items():
        p = tacho(*arguments)
        good = p.returncode == 0 or (p.returncode == 1 and 0 < p.stderr.count("\n") <= 2)
        check(f"{name}: {command} answers or says why not", good, said(p)[-600:])


def blame_adds_up(name, path):
    found, p = read("blame", path, "--slowest", "10")
    # What is above 2^53 is written as text.
    off = [s for s in found.get("subjects", [])
           if sum(int(q["ns"]) for q in s["pieces"] if q["depth"] == 0) != int(s["ns"])]
    check(f"{name}: pieces add up to the whole", found.get("subjects") and not off,
          off[:1] or said(p)[-300:])


# Clocks --------------------------------------------------------------------------------


def jumped(out, data, name, by):
    path = os.path.join(out, name + ".tacho")
    moved, count, of = jump(data, 0.5, by)
    with open(path, "wb") as f:
        f.write(moved)
    check(f"{name}: it concerns half of the records", 2 <= count <= of - 2, (count, of))
    return path


def test_clocks(out):
    path = os.path.join(out, "busy.tacho")
    run("-q", "-o", path, "--", PYTHON, script(out, "busy.py", BUSY), "3", preexec_fn=undisturbed)
    with open(path, "rb") as f:
        data = begin_at(f.read(), 2 * HOUR)  # so that there is an hour to go back
    # What moves the records leaves everything else as it was.
    found, p = read("report", jumped(out, data, "no jump", 0))
    check("no jump: the long turn comes first, and no problem",
          rules(found)[:1] == ["long-callback"] and found["losses"]["problems"] == 0, said(p)[:600])
    for name, by in (("an hour back", -HOUR), ("a little back", -300 * 10**6)):
        path = jumped(out, data, name, by)
        found, p = read("report", path)
        first = (found.get("findings") or [{}])[0]
        check(f"{name}: that comes first", found.get("verdict", {}).get("category") == "recording"
              and "clock" in first.get("summary", "") and "went back" in first["summary"],
              said(p)[:600])
        check(f"{name}: it is a problem of the input", "went back" in p.stderr, p.stderr)
        blame_adds_up(name, path)
        all_commands(name, path, out)
    for name, by in (("an hour ahead", HOUR), ("centuries ahead", CENTURIES)):
        path = jumped(out, data, name, by)
        found, p = read("report", path)
        # The records say nothing of that time: nobody ran, which is all that can be said.
        long = [f for f in found.get("findings", []) if f["rule"] == "process-pause"]
        others = [e for f in found.get("findings", []) if f["rule"] not in
                  ("process-pause", "loop-saturated") for e in f["evidence"] if e["unit"] == "ns"
                  and e["value"] > 10**9]
        check(f"{name}: no code is blamed for it", found and not others, others or said(p)[:300])
        check(f"{name}: if anything, the process did not run",
              all("clock that jumped" in f["advice"] for f in long), long)
        # If it jumped in a wait, that was an hour in which there was nothing to do.
        check(f"{name}: what was there before and after is found", "long-callback" in rules(found) or
              "almost nothing to do" in found.get("verdict", {}).get("summary", ""),
              rules(found))
        blame_adds_up(name, path)
        all_commands(name, path, out)


def answers(path):
    """What the commands say of it in times since its first event."""
    commands = {"report": ("report",), "stats": ("stats",), "cat": ("cat",), "flame": ("flame",),
                "blame": ("blame", "--slowest", "10"), "the last second": ("cat", "--last", "1s"),
                "from the end": ("report", "--since", "-1s"),
                "sql": ("sql", "SELECT begin_ns - (SELECT min(ns) FROM events), ns, parked_ns "
                               "FROM turns")}
    for name, (command, *rest) in commands.items():
        p = tacho(command, path, *rest)
        yield name, (p.returncode, p.stdout.replace(path, ""), p.stderr.replace(path, ""))


def test_begin(out):
    """The clock of a machine begins near 0, and nothing that is said of a trace depends on it."""
    program = os.path.join(os.environ.get("TACHO_BUILD", ""), "tests/e2e/export_uv")
    if not os.access(program, os.X_OK):
        return skip("a clock that has just begun", "libuv is not here, so export_uv was not built")
    path = os.path.join(out, "uv.tacho")
    run("-q", "-o", path, "--", program)
    with open(path, "rb") as f:
        data = f.read()
    at = os.path.join(out, "at.tacho")
    said_of = []
    for ns in (365 * 24 * HOUR, 1):
        with open(at, "wb") as f:
            f.write(begin_at(data, ns))
        said_of.append(dict(answers(at)))
    for name, late in said_of[0].items():
        early = said_of[1][name]
        check(f"a clock that has just begun: {name} is that of a later one",
              late == early and late[0] == 0 and late[1],
              [pair for pair in zip(str(late).split("\\n"), str(early).split("\\n"))
               if pair[0] != pair[1]][:3] or late)
    with open(at, "wb") as f:
        f.write(begin_at(data, 0, of_events=True))
    found, p = read("report", at, "--until", "0ns")
    check("a first event at 0: what ends with it is too short to tell",
          found.get("verdict", {}).get("category") == "not-enough-data", said(p)[:600])


def test_no_time(out):
    """A window of no length has no rates."""
    path = os.path.join(out, "short.tacho")
    run("-q", "-o", path, "--", PYTHON, script(out, "wait.py",
        "import select\nloop = select.epoll()\nfor i in range(40): loop.poll(0)\n"))
    p = tacho("cat", path, "--json")
    first = json.loads(p.stdout.splitlines()[0])["ns"]
    p = tacho("report", path, "--until", "1ns")
    found, p = read("report", path, "--until", "1ns")
    check("a window of no length is too short to tell",
          first and found.get("verdict", {}).get("category") == "not-enough-data" and
          "nan" not in p.stdout and "inf" not in p.stdout.replace('"info"', ""), said(p)[:600])


# Threads -------------------------------------------------------------------------------


def test_threads(out):
    program = os.path.join(os.environ.get("TACHO_BUILD", ""), "tests/e2e/many_threads")
    path = os.path.join(out, "many.tacho")
    p = run("-q", "--memory", "64M", "-o", path, "--", program, str(THREADS), "3", timeout=120,
            preexec_fn=undisturbed)
    if p.returncode == 3:
        return skip("four thousand threads", f"they cannot be made here: {p.stderr.strip()}")
    p = tacho("sql", path, "--format", "csv", "SELECT count(DISTINCT tid) FROM turns")
    check("four thousand threads: all are there", p.stdout.split()[-1:] == [str(THREADS)], said(p))
    found, p = read("report", path)
    calls = [f for f in found.get("findings", []) if f["rule"] == "blocking-call"]
    check("four thousand threads: the one that blocks is found",
          calls and calls[0]["where"][0]["function"] == "copy_backup", said(p)[:600])
    # Others did: one that waits for a CPU among thousands is not a process that was stopped.
    check("four thousand threads: nobody says that the process did not run",
          "process-pause" not in rules(found), rules(found))
    found, p = read("stats", path)
    check("four thousand threads: statistics count its calls",
          any("copy_backup" in c["name"] and c["count"] >= 10 for c in found.get("calls", [])),
          said(p)[-300:])
    found, p = read("diff", path, path)
    check("four thousand threads: nothing changed against itself", found.get("changed") == 0,
          said(p)[:300])
    blame_adds_up("four thousand threads", path)
    all_commands("four thousand threads", path, out)
    with open(os.path.join(out, "four thousand threads.jsonl"), encoding="utf-8") as f:
        tids = {json.loads(line).get("tid") for line in f} - {None}
    check("four thousand threads: all are exported", len(tids) >= THREADS, len(tids))


def test_too_many_threads(out):
    """Seven more than are kept track of, with two events each."""
    f = make.File(7)
    f.data = bytearray(f.data)
    f.meta(**make.PROCESS, clock=2, taken_mono=make.T0 + 9 * make.S, taken_by=3, alive=1)
    f.array(make.CLOCK, 24, [struct.pack("<QQQ", make.T0, make.T0, make.REAL0)])
    for i in range(1, MODELLED + 8):
        wakes = [(make.T0 + 1000 + i + n, 0x43, 0, [i]) for n in range(2)]
        f.events(make.events(wakes, thread=i, tid=1000 + i))
    path = os.path.join(out, "many.tacho")
    with open(path, "wb") as file:
        file.write(f.index())
    for command in ("stats", "report"):
        p = tacho(command, path)
        check(f"more threads than are kept track of: {command} says how much is left out",
              "14 events are left out" in p.stderr, said(p))


def main():
    with folder() as out:
        for test in (test_clocks, test_begin, test_no_time, test_threads, test_too_many_threads):
            test(out)
    from librun import failures
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
