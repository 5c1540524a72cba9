#!/usr/bin/env python3
"""tacho report on traces that say little, or lie: right answers or a clear sentence."""
import json
import os
import subprocess
import sys

from librun import BIN, PYTHON, check, folder, run, said, script, skip, undisturbed

# Waits in turns and computes for a while in some of them.
WORK = """import select, time, sys
loop = select.epoll()
end = time.monotonic() + float(sys.argv[1])
n = 0
while time.monotonic() < end:
    loop.poll(0.004)
    n += 1
    if n % 25 == 0:
        t = time.monotonic() + 0.08
        while time.monotonic() < t: pass
"""
CRASH = """import select, os, signal
loop = select.epoll()
for i in range(200): loop.poll(0.004)
os.kill(os.getpid(), signal.SIGSEGV)
"""
IDLE = """import select, time
end = time.monotonic() + 2
loop = select.epoll()
while time.monotonic() < end: loop.poll(0.05)
"""


def report(path, *options):
    return subprocess.run([BIN, "report", path, *options], capture_output=True, text=True,
                          timeout=120, stdin=subprocess.DEVNULL)


def found(path, *options):
    p = report(path, "--json", *options)
    try:
        return json.loads(p.stdout)
    except ValueError:
        return {"verdict": {"category": said(p)}, "findings": [], "coverage": {}, "losses": {}}


def record(out, name, text, *arguments, options=(), env=None):
    path = os.path.join(out, name + ".tacho")
    run("-q", *options, "-o", path, "--", PYTHON, script(out, name + ".py", text), *arguments,
        env=env, preexec_fn=undisturbed)
    return path


def rules(r):
    return [f["rule"] for f in r["findings"]]


def test_samples(out):
    path = record(out, "plain", WORK, "2")
    r = found(path)
    check("a long turn is found", rules(r)[:1] == ["long-callback"], r["verdict"])
    check("the JSON has a version", r.get("version") == 2, r.keys())
    path = record(out, "unsampled", WORK, "2", options=("--no-kernel",),
                  env={"TACHO_SAMPLE_HZ": "0"})
    r = found(path)
    first = r["findings"][0] if r["findings"] else {}
    check("without samples it is found as well", rules(r)[:1] == ["long-callback"], r["verdict"])
    check("without samples no code is named, and it says so",
          not first.get("where") and "not seen" in first.get("summary", ""), first)
    check("without samples pauses are not looked for",
          r["coverage"].get("process-pause", {}).get("checked") is False, r["coverage"])
    path = record(out, "bare", WORK, "2", options=("--no-symbols",))
    r = found(path)
    check("without symbols it is found as well", rules(r)[:1] == ["long-callback"], r["verdict"])
    check("without symbols no function is made up",
          all(w["function"] is None and w["line"] is None
              for f in r["findings"] for w in f["where"]), r["findings"][:1])


def test_short(out):
    # That the machine did not run it would be told of any window.
    for _ in range(10):
        r = found(record(out, "short", WORK, "0.1"))
        if r["verdict"]["category"] != "scheduling":
            break
    check("a tenth of a second tells nothing", r["verdict"]["category"] == "not-enough-data",
          r["verdict"])
    path = record(out, "second", WORK, "1")
    r = found(path)
    check("a second is enough for what is in it", rules(r)[:1] == ["long-callback"], r["verdict"])


def test_crash(out):
    path = record(out, "crash", CRASH, env={"TACHO_CRASH_FILE": os.path.join(out, "crash.%p")})
    r = found(path)
    check("a crash comes first", rules(r)[:1] == ["crash"] and
          r["verdict"]["category"] == "crash", r["verdict"])


def test_threads(out):
    r = found(record(out, "one", IDLE))
    # Even what comes first is late now and then on a busy machine, and the report says so.
    check("one thread that idles is fine",
          set(rules(r)) <= {"kernel-scheduling-delay", "cpu-throttled"}, r["findings"])
    program = os.path.join(os.environ.get("TACHO_BUILD", ""), "tests/e2e/many_threads")
    path = os.path.join(out, "loss.tacho")
    p = run("-q", "--memory", "1M", "-o", path, "--", program, "1500", "2")
    if p.returncode == 3:
        return skip("with most of the records missing", f"no threads: {p.stderr.strip()}")
    r = found(path)
    check("with most of the records missing it says that first",
          rules(r)[:1] == ["recorder-loss"] and r["verdict"]["category"] == "recording",
          r["verdict"])


def test_fail_on(out):
    path = os.path.join(out, "plain.tacho")
    p = report(path, "--fail-on", "long-callbacks")
    check("--fail-on with an unknown rule is refused", p.returncode == 2 and
          "long-callbacks" in p.stderr and "--rules" in p.stderr, said(p))
    p = report(path, "--fail-on", "long-callback:fatal")
    check("--fail-on with an unknown severity is refused", p.returncode == 2 and
          "fatal" in p.stderr, said(p))
    p = report(path, "--fail-on", "long-callback")
    check("--fail-on fails when it is found", p.returncode not in (0, 2), said(p))
    p = report(path, "--fail-on", "crash")
    check("--fail-on does not fail for another", p.returncode == 0, said(p))
    p = report(path, "--threshold", "long-callback.wrong=1ms")
    check("an unknown threshold is refused", p.returncode == 2 and "--rules" in p.stderr, said(p))
    r = found(path, "--threshold", "waiting.share=1e9", "--threshold", "stall.count=1e9",
              "--threshold", "lost.share=1e9")
    check("thresholds are options", r.get("verdict") and "long-callback" not in rules(r),
          r.get("verdict"))
    p = report(os.path.join(out, "none.tacho"))
    check("a file that is not there is named", p.returncode == 1 and "none.tacho" in p.stderr,
          said(p))
    with open(path, "rb") as f:
        data = f.read()
    cut = os.path.join(out, "cut.tacho")
    with open(cut, "wb") as f:
        f.write(data[:len(data) // 2])
    p = report(cut, "--json")
    check("half a file is reported as far as it goes, or refused in a sentence",
          p.returncode == 0 and json.loads(p.stdout)["losses"]["problems"] > 0 or
          p.returncode == 1 and p.stderr.count("\n") <= 2, said(p))


def test_blame(out):
    path = record(out, "blamed", IDLE)
    for options in ([], ["--json"]):
        p = subprocess.run([BIN, "blame", path, "--span", "none", *options], capture_output=True,
                           text=True, timeout=120)
        check(f"blame of what is not there fails {' '.join(options)}", p.returncode == 1 and
              "nothing that was asked for" in p.stderr and
              (not options or json.loads(p.stdout)["subjects"] == []), said(p))
    p = subprocess.run([BIN, "blame", path, "--trace-id", "00"], capture_output=True, text=True,
                       timeout=120)
    check("no trace id is not all of them", p.returncode == 2 and "--trace-id" in p.stderr, said(p))
    for more in ("--json", path):
        p = subprocess.run([BIN, "report", "--rules", more], capture_output=True, text=True,
                           timeout=120)
        check(f"--rules is not joined with {'--json' if more == '--json' else 'a trace'}",
              p.returncode == 2 and p.stdout == "" and more in p.stderr, said(p))


def main():
    with folder() as out:
        for test in (test_samples, test_short, test_crash, test_threads, test_fail_on,
                     test_blame):
            test(out)
    from librun import failures
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
