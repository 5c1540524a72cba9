#!/usr/bin/env python3
"""The commands on a real process: running, stopped, killed, interrupted."""
import ctypes
import json
import os
import pathlib
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cli_trace  # noqa: E402
from cli_trace import BIN, check, said, skip, tacho  # noqa: E402

DEMO = os.path.join(os.path.abspath(os.environ.get("TACHO_EXAMPLES") or "/nonexistent"), "tasks")


class Demo:
    """The example, recording into a box folder of its own."""

    def __enter__(self):
        self.boxes = tempfile.TemporaryDirectory(prefix="tacho-cli-", dir="/dev/shm")
        self.out = tempfile.TemporaryDirectory(prefix="tacho-cli-")
        self.env = {"TACHO_BOX_DIR": self.boxes.name, "TACHO_SERVICE": "live test"}
        self.process = subprocess.Popen([DEMO], env=dict(os.environ, **self.env),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.pid = str(self.process.pid)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.boxes.cleanup()
        self.out.cleanup()

    def run(self, *arguments, **more):
        return tacho(*arguments, env=self.env, cwd=self.out.name, **more)

    def wait_until_recording(self):
        """True when the box holds some events of both loops."""
        for _ in range(100):
            data = self.status()
            if data.get("events", 0) > 200 and data.get("threads", 0) >= 2:
                return True
            time.sleep(0.1)
        return False

    def status(self):
        try:
            return json.loads(self.run("status", self.pid, "--json").stdout)
        except ValueError:
            return {}


def box_state(demo):
    p = demo.run("ls", "--json")
    try:
        return {str(b["pid"]): b for b in json.loads(p.stdout)["boxes"]}.get(demo.pid, {})
    except (ValueError, KeyError):
        return {}


def test_running(demo):
    check("running_process_is_listed", box_state(demo).get("state") == "recording" and
          box_state(demo).get("service") == "live test", box_state(demo))
    p = demo.run("status", demo.pid)
    check("running_process_has_a_status", p.returncode == 0 and "yes, since" in p.stdout, said(p))
    p = demo.run("cat", demo.pid, "--type", "poll-begin", "--limit", "50")
    check("running_process_shows_its_polls", p.returncode == 0 and "read_request" in p.stdout and
          "tasks.c:" in p.stdout, said(p))
    p = demo.run("recover", demo.pid)
    check("running_process_is_not_recovered", p.returncode == 1 and "runs" in p.stdout and
          box_state(demo).get("state") == "recording", said(p))


IN_ACCESS, IN_CLOSE_NOWRITE, IN_OPEN = 0x1, 0x10, 0x20


def opens_of(path, work):
    """What `work` returns, and how often the file was opened meanwhile."""
    libc = ctypes.CDLL(None)
    notes = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    # The kernel makes one note of two that are alike: what happens in between tells them apart.
    libc.inotify_add_watch(notes, os.fsencode(path), IN_ACCESS | IN_CLOSE_NOWRITE | IN_OPEN)
    result, masks = work(), []
    try:
        while True:
            masks.append(struct.unpack("iIII", os.read(notes, 16))[1])
    except BlockingIOError:
        os.close(notes)
    return result, masks.count(IN_OPEN)


def test_copied_at_one_moment(demo):
    """Parts of a live box are parts of one copy of it."""
    box = box_state(demo).get("path", "")
    for command in (("report", "--since", "-1s"), ("blame",),
                    ("export", "--format", "jsonl", "--from", "1ms", "--to", "-1ms")):
        p, count = opens_of(box, lambda: demo.run(*command, box))
        check(f"{command[0]}_opens_the_box_once", p.returncode == 0 and p.stdout and count == 1,
              f"{count} times: {said(p)[:200]}")


def test_stopped(demo):
    demo.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, demo.process.pid, os.WSTOPPED)
    p = demo.run("dump", demo.pid, "-o", "stopped.tacho")
    check("stopped_process_is_dumped", p.returncode == 0 and "events in" in p.stdout, said(p))
    first = demo.run("cat", demo.pid, "--json").stdout
    second = demo.run("cat", os.path.join(demo.out.name, "stopped.tacho"), "--json").stdout
    here = [(e["ns"], e["type"], e["tid"]) for e in map(json.loads, first.splitlines())]
    there = [(e["ns"], e["type"], e["tid"]) for e in map(json.loads, second.splitlines())]
    same = len(here) == len(there) > 0 and \
        [x[1:] for x in sorted(here, key=lambda e: (e[2], e[0]))] == \
        [x[1:] for x in sorted(there, key=lambda e: (e[2], e[0]))]
    check("dump_of_a_stopped_process_is_what_its_box_holds", same,
          f"{len(here)} and {len(there)} events")
    p = demo.run("dump", demo.pid, "--last", "200ms", "-o", "last.tacho")
    times = [json.loads(line)["ns"]
             for line in demo.run("cat", "last.tacho", "--json").stdout.splitlines()]
    check("dump_of_the_last_moments", p.returncode == 0 and
          0 < max(times, default=0) - min(times, default=0) <= 200_000_000, said(p))
    info = json.loads(demo.run("info", "last.tacho", "--json").stdout or "{}")
    check("window_of_a_stopped_process_ends_when_it_was_last_seen_alive",
          info.get("last_ns", 0) > max(times, default=0) and
          info["processes"][0].get("end", {}).get("how") == "running", str(info)[:300])
    demo.process.send_signal(signal.SIGCONT)


def test_interrupted(demo):
    read, write = os.pipe()
    os.close(read)
    p = subprocess.Popen([BIN, "dump", demo.pid, "-o", "-"], stdout=write,
                         stderr=subprocess.PIPE, env=dict(os.environ, **demo.env))
    os.close(write)
    error = p.communicate(timeout=60)[1]
    check("dump_into_a_closed_pipe_is_quiet", p.returncode in (1, -signal.SIGPIPE) and
          error == b"", f"{p.returncode} {error!r}")
    for delay in (0, 0.001, 0.003, 0.01):
        p = subprocess.Popen([BIN, "dump", demo.pid, "-o", "interrupted.tacho", "--force"],
                             cwd=demo.out.name, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, env=dict(os.environ, **demo.env))
        time.sleep(delay)
        p.send_signal(signal.SIGTERM)
        p.wait(timeout=60)
    left = [n for n in os.listdir(demo.out.name) if n.endswith(".tmp")]
    check("interrupted_dump_leaves_no_temporary_file", left == [], left)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGXFSZ,
                   signal.SIGXCPU):
        killed, left = interrupted_export(number)
        check(f"export_that_is_interrupted_by_{number.name}_leaves_nothing", killed and left == [],
              (killed, left))


def interruptible(number):
    """Called in a child: who started this may ignore the signal, and a core would be left."""
    signal.signal(number, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def interrupted_export(number):
    """Whether the signal came while the file was being written, and what is left of it."""
    trace = pathlib.Path(__file__).resolve().parents[1] / "golden-answers/leak.tacho"
    with tempfile.TemporaryDirectory(prefix="tacho-test-") as folder:
        for _ in range(50):
            p = subprocess.Popen([BIN, "export", trace, "--format", "jsonl", "-o", "x", "--force"],
                                 cwd=folder, stderr=subprocess.DEVNULL,
                                 preexec_fn=lambda: interruptible(number))
            while p.poll() is None and not any(n.endswith(".tmp") for n in os.listdir(folder)):
                pass
            p.send_signal(number)
            if p.wait(timeout=60) == -number:
                return True, [n for n in os.listdir(folder) if n != "x"]
    return False, []


def test_killed(demo):
    demo.process.kill()
    demo.process.wait()
    check("killed_process_is_listed_as_dead", box_state(demo).get("state") == "dead",
          box_state(demo))
    events = demo.status().get("events")
    p = demo.run("recover", demo.pid, "--json")
    try:
        data = json.loads(p.stdout)
    except ValueError:
        data = {"recovered": 0}
    check("killed_process_is_recovered", p.returncode == 0 and data["recovered"] == 1 and
          data["boxes"][0]["events"] == events > 0, said(p))
    check("recovered_box_is_gone", box_state(demo) == {}, box_state(demo))
    trace = os.path.join(demo.out.name, data["boxes"][0]["file"]) if data["recovered"] else ""
    p = demo.run("cat", trace, "--last", "1s")
    check("last_second_of_the_killed_process", p.returncode == 0 and
          "poll-begin" in p.stdout and p.stderr == "", said(p)[-300:])


def main():
    if not os.access(DEMO, os.X_OK):
        skip("cli_live", "TACHO_EXAMPLES has no built example")
        return 0
    with Demo() as demo:
        ready = demo.wait_until_recording()
        check("demo_records", ready, demo.run("status", demo.pid))
        if ready:
            test_running(demo)
            test_copied_at_one_moment(demo)
            test_stopped(demo)
            test_interrupted(demo)
            test_killed(demo)
    return 1 if cli_trace.failures else 0


if __name__ == "__main__":
    sys.exit(main())
