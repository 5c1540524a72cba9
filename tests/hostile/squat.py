#!/usr/bin/env python3
"""Another user has taken the place of a user's folder, and made very many that are named like it. Nobody waits
for that: neither the program that is recorded, nor who reads, nor root. System calls are counted, not seconds.
All of it is in a /dev/shm of the test's own."""
import collections
import glob
import os
import re
import shutil
import subprocess
import sys

from libhostile import (BIN, MALLORY, SERVICE, VICTIM, box_of, check, crash_as, end_agent, environment,
                        fresh, main, programs, record_as, said, skip, start_agent, tacho, until)

FOLDERS = 20000  # more than root looks at
INSIDE = "TACHO_TEST_INSIDE"


def squat(first=0):
    """As Mallory."""
    if not first:
        shutil.rmtree(f"/dev/shm/tacho-{VICTIM}", True)
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(MALLORY)
        os.setuid(MALLORY)
        if not first:
            os.mkdir(f"/dev/shm/tacho-{VICTIM}")
        for n in range(first, first + FOLDERS):
            os.mkdir(f"/dev/shm/tacho-{VICTIM}.{n}")
        os._exit(0)
    check("the attacker has made its folders", os.waitpid(child, 0)[1] == 0, "")


OPENING = "--seccomp-bpf", "-e", "trace=openat,openat2,getdents64,mkdir,mkdirat"


def counted(tmp, argv, user=0, env=None, only=OPENING):
    """The system calls of a program and of what it starts, by name; and its end."""
    out = os.path.join(tmp, "calls")
    done = subprocess.run(["strace", "-f", *only, "-o", out, "-s", "0", "setpriv", f"--reuid={user}", f"--regid={user}",
                           "--clear-groups", *argv], capture_output=True, text=True, cwd="/", timeout=300,
                          env=environment(HOME="/", **(env or {})), stdin=subprocess.DEVNULL)
    with open(out, encoding="utf-8", errors="replace") as f:
        names = re.findall(r"^\d+ +(\w+)\(", f.read(), re.M)
    return collections.Counter(names), done


def test_program(tmp):
    """The first wait of a recorded program."""
    watched, hooks = programs(tmp)
    env = {"TACHO_SERVICE": SERVICE}
    argv = ["env", f"LD_PRELOAD={hooks}", watched, "turns:3"]
    before, done = counted(tmp, argv, VICTIM, env, only=())
    check("without squatters: it is recorded", done.returncode == 0 and before["ftruncate"], before)
    squat()
    after, done = counted(tmp, argv, VICTIM, env, only=())
    check("with squatters: it is recorded", done.returncode == 0 and after["ftruncate"], after)
    check("with squatters: the recorded program makes hardly more system calls",
          after.total() < before.total() + 500, after - before)


def recording(path):
    """Whether it is the box of a process that records, for root and for its user."""
    return path and all(path in tacho("ls", "--paths", *options, user=user).stdout
                        for user, options in ((0, ["--all"]), (VICTIM, [])))


def test_session(tmp):
    """There is a place where nobody else can make the folder."""
    place = f"/run/user/{VICTIM}"
    squat()
    os.makedirs(place, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"mode=700,uid={VICTIM},gid={VICTIM}", "none", place],
                   check=True)
    try:
        p = record_as(VICTIM, tmp, "turns:20", "park:600000")
        box = until(lambda: glob.glob(f"{place}/tacho/{p.pid}-*.box"))
        check("place of the session: the box is there", box, glob.glob(place + "/*"))
        check("place of the session: root and its user find it", box and recording(box[0]),
              said(tacho("ls", "--all", "--paths")))
        shown = tacho("status", str(p.pid))
        check("place of the session: status says why", "it belongs to another user" in shown.stdout,
              said(shown))
        out = fresh(tmp, "session")
        agent = start_agent("-o", out)
        p.kill()
        p.wait()
        check("place of the session: the agent saves the window of one that is there already",
              until(lambda: glob.glob(f"{out}/*-{p.pid}-*.tacho")), os.listdir(out))
        end_agent(agent)
    finally:
        subprocess.run(["umount", "-l", place], check=True)
        os.rmdir(place)


def test_root(tmp):
    """What root does, whose own folder nobody has taken."""
    watched, _ = programs(tmp)
    # Whose folder is made first, in the middle and last: file systems list them in this order or the other.
    honest = [record_as(MALLORY, tmp, "turns:20", "park:600000")]
    box_of(honest[0])
    squat()
    honest.append(record_as(VICTIM, tmp, "turns:20", "park:600000"))
    boxes = list(map(box_of, honest))
    squat(FOLDERS)
    calls, listed = counted(tmp, [BIN, "ls", "--all", "--paths"])
    check("root lists all boxes: one warning for all folders of a kind, and one for their number",
          len(listed.stderr.splitlines()) == 2 and re.search(r"nor are \d{5,} others", listed.stderr),
          said(listed))
    check("root lists all boxes: none of them is opened", calls["openat"] + calls["openat2"] < 3000, calls)
    check("root lists all boxes: it does not read all of the folder", calls["getdents64"] < 200, calls)
    check("root lists all boxes: who runs something is found, who was squatted too",
          all(box and box in listed.stdout for box in boxes), (boxes, said(listed)))
    place = fresh(tmp, "root")
    os.mkdir("/dev/shm/tacho-0.77", 0o700)
    os.chown("/dev/shm/tacho-0.77", MALLORY, MALLORY)
    calls, ran = counted(tmp, [BIN, "run", "-o", place, "--", watched, "turns:3"])
    check("tacho run of root: no word about others' folders", ran.returncode == 0 and
          "is not searched" not in ran.stderr and "holds more" not in ran.stderr, said(ran))
    check("tacho run of root: none of them is opened", calls["openat"] + calls["openat2"] < 5000, calls)


def test_agent(tmp):
    """Root's agent begins, and follows others, whom the attacker has tried to keep from recording."""
    squat()
    place = fresh(tmp, "agent")
    agent = start_agent("-o", place)
    for user in (MALLORY, VICTIM):
        check("agent: others are followed", crash_as(user, tmp, agent, place), os.listdir(place))
    _, _, errors = end_agent(agent)
    check("agent: one warning for all of them",
          sum("is not searched" in line for line in errors.splitlines()) == 1, errors[-2000:])


def test_user(tmp):
    """The user whose folder is taken."""
    watched, _ = programs(tmp)
    before, ran = counted(tmp, [BIN, "run", "-o", "/tmp", "--", watched, "turns:3"], VICTIM)
    squat()
    calls, ran = counted(tmp, [BIN, "run", "-o", "/tmp", "--", watched, "turns:3"], VICTIM)
    made = glob.glob("/tmp/tacho-watched_program*.tacho")
    check("tacho run of the user: it records", ran.returncode == 0 and made, said(ran))
    check("tacho run of the user: one warning, about the folder that should be theirs",
          ran.stderr.count("warning") == 1 and f"/dev/shm/tacho-{VICTIM} is not searched" in ran.stderr,
          said(ran))
    check("tacho run of the user: few of the folders are opened", calls["openat"] + calls["openat2"] <
          before["openat"] + before["openat2"] + 3000, calls - before)
    for path in glob.glob("/tmp/tacho-watched_program*.tacho"):
        os.unlink(path)


def alone():
    """Again, where /dev/shm is another one."""
    if not shutil.which("unshare") or not shutil.which("strace"):
        skip("squatters", "unshare or strace is not installed")
        sys.exit(0)
    os.environ[INSIDE] = "1"
    os.execvp("unshare", ["unshare", "-m", "--propagation", "private", sys.executable, *sys.argv])


def each_alone(test):
    """A fresh /dev/shm and no squatters: to delete so many takes longer than to forget them."""
    def run(tmp):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777,nr_inodes=400000", "none", "/dev/shm"], check=True)
        try:
            test(tmp)
        finally:
            subprocess.run(["umount", "-l", "/dev/shm"], check=True)
    run.__name__ = test.__name__
    return run


if __name__ == "__main__":
    if os.geteuid() == 0 and INSIDE not in os.environ:
        alone()
    main(*map(each_alone, (test_program, test_session, test_root, test_agent, test_user)))
