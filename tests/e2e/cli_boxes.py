#!/usr/bin/env python3
"""tacho ls, status, dump and recover on boxes that are built here byte by byte."""
import datetime
import fcntl
import json
import mmap
import os
import shutil
import stat
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cli_trace  # noqa: E402
from cli_trace import check, full_recording, said, skip, tacho  # noqa: E402


def boot_id():
    with open("/proc/sys/kernel/random/boot_id") as f:
        return bytes.fromhex(f.read().strip().replace("-", ""))


def own_start_time():
    with open("/proc/self/stat") as f:
        return int(f.read().rpartition(")")[2].split()[19])


EVENTS = full_recording().count  # a millisecond apart
WINDOW = f"{EVENTS - 1}.000 ms"


def dead_recording(pid=4194300, **more):
    r = full_recording()
    r.pid, r.boot_id = pid, boot_id()
    for key, value in more.items():
        setattr(r, key, value)
    return r


def put(folder, recording, number=0, content=None):
    path = os.path.join(folder, recording.box_name(number))
    with open(path, "wb") as f:
        f.write(recording.box() if content is None else content)
    os.chmod(path, 0o600)
    return path


class Boxes:
    """A folder of boxes, the environment that points to it, and a folder for output."""

    def __enter__(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="tacho-cli-")
        self.folder = os.path.join(self.temporary.name, "boxes")
        self.out = os.path.join(self.temporary.name, "out")
        os.mkdir(self.folder, 0o700)
        os.mkdir(self.out, 0o700)
        self.env = {"TACHO_BOX_DIR": self.folder}
        return self

    def __exit__(self, *_):
        self.temporary.cleanup()

    def run(self, *arguments, **more):
        return tacho(*arguments, env=self.env, cwd=self.out, **more)

    def json(self, *arguments):
        p = self.run(*arguments, "--json")
        try:
            return json.loads(p.stdout), p
        except ValueError:
            return None, p


def row(p, pid):
    return next((line for line in p.stdout.splitlines() if line.split()[:1] == [str(pid)]), "")


def live_box(folder):
    """A box of this very process: the reader wants it mapped. Returns what keeps it so."""
    r = dead_recording(pid=os.getpid(), start_time=own_start_time(), crashes=b"", thread_live=1)
    path = put(folder, r)
    with open(path, "r+b") as f:
        return path, mmap.mmap(f.fileno(), 0)


def test_ls():
    with Boxes() as b:
        crashed = put(b.folder, dead_recording(4194301))
        put(b.folder, dead_recording(4194302, crashes=b"", comm=b"a/\x1b[2Jb"))
        note = dead_recording(os.getpid(), start_time=own_start_time())
        put(b.folder, note, 1, note.note(b"no room in /dev/shm."))
        p = b.run("ls")
        check("ls_succeeds", p.returncode == 0, said(p))
        check("ls_tells_the_crash", f"dead: killed by SIGSEGV after {WINDOW}" in row(p, 4194301), said(p))
        check("ls_tells_dead", row(p, 4194302).rstrip().endswith("dead: ended, how is not known"), said(p))
        check("ls_tells_why_off", "off: " in row(p, os.getpid()) and
              "no room in /dev/shm" in row(p, os.getpid()), said(p))
        check("ls_shows_program_service_window", "demo" in row(p, 4194301) and
              "web" in row(p, 4194301) and WINDOW in row(p, 4194301), said(p))
        check("ls_escapes_names", cli_trace.safe_for_terminals(p.stdout), said(p))
        p = b.run("ls", "--paths")
        check("ls_paths", crashed in row(p, 4194301), said(p))
        data, p = b.json("ls")
        boxes = {x["pid"]: x for x in data["boxes"]} if data else {}
        check("ls_json", boxes.get(4194301, {}).get("crash") == "SIGSEGV" and
              boxes[4194301]["state"] == "dead" and boxes[4194301]["window_ns"] == (EVENTS - 1) * 10**6 and
              boxes[os.getpid()]["state"] == "off", said(p))
    with Boxes() as b:
        path, keep = live_box(b.folder)
        p = b.run("ls")
        check("ls_tells_recording", row(p, os.getpid()).rstrip().endswith("recording"), said(p))
        keep.close()


def test_status():
    with Boxes() as b:
        r = dead_recording()
        path = put(b.folder, r)
        put(b.folder, r, 1)
        p = b.run("status", str(r.pid))
        check("status_of_pid_takes_the_newest", r.box_name(1) in p.stdout, said(p))
        p = b.run("status", path)
        check("status_succeeds", p.returncode == 0, said(p))
        for name, words in {"gone": "gone", "crash": "SIGSEGV", "events": f"{EVENTS} in the window",
                            "window": WINDOW, "source_on": "on",
                            "source_refused": "refused: Operation not permitted",
                            "loss": "no_chunk", "count": "counted     overwritten_records",
                            "threads": "threads"}.items():
            check(f"status_shows_{name}", words in p.stdout, said(p))
        data, p = b.json("status", path)
        check("status_json", data and data["recording"] is False and data["events"] == EVENTS and
              data["alive"] is False, said(p))
        check("status_has_nothing_to_warn_of", p.stderr == "", said(p))
        damaged = bytearray(r.box())
        at = damaged.rfind(r.chunk()[:64])
        damaged[at + 16:at + 20] = b"\xff\xff\xff\x7f"
        for form in ([], ["--json"]):
            p = b.run("status", put(b.folder, r, 2, bytes(damaged)), *form)
            check(f"status_warns_of_damage{'_beside_json' if form else ''}", p.returncode == 0 and
                  "has a damaged header" in p.stderr and p.stdout, said(p))
        quiet = dead_recording(4194310, losses=[0] * 16, crashes=b"")
        p = b.run("status", put(b.folder, quiet))
        check("status_says_no_losses",
              any(line.split() == ["losses", "none"] for line in p.stdout.splitlines()), said(p))
        off = dead_recording(4194311)
        path = put(b.folder, off, 0, off.note(b"TACHO_MAX_BYTES: 7x is not a size."))
        p = b.run("status", path)
        check("status_of_a_note_is_the_reason", p.returncode == 0 and
              "7x is not a size" in p.stdout, said(p))
        data, p = b.json("status", path)
        check("status_json_of_a_note", data and data["state"] == "off" and
              "7x" in data["reason"], said(p))
    with Boxes() as b:
        path, keep = live_box(b.folder)
        data, p = b.json("status", str(os.getpid()))
        check("status_of_a_running_process", data and data["recording"] is True and
              data["alive"] is True, said(p))
        before = datetime.datetime.now(datetime.timezone.utc)
        data, p = b.json("info", path)
        told = data["processes"][0]["taken"] or "1970-01-01T00:00:00.000000"
        taken = datetime.datetime.fromisoformat(told[:26] + "+00:00")
        check("a_box_is_taken_when_it_is_read", abs((taken - before).total_seconds()) < 3600, said(p))
        keep.close()


def leftovers(folder):
    return [name for name in os.listdir(folder) if name.endswith(".tmp")]


def test_dump():
    with Boxes() as b:
        r = dead_recording()
        path = put(b.folder, r)
        out = os.path.join(b.out, "x.tacho")
        p = b.run("dump", str(r.pid), "-o", out)
        check("dump_succeeds", p.returncode == 0 and out in p.stdout and
              f"{EVENTS} events" in p.stdout, said(p))
        check("dump_is_private", os.path.exists(out) and
              stat.S_IMODE(os.stat(out).st_mode) == 0o600)
        p = tacho("cat", out, "--json")
        types = [json.loads(line)["type"] for line in p.stdout.splitlines()]
        check("dump_holds_all_events", [t for t in types if t != "resume"] ==
              cli_trace.EXPECTED_TYPES, said(p))
        before = os.stat(out)
        p = b.run("dump", path, "-o", out)
        check("dump_keeps_an_existing_file", p.returncode == 0 and "x.tacho.old" in p.stderr and
              os.stat(out + ".old").st_ino == before.st_ino, said(p))
        p = b.run("dump", path, "-o", out, "--force")
        check("dump_force_replaces", p.returncode == 0 and
              os.stat(out + ".old").st_ino == before.st_ino, said(p))
        first, second = b.run("dump", path), b.run("dump", path)
        names = [n for n in os.listdir(b.out) if n.startswith(f"tacho-demo-{r.pid}-")]
        check("dump_default_names_never_collide", len(names) == 2, said(first) + said(second))
        p = b.run("dump", path, "-o", "-", text=False)
        check("dump_to_a_pipe", p.returncode == 0 and p.stdout[:8] == b"TACHOTRC" and
              f"{EVENTS} events".encode() in p.stderr, said(p)[:300])
        p = b.run("dump", path, "--last", "1ms", "-o", "last.tacho")
        check("dump_last", p.returncode == 0 and "2 events" in p.stdout, said(p))
        check("dump_leaves_no_temporary_files", leftovers(b.out) == [])
        check("dump_keeps_the_box", os.path.exists(path))
        p = b.run("dump", out)
        check("dump_of_a_trace_is_refused", p.returncode == 1 and "trace" in p.stderr, said(p))
        os.symlink("/etc/hostname", os.path.join(b.out, "link"))
        p = b.run("dump", path, "-o", "link", "--force")
        check("dump_replaces_a_link_not_its_target", p.returncode == 0 and
              not os.path.islink(os.path.join(b.out, "link")), said(p))
        bad = dead_recording(4194303, comm=b"../../../etc/x")
        p = b.run("dump", put(b.folder, bad))
        check("dump_name_cannot_leave_the_folder", p.returncode == 0 and
              any(n.startswith("tacho-.._.._.._etc_x-") for n in os.listdir(b.out)), said(p))


def test_recover():
    with Boxes() as b:
        path = put(b.folder, dead_recording())
        live, keep = live_box(b.folder)
        p = b.run("recover", path, "--keep")
        check("recover_keep", p.returncode == 0 and os.path.exists(path) and
              len(os.listdir(b.out)) == 1, said(p))
        with open(path, "rb") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            p = b.run("recover", path)
            check("recover_leaves_a_busy_box", p.returncode == 1 and os.path.exists(path),
                  said(p))
        p = b.run("recover", live)
        check("recover_leaves_running_processes", p.returncode == 1 and os.path.exists(live) and
              "runs" in p.stdout, said(p))
        os.mkdir(os.path.join(b.out, "traces"))
        data, p = b.json("recover", path, "-o", "traces")
        check("recover_deletes_the_box_when_done", p.returncode == 0 and
              not os.path.exists(path), said(p))
        check("recover_json", data and data["recovered"] == 1 and
              data["boxes"][0]["result"] == "recovered" and data["boxes"][0]["events"] == EVENTS and
              data["boxes"][0]["message"] is None and
              os.path.exists(os.path.join(b.out, data["boxes"][0]["file"])), said(p))
        p = b.run("info", os.path.join(b.out, data["boxes"][0]["file"])) if data else p
        check("recovered_trace_says_so", "by recover on" in p.stdout, said(p))
        garbage = put(b.folder, dead_recording(4194307), 0, b"garbage" * 1000)
        p = b.run("recover", garbage)
        check("recover_keeps_what_it_cannot_read", p.returncode == 1 and
              os.path.exists(garbage) and "left as it is" in p.stderr, said(p))
        off = dead_recording(4194308)
        note = put(b.folder, off, 0, off.note(b"no tmpfs."))
        p = b.run("recover", note)
        check("recover_clears_notes_of_the_dead", p.returncode == 0 and
              "no tmpfs" in p.stdout and not os.path.exists(note), said(p))
        check("recover_leaves_no_temporary_files", leftovers(b.out) == [])
        keep.close()


def test_notes_folder():
    """The folder in /tmp, of notes alone: only where it is not in use."""
    notes = f"/tmp/tacho-{os.geteuid()}"
    if os.path.exists(notes):
        skip("note_folder", f"{notes} is in use on this machine")
        return
    with Boxes() as b:
        r = dead_recording()
        path = put(b.folder, r)
        os.mkdir(notes, 0o700)
        try:
            note = put(notes, r, 5, r.note(b"no room in /dev/shm."))
            p = b.run("status", str(r.pid))
            check("box_counts_before_a_later_note", path in p.stdout and note not in p.stdout,
                  said(p))
            p = b.run("recover")
            check("recover_clears_the_note_folder", p.returncode == 0 and
                  not os.path.exists(note) and not os.path.exists(path), said(p))
        finally:
            shutil.rmtree(notes, ignore_errors=True)
    with Boxes() as b:
        # Without names, that folder is searched, too.
        paths = [put(b.folder, dead_recording(4194300 + i)) for i in range(3)]
        p = b.run("recover")
        check("recover_everything", p.returncode == 0 and "3 recovered, 0 failed" in p.stdout and
              not any(os.path.exists(x) for x in paths), said(p))
        p = b.run("recover")
        check("nothing_to_recover", p.returncode == 0 and "Nothing to recover" in p.stdout,
              said(p))
        p = b.run("ls")
        check("no_boxes", p.returncode == 0 and "No boxes" in p.stdout and
              "tacho_start" in p.stdout, said(p))


def on_terminal(arguments, env):
    """What a command writes when its output is a terminal."""
    pid, master = os.forkpty()
    if pid == 0:
        os.environ.update(env)
        os.execv(cli_trace.BIN, [cli_trace.BIN, *arguments])
    out = b""
    try:
        while part := os.read(master, 4096):
            out += part
    except OSError:
        pass
    os.close(master)
    os.waitpid(pid, 0)
    return out


def test_terminal():
    with Boxes() as b:
        put(b.folder, dead_recording(comm=b"\x1b]0;title\x07"))
        env = dict(b.env, TERM="xterm", NO_COLOR="")
        out = on_terminal(["ls"], env)
        check("colours_on_a_terminal", b"\x1b[1m" in out, out)
        check("hostile_name_on_a_terminal", b"\x1b]0" not in out and b"\\x1b]0;title" in out, out)
        out = on_terminal(["ls"], dict(env, NO_COLOR="1"))
        check("no_colours_when_not_wanted", b"PID" in out and b"\x1b" not in out, out)


def test_links_and_owners():
    with Boxes() as b:
        target = put(b.out, dead_recording())
        link = os.path.join(b.folder, dead_recording().box_name())
        os.symlink(target, link)
        p = b.run("ls")
        check("linked_box_is_unreadable", "unreadable: " in row(p, 4194300), said(p))
        p = b.run("recover", link)
        check("linked_box_is_not_recovered", p.returncode == 1 and os.path.islink(link) and
              os.path.exists(target), said(p))
        p = b.run("status", "4194300")
        check("linked_box_has_no_status", p.returncode == 1 and p.stdout == "", said(p))
    with Boxes() as b:
        linked = os.path.join(b.out, "linked")
        os.symlink(b.folder, linked)
        put(b.folder, dead_recording())
        p = tacho("ls", env={"TACHO_BOX_DIR": linked})
        check("linked_folder_is_skipped", "symbolic link" in p.stderr and
              row(p, 4194300) == "", said(p))
    if os.geteuid() != 0:
        skip("foreign_folder_is_skipped", "only root can give a folder away")
        skip("foreign_box_is_unreadable", "only root can give a box away")
        return
    with Boxes() as b:
        path = put(b.folder, dead_recording())
        os.chown(path, 12345, 12345)
        p = b.run("status", path)
        check("foreign_box_is_unreadable", p.returncode == 1, said(p))
        os.chown(b.folder, 12345, 12345)
        p = b.run("ls")
        check("foreign_folder_is_skipped", "belongs to user 12345" in p.stderr and
              row(p, 4194300) == "", said(p))


def main():
    test_ls()
    test_status()
    test_dump()
    test_recover()
    test_notes_folder()
    test_terminal()
    test_links_and_owners()
    return 1 if cli_trace.failures else 0


if __name__ == "__main__":
    sys.exit(main())
