#!/usr/bin/env python3
"""File systems that never answer, mounted where boxes are, or used by whoever has a box.

A user may mount one on a folder of theirs, in a user namespace, and for others too where /etc/fuse.conf has
user_allow_other. Here root does it for them, where nobody else sees it.
"""
import contextlib
import ctypes
import os
import shutil
import stat
import struct
import subprocess
import sys
import threading

from libhostile import (MALLORY, VICTIM, box_of, boxes_of, check, crash_as, end_agent, files_of,
                        attacker, folders_of, fresh, main, record_as, said, skip, start_agent, tacho, traces,
                        until, usage)

SHM = "/dev/shm"
CLONE_NEWNS, MS_REC, MS_PRIVATE, MNT_FORCE, MNT_DETACH = 0x20000, 0x4000, 1 << 18, 1, 2
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


# The protocol of FUSE, as far as it takes to open a file: numbers of linux/fuse.h.
LOOKUP, FORGET, GETATTR, OPEN, READ, INIT, DIRECT_IO, KEEP_CACHE = 1, 2, 3, 14, 15, 26, 1, 2


def attributes(node):
    kind = stat.S_IFDIR | 0o755 if node == 1 else stat.S_IFREG | 0o644
    return struct.pack("<6Q10I", node, 4096, 8, 0, 0, 0, 0, 0, 0, kind, 1, 0, 0, 0, 4096, 0)


def answer(request, opened):
    """What is sent back, or None: nothing is."""
    _, code, unique, node = struct.unpack_from("<IIQQ", request)
    error, body = 0, b""
    if code == INIT:
        body = struct.pack("<IIIIHHIIHHI7I", 7, 31, 65536, 0, 16, 12, 1 << 17, 1, 0, 0, 0, *[0] * 7)[:64]
    elif code == LOOKUP:
        body = struct.pack("<QQQQII", 2, 0, 1 << 30, 1 << 30, 0, 0) + attributes(2)
    elif code == GETATTR:
        body = struct.pack("<QII", 1 << 30, 0, 0) + attributes(node)
    elif code == OPEN:
        # Who opens it later does so past the pages that are being read.
        opened.append(node)
        body = struct.pack("<QII", 0, DIRECT_IO | KEEP_CACHE if opened[1:] else 0, 0)
    elif code in (FORGET, READ):
        return None
    else:
        error = -38
    return struct.pack("<IiQ", 16 + len(body), error, unique) + body


def serve(device):
    opened = []
    while True:
        try:
            reply = answer(os.read(device, 1 << 20), opened)
            if reply:
                os.write(device, reply)
        except OSError:
            return


@contextlib.contextmanager
def unreadable(folder):
    """A file that can be opened, and that nobody has read when this ends."""
    device = os.open("/dev/fuse", os.O_RDWR)
    mount("unreadable", folder, "fuse", options=f"fd={device},rootmode=40000,user_id={MALLORY},"
          f"group_id={MALLORY},allow_other")
    threading.Thread(target=serve, args=(device,), daemon=True).start()
    try:
        yield folder + "/file"
    finally:
        libc.umount2(folder.encode(), MNT_DETACH | MNT_FORCE)
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


def test_session(tmp):
    """On the folder of a user's session, or on what should be their folder of boxes in it."""
    place, session = fresh(tmp, "session"), f"/run/user/{MALLORY}"
    os.makedirs(session)
    try:
        mount("tmpfs", session, "tmpfs", options=f"mode=700,uid={MALLORY}")
        os.mkdir(session + "/tacho")
        os.chown(session + "/tacho", MALLORY, MALLORY)
        for what, path in (("of boxes in it", session + "/tacho"), ("of a session", session)):
            with silent(path):
                listed = tacho("ls", "--all", timeout=60)
                check(f"mounted on a folder {what}: ls says so", "another file system is mounted there" in
                      listed.stdout + listed.stderr, said(listed))
                agent = start_agent("-o", place)
                check(f"mounted on a folder {what}: windows of others are saved",
                      crash_as(VICTIM, tmp, agent, place), traces(place))
                check(f"mounted on a folder {what}: the agent ends", end_agent(agent)[0] == 0, "")
    finally:
        libc.umount2(session.encode(), MNT_DETACH)
        os.rmdir(session)


def never_ends(*argv):
    try:
        subprocess.run(argv, stdout=subprocess.DEVNULL, timeout=3)
        return False
    except subprocess.TimeoutExpired:
        return True


def test_held(tmp):
    """A process that holds the lock of its memory: who reads its command line or its maps waits."""
    folder, place = fresh(tmp, "file"), fresh(tmp, "held")
    agent = start_agent("-o", place)
    with unreadable(folder) as path:
        mallory = record_as(MALLORY, tmp, "hold", path, program=attacker())
        box = box_of(mallory)
        until(lambda: open(f"/proc/{mallory.pid}/stat").read().rsplit(")", 1)[1].split()[0] == "D")
        if not never_ends("cat", f"/proc/{mallory.pid}/cmdline"):
            skip("held", "this kernel lets nobody hold that lock so")
            return
        check("held: windows of others are saved", crash_as(VICTIM, tmp, agent, place), traces(place))
        threads = usage(agent.pid)[2]
        check("held: the agent ends", end_agent(agent)[0] == 0, "")
        listed = tacho("ls", "--all", timeout=60)
        check("held: it is listed", any(line.split()[:1] == [str(mallory.pid)] and "recording" in line
                                        for line in listed.stdout.splitlines()), said(listed))
        taken = tacho("dump", str(mallory.pid), "-o", tmp + "/held.tacho", timeout=60)
        check("held: its window can be taken", taken.returncode == 0, said(taken))
        told = tacho("info", tmp + "/held.tacho", timeout=60)
        check("held: its command line is known all the same", "attacker hold" in told.stdout, said(told))
        several = [record_as(MALLORY, tmp, "hold", path, program=attacker()) for _ in range(4)]
        boxes = [box] + [box_of(p) for p in several]
        agent = start_agent("-o", place)
        until(lambda: set(boxes) <= set(files_of(agent.pid)))
        check("held before an agent comes: windows of others are saved",
              crash_as(VICTIM, tmp, agent, place), traces(place))
        check("held: few threads of the agent wait", usage(agent.pid)[2] <= threads + 1,
              usage(agent.pid))
    check("held: that agent ends, too", end_agent(agent)[0] == 0, "")


if __name__ == "__main__":
    if os.geteuid() == 0:
        why_not = own_shm()
        if why_not:
            skip("mounted", why_not)
            sys.exit(0)
    main(test_users_own, test_taken, test_session, test_held)
