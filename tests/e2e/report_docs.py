#!/usr/bin/env python3
"""docs/report.md names every field of `tacho report --json`, and none that is nowhere."""
import glob
import json
import os
import re
import subprocess
import sys

from libcheck import BIN, check, failures
from libdocs import SOURCE

# In a trace of some kind that the golden ones are not.
RARE = {"imported", "ledger", "hindered", "said", "error", "exe", "comm", "reason", "parent_pid", "seen_ns"}


def documented():
    with open(os.path.join(SOURCE, "docs/report.md"), encoding="utf-8") as f:
        text = f.read().partition("## JSON")[2].partition("```")[2].partition("```")[0]
    return set(re.findall(r'"([a-z_]+)"', text)), int(re.search(r'"version": (\d+)', text).group(1))


def keys(value, path=()):
    """Names of all fields; those of `coverage` are rules."""
    if isinstance(value, list):
        for item in value:
            yield from keys(item, path)
    elif isinstance(value, dict):
        for key, item in value.items():
            if path[-1:] != ("coverage",):
                yield key
            yield from keys(item, path + (key,))


def main():
    known, version = documented()
    seen, versions = set(), set()
    for path in sorted(glob.glob(os.path.join(SOURCE, "tests/golden-answers/*.tacho"))):
        p = subprocess.run([BIN, "report", "--json", "--all", "--ledger", path], capture_output=True, text=True)
        report = json.loads(p.stdout)
        seen |= set(keys(report))
        versions.add(report["version"])
    check("there are reports", len(seen) > 50, sorted(seen))
    check("every field is in docs/report.md", not seen - known, sorted(seen - known))
    check("every field of docs/report.md is somewhere", not known - seen - RARE, sorted(known - seen - RARE))
    check("the version is that of docs/report.md", versions == {version}, (versions, version))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
