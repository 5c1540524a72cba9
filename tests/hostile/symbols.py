#!/usr/bin/env python3
"""Names are looked up in files that a user chooses: with that user's rights, and not for ever. Whatever
is in them, the trace is written, and what is in other files has its names."""
import http.server
import os
import re
import shutil
import struct
import subprocess
import threading
import zlib

from libhostile import (BIN, MALLORY, VICTIM, attack, box_of, check, child_of, crash_as, end_agent,
                        environment, files_of, fresh, main, most_memory, programs, record_as, said,
                        skip, start_agent, tacho, until, usage)
from libevil import build, exploding, own

MOST_KIB = 3 << 19  # who looks names up may have 1 GiB


def recorded(tmp, program, named="made_here"):
    """The box of a process of Mallory's that has run it and stands still; and the process."""
    done = os.path.join(os.path.dirname(program), "done")
    p = record_as(MALLORY, tmp, named, done, program=program)
    box = box_of(p)
    until(lambda: os.path.exists(done))
    return box, p


def dumped(tmp, name, box, *options, **more):
    """The names that the trace of the box has; None: there is no trace."""
    out = os.path.join(tmp, f"{name}.tacho")
    done = tacho("dump", box, "-o", out, "--force", *options, **more)
    if done.returncode:
        return None, said(done)
    functions = tacho("sql", out, "SELECT DISTINCT function FROM frames")
    return functions.stdout.split("\n"), said(done)


def forget(p):
    p.kill()
    p.wait()
    try:
        os.unlink(f"/tmp/perf-{p.pid}.map")
    except FileNotFoundError:
        pass


def test_names(tmp):
    """Names that become long when they are demangled, in the file and in the map: more than the memory
    that there is for it, and more than the time."""
    box, p = recorded(tmp, build(own(tmp, "plain")))
    names, why = dumped(tmp, "plain", box)
    check("names of a file and of a map are found", names and "burn_here" in names and
          "made_here" in names, (names, why))
    forget(p)
    check("names: the evil one is short", len(exploding()) <= 747, len(exploding()))
    for where, of_file, of_map in (("file", exploding(26), "made_here"),
                                   ("map", "burn_here", exploding())):
        box, p = recorded(tmp, build(own(tmp, f"names-{where}"), of_file), of_map)
        names, why = dumped(tmp, f"names-{where}", box)
        check(f"names: one that explodes, in a {where}, costs no more than itself",
              names and "main" in names and max(map(len, names)) <= 4096,
              (why, [n[:80] for n in names or []]))
        check(f"names: one that explodes, in a {where}, is given up", most_memory() < MOST_KIB,
              most_memory())
        forget(p)


def test_debug_link(tmp):
    """The file with the debug information is a pipe to which nobody writes, or a device. Without a
    build-id, whether it is the right one is known when all of it was read."""
    for what in ("pipe", "device"):
        folder = own(tmp, f"link-{what}")
        program = build(folder, "burn_here", "-Wl,--build-id=none")
        debug = os.path.join(folder, "evil.debug")
        subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
        subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", program],
                       check=True)
        os.unlink(debug)
        if what == "pipe":
            os.mkfifo(debug)
            os.chown(debug, MALLORY, MALLORY)
        else:
            os.symlink("/dev/zero", debug)
        box, p = recorded(tmp, program)
        names, why = dumped(tmp, f"link-{what}", box)
        check(f"debug file that is a {what}: the trace is written, and nothing was given up",
              names and "made_here" in names and "burn_here" not in names and
              "looked names up" not in why, (names, why))
        forget(p)


def sections(program):
    """Where those with debug information are."""
    text = subprocess.run(["readelf", "-SW", program], capture_output=True, text=True,
                          check=True).stdout
    return {m[1]: (int(m[2], 16), int(m[3], 16)) for m in
            re.finditer(r"(\.debug_\w+) +\w+ +\w+ (\w+) (\w+)", text)}


def packed_zeros(size):
    """A compressed section, a thousandth of its size."""
    piece = zlib.compressobj(9, zlib.DEFLATED, -15)
    some = piece.compress(bytes(64 << 20)) + piece.flush(zlib.Z_FULL_FLUSH)
    return struct.pack("<IIQQ", 1, 0, size, 1) + b"\x78\x01" + some * (size // (64 << 20)) + \
        b"\x03\x00" + struct.pack(">I", size % 65521 << 16 | 1)


def pack(program, name, data):
    """Puts compressed data in place of a section's."""
    with open(program + ".packed", "wb") as f:
        f.write(data)
    subprocess.run(["objcopy", f"--update-section={name}={f.name}", program], check=True)
    os.unlink(f.name)
    at = next(at for at, (offset, _) in headers(program).items()
              if offset == sections(program)[name][0])
    with open(program, "r+b") as f:
        f.seek(at + 8)
        f.write(struct.pack("<Q", 1 << 11))  # SHF_COMPRESSED


def headers(program):
    """Where the headers of its sections are: (offset, size) of each."""
    with open(program, "rb") as f:
        head = f.read(64)
        begin, (size, count) = struct.unpack_from("<Q", head, 40)[0], struct.unpack_from("<HH", head, 58)
        f.seek(begin)
        table = f.read(size * count)
    return {begin + n * size: struct.unpack_from("<QQ", table, n * size + 24) for n in range(count)}


def test_dwarf(tmp):
    """Debug information that is 2 GiB when unpacked; that says it is 64 GiB; and such as is noise."""
    for what in ("bomb", "size", "noise"):
        program = build(own(tmp, f"dwarf-{what}"), "burn_here", *(["-gz=zlib"] if what == "size" else []))
        if what == "bomb":
            pack(program, ".debug_info", packed_zeros(2 << 30))
        with open(program, "r+b") as f:
            for name, (at, size) in sections(program).items():
                if what == "size":
                    f.seek(at + 8)
                    f.write(struct.pack("<Q", 1 << 36))
                elif what == "noise" and name in (".debug_abbrev", ".debug_info", ".debug_line"):
                    f.seek(at + 16)
                    f.write(os.urandom(max(0, size - 16)))
        box, p = recorded(tmp, program)
        names, why = dumped(tmp, f"dwarf-{what}", box)
        check(f"debug information of a wrong {what}: the trace is written",
              names and "made_here" in names and most_memory() < MOST_KIB,
              (names, why, most_memory()))
        forget(p)


def test_cut(tmp):
    """The file is cut short and made whole again while names are looked up in it."""
    program = build(own(tmp, "cut"))
    box, p = recorded(tmp, program)
    forget(p)
    with open(program, "rb") as f:
        whole = f.read()
    end = threading.Event()

    def cut():
        while not end.is_set():
            os.truncate(program, len(whole) // 3)
            with open(program, "r+b") as f:
                f.write(whole)
    thread = threading.Thread(target=cut)
    thread.start()
    try:
        for turn in range(10):
            names, why = dumped(tmp, "cut", box)
            check(f"file that is cut, {turn}: the trace is written", names is not None, why)
    finally:
        end.set()
        thread.join()
    left = [name for name in os.listdir(tmp) if name.endswith(".tmp")]
    check("file that is cut: nothing is left half written", not left, left)


def test_rights(tmp):
    """The box names a file that only root can read, in place of the one that ran; and says to be
    root's from time to time."""
    place = fresh(tmp, "aaaa")
    other = fresh(tmp, "bbbb")
    os.chmod(place, 0o755)
    program = shutil.copy(programs(tmp)[0], os.path.join(place, "program"))
    shutil.copy(program, os.path.join(other, "program"))
    os.chmod(other, 0o700)
    theirs = own(tmp, "theirs")
    p = record_as(MALLORY, tmp, "turns:20", "poll:500", f"touch:{theirs}/done", "park:60000",
                  program=program)
    box = box_of(p)
    until(lambda: os.path.exists(f"{theirs}/done"))
    p.kill()
    p.wait()
    for name, readable in (("only root can read", False), ("all can read", True)):
        data = open(box, "rb").read().replace(b"/aaaa/program", b"/bbbb/program")
        copy = box.replace("-0.box", f"-{5 + readable}.box")
        with open(copy, "wb") as f:
            f.write(data)
        os.chown(copy, MALLORY, MALLORY)
        if not readable:
            liar = attack(MALLORY, "user", copy, 0)
            leaked = [n for n in range(20) if "do_step" in (dumped(tmp, "lies", copy)[0] or [])]
            check("file that only root can read, and a box that says now and then to be root's: no names",
                  not leaked and liar.poll() is None, leaked)
            liar.kill()
            liar.wait()
            with open(copy, "wb") as f:
                f.write(data)
        else:
            os.chmod(other, 0o755)
        names, why = dumped(tmp, f"rights-{readable}", copy)
        check(f"file that {name} {'gives' if readable else 'gives no'} names",
              names and ("do_step" in names) == readable, (names, why))


class Evil(http.server.BaseHTTPRequestHandler):
    """A debuginfod server: nonsense, another file, no end, or nothing until it is told to."""
    answer = other = ""
    asked = 0
    go_on = threading.Event()

    def do_GET(self):
        Evil.asked += 1
        self.send_response(200)
        self.end_headers()
        try:
            if Evil.answer == "nothing":
                Evil.go_on.wait()
            elif Evil.answer == "nonsense":
                self.wfile.write(os.urandom(100000))
            elif Evil.answer == "other":
                with open(Evil.other, "rb") as f:
                    shutil.copyfileobj(f, self.wfile)
            while Evil.answer == "endless":
                self.wfile.write(bytes(1 << 16))
        except OSError:
            pass

    def log_message(self, *_):
        pass


def serve_evil():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Evil)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def asks(server, cache):
    """The environment of who asks it."""
    return environment(DEBUGINFOD_URLS=f"http://127.0.0.1:{server.server_address[1]}",
                       DEBUGINFOD_TIMEOUT="2", DEBUGINFOD_CACHE_PATH=cache)


def test_debuginfod(tmp):
    """What a debuginfod server sends."""
    server = serve_evil()
    program = build(own(tmp, "fetched"), "burn_here", "-s")
    Evil.other = build(own(tmp, "other"), "lied_here")
    box, p = recorded(tmp, program)
    for answer in ("nonsense", "other", "endless", "other file"):
        Evil.answer, Evil.asked = answer.split()[0], 0
        if answer == "other file":  # not only its debug information is asked for
            os.unlink(program)
        cache = own(tmp, f"cache-{answer.replace(' ', '-')}")
        names, why = dumped(tmp, f"fetched-{answer}", box, "--debuginfod",
                            env=asks(server, cache))
        if names is not None and not Evil.asked and "libdebuginfod" in why:
            skip("debuginfod", "the library is not there")
            break
        check(f"debuginfod, {answer}: the trace is written", names and "made_here" in names and
              not {"burn_here", "lied_here"} & set(names) and Evil.asked, (Evil.asked, names, why))
        kept = sum(os.path.getsize(os.path.join(folder, f)) for folder, _, files in os.walk(cache)
                   for f in files)
        check(f"debuginfod, {answer}: no large file stays", kept < 64 << 20, kept)
    forget(p)
    server.shutdown()
    server.server_close()


def lines_of(pid, name):
    """A file of /proc as {what stands first: the words behind it}."""
    with open(f"/proc/{pid}/{name}") as f:
        return {line[:25].split(":")[0].strip(): line[25:].split() if name == "limits" else
                line.partition(":")[2].split() for line in f}


def test_child(tmp):
    """Who reads the files of a user, while it waits for a server: rights, limits and files."""
    server = serve_evil()
    box, p = recorded(tmp, build(own(tmp, "held"), "burn_here", "-s"))
    Evil.answer, Evil.asked = "nothing", 0
    Evil.go_on.clear()
    out = os.path.join(tmp, "held.tacho")
    dump = subprocess.Popen([BIN, "dump", box, "-o", out, "--debuginfod"], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=dict(asks(server, own(tmp, "cache-held")), DEBUGINFOD_TIMEOUT="600"))
    until(lambda: Evil.asked or dump.poll() is not None)
    if not Evil.asked:
        skip("child", f"no server was asked: {dump.communicate()}")
    else:
        child = child_of(dump.pid)
        status, limits = lines_of(child, "status"), lines_of(child, "limits")
        user = [str(MALLORY)]
        check("child: it is the user's alone", status["Uid"] == status["Gid"] == user * 4 and
              status["Groups"] == user and int(status["CapEff"][0], 16) == 0, status)
        check("child: it gains no privileges", status["NoNewPrivs"] == ["1"], status["NoNewPrivs"])
        for name, most in (("Max cpu time", 30), ("Max file size", 4 << 30), ("Max core file size", 0),
                           ("Max data size", 2 << 30)):
            is_most = limits[name][1]
            check(f"child: {name}", is_most.isdigit() and int(is_most) <= most, limits[name])
        has = [name for name in files_of(child) if name.endswith((".box", ".tmp", ".tacho"))]
        check("child: it has no files of its parent's", not has and files_of(child), has)
        check("child: its user cannot look into it", os.stat(f"/proc/{child}/mem").st_uid == 0,
              os.stat(f"/proc/{child}/mem").st_uid)
        Evil.go_on.set()
        dump.communicate()
        check("child: the trace is written", dump.returncode == 0, dump.returncode)
    forget(p)
    server.shutdown()
    server.server_close()


def test_map(tmp):
    """Names of code that is in no file, in a map that another user has put there."""
    box, p = recorded(tmp, build(own(tmp, "map")))
    path = f"/tmp/perf-{p.pid}.map"
    names, why = dumped(tmp, "map-own", box)
    check("map: the user's own is read", names and "made_here" in names, (names, why))
    with open(path) as f:
        text = f.read().replace("made_here", "forged_here")
    os.unlink(path)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    os.write(fd, text.encode())
    os.fchown(fd, VICTIM, VICTIM)
    os.close(fd)
    names, why = dumped(tmp, "map-other", box)
    check("map: another's is not", names and "burn_here" in names and "forged_here" not in names,
          (names, why))
    forget(p)


def test_agent(tmp):
    """All of it under root's agent, while another's program crashes."""
    place = fresh(tmp, "agent")
    agent = start_agent("-o", place)
    program = build(own(tmp, "hanging"), exploding())
    for turn in range(2):
        os.path.exists(f"{tmp}/hanging/done") and os.unlink(f"{tmp}/hanging/done")
        box, p = recorded(tmp, program, exploding())
        until(lambda: box in files_of(agent.pid))
        forget(p)
        check(f"agent {turn}: another's window is saved", crash_as(VICTIM, tmp, agent, place),
              usage(agent.pid))
    status = end_agent(agent)
    check("agent: it ends when it is told to", status[0] == 0, status)


if __name__ == "__main__":
    if not shutil.which("gcc") or not shutil.which("objcopy"):
        skip("symbols", "gcc and objcopy are not there")
        main(test_rights)
    main(test_rights, test_names, test_debug_link, test_dwarf, test_cut, test_debuginfod, test_child,
         test_map, test_agent)
