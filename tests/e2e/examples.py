#!/usr/bin/env python3
"""The examples show what they claim, leave nothing behind, and say so when they cannot."""
import glob
import json
import os
import signal
import subprocess
import sys

from librun import BIN, check, environment, failures, folder, skip, undisturbed, until

SOURCE = os.environ.get("TACHO_SOURCE") or \
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("TACHO_BUILD") or os.path.join(SOURCE, "build"))
LIMIT = 120
# By script: its traces, with the rule of the first finding and where it is; None: no finding.
EXAMPLES = {
    "guess": {"guess": ("lock-contention", "send_report")},
    "blocked": {"blocked": ("blocking-call", "sqlite3_step")},
    "neighbours": {"neighbours": ("kernel-scheduling-delay", None)},
    "killed": {"crash": ("crash", "on_count"), "killed": ("hang", "on_guess")},
    "memcached": {"memcached": None},
}
# What others on the machine do is their subject.
DISTURBED = {"neighbours"}


def start(name, out, build=BUILD):
    calm = None if name in DISTURBED else undisturbed
    return subprocess.Popen([os.path.join(SOURCE, "examples", name + ".sh")], text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, cwd="/", start_new_session=True,
                            env=environment(TACHO_BUILD=build, TACHO_EXAMPLE_DIR=out),
                            preexec_fn=calm)


def finish(process):
    try:
        output, _ = process.communicate(timeout=LIMIT)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return -1, "it does not end: " + process.communicate()[0]


def left(out):
    """Processes that were started for an example."""
    found = []
    mark = f"TACHO_EXAMPLE_DIR={out}".encode()
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as f:
                if mark in f.read().split(b"\0"):
                    found.append(int(path.split("/")[2]))
        except OSError:
            pass
    return found


def verdict(path):
    p = subprocess.run([BIN, "report", "--json", path], capture_output=True, text=True)
    if p.returncode:
        return p.stderr
    findings = [f for f in json.loads(p.stdout)["findings"] if f["severity"] != "info"]
    if not findings:
        return None
    return findings[0]["rule"], [w["function"] for w in findings[0]["where"]]


def as_expected(found, wanted):
    if wanted is None:
        # Where others have the CPUs, that is what the report must say.
        return found is None or found[0] == "kernel-scheduling-delay"
    if not isinstance(found, tuple):
        return False
    return found[0] == wanted[0] and (wanted[1] is None or wanted[1] in found[1])


def wrong(name, out):
    """(what it printed, what is wrong) of one run."""
    status, output = finish(start(name, out))
    if status != 0:
        return output, f"exit {status}: {output}"
    if ": skipped: " in output:
        return output, ""
    for trace, wanted in EXAMPLES[name].items():
        found = verdict(os.path.join(out, trace + ".tacho"))
        if not as_expected(found, wanted):
            return output, f"the verdict of {trace} is {found}"
    return output, ""


def example(name, base):
    out = os.path.join(base, name)
    output, why = wrong(name, out)
    for _ in range(2):
        if why:
            # Others may take the CPU for a moment, and a report says so: what is wrong with an
            # example is always wrong.
            print(f"again {name}: {why}")
            output, why = wrong(name, out)
    if not why and ": skipped: " in output:
        skip(f"example_{name}", output.strip().split(": skipped: ")[1])
        return
    check(f"example_{name}_shows_what_it_claims", not why, why)
    check(f"example_{name}_ends_all_that_it_started", until(lambda: not left(out)), left(out))
    lines = output.count("\n")
    check(f"example_{name}_can_be_read_at_once", 15 < lines < 65, f"{lines} lines")


def no_finding(base):
    """A tacho whose report finds nothing is noticed."""
    build = os.path.join(base, "build")
    os.makedirs(os.path.join(build, "src/cli"))
    os.symlink(os.path.join(BUILD, "examples"), os.path.join(build, "examples"))
    tacho = os.path.join(build, "src/cli/tacho")
    with open(tacho, "w", encoding="utf-8") as f:
        f.write('#!/bin/sh\ncase "$*" in *--json*)\n'
                'echo \'{"findings": [], "verdict": {"summary": "nothing"}}\' ;;\n'
                f'*) exec "{BIN}" "$@" ;;\nesac\n')
    os.chmod(tacho, 0o755)
    out = os.path.join(base, "nothing")
    status, output = finish(start("guess", out, build))
    check("example_fails_when_nothing_is_found", status == 1, f"exit {status}: {output}")
    check("example_says_what_was_not_shown", "lock-contention send_report was expected" in output and
          "guess: the report does not say what it should" in output, output[-300:])
    check("example_that_fails_ends_all", until(lambda: not left(out)), left(out))


def interrupted(base):
    out = os.path.join(base, "interrupted")
    process = start("guess", out)
    check("example_starts", until(lambda: len(left(out)) >= 4), left(out))
    process.terminate()
    status, output = finish(process)
    check("example_ends_when_asked", status == 143, f"exit {status}: {output}")
    check("example_that_was_ended_ends_all", until(lambda: not left(out)), left(out))


def unread(base):
    """Whoever reads goes away, as head does."""
    out = os.path.join(base, "unread")
    process = start("guess", out)
    check("example_starts_for_a_reader", until(lambda: len(left(out)) >= 4), left(out))
    process.stdout.close()
    try:
        process.wait(LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
    check("example_that_nobody_reads_ends_all", until(lambda: not left(out)), left(out))
    for pid in left(out):
        os.kill(pid, signal.SIGKILL)


def main():
    scripts = {os.path.basename(path)[:-3]
               for path in glob.glob(os.path.join(SOURCE, "examples/*.sh"))} - {"lib"}
    check("examples_are_all_known", scripts == set(EXAMPLES), scripts ^ set(EXAMPLES))
    with open(os.path.join(SOURCE, "examples/README.md"), encoding="utf-8") as f:
        text = f.read()
    unsaid = [name for name in EXAMPLES if f"`examples/{name}.sh`" not in text]
    check("examples_are_in_their_readme", not unsaid, unsaid)
    with folder() as base:
        for name in EXAMPLES:
            example(name, base)
        no_finding(base)
        interrupted(base)
        unread(base)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
