#!/usr/bin/env python3
"""Every command, flag and setting that a message advises works: each row of libadvice.py is run for
real, and advice that is in no row fails."""
import glob
import os
import re
import shutil
import signal
import subprocess
import sys

import libadvice
from librun import (BIN, LOOP, PYTHON, boxes, check, environment, failures, folder, fresh, said, skip,
                    until)

ROOT = os.path.abspath(libadvice.SOURCE)
MAPS = ("java ", "node ")  # what is advised has these write the names of functions


class Places:
    """What rows are run with."""

    def __init__(self, tmp):
        self.tmp, self.count, self.env = tmp, 0, environment()
        self.tools = fresh(tmp, "tools")
        os.symlink(BIN, os.path.join(self.tools, "tacho"))
        self.env["PATH"] = self.tools + ":" + self.env["PATH"]
        preload = subprocess.run(
            [BIN, "run", "-q", "-o", tmp, "--", "sh", "-c", "echo $LD_PRELOAD"], text=True,
            capture_output=True, env=environment(LD_PRELOAD=None)).stdout.strip()
        self.recorded = {**self.env, "LD_PRELOAD": preload, "TACHO_KEEP_BOX": "1"}
        self.program = os.path.join(self.tools, "looping")
        with open(self.program, "w") as f:
            f.write(f"#!{PYTHON}\n{LOOP}\nloop.poll(float(os.environ.get('WAIT', '0')))\n")
        os.chmod(self.program, 0o755)
        self.trace = os.path.join(ROOT, "tests/golden-answers/downstream.tacho")
        self.dial9 = sorted(glob.glob(ROOT + "/tests/golden-import/dial9/*.bin.gz"))[0]
        self.process = subprocess.Popen([self.program], env={**self.recorded, "WAIT": "600"})
        until(boxes)

    def box(self):
        before = set(boxes())
        subprocess.run([self.program], env=self.recorded, check=True)
        return (set(boxes()) - before).pop()

    def run(self, command):
        """In an empty folder, with a box that nobody has saved."""
        self.count += 1
        place = fresh(self.tmp, f"row-{self.count}")
        box = self.box() if "recover" in command else ""
        command = command.format(pid=self.process.pid, box=box, trace=self.trace, folder=place,
                                 file=place + "/file", program=self.program, tacho=BIN,
                                 dial9=self.dial9, main="int main(void){return 0;}", source=ROOT,
                                 build=os.environ.get("TACHO_BUILD", ""))
        p = subprocess.Popen(["bash", "-c", command], cwd=place, env=self.env, text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = p.communicate(timeout=120)
        names = f"/tmp/perf-{p.pid}.map"
        self.named = os.path.exists(names)
        if self.named:
            os.unlink(names)
        return subprocess.CompletedProcess(command, p.returncode, out, err)


# ------------------------------------------------------------------------------- listed

def test_all_is_listed(options):
    used, missing = set(), []
    for path, text in libadvice.texts():
        missing += [f"{path}: {found}" for found in libadvice.unlisted(path, text, options, used)]
    check("what messages advise is in the tables", not missing, missing)
    unused = [row for row in libadvice.ROWS if row not in used]
    check("what is in the tables is advised", not unused, unused)
    for text in ("start it with java -XX:+Nonsense", "try 'tacho frobnicate FILE'",
                 "use tacho report --no-such-thing", "'tacho doctor PID' says more",
                 "set SOME_THING=1 and try again", "raise it: sysctl vm.no_such=1", "give --no-such-option"):
        check(f"advice that is not listed is found: {text}",
              libadvice.unlisted("src/x.c", text, options, set()), text)
    check("an option of another command is found", libadvice.unlisted(
        "src/cli/cmd_ls.c", "see --slowest", options, set()))


def test_documents():
    """Documents advise the same of other programs as messages do."""
    foreign = [row for row in libadvice.FOREIGN if re.match(r"java|node|ruby|python3", row)]
    wrong = []
    for path in [ROOT + "/README.md", *glob.glob(ROOT + "/docs/*.md"), *glob.glob(ROOT + "/man/*.1")]:
        for code in re.findall(r"`((?:java|node|ruby|python3) -[^`]*)`", open(path).read()):
            if not any(row.startswith(code) for row in foreign):
                wrong.append((os.path.relpath(path, ROOT), code))
    check("documents advise of other programs what messages do", not wrong, wrong)


def test_help(options):
    """Each option that a help lists is understood."""
    for command, flags in options.items():
        wrong = [flag for flag in sorted(flags) if
                 "no option" in subprocess.run([BIN, command, flag, "--help", "--help"], text=True,
                                               capture_output=True, stdin=subprocess.DEVNULL).stderr]
        check(f"help of {command}: its options are understood", not wrong, wrong)


# ---------------------------------------------------------------------------------- run

def may_hide(program):
    """Whether a mount namespace can have a /tmp of its own, with the program outside of it."""
    return not program.startswith("/tmp/") and subprocess.run(
        ["unshare", "-m", "true"], capture_output=True).returncode == 0


def test_own(places):
    for advised, command in libadvice.OWN.items():
        name = f"advised: {advised}"
        if "--all" in command and (os.geteuid() != 0 or not may_hide(BIN)):
            skip(name, "--all is for root, and needs a /tmp of its own")
        elif "redis-server" in command and not shutil.which("redis-server"):
            skip(name, "redis-server is not installed")
        elif "sql" in command.split() and "without SQLite" in places.run(command).stderr:
            skip(name, "tacho was built without SQLite")
        else:
            p = places.run(command)
            check(name, p.returncode == 0, said(p))


def lacks(command):
    """The program of a row that is not there."""
    words = [w for w in command.split() if not re.match(r"[A-Z_]+=|'|--", w)]
    first = "sysctl" if words[0] == "key" else words[0]
    known = subprocess.run(["bash", "-c", f"type {first}"], capture_output=True).returncode == 0
    if known or first == "tacho":
        return ""
    return first


def too_old(advised, command):
    """Whether the advice is for a later version of the program than the one that is there."""
    least = re.search(r"\((\d+)\.(\d+) or later\)", advised)
    if not least:
        return False
    there = subprocess.run([command.split()[0], "--version"], capture_output=True, text=True).stdout
    version = re.search(r"(\d+)\.(\d+)", there)
    return [int(n) for n in version.groups()] < [int(n) for n in least.groups()]


def test_foreign(places):
    for advised, command in libadvice.FOREIGN.items():
        name = f"advised: {advised}"
        if lacks(command):
            skip(name, f"{lacks(command)} is not installed")
        elif too_old(advised, command):
            skip(name, "the one that is installed is older")
        elif command.startswith("key "):
            key = "/proc/sys/" + command[4:].replace(".", "/")
            check(name, open(key).read().strip().lstrip("-").isdigit(), key)
        elif "unshare -m" in command and subprocess.run(["unshare", "-m", "true"]).returncode:
            skip(name, "needs mount namespaces")
        elif "ulimit" in command and places.run(command).returncode and os.geteuid() != 0:
            skip(name, "the limit of this user is lower")
        else:
            p = places.run(command)
            check(name, p.returncode == 0 and (places.named or not command.startswith(MAPS)), said(p))


def main():
    options = {}
    for command in libadvice.COMMANDS:
        p = subprocess.run([BIN, command, "--help"], capture_output=True, text=True)
        options[command] = libadvice.options_in(p.stdout) | {"--help", "-h"}
    test_all_is_listed(options)
    test_documents()
    test_help(options)
    with folder() as tmp:
        places = Places(tmp)
        try:
            test_own(places)
            test_foreign(places)
        finally:
            places.process.send_signal(signal.SIGKILL)
            places.process.wait()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
