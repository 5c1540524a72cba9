#!/usr/bin/env python3
"""Programs in containers and other narrow places: namespaces, mounts, roots and filters."""
import os
import subprocess
import sys
import tempfile

from libharm import BIN, check, environment, failures, librun, may_mount, row, skip, until
from libplaces import BUILD, HABITS, PYTHON, SERVER, each, job, mounted, preload, run, thrice

SERVE = [PYTHON, "-S", "-c", SERVER]
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
KEEP = 'mount --bind "$PWD" "$PWD"'  # the folder of the trace stays as it is
NO_SHM = ("mkdir -p dev && mount -t tmpfs tmpfs dev && for n in null zero random urandom; do "
          "touch dev/$n && mount --bind /dev/$n dev/$n || exit 1; done && mount --rbind dev /dev")
# Situation, what makes the place, the command, whether a window is expected.
MOUNTS = (
    ("read-only root", f"{KEEP} && mount -o remount,ro,bind /", SERVE, True),
    ("read-only root and /dev/shm", f"{KEEP} && mount -o remount,ro,bind / && "
     "mount -t tmpfs -o ro tmpfs /dev/shm", SERVE, False),
    ("no /dev/shm", NO_SHM, SERVE, None),
    ("/dev/shm is on a disk", 'mkdir -p disk && mount --bind disk /dev/shm', SERVE, None),
    ("/dev/shm without room", "mount -t tmpfs -o size=4k tmpfs /dev/shm", SERVE, None),
    ("/dev/shm without inodes", "mount -t tmpfs -o nr_inodes=1 tmpfs /dev/shm", SERVE, None),
    ("/dev/shm that forbids to execute", "mount -t tmpfs -o noexec,nosuid tmpfs /dev/shm", SERVE,
     True),
    ("no /sys", "mount -t tmpfs tmpfs /sys", SERVE, True),
    ("no /etc", "mount -t tmpfs tmpfs /etc", [HABITS, "wait"], True),
)
CHROOT = """
import os, select, sys
poll = select.epoll()
poll.poll(0.01)
os.mkdir('root')
os.chroot('root')
os.chdir('/')
for _ in range(3):
    poll.poll(0.01)
pid = os.fork()
if not pid:
    poll = select.epoll()
    poll.poll(0.01)
    os._exit(5)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


def mounts():
    each(job(situation, argv, within=mounted(script), env={"TACHO_BOX_DIR": None},
             recorded=recorded) for situation, script, argv, recorded in MOUNTS)
    thrice("no /proc", [HABITS, "wait"], within=mounted("mount -t tmpfs tmpfs /proc"), by_run=False)
    thrice("chroot after the start", [PYTHON, "-S", "-c", CHROOT],
           within=mounted('mkdir -p t && mount -t tmpfs tmpfs t && cd t'), recorded=True)
    if run([*NOBODY, "test", "-x", HABITS]).returncode == 0:
        thrice("hidepid=2, as nobody", [HABITS, "wait"], env={"TACHO_BOX_DIR": None},
               within=mounted("mount -t proc -o hidepid=2 proc /proc") + NOBODY)
        thrice("a /dev/shm that is closed to nobody", [HABITS, "wait"],
               env={"TACHO_BOX_DIR": None}, recorded=None,
               within=mounted("mount -t tmpfs -o mode=755 tmpfs /dev/shm") + NOBODY)
        thrice("a user namespace of its own, as nobody", [HABITS, "wait"],
               env={"TACHO_BOX_DIR": None}, within=[*NOBODY, "unshare", "-U"])
        thrice("root of a user namespace, as nobody", [HABITS, "wait"],
               env={"TACHO_BOX_DIR": None}, within=[*NOBODY, "unshare", "-Ur"])
    else:
        skip("nobody", "the build cannot be read by others")


def namespaces():
    alone = ["unshare", "-p", "-f", "--mount-proc"]
    thrice("tacho run as PID 1", SERVE, within=alone)
    thrice("PID 1 of a namespace, as the program", [*alone, *SERVE])
    thrice("all namespaces of a container", SERVE,
           within=["unshare", "-m", "-p", "-f", "-i", "-u", "-n", "-C", "--mount-proc"])
    thrice("a program that unshares its mounts", ["unshare", "-m", HABITS, "wait"])
    thrice("a clock of its own (time namespace)", [HABITS, "wait"],
           within=["unshare", "--time", "--monotonic", "5000", "--fork"])


def filters():
    """Filters that are there before the program begins. Those of service managers end a program at a
    call of a group, such as @privileged, that recording does not need either."""
    filtered = f"{BUILD}/tests/harm/filtered"
    if run([filtered, "docker", "true"]).returncode:
        skip("filters for system calls", "the kernel takes none, or tests/harm was not built")
        return
    thrice("Docker's default filter for system calls", SERVE, within=[filtered, "docker"])
    thrice("a filter that answers ENOSYS", SERVE, within=[filtered, "enosys"])
    numbers = "165,166,155,169,170,246,248,298,310" if os.uname().machine == "x86_64" else "97"
    thrice("a filter that ends programs at privileged calls", [HABITS, "wait"],
           within=[filtered, f"deny:{numbers}"], by_run=False)
    number = "157" if os.uname().machine == "x86_64" else "167"  # prctl: the library asks for a name
    thrice("a sandbox whose filter ends programs at calls of the recorder",
           [filtered, f"deny:{number}", "sh", "-c", "exit 3"], status=3, recorded=None)


def shared_shm():
    """Two containers with one /dev/shm have processes with the same numbers."""
    situation = "two containers with one /dev/shm and the same PIDs"
    alone = ["unshare", "-p", "-f", "--mount-proc"]
    wait = "import select, sys; p = select.epoll(); [p.poll(0.02) for _ in range(40)]; print('end')"
    with tempfile.TemporaryDirectory(prefix="tacho-harm-") as tmp, \
            tempfile.TemporaryDirectory(prefix="tacho-two-", dir="/dev/shm") as boxes:
        env = environment(TACHO_BOX_DIR=boxes)
        started = [subprocess.Popen([*alone, BIN, "run", "-o", f"{tmp}/{i}.tacho", "--", PYTHON,
                                     "-S", "-c", wait], env=env, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True) for i in range(2)]
        # A third one leaves boxes behind, and deletes the oldest of those that it takes for left.
        until(lambda: len(os.listdir(boxes)) >= 2)
        for _ in range(2):
            run([*alone, "env", f"LD_PRELOAD={preload()}", HABITS, "many-children", "12"], env=env)
        ends = [librun.finish(process) for process in started]
        events = [len(librun.events(f"{tmp}/{i}.tacho") or []) for i in range(2)]
    check(f"{situation}: both end well", all(end[:2] == (0, "end\n") for end in ends), ends)
    check(f"{situation}: both windows are whole", all(n >= 80 for n in events), (events, ends))
    row(situation, "exit 0, exit 0", "exit {}, exit {}".format(*(end[0] for end in ends)),
        "two windows", "")


def main():
    if not may_mount() or os.geteuid():
        skip("containers", "needs root and mount namespaces")
        return 0
    mounts()
    namespaces()
    filters()
    shared_shm()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
