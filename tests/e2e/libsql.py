"""What the tests of `tacho sql` share: recordings of real programs, and queries."""
import csv
import io
import json
import os
import shutil
import signal
import subprocess
import time

from librun import BIN, environment, free_port, listens, until

BUILD = os.environ.get("TACHO_BUILD", "build")
EXAMPLES = os.environ.get("TACHO_EXAMPLES", os.path.join(BUILD, "examples"))
# lines of csv are as long as they are
csv.field_size_limit(1 << 24)


def sql(path, *queries, form=None, stdin=subprocess.DEVNULL, **more):
    options = ["--format", form] if form else []
    return subprocess.run([BIN, "sql", path, *options, *queries], capture_output=True, text=True,
                          timeout=120, env=environment(NO_COLOR="1"), stdin=stdin, **more)


def rows(path, query):
    """The rows of a query as objects; numbers that JSON writes as texts are numbers."""
    p = sql(path, query, form="json")
    if p.returncode:
        raise RuntimeError(f"{query}: {p.stderr}")
    return [json.loads(line) for line in p.stdout.splitlines()]


def one(path, query):
    """The values of the only row."""
    found = rows(path, query)
    return list(found[0].values()) if len(found) == 1 else found


def table(path, query):
    p = sql(path, query, form="csv")
    if p.returncode:
        raise RuntimeError(f"{query}: {p.stderr}")
    return list(csv.reader(io.StringIO(p.stdout, newline="")))


def cat(path):
    p = subprocess.run([BIN, "cat", path, "--json"], capture_output=True, text=True, timeout=120)
    return [json.loads(line) for line in p.stdout.splitlines()]


def stop(process):
    if process.poll() is None:
        process.kill()
    process.wait()


def record_tasks(path):
    """Tasks, spans, wakes, queues, counters and events, through the API."""
    process = subprocess.Popen([os.path.join(EXAMPLES, "tasks")], env=environment(),
                               stdin=subprocess.DEVNULL)
    try:
        time.sleep(2)
        return subprocess.run([BIN, "dump", str(process.pid), "-o", path], capture_output=True,
                              text=True, timeout=60, env=environment())
    finally:
        stop(process)


def record_uv(path):
    """Callbacks, pool work, locks, blocking calls and samples of a libuv program."""
    return subprocess.run([BIN, "run", "-q", "-f", "-o", path, "--",
                           os.path.join(BUILD, "tests/e2e/export_uv")], capture_output=True,
                          text=True, timeout=120, env=environment(), stdin=subprocess.DEVNULL)


def record_redis(path, base):
    """Turns of a loop whose callbacks are not seen; None without redis."""
    server, bench = shutil.which("redis-server"), shutil.which("redis-benchmark")
    if not server or not bench:
        return None
    port = str(free_port())
    process = subprocess.Popen([BIN, "run", "-q", "-f", "-o", path, "--", server, "--port", port,
                                "--save", "", "--appendonly", "no", "--dir", base],
                               env=environment(), stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: listens(int(port)))
        subprocess.run([bench, "-p", port, "-q", "-n", "10000", "-c", "4", "-t", "get,set"],
                       capture_output=True, timeout=120)
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
        return process
    finally:
        stop(process)
