"""What the tests of the libevent hooks share: reading what was recorded."""
import collections
import json
import os

from libhooks import (BIN, BUILD, PRELOAD, box_folder, boxes_in, check, finish,  # noqa: F401
                      hooked, run, skip)


class Recorded:
    """What a box holds, counted."""

    def __init__(self, path):
        p = run([BIN, "cat", "--json", path], dict(os.environ), 300)
        self.problem = "" if p.returncode == 0 else f"exit {p.returncode}: {p.stderr}"
        self.types = collections.Counter()
        self.calls = collections.Counter()   # (kind, address) of polls
        self.tasks = collections.defaultdict(set)
        self.wakes = collections.Counter()   # task
        self.parks = collections.Counter()   # (name, level) of the loop
        self.loops = set()                   # numbers of the loops seen at level callbacks
        self.counters = []
        self.missing = 0
        self.unbalanced = []
        self.pid = 0
        depth = collections.Counter()
        for line in p.stdout.splitlines():
            e = json.loads(line)
            kind = e["type"]
            self.pid = e["pid"]
            self.types[kind] += 1
            if kind == "poll-begin":
                depth[e["thread"]] += 1
                of = (e["kind"]["name"], int(e["kind"]["code"]["address"], 16))
                self.calls[of] += 1
                self.tasks[of].add(e["task"])
            elif kind == "poll-end":
                depth[e["thread"]] -= 1
                if depth[e["thread"]] < 0:
                    self.unbalanced.append(line)
            elif kind == "wake":
                self.wakes[e["task"]] += 1
            elif kind == "park":
                loop = e["loop"]
                self.parks[loop["name"], loop["level"]] += 1
                if loop["level"] == "callbacks":
                    self.loops.add(loop["number"])
            elif kind == "counter":
                self.counters.append(line)
            elif kind == "resume":
                self.missing += e["missing"] + e["dropped"]
        self.unbalanced += [f"thread {t} ends {d} deep" for t, d in depth.items() if d]

    def whole(self, name):
        """Checks that nothing is missing and all polls have an end."""
        check(f"{name}: the box can be read", not self.problem, self.problem)
        check(f"{name}: nothing is missing", not self.missing, f"{self.missing} records")
        check(f"{name}: every poll begins and ends", not self.unbalanced, self.unbalanced[:3])
        misses = [c for c in self.counters if "libevent callbacks not hooked" in c]
        check(f"{name}: no callback was left out", not misses, misses[:3])
