#!/usr/bin/env python3
"""Files of others where tacho writes: crash files, folders of segments; and disks that fill."""
import os
import signal
import struct
import subprocess

from libhostile import (MALLORY, VICTIM, box_of, check, files_of, finish, fresh, main, record_as,
                        said, skip, start_agent, start_as, tacho, traces, until)


def test_crash_file(tmp):
    """A file that waits for the window of somebody else's crash, in a folder that all may use."""
    place = fresh(tmp, "shared")
    os.chmod(place, 0o1777)
    for name, owner, mode, links, kept in (
            ("own", VICTIM, 0o600, 1, True), ("theirs", MALLORY, 0o600, 1, False),
            ("open", VICTIM, 0o606, 1, False), ("linked", VICTIM, 0o600, 2, False)):
        path = os.path.join(place, name)
        with open(path, "w") as f:
            f.write("before")
        os.chown(path, owner, owner)
        os.chmod(path, mode)
        if links > 1:
            os.link(path, path + "-too")
        p = record_as(VICTIM, tmp, "turns:5", "exit:0", env={"TACHO_CRASH_FILE": path})
        p.wait()
        p = record_as(VICTIM, tmp, "turns:5", "park:60000", env={"TACHO_CRASH_FILE": path})
        box_of(p)
        p.send_signal(signal.SIGABRT)
        p.wait()
        written = open(path, "rb").read() != b"before"
        check(f"crash file, {name}: {'written' if kept else 'left alone'}", written == kept, written)


def access_list(user):
    """That user may do all: as the kernel keeps it (posix_acl_xattr.h)."""
    entries = ((0x01, 7, 0xffffffff), (0x02, 7, user), (0x04, 0, 0xffffffff), (0x10, 7, 0xffffffff),
               (0x20, 0, 0xffffffff))
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *e) for e in entries)


def can_read(user, path):
    return start_as(user, ["cat", path], stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL).wait() == 0


def test_access_lists(tmp):
    """Folders whose access lists let another user read what is made in them, and write."""
    inherits, writable = fresh(tmp, "inherits"), fresh(tmp, "writable")
    try:
        os.setxattr(inherits, "system.posix_acl_default", access_list(MALLORY))
        os.setxattr(writable, "system.posix_acl_access", access_list(MALLORY))
    except OSError as e:
        return skip("access lists", f"the file system has none: {e}")
    os.chmod(inherits, 0o755)
    os.chown(inherits, VICTIM, VICTIM)
    crash, trace = os.path.join(inherits, "crash"), os.path.join(inherits, "window.tacho")
    p = record_as(VICTIM, tmp, "turns:5", "park:60000", env={"TACHO_CRASH_FILE": crash})
    box = box_of(p)
    dumped = tacho("dump", box, "-o", trace)
    p.send_signal(signal.SIGABRT)
    p.wait()
    control = os.path.join(inherits, "control")
    open(control, "w").close()
    check("access list: it lets the other read what is made without care", can_read(MALLORY, control),
          control)
    for name, path in (("crash file", crash), ("trace", trace)):
        check(f"access list: the other cannot read a {name}", os.path.getsize(path) > 0 and
              not can_read(MALLORY, path), (said(dumped), oct(os.stat(path).st_mode)))
    p = tacho("run", "--continuous", "-o", writable, "--", "true")
    check("access list: no segments where another can write", p.returncode != 0 and
          "give a folder of your own" in p.stderr and not os.listdir(writable), said(p))


def test_segments(tmp):
    """Root writes segments into no folder of a user's, whatever name it is given."""
    theirs = fresh(tmp, "theirs")
    os.chown(theirs, MALLORY, MALLORY)
    link = os.path.join(tmp, "link")
    os.symlink(theirs, link)
    open_to_all = fresh(tmp, "open")
    os.chmod(open_to_all, 0o777)
    for name, folder in (("folder", theirs), ("link", link), ("open folder", open_to_all)):
        p = tacho("run", "--continuous", "-o", folder, "--", "true")
        check(f"segments, {name} of another: refused", p.returncode != 0 and
              "give a folder of your own" in p.stderr and not os.listdir(folder), said(p))


def test_crash_loop(tmp):
    """A program that crashes again and again leaves as many windows as are wanted."""
    place = fresh(tmp, "loop")
    agent = start_agent("-o", place, "--keep", "3")
    for _ in range(6):
        p = record_as(VICTIM, tmp, "turns:20", "park:60000")
        box = box_of(p)
        until(lambda: box in files_of(agent.pid))
        p.kill()
        p.wait()
        check("crash loop: its window is saved",
              until(lambda: [t for t in traces(place) if f"-{p.pid}-" in t]), traces(place))
    check("crash loop: three windows stay", until(lambda: len(traces(place)) == 3), traces(place))
    agent.terminate()
    finish(agent)


if __name__ == "__main__":
    main(test_crash_file, test_access_lists, test_segments, test_crash_loop)
