#!/usr/bin/env python3
"""The tables of tacho sql on recordings of real programs, against a recount of the events that
`tacho cat --json` prints."""
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict

from libsql import BUILD, cat, one, record_tasks, record_redis, record_uv, rows, table
from librun import BIN, check, folder, is_tachos, said, skip


def number(value):
    """JSON has large numbers as texts."""
    return int(value) if isinstance(value, str) else value


def signed(value):
    value = number(value)
    return value - 2**64 if value >= 2**63 else value


# ----------------------------------------------------------------- recounting

def recount_polls(events):
    """(pid, tid, task, begin, end) of each poll whose begin and end are there."""
    open_polls, found = defaultdict(list), []
    for e in events:
        stack = open_polls[e["pid"], e["thread"], e["stream"]]
        if e["type"] == "resume":
            del stack[:]
        elif e["type"] in ("poll-end", "poll-switch", "span-end", "span-begin", "poll-begin"):
            if e["type"] in ("poll-end", "poll-switch"):
                while stack and stack[-1] == "span":
                    stack.pop()
                if stack:
                    task, begin = stack.pop()
                    found.append((e["pid"], e["tid"], signed(task), begin, e["ns"]))
            if e["type"] in ("poll-begin", "poll-switch"):
                stack.append((e["task"] or 0, e["ns"]))
            elif e["type"] == "span-begin":
                stack.append("span")
            elif e["type"] == "span-end" and stack and stack[-1] == "span":
                stack.pop()
    return found


def recount_wakes(events):
    """(task, wake, begin of the next poll of that task or None), of the first wake each."""
    waiting, found = {}, []
    for e in events:
        if e["type"] == "wake":
            waiting.setdefault((e["pid"], signed(e["task"])), e["ns"])
        elif e["type"] in ("poll-begin", "poll-switch"):
            woken = waiting.pop((e["pid"], signed(e["task"] or 0)), None)
            if woken is not None:
                found.append((signed(e["task"]), woken, e["ns"]))
    return found + [(task, ns, None) for (_, task), ns in waiting.items()]


def lost_wakes(path):
    """Those after which records may be missing: which poll they led to is not known."""
    return {(signed(r["task"]), r["ns"]) for r in rows(path, "SELECT * FROM wakes WHERE lost")}


def of(events, *types):
    return [e for e in events if e["type"] in types]


# --------------------------------------------------------------------- checks

def common(name, path, events):
    """What must hold for every recording."""
    polls = recount_polls(events)
    got = sorted((r["pid"], r["tid"], signed(r["task"] or 0), r["begin_ns"], r["end_ns"])
                 for r in rows(path, "SELECT * FROM polls WHERE cut = 0 AND kind IS NOT NULL"))
    check(f"sql_{name}_polls_are_those_of_the_events", got == sorted(polls),
          (len(got), len(polls), sorted(set(got) ^ set(polls))[:4]))
    total = one(path, "SELECT count(*), sum(ns), sum(end_ns - begin_ns) FROM polls "
                      "WHERE cut = 0 AND kind IS NOT NULL")
    check(f"sql_{name}_poll_times_add_up", total[0] == len(polls) and total[1] == total[2] and
          (total[1] or 0) == sum(p[4] - p[3] for p in polls), total)
    samples = of(events, "sample", "kernel-sample")
    check(f"sql_{name}_samples",
          one(path, "SELECT count(*), sum(cpu_ns), sum(perf) FROM samples") ==
          [len(samples), sum(e["cpu_ns"] for e in samples) if samples else None,
           sum(e["type"] == "kernel-sample" for e in samples) if samples else None], len(samples))
    calls = of(events, "call")
    check(f"sql_{name}_calls", one(path, "SELECT count(*), sum(ns) FROM calls") ==
          [len(calls), sum(e["duration_ns"] for e in calls) or None], len(calls))
    check(f"sql_{name}_calls_by_name",
          {r["name"]: r["n"] for r in rows(path, "SELECT name, count(*) n FROM calls GROUP BY 1")}
          == Counter(e["call"]["name"] for e in calls))
    waits = of(events, "lock-waited")
    check(f"sql_{name}_locks", one(path, "SELECT count(*) FROM locks WHERE cut = 0") ==
          [len(waits)], len(waits))
    counters = of(events, "counter", "queue-depth")
    check(f"sql_{name}_counters", one(path, "SELECT count(*), sum(value) FROM counters") ==
          [len(counters), sum(e.get("value", e.get("depth")) for e in counters)
           if counters else None], len(counters))
    check(f"sql_{name}_wakes", one(path, "SELECT count(*) + sum(again) FROM wakes") ==
          [len(of(events, "wake")) or None])
    lost = lost_wakes(path)
    woken = {w for w in recount_wakes(events) if w[:2] not in lost}
    got = {(signed(r["task"]), r["ns"], r["poll_ns"])
           for r in rows(path, "SELECT * FROM wakes WHERE NOT lost")}
    check(f"sql_{name}_wakes_lead_to_their_polls", got == woken, sorted(map(str, got ^ woken))[:4])
    check(f"sql_{name}_few_wakes_are_lost", len(lost) <= len(woken), (len(lost), len(woken)))
    threads = {(e["pid"], e["tid"]) for e in events}
    got = {(r["pid"], r["tid"]) for r in rows(path, "SELECT pid, tid FROM threads")}
    check(f"sql_{name}_threads", threads <= got, threads ^ got)
    info = json.loads(subprocess.run([BIN, "info", path, "--json"], capture_output=True, text=True,
                                     timeout=60).stdout)
    losses = {(p["pid"], x["name"]): x["count"] for p in info["processes"] for x in p["losses"]}
    got = {(r["pid"], r["name"]): r["count"] for r in rows(path, "SELECT * FROM losses")}
    check(f"sql_{name}_losses", got == losses and losses, set(got.items()) ^ set(losses.items()))
    holes = [e for e in of(events, "resume") if not e["first"] and (e["missing"] or e["dropped"])]
    check(f"sql_{name}_gaps", one(path, "SELECT count(*), sum(records) FROM gaps "
                                        "WHERE reason = 'hole'") ==
          [len(holes), sum(e["missing"] + e["dropped"] for e in holes) or None], holes[:2])


def joins(name, path, events):
    n = one(path, "SELECT count(*) FROM wakes w JOIN polls p ON p.process = w.process "
                  "AND p.task = w.task AND p.begin_ns = w.poll_ns")
    lost = lost_wakes(path)
    expected = sum(w[2] is not None and w[:2] not in lost for w in recount_wakes(events))
    check(f"sql_{name}_join_of_wakes_and_polls", n == [expected], (n, expected))
    n = one(path, "SELECT count(*) FROM polls p JOIN wakes w ON w.ns = p.wake_ns "
                  "AND w.task = p.task WHERE w.latency_ns <> p.waited_ns")
    check(f"sql_{name}_both_sides_say_the_same_latency", n == [0], n)
    # The same by time, which takes another way through the tables.
    inside = one(path, "SELECT count(*) FROM samples WHERE in_poll_ns IS NOT NULL AND kind NOTNULL")
    by_id = one(path, "SELECT count(*) FROM samples s JOIN polls p ON p.tid = s.tid "
                      "AND p.begin_ns = s.in_poll_ns AND p.kind NOTNULL")
    by_time = one(path, "SELECT count(*) FROM polls p JOIN samples s ON s.tid = p.tid "
                        "AND s.ns BETWEEN p.begin_ns AND p.end_ns AND s.in_poll_ns = p.begin_ns "
                        "AND p.kind NOTNULL")
    check(f"sql_{name}_samples_lie_in_their_polls", inside == by_id == by_time,
          (inside, by_id, by_time))
    # With + SQLite must not use the order of a column: all ways give the same rows.
    fast = table(path, "SELECT a.begin_ns, b.begin_ns FROM polls a JOIN polls b "
                       "ON b.begin_ns BETWEEN a.begin_ns AND a.begin_ns + 100000 "
                       "AND b.task = a.task ORDER BY 1, 2 LIMIT 5000")
    slow = table(path, "SELECT a.begin_ns, b.begin_ns FROM polls a JOIN polls b "
                       "ON +b.begin_ns BETWEEN a.begin_ns AND a.begin_ns + 100000 "
                       "AND +b.task = a.task WHERE a.begin_ns <= (SELECT max(begin_ns) FROM "
                       "(SELECT begin_ns FROM polls ORDER BY 1 LIMIT 3000)) "
                       "ORDER BY 1, 2 LIMIT 5000")
    check(f"sql_{name}_order_of_a_column_changes_no_answer", fast[:200] == slow[:200],
          (fast[:3], slow[:3]))


def demo(base):
    path = os.path.join(base, "demo.tacho")
    p = record_tasks(path)
    check("sql_demo_is_recorded", p.returncode == 0, said(p))
    events = cat(path)
    common("demo", path, events)
    joins("demo", path, events)
    spans = of(events, "span-begin", "async-begin")
    check("sql_demo_spans", one(path, "SELECT count(*) FROM spans") == [len(spans)] and spans)
    spawns = of(events, "spawn")
    check("sql_demo_tasks", one(path, "SELECT count(*), count(DISTINCT task) FROM tasks "
                                      "WHERE begin_ns NOTNULL") == [len(spawns), len(spawns)])
    polls = Counter(signed(e["task"]) for e in of(events, "poll-begin", "poll-switch"))
    got = {signed(r["task"]): r["polls"] for r in rows(path, "SELECT * FROM tasks WHERE polls > 0")}
    check("sql_demo_polls_of_tasks", got == polls, len(got))
    unparks = of(events, "unpark")
    check("sql_demo_turns", one(path, "SELECT count(*), sum(ready) FROM turns") ==
          [len(unparks), sum(e["ready"] for e in unparks)], len(unparks))
    check("sql_demo_loops", sorted(r["loop"] for r in rows(path, "SELECT loop FROM loops")) ==
          ["back", "front"])
    mine = of(events, "event")
    got = rows(path, "SELECT name, fields FROM events ORDER BY ns")
    check("sql_demo_events", mine and [(r["name"], json.loads(r["fields"])) for r in got] ==
          [(e["event"]["name"], e["fields"]) for e in mine], got[:2])
    check("sql_demo_fields_can_be_queried",
          one(path, "SELECT count(*) FROM events WHERE fields ->> 'status' = 200") ==
          [sum(e["fields"].get("status") == 200 for e in mine)])


def uv(base):
    path = os.path.join(base, "uv.tacho")
    if not os.access(os.path.join(BUILD, "tests/e2e/export_uv"), os.X_OK):
        skip("sql_uv", "libuv is not here, so export_uv was not built")
        return
    p = record_uv(path)
    check("sql_uv_is_recorded", p.returncode == 0, said(p))
    events = cat(path)
    common("uv", path, events)
    joins("uv", path, events)
    submits = {number(e["work"]): e for e in of(events, "work-submit")}
    got = rows(path, "SELECT * FROM pool")
    begins = {number(e["work"]): e["ns"] for e in of(events, "work-begin")}
    check("sql_uv_pool", len(got) == len(submits) > 0 and
          all(r["wait_ns"] == begins[number(r["work"])] - r["submit_ns"] for r in got), len(got))
    frames(path, events)
    n = rows(path, "SELECT wait_function, holder_tid FROM locks WHERE signal = 0 AND release_ns "
                   "BETWEEN begin_ns AND end_ns")
    check("sql_uv_locks_have_holders", n and all(r["holder_tid"] for r in n), n[:3])


def frames(path, events):
    """Stacks of samples, those with a definition and those without."""
    samples = of(events, "sample", "kernel-sample")
    expected = Counter()
    for e in samples:
        for f in (e["at"] or {}).get("frames", []):
            if not is_tachos(f):
                expected[e["ns"], e["type"] == "kernel-sample", int(f["address"], 16)] += 1
    got = Counter()
    for r in rows(path, "SELECT s.ns, s.perf, f.address FROM samples s JOIN frames f "
                        "USING (process, stack) WHERE f.inlined = 0"):
        got[r["ns"], bool(r["perf"]), number(r["address"]) % 2**64] += 1
    check("sql_uv_samples_have_their_frames", got == expected and got,
          (sum(got.values()), sum(expected.values()), list((got - expected) + (expected - got))[:4]))
    check("sql_uv_every_sample_with_a_stack_has_frames",
          one(path, "SELECT count(*) FROM samples s WHERE stack NOTNULL AND NOT EXISTS "
                    "(SELECT 1 FROM frames f WHERE f.stack = s.stack)") == [0])
    own = [e for e in samples if e["at"]["frames"] and
           any(f.get("function") in ("burn_cpu", "hold_lock") for f in e["at"]["frames"])]
    n = one(path, "SELECT count(DISTINCT s.rowid) FROM samples s JOIN frames f USING "
                  "(process, stack) WHERE f.function IN ('burn_cpu', 'hold_lock')")
    check("sql_uv_functions_of_samples", n[0] >= len(own) > 0, (n, len(own)))
    # Frames read first, in a session of its own: the numbers are the same.
    a = table(path, "SELECT stack, count(*) FROM frames GROUP BY 1 ORDER BY 1")
    b = table(path, "SELECT f.stack, count(*) FROM (SELECT count(stack) FROM samples), frames f "
                    "GROUP BY 1 ORDER BY 1")
    check("sql_uv_numbers_of_stacks_do_not_depend_on_the_order_of_queries", a == b, (a[:3], b[:3]))
    kernel = sum(e.get("kernel_frames", 0) > 0 for e in samples)
    n = one(path, "SELECT count(DISTINCT s.rowid) FROM samples s JOIN frames f USING "
                  "(process, stack) WHERE f.kernel")
    check("sql_uv_kernel_frames", n == [kernel], (n, kernel))


def redis(base):
    path = os.path.join(base, "redis.tacho")
    if not record_redis(path, base):
        skip("sql_redis", "redis is not here")
        return
    events = cat(path)
    common("redis", path, events)
    check("sql_redis_turns_stand_as_polls",
          one(path, "SELECT (SELECT count(*) FROM polls WHERE kind IS NULL) - "
                    "(SELECT count(*) FROM turns)") == [0])
    begun, expected = {}, []
    for e in of(events, "park", "unpark", "resume"):
        key = e["pid"], e["tid"]
        if e["stream"] != 0:
            continue
        if e["type"] == "unpark":
            begun.setdefault(key, e["ns"])
        elif key in begun:
            if e["type"] == "park":
                expected.append((e["tid"], begun[key], e["ns"]))
            del begun[key]
    got = [(r["tid"], r["begin_ns"], r["end_ns"])
           for r in rows(path, "SELECT * FROM turns WHERE cut = 0")]
    # More than one block of the columns (src/query/table.h).
    check("sql_redis_turns", sorted(got) == sorted(expected) and len(got) > 4096,
          (len(got), len(expected), sorted(set(got) ^ set(expected))[:4]))
    some = sorted(got)[::500]
    check("sql_redis_turns_are_found_by_time",
          all(one(path, f"SELECT end_ns FROM turns WHERE begin_ns = {b} AND tid = {t}") == [e]
              for t, b, e in some))


def main():
    with folder() as base:
        demo(base)
        uv(base)
        redis(base)
    return 0


if __name__ == "__main__":
    sys.exit(main())
