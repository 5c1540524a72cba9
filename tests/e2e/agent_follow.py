#!/usr/bin/env python3
"""tacho agent: follows all processes that record, takes over from dead agents, ends in order."""
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from librun import (BIN, agent, alive, boxes, check, child_of, end, environment, finish, folder,
                    fresh, others_may_run, recorded, said, skip, start, switches_of_threads, traces, until,
                    watched, why)
import librun

BEGIN = ["turns:100", "park:300", "turns:5"]


def follows(pid):
    """Whether an agent looks after a process, by what the box says."""
    p = subprocess.run([BIN, "status", str(pid), "--json"], capture_output=True, text=True,
                       env=environment())
    return p.returncode == 0 and '"agent_pid":null' not in p.stdout.replace(" ", "") and \
        "agent_pid" in p.stdout


def saved(place, pid):
    return [t for t in traces(place) if f"-{pid}-" in t]


def test_follows(tmp):
    place = fresh(tmp, "follows")
    old = recorded(*BEGIN, f"await:{place}/old", "poll:90", f"await:{place}/end", cwd=place)
    a = new = killed = quiet = None
    try:
        until(boxes)
        a = agent("-o", place, "--on", "poll>60ms", "--after", "0")
        check("boxes_that_are_there_are_followed", until(lambda: follows(old.pid)), boxes())
        new = recorded(*BEGIN, f"await:{place}/new", "poll:90", f"await:{place}/end", cwd=place)
        until(lambda: follows(new.pid))
        time.sleep(0.5)
        open(place + "/new", "w").close()
        found = until(lambda: saved(place, new.pid))
        check("new_boxes_are_followed", found and "poll>60ms" in why(found[0]), found)
        time.sleep(0.5)
        open(place + "/old", "w").close()
        found = until(lambda: saved(place, old.pid))
        check("sentinels_reach_old_boxes", found and "poll>60ms" in why(found[0]), found)
        killed = recorded("turns:20", f"touch:{place}/kill", "park:60000", cwd=place)
        until(lambda: os.path.exists(place + "/kill") and follows(killed.pid))
        killed.kill()
        killed.wait()
        check("window_of_a_killed_process_is_saved", until(lambda: saved(place, killed.pid)),
              traces(place))
        quiet = recorded("turns:20", "park:300", "exit:0", cwd=place)
        pid = quiet.pid
        quiet.wait()
        check("box_of_an_orderly_end_is_deleted", until(lambda: not any(
            os.path.basename(b).startswith(f"{pid}-") for b in boxes())), boxes())
        check("window_of_an_orderly_end_is_not_kept", saved(place, pid) == [], traces(place))
        kept = recorded("turns:20", "park:300", "exit:0", cwd=place, env={"TACHO_KEEP_BOX": "1"})
        until(lambda: follows(kept.pid))
        kept.wait()
        time.sleep(0.5)
        mine = [b for b in boxes() if os.path.basename(b).startswith(f"{kept.pid}-")]
        check("box_that_shall_stay_stays", len(mine) == 1 and saved(place, kept.pid) == [],
              (boxes(), traces(place)))
        for b in mine:
            os.unlink(b)
        a.terminate()
        status, _, err = finish(a)
        check("agent_ends_in_order", status == 0 and "tacho itself used" in err, (status, err))
        check("agent_lets_go", not follows(old.pid) and alive(old.pid), boxes())
        open(place + "/end", "w").close()
        old.wait(30)
        new.wait(30)
    finally:
        for name in ("new", "end"):
            open(f"{place}/{name}", "w").close()
        for p in (a, old, new, killed, quiet):
            if p:
                p.terminate()
                p.wait()
    check("programs_remove_their_boxes_again", until(lambda: boxes() == []), boxes())


def test_all_ends(tmp):
    place = fresh(tmp, "ends")
    a = agent("-o", place, "--all-ends")
    try:
        until(lambda: len(switches_of_threads(a.pid)) >= 1)
        p = recorded("turns:50", "park:500", "exit:0", cwd=place)
        p.wait()
        check("all_ends_keeps_orderly_ends", until(lambda: saved(place, p.pid)), traces(place))
    finally:
        a.terminate()
        finish(a)
    check("all_ends_removes_the_box", boxes() == [], boxes())


def test_killed_agent(tmp):
    """The program goes on, and the next agent takes over."""
    place = fresh(tmp, "killed")
    p = recorded(*BEGIN, f"await:{place}/go", "poll:90", "turns:100", f"touch:{place}/done",
                 f"await:{place}/end", cwd=place)
    a = b = None
    try:
        until(boxes)
        a = agent("-o", place, "--on", "poll>60ms", "--after", "0")
        until(lambda: follows(p.pid))
        a.kill()
        a.wait()
        time.sleep(0.3)
        check("program_outlives_the_agent", p.poll() is None)
        b = agent("-o", place, "--on", "poll>60ms", "--after", "0")
        until(lambda: len(switches_of_threads(b.pid)) >= 2)
        time.sleep(0.5)
        open(place + "/go", "w").close()
        found = until(lambda: saved(place, p.pid))
        check("the_next_agent_takes_over", found and "poll>60ms" in why(found[0]), found)
        check("program_did_all_it_had_to", until(lambda: os.path.exists(place + "/done")))
        # It dies again, and the program with nobody there.
        b.kill()
        b.wait()
        p.kill()
        p.wait()
        check("box_waits_for_an_agent", len(boxes()) == 1, boxes())
        b = agent("-o", place)
        check("boxes_of_the_dead_are_saved", until(lambda: len(saved(place, p.pid)) == 2) and
              until(lambda: boxes() == []), (saved(place, p.pid), boxes()))
    finally:
        for x in (p, a, b):
            if x:
                x.kill()
                x.wait()


def test_two_agents(tmp):
    place = fresh(tmp, "two")
    a = agent("-o", place)
    try:
        until(lambda: os.path.exists(os.path.join(os.environ["TACHO_BOX_DIR"], "agent.lock")) and
              open(os.path.join(os.environ["TACHO_BOX_DIR"], "agent.lock")).read().strip() ==
              str(a.pid))
        p = subprocess.run([BIN, "agent", "-o", place], capture_output=True, text=True,
                           env=environment(), timeout=30)
        check("there_is_one_agent", p.returncode == 1 and str(a.pid) in p.stderr, said(p))
    finally:
        a.kill()
        a.wait()
    b = agent("-o", place)
    try:
        time.sleep(0.5)
        check("a_dead_agents_lock_is_taken", b.poll() is None, "")
    finally:
        b.terminate()
        finish(b)


def test_beside_run(tmp):
    """What a `tacho run` follows is left to it while it lives."""
    place, theirs = fresh(tmp, "beside"), fresh(tmp, "beside-run")
    a = agent("-o", place)
    r = None
    pid = 0
    try:
        r = start("-o", theirs, "--", watched(), "turns:100", f"touch:{place}/on", "park:60000",
                  cwd=theirs)
        until(lambda: os.path.exists(place + "/on"))
        pid = child_of(r.pid)
        time.sleep(3)  # longer than boxes are left to a tacho run that does not take them
        os.kill(pid, signal.SIGKILL)
        status, _, err = finish(r)
        check("run_keeps_its_boxes", status == 137 and len(traces(theirs)) == 1 and
              traces(place) == [], (status, err, traces(place)))
        r = start("-o", theirs, "--", watched(), "turns:100", f"touch:{place}/again", "park:60000",
                  cwd=theirs)
        until(lambda: os.path.exists(place + "/again"))
        pid = child_of(r.pid)
        time.sleep(0.5)
        r.kill()
        r.wait()
        time.sleep(0.5)
        end(pid)
        check("boxes_of_a_dead_run_are_taken_over", until(lambda: saved(place, pid)),
              (traces(place), boxes()))
    finally:
        for x in (a, r):
            if x:
                x.kill()
                x.communicate()
        if pid:
            end(pid)


def test_service(tmp):
    place = fresh(tmp, "service")
    a = agent("-o", place, "--service", "shop")
    try:
        until(lambda: len(switches_of_threads(a.pid)) >= 1)
        shop = recorded("turns:50", "park:500", "_exit:0", cwd=place, env={"TACHO_SERVICE": "shop"})
        other = recorded("turns:50", "park:500", "_exit:0", cwd=place,
                         env={"TACHO_SERVICE": "shoppe"})
        shop.wait()
        other.wait()
        check("service_is_saved", until(lambda: saved(place, shop.pid)), traces(place))

        def mine(pid):
            return [b for b in boxes() if os.path.basename(b).startswith(f"{pid}-")]
        check("service_is_done", until(lambda: not mine(shop.pid)), boxes())
        time.sleep(0.5)
        check("other_services_are_left_alone", saved(place, other.pid) == [] and
              len(mine(other.pid)) == 1, (traces(place), boxes()))
    finally:
        a.terminate()
        finish(a)
        for b in boxes():
            os.unlink(b)


def test_host(tmp):
    """Root follows processes of all users, where they put their boxes by themselves."""
    if os.geteuid() != 0:
        skip("root_follows_other_users", "not root")
        return
    if not others_may_run():
        skip("root_follows_other_users", "the build is in a folder closed to others")
        return
    place, service = fresh(tmp, "host"), f"host-{os.getpid()}"
    here = os.environ.pop("TACHO_BOX_DIR")
    a = p = None
    try:
        # Whoever else records on this machine is left alone.
        a = agent("-o", place, "--service", service)
        p = recorded("turns:50", "park:60000", cwd="/", env={"TACHO_SERVICE": service}, user=65534)
        check("root_follows_other_users", until(lambda: len(switches_of_threads(a.pid)) == 2),
              switches_of_threads(a.pid))
        p.kill()
        p.wait()
        check("root_saves_windows_of_others", until(lambda: saved(place, p.pid)), traces(place))
    finally:
        os.environ["TACHO_BOX_DIR"] = here
        for x in (a, p):
            if x:
                x.kill()
                x.communicate()


def boxes_open_in(pid):
    """Boxes that the process has open."""
    folder, count = f"/proc/{pid}/fd", 0
    for fd in os.listdir(folder):
        try:
            count += os.readlink(f"{folder}/{fd}").endswith(".box")
        except OSError:
            pass
    return count


def test_idle(tmp):
    place = fresh(tmp, "idle")
    programs = [recorded("turns:50", "park:3600000", cwd=place) for _ in range(3)]
    a = agent("-o", place, "--on", "poll>50ms or stall>1s or wake>20ms")
    try:
        until(lambda: boxes_open_in(a.pid) == 3)

        def asleep():
            before = switches_of_threads(a.pid)
            time.sleep(3)
            return boxes_open_in(a.pid) == 3 and switches_of_threads(a.pid) == before
        # One thread listens to all of them.
        check("threads_do_not_grow_with_boxes", len(switches_of_threads(a.pid)) == 2,
              switches_of_threads(a.pid))
        check("agent_does_not_wake_up", until(asleep, 60), switches_of_threads(a.pid))
    finally:
        for p in (a, *programs):
            p.terminate()
            p.communicate()
        for b in boxes():
            os.unlink(b)


def strace_works():
    p = subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], capture_output=True) \
        if shutil.which("strace") else None
    return p is not None and p.returncode == 0


def test_unfinished(tmp):
    """A box has its name before it has its contents: the agent looks again at once, then less
    and less often, by what it tells the kernel to wait for."""
    if not strace_works():
        skip("unfinished_box_is_looked_at_soon", "strace does not work here")
        return
    place = fresh(tmp, "unfinished")
    log = os.path.join(place, "calls")
    with open("/proc/self/stat") as f:
        begun = f.read().rsplit(")", 1)[1].split()[19]
    box = os.path.join(os.environ["TACHO_BOX_DIR"], f"{os.getpid()}-{begun}-0.box")
    p = subprocess.Popen(["strace", "-qq", "-e", "trace=ppoll", "-o", log, BIN, "agent", "-o",
                          place], env=environment(), stderr=subprocess.PIPE, text=True)

    def waits():
        with open(log) as f:
            return [int(s) * 10**9 + int(ns) for s, ns in
                    re.findall(r"tv_sec=(\d+), tv_nsec=(\d+)", f.read())]
    try:
        p.stderr.readline()  # it has begun
        open(box, "w").close()
        until(lambda: len(waits()) >= 16)
        found = waits()
        # The first may be longer: an agent that lacked the CPU while it looked rests for nine times that.
        check("unfinished_box_is_looked_at_soon", len(found) >= 16 and
              min(found[:2]) <= 1_000_000 and max(found) > 50_000_000, found)
    finally:
        os.kill(child_of(p.pid), signal.SIGTERM)
        p.communicate()
        os.unlink(box)


def test_unread(tmp):
    """Nobody reads what the agent says."""
    place = fresh(tmp, "unread")
    out, end_of_agent = os.pipe()
    fcntl.fcntl(end_of_agent, fcntl.F_SETPIPE_SZ, 4096)
    os.write(end_of_agent, b"-" * 4096)
    a = subprocess.Popen([BIN, "agent", "-o", place], env=environment(), stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=end_of_agent)
    os.close(end_of_agent)
    try:
        for name in ("window is saved although what is said is not read", "the next one, too"):
            p = recorded("turns:20", "park:60000", cwd=place)
            until(lambda: follows(p.pid))
            p.kill()
            p.wait()
            check(name, until(lambda: saved(place, p.pid)), traces(place))
            if name != "the next one, too":
                os.read(out, 4096)  # now there is room
        a.terminate()
        check("the agent ends", a.wait(60) == 0, a.returncode)
        with open(out, "rb") as f:
            said_then = f.read()
        check("that messages are lost is said", b"messages before this one are lost" in said_then,
              said_then)
    finally:
        a.kill()


def test_usage(tmp):
    for name, options, words in [
        ("exit", ["--on", "exit!=0"], "only the parent"),
        ("command", ["--", "true"], "tacho run"),
        ("missing_folder", ["-o", tmp + "/none"], "No such file"),
        ("condition", ["--on", "poll>"], "^"),
        ("ends", ["--continuous", "--all-ends"], "--all-ends"),
    ]:
        p = subprocess.run([BIN, "agent", *options], capture_output=True, text=True, cwd=tmp,
                           env=environment(), timeout=30)
        check(f"usage_{name}", p.returncode in (1, 2) and words in p.stderr, said(p))
    p = subprocess.run([BIN, "agent", "-o", tmp], capture_output=True, text=True, cwd=tmp,
                       env=environment(TACHO_BOX_DIR="boxes"), timeout=30)
    check("usage_folder_of_boxes", p.returncode == 1 and "absolute path" in p.stderr and
          not os.path.exists(tmp + "/boxes"), said(p))
    p = subprocess.run([BIN, "agent", "--help"], capture_output=True, text=True, timeout=30)
    check("help", p.returncode == 0 and "tacho agent" in p.stdout, said(p))


def main():
    if not watched():
        skip("agent", "libuv was not there when tacho was built")
        return 0
    with folder() as tmp:
        os.chmod(tmp, 0o755)
        test_usage(tmp)
        test_follows(tmp)
        test_all_ends(tmp)
        test_killed_agent(tmp)
        test_two_agents(tmp)
        test_beside_run(tmp)
        test_service(tmp)
        test_host(tmp)
        test_idle(tmp)
        test_unfinished(tmp)
        test_unread(tmp)
    return 1 if librun.failures else 0


if __name__ == "__main__":
    sys.exit(main())
