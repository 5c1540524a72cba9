#!/usr/bin/env python3
"""Programs with habits that a library inside them can break: signals, stacks, maps, processes."""
import os
import sys

from libharm import failures, skip
from libplaces import HABITS, PYTHON, each, job, run, thrice

# Name, what the row says, and whether anything is recorded.
ROWS = (
    ("small-thread 16384 3600", "a thread with 16 KiB of stack, 3.5 KiB of it left"),
    ("small-handler 8192", "a handler that works on an alternate stack of 8 KiB"),
    ("thread-of-ulimit", "threads with the default stack"),
    ("own-profiler", "a profiler of its own with SIGPROF"),
    ("real-time-handlers", "handlers for all real-time signals"),
    ("signalfd", "all signals blocked and read from a signalfd"),
    ("sigwait", "all real-time signals sent and waited for"),
    ("unmaps", "a program that unmaps shared files it does not know"),
    ("protects", "a program that takes access from shared files it does not know"),
    ("checks-maps", "a program that counts its descriptors and maps"),
    ("all-keys", "a program that uses all thread-specific keys"),
    ("own-allocator", "an allocator of its own with locks"),
    ("userfaultfd", "a program that answers its own page faults"),
    ("vforks", "50 children by vfork"),
    ("clones-memory", "children by clone that share the memory"),
    ("forks-in-threads", "fork in four threads"),
    ("forks-in-handler", "fork in a signal handler"),
    ("spawns-with-closed", "posix_spawn that closes all descriptors"),
    ("empty-arguments", "execve without arguments or environment"),
    ("checks-environment", "a program that checks and clears its environment"),
    ("probes-functions", "a program that asks dlsym for optional libraries"),
)

CLOSES_ALL = """
import os, select
os.closerange(3, 1024)
poll = select.epoll()
poll.poll(0.01)
print(poll.fileno(), flush=True)
"""


def main():
    if not os.path.exists(HABITS):
        skip("habits", "tests/harm was not built")
        return 0
    each(job(situation, [HABITS, *arguments.split()]) for arguments, situation in ROWS)
    thrice("a program that closes all descriptors", [PYTHON, "-c", CLOSES_ALL])
    thrice("a sigaction and a signal of its own, above libc's other names",
           [os.path.join(os.path.dirname(HABITS), "own_signals")])
    # Its grandchild outlives it: `tacho run` waits for that one, too.
    thrice("a program that executes itself anew, and leaves a child", [HABITS, "reexecutes"],
           status=8)
    # A window is saved for each of them; names are looked up anew for each.
    thrice("300 children at once", [HABITS, "many-children", "300"], options=["--no-symbols"])
    # As a user of its own: the limit is for all processes of a user together.
    if os.geteuid() == 0 and run(["setpriv", "--reuid", "54321", "--clear-groups", "test", "-x",
                                  HABITS]).returncode == 0:
        thrice("timers up to RLIMIT_SIGPENDING", [HABITS, "timers-at-limit"],
               within=["prlimit", "--sigpending=20", "setpriv", "--reuid", "54321",
                       "--clear-groups"], env={"TACHO_BOX_DIR": None}, recorded=None)
    else:
        skip("timers up to RLIMIT_SIGPENDING", "needs root, and a build that others can read")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
