#!/usr/bin/env python3
"""tacho run --on: each condition with a real program, and what comes of the windows."""
import os
import re
import shlex
import signal
import subprocess
import sys
import time

from librun import (boxes, check, events, finish, folder, fresh, info, run, said, skip, start,
                    switches_of_threads, traces, until, watched, why)
import librun


def windows(place):
    """Those that were taken while the program ran, in the order in which they were."""
    return sorted((t for t in traces(place) if info(t).get("taken_by") == "dump"),
                  key=os.path.getmtime)


def observe(tmp, name, condition, *steps, options=(), **more):
    """The recorder watches from its first record on: the first step may hold a condition."""
    place = fresh(tmp, name)
    p = run("--on", condition, "-o", place, *options, "--", watched(), *steps, cwd=place,
            **more)
    return place, p


def test_conditions(tmp):
    """Each fires for what it is about, and not below its limit."""
    for name, condition, steps, words in [
        ("poll", "poll>60ms", ["poll:90"], "a poll took"),
        ("lag", "lag>60ms", ["late:90"], "lag>60ms: "),
        ("wake", "wake>60ms", ["wake:90"], "wake>60ms: "),
        ("queue", "queue>12", ["queue:40"], "queue>12: "),
    ]:
        place, p = observe(tmp, name, condition, *steps, "turns:5", "park:400",
                           options=("--after", "100ms"))
        found = windows(place)
        check(f"{name}_takes_a_window", p.returncode == 0 and len(found) == 1 and
              why(found[0]).startswith(condition + ": ") and words in why(found[0]),
              (said(p), [why(f) for f in found]))
        check(f"{name}_final_window_is_kept", len(traces(place)) == 2, traces(place))
        limit = condition.replace("60ms", "40s").replace("12", "4000")
        place, p = observe(tmp, name + "-below", limit, *steps, "turns:5", "park:200")
        check(f"{name}_below_its_limit_takes_none", p.returncode == 0 and windows(place) == [] and
              len(traces(place)) == 1, said(p))


def test_sched(tmp):
    """Competitors on its CPU; the policy of the machine may be kind to us, hence many tries."""
    cpu = min(os.sched_getaffinity(0))
    others = [subprocess.Popen(["taskset", "-c", str(cpu), sys.executable, "-c",
                                "while True: pass"]) for _ in range(4)]
    try:
        place = fresh(tmp, "sched")
        p = run("--on", "sched>5ms", "--after", "0", "-o", place, "--", "taskset", "-c", str(cpu),
                watched(), *["burn:40"] * 8, cwd=place)
        found = windows(place)
        check("sched_takes_a_window", p.returncode == 0 and found and
              "sched>5ms: " in why(found[0]), said(p))
    finally:
        for o in others:
            o.kill()
            o.wait()


def test_stall(tmp):
    place = fresh(tmp, "stall")
    p = start("--on", "stall>300ms", "--after", "0", "-o", place, "--", watched(),
              f"block:{place}/go", "turns:5", cwd=place)
    try:
        found = until(lambda: windows(place))
        check("stall_is_seen_from_outside", found and "stall>300ms: " in why(found[0]) and
              p.poll() is None, (found, [why(f) for f in found or []]))
        time.sleep(1)
        check("a_stall_is_told_once", len(windows(place)) == 1, windows(place))
        open(place + "/go", "w").close()
        status, _, err = finish(p)
        check("stalled_program_goes_on", status == 0 and len(traces(place)) == 2, (status, err))
    finally:
        open(place + "/go", "w").close()
        finish(p)
    # Stopped in the middle of a callback, a process is not different from one that hangs.
    place = fresh(tmp, "stopped")
    p = start("--on", "stall>300ms", "--after", "0", "-o", place, "--", watched(),
              f"block:{place}/go", cwd=place)
    pid = 0
    try:
        until(lambda: os.path.exists(place + "/go.in") and boxes())
        pid = librun.child_of(p.pid)
        os.kill(pid, signal.SIGSTOP)
        found = until(lambda: windows(place))
        check("stopped_loop_is_a_stall", found and "stall>300ms: " in why(found[0]), found)
    finally:
        open(place + "/go", "w").close()
        if pid:
            os.kill(pid, signal.SIGCONT)
        finish(p)


WAITS = """
import os, select, sys, time
for _ in range(int(sys.argv[1])):
    select.poll().poll(2)
open(sys.argv[2] + ".in", "w").close()
end = time.monotonic() + float(sys.argv[3])
while time.monotonic() < end and not os.path.exists(sys.argv[2]):
    pass
"""


def test_stall_of_waits(tmp):
    """Of a program whose callbacks are not seen: who waits again and again is a loop."""
    for name, waits, seconds in [("once", 1, 3), ("often", 30, 60)]:
        place = fresh(tmp, "stall-" + name)
        p = start("--on", "stall>300ms", "--after", "0", "-o", place, "--", sys.executable, "-c",
                  WAITS, str(waits), place + "/go", str(seconds), cwd=place)
        try:
            if name == "often":
                found = until(lambda: windows(place))
                check("a_loop_that_computes_is_a_stall", found and
                      "stall>300ms: " in why(found[0]), found)
                open(place + "/go", "w").close()
            status, _, err = finish(p)
            if name == "once":
                check("who_waited_once_may_compute", status == 0 and windows(place) == [] and
                      len(traces(place)) == 1, (status, err))
        finally:
            open(place + "/go", "w").close()
            finish(p)


def test_combined(tmp):
    place, p = observe(tmp, "and", "poll>60ms and queue>12", "poll:90", "park:1500",
                       "queue:40", "park:1500", "poll:90", "queue:40", "park:300",
                       options=("--after", "0"))
    found = windows(place)
    check("and_needs_both_at_once", len(found) == 1 and "poll>60ms" in why(found[0]) and
          "queue>12" in why(found[0]), (said(p), [why(f) for f in found]))
    place, p = observe(tmp, "or", "queue>4000 or poll>60ms", "poll:90", "park:100",
                       options=("--after", "0"))
    found = windows(place)
    check("or_needs_one", len(found) == 1 and why(found[0]).startswith("poll>60ms: "), said(p))
    place, p = observe(tmp, "twice", "queue>4000", "poll:90", "park:100",
                       options=("--after", "0", "--on", "poll>60ms"))
    check("several_are_joined_by_or", len(windows(place)) == 1, said(p))


def test_after(tmp):
    """What followed the trigger is in the file."""
    place, p = observe(tmp, "after", "poll>60ms", "poll:90", "turns:600",
                       options=("--after", "400ms"))
    found = windows(place)
    check("after_takes_one", len(found) == 1, said(p))
    if found:
        when = info(found[0])["why_ns"]
        later = [e for e in events(found[0]) if e["ns"] > when + 300_000_000]
        check("events_after_the_trigger_are_in_it", len(later) > 10, len(later))
        end = max(e["ns"] for e in events(found[0]))
        check("window_is_not_taken_at_once", end - when >= 300_000_000, end - when)


def test_cooldown(tmp):
    many = ["poll:90", "park:20"] * 6
    place, p = observe(tmp, "cooldown", "poll>60ms", *many,
                       options=("--after", "0", "--cooldown", "60s"))
    check("cooldown_lets_one_through", len(windows(place)) == 1, said(p))
    place, p = observe(tmp, "cooled", "poll>60ms", *many, "park:1500", "poll:90",
                       "park:200", options=("--after", "0", "--cooldown", "1500ms"))
    found = windows(place)
    told = [sum(map(int, re.findall(r"\((\d+) more ", why(f)))) for f in found]
    # On a busy machine the six may take longer than the cooldown. Each is a window, or told.
    check("suppressed_ones_are_told", len(found) >= 2 and told[0] == 0 and sum(told) > 0 and
          len(found) + sum(told) >= 7, (said(p), [why(f) for f in found]))
    place, p = observe(tmp, "hot", "poll>60ms", *["poll:90", "park:300"] * 3,
                       options=("--after", "0", "--cooldown", "0"))
    check("without_cooldown_each_is_kept", len(windows(place)) == 3, said(p))


def test_keep(tmp):
    many = ["poll:90", "park:300"] * 4
    place, p = observe(tmp, "keep", "poll>60ms", *many,
                       options=("--after", "0", "--cooldown", "0", "--keep", "2"))
    check("keep_deletes_the_oldest", len(windows(place)) == 1 and len(traces(place)) == 2 and
          "3 older windows" in p.stderr, (said(p), traces(place)))
    mine = os.path.join(tmp, "bytes", "mine.tacho")
    os.makedirs(os.path.dirname(mine))
    with open(mine, "w") as f:
        f.write("not yours")
    place = os.path.dirname(mine)
    p = run("--on", "poll>60ms", "--after", "0", "--cooldown", "0", "--max-bytes", "5K", "-o",
            place, "--no-symbols", "--", watched(), *["poll:90", "park:300"] * 5,
            cwd=place)
    kept = [f for f in traces(place) if f != mine]
    live = [f for f in kept if info(f).get("taken_by") == "dump"]
    last = [f for f in kept if f not in live]
    check("max_bytes_holds_for_windows", p.returncode == 0 and len(last) == 1 and
          (not live or sum(os.path.getsize(f) for f in kept) <= 5120) and
          "older windows" in p.stderr, (said(p), [(f, os.path.getsize(f)) for f in kept]))
    check("files_of_others_are_kept", open(mine).read() == "not yours")


def test_exec(tmp):
    place = fresh(tmp, "exec")
    log = os.path.join(place, "log")
    command = f'echo "$1|$TACHO_FILE|$TACHO_PID|$TACHO_WHY" >> {shlex.quote(log)}; test -s "$1"'
    p = run("--on", "poll>60ms", "--after", "0", "--cooldown", "0", "--exec", command, "-o", place,
            "--", watched(), *["poll:90", "park:300"] * 2, cwd=place)
    lines = [line.split("|") for line in open(log).read().splitlines()]
    check("exec_gets_each_file_in_order", p.returncode == 0 and len(lines) == 3 and
          sorted(line[0] for line in lines) == sorted(traces(place)) and
          all(line[0] == line[1] for line in lines) and
          [bool(line[3]) for line in lines] == [True, True, False] and
          lines[0][3].startswith("poll>60ms"), (said(p), lines))
    check("exec_knows_the_process", len({line[2] for line in lines}) == 1 and
          f"({lines[0][2]})" in p.stderr, (lines, p.stderr))
    p = run("--exec", "exit 3", "-o", place, "--", watched(), "turns:5", cwd=place)
    check("failing_exec_is_told", p.returncode == 0 and "3" in p.stderr.split("exec", 1)[-1] and
          "--exec" in p.stderr, said(p))
    # The last one is waited for.
    p = run("--exec", f"sleep 1; echo done > {shlex.quote(place)}/slow", "-o", place, "--",
            watched(), "turns:5", cwd=place)
    check("exec_is_waited_for", p.returncode == 0 and os.path.exists(place + "/slow"), said(p))
    # All processes of a shell are one file: its command runs once.
    log, out = os.path.join(place, "names"), os.path.join(place, "out.tacho")
    p = run("--exec", f'echo "$1" >> {shlex.quote(log)}', "-o", out, "--", "sh", "-c",
            f"{shlex.quote(watched())} turns:5; {shlex.quote(watched())} turns:50; "
            f"{shlex.quote(watched())} turns:5", cwd=place)
    lines = open(log).read().splitlines()
    check("exec_gets_one_file_once", p.returncode == 0 and lines == [out] and
          os.path.exists(out), (said(p), lines))


def test_exit(tmp):
    for name, condition, step, kept in [("bad", "exit!=0", "exit:3", 1), ("good", "exit!=0",
                                        "exit:0", 0), ("that", "exit=3", "exit:3", 1),
                                        ("other", "exit=3", "exit:4", 0),
                                        ("abort", "exit!=0", "abort", 1),
                                        ("without", "poll>9s", "exit:0", 1)]:
        place, p = observe(tmp, "exit-" + name, condition, "turns:5", step)
        found = traces(place)
        check(f"exit_{name}_keeps_{kept}", len(found) == kept and boxes() == [] and
              ("no condition of --on held" in p.stderr) == (not kept), said(p))
        if kept and name != "without":
            check(f"exit_{name}_says_why", why(found[0]).startswith(condition + ": "),
                  why(found[0]))


def test_triggers(tmp):
    place = fresh(tmp, "own")
    p = run("-o", place, "--after", "0", "--", watched(), "turns:5", "trigger:I am not well",
            "park:500", cwd=place)
    found = windows(place)
    check("tacho_trigger_takes_a_window", p.returncode == 0 and len(found) == 1 and
          why(found[0]) == "I am not well", (said(p), [why(f) for f in found]))
    place = fresh(tmp, "last-words")
    p = run("-o", place, "--", watched(), "turns:5", "trigger:last words", "_exit:4", cwd=place)
    found = traces(place)
    check("a_trigger_just_before_the_end_is_why", p.returncode == 4 and len(found) == 1 and
          why(found[0]) == "last words", (said(p), [why(f) for f in found]))
    place = fresh(tmp, "signal")
    p = start("--trigger-signal", "USR1", "-o", place, "--", watched(), "turns:5",
              f"touch:{place}/ready", f"await:{place}/go", cwd=place)
    try:
        until(lambda: os.path.exists(place + "/ready"))
        p.send_signal(signal.SIGUSR1)
        found = until(lambda: windows(place))
        check("signal_is_why", found and why(found[0]) == "signal SIGUSR1", found)
    finally:
        open(place + "/go", "w").close()
        status, _, err = finish(p)
    check("cpu_time_is_told", status == 0 and "tacho itself used" in err, (status, err))
    check("cpu_time_is_in_the_file", all(info(f).get("agent_cpu_ns", 0) > 0 for f in found or [0]),
          found)


def test_usage(tmp):
    marker = os.path.join(tmp, "started")
    for name, options, words in [
        ("keep_without_on", ["--keep", "3"], "--keep needs --on"),
        ("bytes_without_on", ["--max-bytes", "1M"], "--memory"),
        ("segments_without_continuous", ["--segment-bytes", "1M"], "needs --continuous"),
        ("segment_time_without_continuous", ["--segment-time", "1m"], "needs --continuous"),
        ("continuous_to_a_file", ["--continuous", "-o", tmp + "/x.tacho"], "give a folder"),
        ("continuous_exit", ["--continuous", "--on", "exit!=0"], "contin"),
        ("cap_below_segment", ["--continuous", "--max-bytes", "1M", "--segment-bytes", "2M"],
         "less than one segment"),
        ("sched_without_kernel", ["--sched", "--no-kernel"], "contradict"),
        ("kernel_without_kernel", ["--kernel", "--no-kernel"], "contradict"),
        ("empty_command", ["--exec", " "], "empty"),
        ("keep_none", ["--on", "poll>1ms", "--keep", "0"], "--keep"),
        ("negative_after", ["--on", "poll>1ms", "--after", "-1s"], "negative"),
        ("force_continuous", ["--continuous", "--force", "-o", tmp], "--force needs -o"),
    ]:
        p = run(*options, "--", "touch", marker, cwd=tmp)
        check(f"usage_{name}", p.returncode == 2 and words in p.stderr and
              not os.path.exists(marker), said(p))
    check("usage_makes_nothing", not os.path.exists(os.path.join(tmp, "tacho-touch")))
    for text, at in [("poll>50", 7), ("pol>50ms", 0), ("poll>50ms and", 13), ("poll=1ms", 4),
                     ("queue>many", 6), ("", 0)]:
        p = run("--on", text, "--", "touch", marker, cwd=tmp)
        lines = p.stderr.splitlines()
        check(f"caret_in_{text or 'nothing'}", p.returncode == 2 and len(lines) == 3 and
              lines[1] == "  " + text and lines[2] == "  " + " " * at + "^" and
              not os.path.exists(marker), said(p))


def test_idle(tmp):
    """While the program does nothing, nothing happens here, whatever is watched."""
    for name, options in [("flight", ["--on", "poll>50ms or wake>50ms or lag>50ms or stall>1s "
                                      "or queue>50 or sched>50ms"]),
                          ("continuous", ["--continuous", "--segment-time", "500ms"])]:
        place = fresh(tmp, "idle-" + name)
        p = start(*options, "-o", place + "/out" if name == "continuous" else place, "--",
                  watched(), "turns:50", f"touch:{place}/idle", "park:3600000", cwd=place)
        try:
            until(lambda: os.path.exists(place + "/idle"))

            # Others who make something in /dev/shm wake up what runs as root.
            def asleep():
                before = switches_of_threads(p.pid)
                time.sleep(2)
                return switches_of_threads(p.pid) == before
            check(f"{name}_does_not_wake_up", until(asleep, 60), switches_of_threads(p.pid))
            check(f"{name}_has_a_thread_for_the_box", len(switches_of_threads(p.pid)) == 2,
                  switches_of_threads(p.pid))
        finally:
            p.terminate()
            status, _, err = finish(p)
        check(f"{name}_ends", status == 143, (status, err))


def test_truncated(tmp):
    """A program that truncates its own box harms itself at most."""
    place = fresh(tmp, "truncated")
    p = start("--on", "poll>50ms or stall>200ms", "-o", place, "--", watched(),
              f"block:{place}/go", "park:200", cwd=place)
    try:
        until(lambda: os.path.exists(place + "/go.in") and boxes())
        box = boxes()
        os.truncate(box[0], 0)
        time.sleep(1)
        open(place + "/go", "w").close()
        status, _, err = finish(p)
        # The program itself meets SIGBUS at its next store.
        check("tacho_survives_a_truncated_box", status in (135, 139, 0), (status, err))
    finally:
        open(place + "/go", "w").close()
        finish(p)
        for b in boxes():
            os.unlink(b)


def test_full_disk(tmp):
    place = fresh(tmp, "full")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=755", "tmpfs", place],
                      capture_output=True).returncode:
        skip("full_disk_in_flight", "a small file system cannot be mounted here")
        return
    go = os.path.join(tmp, "full-go")
    p = start("--on", "poll>60ms", "--after", "0", "--cooldown", "0", "-o", place, "--", watched(),
              f"touch:{place}/in", f"await:{go}", "poll:90", "park:300", "poll:90",
              "park:300", f"touch:{tmp}/full-twice", f"await:{go}-on", cwd=tmp)
    try:
        until(lambda: os.path.exists(place + "/in"))
        with open(place + "/filler", "wb", 0) as f:
            try:
                while True:
                    f.write(bytes(4096))
            except OSError:
                pass
        open(go, "w").close()
        until(lambda: os.path.exists(tmp + "/full-twice"))
        check("program_goes_on_when_the_disk_is_full", p.poll() is None and traces(place) == [])
        os.unlink(place + "/filler")
        found = until(lambda: windows(place), 60)
        check("window_is_saved_when_there_is_room", found and "poll>60ms" in why(found[0]), found)
        open(go + "-on", "w").close()
        status, _, err = finish(p)
        check("full_disk_is_said_once", status == 0 and err.lower().count("no space left") == 1 and
              "tried again" in err and "saved again" in err, (status, err))
    finally:
        for name in (go, go + "-on"):
            open(name, "w").close()
        finish(p)
        subprocess.run(["umount", "-l", place], capture_output=True)


def main():
    if not watched():
        skip("sentinels", "libuv was not there when tacho was built")
        return 0
    with folder() as tmp:
        os.chmod(tmp, 0o755)
        test_conditions(tmp)
        test_sched(tmp)
        test_stall(tmp)
        test_stall_of_waits(tmp)
        test_combined(tmp)
        test_after(tmp)
        test_cooldown(tmp)
        test_keep(tmp)
        test_exec(tmp)
        test_exit(tmp)
        test_triggers(tmp)
        test_usage(tmp)
        test_idle(tmp)
        test_truncated(tmp)
        test_full_disk(tmp)
    return 1 if librun.failures else 0


if __name__ == "__main__":
    sys.exit(main())
