"""What the tests of harm share: a program does the same with tacho as without it.

Each situation is one row of a table: the environment, what the program did without tacho and with
it, what was recorded, and what tacho said. docs/environments.md keeps the table of a run.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
import librun  # noqa: E402
from librun import BIN, check, environment, failures, fresh, said, skip, until  # noqa: E402,F401


def may_mount():
    """Whether this user can make mount namespaces, in which most situations are set up."""
    try:
        return subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0
    except OSError:
        return False


def with_shm(size, argv):
    """The command in a mount namespace of its own whose /dev/shm has this size, such as "64m"."""
    return ["unshare", "-m", "--propagation", "private", "sh", "-c",
            f'mount -t tmpfs -o size={size} tmpfs /dev/shm && exec "$@"', "sh", *argv]


def row(situation, plain, taped, recorded, message=""):
    """A line of the table. tests/run.py shows it."""
    cells = (situation, plain, taped, recorded, message or "nothing")
    print("| " + " | ".join(str(cell).replace("|", "/").replace("\n", " ") for cell in cells) + " |")


def same(name, plain, taped):
    """A program that ran twice, to its end, did the same: status and output."""
    return check(f"{name}: same status and output with tacho",
                 (plain.returncode, plain.stdout) == (taped.returncode, taped.stdout),
                 f"without {plain.returncode} {plain.stdout!r}, with {taped.returncode} "
                 f"{taped.stdout!r} {taped.stderr!r}")


place = None  # a folder of this test, for ran_twice


def in_mounts(script):
    """For ran_twice: the command in a mount namespace of its own, after these commands."""
    return lambda argv: ["unshare", "-m", "--propagation", "private", "sh", "-c",
                         script + '; exec "$@"', "sh", *argv]


def ran_twice(situation, argv, *options, wrap=lambda argv: argv, env=None, recorded=None, **more):
    """Runs a command without tacho and with it, both to the end, checks that it did the same, and
    prints the row. `recorded`: of the second run, what was recorded. Returns that run."""
    def once(argv):
        return subprocess.run(wrap(argv), env=environment(**(env or {})), capture_output=True,
                              text=True, timeout=120, stdin=subprocess.DEVNULL,
                              **{"cwd": place, **more})
    plain, taped = once(argv), once([BIN, "run", *options, "--", *argv])
    same(situation, plain, taped)
    told = [x for x in taped.stderr.split("\n") if x.startswith("tacho run:") and
            "is not searched" not in x]
    what = recorded(taped) if recorded else "nothing" if any("nothing" in x for x in told) else \
        "in its box" if "tacho recover" in taped.stderr else "window"
    row(situation, f"exit {plain.returncode}", f"exit {taped.returncode}", what,
        told[0].replace("tacho run: ", "", 1) if told else "")
    return taped
