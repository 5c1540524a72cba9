#!/usr/bin/env python3
"""The columns of tacho sql against the facts of `tacho export --format jsonl`, row by row: both are
made of the same events, by code that has nothing else in common."""
import json
import os
import re
import subprocess
import sys

from libsql import BUILD, record_tasks, record_uv, rows
from librun import BIN, check, environment, folder, said, skip


def name(fact, key):
    return (fact[key] or {}).get("name")


def inside(fact, key):
    return (fact["in"] or {}).get(key)


def signed(value):
    value = int(value or 0)
    return value - 2**64 if value >= 2**63 else value


def or_null(value):
    return signed(value) or None


def cut(fact):
    return sum({"begin": 1, "end": 2, "hole": 4}[what] for what in fact["cut"])


def ns(fact):
    return fact["to_ns"] - fact["from_ns"]


def apart(fact, later, earlier):
    return fact[later] - fact[earlier] if fact[later] and fact[earlier] else None


def thread_name(fact):
    """SQL has no JSON to escape with."""
    return re.sub(r"[\0-\x1f]", lambda m: f"\\x{ord(m[0]):02x}", fact["thread_name"] or "") or None


def kind_around(fact):
    """Facts add the function to the name of the poll that they are in."""
    return (inside(fact, "kind") or "").split(": ")[0] or None


AT = {"pid": lambda f: f["pid"], "tid": lambda f: f["tid"], "thread": thread_name}
TIMES = {"begin_ns": lambda f: f["from_ns"], "end_ns": lambda f: f["to_ns"], "ns": ns}
IN = {"kind": kind_around, "task": lambda f: or_null(inside(f, "task")),
      "in_poll_ns": lambda f: inside(f, "from_ns")}
# Table: the facts that are its rows, and what they say of each column.
TABLES = {
    "polls": (["poll"], AT | TIMES | {
        "kind": lambda f: name(f, "kind"), "task": lambda f: or_null(f["task"]), "cut": cut,
        "inner_ns": lambda f: f["inner_ns"], "depth": lambda f: f["depth"],
        "in_poll_ns": lambda f: inside(f, "from_ns"), "result": lambda f: f["result"],
        "wake_ns": lambda f: f["wake_ns"], "waited_ns": lambda f: apart(f, "from_ns", "wake_ns"),
        "waker_tid": lambda f: f["waker_tid"], "late_ns": lambda f: f["late_ns"],
        "lock_ns": lambda f: f["spent"]["lock_ns"], "call_ns": lambda f: f["spent"]["call_ns"],
        "samples": lambda f: f["spent"]["samples"],
        "sampled_ns": lambda f: f["spent"]["sample_ns"],
        "off_cpu_ns": lambda f: f["spent"]["off_cpu_ns"],
        "delay_ns": lambda f: f["spent"].get("runnable_ns"),
        "involuntary": lambda f: f["spent"].get("involuntary_switches"),
        "minor_faults": lambda f: f["spent"].get("minor_faults"),
        "major_faults": lambda f: f["spent"].get("major_faults")}),
    "turns": (["turn"], TIMES | {
        "pid": lambda f: f["pid"], "tid": lambda f: f["tid"], "cut": cut,
        "ready": lambda f: f["ready"], "parked_ns": lambda f: f["parked_ns"] or 0,
        "polls": lambda f: f["polls"], "polls_ns": lambda f: f["polls_ns"]}),
    "wakes": (["wake"], AT | {
        "ns": lambda f: f["ns"], "task": lambda f: signed(f["task"]),
        "poll_ns": lambda f: f["poll_ns"], "latency_ns": lambda f: apart(f, "poll_ns", "ns"),
        "poll_tid": lambda f: f["poll_tid"], "kind": lambda f: name(f, "poll_kind"),
        "waker_kind": kind_around,
        "waker_task": lambda f: or_null(inside(f, "task")),
        "waker_poll_ns": lambda f: inside(f, "from_ns"), "again": lambda f: f["again"],
        "self": lambda f: int(f["self"]), "lost": lambda f: int(f["lost"])}),
    "locks": (["lock"], AT | TIMES | IN | {
        "cut": cut, "lock": lambda f: signed(f["lock"]), "got": lambda f: int(f["taken"]),
        "signal": lambda f: int(f["signal"]),
        "release_ns": lambda f: (f["released"] or {}).get("ns"),
        "holder_tid": lambda f: (f["released"] or {}).get("tid")}),
    "calls": (["call"], AT | TIMES | IN | {
        "name": lambda f: name(f, "call"), "path": lambda f: name(f, "path"),
        "errno": lambda f: f["errno"], "fd": lambda f: f["on"],
        "fd_kind": lambda f: f["fd_kind"]}),
    "pool": (["work"], {
        "pid": lambda f: f["pid"], "kind": lambda f: name(f, "kind"),
        "work": lambda f: signed(f["work"]), "submit_ns": lambda f: f["submit_ns"],
        "begin_ns": lambda f: f["begin_ns"], "end_ns": lambda f: f["end_ns"],
        "wait_ns": lambda f: apart(f, "begin_ns", "submit_ns"),
        "ns": lambda f: apart(f, "end_ns", "begin_ns"),
        "submitter_tid": lambda f: f["submitter_tid"],
        "submit_kind": lambda f: name(f, "submitter_kind"),
        "worker_tid": lambda f: f["worker_tid"], "waiting": lambda f: f["waiting"]}),
    "samples": (["sample"], AT | IN | {
        "ns": lambda f: f["ns"], "cpu_ns": lambda f: f["cpu_ns"],
        "perf": lambda f: int(f["perf"])}),
    "switches": (["off-cpu"], AT | TIMES | {
        "cut": cut, "runnable": lambda f: int(f["runnable"]),
        "parked": lambda f: int(f["parked"])}),
    "tasks": (["task"], {
        "pid": lambda f: f["pid"], "kind": lambda f: name(f, "kind"),
        "task": lambda f: signed(f["task"]), "parent": lambda f: or_null(f["parent"]),
        "begin_ns": lambda f: f["spawn_ns"], "end_ns": lambda f: f["end_ns"],
        "ns": lambda f: apart(f, "end_ns", "spawn_ns"), "first_ns": lambda f: f["first_ns"],
        "last_ns": lambda f: f["last_ns"], "polls": lambda f: f["polls"],
        "busy_ns": lambda f: f["busy_ns"], "wakes": lambda f: f["wakes"],
        "self_wakes": lambda f: f["self_wakes"], "woken_ns": lambda f: f["woken_ns"],
        "waited_ns": lambda f: f["waited_ns"], "waits_for": lambda f: name(f, "waits_for"),
        "running": lambda f: int(f["running"])}),
    "spans": (["span"], AT | TIMES | IN | {
        "name": lambda f: name(f, "span"), "cut": cut, "async": lambda f: int(f["async"]),
        "id": lambda f: or_null(f["span_id"]), "parent": lambda f: or_null(f["parent"]),
        "trace_id": lambda f: f["trace_id"]}),
    "counters": (["counter", "queue-depth"], AT | {
        "name": lambda f: name(f, "counter" if "counter" in f else "queue"),
        "ns": lambda f: f["ns"], "value": lambda f: f["value"],
        "depth": lambda f: int(f["fact"] == "queue-depth")}),
}
# Of a recording in which all values of one of these are alike, nothing is learnt about them.
DIFFER = {"uv": [("polls", "lock_ns", "call_ns"), ("polls", "minor_faults", "major_faults"),
                 ("polls", "sampled_ns", "off_cpu_ns"), ("pool", "wait_ns", "ns")],
          "demo": [("tasks", "wakes", "self_wakes"), ("tasks", "busy_ns", "waited_ns"),
                   ("turns", "polls_ns", "parked_ns")]}


def compare(recording, path):
    p = subprocess.run([BIN, "export", path, "--format", "jsonl"], capture_output=True, text=True,
                       timeout=120, env=environment())
    facts = [json.loads(line) for line in p.stdout.splitlines()]
    seen = {}
    for table, (kinds, columns) in TABLES.items():
        seen[table] = rows(path, f"SELECT {', '.join(columns)} FROM {table}")
        of_table = [f for f in facts if f["fact"] in kinds]
        for column, value in columns.items():
            # With what tells rows apart, so that no two columns can be alike by chance.
            key = "begin_ns" if "begin_ns" in columns else "ns"
            got = sorted(repr((r[key], r[column])) for r in seen[table])
            expected = sorted(repr((columns[key](f), value(f))) for f in of_table)
            if got != expected:
                check(f"sql_{recording}_{table}_{column}", False,
                      (len(got), len(expected), sorted(set(got) ^ set(expected))[:4]))
        check(f"sql_{recording}_{table}_are_the_facts", len(of_table) == len(seen[table]),
              (len(of_table), len(seen[table])))
    for table, one, other in DIFFER[recording]:
        check(f"sql_{recording}_{table}_has_{one}_and_{other}",
              any(r[one] != r[other] for r in seen[table]), len(seen[table]))


def main():
    with folder() as base:
        path = os.path.join(base, "demo.tacho")
        p = record_tasks(path)
        check("sql_facts_demo_is_recorded", p.returncode == 0, said(p))
        compare("demo", path)
        if not os.access(os.path.join(BUILD, "tests/e2e/export_uv"), os.X_OK):
            skip("sql_facts_uv", "libuv is not here, so export_uv was not built")
            return 0
        path = os.path.join(base, "uv.tacho")
        p = record_uv(path)
        check("sql_facts_uv_is_recorded", p.returncode == 0, said(p))
        compare("uv", path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
