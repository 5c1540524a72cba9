#!/usr/bin/env python3
"""libevent's own tests have the same results under the hooks as without.

The source package of the installed libevent is fetched with apt into a folder of this
test's own; its tests are linked with the installed libraries and run both ways. All of
them in a soak, else a part that takes some seconds.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from libevent_hooks import PRELOAD, box_folder, check, finish, run, skip  # noqa: E402

SOAK = os.environ.get("TACHO_SOAK") == "1"
PART = ["main/..", "signal/..", "evtag/..", "finalize/..", "et/..", "bufferevent/..",
        "listener/..", "rpc/..", "thread/..", "dns/server", "dns/search", "dns/search_cancel",
        "dns/inflight", "dns/getaddrinfo_async", "dns/leak_shutdown", "dns/leak_cancel",
        "http/base", "http/basic", "http/simple", "http/cancel", "http/chunk_out", "http/stream_out",
        "http/stream_in", "http/on_complete", "http/close_detection", "http/connection_async",
        "http/persist_connection", "http/request_own", "http/https_basic",
        "ssl/bufferevent_socketpair", "ssl/bufferevent_filter", "ssl/bufferevent_wm_filter_defer"]
FILES = ["regress", "regress.gen", "regress_buffer", "regress_bufferevent", "regress_dns",
         "regress_et", "regress_finalize", "regress_http", "regress_listener", "regress_main",
         "regress_minheap", "regress_rpc", "regress_ssl", "regress_testutils", "regress_thread",
         "regress_util", "regress_zlib", "tinytest"]
LIBRARIES = ["-levent_core", "-levent_extra", "-levent_openssl", "-levent_pthreads", "-lssl",
             "-lcrypto", "-lz", "-lpthread"]
LIMIT = 900


class Unavailable(Exception):
    pass


def must(argv, **more):
    p = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                       timeout=300, **more)
    if p.returncode:
        last = (p.stderr or p.stdout).strip().splitlines()[-1:] or ["no message"]
        raise Unavailable(f"{os.path.basename(argv[0])} failed: {last[0]}")
    return p.stdout


def fetch(folder):
    """The unpacked source of the libevent that is installed."""
    for needed in ("apt-get", "dpkg-query", "dpkg-source", "gcc"):
        if not shutil.which(needed):
            raise Unavailable(f"there is no {needed}")
    version = must(["dpkg-query", "-W", "-f=${source:Version}", "libevent-dev"])
    os.makedirs(f"{folder}/lists/partial")
    os.makedirs(f"{folder}/archives/partial")
    key = "/usr/share/keyrings/debian-archive-keyring.gpg"
    with open(f"{folder}/sources.list", "w", encoding="ascii") as f:
        for where, suite in (("debian", "bookworm"), ("debian", "bookworm-updates"),
                             ("debian-security", "bookworm-security")):
            f.write(f"deb-src [signed-by={key}] http://deb.debian.org/{where} {suite} main\n")
    apt = ["apt-get", "-qq", "-o", f"Dir::Etc::SourceList={folder}/sources.list",
           "-o", "Dir::Etc::SourceParts=-", "-o", f"Dir::State::Lists={folder}/lists",
           "-o", f"Dir::Cache={folder}", "-o", "Debug::NoLocking=1",
           "-o", "APT::Sandbox::User=" + must(["id", "-un"]).strip()]
    must(apt + ["update"])
    must(apt + ["source", f"libevent={version}"], cwd=folder)
    found = [d for d in os.listdir(folder) if d.startswith("libevent-") and
             os.path.isdir(f"{folder}/{d}")]
    if not found:
        raise Unavailable("apt-get source unpacked nothing")
    return f"{folder}/{found[0]}"


def build(source):
    """Without configure: event-config.h is the installed one, the rest has no choices."""
    with open(f"{source}/evconfig-private.h", "w", encoding="ascii") as f:
        f.write("#define _GNU_SOURCE 1\n")
    out = f"{source}/test/regress-installed"
    must(["gcc", "-O1", "-w", "-DTINYTEST_LOCAL", f"-I{source}", f"-I{source}/compat",
          f"-I{source}/include", f"-I{source}/test", "-o", out] +
         [f"{source}/test/{f}.c" for f in FILES] + LIBRARIES)
    return out


def results(output):
    """{test: OK, FAILED, SKIPPED, DISABLED}"""
    found = {}
    name = None
    for line in output.splitlines():
        begin = re.match(r"(\S+/\S+): ", line)
        if begin:
            name = begin.group(1)
            found[name] = "no result"
        # What a test prints may stand before its result.
        end = re.search(r"(OK|SKIPPED|DISABLED|FAILED\])$", line)
        if name and end:
            found[name] = end.group(1).rstrip("]")
    return found


def regress(program, tests, env):
    p = run([program] + tests, env, LIMIT)
    found = results(p.stdout + p.stderr)
    if not found:
        check("libevent's tests say something", False, p)
    return found


def compare(program):
    tests = [] if SOAK else PART
    plain = dict(os.environ)
    with box_folder() as boxes:
        env = dict(os.environ, LD_PRELOAD=PRELOAD, TACHO_BOX_DIR=boxes, TACHO_MAX_BYTES="4M")
        without = regress(program, tests, plain)
        under = regress(program, tests, env)
        enough = 300 if SOAK else 100
        check("libevent's tests ran", len(without) >= enough, f"{len(without)} tests")
        check("libevent's tests: the same ones ran", set(without) == set(under),
              set(without) ^ set(under))
        # A machine that is busy makes some fail now and then, both ways.
        for name in sorted(without):
            a, b = without[name], under.get(name)
            for _ in range(3):
                if a == b:
                    break
                a = regress(program, [name], plain).get(name)
                b = regress(program, [name], env).get(name)
            check(f"libevent {name}", a == b, f"{a} without, {b} under the hooks")


def main():
    with tempfile.TemporaryDirectory(prefix="tacho-regress-") as folder:
        try:
            program = build(fetch(folder))
        except (Unavailable, subprocess.TimeoutExpired) as error:
            skip("libevent's tests", error)
            return
        compare(program)


main()
finish()
