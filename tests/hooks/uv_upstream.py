#!/usr/bin/env python3
"""libuv's own tests have the same results under the hooks as without.

The source package of the installed libuv is fetched with apt into a folder of this test's own;
its tests are linked with the installed library and run both ways, one by one. All of them
in a soak, else without those that take long.
"""
import concurrent.futures
import glob
import os
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
from libapt import Apt, Unavailable, must  # noqa: E402
from libuv_hooks import PRELOAD, box_folder, check, finish, run, skip  # noqa: E402

SOAK = os.environ.get("TACHO_SOAK") == "1"
# Half a second and more each.
SLOW = """hrtime delayed_accept tcp_write_ready metrics_idle_time metrics_idle_time_thread
    fs_event_watch_file_current_dir fs_event_close_with_pending_delete_event loop_stop poll_oob
    loop_backend_timeout tcp6_local_connect_timeout tcp_local_connect_timeout
    tcp_write_queue_order loop_update_time ipc_send_recv_pipe_inprocess
    tcp_close_after_read_timeout ipc_send_recv_tcp_inprocess tcp_unexpected_read
    udp_send_unreachable timer_again callback_stack spawn_and_kill
    spawn_and_kill_with_std fs_poll""".split()
# These ask an address outside of this machine.
OUTSIDE = ["tcp_close_while_connecting", "tcp_connect_timeout"]
TRIES = 4  # some of them depend on time


def build(source, folder):
    include = [f"-I{source}/{d}" for d in ("include", "src", "test")]
    sources = [f for f in glob.glob(f"{source}/test/*.c")
               if os.path.basename(f).startswith("test-") or os.path.basename(f) in
               ("blackhole-server.c", "echo-server.c", "run-tests.c", "runner.c", "runner-unix.c")]
    objects = [f"{folder}/{os.path.basename(f)}.o" for f in sources]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda pair: must(["gcc", "-w", "-O0", "-D_GNU_SOURCE", "-DUSING_UV_SHARED=1",
                                         *include, "-c", pair[0], "-o", pair[1]]),
                      zip(sources, objects)))
    must(["gcc", "-o", f"{folder}/run-tests", *objects, "-luv", "-lpthread", "-ldl", "-lutil"])
    for path in objects:
        os.unlink(path)
    # Some tests write beside their fixtures.
    shutil.copytree(f"{source}/test/fixtures", f"{folder}/test/fixtures")
    return f"{folder}/run-tests"


class Runner:
    """Runs one of its tests, as a user who is not root: as root they refuse."""

    def __init__(self, program, folder, boxes):
        self.program, self.folder = program, folder
        self.before = []
        if os.geteuid() == 0:
            self.before = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
            for path, folders, files in os.walk(folder):
                for name in [path] + [os.path.join(path, f) for f in files]:
                    os.chown(name, 65534, 65534)
            os.chown(boxes, 65534, 65534)
        self.plain = {k: v for k, v in os.environ.items() if not k.startswith(("TACHO", "LD_"))}
        self.plain["TMPDIR"] = folder
        self.hooked = dict(self.plain, LD_PRELOAD=f"{folder}/{os.path.basename(PRELOAD)}",
                           TACHO_BOX_DIR=boxes, TACHO_MAX_BYTES="2M", TACHO_DEAD_BOXES="4")

    def names(self):
        listed = run(self.before + [self.program, "--list"], self.plain, cwd=self.folder)
        return [line.split()[0] for line in listed.stdout.splitlines() if line.strip()]

    def one(self, name, env):
        try:
            return run(self.before + [self.program, name], env, 100, cwd=self.folder).returncode
        except Exception as problem:  # a time-out is a result as well
            return type(problem).__name__

    def same(self, name):
        """The result; None when it differs each time."""
        for _ in range(TRIES):
            plain, under = self.one(name, self.plain), self.one(name, self.hooked)
            if plain == under:
                return plain
        return None


def compare():
    # Not in a private folder of root's: other users must get there.
    with tempfile.TemporaryDirectory(prefix="tacho-uv-", dir="/tmp") as work, \
            box_folder() as boxes:
        os.chmod(work, 0o755)
        source = Apt(f"{work}/apt").source("libuv1-dev")
        os.makedirs(f"{work}/run")
        program = build(source, f"{work}/run")
        # The build folder may be one that only its owner can read.
        shutil.copy(PRELOAD, f"{work}/run/{os.path.basename(PRELOAD)}")
        runner = Runner(program, f"{work}/run", boxes)
        names = [n for n in runner.names() if n not in OUTSIDE and (SOAK or n not in SLOW)]
        check("libuv's suite has its tests", len(names) >= 300, len(names))
        results = {name: runner.same(name) for name in names}
    differ = [n for n, r in results.items() if r is None]
    passed = sum(r == 0 for r in results.values())
    check(f"{len(results)} tests of libuv have the same results under the hooks", not differ,
          differ)
    check(f"{passed} of them pass, and all but a few of the others are skipped",
          passed + sum(r == 7 for r in results.values()) >= len(results) - 4,
          [n for n, r in results.items() if r not in (0, 7)])


try:
    compare()
except Unavailable as reason:
    skip("libuv's tests", reason)
finish()
