#!/usr/bin/env python3
"""tacho run: who was not recorded is said, and when it ends with the command or follows others."""
import json
import os
import resource
import signal
import subprocess
import sys
import time

from librun import (BIN, LOOP, PYTHON, agent, alive, boxes, check, count, end, environment, finish,
                    folder, recorded, run, said, script, skip, start, traces, until, watched)
import librun


def fresh(tmp, name):
    place = os.path.join(tmp, name)
    os.mkdir(place)
    return place


def absent(path):
    """Who was not recorded, as the trace has it: {name: entry}."""
    p = subprocess.run([BIN, "info", "--json", path], capture_output=True, text=True)
    return {a["comm"]: a for a in json.loads(p.stdout).get("absent", [])}


def compile_c(tmp, name, text, *options):
    program = os.path.join(tmp, name)
    source = script(tmp, name + ".c", text)
    p = subprocess.run(["cc", *options, "-o", program, source], capture_output=True)
    return None if p.returncode else program


WAITER = "#include <unistd.h>\nint main(void) { return read(0, &(char){0}, 1) < 0; }\n"

# Starts its arguments with a pipe for input, waits until tacho knows of them, and ends them.
SUPERVISOR = LOOP + """
import subprocess
env = {"LD_PRELOAD": "/none.so", "TACHO": "off"} if sys.argv[1] == "clean" else None
p = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, env=env, stderr=subprocess.DEVNULL)
turn(15, 0.1)
p.stdin.close()
p.wait()
"""


def supervise(tmp, name, how, *command):
    out = os.path.join(tmp, name + ".tacho")
    p = run("-o", out, "--", PYTHON, script(tmp, "supervisor.py", SUPERVISOR), how, *command,
            cwd=tmp)
    return p, absent(out) if os.path.exists(out) else {}, out


def test_reasons(tmp):
    static = compile_c(tmp, "linked", WAITER, "-static")
    if not static:
        skip("static_process_is_named", "no static C library")
    else:
        p, found, out = supervise(tmp, "static", "plain", static)
        check("static_process_is_named", p.returncode == 0 and
              "not recorded: linked (" in p.stderr and "linked statically" in p.stderr, said(p))
        a = found.get("linked", {})
        check("static_process_is_in_the_trace", a.get("reason") == "static" and a.get("pid") and
              a.get("parent_pid") and a.get("exe") == static and a.get("hindered"), found)
        report = subprocess.run([BIN, "report", out], capture_output=True, text=True).stdout
        check("static_process_is_in_the_report", "not recorded: linked (" in report, report)
        rows = subprocess.run([BIN, "sql", "--json", out, "SELECT comm, reason FROM absent "
                               "WHERE hindered"], capture_output=True, text=True).stdout
        check("static_process_is_in_sql", '"linked"' in rows and '"static"' in rows, rows)
    dynamic = compile_c(tmp, "cleaned", WAITER)
    p, found, _ = supervise(tmp, "environment", "clean", dynamic)
    check("cleaned_process_is_named", found.get("cleaned", {}).get("reason") == "environment" and
          "cleaned (" in p.stderr, (found, said(p)))
    p, found, _ = supervise(tmp, "recorded", "plain", PYTHON, "-c",
                            LOOP + "sys.stdin.read()")
    check("recorded_process_is_not_named", not found and "not recorded" not in p.stderr,
          (found, said(p)))


def test_segments(tmp):
    dynamic = compile_c(tmp, "segmented", WAITER)
    out = os.path.join(tmp, "segments")
    p = run("--continuous", "--segment-time", "300ms", "-o", out, "--", PYTHON,
            script(tmp, "supervisor.py", SUPERVISOR), "clean", dynamic, cwd=tmp)
    report = subprocess.run([BIN, "report", out], capture_output=True, text=True).stdout
    check("report_of_segments_names_who_is_absent", "not recorded: segmented (" in report,
          (report, said(p)))
    newest = traces(out)[-1:]
    check("newest_segment_has_all_who_are_absent", newest and "segmented" in absent(newest[0]),
          newest)


def test_agent(tmp):
    """An agent knows of those whose recorder left a note."""
    place = fresh(tmp, "agent")
    a = agent("-o", place, "--continuous", "--segment-time", "300ms")
    # The file of a box is larger than that, a note is not.
    p = recorded("turns:5", "park:60000", preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_FSIZE, (65536, 65536)))
    name = os.path.basename(watched())[:15]
    until(lambda: boxes())
    q = recorded("turns:50", "park:700", "exit:0")
    q.wait()
    found = until(lambda: [t for t in traces(place) if name in absent(t)], 20)
    for process in (p, a):
        process.terminate()
        finish(process)
    check("segments_of_an_agent_name_who_could_not_record", found and
          absent(found[0])[name]["reason"] == "refused" and absent(found[0])[name]["pid"] == p.pid,
          (found, traces(place)))


SHELL = """
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
static void turn(int n)
{
	struct epoll_event event;
	for (int loop = epoll_create1(0); n > 0; n--)
		epoll_wait(loop, &event, 1, 100);
}
int main(int argc, char **argv)
{
	FILE *f;
	/* Long enough for tacho to have stopped looking often. */
	turn(40);
	clearenv();
	if (argc > 1 && argv[1][0] == 'p') {
		f = popen("/bin/sleep 1; :", "r");
		return !f || pclose(f) != 0;
	}
	if (system("/bin/sleep 1; :") != 0)
		return 1;
	turn(2);
	return 0;
}
"""


def test_shell(tmp):
    """libc starts a shell past all hooks, with the program's environment."""
    program = compile_c(tmp, "shell", SHELL, "-D_GNU_SOURCE")
    for how in ("system", "popen"):
        out = os.path.join(tmp, how + ".tacho")
        p = run("-o", out, "--", program, how, cwd=tmp)
        found = [a for a in absent(out).values() if a["reason"] == "environment" and
                 a["parent_pid"]]
        check(f"shell_of_{how}_without_environment_is_named", p.returncode == 0 and found and
              f"not recorded: {found[0]['comm']} (" in p.stderr, (absent(out), said(p)))


def test_rights(tmp):
    if os.geteuid() != 0 or os.statvfs("/var/tmp").f_flag & os.ST_NOSUID:
        skip("process_with_other_rights_is_named", "not root, or /var/tmp is mounted with nosuid")
        return
    built = compile_c(tmp, "rights", WAITER)
    program = f"/var/tmp/rights-{os.getpid()}"
    subprocess.run(["cp", built, program], check=True)
    try:
        os.chown(program, 65534, 65534)
        os.chmod(program, 0o4755)
        p, found, _ = supervise(tmp, "other", "plain", program)
        name = os.path.basename(program)[:15]
        check("process_with_other_rights_is_named", found.get(name, {}).get("reason") == "rights" and
              "AT_SECURE" in p.stderr, (found, said(p)))
        p = run("--", "sh", "-c", f"sleep 1 | {program}", cwd=tmp)
        check("nothing_was_recorded_has_a_reason", p.returncode == 0 and
              "nothing was recorded. Of its processes, " + name in p.stderr, said(p))
    finally:
        os.unlink(program)


def test_idle(tmp):
    out = os.path.join(tmp, "idle.tacho")
    command = f"'{PYTHON}' -c '{LOOP}'; sleep 2.5; '{PYTHON}' -c '{LOOP}'"
    p = run("-o", out, "--exclude", "sleep", "--", "sh", "-c", command, cwd=tmp)
    found = {}
    for path in traces(tmp):
        if os.path.basename(path).startswith("idle"):
            found.update(absent(path))
    check("excluded_is_told", found.get("sleep", {}).get("reason") == "excluded" and
          not found["sleep"]["hindered"], found)
    check("who_had_nothing_to_record_is_no_news", p.returncode == 0 and
          "not recorded" not in p.stderr, said(p))


# Starts a daemon after argv[2] tenths of a second, and lives beside it for argv[3].
BESIDE = LOOP + """
path, before, after = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
turn(before, 0.1)
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    os.closerange(0, 256)
    loop = select.epoll()
    fd = os.open(path + ".new", os.O_CREAT | os.O_WRONLY)
    os.write(fd, str(os.getpid()).encode())
    os.close(fd)
    os.rename(path + ".new", path)
    turn(6000, 0.01)
    os._exit(0)
os.wait()
while not os.path.exists(path): turn(1)
turn(after, 0.1)
sys.exit(4)
"""


def read_pid(path):
    until(lambda: os.path.exists(path))
    with open(path) as f:
        return int(f.read())


def test_beside(tmp):
    """As rabbitmq and epmd: what the command lived beside goes on; run ends with the command."""
    place = fresh(tmp, "beside")
    began = time.monotonic()
    p = run("-o", place, "--", PYTHON, script(place, "beside.py", BESIDE), place + "/pid", "0",
            "30", cwd=place)
    took = time.monotonic() - began
    pid = read_pid(place + "/pid")
    check("run_ends_with_the_command", p.returncode == 4 and
          f"still running and recorded: python3 ({pid})" in p.stderr.replace("python3.11", "python3"),
          (took, said(p)))
    check("what_it_lived_beside_goes_on", alive(pid))
    mine = [f for f in traces(place) if f"-{pid}-" in f]
    check("its_window_so_far_is_saved", len(mine) == 1 and count(mine[0], "park") > 20,
          traces(place))
    left = [b for b in boxes() if os.path.basename(b).startswith(f"{pid}-")]
    check("its_box_stays", len(left) == 1, boxes())
    before = count(left[0], "park")
    check("it_records_on", until(lambda: count(left[0], "park") > before))
    end(pid)
    subprocess.run([BIN, "recover", "-o", place], capture_output=True, env=environment())
    p = start("--wait-children", "-o", place, "--", PYTHON, place + "/beside.py", place + "/pid2",
              "0", "30", cwd=place)
    pid = read_pid(place + "/pid2")
    waits = any("the command has ended" in line for line in iter(p.stderr.readline, ""))
    end(pid)
    status, _, err = finish(p)
    check("wait_children_waits", waits and status == 4, (status, err))


def test_last_worker(tmp):
    """A server that ends just after it started a worker was no launcher."""
    place = fresh(tmp, "worker")
    p = run("-o", place, "--", PYTHON, script(place, "beside.py", BESIDE), place + "/pid", "30", "0",
            cwd=place)
    pid = read_pid(place + "/pid")
    check("run_ends_with_a_server_that_left_a_young_worker", p.returncode == 4 and alive(pid) and
          "Waiting for their end" not in p.stderr and "still running" in p.stderr, said(p))
    end(pid)
    subprocess.run([BIN, "recover", "-o", place], capture_output=True, env=environment())


def test_signals(tmp):
    """A daemon that was launched is followed; no signal to run reaches it."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        place = fresh(tmp, number.name)
        p = start("-o", place, "--", PYTHON, script(place, "beside.py", BESIDE), place + "/pid",
                  "0", "0", cwd=place)
        pid = read_pid(place + "/pid")
        followed = any("the command has ended" in line for line in iter(p.stderr.readline, ""))
        os.kill(p.pid, signal.SIGUSR1)
        os.kill(p.pid, number)
        status, _, err = finish(p)
        check(f"{number.name}_ends_the_waiting", followed and status == 4 and
              "still running and recorded" in err, (status, err))
        check(f"{number.name}_does_not_reach_the_daemon", alive(pid))
        check(f"{number.name}_saves_what_it_has",
              any(f"-{pid}-" in f for f in traces(place)), traces(place))
        end(pid)
        subprocess.run([BIN, "recover", "-o", place], capture_output=True, env=environment())


def test_old_helper(tmp):
    """As squid and its pinger: a helper that never recorded delays nobody."""
    p = start("--", "sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!; sleep 2.5; date +%s.%N", cwd=tmp)
    status, out, _ = finish(p)
    ended = time.time()
    pid, last = out.split()
    check("helpers_that_are_old_delay_nobody", status == 0 and alive(int(pid)) and
          ended - float(last) < 1.5, ended - float(last))
    end(int(pid))


def main():
    with folder() as tmp:
        test_reasons(tmp)
        test_segments(tmp)
        test_shell(tmp)
        if watched():
            test_agent(tmp)
        test_rights(tmp)
        test_idle(tmp)
        test_beside(tmp)
        test_last_worker(tmp)
        test_signals(tmp)
        test_old_helper(tmp)
    return 1 if librun.failures else 0


if __name__ == "__main__":
    sys.exit(main())
