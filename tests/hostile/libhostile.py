"""What attacks share: two users who are nobody, programs that they can run, boxes that lie."""
import atexit
import functools
import glob
import os
import resource
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
import librun  # noqa: E402
from libwait import PATIENCE  # noqa: E402
from librun import (BIN, check, child_of, environment, finish, fresh, said, skip,  # noqa: E402,F401
                    traces, until)

# Others may run these tests on the same host at the same time.
MALLORY = 61200 + os.getpid() % 2000 * 2
VICTIM = MALLORY + 1
SUPER_STATE, SUPER_PID, SUPER_UID, SUPER_START = 24, 32, 36, 40  # docs/format.md
STATE_OFF = 1
SERVICE = f"hostile-{os.getpid()}"  # whoever else records on this machine is left alone
MEMORY = 3 << 30  # what attacks are after must fail before the host does
started = []


def may_attack():
    """Whether there are users to be had: only root can be somebody else."""
    if os.geteuid() != 0:
        skip("hostile", "only root can run programs as two other users")
        return False
    if not librun.watched():
        skip("hostile", "the program to record was not built")
        return False
    os.environ.pop("TACHO_BOX_DIR", None)  # each user's own, as on a host
    return True


@functools.cache
def programs(tmp):
    """Copies of the recorded program and the hooks where every user can run them."""
    place = fresh(tmp, "programs")
    os.chmod(place, 0o755)
    hooks = subprocess.run([BIN, "run", "-q", "--", "sh", "-c", "echo $LD_PRELOAD"],
                           capture_output=True, text=True, cwd=tmp,
                           env=environment(LD_PRELOAD=None)).stdout.strip()
    return shutil.copy(librun.watched(), place), shutil.copy(hooks, place)


def start_as(user, argv, env=None, **more):
    p = subprocess.Popen(argv, user=user, group=user, extra_groups=[], cwd="/", env=environment(
        HOME="/", TMPDIR="/tmp", **(env or {})), stdin=subprocess.DEVNULL, **more)
    started.append(p)
    return p


def record_as(user, tmp, *steps, env=None, program=None):
    """The watched program as that user, recording."""
    watched, hooks = programs(tmp)
    return start_as(user, [program or watched, *steps],
                    env=dict(env or {}, LD_PRELOAD=hooks, TACHO_SERVICE=SERVICE))


def limit_memory():
    """Called in a child."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


def start_agent(*options):
    """At work. There is one of root's on a host: others who test are waited for."""
    def follows():
        p = librun.agent("--service", SERVICE, *options, cwd="/", preexec_fn=limit_memory)
        started.append(p)
        until(lambda: p.poll() is not None or "anon_inode:inotify" in files_of(p.pid))
        return p if p.poll() is None else None
    p = until(follows, 10 * PATIENCE)
    if not p:
        print(f"not ok the agent starts: {finish(started[-1])}")
        sys.exit(1)
    return p


def end_agent(agent):
    """Its exit status and what it said; it ends when it is told to, whatever it does just now."""
    agent.terminate()
    return finish(agent, 3 * PATIENCE)


def saved(place, process):
    """Whether its window is there, in the end."""
    return until(lambda: [t for t in traces(place) if f"-{process.pid}-" in t], 3 * PATIENCE)


def crash_as(user, tmp, agent, place):
    """A program that is followed and then killed: whether its window was saved."""
    p = record_as(user, tmp, "turns:20", "park:600000")
    box = box_of(p)
    followed = until(lambda: box in files_of(agent.pid), 3 * PATIENCE)
    p.kill()
    p.wait()
    return followed and saved(place, p)


def attack(user, what, box, *arguments, **more):
    """The attacker at work on a box."""
    return start_as(user, [attacker(), what, box, *map(str, arguments)], **more)


def attacker():
    return readable(os.path.join(os.environ.get("TACHO_BUILD", ""), "tests/hostile/attacker"))


@functools.cache
def readable(program):
    """A copy where every user can run it: folders around what was built may be closed."""
    place = tempfile.mkdtemp(prefix="tacho-hostile-", dir="/tmp")
    os.chmod(place, 0o755)
    atexit.register(shutil.rmtree, place, True)
    return shutil.copy(program, place)


def usage(pid):
    """(memory in KiB, descriptors, threads, CPU in s) of a process; what a child has is not its own."""
    with open(f"/proc/{pid}/status") as f:
        memory = int(next(line for line in f if line.startswith("VmRSS")).split()[1])
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (memory, len(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task")),
            (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))


def end_all():
    """What was started, and what users left in memory."""
    for p in started:
        if p.poll() is None:
            p.kill()
        p.wait()
        for pipe in (p.stdout, p.stderr):
            if pipe:
                pipe.close()
    started.clear()
    for user in (MALLORY, VICTIM):
        for path in glob.glob(f"/dev/shm/tacho-{user}*") + glob.glob(f"/tmp/tacho-{user}*"):
            shutil.rmtree(path, ignore_errors=True)


def folders_of(user=""):
    """Folders of boxes on which nothing is mounted: it might not answer."""
    with open("/proc/self/mounts", encoding="utf-8") as f:
        mounted = {line.split()[1] for line in f}
    return [path for path in glob.glob(f"/dev/shm/tacho-{user}*") if path not in mounted]


def boxes_of(user=""):
    return sorted(box for folder in folders_of(user) for box in glob.glob(folder + "/*.box"))


def box_of(process):
    """Its box, once that is there."""
    def found():
        return [b for b in boxes_of() if os.path.basename(b).startswith(f"{process.pid}-")]
    until(found)
    return (found() or [""])[0]


def start_time(pid):
    with open(f"/proc/{pid}/stat") as f:
        return int(f.read().rsplit(")", 1)[1].split()[19])


def forge(source, pid, number, owner, size=None, begun=None, state=None, ending=".box"):
    """A copy of a box that says it is another process's."""
    with open(source, "rb") as f:
        data = bytearray(f.read(size) if size else f.read())
    begun = start_time(pid) if begun is None else begun
    if state is not None:
        struct.pack_into("<I", data, SUPER_STATE, state)
    struct.pack_into("<I", data, SUPER_PID, pid)
    struct.pack_into("<I", data, SUPER_UID, owner)
    struct.pack_into("<Q", data, SUPER_START, begun)
    path = f"/dev/shm/tacho-{owner}/{pid}-{begun}-{number}{ending}"
    with open(path, "wb") as f:
        f.write(data)
    os.chown(path, owner, owner)
    os.chmod(path, 0o600)
    return path


def tacho(*arguments, env=None, **more):
    """How it ended; None is its status when it did not in time."""
    try:
        return subprocess.run([BIN, *arguments], capture_output=True, text=True,
                              env=env or environment(), stdin=subprocess.DEVNULL,
                              preexec_fn=limit_memory, **{"timeout": 300, **more})
    except subprocess.TimeoutExpired as late:
        return subprocess.CompletedProcess(late.args, None, "", "it did not end")


def refuses(p):
    """Whether it ended with an error."""
    return p.returncode not in (0, None)


def most_memory():
    """What any process had that was waited for by now, in KiB."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


def files_of(pid):
    """What the process has open."""
    found = []
    for fd in glob.glob(f"/proc/{pid}/fd/*"):
        try:
            found.append(os.readlink(fd))
        except OSError:
            pass
    return found


def main(*tests):
    """Those that the arguments name; without any, all."""
    tests = [test for test in tests if test.__name__ in sys.argv[1:] or not sys.argv[1:]]
    if may_attack():
        atexit.register(end_all)
        with tempfile.TemporaryDirectory(prefix="tacho-hostile-") as tmp:
            os.chmod(tmp, 0o755)
            for test in tests:
                end_all()
                test(tmp)
    sys.exit(1 if librun.failures else 0)
