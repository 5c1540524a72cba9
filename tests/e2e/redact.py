#!/usr/bin/env python3
"""Credentials among arguments are in no box, no trace and no message, unless --no-redact asks for it."""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time

from librun import (BIN, agent, check, environment, failures, finish, folder, fresh, said, skip, traces,
                    until)

SECRET = "hunter2"
# Steps of the program that it takes for nothing, each with the secret in another form.
FORMS = [f"--password={SECRET}", "--token", SECRET, f"DB_PASSWORD={SECRET}",
         f"https://bob:{SECRET}@example.org/x?api_key={SECRET}&page=2",
         f"Authorization: Bearer {SECRET}", json.dumps({"client_secret": SECRET, "user": "bob"})]
STAYS = ["--tokenizer=bpe", "--key-file=/etc/x.pem", "page=2", "bob"]
SOURCE = r"""
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct epoll_event event;
	int loop = epoll_create1(0);

	for (int i = 0; i < 20; i++)
		epoll_wait(loop, &event, 1, 1);
	if (system("sleep 0.05 # --password=hunter2 --verbose"))
		return 1;
	epoll_wait(loop, &event, 1, 1);
	if (argc > 1 && argv[1][0] == 'w')
		for (;;)
			epoll_wait(loop, &event, 1, 50);
	return 0;
}
"""


def built(tmp):
    source, program = os.path.join(tmp, "subject.c"), os.path.join(tmp, "subject")
    with open(source, "w") as f:
        f.write(SOURCE)
    subprocess.run(["cc", "-O1", source, "-o", program], check=True)
    return program


def tacho(*arguments, **more):
    return subprocess.run([BIN, *arguments], capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL, env=environment(), **more)


def told(trace):
    """All that can be read from it: facts, events, tables."""
    answers = [tacho("info", "--json", trace), tacho("cat", "--json", trace),
               tacho("sql", trace, "SELECT * FROM processes")]
    with open(trace, "rb") as f:
        raw = f.read().decode("latin-1")
    return raw + "".join(said(p) for p in answers)


def line_of(trace):
    return json.loads(tacho("info", "--json", trace).stdout)["processes"][0].get("command_line", "")


def has_all_but_secrets(name, line):
    check(f"{name}: the command line has the rest of the arguments",
          all(text in line for text in STAYS) and "--password=***" in line and
          "--token ***" in line and "bob:***@example.org" in line, line)


def runs(tmp, program):
    """tacho run, with and without; and a live box meanwhile."""
    place = fresh(tmp, "run")
    p = tacho("run", "-o", f"{place}/a.tacho", "--", program, "x", *FORMS, *STAYS)
    check("run: the program is recorded", p.returncode == 0 and os.path.exists(f"{place}/a.tacho"),
          said(p))
    check("run: no secret is in what it says", SECRET not in said(p), said(p))
    text = told(f"{place}/a.tacho")
    check("run: no secret is in the trace", SECRET not in text,
          [text[m.start() - 80:m.end()] for m in re.finditer(SECRET, text)][:3])
    has_all_but_secrets("run", line_of(f"{place}/a.tacho"))
    check("run: nor in the command of system(3)", "sleep 0.05 # --password=*** --verbose" in text,
          tacho("cat", f"{place}/a.tacho").stdout[-2000:])
    p = tacho("run", "--no-redact", "-o", f"{place}/b.tacho", "--", program, "x", *FORMS, *STAYS)
    text = told(f"{place}/b.tacho") if p.returncode == 0 else ""
    check("run --no-redact: all of it is there", f"--password={SECRET} --token {SECRET}" in text and
          f"# --password={SECRET} --verbose" in text and "***" not in line_of(f"{place}/b.tacho"),
          said(p))
    p = tacho("run", "-o", f"{place}/c.tacho", "--", f"./{SECRET}-is-no-program", *FORMS)
    check("run: a command that cannot be started is named without its arguments",
          p.returncode and f"--password={SECRET}" not in said(p) and "Bearer" not in said(p), said(p))


def lives(tmp, program):
    """A process that records by itself: its box, and who reads that while it runs and afterwards."""
    hooks = os.path.join(os.path.dirname(BIN), "../hooks/libtacho-preload.so")
    if not os.path.isfile(hooks):
        skip("a box", "the hooks are not built")
        return
    for redacts in (True, False):
        name = "a box" if redacts else "a box with TACHO_REDACT=off"
        more = {} if redacts else {"TACHO_REDACT": "off"}
        p = subprocess.Popen([program, "wait", *FORMS, *STAYS],
                             env=environment(LD_PRELOAD=hooks, **more))
        try:
            until(lambda: json.loads(tacho("status", "--json", str(p.pid)).stdout or "{}").get("events"))
            box = glob.glob(f"{os.environ['TACHO_BOX_DIR']}/{p.pid}-*.box")[0]
            with open(box, "rb") as f:
                raw = f.read().decode("latin-1")
            check(f"{name}: whether the secret is in it", (SECRET in raw) != redacts)
            place = fresh(tmp, name.replace(" ", "-"))
            answers = [tacho("info", "--json", str(p.pid)), tacho("ls", "--json"),
                       tacho("status", "--json", str(p.pid)),
                       tacho("dump", str(p.pid), "-o", f"{place}/live.tacho")]
            text = "".join(map(said, answers)) + told(f"{place}/live.tacho")
            check(f"{name}: whether it is told while the process runs", (SECRET in text) != redacts,
                  [text[m.start() - 80:m.end()] for m in re.finditer(SECRET, text)][:3])
            if redacts:
                has_all_but_secrets(name, line_of(f"{place}/live.tacho"))
        finally:
            p.kill()
            p.wait()
        done = tacho("dump", str(p.pid), "-o", f"{place}/dead.tacho")
        text = said(done) + told(f"{place}/dead.tacho")
        check(f"{name}: whether it is told of a process that is gone", (SECRET in text) != redacts,
              text[:300])
        os.unlink(box)


def followed(tmp, program):
    """The agent reads the arguments of processes itself."""
    hooks = os.path.join(os.path.dirname(BIN), "../hooks/libtacho-preload.so")
    for options in ([], ["--no-redact"], ["--continuous", "--no-redact"], ["--continuous"]):
        name = " ".join(["agent", *options])
        place = fresh(tmp, name.replace(" ", "-"))
        service = f"redact-{os.getpid()}"
        follower = agent("--service", service, "-o", place, *options)
        p = subprocess.Popen([program, "wait", *FORMS, *STAYS],
                             env=environment(LD_PRELOAD=hooks, TACHO_SERVICE=service))
        try:
            until(lambda: any(f"/{p.pid}-" in link for link in links(follower.pid)))
            until(lambda: sleeps(follower.pid))
            time.sleep(0.2 if "--continuous" in options else 0)
            p.kill()
            p.wait()
            until(lambda: traces(place))
        finally:
            p.kill()
            p.wait()
            follower.terminate()
            out = finish(follower)
        found = traces(place)
        check(f"{name}: the window is saved", found, out)
        text = str(out) + "".join(told(trace) for trace in found)
        check(f"{name}: whether the secret is in it", (SECRET in text) == ("--no-redact" in options),
              [line_of(t) for t in found])


def sleeps(pid):
    """Whether all threads of it have slept for a while: it has read what it reads of a new process."""
    for _ in range(5):
        states = [open(path).read().rsplit(")", 1)[1].split()[0]
                  for path in glob.glob(f"/proc/{pid}/task/*/stat")]
        if set(states) != {"S"}:
            return False
        time.sleep(0.01)
    return True


def links(pid):
    try:
        return [os.readlink(path) for path in glob.glob(f"/proc/{pid}/fd/*")]
    except OSError:
        return []


def long_lines(tmp, program):
    """A secret at each place around the end of what a box keeps."""
    place = fresh(tmp, "long")
    for pad in (1004, 1016, 4062, 4068, 4074, 4080, 4086):
        trace = f"{place}/{pad}.tacho"
        tacho("run", "-q", "--no-symbols", "-o", trace, "--", program, "x" * (pad - len(program)),
              f"https://bob:{SECRET * 3}@example.org/")
        with open(trace, "rb") as f:
            raw = f.read().decode("latin-1")
        check(f"a secret {pad} bytes from the beginning", "hunt" not in raw + line_of(trace),
              line_of(trace)[-60:])


def main():
    with tempfile.TemporaryDirectory(prefix="tacho-redact-") as tmp:
        folder()
        try:
            program = built(tmp)
        except (OSError, subprocess.CalledProcessError):
            skip("redact", "there is no compiler")
            return 0
        runs(tmp, program)
        lives(tmp, program)
        followed(tmp, program)
        long_lines(tmp, program)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
