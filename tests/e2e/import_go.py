#!/usr/bin/env python3
"""Execution traces of Go open in every command; what Go's own reader counts, tacho counts; what is
damaged is read as far as it is whole; and the number-guessing server's fault is named."""
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from libcheck import BIN, check, said, skip, status

SOURCE = os.environ.get("TACHO_SOURCE") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GOLDEN = os.path.join(SOURCE, "tests", "golden-import")
NAMES = ["go1.22.trace", "go1.23.trace", "go1.25.trace", "go1.26.trace.gz"]
with open(os.path.join(GOLDEN, "go-counts.json"), encoding="ascii") as f:
    COUNTS = json.load(f)


def tacho(*args, **options):
    return subprocess.run([BIN, *args], capture_output=True, text=True, errors="replace",
                          timeout=300, **options)


def golden(name):
    return os.path.join(GOLDEN, name)


def counted(path):
    """Events by name, and the process."""
    p = tacho("info", "--json", path)
    if p.returncode:
        return {}, {"reason": said(p)}
    process = json.loads(p.stdout)["processes"][0]
    return process["events"], process


def plain(name):
    with open(golden(name), "rb") as file:
        data = file.read()
    return gzip.decompress(data) if name.endswith(".gz") else data


def versions():
    for name in NAMES:
        events, process = counted(golden(name))
        wrong = {k: (v, events.get(k, 0)) for k, v in COUNTS[name].items()
                 if events.get(k, 0) != v}
        check(f"{name} has the counts of Go's own reader", not wrong, f"{wrong} {process}")
        version = re.match(r"go(1\.\d+)", name).group(1)
        check(f"{name} says what it was imported from",
              process.get("imported") == f"a Go {version} execution trace"
              and process.get("taken_by") == "import" and not process.get("reason"), process)


def commands(folder):
    """All that take a trace take this one, and give what they give of the one that is kept."""
    source, kept = golden("go1.25.trace"), os.path.join(folder, "kept.tacho")
    p = tacho("import", source, "-o", kept, "--json")
    answer = json.loads(p.stdout) if p.returncode == 0 else {}
    check("import keeps it", answer.get("file") == kept and answer.get("events", 0) > 1000
          and answer.get("imported") == "a Go 1.25 execution trace", said(p))
    for args in (["report", "--json"], ["stats", "--json"], ["cat", "--type", "task-waits"],
                 ["blame", "--slowest", "3"], ["report", "--ledger"], ["export", "--format",
                                                                       "perfetto", "-o", "-"]):
        command, rest = args[0], args[1:]
        a, b = (subprocess.run([BIN, command, path, *rest], capture_output=True, timeout=300)
                for path in (source, kept))
        check(f"{' '.join(args)} of the trace is that of the import",
              a.returncode == b.returncode == 0 and a.stdout == b.stdout and a.stdout,
              f"{a.returncode} {a.stderr} {b.stderr}")
    p = tacho("sql", source, "SELECT count(*) FROM polls")
    q = tacho("sql", kept, "SELECT count(*) FROM polls")
    check("sql reads it", p.returncode == 0 and p.stdout == q.stdout, said(p))
    p = tacho("diff", source, kept)
    check("diff reads it", p.returncode == 0, said(p))
    out = os.path.join(folder, "out.svg")
    p = tacho("flame", source, "--svg", out)
    check("flame reads its samples", p.returncode == 0 and os.path.getsize(out) > 1000, said(p))
    out = os.path.join(folder, "out.html")
    p = tacho("view", "--html", out, source)
    if "without its page" in p.stderr:
        skip("view writes the page of it", "this tacho has no page")
    else:
        check("view writes the page of it", p.returncode == 0 and os.path.getsize(out) > 10000,
              said(p))


def facts():
    """What the program of the golden traces did is in them."""
    p = tacho("report", "--json", golden("go1.25.trace"))
    findings = json.loads(p.stdout)["findings"]
    lock = [f for f in findings if f["rule"] == "lock-contention"]
    check("the holder of the lock is named where it sleeps",
          lock and lock[0]["where"][0]["function"] == "main.(*account).slowly"
          and lock[0]["where"][0]["line"] == 26 and "sync.Mutex" in lock[0]["summary"], findings)
    for name in NAMES:
        p = tacho("cat", golden(name), "--type", "log")
        check(f"{name}: the log is one", "[task 1] talk: asked 20 times" in p.stdout, said(p))
    p = tacho("sql", golden("go1.26.trace.gz"),
              "SELECT count(*) FROM spans WHERE name = 'ask' AND parent = 1")
    check("regions are spans of their task", re.search(r"\b20\b", p.stdout), said(p))


# What is first in the report of each, and the line of ../golden-import/record/faults.go.
FAULTS = {"leak": ("task-leak", "leak"), "downstream": ("downstream-wait", "http.Get("),
          "stops": ("stop-the-world", "ReadMemStats("),
          "oversubscribe": ("wake-latency", None), "healthy": (None, None), "background": (None, None)}


def late(name):
    """The share of all Ps' time in which something had been woken, and none had come for it."""
    p = tacho("report", "--json", "--ledger", golden(f"go-{name}.trace.gz"))
    owners = [o for t in json.loads(p.stdout)["ledger"]["threads"] for o in t["owners"]]
    return sum(o["ns"] for o in owners if o["owner"] == "late") / sum(o["ns"] for o in owners)


def faults():
    """The runbook: what goes wrong in Go programs, and one in which nothing does."""
    with open(os.path.join(GOLDEN, "record/faults.go"), encoding="utf-8") as file:
        lines = file.read().splitlines()
    for name, (rule, part) in FAULTS.items():
        p = tacho("report", "--json", golden(f"go-{name}.trace.gz"))
        report = json.loads(p.stdout) if p.returncode == 0 else {}
        found = [f for f in report.get("findings", [{}]) if f.get("severity") != "info"]
        first = found[0] if found else {}
        check(f"go-{name}: the report is right", p.returncode == 0 and first.get("rule") == rule,
              f"{report.get('verdict')} {found} {said(p)[:300]}")
        if name == "healthy":
            check("go-healthy: hardly any P was late, as hardly anything waited for one", late(name) < 0.02,
                  f"{late(name):.3f} of their time")
        if part and part != "leak":
            line = next(i for i, text in enumerate(lines, 1) if part in text)
            check(f"go-{name}: its line is named",
                  first.get("where", [{}])[0].get("line") == line, first)


def hostile(folder):
    """One sentence each, and never more than the truth."""
    def write(name, data):
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    whole = plain("go1.25.trace")
    p = tacho("report", write("old.trace", b"go 1.21 trace\0\0\0" + whole[16:]))
    check("an older format is refused by its version", p.returncode == 1
          and "Go 1.21" in p.stderr and "1.22 to 1.26" in p.stderr
          and len(p.stderr.splitlines()) == 1, said(p))
    p = tacho("report", write("future.trace", b"go 1.99 trace\0\0\0" + whole[16:]))
    check("a newer format is refused by its version", p.returncode == 1
          and "Go 1.99" in p.stderr and len(p.stderr.splitlines()) == 1, said(p))
    for name, data in (("pprof", gzip.compress(b"\x0a\x04\x08\x01\x10\x02" * 100)),
                       ("gzip of zeros", gzip.compress(bytes(1 << 24))),
                       ("a header alone", whole[:16])):
        p = tacho("report", write("bad", data))
        check(f"{name} is said to be none", p.returncode == 1 and
              len(p.stderr.splitlines()) == 1 and p.stderr.startswith("tacho report: "), said(p))
        check(f"{name}: it says what it is", ("Go" if name == "a header alone" else "packed with gzip")
              in p.stderr and ("pprof" in p.stderr) == (name != "a header alone"), said(p))
        p = tacho("import", os.path.join(folder, "bad"), "-o", os.path.join(folder, "o.tacho"))
        check(f"{name} is not imported", p.returncode == 1
              and not os.path.exists(os.path.join(folder, "o.tacho")), said(p))
    bomb = write("bomb", gzip.compress(whole[:16] + bytes(64 << 20)))
    p = tacho("report", bomb)
    check("zeros behind a header are no trace", p.returncode == 1
          and len(p.stderr.splitlines()) == 1, said(p))
    cut(write)


def number(data, at):
    """A LEB128 number, and where it ends."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


def again(data):
    """The trace, and after it its one generation as another one."""
    out, at = bytearray(data), 16
    while at < len(data):
        begin = at
        at += 1
        if data[begin] == 52:
            out += data[begin:at]
            continue
        generation, at = number(data, at)
        assert data[begin] == 1 and generation < 127
        rest = at
        for _ in range(2):
            _, at = number(data, at)
        size, at = number(data, at)
        at += size
        out += bytes([1, generation + 1]) + data[rest:at]
    return bytes(out)


def is_first(events, name):
    return all(events.get(k, 0) == v for k, v in COUNTS[name].items())


def cut(write):
    whole = plain("go1.22.trace")
    two = again(whole)
    for length in (len(whole) + 9, len(whole) + 1000, len(two) - len(whole) // 2):
        events, process = counted(write("cut.trace", two[:length]))
        check(f"a generation that is cut at {length - len(whole)} is left out, the one before is "
              "whole", is_first(events, "go1.22.trace") and process.get("reason"),
              f"{events} {process}")
    whole = plain("go1.26.trace.gz")
    events, process = counted(write("cut.trace", whole[:-1]))
    check("a file without the mark of its end is read and said to be cut",
          is_first(events, "go1.26.trace.gz")
          and "is cut or damaged" in (process.get("reason") or ""), f"{events} {process}")
    packed = gzip.compress(again(whole))
    events, process = counted(write("cut.gz", packed[:len(packed) - 12]))
    check("a gzip that is cut is read as far as it is whole",
          is_first(events, "go1.26.trace.gz")
          and "unpacked" in (process.get("reason") or ""), f"{events} {process}")
    for at in range(1000, len(whole), max(1, len(whole) // 12)):
        data = bytearray(whole)
        data[at] ^= 0x55
        p = tacho("stats", write("flipped.trace", bytes(data)))
        if not check(f"damage at {at} ends in an answer", p.returncode in (0, 1), said(p)):
            break


def go_version():
    go = shutil.which("go") or next(
        (p for p in ("/usr/local/go/bin/go", "/usr/lib/go/bin/go") if os.path.exists(p)), None)
    if not go:
        return None, "no go in the PATH"
    p = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True)
    found = re.match(r"go1\.(\d+)", p.stdout)
    if not found or int(found.group(1)) < 25:
        return None, f"{p.stdout.strip() or go} has no FlightRecorder: it needs Go 1.25"
    return go, ""


def build(go, folder, source, name):
    """The program, or why there is none."""
    environment = dict(os.environ, GOFLAGS="-buildvcs=false",
                       HOME=os.environ.get("HOME") or folder)
    out = os.path.join(folder, name)
    p = subprocess.run([go, "build", "-o", out, "."], cwd=os.path.join(SOURCE, source),
                       capture_output=True, text=True, env=environment, timeout=550)
    return (out, "") if p.returncode == 0 else (None, p.stderr.strip().splitlines()[-1:])


def live(folder):
    named, counts = "the guessing server's lock, its holder and its line are named", \
        "a new trace has the counts of Go's own reader"
    go, why = go_version()
    if not go:
        skip(named, why)
        skip(counts, why)
        return
    program, why = build(go, folder, "examples/go-guess", "guess")
    if not program:
        check(named, False, why)
        return
    trace = os.path.join(folder, "guess.trace")
    p = subprocess.run([program, "-o", trace], capture_output=True, text=True, timeout=120)
    if not check("the guessing server writes its window", p.returncode == 0, said(p)):
        return
    guess(named, trace)
    counter, why = build(go, folder, "tests/golden-import/count", "count")
    if not counter:
        skip(counts, f"golang.org/x/exp could not be built: {why}")
        return
    p = subprocess.run([counter, trace], capture_output=True, text=True, timeout=120)
    theirs = json.loads(p.stdout) if p.returncode == 0 else {"": said(p)}
    ours, _ = counted(trace)
    check(counts, all(ours.get(k, 0) == v for k, v in theirs.items()), f"{theirs} {ours}")


def guess(name, trace):
    with open(os.path.join(SOURCE, "examples/go-guess/main.go"), encoding="utf-8") as file:
        lines = file.read().splitlines()
    post = next(i for i, line in enumerate(lines, 1) if "http.Post(" in line)
    p = tacho("report", "--json", trace)
    report = json.loads(p.stdout) if p.returncode == 0 else {}
    first = (report.get("findings") or [{}])[0]
    where = (first.get("where") or [{}])[0]
    check(name, report.get("verdict", {}).get("category") == "lock"
          and first.get("rule") == "lock-contention" and "sync.Mutex" in first["summary"]
          and re.search(r"task \d+ of kind main\.main\.func\d+ has it", first["summary"])
          and where.get("function") == "main.(*counter).sendReport"
          and where.get("line") == post, f"{report.get('verdict')} {first} {said(p)}")
    waited = re.search(r"task (\d+) waited", " ".join(
        e["text"] for e in first.get("evidence", []))) if first else None
    p = tacho("blame", trace, "--task", waited.group(1) if waited else "0", "--slowest", "1")
    check("blame says who had the lock that a request waited for", re.search(
        r"lock +sync\.Mutex, which task \d+ of main\.main\.func\d+ has in "
        r"main\.\(\*counter\)\.sendReport \(main\.go:" + str(post), p.stdout), said(p)[:800])


def main():
    with tempfile.TemporaryDirectory() as folder:
        versions()
        commands(folder)
        facts()
        faults()
        hostile(folder)
        live(folder)
    return status()


if __name__ == "__main__":
    sys.exit(main())
