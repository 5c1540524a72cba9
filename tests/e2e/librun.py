"""What the tests of `tacho run` share. Standard library only."""
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

from libcheck import BIN, check, failures, said, skip  # noqa: F401
from libwait import child_of, free_port, listens, until  # noqa: F401

PYTHON = os.path.realpath(sys.executable)


def undisturbed():
    """Called in a child: it comes before what else runs on the machine, which is not its subject."""
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


try:
    subprocess.run(["true"], preexec_fn=undisturbed, check=True)
except subprocess.SubprocessError:
    undisturbed = None  # it is refused


def others_may_run():
    """Whether another user can run what was built: folders around it may be closed."""
    try:
        subprocess.run([BIN, "--version"], user=65534, cwd="/", capture_output=True, check=True)
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def environment(**more):
    env = {k: v for k, v in os.environ.items() if k not in ("TACHO", "TACHO_PRELOAD")}
    if os.environ.get("TACHO_TEST_PRELOAD"):  # those of BIN cannot be loaded into any program
        env["TACHO_PRELOAD"] = os.environ["TACHO_TEST_PRELOAD"]
    env.update(more)
    return {k: v for k, v in env.items() if v is not None}


def run(*arguments, cwd=None, env=None, timeout=60, **more):
    """tacho run with these arguments, to its end."""
    return subprocess.run([BIN, "run", *arguments], cwd=cwd, env=environment(**(env or {})),
                          capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, **more)


def start(*arguments, cwd=None, env=None, **more):
    return subprocess.Popen([BIN, "run", *arguments], cwd=cwd, env=environment(**(env or {})),
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **more)


def agent(*options, **more):
    return subprocess.Popen([BIN, "agent", *options], env=environment(), stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def recorded(*steps, env=None, **more):
    """The watched program, recording without a `tacho run`."""
    p = subprocess.run([BIN, "run", "-q", "--", "sh", "-c", "echo $LD_PRELOAD"],
                       capture_output=True, text=True, env=environment(LD_PRELOAD=None),
                       cwd=tempfile.gettempdir())
    return subprocess.Popen([watched(), *steps], stdin=subprocess.DEVNULL,
                            env=environment(LD_PRELOAD=p.stdout.strip(), **(env or {})), **more)


def finish(process, timeout=60):
    """Its end and what it said; killed when it does not come to an end."""
    try:
        out, err = process.communicate(timeout=timeout)
        return process.returncode, out, err
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        return -999, out, "timed out: " + err


def traces(folder):
    return sorted(glob.glob(os.path.join(folder, "*.tacho")))


def events(path, *options):
    """The events of a trace, or None when it cannot be read."""
    p = subprocess.run([BIN, "cat", path, "--json", *options], capture_output=True, text=True,
                       timeout=60)
    if p.returncode != 0:
        return None
    return [json.loads(line) for line in p.stdout.splitlines()]


def is_tachos(frame):
    """Whether a frame of `tacho cat --json` is tacho's own, which nothing else shows."""
    return os.path.basename(frame["module"] or "").startswith(
        ("libtacho.so", "libtacho-preload"))


def count(path, kind):
    return sum(e["type"] == kind for e in events(path) or [])


def info(path):
    """What tacho info says of the process of a trace."""
    p = subprocess.run([BIN, "info", path, "--json"], capture_output=True, text=True, timeout=60)
    if p.returncode != 0:
        return {}
    return json.loads(p.stdout)["processes"][0]


def why(path):
    return info(path).get("why") or ""


def watched():
    """The program whose arguments say what it does; "": it was not built."""
    build = os.environ.get("TACHO_BUILD", "")
    path = os.path.join(build, "tests/e2e/watched_program")
    return path if os.path.isfile(path) else ""


def switches_of_threads(pid):
    """By thread: how often it went to sleep by itself."""
    found = {}
    for path in glob.glob(f"/proc/{pid}/task/*/status"):
        try:
            with open(path) as f:
                lines = f.readlines()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
        found.update((path, int(line.split()[1])) for line in lines
                     if line.startswith("voluntary_ctxt_switches"))
    return found


def fresh(tmp, name):
    place = os.path.join(tmp, name)
    os.mkdir(place)
    return place


def boxes():
    """Boxes in the folder of this test."""
    return glob.glob(os.path.join(os.environ["TACHO_BOX_DIR"], "*.box"))


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def state(pid):
    """As /proc has it; "": there is no such process, or no more."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def end(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass


def script(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w") as f:
        f.write(text)
    return path


def folder():
    """A folder of its own; boxes lie in one, too, also when the script runs alone."""
    if not os.environ.get("TACHO_BOX_DIR"):
        os.environ["TACHO_BOX_DIR"] = tempfile.mkdtemp(prefix="tacho-test-", dir="/dev/shm")
        import atexit
        atexit.register(shutil.rmtree, os.environ["TACHO_BOX_DIR"], True)
    return tempfile.TemporaryDirectory(prefix="tacho-run-")


# Waits a few times, as a loop does, and then does what follows.
LOOP = "import select, os, sys, time, signal\n" \
       "loop = select.epoll()\n" \
       "def turn(n=3, seconds=0.005):\n" \
       "    for i in range(n): loop.poll(seconds)\n" \
       "turn()\n"
