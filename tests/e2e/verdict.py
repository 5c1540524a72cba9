#!/usr/bin/env python3
"""The verdict says what it covers: CPU time that threads beside the event loops used is told, as it was not
judged."""
import json
import os
import subprocess
import sys

from librun import BIN, check, folder, run, said
from libcheck import status

PROGRAM = os.path.join(os.environ["TACHO_BUILD"], "tests/e2e/other_threads")
# The machine may be busy; what it does to the loop is not the subject.
CALM = [word for name in ("waiting.share", "lost.share", "stall.count")
        for word in ("--threshold", f"{name}={10**9}")]


def verdict(out, threads):
    trace = os.path.join(out, f"{threads}.tacho")
    p = run("-o", trace, "--", PROGRAM, str(threads), "1.2")
    found = subprocess.run([BIN, "report", "--json", *CALM, trace], capture_output=True, text=True, timeout=60)
    if not check(f"{threads} threads are recorded", found.returncode == 0, said(p) + said(found)):
        return None, ""
    text = subprocess.run([BIN, "report", *CALM, trace], capture_output=True, text=True, timeout=60).stdout
    return json.loads(found.stdout)["verdict"], " ".join(text.split())


def main():
    with folder() as out:
        alone, text = verdict(out, 0)
        check("a loop without others is all there is",
              alone and alone["judged_loops"] == 1 and alone["other_threads"] == 0
              and alone["summary"].startswith("no problem found in the event loop")
              and "judged" not in alone["summary"], alone)
        both, text = verdict(out, 2)
        check("threads that compute beside it are counted",
              both and both["judged_loops"] == 1 and both["other_threads"] == 2
              and both["other_cpus"] > 0.05, both)
        check("and the first sentence is not all that is said",
              both and "2 other threads used" in both["summary"] and "not judged" in both["summary"], both)
        check("in the terminal as well", both and both["summary"] in text, text)
    return status()


if __name__ == "__main__":
    sys.exit(main())
