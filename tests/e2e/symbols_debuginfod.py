#!/usr/bin/env python3
"""Debug files from a debuginfod server: fetched by build-id when somebody asks for it, and not a
connection without."""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

from libcheck import BIN, check, failures, said, skip

PRELOAD = os.environ["TACHO_BUILD"] + "/src/hooks/libtacho-preload.so"

SOURCE = r"""
#include <sys/epoll.h>
#include <time.h>
static double cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
volatile unsigned sink;
static __attribute__((noinline)) void burn_in_secret(double end)
{
	while (cpu() < end)
		for (int i = 0; i < 100000; i++)
			sink += (unsigned)i;
}
int call(void (*function)(double), double end);
int main(void)
{
	struct epoll_event event;
	int loop = epoll_create1(0);

	epoll_wait(loop, &event, 1, 1);
	call(burn_in_secret, cpu() + 0.4);
	epoll_wait(loop, &event, 1, 1);
	return 0;
}
"""


LIBRARY = """
int call(void (*function)(double), double end)
{
	function(end);
	return 1;
}
"""


class Listener:
    """A server that notes what is wanted. It hangs up, or never answers."""

    def __init__(self, hang_up):
        self.hang_up = hang_up
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.socket.getsockname()[1]
        self.connections = []
        self.wanted = set()  # paths
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                c = self.socket.accept()[0]
                self.connections.append(c)
                c.settimeout(10)
                request = c.recv(4096).split()
                self.wanted.update(request[1:2])
                if self.hang_up:
                    c.close()
            except TimeoutError:
                pass
            except OSError:
                return

    def close(self):
        self.socket.close()
        for c in self.connections:
            c.close()


class Server:
    """A real debuginfod of one folder."""

    def __init__(self, folder, files):
        with socket.create_server(("127.0.0.1", 0)) as s:
            self.port = s.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = open(f"{folder}/debuginfod.log", "wb")
        env = {k: v for k, v in os.environ.items() if not k.startswith("DEBUGINFOD")}
        self.process = subprocess.Popen(
            ["debuginfod", "-F", "-d", f"{folder}/index.sqlite", "-p", str(self.port), "-t", "1",
             files], env=env, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def has(self, build_id, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.poll() is None:
            try:
                url = f"{self.url}/buildid/{build_id}/debuginfo"
                return urllib.request.urlopen(url, timeout=10).status == 200
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
        return False

    def end(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()


def build(folder):
    """(program without symbols, its build-id); the debug file is in a folder of its own."""
    source, whole, program = f"{folder}/secret.c", f"{folder}/secret.whole", f"{folder}/secret"
    pathlib.Path(source).write_text(SOURCE)
    os.mkdir(f"{folder}/served")
    pathlib.Path(f"{folder}/call.c").write_text(LIBRARY)
    library = f"{folder}/libcall.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-s", "-Wl,--build-id", "-o", library,
                    f"{folder}/call.c"], check=True)
    subprocess.run(["gcc", "-O1", "-g", "-Wl,--build-id", "-o", whole, source, library], check=True)
    subprocess.run(["objcopy", "--only-keep-debug", whole, f"{folder}/served/secret.debug"],
                   check=True)
    subprocess.run(["strip", "-o", program, whole], check=True)
    notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True,
                           check=True).stdout
    build_id = next(line.split()[-1] for line in notes.splitlines() if "Build ID" in line)
    os.unlink(whole)
    os.unlink(source)
    return program, build_id


def record(folder, program):
    boxes = tempfile.mkdtemp(dir=folder)
    env = dict(os.environ, LD_PRELOAD=PRELOAD, TACHO_BOX_DIR=boxes, TACHO_KEEP_BOX="1")
    subprocess.run([program], env=env, capture_output=True, timeout=60)
    return str(next(pathlib.Path(boxes).glob("*.box")))


def run(folder, arguments, **env):
    """tacho with a cache of its own, so that nothing was fetched before."""
    cache = tempfile.mkdtemp(dir=folder)
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith("DEBUGINFOD") and k != "TACHO_DEBUGINFOD"}
    return subprocess.run([BIN, *arguments], capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL,
                          env=dict(clean, DEBUGINFOD_CACHE_PATH=cache, **env))


def burning(path):
    """The innermost frames of samples that name the function."""
    p = subprocess.run([BIN, "cat", "--json", "--type", "sample", path], capture_output=True,
                       text=True, timeout=60)
    frames = [json.loads(line)["at"]["frames"][0] for line in p.stdout.splitlines()]
    return [f for f in frames if f.get("function") == "burn_in_secret"]


def unasked(folder, box):
    """The variable alone is not a request: it is set on many machines."""
    listener = Listener(hang_up=True)
    try:
        for name, arguments in (("dump", ["dump", box, "-o", f"{folder}/unasked.tacho"]),
                                ("recover", ["recover", box, "--keep", "-o", folder])):
            p = run(folder, arguments, DEBUGINFOD_URLS=listener.url)
            check(f"{name} without --debuginfod writes the trace", p.returncode == 0, said(p))
            check(f"{name} without --debuginfod makes no connection", not listener.connections,
                  f"{len(listener.connections)} connections")
        p = run(folder, ["dump", box, "-o", f"{folder}/no.tacho"], DEBUGINFOD_URLS=listener.url,
                TACHO_DEBUGINFOD="0")
        check("TACHO_DEBUGINFOD=0 makes none either", p.returncode == 0 and
              not listener.connections, said(p))
        check("and the function has no name", not burning(f"{folder}/unasked.tacho"), "it has one")
    finally:
        listener.close()


def silent_server(folder, box):
    listener = Listener(hang_up=False)
    out = f"{folder}/silent.tacho"
    try:
        p = run(folder, ["dump", box, "-o", out, "--debuginfod"], DEBUGINFOD_URLS=listener.url,
                DEBUGINFOD_TIMEOUT="1")
        check("a server that never answers is given up", p.returncode == 0 and
              listener.connections and os.path.exists(out), said(p))
        check("and is not asked for the next file", len(listener.wanted) == 1, listener.wanted)
    finally:
        listener.close()


def bad_input(folder, box):
    out = f"{folder}/nowhere.tacho"
    for name, env in (("without servers", {}), ("with an empty list of servers",
                                                {"DEBUGINFOD_URLS": ""})):
        p = run(folder, ["dump", box, "-o", out, "--force", "--debuginfod"], **env)
        check(f"{name}: one sentence, and the trace all the same", p.returncode == 0 and
              p.stderr.count("\n") == 1 and "DEBUGINFOD_URLS" in p.stderr and
              os.path.exists(out), said(p))
    p = run(folder, ["dump", box, "--debuginfod", "--no-symbols"])
    check("--debuginfod and --no-symbols contradict each other",
          p.returncode == 2 and "contradict" in p.stderr, said(p))


def asked(folder, box, program, url):
    for name, arguments, env in (
            ("--debuginfod", ["--debuginfod"], {}), ("TACHO_DEBUGINFOD=1", [], {"TACHO_DEBUGINFOD": "1"})):
        out = f"{folder}/asked{len(arguments)}.tacho"
        p = run(folder, ["dump", box, "-o", out, *arguments], DEBUGINFOD_URLS=url, **env)
        found = burning(out) if p.returncode == 0 else []
        check(f"{name}: the function has its name, from the server", found, said(p))
        check(f"{name}: and its file and line",
              found and all(str(f["file"]).endswith("secret.c") and f["line"] for f in found),
              found[:2])
    shutil.move(program, program + ".elsewhere")
    out = f"{folder}/gone.tacho"
    p = run(folder, ["dump", box, "-o", out, "--debuginfod"], DEBUGINFOD_URLS=url)
    shutil.move(program + ".elsewhere", program)
    check("also when the program itself is gone from the disk",
          p.returncode == 0 and burning(out), said(p))


def main():
    folder = tempfile.mkdtemp(prefix="tacho-test-", dir="/dev/shm")  # boxes lie there, too
    server = None
    try:
        program, build_id = build(folder)
        box = record(folder, program)
        unasked(folder, box)
        bad_input(folder, box)
        if not any(os.path.exists(d + "/libdebuginfod.so.1") for d in
                   ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64")):
            skip("debug files are fetched", "libdebuginfod.so.1 is not installed")
            return 1 if failures else 0
        silent_server(folder, box)
        if not shutil.which("debuginfod"):
            skip("debug files are fetched from a server", "debuginfod is not installed")
            return 1 if failures else 0
        server = Server(folder, f"{folder}/served")
        if not server.has(build_id):
            check("debuginfod serves the debug file", False,
                  pathlib.Path(f"{folder}/debuginfod.log").read_text()[-500:])
        else:
            asked(folder, box, program, server.url)
    finally:
        if server:
            server.end()
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
