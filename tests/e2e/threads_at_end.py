#!/usr/bin/env python3
"""What each thread was in when its process ended, or was last seen alive: info, report, sql."""
import json
import os
import subprocess
import sys
import time

from librun import BIN, check, environment, finish, folder, run, said, skip, start, until
import librun

PROGRAM = os.path.join(os.environ["TACHO_BUILD"], "tests/e2e/end_threads")
HANG = 1.2  # seconds: more than what makes one


def tacho(*arguments):
    return subprocess.run([BIN, *arguments], capture_output=True, text=True, timeout=60,
                          env=environment())


def listed(command, path):
    p = tacho(command, path, "--json")
    processes = json.loads(p.stdout)["processes"] if p.returncode == 0 else [{}]
    return processes[0].get("threads_at_end", [])


def is_at(at, function, live=False):
    """`live`: a box has no names, which are looked up when a window is taken of it."""
    return at and os.path.basename(at["module"]) == "end_threads" and \
        at["function"] == (None if live else function)


def judge(name, path, section, live=False):
    """`section`: what the report calls it, or None where it says nothing."""
    threads = listed("info", path)
    by_name = {t["name"]: t for t in threads}
    pool = [t for t in threads if t["inside"] == "work"]
    texts = [t["text"] for t in threads]
    if not check(f"{name}: all threads are listed", len(threads) == 9, texts):
        return threads
    if not check(f"{name}: work of a pool, with its call", len(pool) == 1 and
                 is_at(pool[0]["inside_at"], "do_work", live) and
                 (pool[0]["waits"], pool[0]["call"]) == ("call", "read") and
                 not pool[0]["at_most"] and
                 is_at(pool[0]["waits_at"], "fetch", live), texts):
        return threads
    reads = by_name["reads"]
    check(f"{name}: a plain thread in read", reads["inside"] is None and reads["call"] == "read" and
          reads["on"] == pool[0]["on"] and is_at(reads["waits_at"], "fetch", live) and
          (" called in end_threads+" if live else " called in fetch (end_threads.c:") in
          reads["text"], reads)
    holds = by_name["holds"]
    check(f"{name}: a plain thread in sleep, since when is known", holds["call"] == "sleep" and
          not holds["at_most"] and holds["waits_ns"] > 0 and
          is_at(holds["waits_at"], "holds", live), holds)
    locks = by_name["locks"]
    check(f"{name}: a wait for a lock, with who has it", locks["waits"] == "lock" and
          locks["owner"] == holds["tid"] and is_at(locks["waits_at"], "take", live) and
          f"held by thread holds ({holds['tid']})" in locks["text"], locks)
    check(f"{name}: waits for work are idle",
          (by_name["waits"]["waits"], by_name["parks"]["waits"]) == ("condition", "loop") and
          by_name["waits"]["idle"] and by_name["parks"]["idle"] and
          sum(t["idle"] for t in threads) >= 4 and not any(t["idle"] for t in threads[:4]), texts)
    check(f"{name}: report has the same list", [t["tid"] for t in listed("report", path)] ==
          [t["tid"] for t in threads], texts)
    text = tacho("report", path).stdout
    check(f"{name}: the text of report", ((section or "threads at the end") + ":\n" in text) ==
          bool(section) and ("threads that wait for work" in text) == bool(section), text)
    return threads


def first(threads):
    """The thread of the main loop, by what it is in."""
    return [t for t in threads if t["loop"] and t["name"] == "end_threads"][:1]


MANY = """import os, select, signal, threading
r, w = os.pipe()
for _ in range(60):
    threading.Thread(target=os.read, args=(r, 1), daemon=True).start()
select.select([], [], [], 0.3)
select.select([r], [], [], 0.3)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_many(tmp):
    """Of many the first are shown; how many there are besides is said."""
    path = f"{tmp}/many.tacho"
    run("-q", "-o", path, "--", sys.executable, "-c", MANY)
    threads = listed("info", path)
    busy = [t for t in threads if not t["idle"]]
    if not check("many: all threads are listed", len(threads) >= 60 and len(busy) > 50,
                 (len(threads), len(busy))):
        return
    for command, shown, line in (
            ("info", 40, f"and {len(threads) - 40} more: see --json\n"),
            ("report", 5, f"and {len(busy) - 5} more: 'tacho info' has all\n")):
        text = tacho(command, path).stdout
        # One of them may be the main thread.
        check(f"many: {command} shows the first",
              shown - 1 <= text.count("blocked in read on ") <= shown, text)
        check(f"many: {command} says how many are left", line in text, text)


def test_ends(tmp):
    for how, section in (("kill", "threads at the end"), ("segv", "threads at the end"),
                         ("term", None)):
        path = f"{tmp}/{how}.tacho"
        p = run("-o", path, "--", PROGRAM, how, cwd=tmp)
        if not check(f"{how}: it is recorded", os.path.exists(path), said(p)):
            continue
        main = first(judge(how, path, section))
        check(f"{how}: the callback that ended it", main and main[0]["inside"] == "callback" and
              is_at(main[0]["inside_at"], "on_tick") and
              main[0]["signal"] == (11 if how == "segv" else None), main)
    info = tacho("info", f"{tmp}/kill.tacho").stdout
    check("info has a section", "\nthreads at the end\n" in info and
          ": in work do_work (end_threads.c:" in info, info)
    early = tacho("report", f"{tmp}/kill.tacho", "--until", "10ms").stdout
    check("what comes before the end has no such list", "at the end" not in early, early)
    p = tacho("sql", f"{tmp}/kill.tacho", "--format", "json",
              "SELECT tid, at_end FROM threads WHERE at_end IS NOT NULL")
    if "SQLite" in p.stderr:
        skip("sql has it", "tacho was built without SQLite")
        return
    rows = {r["tid"]: r["at_end"] for r in map(json.loads, p.stdout.splitlines())}
    check("sql has it", rows == {t["tid"]: t["text"] for t in listed("info", f"{tmp}/kill.tacho")},
          said(p))


def test_live(tmp, how, section):
    """From the box of a process that runs, and from a window that was taken of it."""
    file = f"{tmp}/{how}.there"
    p = start("-o", f"{tmp}/{how}-live.tacho", "--", PROGRAM, how, file, cwd=tmp)
    try:
        until(lambda: os.path.exists(file))
        time.sleep(HANG)
        pid = librun.child_of(p.pid)
        main = first(judge(f"{how}, live", str(pid), section, live=True))
        blocked = main and main[0]["inside"] == "callback" and main[0]["call"] == "read" and \
            main[0]["waits_ns"] >= 1e9 and is_at(main[0]["waits_at"], "fetch", True)
        check(f"{how}, live: its loop", blocked if how == "block" else
              main and main[0]["waits"] == "loop" and main[0]["idle"], main)
        dumped = tacho("dump", str(pid), "-o", f"{tmp}/{how}-dump.tacho")
        if check(f"{how}: a window is taken", dumped.returncode == 0, said(dumped)):
            judge(f"{how}, dumped", f"{tmp}/{how}-dump.tacho", section)
    finally:
        p.terminate()
        finish(p)


def main():
    if not os.path.isfile(PROGRAM):
        skip("threads at the end", "libuv is not there")
        return 0
    with folder() as tmp:
        test_ends(tmp)
        test_many(tmp)
        test_live(tmp, "go", None)
        test_live(tmp, "block", "threads when last seen")
    return 1 if librun.failures else 0


if __name__ == "__main__":
    sys.exit(main())
