#!/usr/bin/env python3
"""File systems that never answer, mounted where boxes are.

A user may mount one on a folder of theirs where /etc/fuse.conf has user_allow_other. Here root does it for
them, where nobody else sees it.
"""
import contextlib
import ctypes
import os
import shutil
import stat
import sys

from libhostile import (MALLORY, VICTIM, box_of, boxes_of, check, crash_as, end_agent, files_of,
                        folders_of, fresh, main, record_as, said, skip, start_agent, tacho, traces, until)

SHM = "/dev/shm"
CLONE_NEWNS, MS_REC, MS_PRIVATE, MNT_DETACH = 0x20000, 0x4000, 1 << 18, 2
libc = ctypes.CDLL(None, use_errno=True)


def mount(what, path, kind, flags=0, options=""):
    if libc.mount(what.encode(), path.encode(), kind.encode(), flags, options.encode()):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), path)


@contextlib.contextmanager
def silent(path):
    """Whoever asks for anything there waits until this ends."""
    device = os.open("/dev/fuse", os.O_RDWR)
    mode = stat.S_IFMT(os.lstat(path).st_mode)
    mount("silent", path, "fuse", options=f"fd={device},rootmode={mode:o},user_id={MALLORY},"
          f"group_id={MALLORY},allow_other")
    try:
        yield
    finally:
        libc.umount2(path.encode(), MNT_DETACH)
        os.close(device)


def own_shm():
    """A /dev/shm that nobody else sees; a sentence: why there is none, or no FUSE."""
    try:
        if libc.unshare(CLONE_NEWNS):
            return "this process can not have mounts of its own"
        mount("none", "/", "none", MS_REC | MS_PRIVATE)
        mount("tmpfs", SHM, "tmpfs", options="mode=1777")
        os.mkdir(SHM + "/there")
        with silent(SHM + "/there"):
            pass
    except OSError as error:
        return str(error)
    return None


def test_users_own(tmp):
    """On a box, or on the folder of boxes, of a user who was followed before."""
    place = fresh(tmp, "own")
    mallory = record_as(MALLORY, tmp, "turns:50", "park:600000")
    box = box_of(mallory)
    agent = start_agent("-o", place)
    until(lambda: box in files_of(agent.pid))
    for what, path in (("a box", box), ("a folder of boxes", os.path.dirname(box))):
        with silent(path):
            check(f"mounted on {what}: windows of others are saved",
                  crash_as(VICTIM, tmp, agent, place), traces(place))
            listed = tacho("ls", "--all", timeout=60)
            check(f"mounted on {what}: ls says so", "another file system is mounted there" in
                  listed.stdout + listed.stderr, said(listed))
    with silent(box):
        mallory.kill()
        mallory.wait()
        check("mounted on the box of a process that ends: windows of others are saved",
              crash_as(VICTIM, tmp, agent, place), traces(place))
        read = tacho("info", box, timeout=60)
        check("such a box is not read", read.returncode == 1 and read.stderr.strip(), said(read))
    check("the agent ends", end_agent(agent)[0] == 0, "")


def test_taken(tmp):
    """On what should be the folder of another user."""
    folder = f"{SHM}/tacho-{VICTIM}"
    for path in folders_of(VICTIM):
        shutil.rmtree(path)
    os.mkdir(folder)
    os.chown(folder, MALLORY, MALLORY)
    as_victim = {"user": VICTIM, "group": VICTIM, "extra_groups": [], "cwd": "/", "timeout": 60}
    with silent(folder):
        victim = record_as(VICTIM, tmp, "turns:50", "park:600000")
        check("a program records elsewhere", box_of(victim).startswith(folder + "."), boxes_of(VICTIM))
        shown = tacho("status", str(victim.pid), **as_victim)
        check("status says why", f"{folder}: another file system is mounted there" in shown.stdout,
              said(shown))
        asked = tacho("doctor", **as_victim)
        check("doctor comes to an end", asked.returncode in (0, 1) and asked.stdout, said(asked))


if __name__ == "__main__":
    if os.geteuid() == 0:
        why_not = own_shm()
        if why_not:
            skip("mounted", why_not)
            sys.exit(0)
    main(test_users_own, test_taken)
