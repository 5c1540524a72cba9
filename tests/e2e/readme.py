#!/usr/bin/env python3
"""The README is true: its commands run, and print what it says they print.

Commands are run in a scratch folder that looks like the source tree and has a ./server, with the
built tacho in PATH, from the first to the last.

- In a block marked "console", lines with "$ " are commands, and what follows is what they print.
  Numbers, with their units, and addresses may differ, lines of code may not. A line "..." stands
  for any lines, and "..." in a line for any text.
- In a block marked "sh", each line is a command that must succeed. Targets of make other than the
  demo are tried out with make -n.
- Blocks marked "c" compile.
- Commands of tacho in the text exist, with a man page and the options that are shown.
"""
import os
import re
import shlex
import signal
import subprocess
import sys

from libdocs import SOURCE, inline, links, unknown
from librun import BIN, check, environment, failures, folder, undisturbed

BUILD = os.path.abspath(os.environ.get("TACHO_BUILD") or os.path.join(SOURCE, "build"))
HOME = "/home/you/tacho"  # where the README has its source tree
LIMIT = 120
# Ends by itself, soon and in order.
SERVER = "#!/bin/sh\nexec timeout --preserve-status 1 build/examples/guess_server\n"
# What the C of the README is about.
PRELUDE = """
#include <stdint.h>
#include <sys/epoll.h>
extern int epoll;
extern struct epoll_event events[64];
void handle(void *what);
"""


# Comparing ---------------------------------------------------------------------------


def normal(line):
    """A line without what may differ from run to run."""
    line = re.sub(r"0x[0-9a-f]+", "ADDRESS", line)
    places = re.compile(r"(\.[ch]:\d+)")
    number = re.compile(r"(?<![\w.])[+~]?\d[\d.,]*(?: ?(?:ns|us|ms|s|B|KiB|MiB|%)(?!\w))?~?(?!\w)")
    parts = [part if places.fullmatch(part) else number.sub("N", part)
             for part in places.split(line)]
    return re.sub(r"\s+", " ", "".join(parts)).strip()


def differs(printed, output):
    """The first line of `printed` that the output does not have, or None."""
    got = "".join(normal(line) + "\n" for line in output.splitlines() if line.strip())
    pattern = ""
    for line in filter(str.strip, printed):
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += " ?.* ?".join(re.escape(normal(part)) for part in line.split("...")) + r"\n"
        if not re.match(pattern, got):
            return line
    if not re.fullmatch(pattern, got):
        return "the end of it: the command prints more"
    return None


# Reading -----------------------------------------------------------------------------


def blocks(text):
    """(language, lines) of each fenced block."""
    for language, body in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        yield language, body.splitlines()


def commands(lines):
    """(command, what is printed after it) of a console block."""
    found = []
    for line in lines:
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
    return found


# Running -----------------------------------------------------------------------------


class Shell:
    """A scratch folder, and what runs in it."""

    def __init__(self, path):
        self.path = path
        for name in os.listdir(SOURCE):
            if not name.startswith((".", "build")):
                os.symlink(os.path.join(SOURCE, name), os.path.join(path, name))
        os.symlink(BUILD, os.path.join(path, "build"))
        server = os.path.join(path, "server")
        with open(server, "w", encoding="ascii") as f:
            f.write(SERVER)
        os.chmod(server, 0o755)
        self.env = environment(PATH=os.path.dirname(BIN) + ":" + os.environ["PATH"], NO_COLOR="1",
                               TACHO_BUILD=None, DISPLAY=None, WAYLAND_DISPLAY=None,
                               HOME=path, MAKEFLAGS=None, MAKELEVEL=None, PWD=path)

    def run(self, command):
        """(status, what it printed)"""
        words = shlex.split(command, comments=True)
        if words[:2] in (["tacho", "view"], ["tacho", "serve"]) and "--html" not in words:
            return self.serve(command)
        if words[:1] == ["make"] and "demo" not in words:
            command = command.replace("make", "make -n", 1)
        process = subprocess.Popen(["sh", "-c", command], cwd=self.path, env=self.env, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True,
                                   preexec_fn=undisturbed)
        try:
            output, _ = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            output = "it does not end"
        finally:
            end_group(process)
        return process.returncode, output.replace(self.path, HOME)

    def serve(self, command):
        """A command that goes on until Ctrl-C, which comes when it has said its first line."""
        process = subprocess.Popen(["sh", "-c", "exec " + command], cwd=self.path, env=self.env,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True, start_new_session=True)
        try:
            line = process.stdout.readline()
            process.send_signal(signal.SIGINT)
            process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            line = "it does not end with Ctrl-C"
        finally:
            end_group(process)
            process.stdout.close()
        return process.returncode, line


def end_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def run_block(shell, language, lines):
    """(command, why not) of each command of the block."""
    if language == "console":
        todo = commands(lines)
    else:
        todo = [(line, None) for line in lines if line.strip() and not line.startswith("#")]
    for command, printed in todo:
        status, output = shell.run(command)
        if status != 0:
            yield command, f"exit {status}: {output[-700:]}"
            continue
        line = differs(printed, output) if printed is not None else None
        yield command, f'not as printed: "{line}"; it printed: {output[-3000:]}' if line else ""


# Text --------------------------------------------------------------------------------


def compiles(lines, path):
    source = os.path.join(path, "readme.c")
    with open(source, "w", encoding="utf-8") as f:
        f.write(PRELUDE + "\n".join(lines))
    p = subprocess.run(["cc", "-std=gnu11", "-Wall", "-Werror", "-fsyntax-only", "-I",
                        os.path.join(SOURCE, "include"), source], capture_output=True, text=True)
    return "" if p.returncode == 0 else p.stderr[:500]


# Checks ------------------------------------------------------------------------------


def of_this_script(path):
    """What is wrong is noticed."""
    def why(text):
        return [why for language, lines in blocks(text)
                for _, why in run_block(shell, language, lines)]
    os.mkdir(path)
    shell = Shell(path)
    good = "```console\n$ printf 'took 5 ms in f.c:7\\na\\nb\\nend\\n'\ntook 81.2 ms in f.c:7\n...\nend\n```"
    check("readme_right_output_passes", why(good) == [""], why(good))
    for name, old, new in (("readme_wrong_output_fails", "took 81.2", "takes 81.2"),
                           ("readme_wrong_line_of_code_fails", "f.c:7\n...", "f.c:8\n..."),
                           ("readme_missing_end_fails", "...\nend\n", ""),
                           ("readme_wrong_command_fails", "$ printf", "$ printg")):
        got = why(good.replace(old, new))
        check(name, len(got) == 1 and got[0], got)
    got = why("```sh\ntrue\nfalse\n```")
    check("readme_failing_command_fails", got[0] == "" and got[1], got)
    got = why("```sh\nmake no-such-target\n```")
    check("readme_unknown_target_fails", len(got) == 1 and got[0], got)
    check("readme_unknown_option_fails", unknown("tacho report FILE --no-such-option"))
    check("readme_unknown_command_fails", unknown("tacho no"))
    check("readme_bad_c_fails", compiles(["int main(void) { return tacho_no(); }"], path))
    check("readme_dead_link_fails", links("[a](docs/no.md)") == ["docs/no.md"])


def main():
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as f:
        text = f.read()
    with folder() as base:
        of_this_script(os.path.join(base, "itself"))
        path = os.path.join(base, "tree")
        os.mkdir(path)
        shell = Shell(path)
        ran = 0
        for language, lines in blocks(text):
            if language in ("console", "sh"):
                for command, why in run_block(shell, language, lines):
                    ran += 1
                    check(f"readme_runs {command[:60].replace(':', ' ')}", not why, why)
            elif language == "c":
                why = compiles(lines, path)
                check("readme_c_compiles", not why, why)
            else:
                check("readme_blocks_are_checked", False, f"a block is marked '{language}'")
        check("readme_has_commands", ran > 5, ran)
        wrong = [why for why in map(unknown, inline(text)) if why]
        check("readme_names_what_exists", inline(text) and not wrong, wrong)
        check("readme_links_lead_somewhere", not links(text), links(text))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
