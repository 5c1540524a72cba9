#!/usr/bin/env python3
"""Ledgers of real programs: the owners of each thread add up to its time and their costs to what
waited, and a sleep that is planted is what costs most. Stats and blame say the same."""
import json
import os
import subprocess
import sys
import time

from librun import BIN, check, failures, folder, run, said, skip, undisturbed

BUILD = os.environ["TACHO_BUILD"]
SECONDS = "3"
PLANTED_NS = 80 * 10**6
MOST = 0.95  # of the window: all but how long a program takes to begin, and to end


def tacho(*arguments):
    return subprocess.run([BIN, *arguments], capture_output=True, text=True, timeout=120)


def ledger_of(name, out, *arguments, **env):
    """(ledger, how often it planted) of a recording of the program; None: there is none."""
    trace = os.path.join(out, name + ".tacho")
    p = run("-o", trace, "--", *arguments, env=env, preexec_fn=undisturbed)
    planted = [line.split()[1] for line in p.stdout.splitlines() if line.startswith("planted ")]
    if not check(f"{name} is recorded", planted, said(p)):
        return None, 0, trace
    return report(name, trace), int(planted[0]), trace


def report(name, trace, *options):
    """The ledger, with the windows of processes; None: there is none."""
    found = tacho("report", "--json", "--ledger", trace, *options)
    if not check(f"{name} has a ledger", found.returncode == 0, said(found)):
        return None
    found = json.loads(found.stdout)
    found["ledger"]["windows"] = {p["pid"]: (p["from_ns"], p["to_ns"]) for p in found["processes"]}
    found["ledger"]["rules"] = [f["rule"] for f in found["findings"]]
    return found["ledger"]


def sums(name, ledger, processes=1, share=0.99):
    """What holds of every ledger; `share` of it is what its threads were there for."""
    threads = ledger["threads"]
    spans = [t["to_ns"] - t["from_ns"] for t in threads]
    windows = [ledger["windows"][t["pid"]] for t in threads]
    check(f"{name}: it has all processes", len({t["pid"] for t in threads}) == processes, threads)
    check(f"{name}: no thread is there for longer than its process",
          all(w[0] <= t["from_ns"] <= t["to_ns"] <= w[1] for t, w in zip(threads, windows)),
          (threads, windows))
    check(f"{name}: its threads are there for all of the window",
          all(share * (w[1] - w[0]) <= span for w, span in zip(windows, spans)),
          (windows, spans))
    check(f"{name}: owners of a thread add up to its time",
          all(sum(o["ns"] for o in t["owners"]) == span for t, span in zip(threads, spans)),
          [(t["tid"], sum(o["ns"] for o in t["owners"]), span)
           for t, span in zip(threads, spans)])
    check(f"{name}: costs add up to what waited",
          sum(o["waiting_ns"] for o in ledger["owners"]) + ledger["unserved_ns"]
          == ledger["waiting_ns"], ledger["waiting_ns"])
    check(f"{name}: and so do those of threads",
          sum(t["waiting_ns"] for t in threads) + ledger["unserved_ns"] == ledger["waiting_ns"]
          and all(sum(o["waiting_ns"] for o in t["owners"]) == t["waiting_ns"] for t in threads),
          ledger["waiting_ns"])


def cut(name, trace, processes=1):
    """A part of the window, in which all threads go on."""
    options = "--since", "0.7s", "--until", "1.6s"
    ledger = report(f"a part of {name}", trace, *options)
    if ledger:
        sums(f"a part of {name}", ledger, processes)


def is_planted(owner):
    """Where hooks do not look at the thread, the poll that had it is known from its records."""
    if owner["owner"] == "code":
        return owner["key"] == "request"
    return owner["owner"] == "call" and "nanosleep" in owner["key"] and \
        (owner["place"] or {}).get("function") in ("planted", "sleep_us")


def dearest(name, ledger, planted):
    """The sleep is first, with about the time that it took; the things that waited for it are
    up to seven other connections, each for half of the time or more; fewer on a busy machine."""
    # What the kernel ran instead may be anything.
    first = next(o for o in ledger["owners"] if o["owner"] not in ("late", "descheduled"))
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


def considered(name, trace):
    """What is no finding has a reason, in the JSON form and with --all."""
    found = json.loads(tacho("report", "--json", trace).stdout)["considered"]
    text = " ".join(tacho("report", "--all", trace).stdout.split())
    rank = [(c["waiting_ns"], c["cost_ns"]) for c in found]
    check(f"{name}: what was considered is listed, most waiting first",
          0 < len(found) <= 32 and rank == sorted(rank, reverse=True), found)
    check(f"{name}: with the reason",
          all(c["rule"] and c["what"] and c["reason"] and f"dropped because {c['reason']}" in text
              for c in found), (found, text))
    check(f"{name}: only with --all", "considered:" not in tacho("report", trace).stdout)


def by_owner(rows):
    """{(tid, owner): (ns, waiting_ns)} of rows with all four, as pairs with a sum that is not 0."""
    found = {}
    for tid, owner, ns, waiting in rows:
        before = found.get((tid, owner), (0, 0))
        found[tid, owner] = before[0] + ns, before[1] + waiting
    return {k: v for k, v in found.items() if any(v)}


def part(name, stats, trace):
    """Stats of a part of the window are of what tacho cat shows of it."""
    quarter = (stats["to_ns"] - stats["from_ns"]) // 4
    limits = ("--from", f"{quarter}ns", "--to", f"{2 * quarter}ns")
    first, last = stats["from_ns"] + quarter, stats["from_ns"] + 2 * quarter
    found = json.loads(tacho("stats", "--json", *limits, trace).stdout)
    events = [e for e in map(json.loads, tacho("cat", "--json", *limits, trace).stdout.splitlines())
              if e["type"] != "resume"]
    check(f"{name}: stats of a part have its events", found["events"] == len(events),
          (found["events"], len(events)))
    if not events:
        return
    off = [t for t in found["threads"] if t["from_ns"] < first or t["to_ns"] > last or
           sum(t["owners"].values()) != t["to_ns"] - t["from_ns"]]
    check(f"{name}: and the time of its threads", found["threads"] and not off, off)


def agree(name, ledger, trace):
    """Stats, the table and the report have the same times of threads."""
    wanted = by_owner((t["tid"], o["owner"], o["ns"], o["waiting_ns"])
                      for t in ledger["threads"] for o in t["owners"])
    found = tacho("stats", "--json", trace)
    if check(f"{name}: stats", found.returncode == 0, said(found)):
        stats = json.loads(found.stdout)
        times = {(t["tid"], o): ns for t in stats["threads"] for o, ns in t["owners"].items() if ns}
        check(f"{name}: stats have the times of the ledger",
              times == {k: v[0] for k, v in wanted.items() if v[0]}, (times, wanted))
        idle = {t["owners"]["idle"] for t in stats["threads"]}
        other = [r for r in stats["loops"] if r["idle_ns"] not in idle]
        check(f"{name}: and loops are idle for as long as their threads",
              stats["loops"] and not other, (other, sorted(idle)[:5]))
        part(name, stats, trace)
        waits = [r for r in stats["locks"] if r["total_ns"] > 10**9]
        check(f"{name}: to wait for work is no wait for a lock", not waits, waits)
    rows = tacho("sql", "--json", trace, "SELECT tid, owner, ns, waiting_ns FROM ledger")
    if rows.returncode == 2 and "SQLite" in rows.stderr:
        skip(f"{name}: as a table", "built without SQLite")
        return
    table = by_owner((r["tid"], r["owner"], r["ns"], r["waiting_ns"])
                     for r in map(json.loads, rows.stdout.splitlines()))
    check(f"{name}: the table has the times of the ledger", table == wanted, (table, wanted))


def blame(name, path):
    """The slowest of it, each with the pieces that add up."""
    found = tacho("blame", "--json", path, "--slowest", "50")
    if not check(f"{name}: it can be blamed", found.returncode == 0, said(found)):
        return []
    subjects = json.loads(found.stdout)["subjects"]
    off = [s for s in subjects
           if sum(p["ns"] for p in s["pieces"] if p["depth"] == 0) != s["ns"]]
    check(f"{name}: pieces add up to their subject", subjects and not off, off[:1])
    return subjects


def whose_fault(name, path, hooked):
    """Tasks that were woken while another slept in its poll: whose, and in which call."""
    late = [s for s in blame(name, path) if s["type"] == "wake" and s["ns"] > PLANTED_NS * 0.9]
    most = [max((p for p in s["pieces"] if p["depth"] == 0), key=lambda p: p["ns"]) for s in late]
    others = [p for s, p in zip(late, most) if not p["own"] and p["task"] not in (0, s["task"])]
    check(f"{name}: what is late waited for another task", len(late) >= 4 and
          all(p["callback"] == "request" and p["ns"] > 0.9 * PLANTED_NS for p in most) and
          len(others) >= len(late) / 2, most[:2])
    check(f"{name}: in the words of the ledger",
          all(is_planted({**p, "key": p["text"].split(",")[0].split(" of ")[0],
                          "place": (p["where"] or [None])[0]}) for p in most)
          and {p["owner"] for p in most} == {"call" if hooked else "code"}, most[:2])
    check(f"{name}: nothing of it is not observed", not any(s["not_observed_ns"] for s in late),
          late[:1])


def without_hooks(program):
    """What the program says by itself is in its box alone."""
    p = subprocess.Popen([program, SECONDS], stdout=subprocess.DEVNULL, preexec_fn=undisturbed)
    try:
        time.sleep(float(SECONDS) * 0.7)
        whose_fault("tasks, without hooks", str(p.pid), False)
    finally:
        p.wait(timeout=60)


def several(out):
    """Processes of one trace."""
    trace = os.path.join(out, "several.tacho")
    here = os.path.join(BUILD, "tests", "e2e")
    p = run("-o", trace, "--", "sh", "-c", f"{here}/ledger_epoll {SECONDS} 2 & "
            f"{here}/ledger_tasks {SECONDS}; wait", preexec_fn=undisturbed)
    if check("two processes are recorded", p.returncode == 0 and os.path.exists(trace), said(p)):
        ledger = report("two processes", trace)
        if ledger:
            sums("two processes", ledger, 2, MOST)
            agree("two processes", ledger, trace)
        cut("two processes", trace, 2)


def with_losses(out):
    """More threads than a box has room for."""
    program = os.path.join(BUILD, "tests", "cases", "case-api_loss")
    trace = os.path.join(out, "losses.tacho")
    if not os.path.exists(program):
        skip("losses", "its case was not built")
        return
    p = run("--memory", "1M", "-o", trace, "--", program)
    ledger = report("losses", trace)
    if ledger:
        check("losses: records are missing", "recorder-loss" in ledger["rules"], said(p))
        sums("losses", ledger, share=0)
        agree("losses", ledger, trace)
        blame("losses", trace)


def main():
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
            sums(name, ledger, share=MOST)
            judge(name, ledger, planted)
            cut(name, trace)
            agree(name, ledger, trace)
            if name == "epoll":
                other_outputs(name, ledger, trace)
                considered(name, trace)
            if program[0] == "ledger_tasks":
                whose_fault(name, trace, True)
                without_hooks(path)
            else:
                blame(name, trace)
        several(out)
        with_losses(out)


if __name__ == "__main__":
    main()
    sys.exit(bool(failures))
