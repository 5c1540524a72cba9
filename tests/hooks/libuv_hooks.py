"""What the tests of the libuv hooks share: running programs under them, reading what was
recorded, fetching Debian's packages."""
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(os.environ.get("TACHO_BUILD") or "build")
BIN = os.environ.get("TACHO_BIN") or os.path.join(BUILD, "src/cli/tacho")
PRELOAD = os.path.join(BUILD, "src/hooks/libtacho-preload.so")
HERE = os.path.dirname(os.path.abspath(__file__))
failures = 0


def check(name, condition, why=""):
    global failures
    if condition:
        print(f"ok {name}")
    else:
        failures += 1
        why = str(why).replace("\n", " | ")[:600]
        print(f"not ok {name}: {why or 'false'}")
    sys.stdout.flush()
    return condition


def skip(name, reason):
    print(f"skip {name}: {reason}")


def finish():
    sys.exit(1 if failures else 0)


def hooked(boxes, more=None):
    """The environment of a program whose boxes stay in a folder."""
    return dict(os.environ, LD_PRELOAD=PRELOAD, TACHO_BOX_DIR=boxes, TACHO_KEEP_BOX="1",
                TACHO_SAMPLE_HZ="0", **(more or {}))


def box_folder():
    return tempfile.TemporaryDirectory(prefix="tacho-uv-", dir="/dev/shm")


def boxes_in(folder):
    return sorted(os.path.join(folder, f) for f in os.listdir(folder) if f.endswith(".box"))


def run(argv, env, limit=60, **more):
    return subprocess.run(argv, env=env, timeout=limit, capture_output=True, text=True,
                          errors="replace", stdin=subprocess.DEVNULL, **more)


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


# Debian's packages ---------------------------------------------------------------------


class Unavailable(Exception):
    pass


def must(argv, limit=300, **more):
    p = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                       timeout=limit, **more)
    if p.returncode:
        last = (p.stderr or p.stdout).strip().splitlines()[-1:] or ["no message"]
        raise Unavailable(f"{os.path.basename(argv[0])} failed: {last[0]}")
    return p.stdout


class Apt:
    """apt with lists and archives in a folder of its own; the system's are left alone."""

    def __init__(self, folder):
        for needed in ("apt-get", "dpkg-deb", "dpkg-query", "dpkg-source"):
            if not shutil.which(needed):
                raise Unavailable(f"there is no {needed}")
        self.folder = folder
        os.makedirs(f"{folder}/lists/partial")
        os.makedirs(f"{folder}/archives/partial")
        key = "/usr/share/keyrings/debian-archive-keyring.gpg"
        with open(f"{folder}/sources.list", "w", encoding="ascii") as f:
            for where, suite in (("debian", "bookworm"), ("debian", "bookworm-updates"),
                                 ("debian-security", "bookworm-security")):
                for what in ("deb", "deb-src"):
                    f.write(f"{what} [signed-by={key}] http://deb.debian.org/{where} {suite} "
                            "main\n")
        self.apt = ["apt-get", "-qq", "-o", f"Dir::Etc::SourceList={folder}/sources.list",
                    "-o", "Dir::Etc::SourceParts=-", "-o", f"Dir::State::Lists={folder}/lists",
                    "-o", "Dir::State::status=/dev/null", "-o", f"Dir::Cache={folder}",
                    "-o", "Debug::NoLocking=1",
                    "-o", "APT::Sandbox::User=" + must(["id", "-un"]).strip()]
        must(self.apt + ["update"])

    def source(self, package):
        """The folder of the unpacked source of the version that is installed."""
        installed = must(["dpkg-query", "-W", "-f=${source:Package}=${source:Version}", package])
        must(self.apt + ["source", installed], cwd=self.folder)
        name = installed.split("=")[0] + "-"
        found = [d for d in os.listdir(self.folder) if d.startswith(name) and
                 os.path.isdir(f"{self.folder}/{d}")]
        if not found:
            raise Unavailable("apt-get source unpacked nothing")
        return f"{self.folder}/{found[0]}"

    def unpack(self, packages, root):
        """Downloads packages (not what they depend on) and unpacks them under `root`."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            must(self.apt + ["download"] + packages, cwd=folder)
            for package in sorted(os.listdir(folder)):
                must(["dpkg-deb", "-x", f"{folder}/{package}", root])
