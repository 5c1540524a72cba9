#!/usr/bin/env python3
"""A recording is one file: a server with two workers, of which one blocks.

The report names it, --pid narrows, damage to one part leaves the others, what run counts is what
report counts, and the file of before is kept.
"""
import json
import os
import re
import resource
import signal
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from librun import (BIN, PYTHON, check, failures, folder, run, said, script, start, traces,
                    undisturbed, until)

# A supervisor that waits for its workers, as gunicorn's does. The second worker sleeps in its
# callback; the first has little to do, and lasts as long.
SERVER = """
import os, select, signal, socket, sys, time

def worker(blocks):
    loop, clients = select.epoll(), [socket.socketpair() for _ in range(2)]
    by_number = {r.fileno(): r for r, _ in clients}
    for r in by_number:
        loop.register(r, select.EPOLLIN)
    for i in range(10):
        for _, w in clients:
            w.send(b"x")
        for _ in clients:
            by_number[loop.poll(1, 1)[0][0]].recv(1)
        if blocks:
            time.sleep(0.2)
        else:
            for k in range(4):
                loop.poll(0.05)
    os._exit(0)

pids = []
for i in range(2):
    pid = os.fork()
    if pid == 0:
        worker(i == 1)
    pids.append(pid)
open(sys.argv[1], "w").write(" ".join(map(str, [os.getpid()] + pids)))
loop = select.epoll()
while pids:
    loop.poll(0.1)
    pid = os.waitpid(-1, os.WNOHANG)[0]
    if pid:
        pids.remove(pid)
"""


def tacho(*arguments):
    return subprocess.run([BIN, *arguments], capture_output=True, text=True, timeout=120)


def answer(*arguments):
    p = tacho(*arguments, "--json")
    return json.loads(p.stdout) if p.stdout.startswith("{") else {}


def parts(data):
    """Where the parts begin; and the end."""
    return [m.start() for m in re.finditer(b"TACHOTRC", data)] + [len(data)]


def parts_by_their_ends(data):
    """The same from the end backwards: each end says how long its part is (docs/format.md)."""
    begins = [len(data)]
    while begins[0] >= 32 and data[begins[0] - 8:begins[0]] == b"TACHOEND":
        begins.insert(0, begins[0] - struct.unpack_from("<Q", data, begins[0] - 24)[0])
    return begins


def events_by_pid(path, *options):
    return {p["pid"]: sum(p["events"].values())
            for p in answer("info", path, *options).get("processes", [])}


def record(tmp, path, *options):
    server = script(tmp, "server.py", SERVER)
    pids = os.path.join(tmp, "pids")
    p = run(*options, "-o", path, "--", PYTHON, server, pids, cwd=tmp, preexec_fn=undisturbed)
    return p, [int(n) for n in open(pids).read().split()]


def test_one_file(tmp, p, path, pids):
    supervisor, idle, blocked = pids
    names = [os.path.basename(f) for f in traces(tmp)]
    check("recording_is_one_file", p.returncode == 0 and names == ["rec.tacho"], (said(p), names))
    counts = events_by_pid(path)
    check("recording_has_all_processes", set(counts) == set(pids), (counts, pids))
    line = next((n for n in p.stderr.splitlines() if "rec.tacho: 3 processes" in n), "")
    told = {int(pid): int(n) for pid, n in re.findall(r"\((\d+)\) (\d+)", line)}
    check("run_tells_what_is_in_it", told == counts, (line, counts))
    report = answer("report", path)
    said_by_report = {q["pid"]: q["events"] for q in report["processes"]}
    check("report_counts_what_run_counts", said_by_report == counts, (said_by_report, counts))
    processes = {q["pid"]: q for q in answer("info", path)["processes"]}
    check("parents_are_known", processes[idle]["parent_pid"] == supervisor and
          processes[supervisor]["parent_pid"], processes[idle])
    check("command_lines_are_known", all("server.py" in processes[n].get("command_line", "")
                                         for n in (supervisor, blocked)),
          [q.get("command_line") for q in processes.values()])
    sql = tacho("sql", path, "SELECT pid FROM processes WHERE command_line LIKE '%server.py%'",
                "--csv")
    check("sql_has_command_lines", str(blocked) in sql.stdout.split(), said(sql))


def test_report(path, pids):
    supervisor, idle, blocked = pids
    text = tacho("report", path).stdout
    end, first, second, third = (text.splitlines() + 4 * [""])[:4]
    check("first_is_how_the_worker_ended", f"({blocked}): ended by itself" in end, text)
    check("headline_names_the_worker", first.startswith("blocked-loop: ") and
          f"({blocked}): " in first, text)
    check("second_line_is_that_worker", f"({blocked}), " in second and
          "one of 3 processes" in second, text)
    check("others_are_listed", f"({idle}) " in third and f"({supervisor}) " in third, text)
    report = answer("report", path)
    # What a busy machine does to any of them may be found as well.
    found = [(f["rule"], f["severity"], f["pid"]) for f in report["findings"]]
    check("findings_name_the_process", report["verdict"]["pid"] == blocked and
          found[0] == ("blocking-call", "critical", blocked) and
          [pid for rule, _, pid in found if rule == "blocking-call"] == [blocked], found)
    check("windows_are_those_of_the_process", any(
        q["pid"] == blocked and q["to_ns"] - q["from_ns"] >= 1_900_000_000
        for q in report["processes"]), report["processes"])
    check("stats_names_processes", f"{blocked}: " in tacho("stats", path).stdout)
    check("blame_names_processes", f"({blocked}): poll" in tacho("blame", path).stdout)


def test_narrow(path, pids):
    supervisor, idle, blocked = pids
    healthy = answer("report", path, "--pid", str(idle))
    check("pid_narrows_to_a_healthy_one", healthy["verdict"]["category"] in ("none", "scheduling"),
          healthy["verdict"])
    one = answer("report", path, "--pid", str(blocked))
    check("pid_narrows_to_the_blocked_one", one["verdict"]["category"] == "blocked-loop" and
          one["trace"]["processes"] == 1, one["verdict"])
    check("narrowed_counts_are_the_same", events_by_pid(path, "--pid", str(idle)) ==
          {idle: events_by_pid(path)[idle]})
    comm = one["trace"]["comm"]
    check("process_narrows", len(events_by_pid(path, "--process", comm)) == 3)
    p = tacho("report", path, "--process", "nosuch")
    check("process_that_is_not_there", p.returncode == 1 and f"({blocked})" in p.stderr, said(p))
    for command in (["cat"], ["stats"], ["blame"], ["flame", "--off-cpu"]):
        whole = tacho(*command, path).stdout
        p = tacho(*command, path, "--pid", str(blocked))
        check(f"{command[0]}_narrows", p.returncode == 0 and p.stdout != whole, said(p)[:300])
    p = tacho("sql", path, "--pid", str(idle), "SELECT pid FROM processes", "--csv")
    check("sql_narrows", p.stdout.split() == ["pid", str(idle)], said(p))
    p = tacho("cat", path, "--pid", "x")
    check("pid_must_be_one", p.returncode == 2 and "no process id" in p.stderr, said(p))


def test_damage(tmp, path):
    data = open(path, "rb").read()
    begins = parts(data)
    check("recording_has_a_part_for_each", len(begins) == 4, begins)
    check("ends_say_how_long_parts_are", parts_by_their_ends(data) == begins, begins)
    whole = events_by_pid(path)
    hurt = os.path.join(tmp, "hurt.tacho")
    for i, name in enumerate(("first", "middle", "last")):
        middle = (begins[i] + begins[i + 1]) // 2
        for kind, broken in (
                ("changed", data[:middle] + b"\xff" * 64 + data[middle + 64:]),
                ("missing", data[:middle] + data[middle + 13:])):
            open(hurt, "wb").write(broken)
            left = events_by_pid(hurt)
            same = sum(left.get(pid) == n for pid, n in whole.items())
            p = tacho("report", hurt)
            check(f"{name}_part_{kind}_leaves_the_others", same >= 2 and p.returncode == 0 and
                  p.stderr, (left, whole, said(p)[:300]))
    open(hurt, "wb").write(data[:begins[2] + 100])
    left = events_by_pid(hurt)
    check("cut_file_has_what_is_whole", sum(left.get(pid) == n for pid, n in whole.items()) == 2,
          (left, whole))


def test_own_name(tmp):
    """Without -o it is one file, too, whose name tacho chooses."""
    place = os.path.join(tmp, "own")
    os.mkdir(place)
    p = run("--", PYTHON, script(tmp, "server.py", SERVER), os.path.join(tmp, "own-pids"), cwd=place)
    found = traces(place)
    processes = answer("info", found[0]).get("processes", []) if found else []
    check("without -o: all processes are in one file", p.returncode == 0 and len(found) == 1 and
          len(processes) == 3, (found, len(processes), said(p)))


def test_again(tmp, path):
    """The file of before is kept, as perf does."""
    old = answer("report", path)["verdict"]["pid"]
    p, pids = record(tmp, path)
    check("file_of_before_is_kept", p.returncode == 0 and "rec.tacho.old" in p.stderr and
          answer("report", path)["verdict"]["pid"] == pids[2] and
          answer("report", path + ".old")["verdict"]["pid"] == old, said(p))
    both = tacho("report", path, path + ".old")
    check("report_takes_several", "one of 6 processes" in both.stdout, said(both))
    joined = os.path.join(tmp, "joined.tacho")
    with open(joined, "wb") as out:
        for name in (path, path + ".old"):
            out.write(open(name, "rb").read())
    check("files_can_be_joined", events_by_pid(joined) ==
          {**events_by_pid(path), **events_by_pid(path + ".old")})
    for arguments in (["flame", path, "--off-cpu", "--svg"], ["export", path, "--format", "jsonl", "-o"]):
        out = script(tmp, "out." + arguments[0], "before")
        p = tacho(*arguments, out)
        check(f"{arguments[0]}_keeps_the_file_of_before", p.returncode == 0 and
              open(out + ".old").read() == "before" and os.path.getsize(out) > 100, said(p))


LOOPS = "import select, os, sys, time\nloop = select.epoll()\n" \
        "for i in range(20): loop.poll(0.005)\n"


def test_windows(tmp):
    """Several windows of one process are in it as well, and what they share counts once."""
    path, go = os.path.join(tmp, "windows.tacho"), os.path.join(tmp, "go")
    ready = os.path.join(tmp, "ready")
    p = start("-o", path, "--trigger-signal", "USR2", "--exec", f"echo \"$1\" >> {tmp}/done", "--",
              PYTHON, "-c", LOOPS + f"open({ready!r}, 'w')\n" +
              f"while not os.path.exists({go!r}): loop.poll(0.01)\n", cwd=tmp)
    until(lambda: os.path.exists(ready), 30)
    p.send_signal(signal.SIGUSR2)
    until(lambda: os.path.exists(path), 30)
    check("file_is_there_with_the_first_window", len(parts(open(path, "rb").read())) >= 2)
    check("command_waits_for_the_end", not os.path.exists(tmp + "/done"))
    open(go, "w").close()
    out, err = p.communicate(timeout=60)
    data = open(path, "rb").read()
    counts = events_by_pid(path)
    told = re.findall(r"(\d+) events in", err)
    check("windows_of_one_process_are_parts", len(parts(data)) == 3 and len(counts) == 1,
          (parts(data), counts, err))
    check("what_windows_share_counts_once", [str(n) for n in counts.values()] == told,
          (counts, err))
    check("command_gets_the_finished_file_once", open(tmp + "/done").read().split() == [path], err)


def test_killed(tmp):
    """What was written when tacho run is killed can be read."""
    path = os.path.join(tmp, "killed.tacho")
    p = start("-o", path, "--", PYTHON, "-c", LOOPS.replace("loop = ", """
if os.fork() == 0:
    loop = select.epoll()
    for i in range(5): loop.poll(0.005)
    os._exit(0)
loop = """) + "while True: loop.poll(1)\n", cwd=tmp, start_new_session=True)
    until(lambda: os.path.exists(path), 30)
    p.kill()
    p.wait()
    try:
        os.killpg(p.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    p.stdout.close()
    p.stderr.close()
    check("killed_run_leaves_a_readable_file", len(events_by_pid(path)) == 1)


def test_watched(tmp):
    """What is watched for and does not happen leaves the window of the end alone."""
    p = run("-q", "--on", "stall>1h or poll>1h or lag>1h", "-o", os.path.join(tmp, "kept/"), "--",
            PYTHON, "-c", LOOPS, cwd=tmp)
    kept = traces(os.path.join(tmp, "kept"))
    check("what_does_not_happen_leaves_no_window", p.returncode == 0 and not p.stderr and
          len(kept) == 1, (said(p), kept))


def test_descriptors(tmp):
    """Each process that is recorded takes some of tacho's: it may have as many as it is allowed to. The
    program has as many as before."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))  # noqa: E731
    told = os.path.join(tmp, "limits")
    # The program is there before tacho waits for it: it asks until that is so.
    p = run("-q", "-o", os.path.join(tmp, "few.tacho"), "--", "sh", "-c",
            "ulimit -n; for i in $(seq 100); do prlimit -n -p $PPID -o SOFT --noheadings >" + told +
            f"; grep -q '^ *{hard}$' {told} && break; sleep 0.1; done", cwd=tmp, preexec_fn=few)
    check("tacho_may_have_all_the_descriptors_it_is_allowed_to",
          open(told).read().strip() == str(hard), open(told).read())
    check("the_program_may_have_as_many_as_before", p.stdout.strip() == "100", said(p))


def main():
    with folder() as tmp:
        path = os.path.join(tmp, "rec.tacho")
        p, pids = record(tmp, path)
        test_one_file(tmp, p, path, pids)
        test_report(path, pids)
        test_narrow(path, pids)
        test_damage(tmp, path)
        test_own_name(tmp)
        test_again(tmp, path)
    for test in (test_windows, test_killed, test_watched, test_descriptors):
        with folder() as tmp:
            test(tmp)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
