#!/usr/bin/env python3
"""libevent's own tests have the same results under the hooks as without.

The source package of the installed libevent is fetched with apt into a folder of this
test's own; its tests are linked with the installed libraries and run both ways. All of
them in a soak, else a part that takes some seconds.
"""
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
from libapt import Apt, Unavailable, must  # noqa: E402
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


def build(source):
    """Without configure: event-config.h is the installed one, the rest has no choices."""
    with open(f"{source}/evconfig-private.h", "w", encoding="ascii") as f:
        f.write("#define _GNU_SOURCE 1\n")
    out = f"{source}/test/regress-installed"
    must(["gcc", "-O0", "-w", "-DTINYTEST_LOCAL", f"-I{source}", f"-I{source}/compat",
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
            program = build(Apt(folder).source("libevent-dev"))
        except (Unavailable, subprocess.TimeoutExpired) as error:
            skip("libevent's tests", error)
            return
        compare(program)


main()
finish()
