#!/usr/bin/env python3
"""Programs with tiny limits (setrlimit), and as users with no rights."""
import os
import sys

from libharm import failures, skip
from libplaces import HABITS, PYTHON, SERVER, each, job, run, thrice

SERVE = [PYTHON, "-S", "-c", SERVER]
ROWS = (
    ("8 open files", ["prlimit", "--nofile=8"], SERVE, None),
    ("16 open files", ["prlimit", "--nofile=16"], SERVE, None),
    ("200 MB of address space", ["prlimit", "--as=209715200"], [PYTHON, "-S", "-c", SERVER], None),
    ("50 MB of address space", ["prlimit", "--as=52428800"], [HABITS, "wait"], None),
    ("64 KiB of stack", ["prlimit", "--stack=65536"], [HABITS, "thread-of-ulimit"], True),
    ("256 KiB of stack", ["prlimit", "--stack=262144"], [HABITS, "thread-of-ulimit"], True),
    ("no file may grow", ["prlimit", "--fsize=0"], [HABITS, "wait"], None),
    ("no locked memory", ["prlimit", "--memlock=0"], SERVE, True),
    ("20 MB of data", ["prlimit", "--data=20971520"], [HABITS, "wait"], None),
    ("a second of CPU time", ["prlimit", "--cpu=1"], SERVE, True),
    ("no core files", ["prlimit", "--core=0"], SERVE, True),
    ("no real-time priority, lowest niceness", ["nice", "-n", "19"], SERVE, True),
)


def main():
    each(job(situation, argv, within=within, recorded=recorded)
         for situation, within, argv, recorded in ROWS)
    if os.geteuid() == 0 and run(["setpriv", "--reuid", "65534", "test", "-x",
                                  HABITS]).returncode == 0:
        nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        thrice("nobody", [HABITS, "wait"], within=nobody, env={"TACHO_BOX_DIR": None})
        thrice("nobody without new privileges", [HABITS, "wait"],
               within=[*nobody, "--no-new-privs"], env={"TACHO_BOX_DIR": None})
        thrice("nobody, at the limit of processes", [HABITS, "wait"],
               within=["prlimit", "--nproc=3", "setpriv", "--reuid", "54322", "--clear-groups"],
               env={"TACHO_BOX_DIR": None}, recorded=None)
    else:
        skip("nobody", "needs root, and a build that others can read")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
