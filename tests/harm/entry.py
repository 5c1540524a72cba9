#!/usr/bin/env python3
"""tacho run as the entry point of a container: whatever tacho lacks, the program runs."""
import ctypes
import os
import resource
import signal
import subprocess
import sys

import libharm
from libharm import (BIN, check, environment, failures, fresh, in_mounts, may_mount, ran_twice, row,
                     said, skip, until)
from librun import LOOP, PYTHON, boxes, count, folder, others_may_run, script, state, watched

DONE = "print('done', flush=True)\nsys.exit(7)"
PROGRAM = [PYTHON, "-c", LOOP + DONE]
# Whether the streams are open, which signals are blocked and ignored, and the environment's names
# that are not tacho's.
STATE = """
import os, sys
def is_open(fd):
    try: os.fstat(fd)
    except OSError: return False
    return True
streams = [is_open(fd) for fd in range(3)]
fields = [x for x in open("/proc/self/status") if x[:6] in ("SigBlk", "SigIgn")]
with open(sys.argv[1], "w") as f:
    f.write(repr((streams, fields, os.getpgid(0) == os.getpgid(os.getppid()))))
"""


def clear():
    for box in boxes():
        os.unlink(box)


# ------------------------------------------------------------- what tacho is refused

NUMBERS = {"x86_64": {"signalfd4": 289, "eventfd2": 290, "inotify_init1": 294, "pipe2": 293,
                      "pidfd_open": 434, "perf_event_open": 298, "getrandom": 318,
                      "futex_waitv": 449, "inotify_add_watch": 254},
           "aarch64": {"signalfd4": 74, "eventfd2": 19, "inotify_init1": 26, "pipe2": 59,
                       "pidfd_open": 434, "perf_event_open": 241, "getrandom": 278,
                       "futex_waitv": 449, "inotify_add_watch": 27}}


def refuse(calls):
    """For preexec_fn: these system calls fail with ENOSYS, as under a strict profile."""
    def apply():
        code = [(0x20, 0, 0, 0)]  # load the number
        for number in calls:
            code += [(0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | 38)]
        code.append((0x06, 0, 0, 0x7fff0000))
        words = b"".join(k.to_bytes(2, "little") + bytes([t, f]) + v.to_bytes(4, "little")
                         for k, t, f, v in code)
        text = ctypes.create_string_buffer(words, len(words))
        program = len(code).to_bytes(8, "little") + ctypes.addressof(text).to_bytes(8, "little")
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
            raise OSError(ctypes.get_errno(), "seccomp")
    return apply


def refused_calls(tmp):
    numbers = NUMBERS.get(os.uname().machine)
    try:
        subprocess.run(["true"], preexec_fn=refuse([]), check=True)
    except (OSError, subprocess.SubprocessError):
        numbers = None
    if not numbers:
        return skip("refused system calls", "seccomp filters cannot be used here")
    for names in [["signalfd4"], ["eventfd2"], ["pipe2"], ["inotify_init1"], ["inotify_add_watch"],
                  ["pidfd_open"], ["perf_event_open", "getrandom", "futex_waitv"], list(numbers)]:
        situation = "refused: " + (" ".join(names) if len(names) < 9 else "all of these")
        trace = os.path.join(tmp, f"refused-{names[0]}-{len(names)}.tacho")
        taped = ran_twice(situation, PROGRAM, "--sched", "-o", trace,
                          preexec_fn=refuse([numbers[n] for n in names]))
        # Where tacho cannot follow it, the window is in the box, and the message says so.
        followed = not {"signalfd4", "eventfd2", "pipe2"} & set(names)
        check(f"{situation}: the window is {'saved' if followed else 'in its box'}",
              count(trace, "park") == 3 and boxes() == [] if followed else
              len(boxes()) == 1 and "tacho recover -o FOLDER" in taped.stderr, (boxes(), said(taped)))
        clear()


def limits(tmp):
    """Few descriptors, no process, no files."""
    simple = ["/bin/echo", "done"]
    for most in (4, 5, 6, 7, 8, 9, 10, 16):
        ran_twice(f"at most {most} descriptors", simple, "-o", tmp + "/few.tacho",
                  recorded=lambda p: "nothing",
                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most)))
    ran_twice("files of no size (ulimit -f 0)", simple, "-o", tmp + "/size.tacho",
                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    situation = "no further process (ulimit -u)"
    if os.geteuid() != 0 or not others_may_run() or not watched():
        return skip(situation, "needs root, libuv, and a build that others may run")
    shm = fresh(libharm.place, "limits")
    os.chmod(shm, 0o777)
    mine = os.path.join("/dev/shm", f"tacho-harm-{os.getpid()}")
    os.mkdir(mine, 0o700)
    os.chown(mine, 65534, 65534)
    taped = ran_twice(situation, [watched(), "turns:3", "exit:7"], "-o", shm, user=65534,
                      env={"TACHO_BOX_DIR": mine},
                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (0, 0)))
    check(f"{situation}: it is recorded", "no process can be made" in taped.stderr and
          len(os.listdir(mine)) == 1, (os.listdir(mine), said(taped)))
    subprocess.run(["rm", "-r", mine])


def too_long(tmp):
    """An environment to which nothing can be added."""
    short = os.path.join(tmp, "t")
    os.symlink(BIN, short)
    env = {"PATH": os.environ["PATH"], "TACHO_BOX_DIR": os.environ["TACHO_BOX_DIR"]}

    def small_stack():
        resource.setrlimit(resource.RLIMIT_STACK, (1 << 19, 1 << 19))

    def once(argv, size):
        try:
            return subprocess.run(argv, env={**env, "FILLER": "x" * size}, capture_output=True,
                                  text=True, preexec_fn=small_stack, cwd=tmp)
        except OSError:
            return None
    argv = ["/bin/sh", "-c", "echo ${#FILLER}; exit 7"]
    fits, not_any_more = 0, 131072
    while not_any_more - fits > 1:
        middle = (fits + not_any_more) // 2
        if once([short, "run", "--", *argv], middle):
            fits = middle
        else:
            not_any_more = middle
    plain, taped = once(argv, fits), once([short, "run", "--", *argv], fits)
    situation = "environment as long as the system allows"
    libharm.same(situation, plain, taped)
    check(f"{situation}: that is told", "longer than the system allows" in taped.stderr, said(taped))
    row(situation, f"exit {plain.returncode}", f"exit {taped.returncode}", "nothing",
        next((x for x in taped.stderr.split("\n") if "recorded" in x), ""))
    for name, env_of_it in [("LD_PRELOAD", {"LD_PRELOAD": "/none.so" + " " * 9000}),
                            ("NODE_OPTIONS", {"NODE_OPTIONS": " " * 9000})]:
        taped = ran_twice(f"{name} of 9,000 bytes", ["/bin/sh", "-c", f"echo ${{#{name}}}; exit 7"],
                          "--names", env=env_of_it)
        check(f"{name} of 9,000 bytes: that is told", name in taped.stderr, said(taped))


def missing(tmp):
    """Parts of the system, or of tacho, that are not there."""
    taped = ran_twice("library that records is missing", PROGRAM, env={"TACHO_PRELOAD": "/none.so"})
    check("library that records is missing: that is told in one line",
          taped.stderr.count("recorded") == 1 and "nothing will be recorded" in taped.stderr,
          said(taped))
    taped = ran_twice("TACHO=off", PROGRAM, env={"TACHO": "off"})
    check("TACHO=off: that is told in one line", taped.stderr.count("\n") == 1 and
          "TACHO=off" in taped.stderr, said(taped))
    trace = os.path.join(tmp, "relative.tacho")
    taped = ran_twice("TACHO_BOX_DIR that is relative", PROGRAM, "-o", trace,
                      env={"TACHO_BOX_DIR": "boxes"})
    check("TACHO_BOX_DIR that is relative: it is ignored", "TACHO_BOX_DIR" in taped.stderr and
          count(trace, "park") == 3, said(taped))
    if not may_mount():
        return skip("parts of the system that are not there", "needs mount namespaces")
    hide = "mount -t tmpfs -o size=64k,ro tmpfs "
    for name, situation, commands in [
            ("proc", "no /proc", "umount -l /proc"),
            ("empty-proc", "an empty /proc", hide + "/proc"),
            ("dev", "no /dev at all", hide + "/dev"),
            ("shm", "no /dev/shm", hide + "/dev/shm")]:
        trace = os.path.join(tmp, name + ".tacho")
        ran_twice(situation, PROGRAM, "-o", trace, wrap=in_mounts(commands))
        if "proc" in name:
            check(f"{situation}: it is recorded", count(trace, "park") == 3)
    argv = ["/bin/sh", "-c", "exec 0<&- 1>&- 2>&-; exec \"$@\"", "sh"]
    ran_twice("no /dev, and no standard streams", ["/bin/sh", "-c", "exit 7"], "-o", tmp + "/x.tacho",
              recorded=lambda p: "nothing",
              wrap=lambda a: in_mounts(hide + "/dev")([*argv, *a]))


# ------------------------------------------------------------- what its caller left to it

def inherited(tmp):
    """Streams, signals and process group reach the program as they reach it without tacho."""
    source = script(tmp, "state.py", STATE)

    def ignore():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)

    def block():
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, signal.SIGTERM, signal.SIGPIPE})

    def close():
        for fd in range(3):
            os.close(fd)
    for number, (situation, prepare) in enumerate([("SIGCHLD ignored by the caller", ignore),
                                                   ("SIGCHLD and SIGTERM blocked", block),
                                                   ("no standard streams", close)]):
        out = [os.path.join(tmp, f"state-{number}-{way}") for way in ("plain", "taped")]
        ends = [subprocess.run([*way, PYTHON, source, path], preexec_fn=prepare, cwd=tmp,
                               env=environment()).returncode
                for path, way in zip(out, ([], [BIN, "run", "-q", "-o", tmp, "--"]))]
        told = [open(path).read() for path in out if os.path.exists(path)]
        check(f"{situation}: the program finds the same", ends == [0, 0] and len(told) == 2 and
              told[0] == told[1], (ends, told))
        row(situation, f"exit {ends[0]}", f"exit {ends[1]}", "nothing", "")


def unread(tmp):
    """What tacho says reaches nobody: a pipe that is full, and one without a reader."""
    for situation, is_full in [("standard error is a full pipe", True),
                               ("standard error is a broken pipe", False)]:
        reader, writer = os.pipe()
        if is_full:
            os.set_blocking(writer, False)
            try:
                while os.write(writer, b"x" * 4096):
                    pass
            except BlockingIOError:
                os.set_blocking(writer, True)
        else:
            os.close(reader)
        p = subprocess.run([BIN, "run", "-o", tmp + "/no/such/", "--", *PROGRAM], stderr=writer,
                           stdout=subprocess.PIPE, text=True, env=environment(), timeout=120)
        check(f"{situation}: the program runs", (p.returncode, p.stdout) == (7, "done\n"), said(p))
        row(situation, "exit 7", f"exit {p.returncode}", "in its box", "")
        os.close(writer)
        if is_full:
            os.close(reader)
        clear()


# ------------------------------------------------------------------------- PID 1

def init(*argv):
    return ["unshare", "-p", "-f", "--mount-proc", "--kill-child", *argv]


# A server that ends at SIGTERM. Its helper signals the first process, as scripts in containers do;
# before that it leaves orphans behind, which become the first process's children.
SERVER = """
import os, select, signal, subprocess, sys
def end(number, frame):
    print(signal.Signals(number).name, flush=True)
    raise SystemExit(5)
signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGHUP, lambda n, f: print("reloads", flush=True))
loop = select.epoll()
loop.poll(0.005)
print("ready", flush=True)
helper = subprocess.Popen(["/bin/sh", "-c", sys.argv[1]])
for i in range(6000): loop.poll(0.1)
"""


def stdout_of(argv, cwd):
    p = subprocess.run(argv, cwd=cwd, env=environment(), capture_output=True, text=True, timeout=120)
    return p.returncode, p.stdout.split(), p.stderr


def first_process(tmp):
    if not may_mount() or subprocess.run(init("true"), capture_output=True).returncode:
        return skip("PID 1", "needs pid namespaces")
    helper = "kill -HUP 1; sleep 0.2; kill -TERM 1; sleep 100"
    ends = [stdout_of(init(*way, PYTHON, "-c", SERVER, helper), tmp) for way in ([], [
        BIN, "run", "-q", "-o", tmp + "/first.tacho", "--"])]
    check("PID 1: a child's signals to process 1 reach the program", ends[0][:2] == ends[1][:2] ==
          (5, ["ready", "reloads", "SIGTERM"]), ends)
    row("PID 1, its child signals process 1", f"exit {ends[0][0]}", f"exit {ends[1][0]}", "window", "")
    outside(tmp)
    orphans(tmp)
    left_behind(tmp)


def outside(tmp):
    """Signals from outside the container, as of `docker stop`."""
    p = subprocess.Popen(init(BIN, "run", "-q", "-o", tmp + "/outside.tacho", "--", PYTHON, "-c",
                              SERVER, "true"), cwd=tmp, env=environment(), stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    check("PID 1: it starts", p.stdout.readline() == "ready\n")
    os.kill(libharm.librun.child_of(p.pid), signal.SIGTERM)
    out, err = p.communicate(timeout=120)
    check("PID 1: a signal from outside reaches the program", (p.returncode, out) == (5, "SIGTERM\n")
          and count(tmp + "/outside.tacho", "park"), (p.returncode, out, err))
    row("PID 1, SIGTERM from outside", "exit 5", f"exit {p.returncode}", "window", err)


def orphans(tmp):
    """Orphans that end are no zombies for longer than a moment."""
    helper = "for i in 1 2 3 4 5; do sh -c 'sleep 0 & sleep 0 & true'; done; echo orphans; sleep 100"
    p = subprocess.Popen(init(BIN, "run", "-q", "-o", tmp + "/orphans.tacho", "--", PYTHON, "-c",
                              SERVER, helper), cwd=tmp, env=environment(), stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    lines = [p.stdout.readline() for _ in range(2)]
    first = libharm.librun.child_of(p.pid)

    def zombies():
        with open(f"/proc/{first}/task/{first}/children") as f:
            return [pid for pid in f.read().split() if state(pid) == "Z"]
    check("PID 1: orphans are reaped", lines == ["ready\n", "orphans\n"] and
          until(lambda: not zombies()), lines)
    os.kill(first, signal.SIGTERM)
    p.communicate(timeout=120)
    row("PID 1, ten orphans", "zombies, unless the program reaps", "none", "window", "")


def left_behind(tmp):
    """The container ends with its program, whatever that leaves running."""
    daemon = "import select; select.epoll().poll(0.01); print(1, flush=True); " \
             "select.epoll().poll(300)"
    launcher = "import os, subprocess, sys; p = subprocess.Popen([sys.executable, '-c', " \
               "sys.argv[1]], stdout=subprocess.PIPE); p.stdout.readline(); os._exit(3)"
    argv = [PYTHON, "-c", launcher, daemon]
    ends = [stdout_of(init(*way, *argv), tmp)[0]
            for way in ([], [BIN, "run", "-q", "-o", tmp + "/left.tacho", "--"])]
    row("PID 1, a daemon is left", f"exit {ends[0]}", f"exit {ends[1]}", "window so far", "")
    check("PID 1: the container ends with its program", ends == [3, 3] and
          count(tmp + "/left.tacho", "park"), ends)


def main():
    with folder() as tmp:
        os.chmod(tmp, 0o755)
        libharm.place = fresh(tmp, "harm")
        refused_calls(tmp)
        limits(tmp)
        clear()
        too_long(tmp)
        missing(tmp)
        clear()
        inherited(tmp)
        unread(tmp)
        first_process(tmp)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
