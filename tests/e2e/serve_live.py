#!/usr/bin/env python3
"""tacho view of a process that runs: snapshots, what is kept of it, and its end."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from libcheck import BIN, check, said, skip, status  # noqa: E402
from libserve import Site  # noqa: E402
from librun import LOOP, PYTHON, boxes, end, environment, folder, info, start, traces  # noqa: E402
from libwait import child_of, until  # noqa: E402

# Turns of a loop until it is told how to end.
PROGRAM = LOOP + "signal.signal(signal.SIGUSR1, lambda *_: os._exit(3))\n" \
                 "while True:\n    turn(10)\n"


class Watched:
    """A recorded program, and the server of it, in a folder of its own."""

    def __init__(self, tmp, name):
        self.folder = os.path.join(tmp, name)
        os.mkdir(self.folder)
        self.run = start("-q", "-o", os.path.join(tmp, name + ".trace"), "--", PYTHON, "-c", PROGRAM,
                         cwd=tmp)
        if not until(boxes) or self.run.poll() is not None:
            self.run.kill()
            raise RuntimeError(f"nothing is recorded: {self.run.communicate()}")
        self.pid = child_of(self.run.pid)
        until(self.records)
        self.site = Site("view", str(self.pid), cwd=self.folder, env=environment())

    def records(self):
        """Whether some turns are in its box, so that it hears signals."""
        p = subprocess.run([BIN, "status", str(self.pid), "--json"], capture_output=True, text=True)
        return p.returncode == 0 and json.loads(p.stdout).get("events", 0) > 60

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.site.__exit__()
        end(self.pid)
        self.run.communicate(timeout=60)

    def live(self):
        return self.site.json("live")

    def snapshot(self, tmp):
        path = os.path.join(tmp, "snapshot.tacho")
        with open(path, "wb") as f:
            f.write(self.site.ask("snapshot").body)
        return path

    def keep(self, path="keep", **more):
        """What became of a post: (its answer, what is said to be kept)."""
        before = (self.live().get("kept") or {}).get("number", 0)
        a = self.site.ask(path, method="POST", Content_Length=0, **more)
        if a.status != 200:
            return a, None
        return a, until(lambda: self.kept_after(before))

    def kept_after(self, before):
        kept = self.live().get("kept") or {}
        return kept if kept.get("number", 0) > before else None


def bytes_read(pid):
    with open(f"/proc/{pid}/io") as f:
        return int(f.readline().split()[1])


def rests(pid, seconds):
    """Whether a process reads nothing for so long."""
    before = bytes_read(pid)
    time.sleep(seconds)
    return bytes_read(pid) == before


def test_following(w, tmp):
    state = w.site.json("what")
    check("a process is watched", state.get("shows") == "live" and state.get("pid") == w.pid and
          state.get("snapshot", 0) >= 1 and not state.get("ended"), state)
    first, began = state.get("snapshot", 0), time.monotonic()
    check("there are new snapshots while somebody asks",
          until(lambda: w.live().get("snapshot", 0) >= first + 2), w.live())
    two = max(2, time.monotonic() - began)  # of them take so long
    # There is one just now: the next is not due yet.
    server, before = w.site.process.pid, (w.live(), bytes_read(w.site.process.pid))[1]
    check("what is asked for early is done when it is due",
          until(lambda: bytes_read(server) > before + 4096), before)
    check("and nothing more, while nobody asks", until(lambda: rests(server, 2 * two), 20 * two))
    i = info(w.snapshot(tmp))
    check("a snapshot is a trace of the process as it runs", i.get("pid") == w.pid and
          (i.get("end") or {}).get("how") == "running", i)


def steady(w):
    """The newest snapshot with its number; None when there was another meanwhile."""
    number = w.live()["snapshot"]
    whole = w.site.ask("snapshot").body
    return (number, whole) if w.live()["snapshot"] == number else None


def test_keeping(w):
    for name, more in (("no secret", {"secret": ""}),
                       ("the origin of somebody else", {"Origin": "http://evil.example"}),
                       ("the host of somebody else", {"host": "evil.example"})):
        a, _ = w.keep(**more)
        check(f"{name} keeps nothing", a.status == 403, a)
    check("a GET keeps nothing", w.site.ask("keep").status == 404)
    check("nothing was kept without being asked", not w.live().get("kept") and not traces(w.folder),
          (w.live(), traces(w.folder)))
    _, kept = w.keep()
    kept = kept or {}
    check("what is kept lies where tacho dump would put it", traces(w.folder) ==
          [kept.get("path")] and os.path.basename(kept["path"]) == kept.get("name"), kept)
    check("it is a trace of the process", info(kept.get("path", "")).get("pid") == w.pid, kept)
    a = w.site.ask(f"traces/{kept.get('name')}")
    with open(kept["path"], "rb") as f:
        check("it can be opened from the page", a.status == 200 and a.body == f.read(), a)
    check("nothing else of the folder can be", w.site.ask("traces/../x.tacho").status == 404 and
          w.site.ask(f"traces/../{os.path.basename(w.folder)}/{kept['name']}").status == 404)
    shutil.copy(kept["path"], os.path.join(w.folder, "other.tacho"))
    check("nor what was not kept from here", w.site.ask("traces/other.tacho").status == 404)
    os.unlink(os.path.join(w.folder, "other.tacho"))
    held, whole = until(lambda: steady(w))
    _, kept = w.keep(f"keep/{held}")
    with open((kept or {}).get("path", os.devnull), "rb") as f:
        check("a snapshot that is held is kept as it is", f.read() == whole, kept)
    count = len(traces(w.folder))
    w.keep("keep/999999")
    check("of a snapshot that is gone, what the box holds is kept",
          len(traces(w.folder)) == count + 1, traces(w.folder))


def test_end(w, tmp, number, how):
    before = w.site.descriptors()
    os.kill(w.pid, number)
    state = until(lambda: w.live() if w.live().get("ended") else None) or w.live()
    check(f"the page says that the process {how}", (state.get("end") or "").startswith(how), state)
    path = w.snapshot(tmp)
    i = info(path)
    check(f"the last snapshot has all, and says that it {how}", i.get("pid") == w.pid and
          (i.get("end") or {}).get("text", "").startswith(how), i)
    last = w.live()["snapshot"]
    check("after the end there are no others",
          all(w.live()["snapshot"] == last for _ in range(5)), w.live())
    _, kept = w.keep()
    check("what is left can be kept", info((kept or {}).get("path", "")).get("pid") == w.pid, kept)
    check("no descriptor is left of it", w.site.leaves_no_descriptor(before + 3),
          f"{w.site.descriptors()}, {before} before")


def test_unwritable(w):
    """Where nothing can be written, that is said, and the server goes on."""
    shutil.rmtree(w.folder)
    _, kept = w.keep()
    check("what cannot be kept is said", kept and kept.get("error") and "name" not in kept, kept)
    check("the server goes on after that", w.site.lives())


def main():
    if "built without its page" in subprocess.run([BIN, "view", "--html", "-"], capture_output=True,
                                                  text=True).stderr:
        skip("serve_live", "this tacho was built without its page")
        return 0
    with folder() as tmp:
        with Watched(tmp, "killed") as w:
            test_following(w, tmp)
            test_keeping(w)
            test_end(w, tmp, signal.SIGKILL, "killed by SIGKILL")
        with Watched(tmp, "exits") as w:
            test_end(w, tmp, signal.SIGUSR1, "exited with status 3")
        with Watched(tmp, "gone") as w:
            test_unwritable(w)
            p = subprocess.run([BIN, "view", "--html", os.path.join(tmp, "box.html"), str(w.pid)],
                               capture_output=True, text=True, env=environment())
            check("a page in one file can be made of a process", p.returncode == 0 and
                  os.path.getsize(os.path.join(tmp, "box.html")) > 100000, said(p))
            code, err = w.site.end(signal.SIGTERM)
            check("the server ends while the process runs", code == 0, (code, err))
            check("and the process runs on", os.path.exists(f"/proc/{w.pid}"))
    return status()


if __name__ == "__main__":
    sys.exit(main())
