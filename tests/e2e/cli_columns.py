#!/usr/bin/env python3
"""What report, stats, blame and diff print fits the terminal, and only there lines are broken."""
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios

sys.dont_write_bytecode = True
from libcheck import BIN, check, failures, said  # noqa: E402

# Turns of a loop of which some are blocked for long, whoever runs beside them.
PROGRAM = """
import select, time
e = select.epoll()
for i in range(40):
    e.poll(0.005)
    time.sleep(0.08 if i % 8 == 7 else 0.0005)
"""


def on_terminal(columns, *argv):
    """What a command writes to a terminal of so many columns, as lines without colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    child = subprocess.Popen([BIN, *argv], stdin=subprocess.DEVNULL, stdout=theirs,
                             stderr=subprocess.DEVNULL, env=dict(os.environ, TERM="xterm"))
    os.close(theirs)
    text = b""
    try:
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            text += part
        child.wait(timeout=60)
    finally:
        child.kill()
        child.wait()
        os.close(ours)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text.decode("utf-8", "replace"))
    return plain.replace("\r\n", "\n").split("\n")


def words(lines):
    return " ".join(" ".join(lines).split())


def main():
    with tempfile.TemporaryDirectory(prefix="tacho-columns-") as folder:
        trace = os.path.join(folder, "a.tacho")
        p = subprocess.run([BIN, "run", "-o", trace, "--", sys.executable, "-c", PROGRAM],
                           capture_output=True, text=True, timeout=120)
        check("a_program_is_recorded", p.returncode == 0 and os.path.exists(trace), said(p))
        commands = {"report": ["report", trace, "--all"], "stats": ["stats", trace],
                    "blame": ["blame", trace, "--slowest", "3"], "diff": ["diff", trace, trace]}
        for name, argv in commands.items():
            p = subprocess.run([BIN, *argv], capture_output=True, text=True, timeout=60)
            whole = p.stdout.split("\n")
            check(f"{name}_has_more_to_say_than_80_columns_hold",
                  p.returncode == 0 and max(map(len, whole)) > 80, said(p))
            for columns in (80, 120):
                lines = on_terminal(columns, *argv)
                long = [line for line in lines if len(line) > columns]
                check(f"{name}_fits_{columns}_columns", len(lines) > 3 and not long, long or lines)
            check(f"{name}_says_the_same_on_a_terminal", words(on_terminal(80, *argv)) ==
                  words(whole), (words(on_terminal(80, *argv)), words(whole)))
        bars = [int(line.split()[-1]) for line in on_terminal(80, "report", trace)
                if re.fullmatch(r" +[\d.]+ [num]?s  #+ \d+", line)]
        p = subprocess.run([BIN, "stats", trace, "--json"], capture_output=True, text=True,
                           timeout=60)
        turns = sum(row["count"] for row in json.loads(p.stdout)["polls"])
        check("all_lengths_of_callbacks_are_in_the_histogram",
              len(bars) > 1 and sum(bars) == turns, (bars, turns))
        missing = os.path.join(folder, "none.tacho")
        for argv in (["stats", missing], ["diff", missing, trace], ["report", missing]):
            p = subprocess.run([BIN, *argv], capture_output=True, text=True, timeout=60)
            check(f"{argv[0]}_says_once_that_there_is_no_file", p.returncode == 1 and
                  p.stderr.count("none.tacho") == 1, said(p))
        p = subprocess.run([BIN, "report", trace, "--since", "100ms", "--until", "10ms"],
                           capture_output=True, text=True, timeout=60)
        check("nothing_lies_between_an_end_and_a_later_beginning", p.returncode == 1 and
              not p.stdout and "nothing is in" in p.stderr, said(p))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
