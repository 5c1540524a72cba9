"""What the tests of the libuv hooks share: reading what was recorded."""
import collections
import json
import os

from libhooks import (BIN, BUILD, PRELOAD, box_folder, boxes_in, check, finish,  # noqa: F401
                      hooked, run, skip)


class Recorded:
    """What a box holds, counted. `program`: how the path of the module ends whose callbacks
    count; those of others, such as libuv's own, are in `others`."""

    def __init__(self, path, program):
        p = run([BIN, "cat", "--json", path], dict(os.environ), 300)
        self.problem = "" if p.returncode == 0 else f"exit {p.returncode}: {p.stderr}"
        self.polls = collections.Counter()    # by name of the kind
        self.others = collections.Counter()
        self.results = collections.defaultdict(collections.Counter)
        self.submits = collections.Counter()  # by name of the kind
        self.begins = collections.Counter()
        self.ends = 0
        self.wakes = collections.Counter()    # by task
        self.polled = collections.Counter()   # by task
        self.late = []
        self.late_wrong = []
        self.parks = collections.Counter()    # (name, level) of the loop
        self.loops = set()
        self.misses = []
        self.missing = 0
        self.unbalanced = []
        self.open = collections.defaultdict(list)
        self.timer_polls = 0
        late_before = {}
        for line in p.stdout.splitlines():
            e = json.loads(line)
            kind, thread = e["type"], e["thread"]
            if kind in ("poll-begin", "work-submit", "work-begin"):
                name = e["kind"]["name"]
                module = (e["kind"].get("code") or {}).get("module") or ""
                mine = module.endswith(program)
            if late_before.pop(thread, None) and (kind != "poll-begin" or name != "uv_timer"):
                self.late_wrong.append(line)
            if kind == "poll-begin":
                (self.polls if mine else self.others)[name] += 1
                self.polled[e["task"]] += 1
                self.timer_polls += name == "uv_timer"
                self.open[thread].append(name)
            elif kind == "poll-end":
                if self.open[thread]:
                    self.results[self.open[thread].pop()][e["result"]] += 1
                else:
                    self.unbalanced.append(line)
            elif kind == "work-submit":
                self.submits[name] += mine
            elif kind == "work-begin":
                self.begins[name] += mine
            elif kind == "work-end":
                self.ends += 1
            elif kind == "wake":
                self.wakes[e["task"]] += 1
            elif kind == "late":
                self.late.append(e["late_ns"])
                late_before[thread] = True
            elif kind == "park":
                self.parks[e["loop"]["name"], e["loop"]["level"]] += 1
                self.loops.add(e["loop"]["number"])
            elif kind == "counter" and "uv misses" in line:
                self.misses.append(line)
            elif kind == "resume":
                self.missing += e["missing"] + e["dropped"]
        self.unbalanced += [f"thread {t} ends in {names}" for t, names in self.open.items()
                            if names]

    def whole(self, name, balanced=True):
        check(f"{name}: the box can be read", not self.problem, self.problem)
        check(f"{name}: nothing is missing", not self.missing, f"{self.missing} records")
        if balanced:
            check(f"{name}: every poll begins and ends", not self.unbalanced, self.unbalanced[:3])
        check(f"{name}: no misses", not self.misses, self.misses[:3])
        check(f"{name}: lateness is said just before the timer's poll", not self.late_wrong,
              self.late_wrong[:2])
        check(f"{name}: all its waits are libuv's, level callbacks",
              set(self.parks) == {("uv loop", "callbacks")}, self.parks)
