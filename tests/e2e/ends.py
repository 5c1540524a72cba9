#!/usr/bin/env python3
"""How processes end, under `tacho run` and under `tacho agent`: what report, info, cat, ls and sql say
of it, and that a window lasts until then."""
import json
import os
import signal
import subprocess
import sys
import time

from librun import (BIN, agent, boxes, check, child_of, environment, finish, folder, fresh, run,
                    said, skip, start, traces, undisturbed, until)
import librun

LOOPS = {"epoll": "end_epoll", "libuv": "end_uv", "libevent": "end_event"}
STUCK = 2.2  # seconds: more than what makes a hang
# How it ends: end.how, status, signal, the begin of the sentence, the verdict, a finding. A busy machine
# may give an ordinary end another verdict, as scheduling.
ALARMS = ("crash", "hang", "memory")
ORDINARY = None
ENDS = {
    "segv": ("killed", None, "SIGSEGV", "killed by SIGSEGV after ", "crash", "crash"),
    "abort": ("killed", None, "SIGABRT", "killed by SIGABRT after ", "crash", "crash"),
    "kill": ("killed", None, "SIGKILL", "killed by SIGKILL after ", ORDINARY, "end"),
    "term": ("killed", None, "SIGTERM", "killed by SIGTERM after ", ORDINARY, None),
    "_exit:3": ("exited", 3, None, "exited with status 3 after ", ORDINARY, "end"),
    "exit:3": ("exited", 3, None, "exited with status 3 after ", ORDINARY, "end"),
    "exit:0": ("exited", 0, None, "ended by itself after ", ORDINARY, None),
}


def program(loop):
    return os.path.join(os.environ["TACHO_BUILD"], "tests/e2e", LOOPS[loop])


def tacho(*arguments):
    return subprocess.run([BIN, *arguments], capture_output=True, text=True, timeout=60,
                          env=environment())


def read(command, path):
    p = tacho(command, path, "--json")
    return json.loads(p.stdout) if p.returncode == 0 else {}


def end_of(path):
    processes = read("info", path).get("processes") or [{}]
    return processes[0].get("end", {})


def judge(name, path, how):
    """What is said of a process that ended in this way."""
    kind, status, signal_, begin, verdict, rule = ENDS[how]
    end, report = end_of(path), read("report", path)
    check(f"{name}: its end is known", (end.get("how"), end.get("status"), end.get("signal")) ==
          (kind, status, signal_) and end.get("text", "").startswith(begin), end)
    check(f"{name}: report has the same end", report.get("trace", {}).get("end") == end,
          report.get("trace"))
    category = report.get("verdict", {}).get("category", "crash")
    check(f"{name}: the verdict", category == verdict if verdict else category not in ALARMS,
          report.get("verdict"))
    found = [f["rule"] for f in report.get("findings", []) if f["rule"] in ("crash", "end", "hang")]
    check(f"{name}: findings", found == ([rule] if rule else []), found)
    for command in ("report", "cat", "info"):
        first = tacho(command, path).stdout.split("\n")[0]
        check(f"{name}: first line of {command}", end.get("text", "?") in first, first)


def test_run(tmp, loop):
    for how in ENDS:
        path = f"{tmp}/{loop}-{how}.tacho"
        p = run("-o", path, "--", program(loop), how, cwd=tmp)
        if check(f"run, {loop}, {how}: it is recorded", os.path.exists(path), said(p)):
            judge(f"run, {loop}, {how}", path, how)
    if loop == "epoll":
        return
    summary = read("report", f"{tmp}/{loop}-segv.tacho").get("verdict", {}).get("summary", "")
    check(f"run, {loop}: a crash names the callback that was open, or where in it",
          "on_timer" in summary or "on_tick" in summary, summary)


def test_no_record(tmp, loop):
    """Faults that no handler sees: what was open is the place, and why there is no more is said."""
    for how in ("overflow", "blocked"):
        path = f"{tmp}/{loop}-{how}.tacho"
        p = run("-o", path, "--", program(loop), how, cwd=tmp)
        found = [f for f in read("report", path).get("findings", []) if f["rule"] == "crash"]
        text = json.dumps(found)
        check(f"run, {loop}, {how}: likely reasons are said", len(found) == 1 and
              "no crash record: the stack had overflowed, or the signal was blocked" in text,
              (found, said(p)))
        check(f"run, {loop}, {how}: what was open is the place",
              ("a turn of its loop" if loop == "epoll" else "on_timer") in text, text)


def late(pid, until_file):
    """Holds the process back from before `until_file` is there to a second later. Returns when it
    was there, or 0 if it never was."""
    os.kill(pid, signal.SIGSTOP)
    open(until_file + ".go", "w").close()
    done = until(lambda: os.path.exists(until_file))
    there = time.monotonic_ns() if done else 0
    time.sleep(1.2)
    os.kill(pid, signal.SIGCONT)
    return there


# Starts its arguments once it may, and does not ask how they ended until its own end.
STARTER = """import os, subprocess, sys, time
open(sys.argv[1] + ".up", "w").close()
while not os.path.exists(sys.argv[1] + ".go"): time.sleep(0.02)
p = subprocess.Popen(sys.argv[2:])
os.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOWAIT)
open(sys.argv[1], "w").close()
time.sleep(2.5)
"""


def test_late(tmp):
    """A tacho that hears late of an end: as after the core was written, or of a short life."""
    for name, how, *options in (("segv", "segv"), ("kill", "kill"),
                                ("segment", "segv", "--continuous")):
        path, file = f"{tmp}/late-{name}" + (".tacho" if not options else "s"), f"{tmp}/late-{name}"
        p = start(*options, "-o", path, "--", sys.executable, "-c", STARTER, file,
                  program("epoll"), how, cwd=tmp)
        until(lambda: os.path.exists(file + ".up"))
        heard = late(p.pid, file)
        ended = finish(p)
        info = read("info", path)
        process = (info.get("processes") or [{}])[0]
        end = process.get("end", {})
        first, last = info.get("first_ns") or 0, end.get("ns") or 0
        check(f"late, {name}: when it ended is said", heard and
              end.get("text", "").startswith(ENDS[how][3]), (end, ended))
        check(f"late, {name}: it has its command line",
              process.get("command_line", "").endswith(f"end_epoll {how}"), process)
        if how == "segv":
            check(f"late, {name}: it ended when it crashed", first + 0.2e9 < last < heard,
                  (first, last, heard, end))


def preload():
    p = subprocess.run([BIN, "run", "-q", "--", "sh", "-c", "echo $LD_PRELOAD"],
                       capture_output=True, text=True, env=environment(LD_PRELOAD=None),
                       cwd="/tmp")
    return p.stdout.strip()


def recorded(loop, *arguments, **more):
    """Without a `tacho run`."""
    return subprocess.Popen([program(loop), *arguments], env=environment(LD_PRELOAD=preload()),
                            stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)


def saved(place, pid):
    return [t for t in traces(place) if f"-{pid}-" in t]


def is_followed(pid):
    return f'"pid": {pid}' in tacho("ls", "--json").stdout and \
        read("status", str(pid)).get("agent_pid")


def test_agent(tmp, loop):
    place = fresh(tmp, f"agent-{loop}")
    a = agent("-o", place)
    try:
        for how in ("segv", "kill", "term", "_exit:3", "exit:3"):
            p = recorded(loop, how)
            p.wait()
            found = until(lambda: saved(place, p.pid))
            if check(f"agent, {loop}, {how}: it is saved", found, traces(place)):
                judge(f"agent, {loop}, {how}", found[0], how)
        p = recorded(loop, "deadlock", f"{place}/stuck", cwd=tmp, preexec_fn=undisturbed)
        until(lambda: os.path.exists(f"{place}/stuck") and is_followed(p.pid))
        time.sleep(STUCK)
        p.kill()
        p.wait()
        found = until(lambda: saved(place, p.pid))
        if check(f"agent, {loop}, deadlock: it is saved", found, traces(place)):
            judge_stuck(f"agent, {loop}, deadlock", found[0])
    finally:
        a.terminate()
        finish(a)


def judge_stuck(name, path):
    """Of one that was killed when it had been stuck for STUCK seconds."""
    info, report = read("info", path), read("report", path)
    end = end_of(path)
    check(f"{name}: it was killed", end.get("signal") == "SIGKILL" and
          not end.get("out_of_memory"), end)
    check(f"{name}: the window lasts until its end", info.get("last_ns") == end.get("ns"),
          (info.get("last_ns"), end))
    check(f"{name}: the hang is the finding",
          report.get("verdict", {}).get("category") == "hang", report.get("verdict"))
    worst = max((e["to_ns"] - e["from_ns"] for f in report.get("findings", [])
                 if f["rule"] == "hang" for e in f["evidence"]), default=0)
    check(f"{name}: it lasted until the end", worst >= STUCK * 1e9, worst)


def kill_stuck(tmp, name, *command):
    """tacho run of a program that gets stuck and is killed from outside."""
    file = f"{tmp}/{name}.stuck"
    # A turn that others make long makes it harder to tell that the last one does not end.
    p = start(*command, file, cwd=tmp, preexec_fn=undisturbed)
    if until(lambda: os.path.exists(file)):
        time.sleep(STUCK)
        os.kill(child_of(p.pid), signal.SIGKILL)
    return finish(p)


def test_stuck(tmp, loop):
    for how in ("deadlock", "block"):
        path = f"{tmp}/{loop}-{how}.tacho"
        ended = kill_stuck(tmp, f"{loop}-{how}", "-o", path, "--", program(loop), how)
        if check(f"run, {loop}, {how}: it is recorded", os.path.exists(path), ended):
            judge_stuck(f"run, {loop}, {how}", path)


def test_segments(tmp):
    place = f"{tmp}/segments"
    ended = kill_stuck(tmp, "segments", "--continuous", "--segment-time", "500ms", "-o", place, "--",
                       program("epoll"), "deadlock")
    parts = traces(place)
    if not check("segments: there are several", len(parts) > 1, (parts, ended)):
        return
    ends = [end_of(part).get("how") for part in parts]
    check("segments: the last one carries the end, those before that it ran",
          ends == ["running"] * (len(parts) - 1) + ["killed"], ends)
    judge_stuck("segments", place)


def test_workers(tmp):
    """Children of the command, of which it is the parent, and tacho is not."""
    place = fresh(tmp, "workers")
    p = run("-o", f"{place}/", "--", "sh", "-c",
            f"{program('epoll')} segv; {program('epoll')} _exit:3; exit 0", cwd=place)
    found = sorted(end_of(t).get("text", "").split(" after")[0] for t in traces(place))
    check("workers: their ends are known", found == ["exited with status 3", "killed by SIGSEGV"],
          (found, said(p)))


SEVERAL = """import os, select, signal
for _ in range(2):
    if os.fork() == 0:
        loop = select.epoll()
        for _ in range(20): loop.poll(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
select.epoll().poll(0.01)
for _ in range(2): os.wait()
"""


def test_several(tmp):
    """The same end of several processes is one finding, which says how many."""
    path = os.path.join(tmp, "several.tacho")
    p = run("-o", path, "--", sys.executable, "-c", SEVERAL)
    ends = [f["processes"] for f in read("report", path).get("findings", []) if f["rule"] == "end"]
    check("several: the same end of two processes is one finding", ends == [2], (ends, said(p)))
    told = [line.split() for line in tacho("info", path).stdout.splitlines()]
    threads = [line[1] for line in told if line[:1] == ["threads"] and line[1][0].isdigit()]
    check("several: each has its own threads", threads == ["1,"] * 3, (threads, told))
    lines = tacho("stats", path, "--top", "1").stdout.splitlines()
    more = lines[[line.startswith("time of threads") for line in lines].index(True) + 2]
    check("several: threads that are not shown are counted", "2 more" in more, lines[:5])


def test_live(tmp):
    """A process that runs, then one of which nobody saw the end."""
    p = recorded("epoll", "block", f"{tmp}/live.stuck", cwd=tmp, preexec_fn=undisturbed)
    until(lambda: os.path.exists(f"{tmp}/live.stuck"))
    time.sleep(1.2)
    end, report = end_of(str(p.pid)), read("report", str(p.pid))
    check("live: it runs", end.get("how") == "running" and
          end.get("text", "").startswith("was running after "), end)
    check("live: a hang lasts until now", report.get("verdict", {}).get("category") == "hang",
          report.get("verdict"))
    p.kill()
    p.wait()
    box = boxes()[0]
    end = end_of(box)
    check("nobody saw it: how is not known", end.get("text") == "ended, how is not known" and
          end.get("ns") is None, end)
    row = [line for line in tacho("ls").stdout.splitlines() if str(p.pid) in line]
    check("nobody saw it: ls says so", row and row[0].endswith("dead: ended, how is not known"), row)
    check("nobody saw it: it has its command line",
          " block " in (read("info", box).get("processes") or [{}])[0].get("command_line", ""),
          tacho("info", box).stdout)
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
        boot = bytes.fromhex(f.read().strip().replace("-", ""))
    with open(box, "r+b") as f:
        data = f.read(4096)
        f.seek(data.index(boot))
        f.write(bytes(255 - b for b in boot))
    text = "the machine went down or was restarted before anybody saved this"
    check("earlier boot: it is told", end_of(box).get("text") == text and
          end_of(box).get("earlier_boot"), end_of(box))
    first = tacho("report", box).stdout.split("\n")[0]
    check("earlier boot: first line of report", first == f"end_epoll ({p.pid}): {text}", first)
    check("earlier boot: ls says so", f"dead: {text}" in tacho("ls").stdout, tacho("ls").stdout)
    place = fresh(tmp, "found")
    subprocess.run(["cp", "--sparse=always", "-p", box, f"{tmp}/kept.box"], check=True)
    a = agent("-o", place)
    found = until(lambda: traces(place))
    a.terminate()
    finish(a)
    check("earlier boot: what an agent found says so", found and
          end_of(found[0]).get("text") == text, end_of(found[0]) if found else found)
    subprocess.run(["cp", "--sparse=always", "-p", f"{tmp}/kept.box", box], check=True)
    place = fresh(tmp, "recovered")
    done = tacho("recover", "-o", place)
    check("earlier boot: what was recovered says so", len(traces(place)) == 1 and
          end_of(traces(place)[0]).get("text") == text and text in done.stdout, said(done))


def small_cgroup():
    """A cgroup of 48 MiB, and its file for processes; or why there is none."""
    name = f"tacho-test-{os.getpid()}"
    for root, limits in (("/sys/fs/cgroup/memory", ("memory.limit_in_bytes",
                                                    "memory.memsw.limit_in_bytes")),
                         ("/sys/fs/cgroup", ("memory.max", "memory.swap.max"))):
        path = os.path.join(root, name)
        try:
            os.mkdir(path)
        except OSError:
            continue
        done = 0
        for limit in limits:
            try:
                with open(os.path.join(path, limit), "w", encoding="ascii") as f:
                    f.write("0" if "swap.max" in limit else str(48 << 20))
                done += 1
            except OSError:
                pass
        if done:
            return path, None
        os.rmdir(path)
    return None, "no cgroup with a limit on memory can be made here"


def test_memory(tmp):
    cgroup, reason = small_cgroup()
    if not cgroup:
        skip("memory: the out-of-memory killer is told", reason)
        return
    path = f"{tmp}/memory.tacho"
    try:
        p = run("-o", path, "--", "sh", "-c",
                f"echo $$ >{cgroup}/cgroup.procs; exec {program('epoll')} memory", cwd=tmp)
        end, report = end_of(path), read("report", path)
        check("memory: the out-of-memory killer is told", end.get("out_of_memory") and
              end.get("text", "").startswith("killed by SIGKILL, out of memory, after "),
              (end, said(p)))
        check("memory: it is the cause", report.get("verdict", {}).get("category") == "memory" and
              report["findings"][0]["rule"] == "out-of-memory", report.get("verdict"))
        check("memory: what was sampled is the place", "on_tick" in
              report.get("verdict", {}).get("summary", ""), report.get("verdict"))
        # The count is higher now than when the cgroup was made, and that is nobody else's end.
        p = run("-o", path + "2", "--", "sh", "-c",
                f"echo $$ >{cgroup}/cgroup.procs; exec {program('epoll')} kill", cwd=tmp)
        check("memory: kills of before are not taken for this one",
              end_of(path + "2").get("out_of_memory") is False, (end_of(path + "2"), said(p)))
    finally:
        os.rmdir(cgroup)


def test_sql(tmp):
    p = tacho("sql", f"{tmp}/epoll-segv.tacho", "--format", "json",
              "SELECT end_how, end_signal, exit_status, end_ns > begin_ns AS later FROM processes")
    if "SQLite" in p.stderr:
        skip("sql: the end is in processes", "tacho was built without SQLite")
        return
    rows = [json.loads(line) for line in p.stdout.splitlines()]
    check("sql: the end is in processes", rows == [
        {"end_how": "killed", "end_signal": 11, "exit_status": None, "later": 1}], said(p))


def main():
    with folder() as tmp:
        for loop in LOOPS:
            if not os.path.isfile(program(loop)):
                skip(f"ends of a {loop} loop", f"{loop} is not there")
                continue
            test_run(tmp, loop)
            test_no_record(tmp, loop)
            test_stuck(tmp, loop)
            test_agent(tmp, loop)
        test_segments(tmp)
        test_late(tmp)
        test_workers(tmp)
        test_several(tmp)
        test_memory(tmp)
        test_sql(tmp)
        test_live(tmp)
    return 1 if librun.failures else 0


if __name__ == "__main__":
    sys.exit(main())
