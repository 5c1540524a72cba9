#!/usr/bin/env python3
"""Where windows cannot be saved, the program runs and its window stays in its box."""
import glob
import os
import signal
import subprocess
import sys

import libharm
from libharm import (BIN, check, environment, failures, fresh, in_mounts, may_mount, ran_twice, row,
                     said, skip, until)
from librun import LOOP, PYTHON, boxes, child_of, count, events, folder, others_may_run, traces, watched

PROGRAM = [PYTHON, "-c", LOOP + "print('done', flush=True)\nsys.exit(7)"]
HOW = ("tacho dump PID -o FILE", "tacho recover -o FOLDER")


def kept(situation, taped, where=None, parks=3):
    """The window is whole in the only box, and the command that the message names saves it."""
    left = glob.glob(where + "/*.box") if where else boxes()
    name = f"{situation}: the window stays in its box"
    if not check(name, len(left) == 1 and left[0] in taped.stderr, (left, taped.stderr)):
        return
    place = fresh(libharm.place, f"saved-{len(os.listdir(libharm.place))}")
    p = subprocess.run([BIN, "recover", left[0], "-o", place], capture_output=True, text=True,
                       env=environment())
    check(f"{situation}: 'tacho recover' saves it", p.returncode == 0 and not os.path.exists(left[0])
          and len(traces(place)) == 1 and count(traces(place)[0], "park") == parks, said(p))


def warned(situation, taped, *words):
    """One warning before the start says what is wrong and how to save the window."""
    lines = [x for x in taped.stderr.splitlines() if "warning: cannot" in x]
    check(f"{situation}: one line says how to save the window",
          len(lines) == 1 and all(w in lines[0] for w in (*words, *HOW)), taped.stderr)


def unusable(tmp):
    """Places that are no places for files."""
    plain = os.path.join(tmp, "plain")
    with open(plain, "w") as f:
        f.write("precious")
    occupied = os.path.join(tmp, "occupied.tacho")
    with open(occupied, "w") as f:
        f.write("precious")
    os.mkdir(occupied + ".old")
    for situation, where in [("output folder is missing", tmp + "/none/x.tacho"),
                             ("output folder cannot be made", tmp + "/none/more/"),
                             ("output folder is a file", plain + "/x.tacho"),
                             ("output is a device", "/dev/null"),
                             ("output exists and cannot be renamed", occupied)]:
        taped = ran_twice(situation, PROGRAM, "-o", where)
        warned(situation, taped)
        kept(situation, taped)
    check("what was there stays", open(plain).read() + open(occupied).read() == "precious" * 2)
    taped = ran_twice("--keep with a folder that is missing", PROGRAM, "--on", "poll>1h", "--keep",
                      "3", "-o", tmp + "/none/more")
    kept("--keep with a folder that is missing", taped)
    place = fresh(tmp, "folder.tacho")
    taped = ran_twice("--force with a folder in place of the file", PROGRAM, "--force", "-o", place)
    check("--force with a folder: it is told, and a file in it is new", "--force has no effect" in
          taped.stderr and len(traces(place)) == 1, said(taped))


def as_nobody(tmp):
    situation = "nobody, in a folder that it cannot write to"
    if os.geteuid() != 0 or not others_may_run() or not watched():
        return skip(situation, "needs root, libuv, and a build that others may run")
    theirs = "/dev/shm/tacho-65534"
    before = set(glob.glob(theirs + "*/*.box"))
    taped = ran_twice(situation, [watched(), "turns:5"], cwd="/etc", user=65534,
                      env={"TACHO_BOX_DIR": None})
    warned(situation, taped, "Permission denied")
    left = sorted(set(glob.glob(theirs + "*/*.box")) - before)
    check(f"{situation}: the window stays in its box", len(left) == 1 and left[0] in taped.stderr and
          events(left[0]), said(taped))
    for box in left:
        os.unlink(box)


def disks(tmp):
    """Read-only, full from the beginning, full at the end, and gone."""
    if not may_mount():
        return skip("disks that are full or cannot be written", "needs mount namespaces")
    place = fresh(tmp, "disk")
    mount = f"mount -t tmpfs -o size=64k,%s tmpfs {place}"
    fill = f"dd if=/dev/zero of={place}/filler bs=4k status=none 2>/dev/null"
    for situation, script, more in [
            ("read-only file system", mount % "ro", ""),
            ("disk that is full", f"{mount % 'rw'}; {fill}", ""),
            ("disk that is full when the program ends", mount % "rw", f"os.system({fill!r})\n"),
    ]:
        argv = [PYTHON, "-c", LOOP + more + "print('done', flush=True)\nsys.exit(7)"]
        taped = ran_twice(situation, argv, "-o", place, wrap=in_mounts(script))
        kept(situation, taped)


def segments(tmp):
    """--continuous, and the folder belongs to somebody else."""
    place = os.path.join(tmp, "segments")
    first = subprocess.Popen([BIN, "run", "--continuous", "--service", "a", "-o", place, "--", PYTHON,
                              "-c", LOOP + "loop.poll(600)"], env=environment(),
                             stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: glob.glob(place + "/*service*") + glob.glob(place + "/.*service*"))
        files = sorted(os.listdir(place))
        for situation, service in [("segment folder of another service", "b"),
                                   ("segment folder that is in use", "a")]:
            taped = ran_twice(situation, PROGRAM, "--continuous", "--service", service, "-o", place)
            warned(situation, taped)
            mine = [b for b in boxes() if b in taped.stderr]
            check(f"{situation}: the window stays in its box, and nothing is written there",
                  len(mine) == 1 and sorted(os.listdir(place)) == files, said(taped))
            for box in mine:
                os.unlink(box)
    finally:
        first.terminate()
        first.communicate()


def left_segments(tmp):
    """Segments of a tacho run that was killed are finished while the next command runs, not before:
    to look up the names of functions takes time."""
    situation = "segments that a killed tacho run left"
    if not watched():
        return skip(situation, "the watched program is not built")
    place = os.path.join(tmp, "left")
    options = ["--continuous", "--service", "left", "-o", place]
    first = subprocess.Popen([BIN, "run", *options, "--memory", "1M", "--segment-bytes", "64M",
                              "--segment-time", "1h", "--", watched(), "turns:100000",
                              "park:600000"], env=environment(), stderr=subprocess.DEVNULL)
    until(lambda: glob.glob(place + "/*.part"))
    pid = child_of(first.pid)
    first.kill()
    first.wait()
    os.kill(pid, signal.SIGKILL)
    parts = len(glob.glob(place + "/*.part"))
    p = subprocess.run([BIN, "run", *options, "--", "sh", "-c", f"ls {place}"], env=environment(),
                       capture_output=True, text=True)
    check(f"{situation}: the command starts before they are finished",
          parts and p.stdout.count(".part\n") == parts, (parts, said(p)))
    check(f"{situation}: they are finished", not glob.glob(place + "/*.part") and
          all(events(t) for t in traces(place)), os.listdir(place))
    row(situation, "exit 0", f"exit {p.returncode}", "the segments that were left", "")
    for box in boxes():
        os.unlink(box)


def many(tmp):
    """Windows of many processes: some are named, and all are saved by one command."""
    argv = [PYTHON, "-c", LOOP + "for i in range(8):\n    if os.fork() == 0:\n        turn()\n"
            "        os._exit(0)\nfor i in range(8): os.wait()\n"]
    taped = ran_twice("nine windows and no folder", argv, "-o", tmp + "/no/such/")
    left = boxes()
    check("nine windows: five are named, the others counted", len(left) == 9 and
          taped.stderr.count("is kept in its box") == 5 and "4 more windows are kept" in taped.stderr,
          said(taped))
    place = fresh(tmp, "nine")
    p = subprocess.run([BIN, "recover", "-o", place], capture_output=True, text=True,
                       env=environment())
    check("nine windows: one command saves all", p.returncode == 0 and len(traces(place)) == 9 and
          boxes() == [], said(p))


def while_it_runs(tmp):
    """What the warning advises for a program that runs."""
    p = subprocess.Popen([BIN, "run", "-o", tmp + "/no/such/", "--", PYTHON, "-c",
                          LOOP + "print('ready', flush=True)\nloop.poll(600)"], env=environment(),
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        p.stdout.readline()
        trace = os.path.join(tmp, "dumped.tacho")
        pid = child_of(p.pid)
        dumped = subprocess.run([BIN, "dump", str(pid), "-o", trace], capture_output=True, text=True,
                                env=environment())
        check("a program that runs: 'tacho dump PID -o FILE' saves its window",
              dumped.returncode == 0 and count(trace, "park") >= 3, said(dumped))
        os.kill(pid, signal.SIGTERM)
    finally:
        p.terminate()
        p.communicate()
    row("a program that runs, and no folder", "", "runs", "its window, with tacho dump", "")
    for box in boxes():
        os.unlink(box)


def main():
    with folder() as tmp:
        os.chmod(tmp, 0o755)
        libharm.place = fresh(tmp, "harm")
        unusable(tmp)
        as_nobody(tmp)
        disks(tmp)
        segments(tmp)
        left_segments(tmp)
        many(tmp)
        while_it_runs(tmp)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
