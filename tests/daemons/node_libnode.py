#!/usr/bin/env python3
"""Debian's node, whose libnode uses the libuv of the system, under load, recorded: each callback is
seen, as many as its own counts explain.

Where node is somebody else's, Debian's packages are fetched with apt into a folder of this test's
own and run from there."""
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import libnode  # noqa: E402
from libapt import Apt, Unavailable  # noqa: E402
from libdaemons import ROOT, Daemon, can_trace, check, have, program, run, skip  # noqa: E402
from librecorded import ended  # noqa: E402

PACKAGES = """nodejs libnode108 libc-ares2 libicu72 libnghttp2-14 libbrotli1 node-acorn
    node-cjs-module-lexer node-undici node-busboy""".split()
LIBRARIES = "usr/lib/x86_64-linux-gnu"


def fetched(root):
    """How to run the node whose packages are unpacked in `root`: its command and environment, or
    why not."""
    # It wants some of its scripts in /usr/share: there, for this process alone.
    mount = f"mount -t overlay overlay -o lowerdir={root}/usr/share:/usr/share /usr/share"
    space = [program("unshare") or "unshare", "-m"] if ROOT else ["unshare", "-r", "-m"]
    try:
        works = subprocess.run([*space, "sh", "-c", mount], capture_output=True, timeout=60)
    except OSError as error:
        return None, str(error)
    if works.returncode:
        return None, "no file system can be mounted here"
    command = [*space, "sh", "-c", f'{mount} && exec {root}/usr/bin/node "$0"']
    return (command, {"LD_LIBRARY_PATH": f"{root}/{LIBRARIES}",
                      "TACHO_EXCLUDE": "sh,unshare,mount"}), ""


def serve(name, node, rounds, seconds, strace=False):
    command, env = node
    with Daemon(strace) as daemon:
        daemon.start(*command, libnode.SERVER, env=env)
        counts = libnode.load(name, daemon, rounds, seconds)
        if not counts:
            return
        for recorded in ended(name, daemon, daemon.end(send=False), mine="libnode.so.108"):
            # The last poll ends with the process: the server calls exit in it.
            recorded.whole(name, "callbacks", "uv loop", balanced=False,
                           explained=recorded.NODE)
            verify(name, recorded, counts)
            if strace:
                recorded.same_waits(name, daemon)
            else:
                recorded.stacks(name, "uv_run")


def verify(name, recorded, counts):
    polls = recorded.polls
    # One read for each request, and one for the end of each connection but perhaps the last.
    reads = counts["served"] + counts["connections"]
    check(f"{name}: reads", reads - 1 <= polls["uv_tcp read"] <= reads, f"{polls} for {counts}")
    check(f"{name}: connections", polls["uv_tcp connection"] == counts["connections"], polls)
    check(f"{name}: files", all(polls[f"uv_fs_{op}"] == recorded.submits[f"uv_fs_{op}"] ==
                                counts["files"] for op in ("open", "fstat", "read", "close")),
          polls)
    check(f"{name}: pbkdf2 in the pool", polls["uv_after_work"] == recorded.begins["uv_work"] ==
          recorded.types["work-end"] == counts["keys"], f"{polls} {recorded.begins}")
    # Of node's own one or more besides: it has one uv_timer for all of its timers.
    check(f"{name}: timers", polls["uv_timer"] >= counts["timers"] > 0, polls)
    recorded.functions(name, ("node::Environment::RunTimers", "node::HandleWrap::OnClose"))


def both(node):
    serve("node", node, libnode.REQUESTS, 1)
    if can_trace("node counted by strace"):
        serve("node counted by strace", node, 20, 0, strace=True)


def main():
    if not have("node", "wrk"):
        return
    installed = libnode.found()
    if installed and installed[1]:
        both(([installed[0]], {}))
        return
    if os.uname().machine != "x86_64":
        skip("node", "the packages are fetched for x86-64 alone")
        return
    with tempfile.TemporaryDirectory(prefix="tacho-daemon-") as work:
        os.chmod(work, 0o755)
        try:
            Apt(f"{work}/apt").unpack(PACKAGES, f"{work}/root")
        except Unavailable as reason:
            skip("node", f"Debian's is not installed and cannot be fetched: {reason}")
            return
        node, why = fetched(f"{work}/root")
        if not node:
            skip("node", why)
            return
        both(node)


run(main)
