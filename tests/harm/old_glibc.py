#!/usr/bin/env python3
"""Programs whose C library is older than the one that tacho was built with.

The dynamic linker ends a program when a library of LD_PRELOAD asks for a version that its libc does
not have. The programs and the C library are those of an older Debian, in a folder of this test's own.
src/hooks/old_glibc.c says how the library stays loadable.
"""
import os
import subprocess
import sys
import tempfile

from libharm import (BIN, check, environment, failures, fresh, librun, may_mount, row, same,
                     skip)
from libplaces import preload

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from libapt import Apt, Unavailable  # noqa: E402

RELEASE, GLIBC = "bullseye", "2.31"
PACKAGES = """libc6 libgcc-s1 dash coreutils libselinux1 libpcre2-8-0 libacl1 libattr1 libgmp10
    python3.9-minimal libpython3.9-minimal libexpat1 zlib1g""".split()
SERVER = r"""
import _thread, os, select, sys, time
poll = select.epoll()
read, write = os.pipe()
poll.register(read, select.EPOLLIN)
def work():
    end = time.time() + 0.05
    while time.time() < end:
        pass
    os.write(write, b'x')
for _ in range(3):
    _thread.start_new_thread(work, ())
got = 0
while got < 3:
    for fd, _ in poll.poll(5):
        got += len(os.read(fd, 1))
print(got, os.spawnv(os.P_WAIT, '/bin/sh', ['sh', '-c', 'exit 4']), flush=True)
"""
# Status that each has, and the program. libdl and libpthread are loaded in python alone.
PROGRAMS = {
    "dash and its children": (3, ["/bin/dash", "-c", "/bin/echo 1; echo 2 | /bin/cat; exit 3"]),
    "a small program": (0, ["/bin/echo", "hello"]),
    "python with threads and a child": (0, ["/usr/bin/python3.9", "-S", "-c", SERVER]),
}


def root_of(build):
    """The folder with the older system. It is fetched once."""
    root = f"{build}/{RELEASE}-root"
    if not os.path.isdir(root):
        with tempfile.TemporaryDirectory(dir=build) as work:
            Apt(f"{work}/apt", RELEASE).unpack(PACKAGES, f"{work}/root")
            for folder in ("dev/shm", "proc", "tacho"):
                os.makedirs(f"{work}/root/{folder}", exist_ok=True)
            os.rename(f"{work}/root", root)
    return root


def inside(root, boxes, argv, *preloaded):
    """Runs a command in it, in a mount namespace of its own."""
    script = (f'mount --bind "{boxes}" {root}/dev/shm && mount -t proc proc {root}/proc && '
              f'mount --bind {os.path.dirname(preload())} {root}/tacho && exec chroot {root} "$@"')
    env = {"PATH": os.environ["PATH"], "TACHO_BOX_DIR": "/dev/shm/boxes", "TACHO_KEEP_BOX": "1"}
    return subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", "/usr/bin/env", *preloaded,
                           *argv], env=env, capture_output=True, text=True, timeout=60)


def events_in(boxes, tmp):
    """Events of the processes that left a box."""
    out = fresh(tmp, "traces")
    subprocess.run([BIN, "recover", "-o", out], capture_output=True, timeout=60,
                   env=environment(TACHO_BOX_DIR=f"{boxes}/boxes"))
    return sum(len(librun.events(path) or []) for path in librun.traces(out))


def main():
    if os.uname().machine != "x86_64" or not may_mount() or os.geteuid():
        skip("old glibc", "the packages are fetched for x86-64, and need root to be run")
        return 0
    with tempfile.TemporaryDirectory(prefix="tacho-harm-") as tmp, \
            tempfile.TemporaryDirectory(prefix="tacho-old-", dir="/dev/shm") as boxes:
        try:
            root = root_of(os.environ["TACHO_BUILD"])
        except Unavailable as reason:
            skip("old glibc", f"Debian's {RELEASE} cannot be fetched: {reason}")
            return 0
        library = "LD_PRELOAD=/tacho/" + os.path.basename(preload())
        for name, (status, argv) in PROGRAMS.items():
            plain, taped = inside(root, boxes, argv), inside(root, boxes, argv, library)
            check(f"{name}: it runs", plain.returncode == status, plain.stderr)
            same(f"glibc {GLIBC}: {name}", plain, taped)
            count = events_in(boxes, fresh(tmp, name))
            check(f"{name}: loops are recorded", bool(count) == ("python" in name), count)
            row(f"glibc {GLIBC}: {name}", f"exit {plain.returncode}", f"exit {taped.returncode}",
                f"{count} events", taped.stderr.strip().split("\n")[0])
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
