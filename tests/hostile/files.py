#!/usr/bin/env python3
"""Files of others where tacho writes: crash files, folders of segments; and disks that fill."""
import glob
import os
import signal
import struct
import subprocess

from libhostile import (MALLORY, VICTIM, box_of, check, crash_as, environment, files_of, finish,
                        fresh, main, record_as, refuses, said, skip, start_agent, start_as, tacho, traces,
                        until)
from librun import watched


def abort_as(user, tmp, path):
    """A program that aborts, and writes its window there."""
    p = record_as(user, tmp, "turns:5", "park:60000", env={"TACHO_CRASH_FILE": path})
    box = box_of(p)
    p.send_signal(signal.SIGABRT)
    p.wait()
    if os.path.exists(box):
        os.unlink(box)


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
        abort_as(VICTIM, tmp, path)
        written = open(path, "rb").read() != b"before"
        check(f"crash file, {name}: {'written' if kept else 'left alone'}", written == kept, written)
    path = os.path.join(place, "theirs")
    abort_as(0, tmp, path)
    check("crash file, theirs, which root could write: left alone",
          open(path, "rb").read() == b"before", "")
    os.chmod(place, 0o777)  # else Linux refuses to follow links in it
    secret, path = os.path.join(fresh(tmp, "victims"), "secret"), os.path.join(place, "link")
    os.chmod(os.path.dirname(secret), 0o755)
    with open(secret, "w") as f:
        f.write("before")
    os.chown(secret, VICTIM, VICTIM)
    os.chmod(secret, 0o600)
    os.symlink(secret, path)
    os.lchown(path, MALLORY, MALLORY)
    abort_as(VICTIM, tmp, path)
    check("crash file, their link to a file of one's own: left alone",
          open(secret, "rb").read() == b"before", "")


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
    check("access list: no segments where another can write", p.returncode == 0 and
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
        p = tacho("run", "--continuous", "-o", folder, "--", watched(), "turns:5")
        check(f"segments, {name} of another: nothing is written there", p.returncode == 0 and
              "give a folder of your own" in p.stderr and "tacho recover" in p.stderr and
              not os.listdir(folder), said(p))


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
    most = max(os.path.getsize(t) for t in traces(place)) * 5 // 2
    agent.terminate()
    finish(agent)
    place = fresh(tmp, "bytes")
    agent = start_agent("-o", place, "--max-bytes", str(most))
    for user in (VICTIM, *[MALLORY] * 4):
        check("crash loop: its window is saved", crash_as(user, tmp, agent, place), traces(place))
    check("crash loop: no more bytes stay than are wanted",
          until(lambda: 0 < sum(os.path.getsize(t) for t in traces(place)) <= most), traces(place))
    agent.terminate()
    finish(agent)


def test_crash_loop_of_another(tmp):
    """Who crashes again and again pushes windows of its own out, and not those of others."""
    place = fresh(tmp, "greedy")
    agent = start_agent("-o", place, "--keep", "3")
    check("crash loop: the window of another is saved", crash_as(VICTIM, tmp, agent, place),
          traces(place))
    first = traces(place)[0]
    for _ in range(5):
        check("crash loop: its window is saved", crash_as(MALLORY, tmp, agent, place), traces(place))
    check("crash loop: the window of another stays", until(lambda: len(traces(place)) == 3) and
          first in traces(place), (first, traces(place)))
    agent.terminate()
    finish(agent)


def test_outputs(tmp):
    """Where root is told to write, a user has put a link to a place of root's."""
    private, shared = fresh(tmp, "private"), fresh(tmp, "shared-by-all")
    os.chmod(shared, 0o777)
    trace, link = os.path.join(tmp, "outputs.tacho"), os.path.join(shared, "link")
    p = record_as(VICTIM, tmp, "turns:5", "park:60000")
    dumped = tacho("dump", box_of(p), "-o", trace)
    check("outputs: there is a trace", dumped.returncode == 0, said(dumped))
    dial9 = sorted(glob.glob(os.path.join(os.environ["TACHO_SOURCE"],
                                          "tests/golden-import/dial9/*.bin.gz")))[0]
    os.symlink(private, link)
    database = os.path.join(shared, "x.db")
    os.symlink(os.path.join(private, "x.db"), database)
    for path in (link, database):
        os.lchown(path, MALLORY, MALLORY)
    out = os.path.join(link, "x")
    for name, arguments in (
            ("dump", ["dump", str(p.pid), "-o", out]),
            ("dump, with slashes", ["dump", str(p.pid), "-o", f"{link}//x"]),
            ("import", ["import", dial9, "-o", out]),
            ("export", ["export", trace, "--format", "jsonl", "-o", out]),
            ("view", ["view", trace, "--html", out]),
            ("recover", ["recover", "-o", link, box_of(p)]),
            ("agents", ["agents", "skills", link]),
            ("sql", ["sql", "--into", database, trace, "CREATE TABLE out.t AS SELECT 1"])):
        done = tacho(*arguments)
        check(f"outputs, {name}: another's link is not followed", refuses(done) and
              not os.listdir(private), (said(done), os.listdir(private)))
    os.lchown(link, 0, 0)
    done = tacho("dump", str(p.pid), "-o", out)
    check("outputs: one's own link is followed", os.listdir(private) == ["x"], said(done))


def test_lock(tmp):
    """The lock of an agent, in a folder that root chose, is a second name of another file."""
    folder = fresh(tmp, "locked")
    secret = os.path.join(tmp, "secret")
    with open(secret, "w") as f:
        f.write("before")
    os.link(secret, os.path.join(folder, "agent.lock"))
    refused = tacho("agent", "-o", fresh(tmp, "locked-out"), env=environment(TACHO_BOX_DIR=folder),
                    timeout=60)
    check("lock: a file of two names is not written", refuses(refused) and
          open(secret).read() == "before", said(refused))


if __name__ == "__main__":
    main(test_crash_file, test_access_lists, test_segments, test_crash_loop,
         test_crash_loop_of_another, test_outputs, test_lock)
