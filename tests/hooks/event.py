#!/usr/bin/env python3
"""Programs that use libevent: they behave the same under the hooks, and every callback and
wake that they count themselves is recorded, under its name and with its function."""
import collections
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from libevent_hooks import (BUILD, Recorded, box_folder, boxes_in, check, finish,  # noqa: E402
                            hooked, run, skip)

SUBJECT = os.path.join(BUILD, "tests/hooks/hooks-event_subject")
INTERNAL = "libevent"  # events of bufferevents, listeners and so on


def steady(text):
    """Its output without addresses."""
    out = []
    for line in text.splitlines():
        words = line.split()
        if words[0] == "call":
            del words[2]
        if words[0] == "wake":
            del words[1]
        out.append(" ".join(words))
    return out


class Said:
    """What the program counted."""

    def __init__(self, lines):
        self.calls = collections.Counter()
        self.wakes = collections.Counter()
        self.names = {}
        for line in lines:
            words = line.split()
            if words[0] == "call":
                of = (" ".join(words[4:]), int(words[2], 16))
                self.calls[of] += int(words[3])
                self.names[of] = f"{words[1]} as {of[0]}"
            elif words[0] == "wake" and int(words[2]):
                self.wakes[int(words[1], 16)] += int(words[2])


def compare(name, recorded, said):
    recorded.whole(name)
    for of, n in said.calls.items():
        check(f"{name}: {said.names[of]}", recorded.calls[of] == n,
              f"called {n} times, {recorded.calls[of]} polls")
    others = {k: n for k, n in recorded.calls.items() if k not in said.calls and k[0] != INTERNAL}
    check(f"{name}: no other callbacks", not others, others)
    check(f"{name}: wakes", recorded.wakes == said.wakes,
          f"woken {said.wakes}, recorded {recorded.wakes}")
    polled = set().union(*recorded.tasks.values()) if recorded.tasks else set()
    check(f"{name}: what was woken was polled", set(said.wakes) <= polled,
          set(said.wakes) - polled)
    check(f"{name}: all its waits are libevent's, level callbacks",
          set(recorded.parks) == {("libevent loop", "callbacks")}, recorded.parks)


def both(mode, name, more=None):
    """Runs the program without and with the hooks; the boxes and its output."""
    folder = box_folder()
    argv = [SUBJECT] + ([mode] if mode else [])
    plain = run(argv, dict(os.environ, **(more or {})))
    under = run(argv, hooked(folder.name, more))
    good = check(f"{name}: the same status", plain.returncode == under.returncode == 0,
                 f"{plain.returncode} and {under.returncode} {under.stderr}")
    a, b = steady(plain.stdout), steady(under.stdout)
    good &= check(f"{name}: the same output", bool(a) and a == b,
                  [x for x in zip(a, b) if x[0] != x[1]][:3] or f"{len(a)} and {len(b)} lines")
    return good and (folder, under.stdout.splitlines())


def one_process(mode, name, more=None):
    got = both(mode, name, more)
    if not got:
        return
    folder, lines = got
    with folder:
        boxes = boxes_in(folder.name)
        if check(f"{name}: one box", len(boxes) == 1, boxes):
            recorded = Recorded(boxes[0])
            compare(name, recorded, Said(lines))
            return recorded


def forks():
    got = both("fork", "fork in a callback")
    if not got:
        return
    folder, lines = got
    with folder:
        boxes = {r.pid: r for r in map(Recorded, boxes_in(folder.name))}
        if not check("fork in a callback: two boxes", len(boxes) == 2, boxes):
            return
        # The child ends first and says so.
        cut = lines.index("in child") + 3
        said = {"child": Said(lines[:cut]), "parent": Said(lines[cut:])}
        parent, child = sorted(boxes)
        compare("fork in a callback, the parent", boxes[parent], said["parent"])
        compare("fork in a callback, the child", boxes[child], said["child"])


LOADED_LATER = """
import ctypes, sys
library = ctypes.CDLL("libevent-2.1.so.7")
for f in (library.event_base_new, library.event_new):
    f.restype = ctypes.c_void_p
pointer = ctypes.c_void_p
Callback = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_short, pointer)
calls = 0
def call(fd, what, arg):
    global calls
    calls += 1
    if arg != 42 or fd != -1:
        sys.exit(3)
f = Callback(call)
base = pointer(library.event_base_new())
event = pointer(library.event_new(base, -1, 0, f, pointer(42)))
for i in range(5):
    library.event_active(event, 2, 1)
    library.event_base_loop(base, 2)
library.event_free(event)
library.event_base_free(base)
print(calls)
"""


def loaded_later():
    """libevent that no part of the program is linked with."""
    name = "libevent through dlopen"
    argv = [sys.executable, "-c", LOADED_LATER]
    plain = run(argv, dict(os.environ))
    if plain.returncode:
        skip(name, f"python cannot load libevent: {plain.stderr.splitlines()[-1:]}")
        return
    with box_folder() as folder:
        under = run(argv, hooked(folder))
        check(f"{name}: works as without", under.stdout == plain.stdout == "5\n" and
              not under.returncode, under)
        boxes = boxes_in(folder)
        # Its own calls go to libevent itself; what libevent calls in turn comes by here.
        recorded = [Recorded(b) for b in boxes]
        n = sum(n for r in recorded for (kind, _), n in r.calls.items() if kind == "event")
        check(f"{name}: callbacks are recorded", n == 5, f"{n} polls in {boxes}")


MANY = LOADED_LATER[:LOADED_LATER.index("f = Callback")] + """
functions = [Callback(call) for i in range(1500)]
base = pointer(library.event_base_new())
for f in functions:
    event = pointer(library.event_new(base, -1, 0, f, pointer(42)))
    library.event_active(event, 2, 1)
    library.event_base_loop(base, 2)
    library.event_free(event)
print(calls)
"""


def many_functions():
    """More functions than can be told apart: the rest runs unseen, and that is counted."""
    name = "1500 functions"
    argv = [sys.executable, "-c", MANY]
    if run(argv, dict(os.environ)).returncode:
        skip(name, "python cannot load libevent")
        return
    with box_folder() as folder:
        under = run(argv, hooked(folder))
        check(f"{name}: all are called", under.stdout == "1500\n", under)
        recorded = [Recorded(b) for b in boxes_in(folder)]
        seen = sum(n for r in recorded for (kind, _), n in r.calls.items() if kind == "event")
        misses = [c for r in recorded for c in r.counters if "libevent callbacks not hooked" in c]
        check(f"{name}: seen and unseen add up", 1000 < seen < 1500 and
              seen + len(misses) == 1500, f"{seen} seen, {len(misses)} counted as not seen")


def main():
    if not os.path.exists(SUBJECT):
        skip("libevent programs", "libevent-dev was not there when tacho was built")
        return
    one_process(None, "all kinds")
    one_process(None, "all kinds, poll", {"EVENT_NOEPOLL": "1"})
    one_process(None, "all kinds, select", {"EVENT_NOEPOLL": "1", "EVENT_NOPOLL": "1"})
    threads = one_process("threads", "threads")
    if threads:
        check("threads: a loop each", len(threads.loops) == 4, threads.loops)
    forks()
    loaded_later()
    many_functions()


main()
finish()
