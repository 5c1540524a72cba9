"""What all tests of the program share: where it is, and how a check is told. Standard library
only."""
import os
import shutil
import sys

BIN = os.path.abspath(shutil.which(os.environ.get("TACHO_BIN", "tacho")) or "")
if not os.path.isfile(BIN):
    print("not ok the program is there: TACHO_BIN does not name the tacho program")
    sys.exit(1)
failures = []  # names of checks


def check(name, condition, why=""):
    if condition:
        print(f"ok {name}")
    else:
        failures.append(name)
        why = str(why).replace("\n", " | ")[:900]
        print(f"not ok {name}: {why or 'false'}")
    sys.stdout.flush()


def skip(name, reason):
    print(f"skip {name}: {reason}")
    sys.stdout.flush()


def said(p):
    return f"exit {p.returncode}, out: {p.stdout!r}, err: {p.stderr!r}"
