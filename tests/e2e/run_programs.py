#!/usr/bin/env python3
"""tacho run and what programs do: daemons, crashes, workers, and what they leave behind."""
import os
import resource
import signal
import subprocess
import sys
import threading
import time

from librun import (BIN, LOOP, PYTHON, alive, boxes, check, count, end, environment, finish,
                    folder, run, said, script, skip, start, traces, until)
import librun


def fresh(tmp, name):
    place = os.path.join(tmp, name)
    os.mkdir(place)
    return place


def test_worker_that_cannot_record(tmp):
    if os.geteuid() != 0:
        skip("worker_that_cannot_record_in_a_folder_that_is_closed_is_told", "not root")
        return
    code = LOOP + "if os.fork() == 0:\n    os.setgid(65534); os.setuid(65534)\n    turn()\n" \
        "    os._exit(0)\nos.wait()\n"
    # The folder of this test is root's alone, or may be looked into.
    folder_of_boxes = os.environ["TACHO_BOX_DIR"]
    before = os.stat(folder_of_boxes).st_mode & 0o777
    for mode, name in ((0o700, "closed"), (0o755, "open")):
        os.chmod(folder_of_boxes, mode)
        out = os.path.join(tmp, name + ".tacho")
        try:
            p = run("-o", out, "--", PYTHON, "-c", code, cwd=tmp)
        finally:
            os.chmod(folder_of_boxes, before)
        check(f"worker_that_cannot_record_in_a_folder_that_is_{name}_is_told", p.returncode == 0 and
              count(out, "park") == 3 and p.stderr.count("could not record") == 1, said(p))


def test_few_descriptors(tmp):
    """There are more processes than descriptors to follow them with: they are saved in turn."""
    place = fresh(tmp, "descriptors")
    code = LOOP + "for i in range(40):\n    if os.fork() == 0:\n        turn(3, 0.1)\n" \
        "        os._exit(0)\nfor i in range(40): os.wait()\n"
    p = run("--memory", "1M", "-o", place, "--", PYTHON, "-c", code, cwd=tmp, timeout=300,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)))
    check("few_descriptors_are_enough", p.returncode == 0 and len(traces(place)) == 41 and
          boxes() == [], (len(traces(place)), len(boxes()), p.stderr[-500:]))


def test_folder_of_boxes(tmp):
    """It is made when it is needed and gone at the end, also while others begin to record."""
    if os.geteuid() != 0 or not librun.others_may_run() or not librun.watched():
        skip("folder_of_boxes_is_tidied", "needs root, and a build that others may run")
        return
    user = 2000000000 + os.getpid()
    boxes_of_user = f"/dev/shm/tacho-{user}"
    out = fresh(tmp, "tidy")
    os.chown(out, user, user)
    command = ["--", librun.watched(), "turns:3", "park:1"]
    how = {"cwd": "/", "user": user, "env": {"TACHO_BOX_DIR": None}}
    p = run("-o", out + "/", *command, **how)
    check("folder_of_boxes_is_tidied", p.returncode == 0 and len(traces(out)) == 1 and
          out + "/tacho-" in p.stderr and not os.path.exists(boxes_of_user), said(p))
    # Who deletes it whenever it is empty takes the part of many that end.
    sweeping = threading.Event()
    sweeping.set()

    def sweep():
        while sweeping.is_set():
            time.sleep(0.0005)
            try:
                os.rmdir(boxes_of_user)
            except OSError:
                pass

    sweeper = threading.Thread(target=sweep)
    sweeper.start()
    try:
        ended = [run("-q", "-o", out, *command, **how) for _ in range(40)]
    finally:
        sweeping.clear()
        sweeper.join()
    if os.path.isdir(boxes_of_user):
        os.rmdir(boxes_of_user)
    check("folder_of_boxes_may_go_at_any_time", len(traces(out)) == 41 and
          all(p.returncode == 0 and not p.stderr for p in ended),
          (len(traces(out)), {p.stderr for p in ended}))


def test_deleted_box(tmp):
    # Once tacho, the parent, has it open: of a box that came and went before, nobody knows.
    code = LOOP + "import glob, time\n" \
        "for b in glob.glob(os.environ['TACHO_BOX_DIR'] + '/*.box'):\n" \
        "    for _ in range(3000):\n" \
        "        if b in open(f'/proc/{os.getppid()}/maps').read(): break\n" \
        "        time.sleep(0.02)\n" \
        "    os.unlink(b)\nturn()\n"
    p = run("--", PYTHON, "-c", code, cwd=fresh(tmp, "deleted"))
    check("deleted_box_is_told", p.returncode == 0 and "somebody deleted its box" in p.stderr and
          "nothing was recorded" not in p.stderr, said(p))


def test_refused_option(tmp):
    p = run("--", PYTHON, "-c", LOOP, cwd=tmp, env={"TACHO_MIN_AGE": "old"})
    check("refused_option_is_told", p.returncode == 0 and "TACHO_MIN_AGE=old" in p.stderr and
          boxes() == [], said(p))


def test_pid_namespace(tmp):
    """A process that is another number to itself, and that has the same /proc as we."""
    out = os.path.join(tmp, "namespace.tacho")
    if subprocess.run(["unshare", "-pf", "true"], capture_output=True).returncode != 0:
        skip("pid_namespace", "no rights to make one")
        return
    p = run("-o", out, "--", "unshare", "-pf", PYTHON, "-c",
            LOOP + "assert os.getpid() == 1\nturn()\nsys.exit(9)", cwd=tmp)
    check("pid_namespace_is_followed_to_its_end", p.returncode == 9 and count(out, "park") == 6 and
          boxes() == [] and "still running" not in p.stderr, (said(p), count(out, "park")))


def test_address_sanitizer(tmp):
    """Programs of gcc's AddressSanitizer refuse preloaded libraries, unless they are told."""
    program = os.path.join(tmp, "sanitized")
    source = "#include <poll.h>\n#include <stdlib.h>\n" \
        "int main(int argc, char **argv)\n{\n" \
        "\tvolatile char *p = malloc(8);\n\tint n;\n\n\tpoll(0, 0, 1);\n\t(void)argv;\n" \
        "\tn = p[argc == 1 ? 0 : 8] * 0;\n\tfree((void *)p);\n\treturn 5 + n;\n}\n"
    built = subprocess.run(["gcc", "-fsanitize=address", "-x", "c", "-", "-o", program],
                           input=source, capture_output=True, text=True)
    if built.returncode != 0:
        skip("address_sanitizer", "gcc has no libasan: " + built.stderr[:100])
        return
    out = os.path.join(tmp, "sanitized.tacho")
    p = run("-o", out, "--", program, cwd=tmp)
    check("address_sanitizer_starts", p.returncode == 5 and count(out, "park") == 1, said(p))
    p = run("-o", out, "--force", "--", program, "fault", cwd=tmp,
            env={"ASAN_OPTIONS": "exitcode=44"})
    check("address_sanitizer_finds_faults", p.returncode == 44 and
          "heap-buffer-overflow" in p.stderr, said(p))


def test_threads_outlive_main(tmp):
    """The first thread has ended, others go on: the process has not ended."""
    out = os.path.join(tmp, "threads.tacho")
    code = LOOP + "import threading, ctypes\n" \
        "def work():\n    turn(20, 0.05)\n    os._exit(8)\n" \
        "threading.Thread(target=work).start()\n" \
        "ctypes.CDLL(None).syscall(60 if os.uname().machine == 'x86_64' else 93, 0)\n"
    p = run("-o", out, "--", PYTHON, "-c", code, cwd=tmp)
    check("threads_may_outlive_main", p.returncode == 8 and count(out, "park") == 23 and
          p.stderr.count("window of") == 1, (said(p), count(out, "park")))


def test_crash(tmp):
    for name, code, status in (("segv", "os.kill(os.getpid(), 11)", 139),
                               ("abort", "os.abort()", 134), ("exit", "os._exit(3)", 3)):
        out = os.path.join(tmp, name + ".tacho")
        p = run("-o", out, "--", PYTHON, "-c", LOOP + code, cwd=tmp)
        check(f"window_after_{name}", p.returncode == status and count(out, "park") == 3 and
              boxes() == [], said(p))


DAEMON = LOOP + """
import resource
if os.fork(): os._exit(5)
os.setsid()
if os.fork(): os._exit(0)
os.closerange(0, 256)
loop = select.epoll()
path = sys.argv[1]
fd = os.open(path + ".new", os.O_CREAT | os.O_WRONLY)
os.write(fd, str(os.getpid()).encode())
os.close(fd)
os.rename(path + ".new", path)
def stop(*a): os._exit(0)
signal.signal(signal.SIGTERM, stop)
turn(999, 0.1)
"""


def pid_in(path):
    until(lambda: os.path.exists(path))
    with open(path) as f:
        return int(f.read())


def test_daemon(tmp):
    place = fresh(tmp, "daemon")
    program = script(place, "daemon.py", DAEMON)
    p = start("-o", place, "--", PYTHON, program, place + "/pid", cwd=place)
    pid = pid_in(place + "/pid")
    until(lambda: len(boxes()) > 0)
    time.sleep(0.3)
    waits = p.poll() is None
    dump = subprocess.run([BIN, "dump", str(pid), "-o", place + "/dump.box"], capture_output=True,
                          text=True, env=environment())
    os.kill(pid, signal.SIGTERM)
    status, _, err = finish(p)
    check("daemon_is_waited_for", waits and status == 5 and not alive(pid), (status, err))
    check("daemon_can_be_dumped", dump.returncode == 0 and count(place + "/dump.box", "park") > 0,
          said(dump))
    check("daemon_window_is_saved", any(f"-{pid}-" in f for f in traces(place)) and boxes() == [],
          (traces(place), err))
    p = start("--no-wait-children", "-o", place, "--", PYTHON, program, place + "/pid2", cwd=place)
    status, _, err = None, None, None
    try:
        status = p.wait(60)
    except subprocess.TimeoutExpired:
        p.kill()
    pid = pid_in(place + "/pid2")
    until(lambda: any(os.path.basename(b).startswith(f"{pid}-") for b in boxes()))
    check("no_wait_returns_at_once", status == 5 and alive(pid), status)
    os.kill(pid, signal.SIGTERM)
    until(lambda: not alive(pid))
    err = p.communicate()[1]
    recover = subprocess.run([BIN, "recover", "-o", place], capture_output=True, text=True,
                             env=environment())
    check("no_wait_leaves_the_box", recover.returncode == 0 and "1 recovered" in recover.stdout,
          (said(recover), err))


def test_left_behind(tmp):
    """What never records is not waited for longer than a moment."""
    p = start("-q", "--", "sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!", cwd=tmp)
    status = p.wait(60)
    pid = int(p.communicate()[0])
    check("helpers_without_records_are_left", status == 0 and alive(pid), status)
    end(pid)


def test_recycled(tmp):
    """Windows of workers are saved when they end, not when the server does."""
    place = fresh(tmp, "recycled")
    code = LOOP + "for i in range(30):\n" \
        "    if os.fork() == 0:\n        turn(2)\n        os._exit(0)\n    os.wait()\n" \
        "open('done', 'w')\nturn(999, 0.1)\n"
    p = start("-o", place, "--", PYTHON, "-c", code, cwd=place)
    until(lambda: os.path.exists(place + "/done"))
    # A box goes when its trace is whole.
    saved = until(lambda: len(traces(place)) == 30 and len(boxes()) == 1)
    check("workers_are_saved_when_they_end", saved,
          (len(traces(place)), len(boxes())))
    p.terminate()
    status, _, err = finish(p)
    check("all_windows_are_there", status == 143 and len(traces(place)) == 31, (status, err))


def switches(pid):
    with open(f"/proc/{pid}/status") as f:
        return sum(int(line.split()[1]) for line in f if "ctxt_switches" in line)


def is_asleep(pid, seconds=1.5):
    before = switches(pid)
    time.sleep(seconds)
    return switches(pid) == before


def test_trigger_and_idle(tmp):
    place = fresh(tmp, "trigger")
    p = start("--trigger-signal", "usr2", "-o", place, "--", PYTHON, "-c", LOOP +
              "signal.signal(12, lambda *a: os._exit(9))\nopen('ready', 'w')\nturn(999, 0.2)\n",
              cwd=place)
    until(lambda: os.path.exists(place + "/ready"))
    for n in (1, 2):
        os.kill(p.pid, signal.SIGUSR2)
        until(lambda: len(traces(place)) == n)
    check("trigger_saves_and_goes_on", len(traces(place)) == 2 and p.poll() is None,
          traces(place))
    # Others who make something in /dev/shm may wake it up; it does not do so by itself.
    check("tacho_does_not_wake_up", until(lambda: is_asleep(p.pid)), switches(p.pid))
    p.terminate()
    status, _, err = finish(p)
    check("trigger_is_not_passed_on", status == 143 and len(traces(place)) == 3 and
          err.count("snapshot of") == 2, (status, err))


def test_full_disk(tmp):
    place = fresh(tmp, "full")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=755", "tmpfs", place],
                      capture_output=True).returncode:
        skip("full_disk", "a small file system cannot be mounted here")
        return
    try:
        with open(place + "/filler", "wb", 0) as f:
            try:
                while True:
                    f.write(bytes(4096))
            except OSError:
                pass
        p = run("-o", place, "--", PYTHON, "-c", LOOP + "sys.exit(6)", cwd=tmp)
        check("full_disk_is_told_at_the_start", p.returncode == 6 and "are free" in p.stderr,
              said(p))
        left = boxes()
        check("full_disk_keeps_the_box", len(left) == 1 and left[0] in p.stderr and
              "tacho recover" in p.stderr and traces(place) == [], said(p))
        os.unlink(place + "/filler")
        r = subprocess.run([BIN, "recover", *left, "-o", place], capture_output=True, text=True,
                           env=environment())
        check("full_disk_window_is_recovered", r.returncode == 0 and len(traces(place)) == 1 and
              count(traces(place)[0], "park") == 3, said(r))
    finally:
        subprocess.run(["umount", "-l", place], capture_output=True)
    place = fresh(tmp, "vanishes")
    p = run("-o", place, "--", PYTHON, "-c", LOOP + f"os.rmdir({place!r})", cwd=tmp)
    check("vanished_folder_keeps_the_box", p.returncode == 0 and len(boxes()) == 1 and
          "is kept in its box" in p.stderr, said(p))
    for box in boxes():
        os.unlink(box)


def main():
    with folder() as tmp:
        os.chmod(tmp, 0o755)
        test_worker_that_cannot_record(tmp)
        test_few_descriptors(tmp)
        test_folder_of_boxes(tmp)
        test_deleted_box(tmp)
        test_refused_option(tmp)
        test_pid_namespace(tmp)
        test_address_sanitizer(tmp)
        test_threads_outlive_main(tmp)
        test_crash(tmp)
        test_daemon(tmp)
        test_left_behind(tmp)
        test_recycled(tmp)
        test_trigger_and_idle(tmp)
        test_full_disk(tmp)
    return 1 if librun.failures else 0


if __name__ == "__main__":
    sys.exit(main())
