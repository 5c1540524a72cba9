#!/usr/bin/env python3
"""Containers that share /dev/shm: a user who is root in a user namespace, and processes with other
numbers."""
import glob
import os
import shutil
import subprocess

from libhostile import (MALLORY, SERVICE, VICTIM, check, crash_as, end_agent, files_of, fresh, main,
                        programs, said, skip, start_agent, start_as, tacho, traces, until)


def can_unshare(user, *options):
    return shutil.which("unshare") and start_as(
        user, ["unshare", *options, "true"], stderr=subprocess.DEVNULL).wait() == 0


def boxes_by(owner):
    return [b for b in glob.glob("/dev/shm/tacho-*/*.box") if os.stat(b).st_uid == owner]


def inside(user, tmp, options):
    """The watched program, recording in namespaces of its own; its box, for those around it."""
    watched, hooks = programs(tmp)
    p = start_as(user, ["unshare", *options, "env", f"LD_PRELOAD={hooks}", f"TACHO_SERVICE={SERVICE}",
                        watched, "turns:50", "park:600000"])
    until(lambda: boxes_by(user))
    return p, (boxes_by(user) or [""])[0]


def test_root_inside(tmp):
    """Who is root in a user namespace has boxes that say user 0, and folders of that name."""
    if not can_unshare(MALLORY, "-U", "-r"):
        return skip("user namespaces", "users cannot make them here")
    place = fresh(tmp, "inside")
    agent = start_agent("-o", place)
    p, box = inside(MALLORY, tmp, ["-U", "-r"])
    try:
        check("root of a namespace: it records", box and box.startswith("/dev/shm/tacho-0"), box)
        check("root of a namespace: others are followed", crash_as(VICTIM, tmp, agent, place), "")
        check("root of a namespace: it is not taken for root", box not in files_of(agent.pid),
              files_of(agent.pid))
        listed = tacho("ls", "--all")
        check("root of a namespace: it is not listed as root's", box not in listed.stdout and
              os.path.basename(box).split("-")[0] not in listed.stdout.split(), said(listed))
        read = tacho("info", box)
        check("root of a namespace: root does not read a box that lies about its user",
              read.returncode == 1 and "belongs to user" in read.stderr, said(read))
        p.kill()
        p.wait()
        check("root of a namespace: nothing of it is saved", crash_as(VICTIM, tmp, agent, place) and
              len(traces(place)) == 2, traces(place))
    finally:
        shutil.rmtree(os.path.dirname(box) if os.stat(os.path.dirname(box)).st_uid == MALLORY
                      else "/nonexistent", ignore_errors=True)
    end_agent(agent)


def test_other_numbers(tmp):
    """A process that has the number 1 in its own pid namespace is not the one of the host."""
    options = ["-U", "-r", "-p", "-f", "--kill-child", "-m", "--mount-proc"]
    if not can_unshare(MALLORY, *options):
        return skip("pid namespaces", "users cannot make them here")
    p, box = inside(MALLORY, tmp, options)
    try:
        number = os.path.basename(box).split("-")[0]
        shown = tacho("status", number, "--json")
        check("number of a namespace: no process of the host has its box", box not in shown.stdout,
              said(shown))
    finally:
        p.kill()
        p.wait()
        shutil.rmtree(os.path.dirname(box) if os.stat(os.path.dirname(box)).st_uid == MALLORY
                      else "/nonexistent", ignore_errors=True)


if __name__ == "__main__":
    main(test_root_inside, test_other_numbers)
