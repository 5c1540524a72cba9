"""What the tests of the hooks share: running programs under them, and where boxes lie."""
import os
import subprocess
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from libresult import check, skip, status  # noqa: E402, F401

BUILD = os.path.abspath(os.environ.get("TACHO_BUILD") or "build")
BIN = os.environ.get("TACHO_BIN") or os.path.join(BUILD, "src/cli/tacho")
PRELOAD = os.path.join(BUILD, "src/hooks/libtacho-preload.so")


def finish():
    sys.exit(status())


def hooked(boxes, more=None):
    """The environment of a program whose boxes stay in a folder."""
    return dict(os.environ, LD_PRELOAD=PRELOAD, TACHO_BOX_DIR=boxes, TACHO_KEEP_BOX="1",
                TACHO_SAMPLE_HZ="0", **(more or {}))


def box_folder():
    return tempfile.TemporaryDirectory(prefix="tacho-hooks-", dir="/dev/shm")


def boxes_in(folder):
    return sorted(os.path.join(folder, f) for f in os.listdir(folder) if f.endswith(".box"))


def run(argv, env, limit=60, **more):
    return subprocess.run(argv, env=env, timeout=limit, capture_output=True, text=True,
                          errors="replace", stdin=subprocess.DEVNULL, **more)
