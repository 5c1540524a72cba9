#!/usr/bin/env python3
"""What tacho says to inputs and command lines that are no good: one clear error, no crash."""
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cli_trace  # noqa: E402
from cli_trace import BIN, check, full_recording, said, skip, tacho  # noqa: E402

NOBODY = 65534


def refused(p, *words, status=1):
    """Exit status, nothing on standard output, one or two lines on standard error."""
    return p.returncode == status and p.stdout == "" and p.stderr.startswith("tacho") and \
        len(p.stderr.splitlines()) <= 4 and all(w in p.stderr for w in words) and \
        cli_trace.safe_for_terminals(p.stderr)


def test_files(folder):
    contents = {"empty": b"", "garbage": os.urandom(100_000), "one_byte": b"T",
                "zeros": bytes(200_000), "text": b"hello world\n" * 1000,
                "elf": open(sys.executable, "rb").read(50_000),
                "magic_only": b"TACHOTRC", "box_magic_only": b"TACHOBOX" + bytes(4088),
                "newer": b"TACHOTRC" + b"\xff\xff" + bytes(54)}
    for name, data in contents.items():
        path = os.path.join(folder, name)
        with open(path, "wb") as f:
            f.write(data)
        for command in ("info", "cat", "status", "dump"):
            extra = ["-o", path + ".out"] if command == "dump" else []
            p = tacho(command, path, *extra)
            check(f"{command}_of_{name}_file", refused(p, f"tacho {command}: ", name), said(p))
            check(f"{command}_of_{name}_file_writes_nothing", not os.path.exists(path + ".out"))
    os.mkdir(os.path.join(folder, "hollow"))
    sparse = os.path.join(folder, "enormous")
    with open(sparse, "wb") as f:
        f.write(b"TACHOBOX")
        f.truncate(1 << 40)
    for name in ("hollow", "missing", "enormous"):
        p = tacho("info", os.path.join(folder, name))
        check(f"info_of_{name}", refused(p, "tacho info: ", name), said(p))
    fifo = os.path.join(folder, "fifo")
    os.mkfifo(fifo)
    for path in (fifo, "/dev/zero", "/dev/null", "/proc/self/mem"):
        p = tacho("cat", path)
        check(f"cat_of_{os.path.basename(path)}", refused(p), said(p))
    p = tacho("info", "no\x1b[2J\nsuch")
    check("hostile_argument_is_escaped", refused(p, r"\x1b[2J\x0asuch"), said(p))
    p = tacho("info", "")
    check("empty_argument", refused(p, "empty"), said(p))


def test_processes(folder):
    env = {"TACHO_BOX_DIR": folder}
    for command in ("status", "dump", "info", "cat", "recover"):
        p = tacho(command, "4194297", env=env, cwd=folder)
        check(f"{command}_of_no_process", p.returncode == 1 and
              "process 4194297 does not run" in p.stderr and "tacho ls" in p.stderr, said(p))
    p = tacho("status", str(os.getpid()), env=env)
    check("status_of_a_process_without_box", refused(p, "runs but has no box"), said(p))
    p = tacho("status", "99999999999999999999", env=env)
    check("status_of_an_impossible_pid", refused(p), said(p))


def test_durations(trace):
    for text, words in {"": "not a duration", "s": "not a duration", "5": "no unit",
                        "1.5x": "none of ns", "1.5.5s": "none of ns", "--1s": "not a duration",
                        "1 s": "none of ns", "99999999999999999999h": "292 years",
                        "9999999999999h": "292 years", "1e3s": "none of ns",
                        "\x1b[31m": "not a duration"}.items():
        p = tacho("cat", trace, "--from", text)
        check(f"from_{text!r}_is_refused", refused(p, "tacho cat: --from: ", words, "^",
                                                   status=2), said(p))
    p = tacho("cat", trace, "--from", "1.5x")
    check("duration_error_points_at_the_place", "\n  1.5x\n     ^\n" in p.stderr, said(p))
    for text in ("0s", "0.0ms", "-1s"):
        p = tacho("cat", trace, "--last", text)
        check(f"last_{text}_is_refused", refused(p, status=2), said(p))
    for text in ("1ns", "1.5us", "0.000001ms", "2s", "1m", "0.5h", ".5s"):
        p = tacho("cat", trace, "--last", text)
        check(f"last_{text}_is_understood", p.returncode == 0, said(p))


def test_command_lines(folder, trace):
    for name, arguments, words in [
        ("no_command", [], "a command is missing"),
        ("unknown_command", ["frobnicate"], "no command 'frobnicate'"),
        ("misspelt_command", ["repotr"], "Did you mean 'tacho report'"),
        ("misspelt_dump", ["dmp", "1"], "Did you mean 'tacho dump'"),
        ("shortened_command", ["rec"], "Did you mean 'tacho recover'"),
        ("misspelt_help", ["help", "inof"], "Did you mean 'tacho info'"),
        ("global_option", ["--frob"], "--frob"),
        ("unknown_option", ["ls", "--frob"], "--frob"),
        ("unknown_short_option", ["ls", "-z"], "-z"),
        ("missing_value", ["dump", "1", "-o"], "-o needs a value"),
        ("missing_long_value", ["cat", trace, "--from"], "--from needs a value"),
        ("value_for_a_flag", ["ls", "--json=1"], "takes no value"),
        ("ls_with_argument", ["ls", "x"], "takes no arguments"),
        ("status_without_argument", ["status"], "PID"),
        ("status_of_two", ["status", "1", "2"], "one process"),
        ("dump_without_argument", ["dump"], "PID"),
        ("info_without_argument", ["info"], "trace file"),
        ("cat_of_two", ["cat", trace, trace], "one trace"),
        ("last_and_from", ["cat", trace, "--last", "1s", "--from", "1s"], "contradict"),
        ("time_and_json", ["cat", trace, "--time", "wall", "--json"], "contradict"),
        ("from_after_to", ["cat", trace, "--from", "2ms", "--to", "1ms"], "after --to"),
        ("bad_time", ["cat", trace, "--time", "local"], "none of rel"),
        ("bad_type", ["cat", trace, "--type", "poll,frob"], "no type"),
        ("empty_type", ["cat", trace, "--type", ""], "no type"),
        ("bad_limit", ["cat", trace, "--limit", "-1"], "whole number"),
        ("empty_limit", ["cat", trace, "--limit", ""], "whole number"),
        ("large_limit", ["cat", trace, "--limit", "99999999999999999999999"], "too large"),
        ("force_without_file", ["dump", "1", "--force"], "--force"),
        ("force_and_pipe", ["dump", "1", "--force", "-o", "-"], "contradict"),
        ("empty_output", ["dump", "1", "-o", ""], "-o needs"),
        ("recover_all_and_named", ["recover", "--all", "x"], "contradict"),
    ]:
        p = tacho(*arguments, env={"TACHO_BOX_DIR": folder}, cwd=folder)
        check(f"command_line_{name}", refused(p, words, status=2), said(p))


def test_help():
    p = tacho("--version")
    check("version", p.returncode == 0 and p.stdout.startswith("tacho ") and
          p.stdout.split()[1][0].isdigit(), said(p))
    commands = ["ls", "status", "dump", "recover", "info", "cat", "help"]
    for arguments in (["help"], ["--help"], ["-h"]):
        p = tacho(*arguments)
        check(f"list_by_{arguments[0].strip('-')}{arguments[0].count('-')}", p.returncode == 0 and
              all(f"\n  {c} " in p.stdout for c in commands), said(p))
    for command in commands[:-1]:
        p = tacho(command, "--help")
        check(f"help_of_{command}", p.returncode == 0 and p.stdout.startswith("Usage: tacho " +
              command) and "Example:" in p.stdout and p.stderr == "", said(p))
        check(f"help_{command}_is_the_same",
              p.stdout and tacho("help", command).stdout == p.stdout, said(p))


def box_for_output(folder):
    r = full_recording()
    with open("/proc/sys/kernel/random/boot_id") as f:
        r.boot_id = bytes.fromhex(f.read().strip().replace("-", ""))
    path = os.path.join(folder, r.box_name())
    with open(path, "wb") as f:
        f.write(r.box())
    os.chmod(path, 0o600)
    return path, r


def test_output(folder):
    box, _ = box_for_output(folder)
    for name, out in {"missing_folder": "no/such/x.tacho", "folder": ".",
                      "folder_with_slash": "./", "file_as_folder": f"{box}/x.tacho",
                      "long_name": "x" * 300}.items():
        p = tacho("dump", box, "-o", out, cwd=folder)
        check(f"dump_into_{name}", refused(p, "tacho dump: "), said(p))
    for force in ([], ["--force"]):
        p = tacho("dump", box, "-o", "/dev/null", *force)
        check(f"dump_to_a_device{'_with_force' if force else ''}",
              refused(p, "not a regular file") and not os.path.isfile("/dev/null"), said(p))
    p = tacho("recover", box, "-o", os.path.join(folder, "no", "such"))
    check("recover_into_missing_folder", refused(p, "tacho recover: ", "-o") and
          os.path.exists(box), said(p))
    with open("/dev/full", "wb") as full:
        p = subprocess.run([BIN, "dump", box, "-o", "-"], stdout=full, stderr=subprocess.PIPE,
                           timeout=60)
    check("dump_to_a_full_disk", p.returncode == 1 and b"no space left" in p.stderr.lower(), p.stderr)
    pid, master = os.forkpty()
    if pid == 0:
        os.execv(BIN, [BIN, "dump", box, "-o", "-"])
    out = b""
    try:
        while chunk := os.read(master, 4096):
            out += chunk
    except OSError:
        pass
    os.close(master)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    check("dump_never_to_a_terminal", status == 2 and b"terminal" in out and
          b"TACHOTRC" not in out, out)
    limited = ["/bin/sh", "-c", "ulimit -f 1; exec \"$0\" dump \"$1\" -o small.tacho", BIN, box]
    p = subprocess.run(limited, cwd=folder, capture_output=True, timeout=60)
    names = [n for n in os.listdir(folder) if n.startswith(("small", ".tacho-"))]
    check("no_half_file_under_a_size_limit", (p.returncode == 0 and names == ["small.tacho"]) or
          (p.returncode in (1, -25, 128 + 25) and names == []), f"{p.returncode} {names} {p.stderr}")


def as_nobody(folder):
    """How to run the program without root's rights; None: not possible here."""
    if os.geteuid() != 0:
        return {}
    binary = os.path.join(folder, "tacho")
    shutil.copy(BIN, binary)
    os.chmod(binary, 0o755)
    how = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "binary": binary}
    try:
        return how if tacho("--version", **how).returncode == 0 else None
    except OSError:
        return None


def test_permissions():
    with tempfile.TemporaryDirectory(prefix="tacho-cli-") as folder:
        os.chmod(folder, 0o755)
        how = as_nobody(folder)
        names = ["unreadable_file", "unreadable_folder", "dump_into_read_only_folder",
                 "recover_into_read_only_folder", "all_is_for_root"]
        if how is None:
            for name in names:
                skip(name, "the program cannot be run as another user from here")
            return
        own = how.get("user", os.geteuid())
        boxes, closed = os.path.join(folder, "boxes"), os.path.join(folder, "closed")
        os.mkdir(boxes, 0o700)
        os.mkdir(closed, 0o500)
        secret = os.path.join(folder, "secret.tacho")
        with open(secret, "wb") as f:
            f.write(full_recording().trace())
        box, r = box_for_output(boxes)
        content = full_recording()
        content.uid, content.boot_id = own, r.boot_id
        with open(box, "wb") as f:
            f.write(content.box())
        if own != os.geteuid():
            for path in (boxes, closed, box):
                os.chown(path, own, own)
        os.chmod(secret, 0)
        p = tacho("info", secret, **how)
        check(names[0], refused(p, "Permission denied"), said(p))
        p = tacho("dump", box, "-o", os.path.join(closed, "x.tacho"), **how)
        check(names[2], refused(p, "tacho dump: ", "Permission denied"), said(p))
        p = tacho("recover", box, "-o", closed, **how)
        check(names[3], refused(p, "Permission denied") and os.path.exists(box), said(p))
        p = tacho("ls", "--all", **how)
        check(names[4], refused(p, "root", status=2), said(p))
        os.chmod(boxes, 0)
        p = tacho("ls", env={"TACHO_BOX_DIR": boxes}, **how)
        check(names[1], "is not searched: Permission denied" in p.stderr, said(p))
        os.chmod(boxes, 0o700)


def main():
    with tempfile.TemporaryDirectory(prefix="tacho-cli-") as folder:
        trace = os.path.join(folder, "good.tacho")
        with open(trace, "wb") as f:
            f.write(full_recording().trace())
        for name in ("files", "boxes", "output"):
            os.mkdir(os.path.join(folder, name), 0o700)
        test_files(os.path.join(folder, "files"))
        test_processes(os.path.join(folder, "boxes"))
        test_durations(trace)
        test_command_lines(os.path.join(folder, "boxes"), trace)
        test_output(os.path.join(folder, "output"))
    test_help()
    test_permissions()
    return 1 if cli_trace.failures else 0


if __name__ == "__main__":
    sys.exit(main())
