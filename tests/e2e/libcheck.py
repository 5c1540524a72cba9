"""What all tests of the program share: where it is, and how a check is told. Standard library
only."""
import os
import shutil
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from libresult import check, failures, skip, status  # noqa: E402, F401

BIN = os.path.abspath(shutil.which(os.environ.get("TACHO_BIN", "tacho")) or "")
if not os.path.isfile(BIN):
    print("not ok the program is there: TACHO_BIN does not name the tacho program")
    sys.exit(1)


def said(p):
    return f"exit {p.returncode}, out: {p.stdout!r}, err: {p.stderr!r}"
