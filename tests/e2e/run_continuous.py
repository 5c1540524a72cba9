#!/usr/bin/env python3
"""tacho run --continuous and tacho agent --continuous: every record in one segment, whatever
happens to the agent."""
import glob
import os
import shlex
import shutil
import subprocess
import sys
import time

from librun import (agent, boxes, check, events, finish, folder, free_port, fresh, info, listens,
                    recorded, run, said, skip, start, traces, until, watched, why)
import librun

SECOND = 10**9

def segments(place):
    return [t for t in traces(place) if info(t).get("segment")]


def polls(place):
    """Of the program's timer, by the time at which they began."""
    found = []
    for path in segments(place):
        found += [e["ns"] for e in events(path) if e["type"] == "poll-begin"]
    return found


def test_all_is_there(tmp):
    place = os.path.join(tmp, "all")
    p = run("--continuous", "--memory", "1M", "--segment-bytes", "16K", "--segment-time", "1s",
            "-o", place, "--", watched(), "turns:4000", cwd=tmp)
    found = polls(place)
    numbers = [info(t)["segment"] for t in segments(place)]
    # One callback begins the turns, one ends the program.
    check("each_record_is_in_one_segment", p.returncode == 0 and len(found) == 4002 and
          len(set(found)) == 4002, (said(p), len(found)))
    check("segments_are_rotated_and_sort", len(numbers) > 2 and
          numbers == list(range(1, len(numbers) + 1)), numbers)
    check("box_is_removed", boxes() == [], boxes())
    check("segments_are_told", f"{len(numbers)} segments" in p.stderr, said(p))
    place = fresh(tmp, "default")
    p = run("--continuous", "--", watched(), "turns:20", cwd=place)
    check("default_folder_is_the_commands", len(segments(place + "/tacho-watched_program")) == 1,
          (said(p), os.listdir(place)))
    p = run("--continuous", "--service", "other", "-o", place + "/tacho-watched_program", "--",
            "touch", place + "/started", cwd=place)
    check("folder_of_another_service_is_left_alone", p.returncode == 0 and
          os.path.exists(place + "/started") and "cannot write segments" in p.stderr and
          len(segments(place + "/tacho-watched_program")) == 1, said(p))


def test_cap(tmp):
    place = os.path.join(tmp, "cap")
    p = run("--continuous", "--memory", "1M", "--segment-bytes", "8K", "--segment-time", "300ms",
            "--max-bytes", "24K", "-o", place, "--", watched(), "turns:3000", cwd=tmp)
    size = sum(os.path.getsize(t) for t in traces(place))
    numbers = [info(t)["segment"] for t in segments(place)]
    check("cap_holds", p.returncode == 0 and 0 < size <= 24 * 1024 and numbers[0] > 1 and
          numbers == list(range(numbers[0], numbers[0] + len(numbers))), (size, numbers, said(p)))
    place = os.path.join(tmp, "windows-cap")
    p = run("--continuous", "--segment-bytes", "8K", "--max-bytes", "8K", "--after", "0",
            "--cooldown", "0", "-o", place, "--", watched(), "turns:5",
            *["trigger:asked", "park:150"] * 12, cwd=tmp)
    size = sum(os.path.getsize(t) for t in traces(place) if t not in segments(place))
    check("cap_holds_for_windows_that_were_asked_for", p.returncode == 0 and
          p.stderr.count("; asked") > 4 and 0 < size <= 8 * 1024, (size, said(p)))
    place = os.path.join(tmp, "tiny-cap")
    p = run("--continuous", "--memory", "1M", "--segment-bytes", "4K", "--max-bytes", "4K", "-o",
            place, "--", watched(), "turns:2000", cwd=tmp)
    check("cap_below_one_segment_is_told", p.returncode == 0 and
          p.stderr.count("nothing is kept") == 1 and "--max-bytes" in p.stderr, said(p))


def test_quiet_program(tmp):
    """Its few records are on disk after the time of a segment, though no chunk is full."""
    place = os.path.join(tmp, "quiet")
    p = start("--continuous", "--segment-time", "500ms", "-o", place, "--", watched(), "turns:20",
              "park:3000", "turns:20", "park:3600000", cwd=tmp)
    try:
        check("quiet_program_is_delivered", until(lambda: len(polls(place)) >= 22, 20),
              os.listdir(tmp))
        check("and_again_when_it_did_something", until(lambda: len(polls(place)) == 44, 20),
              len(polls(place)))
    finally:
        p.terminate()
        finish(p)


def test_exec_and_windows(tmp):
    place, log = os.path.join(tmp, "exec"), os.path.join(tmp, "exec-log")
    p = run("--continuous", "--segment-time", "500ms", "--on", "poll>60ms", "--after", "0",
            "--exec", f'echo "$1|$TACHO_WHY" >> {shlex.quote(log)}', "-o", place, "--", watched(),
            "turns:100", "park:300", "turns:5", "poll:90", "turns:800", cwd=tmp)
    lines = [line.split("|") for line in open(log).read().splitlines()]
    beside = [t for t in traces(place) if not info(t).get("segment")]
    check("exec_gets_each_segment", p.returncode == 0 and
          sorted(line[0] for line in lines) == traces(place) and len(segments(place)) >= 2,
          (said(p), lines))
    check("sentinel_takes_a_window_beside", len(beside) == 1 and
          why(beside[0]).startswith("poll>60ms: "), (beside, said(p)))


def test_sched(tmp):
    """What the kernel tells is in the segments."""
    place = os.path.join(tmp, "sched")
    p = run("--continuous", "--sched", "--kernel", "-o", place, "--", watched(), "turns:200", "burn:300",
            "turns:200", cwd=tmp)
    if "has no effect" in p.stderr or "without context switches" in p.stderr:
        skip("switches_are_in_segments", p.stderr.splitlines()[0])
        return
    found = [e for path in segments(place) for e in events(path)]
    out = sum(e["type"] == "switch-out" for e in found)
    samples = sum(e["type"] == "kernel-sample" for e in found)
    check("switches_are_in_segments", p.returncode == 0 and out >= 200, (said(p), out))
    check("samples_are_in_segments", samples >= 10, (said(p), samples))
    own = [e["ns"] for e in found if e["type"] in ("park", "unpark")]
    away = [e for e in found if not min(own) - SECOND < e["ns"] < max(own) + SECOND]
    check("the_kernel_tells_times_of_the_same_clock", not away, (min(own), max(own), away[:3]))


def test_redis(tmp):
    if not shutil.which("redis-server") or not shutil.which("redis-benchmark"):
        skip("redis_continuous", "redis-server and redis-benchmark are not installed")
        return
    place, port = os.path.join(tmp, "redis"), free_port()
    p = start("--continuous", "--memory", "16M", "--segment-bytes", "1M", "--no-symbols", "-o",
              place, "--", "redis-server", "--port", str(port), "--save", "", "--bind",
              "127.0.0.1", cwd=tmp)
    try:
        until(lambda: listens(port))
        bench = subprocess.run(["redis-benchmark", "-p", str(port), "-n", "100000", "-q", "-t",
                                "set"], capture_output=True, text=True, timeout=120)
        subprocess.run(["redis-cli", "-p", str(port), "shutdown", "nosave"], capture_output=True,
                       timeout=10)
    finally:
        p.terminate()
        status, _, err = finish(p)
    ready = missing = 0
    for path in segments(place):
        for e in events(path):
            ready += e["type"] == "ready"
            missing += e.get("missing", 0) if e["type"] == "resume" else 0
    check("redis_requests_are_all_there", status == 0 and bench.returncode == 0 and
          ready >= 100000 and missing == 0, (status, err, ready, missing))


def test_agent(tmp):
    """The agent is killed again and again; what the box could hold is delivered once."""
    place = os.path.join(tmp, "agent")
    options = ["--continuous", "--service", "shop", "--segment-time", "300ms", "-o", place]
    p = recorded("turns:6000", f"touch:{tmp}/agent-done", f"await:{tmp}/agent-end", cwd=tmp,
                 env={"TACHO_SERVICE": "shop"})
    a = None
    try:
        until(boxes)
        while not os.path.exists(tmp + "/agent-done"):
            a = agent(*options)
            time.sleep(0.7)
            a.kill()
            a.communicate()
        a = agent(*options)
        until(lambda: len(librun.switches_of_threads(a.pid)) >= 2)
        open(tmp + "/agent-end", "w").close()
        p.wait(30)
        until(lambda: boxes() == [])
        a.terminate()
        status, _, err = finish(a)
        found = polls(place)
        # Those that wait for the end are turns as well.
        check("killed_agents_lose_nothing", status == 0 and len(found) >= 6003 and
              len(set(found)) == len(found), (status, err, len(found), len(set(found))))
        check("no_part_is_left", glob.glob(place + "/*.part") == [], os.listdir(place))
    finally:
        open(tmp + "/agent-end", "w").close()
        for x in (a, p):
            x.kill()
            x.wait()


def main():
    if not watched():
        skip("continuous", "libuv was not there when tacho was built")
        return 0
    with folder() as tmp:
        os.chmod(tmp, 0o755)
        test_all_is_there(tmp)
        test_cap(tmp)
        test_quiet_program(tmp)
        test_exec_and_windows(tmp)
        test_sched(tmp)
        test_redis(tmp)
        test_agent(tmp)
    return 1 if librun.failures else 0


if __name__ == "__main__":
    sys.exit(main())
