#!/usr/bin/env python3
"""Ledgers of real programs: the owners of each thread add up to its time and their costs to what
waited, and a sleep that is planted is what costs most."""
import json
import os
import subprocess
import sys

from librun import BIN, check, failures, folder, run, said, skip

BUILD = os.environ["TACHO_BUILD"]
SECONDS = "3"
PLANTED_NS = 80 * 10**6


def tacho(*arguments):
    return subprocess.run([BIN, *arguments], capture_output=True, text=True, timeout=120)


def ledger_of(name, out, *arguments, **env):
    """(ledger, how often it planted) of a recording of the program; None: there is none."""
    trace = os.path.join(out, name + ".tacho")
    p = run("-o", trace, "--", *arguments, env=env)
    planted = [line.split()[1] for line in p.stdout.splitlines() if line.startswith("planted ")]
    found = tacho("report", "--json", "--ledger", trace)
    if not check(f"{name} is recorded", planted and found.returncode == 0,
                 said(p) + found.stderr):
        return None, 0, trace
    return json.loads(found.stdout)["ledger"], int(planted[0]), trace


def sums(name, ledger, least):
    """What holds of every ledger; the recording is `least` ns long or longer."""
    threads = ledger["threads"]
    spans = [t["to_ns"] - t["from_ns"] for t in threads]
    check(f"{name}: its threads are there for all of the time",
          threads and all(least <= span for span in spans), spans)
    check(f"{name}: owners of a thread add up to its time",
          all(sum(o["ns"] for o in t["owners"]) == span for t, span in zip(threads, spans)),
          [(t["tid"], sum(o["ns"] for o in t["owners"]), span)
           for t, span in zip(threads, spans)])
    check(f"{name}: costs add up to what waited",
          sum(o["waiting_ns"] for o in ledger["owners"]) + ledger["unserved_ns"]
          == ledger["waiting_ns"], ledger["waiting_ns"])


def is_planted(owner):
    """Where hooks do not look at the thread, the poll that had it is known from its records."""
    if owner["owner"] == "code":
        return owner["key"] == "request"
    return owner["owner"] == "call" and "nanosleep" in owner["key"] and \
        (owner["place"] or {}).get("function") in ("planted", "sleep_us")


def dearest(name, ledger, planted):
    """The sleep is first, with about the time that it took; the things that waited for it are
    up to seven other connections, each for half of the time or more; fewer on a busy machine."""
    first = ledger["owners"][0]
    check(f"{name}: what is planted costs most", is_planted(first), ledger["owners"][:3])
    check(f"{name}: with the time that it took",
          0.9 * planted * PLANTED_NS <= first["ns"] <= 1.3 * planted * PLANTED_NS
          # One in the last turn, which the end of the program cuts, is none.
          and (first["owner"] == "code" or planted - 1 <= first["count"] <= planted),
          (planted, first))
    check(f"{name}: and with those that waited",
          first["ns"] <= first["waiting_ns"] <= 16 * first["ns"], first)


def shared(name, ledger, planted):
    """One thread sleeps, the other serves: that costs hardly anything, and is capacity lost."""
    found = [o for o in ledger["owners"] if is_planted(o)]
    check(f"{name}: time in which it is blocked is capacity lost",
          found and 0.9 * planted * PLANTED_NS <= found[0]["lost_ns"], ledger["owners"][:3])
    check(f"{name}: nobody waits while the other thread serves",
          found and found[0]["waiting_ns"] < found[0]["ns"], found)
    check(f"{name}: both threads serve", len(ledger["threads"]) == 2, ledger["threads"])


def other_outputs(name, ledger, trace):
    text = tacho("report", "--ledger", trace)
    check(f"{name}: as text", text.returncode == 0 and "owners by cost" in text.stdout
          and "nanosleep" in text.stdout, said(text))
    rows = tacho("sql", "--json", trace, "SELECT tid, sum(ns) AS ns, max(last_ns - first_ns) AS span"
                 " FROM ledger GROUP BY tid")
    if rows.returncode == 2 and "SQLite" in rows.stderr:
        skip(f"{name}: as a table", "built without SQLite")
        return
    found = [json.loads(line) for line in rows.stdout.splitlines()]
    check(f"{name}: as a table", len(found) == len(ledger["threads"])
          and all(r["ns"] == r["span"] for r in found), said(rows))


def main():
    least = int(float(SECONDS) * 0.9e9)
    with folder() as out:
        for name, program, judge in (
                ("epoll", ("ledger_epoll", SECONDS, "1"), dearest),
                ("two threads on one set", ("ledger_epoll", SECONDS, "2"), shared),
                ("libuv", ("ledger_uv", SECONDS), dearest),
                ("tasks of tacho.h", ("ledger_tasks", SECONDS), dearest)):
            path = os.path.join(BUILD, "tests", "e2e", program[0])
            if not os.path.exists(path):
                skip(name, f"{program[0]} was not built")
                continue
            ledger, planted, trace = ledger_of(name.split()[0], out, path, *program[1:])
            if ledger is None:
                continue
            sums(name, ledger, least)
            judge(name, ledger, planted)
            if name == "epoll":
                other_outputs(name, ledger, trace)


if __name__ == "__main__":
    main()
    sys.exit(bool(failures))
