#!/usr/bin/env python3
"""Small file systems and memory limits: boxes leave room to the program, whoever else records."""
import os
import re
import subprocess
import sys
import tempfile

from libharm import BIN, check, environment, failures, librun, may_mount, row, same, skip, with_shm

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../blocked"))
from libgroup import MemoryGroup, write  # noqa: E402

BUSY = os.path.join(os.environ["TACHO_BUILD"], "tests/harm/harm-busy")
MIB = 1 << 20
SOAK = os.environ.get("TACHO_SOAK") == "1"

# Three busy processes, and one that maps half of what was free and stores to all of it. With "fill",
# somebody else takes all the rest of the file system, and the three go on.
SHARES = """
import os, subprocess, sys
busy, waits, what = sys.argv[1:4]

def free():
    fs = os.statvfs("/dev/shm")
    return fs.f_bavail * fs.f_bsize

def fill():
    with open("/dev/shm/filler", "wb", buffering=0) as f:
        for size in (65536, 4096):
            try:
                while f.write(bytes(size)) == size:
                    pass
            except OSError:
                pass

if what == "full":
    fill()
before = free()
loops = [subprocess.Popen([busy, "waits", waits, "20000"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) for _ in range(3)]
answers = [p.stdout.readline() for p in loops]
print("half is left:", free() >= before // 2)
if what == "fill":
    fill()
elif what == "own":
    print("own memory:", subprocess.run([busy, "shared", "/dev/shm/own", str(before // 2)]).returncode)
print(answers, [p.communicate(b"\\n")[0] for p in loops], [p.returncode for p in loops])
"""


def run(argv, **more):
    return subprocess.run(argv, env=environment(TACHO_BOX_DIR=None, **more), capture_output=True,
                          text=True, timeout=300, stdin=subprocess.DEVNULL)


def recorded(trace):
    """How many processes and events a recording has."""
    p = subprocess.run([BIN, "info", trace, "--json"], capture_output=True, text=True, timeout=60)
    if p.returncode:
        return 0, 0
    processes = librun.json.loads(p.stdout)["processes"]
    return len(processes), sum(sum(q["events"].values()) for q in processes)


def sizes(tacho):
    """What `tacho run` says of the size of boxes."""
    lines = [line for line in tacho.stderr.splitlines() if "box" in line]
    return lines[0].replace("tacho run: ", "") if lines else ""


def twice(name, before, argv, tmp, **more):
    """Without tacho and with it; `before` makes the surroundings. The second run."""
    trace = os.path.join(tmp, re.sub(r"\W+", "-", name) + ".tacho")
    plain = run([*before(), *argv], **more)
    taped = run([*before(), BIN, "run", "-o", trace, "--", *argv], **more)
    same(name, plain, taped)
    processes, events = recorded(trace)
    row(name, f"exit {plain.returncode}", f"exit {taped.returncode}",
        f"{processes} processes, {events} events", sizes(taped))
    return taped, processes


def small_file_systems(tmp):
    for size, waits, at_least in (("64m", 450000, 3), ("16m", 120000, 3), ("1m", 10000, 0)):
        taped, processes = twice(f"three busy processes, /dev/shm of {size}", lambda: with_shm(size, []),
                                 [librun.PYTHON, "-c", SHARES, BUSY, str(waits), "own"], tmp)
        check(f"{size}: processes are recorded as far as there is room", processes >= at_least,
              processes)
        check(f"{size}: `tacho run` says why boxes are small", "half free" in taped.stderr,
              taped.stderr)
    taped, _ = twice("three busy processes, /dev/shm without any room", lambda: with_shm("1m", []),
                     [librun.PYTHON, "-c", SHARES, BUSY, "10000", "full"], tmp)
    taped, processes = twice("/dev/shm of 16m that others fill up later", lambda: with_shm("16m", []),
                             [librun.PYTHON, "-c", SHARES, BUSY, "50000", "fill"], tmp)
    check("filled later: what was there is recorded", processes == 3, processes)


# Processes of several users, each of which fills its box.
USERS = """
import os, subprocess, sys
busy = sys.argv[1]
os.chmod("/dev/shm", 0o1777)
fs = os.statvfs("/dev/shm")
loops = [subprocess.Popen([busy, "waits", "60000", "8"], stdin=subprocess.PIPE, user=uid, group=uid,
                          stdout=subprocess.PIPE) for uid in (0, 65534, 65533, 65532, 65531, 65530)]
answers = [p.stdout.readline() for p in loops]
now = os.statvfs("/dev/shm")
boxes = sum(name.endswith(".box") for _, _, names in os.walk("/dev/shm") for name in names)
print(boxes, (fs.f_bavail - now.f_bavail) * now.f_bsize)
print([p.communicate(b"\\n")[0] for p in loops], file=sys.stderr)
"""


def preloaded():
    """The library that records."""
    p = run([BIN, "run", "-q", "--", "sh", "-c", "echo $LD_PRELOAD"], LD_PRELOAD=None)
    return p.stdout.strip()


def several_users():
    if not librun.others_may_run():
        return skip("several users", "other users cannot run what was built")
    taped = run([*with_shm("8m", []), librun.PYTHON, "-c", USERS, BUSY], LD_PRELOAD=preloaded())
    boxes, used = (int(word) for word in (taped.stdout.split() or ["0", "0"])[:2])
    check("several users: most of them record", boxes >= 4, taped)
    check("several users: their boxes leave half of the file system", 0 < used <= 4 * MIB, used)
    row("six users share a /dev/shm of 8m", "exit 0", f"exit {taped.returncode}",
        f"{boxes} processes, {used // 1024} KiB", "")
    return None


class Group(MemoryGroup):
    """One that was used: the next run begins with no page of the last one."""

    def fresh(self):
        if self.old:
            write(self.path + "/memory.force_empty", 0)
            write(self.path + "/memory.max_usage_in_bytes", 0)
        return self.before()

    def peak(self):
        name = "/memory.max_usage_in_bytes" if self.old else "/memory.peak"
        try:
            with open(self.path + name) as f:
                return int(f.read()) // MIB
        except OSError:
            return 0


def in_group(name, limit, argv, tmp, around=()):
    """As twice; nobody was killed, and some processes were recorded."""
    group = Group(limit)
    try:
        taped, processes = twice(name, lambda: [*group.fresh(), *around], argv, tmp)
        check(f"{name}: nothing is killed", group.kills() == 0, (group.kills(), taped))
        check(f"{name}: processes are recorded", processes > 0, taped)
        print(f"# {name}: peak {group.peak()} MiB of {limit // MIB} MiB")
        return taped, processes
    finally:
        group.end()


# The first report of this: Python with 40 MB, beside three small processes.
BESIDE = """
import subprocess, sys
loops = [subprocess.Popen([sys.argv[1], "waits", "700000"], stdout=subprocess.PIPE) for _ in range(3)]
own = bytearray(b"x") * 40_000_000
print([p.communicate()[0] for p in loops], [p.returncode for p in loops], len(own))
"""


def memory_limits(tmp):
    try:
        Group(100 * MIB).end()
    except OSError as error:
        return skip("memory limits", f"no memory cgroup can be made: {error}")
    taped, processes = in_group("a cgroup of 100 MiB, 80 % in use, 20 forks", 100 * MIB,
                                [BUSY, "forks", "20", str(80 * MIB), "20000"], tmp)
    check("20 forks: `tacho run` says why boxes are small", "memory limit" in taped.stderr,
          taped.stderr)
    check("20 forks: most of them are recorded", processes >= 10, processes)
    in_group("a cgroup of 100 MB, three busy processes, Python with 40 MB", 100_000_000,
             [librun.PYTHON, "-c", BESIDE, BUSY], tmp)
    nested(tmp)
    if may_mount():
        sum_of_boxes(preloaded())
    return None


def sum_of_boxes(preload):
    """Boxes that stay, of twenty processes that each would fill one."""
    group = Group(100 * MIB)
    try:
        p = run([*group.fresh(), *with_shm("1g", []), "sh", "-c",
                 'LD_PRELOAD="$0" "$@" && du -sk /dev/shm', preload, BUSY, "forks", "20", str(MIB),
                 "40000"], TACHO_KEEP_BOX="1", TACHO_DEAD_BOXES="1024")
    finally:
        group.end()
    used = int((p.stdout.split("\n") + ["", ""])[1].split("\t")[0] or 0)
    check("20 boxes in a cgroup of 100 MiB take 5 MiB at most", 1000 < used <= 5 * 1024, p)
    row("20 busy processes in a cgroup of 100 MiB", "exit 0", f"exit {p.returncode}",
        f"{used} KiB of boxes", "")


def nested(tmp):
    """The limit is that of a cgroup around the one that the process is in."""
    outer = Group(60 * MIB)
    inner = outer.path + "/inner"
    try:
        if not outer.old:
            write(outer.path + "/cgroup.subtree_control", "+memory")
        os.mkdir(inner)
        before = ["sh", "-c", f'echo $$ >"{inner}/cgroup.procs" && exec "$@"', "sh"]
        taped, _ = twice("a cgroup of 60 MiB around that of the process", lambda: before,
                         [BUSY, "waits", "100000"], tmp)
        check("nested: the outer limit counts", "is 60 MiB" in taped.stderr, taped.stderr)
    finally:
        if os.path.isdir(inner):
            os.rmdir(inner)
        outer.end()


def container(tmp):
    """Twenty processes under load in a namespace with the limits of a small container."""
    seconds = 120 if SOAK else 5
    around = ["unshare", "-m", "-p", "-f", "--mount-proc", "--propagation", "private", "sh", "-c",
              'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$@"', "sh"]
    try:
        taped, processes = in_group(
            f"container: /dev/shm of 64m, cgroup of 256 MiB, 20 processes for {seconds} s",
            256 * MIB, [BUSY, "seconds", str(seconds), "20"], tmp, around)
    except OSError as error:
        return skip("container", f"no memory cgroup can be made: {error}")
    return check("container: all 20 windows are saved", processes == 20, taped)


def main():
    with tempfile.TemporaryDirectory(prefix="tacho-harm-") as tmp:
        os.chmod(tmp, 0o755)
        if not may_mount():
            skip("small file systems", "mount namespaces are not permitted")
        else:
            small_file_systems(tmp)
            several_users()
            container(tmp)
        memory_limits(tmp)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
