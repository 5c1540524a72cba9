#!/usr/bin/env python3
"""A daemon that gave up root is somebody else's from then on. It keeps no box of root's, and where it does,
because it made the system call by itself, root looks up nothing with more rights than the daemon has."""
import glob
import json
import os
import shutil
import signal
import subprocess

from libhostile import (MALLORY, SERVICE, VICTIM, box_of, check, crash_as, end_agent, files_of, fresh, main,
                        programs, record_as, said, saved, start_agent, start_as, tacho, traces, until)

SECRET = "burn_here"  # a name that is in no file which Mallory may read


def prepare(tmp, name, owner=0):
    """The daemon without names, and its file with names where only `owner` gets at it."""
    place = fresh(tmp, name)
    built = os.path.join(os.environ.get("TACHO_BUILD", ""), "tests/hostile/dropper")
    for folder, mode in (("aaaa", 0o755), ("bbbb", 0o700), ("done", 0o777)):
        path = os.path.join(place, folder)
        os.mkdir(path)
        if folder != "done":
            shutil.copy(built, os.path.join(path, "dropper"))
            os.chmod(os.path.join(path, "dropper"), 0o755 if folder == "aaaa" else 0o600)
        os.chmod(path, mode)
    for path in (os.path.join(place, "bbbb"), os.path.join(place, "bbbb/dropper")):
        os.chown(path, owner, owner)
    os.chmod(place, 0o755)
    subprocess.run(["strip", os.path.join(place, "aaaa/dropper")], check=True)
    return place


def began(tmp, place, how, user=MALLORY, as_user=0):
    """The daemon, once it has done its worst: (process, boxes of root's that it wrote to, places, pid)."""
    done = os.path.join(place, "done", how)
    p = start_as(as_user, [os.path.join(place, "aaaa/dropper"), how, str(user), done],
                 env={"LD_PRELOAD": programs(tmp)[1], "TACHO_SERVICE": SERVICE})

    def told():
        try:
            with open(done, encoding="utf-8") as f:
                return list(map(int, f.read().split()))
        except FileNotFoundError:
            return []
    until(lambda: len(told()) == 3 or p.poll() is not None)
    return (p, *(told() or (-1, -1, -1)))


def boxes_of_process(pid):
    return sorted(glob.glob(f"/dev/shm/tacho-*/{pid}-*.box"))


def names_of(trace):
    return tacho("sql", trace, "SELECT DISTINCT function FROM frames").stdout.split("\n")


def dumped(tmp, name, box):
    """The names in a trace that root makes of it; None: there is none."""
    out = os.path.join(tmp, f"{name}.tacho")
    done = tacho("dump", box, "-o", out, "--force")
    return (names_of(out) if done.returncode == 0 else None), said(done)


def forget(*processes):
    for p in processes:
        p.kill()
        p.wait()
    for path in glob.glob("/dev/shm/tacho-0/*.box"):
        if any(os.path.basename(path).startswith(f"{p.pid}-") for p in processes):
            os.unlink(path)


def test_libc(tmp):
    """It gives up root as daemons do: through libc, or through syscall(3)."""
    for how in ("libc", "call"):
        place = prepare(tmp, f"through-{how}")
        p, boxes, _, _ = began(tmp, place, how)
        check(f"rights given up, {how}: no box of root's is left to write to", boxes == 0, boxes)
        until(lambda: os.path.exists(f"/dev/shm/tacho-{MALLORY}"))
        box = f"/dev/shm/tacho-{MALLORY}/{p.pid}-"
        later = [b for b in boxes_of_process(p.pid) if b.startswith(box)]
        check(f"rights given up, {how}: it records on in a box of its user's", len(later) == 1,
              boxes_of_process(p.pid))
        shown = tacho("status", str(p.pid), "--json")
        check(f"rights given up, {how}: that is the one which is shown for it", shown.returncode == 0 and
              json.loads(shown.stdout).get("box") == later[0] and
              json.loads(shown.stdout).get("state") == "recording", said(shown))
        check(f"rights given up, {how}: there are new records in it", until(
            lambda: tacho("cat", later[0]).stdout.count("park") > 20), boxes_of_process(p.pid))
        left = [b for b in boxes_of_process(p.pid) if not b.startswith(box)]
        check(f"rights given up, {how}: what is left of root's box takes no memory",
              sum(os.stat(b).st_blocks * 512 for b in left) < 1 << 20, left)
        forget(p)


def test_fork(tmp):
    """A child of root's daemon gives up root before it has recorded anything."""
    place = prepare(tmp, "child")
    p, boxes, _, child = began(tmp, place, "fork")
    check("rights given up by a child: no box of its parent's is left to write to", boxes == 0, boxes)
    check("rights given up by a child: it has a box of its user's, with the names of its parent",
          until(lambda: glob.glob(f"/dev/shm/tacho-{MALLORY}/{child}-*.box")), boxes_of_process(child))
    os.kill(child, signal.SIGKILL)
    forget(p)


def test_often(tmp):
    """Rights that it can take back are not given up: a box for each change would fill the memory."""
    place = prepare(tmp, "often")
    p, boxes, _, _ = began(tmp, place, "often")
    check("user changed for a while, a hundred times: the box stays", boxes > 0 and
          len(boxes_of_process(p.pid)) == 1, boxes_of_process(p.pid))
    forget(p)


def test_raw(tmp):
    """It gives up root by itself, unseen, and names a file that only root can read."""
    place = prepare(tmp, "raw")
    p, boxes, places, _ = began(tmp, place, "stay")
    names, why = dumped(tmp, "stay", box_of(p))
    check("rights kept: names of a file that only root can read are found", boxes > 0 and places and
          SECRET in (names or []), (boxes, places, names, why))
    forget(p)
    for how in ("raw", "lie"):
        p, boxes, places, _ = began(tmp, place, how)
        names, why = dumped(tmp, how, box_of(p))
        check(f"rights given up, {how}: the daemon writes into root's box", boxes > 0 and places,
              (boxes, places))
        check(f"rights given up, {how}: names of a file that only root can read are not looked up",
              names and SECRET not in names, (names, why))
        forget(p)


def test_capabilities(tmp):
    """It is still user 0, but without the capabilities of root."""
    place = prepare(tmp, "capabilities", VICTIM)
    p, _, places, _ = began(tmp, place, "capabilities")
    names, why = dumped(tmp, "capabilities", box_of(p))
    check("capabilities given up: another's files are not read for it", places and names and
          SECRET not in names, (places, names, why))
    forget(p)


def test_noted(tmp):
    """It is gone when root's agent looks up its names; what that saw of it counts."""
    place, out = prepare(tmp, "noted"), fresh(tmp, "noted-out")
    agent = start_agent("-o", out)
    p, _, places, _ = began(tmp, place, "raw")
    box = box_of(p)
    until(lambda: box in files_of(agent.pid))
    # The agent looks at all processes when another one is followed and ends.
    check("rights given up: others are followed", crash_as(VICTIM, tmp, agent, out), files_of(agent.pid))
    p.kill()
    p.wait()
    kept = saved(out, p)
    check("rights given up: the window is saved", kept and places, traces(out))
    check("rights given up: the agent remembers that, and looks up no names of root's",
          kept and SECRET not in names_of(kept[0]), kept and names_of(kept[0]))
    end_agent(agent)
    forget(p)


def test_revived(tmp):
    """The agent was killed. The next one finishes its segments, which are root's files about a user's
    process."""
    place, out = prepare(tmp, "revived"), fresh(tmp, "revived-out")
    os.chmod(os.path.join(place, "bbbb/dropper"), 0o644)  # its folder keeps others out
    p, _, _, _ = began(tmp, place, "stay", as_user=MALLORY)
    with open(box_of(p), "r+b") as f:
        data = f.read()
        at = data.find(b"/aaaa/dropper")
        while at >= 0:
            f.seek(at)
            f.write(b"/bbbb/dropper")
            at = data.find(b"/aaaa/dropper", at + 1)
    agent = start_agent("-o", out, "--continuous")
    check("segments: one is begun", until(lambda: glob.glob(out + "/**/*.part", recursive=True)), out)
    agent.kill()
    agent.communicate()
    p.kill()
    p.wait()
    agent = start_agent("-o", out, "--continuous")
    finished = until(lambda: glob.glob(out + "/**/*.tacho", recursive=True) and
                     not glob.glob(out + "/**/*.part", recursive=True))
    check("segments of an agent that was killed are finished", finished, glob.glob(out + "/**"))
    found = [t for t in glob.glob(out + "/**/*.tacho", recursive=True) if SECRET in names_of(t)]
    check("segments of an agent that was killed: names are looked up with the rights of the process's user",
          not found, found)
    end_agent(agent)


if __name__ == "__main__":
    main(test_libc, test_fork, test_often, test_raw, test_capabilities, test_noted, test_revived)
