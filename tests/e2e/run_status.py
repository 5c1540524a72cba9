#!/usr/bin/env python3
"""tacho run: exit status, what is refused before anything starts, where windows go. That a command
runs whatever tacho lacks is for tests/harm."""
import os
import signal
import stat
import struct
import subprocess
import sys

from librun import (BIN, LOOP, PYTHON, boxes, check, count, environment, folder, others_may_run,
                    run, said, script, skip, traces)
import librun


def test_status(tmp):
    p = run("--", "/bin/true", cwd=tmp)
    check("status_of_true", p.returncode == 0 and "nothing was recorded" in p.stderr, said(p))
    p = run("--", "sh", "-c", "exit 7", cwd=tmp)
    check("status_is_returned", p.returncode == 7, said(p))
    p = run("--", "sh", "-c", "exit 255", cwd=tmp)
    check("status_255", p.returncode == 255, said(p))
    p = run("-q", "--", "sh", "-c", "kill -KILL $$", cwd=tmp)
    check("killed_is_128_and_signal", p.returncode == 137 and p.stderr == "", said(p))
    p = run("--", "sh", "-c", "kill -SEGV $$", cwd=tmp)
    check("death_is_told", p.returncode == 139 and "SIGSEGV" in p.stderr, said(p))
    p = run("--", "sh", "-c", "cat; echo out; echo err >&2", cwd=tmp)
    check("streams_are_the_commands", p.stdout == "out\n" and p.stderr.startswith("err\n"),
          said(p))
    p = run("sh", "-c", "exit 3", cwd=tmp)
    check("two_dashes_may_be_left_out", p.returncode == 3, said(p))
    p = run("--exclude", "sleep", "--", "sleep", "0", cwd=tmp)
    check("excluded_may_be_why", "nothing was recorded" in p.stderr and
          "--exclude" in p.stderr, said(p))
    p = run("--no-wait-children", "--", "true", cwd=tmp)
    check("left_behind_may_record_later", "nothing was recorded" in p.stderr and
          "tacho recover" in p.stderr, said(p))
    p = run("--", "true", cwd=tmp, env={"TACHO_BOX_DIR": "boxes"})
    check("folder_of_boxes_is_absolute", p.returncode == 0 and "absolute path" in p.stderr and
          not os.path.exists(tmp + "/boxes"), said(p))
    check("without_records_no_files", traces(tmp) == [] and boxes() == [],
          (traces(tmp), boxes()))


def elf(machine, kind=2, size=64, interpreter=None):
    head = b"\x7fELF" + bytes([2 if size == 64 else 1, 1, 1]) + bytes(9)
    return head + struct.pack("<HHIQQQIHHHHHH", kind, machine, 1, 0x400000, 64, 0, 0, 64, 56, 0, 0,
                              0, 0)


def test_commands(tmp):
    bad = os.path.join(tmp, "bad")
    os.mkdir(bad)

    def make(name, data, mode=0o755):
        path = os.path.join(bad, name)
        with open(path, "wb") as f:
            f.write(data)
        os.chmod(path, mode)
        return path

    for name, command, status, words in [
        ("missing", "no-such-command-here", 127, "no command no-such-command-here"),
        ("missing_path", bad + "/none", 127, "no such file"),
        ("empty_name", "", 127, "no command"),
        ("folder", bad, 126, "is a folder"),
        ("not_executable", make("plain", b"#!/bin/sh\n", 0o644), 126, "not executable"),
        ("missing_interpreter", make("script", b"#!/no/such/interpreter -x\n"), 127,
         "its interpreter /no/such/interpreter"),
        ("wrong_machine", make("arm", elf(183 if os.uname().machine == "x86_64" else 62)), 126,
         "is a program for"),
        ("garbage_elf", make("garbage", elf(62 if os.uname().machine == "x86_64" else 183)
                             [:60] + b"\xff" * 500), 126, "cannot start"),
    ]:
        p = run("--", command, cwd=tmp)
        lines = [x for x in p.stderr.splitlines() if "warning" not in x]
        check(f"{name}_is_{status}", p.returncode == status and len(lines) == 1 and
              words in lines[0], said(p))
    test_path(tmp, bad)
    p = run("--", make("nothing", b"echo $1; exit 4\n"), "word", cwd=tmp)
    check("text_without_first_line_is_for_the_shell", p.returncode == 4 and p.stdout == "word\n",
          said(p))
    p = run("--", make("shebang", b"#! /bin/sh\nexit 5\n"), cwd=tmp)
    check("scripts_run", p.returncode == 5, said(p))


def test_path(tmp, bad):
    """What is found in PATH, as shells find it."""
    os.mkdir(os.path.join(bad, "a-folder"))
    path = bad + ":" + os.environ["PATH"]
    for name, command, status, words in [
        ("path_skips_folders", "a-folder", 127, "no command a-folder"),
        ("path_tells_what_is_not_executable", "plain", 126, "not executable"),
    ]:
        p = run("--", command, cwd=tmp, env={"PATH": path})
        check(name, p.returncode == status and words in p.stderr, said(p))
    if os.geteuid() != 0 or not others_may_run():
        skip("path_skips_closed_folders", "needs root, and a build that others may run")
        return
    os.chmod(bad, 0o700)
    p = run("-o", "/dev/shm", "--", "no-such-command-here", cwd="/", user=65534,
            env={"PATH": path, "TACHO_BOX_DIR": None})
    check("path_skips_closed_folders", p.returncode == 127 and "no command" in p.stderr, said(p))


def test_usage(tmp):
    for name, arguments, words in [
        ("no_command", [], "which command"),
        ("unknown_option", ["--frobnicate", "true"], "no option --frobnicate"),
        ("bytes", ["--memory", "many", "--", "true"], "no size"),
        ("too_few_bytes", ["--memory", "5K", "--", "true"], "between 1 MiB"),
        ("duration", ["--min-age", "5", "--", "true"], "has no unit"),
        ("negative_duration", ["--call-threshold", "-5ms", "--", "true"], "not a duration"),
        ("signal", ["--trigger-signal", "NOISE", "--", "true"], "no signal"),
        ("impossible_signal", ["--trigger-signal", "KILL", "--", "true"], "cannot be used"),
        ("empty_exclude", ["--exclude", "a,,b", "--", "true"], "name is empty"),
        ("force_without_file", ["--force", "--", "true"], "--force needs -o"),
        ("force_with_folder", ["--force", "-o", tmp + "/", "--", "true"], "--force needs -o"),
        ("keep_with_file", ["--on", "poll>1s", "--keep", "3", "-o", tmp + "/x.tacho", "--", "true"],
         "give a folder"),
        ("too_long_name", ["-o", "x" * 5000, "--", "true"], "too long"),
        ("service", ["--service", "x" * 64, "--", "true"], "1 to 63 bytes"),
        ("standard_output", ["-o", "-", "--", "true"], "file or a folder"),
    ]:
        p = run(*arguments, cwd=tmp)
        check(f"usage_{name}", p.returncode == 2 and words in p.stderr, said(p))
    p = run("--help")
    check("help", p.returncode == 0 and "tacho run" in p.stdout, said(p))


def test_places(tmp):
    mine = script(tmp, "mine.tacho", "precious")
    p = run("-o", mine, "--", "true", cwd=tmp)
    check("existing_file_stays_if_nothing_is_recorded", p.returncode == 0 and
          open(mine).read() == "precious", said(p))
    p = run("-o", mine, "--", PYTHON, "-c", LOOP, cwd=tmp)
    check("existing_file_is_kept", p.returncode == 0 and count(mine, "park") == 3 and
          open(mine + ".old").read() == "precious" and "mine.tacho.old" in p.stderr, said(p))
    p = run("--force", "-o", mine, "--", PYTHON, "-c", LOOP, cwd=tmp)
    check("force_replaces", p.returncode == 0 and count(mine, "park") == 3 and
          open(mine + ".old").read() == "precious", said(p))
    new = os.path.join(tmp, "new")
    p = run("-o", new + "/", "--", PYTHON, "-c", LOOP, cwd=tmp)
    check("folder_is_made", p.returncode == 0 and len(traces(new)) == 1 and "//" not in p.stderr,
          said(p))


def test_files(tmp):
    out = os.path.join(tmp, "out")
    os.mkdir(out)
    p = run("--service", "shop", "--memory", "2M", "--", PYTHON, "-c", LOOP, cwd=out)
    files = traces(out)
    check("default_name_is_here", p.returncode == 0 and len(files) == 1 and
          os.path.basename(files[0]).startswith("tacho-python3"), (said(p), files))
    check("path_is_printed", len(files) == 1 and os.path.basename(files[0]) in p.stderr, said(p))
    info = subprocess.run([BIN, "info", files[0]], capture_output=True, text=True).stdout
    check("options_reach_the_program", "service shop" in info and "2.0 MiB" in info, info)
    check("box_is_removed", boxes() == [], boxes())
    check("file_is_private", stat.S_IMODE(os.stat(files[0]).st_mode) == 0o600,
          oct(os.stat(files[0]).st_mode))
    # FILE is all of it.
    one = os.path.join(tmp, "one.tacho")
    p = run("-o", one, "--", PYTHON, "-c", LOOP +
            "if os.fork() == 0:\n    turn(5)\n    os._exit(0)\nos.wait()\n", cwd=tmp)
    check("file_is_all_processes", p.returncode == 0 and count(one, "park") == 8 and
          len([f for f in traces(tmp) if "one" in os.path.basename(f)]) == 1,
          (said(p), traces(tmp)))
    two = os.path.join(tmp, "two.tacho")
    p = run("-o", two, "--", "sh", "-c", f"{PYTHON} -c '{LOOP}'; true", cwd=tmp)
    check("file_has_the_child_of_a_shell", p.returncode == 0 and count(two, "park") == 3, said(p))
    p = run("-q", "-o", os.path.join(tmp, "quiet.tacho"), "--", PYTHON, "-c", LOOP, cwd=tmp)
    check("quiet", p.stderr == "" and traces(tmp), said(p))
    p = run("--exclude", "sh," + os.path.basename(PYTHON), "--", PYTHON, "-c", LOOP, cwd=out)
    check("excluded_are_not_recorded", p.returncode == 0 and len(traces(out)) == 1, said(p))


def test_preload(tmp):
    p = run("-q", "--", "sh", "-c", "echo $LD_PRELOAD", cwd=tmp,
            env={"LD_PRELOAD": "libm.so.6"})
    check("preload_is_appended", p.stdout.startswith("libm.so.6:/") and
          p.stdout.endswith("libtacho-preload.so\n") and p.stderr == "", said(p))
    p = run("-q", "--", "env", cwd=tmp, env={"LISTEN_FDS": "1"})
    check("environment_is_kept", "LISTEN_FDS=1\n" in p.stdout and "PATH=" in p.stdout and
          "TACHO_RECORDING=" in p.stdout, said(p))


def test_hindered(tmp):
    source = script(tmp, "static.c", "int main(void) { return 9; }\n")
    program = os.path.join(tmp, "static")
    if subprocess.run(["cc", "-static", "-o", program, source], capture_output=True).returncode:
        skip("static_program_runs", "no static C library")
    else:
        p = run("--", program, cwd=tmp)
        check("static_program_runs", p.returncode == 9 and "linked statically" in p.stderr,
              said(p))
    if os.geteuid() != 0:
        skip("set_user_id_program_runs", "not root")
        return
    place = "/var/tmp"
    program = os.path.join(place, f"tacho-setuid-{os.getpid()}")
    subprocess.run(["cp", "/bin/true", program], check=True)
    try:
        os.chown(program, 65534, 65534)
        os.chmod(program, 0o4755)
        if os.statvfs(place).f_flag & os.ST_NOSUID:
            skip("set_user_id_program_runs", f"{place} is mounted with nosuid")
        else:
            p = run("--", program, cwd=tmp)
            check("set_user_id_program_runs", p.returncode == 0 and "more rights" in p.stderr,
                  said(p))
    finally:
        os.unlink(program)


def test_inherited(tmp):
    show = "import signal, os\n" \
           "print([int(signal.getsignal(s) == signal.SIG_IGN) for s in " \
           "(signal.SIGHUP, signal.SIGCHLD)], sorted(signal.pthread_sigmask(0, [])), " \
           "open('/proc/self/status').read().split('SigIgn:')[1].split()[0], " \
           "os.getpgrp() == os.getpgid(os.getppid()))\n" \
           "print(sorted(os.listdir('/proc/self/fd')))\n"

    def prepare():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])

    plain = subprocess.run([PYTHON, "-c", show], preexec_fn=prepare, capture_output=True,
                           text=True, stdin=subprocess.DEVNULL, restore_signals=False)
    p = run("-q", "--", PYTHON, "-c", show, cwd=tmp, preexec_fn=prepare, restore_signals=False)
    check("signals_and_descriptors_are_inherited", p.stdout == plain.stdout.replace("False",
          "True") and p.returncode == 0, (said(p), plain.stdout))
    closed = f"'{BIN}' run -q -- sh -c '[ -e /proc/self/fd/0 ] || echo closed' <&-"
    p = subprocess.run(["sh", "-c", closed], capture_output=True, text=True, cwd=tmp,
                       env=environment())
    check("closed_input_stays_closed", p.stdout == "closed\n", said(p))


def main():
    with folder() as tmp:
        test_status(tmp)
        test_commands(tmp)
        test_usage(tmp)
        test_places(tmp)
        test_files(tmp)
        test_preload(tmp)
        test_hindered(tmp)
        test_inherited(tmp)
    return 1 if librun.failures else 0


if __name__ == "__main__":
    sys.exit(main())
