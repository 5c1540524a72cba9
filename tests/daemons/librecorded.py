"""What a trace holds, counted, and checked against what others counted."""
import collections
import functools
import json
import os
import re
import subprocess

from libdaemons import BIN, check, skip

FRAMES_MAX = 8 << 20  # bytes of a module whose unwind tables readelf lists in a moment
EARLY_MAX = 30  # records


class Recorded:
    """Of one process. `mine`: how the path of the module ends whose callbacks count, if not
    all do; those of others, such as libuv's own, are in `others`."""

    def __init__(self, path, mine=""):
        self.path = path
        self.types = collections.Counter()
        self.polls = collections.Counter()    # by name of the kind
        self.others = collections.Counter()
        self.code = collections.Counter()     # (name of the kind, function or module+offset)
        self.codes = {}                       # (module, offset): function or None
        self.results = collections.defaultdict(collections.Counter)
        self.submits = collections.Counter()
        self.begins = collections.Counter()
        self.parks = collections.Counter()    # (name, level) of the loop
        self.waits = collections.Counter()    # parks by thread
        self.turns = collections.Counter()    # unparks by thread
        self.loops = set()                    # (name, number)
        self.ready = 0                        # as the waits returned it
        self.listed = 0                       # descriptors of those that are recorded
        self.events = collections.Counter()   # of ready descriptors
        self.sampled = collections.Counter()  # functions of CPU samples
        self.samples = 0
        self.misses = []
        self.missing = 0
        self.unbalanced = []
        self.late_wrong = []
        self.open = collections.defaultdict(list)
        p = subprocess.Popen([BIN, "cat", "--json", path], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        late_before = {}
        for line in p.stdout:
            self.take(json.loads(line), late_before, mine)
        said = p.stderr.read()
        status = p.wait()
        p.stdout.close()
        p.stderr.close()
        self.problem = "" if status == 0 else f"exit {status}: {said}"
        self.unbalanced += [f"thread {t} ends in {names}" for t, names in self.open.items()
                            if names]
        info = subprocess.run([BIN, "info", "--json", path], capture_output=True, text=True,
                              timeout=300)
        self.info = json.loads(info.stdout) if info.returncode == 0 else None

    def take(self, e, late_before, mine):
        kind, thread = e["type"], e["thread"]
        self.types[kind] += 1
        name = e["kind"]["name"] if "kind" in e and e["kind"] else None
        code = (e["kind"].get("code") or {}) if name else {}
        ours = (code.get("module") or "").endswith(mine)
        if late_before.pop(thread, None) and (kind != "poll-begin" or name != "uv_timer"):
            self.late_wrong.append(str(e)[:200])
        if kind == "poll-begin":
            (self.polls if ours else self.others)[name] += 1
            self.open[thread].append(name)
            if "offset" in code:
                where = (code["module"], int(code["offset"], 16))
                self.codes[where] = code.get("function")
                self.code[name, code.get("function") or f"{where[0]}+{where[1]:#x}"] += 1
        elif kind == "poll-end":
            if self.open[thread]:
                self.results[self.open[thread].pop()][e["result"]] += 1
            else:
                self.unbalanced.append(str(e)[:200])
        elif kind == "work-submit":
            self.submits[name] += ours
        elif kind == "work-begin":
            self.begins[name] += ours
        elif kind == "late":
            late_before[thread] = True
        elif kind == "park":
            loop = e["loop"]
            self.parks[loop["name"], loop["level"]] += 1
            self.loops.add((loop["name"], loop["number"]))
            self.waits[e["tid"]] += 1
        elif kind == "unpark":
            self.ready += e["ready"]
            self.turns[e["tid"]] += 1
        elif kind == "ready":
            self.listed += 1
            for event in e["events"]:
                self.events[event] += 1
        elif kind == "sample":
            self.samples += 1
            for frame in (e.get("at") or e.get("stack") or {}).get("frames", []):
                if frame.get("function"):
                    self.sampled[frame["function"]] += 1
        elif kind == "counter" and ("uv misses" in str(e) or "not hooked" in str(e)):
            self.misses.append(str(e)[:200])
        elif kind == "resume":
            self.missing += e["missing"] + e["dropped"]

    def process(self):
        return self.info["processes"][0]

    def losses(self):
        return {loss["name"]: loss["count"] for loss in self.process()["losses"]
                if loss["count"] and loss["lossy"]}

    def early(self):
        """Records that were lost at the very beginning: while one thread makes the box, others
        do not wait for it for long. What they could not record is counted under this name."""
        return self.losses().get("no_thread", 0)

    def sources(self):
        return {s["name"]: s["state"] for s in self.process()["sources"]}

    # Checks ----------------------------------------------------------------------------

    # Interpreters nest deeper than stacks of CPU samples are kept, as when they import modules.
    DEEP = ("stack_cut",)
    # Node has a thread with a small stack, which waits for signals. Samples might not fit there.
    NODE = DEEP + ("not_sampled",)

    def whole(self, name, level, loop=None, balanced=True, explained=()):
        """Checks what must hold for every program. `loop`: the name that all its loops have;
        `explained`: losses that the test explains."""
        check(f"{name}: the trace can be read", not self.problem and self.info, self.problem)
        if not self.info:
            return
        check(f"{name}: no record is missing",
              not self.missing and not self.info["missing_records"] and
              not self.info["dropped_records"] and not self.info["problems"],
              f"{self.missing}, {self.info['problems']}")
        check(f"{name}: no losses", not set(self.losses()) - {"no_thread", *explained} and
              self.early() <= EARLY_MAX, self.losses())
        check(f"{name}: no callback was left out", not self.misses, self.misses[:3])
        if balanced:
            check(f"{name}: every poll begins and ends", not self.unbalanced, self.unbalanced[:3])
        check(f"{name}: each loop has its level, {level}", self.parks and
              all(of[1] == level and (loop is None or of[0] == loop) for of in self.parks),
              self.parks)
        self.has_sources(name, level, loop)
        # Each wait that came back says how many were ready; the last may not have.
        behind = {t: (n, self.turns[t]) for t, n in self.waits.items()
                  if not n - 1 <= self.turns[t] <= n}
        check(f"{name}: every wait has its end", not behind, behind)
        if level == "callbacks":
            check(f"{name}: lateness is said just before the timer's poll", not self.late_wrong,
                  self.late_wrong[:2])
        else:
            check(f"{name}: no callbacks at this level", not self.polls and not self.others,
                  f"{self.polls} {self.others}")

    def has_sources(self, name, level, loop):
        on = {source for source, state in self.sources().items() if state == "on"}
        libraries = {"uv loop": {"libuv"}, "libevent loop": {"libevent"}}.get(loop, set())
        check(f"{name}: it says what was recorded",
              {"waits", "threads", "locks", "calls", "sched"} <= on and
              on & {"libuv", "libevent"} == (libraries if level == "callbacks" else set()),
              self.sources())

    def every_ready(self, name):
        """libevent calls back for what is ready and for what was woken, and nothing else."""
        io = {of: n for of, n in self.polls.items() if of in ("event", "libevent")}
        check(f"{name}: a callback for each descriptor that was ready, or woken",
              self.listed - self.early() <= sum(io.values()) <=
              self.listed + self.types["wake"] + self.early(),
              f"{self.listed} ready, {self.types['wake']} wakes, {io}, {self.early()} lost")

    def same_waits(self, name, daemon):
        """strace counted as many waits, thread by thread, as there are parks."""
        outside = daemon.system_calls()
        differs = {tid: (self.waits[tid], outside.get(tid, 0))
                   for tid in (t["tid"] for t in self.process()["threads"])
                   if self.waits[tid] != outside.get(tid, 0)}
        lost = sum(calls - parks for parks, calls in differs.values())
        check(f"{name}: strace counts as many waits in every thread",
              self.waits and all(parks <= calls for parks, calls in differs.values()) and
              lost <= self.early(),
              f"parks and calls by thread: {differs}; {self.early()} early records lost")

    def functions(self, name, expected=()):
        """Callbacks of a module are where it has functions, and are called what its symbols
        call them. `expected`: names that must be there if symbols have them: those of a
        stripped program are in Debian's *-dbgsym packages."""
        wrong, named, known = [], set(), set()
        for module in {m for m, _ in self.codes}:
            elf = elf_of(module)
            known |= {symbol.split("(")[0] for symbols in elf.names.values()
                      for symbol in symbols}
            for (of, offset), function in self.codes.items():
                if of == module:
                    wrong += elf.wrong(offset, function)
                    named |= {function} - {None}
        check(f"{name}: callbacks are functions, and named where symbols are",
              not wrong and self.codes, wrong[:4] or self.codes)
        if expected and known.isdisjoint(expected):
            skip_once(f"{expected[0]} and others have their names",
                      "the program is stripped, and its debug symbols are not installed")
        elif expected:
            check(f"{name}: callbacks have the names of its symbols",
                  known & set(expected) <= named, f"{expected}: {named}")

    def stacks(self, name, *functions, least=1):
        """CPU samples are there, and these functions are on their stacks."""
        check(f"{name}: CPU samples show its functions", self.samples >= least and
              all(self.sampled[f] for f in functions),
              f"{self.samples} samples, {self.sampled.most_common(12)}")


def ended(name, daemon, status, expected=0, traces=1, mine=""):
    """Checks that a program ended in order and left this many traces; returns what they hold."""
    check(f"{name}: ends in order", status == expected, f"status {status}: {daemon.log()}")
    check(f"{name}: tacho has nothing to say", not daemon.complaints(), daemon.complaints())
    check(f"{name}: no box is left", not daemon.left(), daemon.left())
    found = daemon.traces()
    check(f"{name}: {traces} trace{'s' if traces > 1 else ''}", len(found) == traces,
          f"{found}: {daemon.log()}")
    return [Recorded(path, mine) for path in found]


class Elf:
    """Symbols and functions of a module, as binutils read them."""

    def __init__(self, path):
        self.path = path
        self.segments = []
        for line in lines("readelf", "-lW", path):
            words = line.split()
            if words[:1] == ["LOAD"]:
                self.segments.append([int(w, 16) for w in (words[1], words[2], words[4])])
        build_id = re.search(r"Build ID: (\w+)", "\n".join(lines("readelf", "-nW", path)))
        debug = f"/usr/lib/debug/.build-id/{build_id[1][:2]}/{build_id[1][2:]}.debug" \
            if build_id else ""
        self.names = collections.defaultdict(set)
        self.ranges = []
        for argv in (["-D", path], [path], [debug] if os.path.exists(debug) else None):
            for line in lines("nm", "-C", "-S", "--defined-only", *argv) if argv else ():
                self.symbol(line)
        self.starts = set()
        if os.path.exists(path) and os.path.getsize(path) < FRAMES_MAX:
            for line in lines("readelf", "--debug-dump=frames", path):
                if " FDE " in line and (found := re.search(r"pc=(\w+)\.\.", line)):
                    self.starts.add(int(found[1], 16))

    def symbol(self, line):
        words = line.split(None, 3)
        if len(words) < 4 or words[2].lower() not in "twiv":
            return
        address, size = int(words[0], 16), int(words[1], 16)
        self.names[address].add(words[3].split("@")[0])
        self.ranges.append((address, address + size))

    def address(self, offset):
        for start, address, size in self.segments:
            if start <= offset < start + size:
                return offset - start + address
        return None

    def wrong(self, offset, function):
        """What is wrong with a callback there that is said to be this function."""
        address = self.address(offset)
        right = self.names.get(address)
        if self.starts and address not in self.starts:
            return [f"{self.path}+{offset:#x} is no function's begin"]
        # Those of C++ are said without their parameters.
        if right and not any(symbol == function or symbol.startswith(f"{function}(")
                             for symbol in right):
            return [f"{self.path}+{offset:#x} is {right}, not {function}"]
        if function and not any(begin <= address < end for begin, end in self.ranges):
            return [f"{self.path}+{offset:#x} has no symbol, yet is {function}"]
        return []


@functools.lru_cache
def skip_once(name, reason):
    skip(name, reason)


@functools.lru_cache
def elf_of(path):
    return Elf(path)


def lines(*argv):
    p = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=120,
                       stdin=subprocess.DEVNULL)
    return p.stdout.splitlines() if p.returncode == 0 else []
