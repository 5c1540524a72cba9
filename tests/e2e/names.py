#!/usr/bin/env python3
"""Names in what is recorded: no frames of tacho's own, functions of scripts, and loops that can be
told apart."""
import glob
import gzip
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys

import libexport
import librun
from libexport import tacho
from librun import check, is_tachos, skip

CASES = os.path.join(os.environ.get("TACHO_BUILD", ""), "tests/cases")


def record(folder, name, *command, options=(), env=None, cwd=None):
    """The trace of a command."""
    path = os.path.join(folder, name + ".tacho")
    p = librun.run(*options, "-o", path, "--", *command, env=env, cwd=cwd)
    if not os.path.exists(path):
        raise RuntimeError("tacho run " + name + ": " + librun.said(p))
    return path


def frames_of(value):
    """All frames in an event of `tacho cat --json`."""
    if isinstance(value, dict):
        if "module" in value and "offset" in value:
            yield value
        for inner in value.values():
            yield from frames_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from frames_of(inner)


# Frames of tacho --------------------------------------------------------------------------


def own_frames(folder, case):
    """`cat` shows the frames of the hooks; what shows stacks to people does not."""
    program = os.path.join(CASES, "case-" + case)
    if not os.path.exists(program):
        skip(case, "what it needs is not installed")
        return
    path = record(folder, case, program)
    raw = [f for e in librun.events(path) for f in frames_of(e)]
    names = {f.get("function") for f in raw if is_tachos(f)} - \
            {f.get("function") for f in raw if not is_tachos(f)}
    if case.startswith("event"):
        check(case + "_calls_through_tacho", any(n and n.startswith("thunk") for n in names), names)
    shown = b"".join(tacho("flame", path, *o).stdout for o in ((), ("--off-cpu",)))
    stacks = [line.rpartition(" ")[0].split(";") for line in shown.decode().splitlines()]
    bad = [s for s in stacks if any(f in names or f.startswith("[libtacho") for f in s)]
    check(case + "_flame_without_tacho", stacks and not bad, bad[:3] or "no stacks")
    p = tacho("sql", path, "select count(*), sum(module like '%/libtacho%') from frames", "--csv")
    count, own = p.stdout.decode().split()[-1].split(",")
    check(case + "_sql_frames_without_tacho", int(count) > 0 and own == "0", p)
    where = [w for f in json.loads(tacho("report", path, "--json").stdout)["findings"]
             for w in f["where"]]
    check(case + "_report_without_tacho", where and not any(map(is_tachos, where)),
          where)
    for form in ("pprof", "perfetto"):
        data = libexport.export(path, form)
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        check(f"{case}_{form}_without_tacho", b"libtacho-preload" not in data)


# Scripts ----------------------------------------------------------------------------------

ASYNCIO = """import asyncio, time
def slow_handler():
    time.sleep(0.12)
async def main():
    for i in range(5):
        await asyncio.sleep(0.02)
        slow_handler()
asyncio.run(main())
"""
NODE = """function burnCpu(ms) { const e = Date.now() + ms; while (Date.now() < e) {} }
let n = 0;
const t = setInterval(function onTick() { burnCpu(120); if (++n == 5) clearInterval(t) }, 20);
"""


def findings(path):
    return json.loads(tacho("report", path, "--json").stdout)["findings"]


def says_so(name, path, language, how):
    """The report, flame and blame of a trace without names."""
    found = [f for f in findings(path) if f["where"]]
    check(name + "_finding_says_how_to_get_names",
          found and all((f["names"] or "").startswith(f"These frames are those of {language}: ") and
                        how in f["names"] for f in found), found)
    text = " ".join(tacho("report", path).stdout.decode().split())
    check(name + "_report_says_it_in_text", f"names: {found[0]['names']}" in text, text)
    p = tacho("flame", path, "--off-cpu" if language == "Python" else "--weight=ns")
    check(name + "_flame_says_it", how in p.stderr.decode() and p.stdout, p)
    if language == "Python":
        p = tacho("blame", path)
        check(name + "_blame_says_it", how in " ".join(p.stdout.decode().split()), p)


def names_it(name, path, function):
    """The report of a trace with names."""
    found = [f for f in findings(path) if f["where"]]
    check(name + "_function_of_the_script_is_the_place",
          found and function in found[0]["where"][0]["function"] and
          all(f["names"] is None for f in found), found)
    check(name + "_no_map_is_left", not glob.glob(f"/tmp/perf-{librun.info(path)['pid']}.map"))


def version_of(python):
    p = subprocess.run([python, "-c", "import sys, sysconfig; print(*sys.version_info[:2], "
                        "sysconfig.get_config_var('PY_HAVE_PERF_TRAMPOLINE') or 0)"],
                       capture_output=True, text=True)
    return tuple(map(int, p.stdout.split())) if p.returncode == 0 else (0, 0, 0)


def pythons():
    """Programs of Python: one before 3.12 and one that can name functions, as far as they are here."""
    paths = [shutil.which("python3"), "/usr/bin/python3", *map(shutil.which, (
        "python3.12", "python3.13", "python3.14")),
        *glob.glob(os.path.join(os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv")),
                               "versions/3.*/bin/python3.??"))]
    found = {version_of(p): os.path.realpath(p) for p in paths if p}
    old = [p for v, p in found.items() if (3, 0) < v < (3, 12)]
    new = [p for v, p in found.items() if v >= (3, 12) and v[2]]
    return old[:1], new[:1]


def python(folder):
    script = librun.script(folder, "handler.py", ASYNCIO)
    old, new = pythons()
    if old:
        path = record(folder, "python", *old, script, options=("--names",))
        says_so("python_before_3_12", path, "Python", "from Python 3.12 on")
    else:
        skip("python_before_3_12", "there is none here")
    if not new:
        skip("python_names", "there is no Python 3.12 or later that can name functions here")
        return
    says_so("python", record(folder, "python_plain", *new, script), "Python", "tacho run --names")
    path = record(folder, "python_names", *new, script, options=("--names",))
    names_it("python", path, "slow_handler")
    path = os.path.join(folder, "forks.py")
    with open(path, "w", encoding="ascii") as f:
        f.write("import os\nprint(os.getpid(), flush=True)\nif not os.fork():\n    " +
                ASYNCIO.replace("\n", "\n    ") + "\nelse:\n    os.wait()\n")
    p = librun.run("--names", "-o", os.path.join(folder, "forked.tacho"), "--", *new, path)
    names_it("forked_python", os.path.join(folder, "forked.tacho"), "slow_handler")
    check("no_map_of_the_command_is_left", p.stdout.strip().isdigit() and
          not os.path.exists(f"/tmp/perf-{p.stdout.strip()}.map"), librun.said(p))


def node(folder):
    program = shutil.which("node")
    if not program:
        skip("node_names", "there is no node here")
        return
    script = librun.script(folder, "handler.js", NODE)
    cwd = os.path.join(folder, "node")
    os.mkdir(cwd)
    plain = record(folder, "node_plain", program, script, cwd=cwd)
    says_so("node", plain, "node", "tacho run --names")
    path = record(folder, "node_names", program, script, options=("--names",), cwd=cwd)
    names_it("node", path, "burnCpu")
    left = os.listdir(cwd)
    check("node_leaves_no_files_behind", not left, left)
    callers = {w["function"] for f in findings(path) for w in f["where"]}
    check("node_interpreted_functions_have_names", any("onTick" in c for c in callers), callers)


def environment(folder):
    """What --names sets; without it, the environment is the user's."""
    def told(*options, **env):
        p = librun.run("-q", *options, "-o", folder + "/", "--", "env", env=env)
        lines = dict(line.split("=", 1) for line in p.stdout.splitlines() if "=" in line)
        return lines.get("NODE_OPTIONS"), lines.get("PYTHONPERFSUPPORT")
    node_names = "--perf-basic-prof-only-functions --interpreted-frames-native-stack"
    clean = {"NODE_OPTIONS": None, "PYTHONPERFSUPPORT": None}
    check("nothing_is_set_without_names", told(**clean) == (None, None))
    check("names_are_set", told("--names", **clean) == (node_names, "1"))
    got = told("--names", NODE_OPTIONS="--no-warnings")
    check("node_options_of_the_user_stay", got == ("--no-warnings " + node_names, "1"), got)
    p = librun.run("--names", "-o", folder + "/", "--", "env", env={"NODE_OPTIONS": "x" * 5000})
    check("too_long_options_stay_as_they_are", p.returncode == 0 and "NODE_OPTIONS" in p.stderr and
          "NODE_OPTIONS=" + "x" * 5000 + "\n" in p.stdout and "PYTHONPERF" not in p.stdout,
          librun.said(p))
    p = librun.run("--names", "--no-symbols", "--", "env")
    check("names_without_symbols_are_refused", p.returncode == 2 and "contradict" in p.stderr,
          librun.said(p))


def doctor():
    for program, wanted in (*((p, "warning") for p in pythons()[0]),
                            *((p, "ok") for p in pythons()[1]),
                            *((p, "ok") for p in (shutil.which("node"),) if p)):
        p = tacho("doctor", "--json", "--", program)
        checks = {c["name"]: c for c in json.loads(p.stdout)["program"]}
        got = checks.get("script-names", {})
        check(f"doctor_knows_{os.path.basename(program)}", got.get("state") == wanted and
              "--names" in json.dumps(got), got)


# Loops ------------------------------------------------------------------------------------


def record_memcached(folder, name, options, address):
    """Its trace after connections to the address, two for each worker."""
    path = os.path.join(folder, name + ".tacho")
    p = librun.start("-o", path, "--", "memcached", "-u", "root", "-t", "3", *options)
    family = socket.AF_UNIX if isinstance(address, str) else \
        socket.AF_INET6 if ":" in address[0] else socket.AF_INET

    def answers():
        with socket.socket(family) as s:
            try:
                s.connect(address)
            except OSError:
                return False
            s.sendall(b"version\r\n")
            return s.recv(100)
    try:
        if librun.until(answers):
            for _ in range(6):
                answers()
    finally:
        pid = librun.child_of(p.pid)
        os.kill(pid, signal.SIGINT)
        librun.finish(p)
    return path


def loops(folder):
    if not shutil.which("memcached") or os.geteuid() != 0:
        skip("loops_have_names", "there is no memcached here" if os.geteuid() == 0 else
             "memcached changes its user unless it is root")
        return
    unix = os.path.join(folder, "memcached.sock")
    port = librun.free_port()
    for name, options, address, wanted in (
            ("ipv4", ("-l", "127.0.0.1", "-p", str(port)), ("127.0.0.1", port), f"127.0.0.1:{port}"),
            ("ipv6", ("-l", "::1", "-p", str(port)), ("::1", port), f"[::1]:{port}"),
            ("unix", ("-s", unix), unix, unix)):
        if name == "ipv6" and not os.path.exists("/proc/net/if_inet6"):
            skip("loops_of_ipv6", "there is no IPv6 here")
            continue
        path = record_memcached(folder, name, options, address)
        rows = json.loads(tacho("stats", path, "--json", "--top", "20").stdout)["loops"]
        names = [r["distinct_name"] for r in rows]
        check(f"loops_of_{name}_keep_their_name", len(rows) == 4 and
              all(r["name"] == "libevent loop" for r in rows), rows)
        check(f"loops_of_{name}_can_be_told_apart", len(set(names)) == len(names), names)
        check(f"the_loop_of_{name}_that_listens",
              [n for n in names if "listens" in n] ==
              ["libevent loop, thread memcached, listens on " + wanted], names)
        check(f"loops_of_{name}_have_their_thread", sum(bool(
            re.fullmatch(r"libevent loop, thread mc-worker \d+", n)) for n in names) == 3, names)
        p = tacho("sql", path, "select distinct_name from loops", "--json")
        told = [json.loads(line)["distinct_name"] for line in p.stdout.splitlines()]
        check(f"sql_tells_loops_of_{name}_apart", sorted(told) == sorted(names), (told, names))
        text = " ".join(tacho("stats", path, "--top", "20").stdout.decode().split())
        check(f"stats_tell_loops_of_{name}_apart", all(n in text for n in names), (names, text))


def main():
    with librun.folder() as folder:
        loops(folder)
        environment(folder)
        doctor()
        python(folder)
        node(folder)
        for case in ("uv_long_callback", "event_long_callback", "epoll_printf"):
            own_frames(folder, case)
    return 1 if librun.failures else 0


if __name__ == "__main__":
    sys.exit(main())
