"""What the tests of real programs share: starting them under `tacho run`, ending them, and counting
their system calls from outside. Standard library only."""
import glob
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from libresult import check, skip, status  # noqa: E402
from libwait import PATIENCE, free_port, until  # noqa: E402, F401

BIN = os.path.abspath(shutil.which(os.environ.get("TACHO_BIN", "tacho")) or "")
if not os.path.isfile(BIN):
    print("not ok tacho: TACHO_BIN does not name the tacho program")
    sys.exit(1)
PYTHON = os.path.realpath(sys.executable)
ROOT = os.geteuid() == 0
HERE = os.path.dirname(os.path.abspath(__file__))
MEMORY = str(256 << 20)  # of one window: nothing of a test's load is overwritten
NOTES = (": window of ", " itself used ", "still running and recorded: ")  # where all is well
WAITS = "epoll_wait,epoll_pwait,epoll_pwait2"


def program(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin:/sbin")


def have(test, *names):
    """Whether these programs are installed; if not, the test is skipped by name."""
    missing = [name for name in names if not program(name)]
    if missing:
        skip(test, f"{', '.join(missing)}: not installed")
    return not missing


def connect(port, seconds=PATIENCE):
    """A connection to somebody who may only be starting."""
    end = time.monotonic() + seconds
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        except OSError as error:
            if time.monotonic() > end:
                raise OSError(f"port {port}: {error} after {seconds} s") from error
            time.sleep(0.05)


def tool(*argv, **more):
    """What a client printed; its exit status and errors too when it failed."""
    p = subprocess.run([program(argv[0]) or argv[0], *argv[1:]], capture_output=True, text=True,
                       timeout=PATIENCE * 2, stdin=subprocess.DEVNULL, **more)
    return p.stdout if p.returncode == 0 else f"exit {p.returncode}: {p.stdout} {p.stderr}"


# Processes -----------------------------------------------------------------------------


def children(pid):
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            with open(path, encoding="ascii") as f:
                found += [int(word) for word in f.read().split()]
        except OSError:
            pass
    return found


def descendants(pid):
    found = []
    for child in children(pid):
        found += [child, *descendants(child)]
    return found


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as f:
            return f.read().strip()
    except OSError:
        return ""


def can_trace(name):
    """Whether strace can count here; if not, that is skipped by name."""
    if not have(name, "strace"):
        return False
    said = tool("strace", "--seccomp-bpf", "-f", "-qq", "-o", "/dev/null", "true").strip()
    if said:
        skip(name, f"strace does not work here: {said}")
    return not said


def run(*tests):
    """Runs tests one after the other; one that breaks off is a failure."""
    for test in tests:
        try:
            test()
        except (OSError, ValueError, LookupError, EOFError, subprocess.SubprocessError) as error:
            check(f"{test.__name__}: it can be used", False, f"{type(error).__name__}: {error}")
    sys.exit(status())


class Daemon:
    """A program under `tacho run`, with a folder of its own. With strace, the waits of all its
    threads are counted from outside."""

    def __init__(self, strace=False):
        self.folder = tempfile.mkdtemp(prefix="tacho-daemon-")
        os.chmod(self.folder, 0o755)
        self.out = self.path("traces")
        os.mkdir(self.out)
        self.calls = self.path("calls") if strace else None
        self.process = None
        self.outer = None
        self.boxes = None
        if not os.environ.get("TACHO_BOX_DIR"):
            self.boxes = tempfile.mkdtemp(prefix="tacho-daemon-", dir="/dev/shm")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.boxes:
            shutil.rmtree(self.boxes, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def file(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(self.path(name), 0o644)
        return self.path(name)

    def start(self, *argv, env=None, own_boxes=True, traced=WAITS, quiet=True, options=None):
        """own_boxes=False: the program changes its user, and its boxes lie in that user's
        folder, not in the one of this test. quiet=False: tacho says also what it does.
        `options` of tacho run say where to, too."""
        full = dict(os.environ, TACHO_MAX_BYTES=MEMORY, **(env or {}))
        if self.boxes:
            full["TACHO_BOX_DIR"] = self.boxes
        if not own_boxes:
            full.pop("TACHO_BOX_DIR", None)
        command = [BIN, "run", *(["-q"] if quiet else []), *(options or ["-o", self.out]), "--",
                   program(argv[0]), *argv[1:]]
        if self.calls:
            # A wait that the signal of a CPU sample interrupts is two calls and one park.
            full["TACHO_SAMPLE_HZ"] = "0"
            os.mkdir(self.calls)
            os.chmod(self.calls, 0o777)
            command = [program("strace"), "--seccomp-bpf", "-ff", "-qq", "-e", "signal=none", "-e",
                       f"trace={traced}", "-o", os.path.join(self.calls, "of"), *command]
        with open(self.path("log"), "wb") as log, open(self.path("said"), "wb") as out:
            self.outer = subprocess.Popen(command, cwd=self.folder, env=full, stdout=out,
                                          stderr=log, stdin=subprocess.DEVNULL)
        self.process = self.outer.pid
        if self.calls:
            own = os.path.basename(BIN)
            found = until(lambda: [c for c in children(self.outer.pid) if comm(c) == own])
            self.process = found[0] if found else self.outer.pid

    def read(self, name):
        with open(self.path(name), encoding="utf-8", errors="replace") as f:
            return f.read()

    def said(self):
        """The program's standard output."""
        return self.read("said")

    def log(self):
        return self.read("log")[-900:]

    def end(self, number=signal.SIGTERM, send=True):
        """Its exit status after a signal, which goes through tacho; or just after its end."""
        if send:
            try:
                os.kill(self.process, number)
            except ProcessLookupError:
                pass
        try:
            return self.outer.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            return "it did not end"

    def kill(self):
        if self.outer and self.outer.poll() is None:
            for pid in [*reversed(descendants(self.outer.pid)), self.outer.pid]:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            self.outer.wait()

    def traces(self):
        return sorted(glob.glob(os.path.join(self.out, "*.tacho")))

    def left(self):
        """Boxes that should have become traces."""
        return glob.glob(os.path.join(os.environ.get("TACHO_BOX_DIR") or self.boxes, "*.box"))

    def complaints(self):
        """What went wrong, as tacho says."""
        return [line for line in self.read("log").splitlines()
                if line.startswith("tacho") and not any(note in line for note in NOTES)]

    def system_calls(self):
        """Per thread, how many waits strace saw."""
        wanted = tuple(f"{name}(" for name in WAITS.split(","))
        counts = {}
        for path in glob.glob(os.path.join(self.calls, "of.*")):
            with open(path, encoding="utf-8", errors="replace") as f:
                counts[int(path.rsplit(".", 1)[1])] = sum(line.startswith(wanted) for line in f)
        return counts


# Clients -------------------------------------------------------------------------------


def ask_echo(port, times, wrong):
    try:
        with connect(port) as s:
            for _ in range(times):
                s.sendall(b"question")
                answer = s.recv(100)
                if answer != b"question":
                    wrong.append(answer)
    except OSError as error:
        wrong.append(error)


def echo(port, connections, times):
    """Asks a server that says what it hears, on several connections at once: what was wrong."""
    wrong = []
    clients = [threading.Thread(target=ask_echo, args=(port, times, wrong))
               for _ in range(connections)]
    for client in clients:
        client.start()
    for client in clients:
        client.join(PATIENCE)
    return wrong


def wrk(port, seconds=1, connections=16, path="/"):
    """How many answers wrk had, and what went wrong. It cuts off what is under way at its
    end, so the server may have served up to `connections` more."""
    out = tool("wrk", "-t", "1", "-c", str(connections), "-d", f"{seconds}s",
               f"http://127.0.0.1:{port}{path}")
    asked = [int(line.split()[0]) for line in out.splitlines() if " requests in " in line]
    wrong = [line.strip() for line in out.splitlines() if "Socket errors" in line or
             "Non-2xx" in line or line.startswith("exit ")]
    return (asked or [0])[0], wrong


def dnsperf(daemon, port, names, rounds, outstanding=20):
    """Asks for the addresses of `names`, `rounds` times: what it sent, and how many answers
    said that there was no error."""
    questions = daemon.file("questions", "".join(f"{name} A\n" for name in names))
    out = tool("dnsperf", "-s", "127.0.0.1", "-p", str(port), "-d", questions, "-n", str(rounds),
               "-c", "4", "-T", "1", "-q", str(outstanding), "-t", "20")
    numbers = {}
    for line in out.splitlines():
        key, _, value = line.strip().partition(":")
        numbers[key] = value.split()
    codes = numbers.get("Response codes", [])
    right = int(codes[codes.index("NOERROR") + 1]) if "NOERROR" in codes else 0
    return int((numbers.get("Queries sent") or [0])[0]), right, out[-400:]


def question(name, number=7):
    """A DNS message that asks for an address."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return number.to_bytes(2, "big") + b"\1\0\0\1\0\0\0\0\0\0" + labels + b"\0\0\1\0\1"


def resolve(port, name, address, times=1):
    """Asks one by one and counts right answers."""
    right = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(PATIENCE)
        for i in range(times):
            s.sendto(question(name, i), ("127.0.0.1", port))
            answer = s.recv(512)
            right += socket.inet_aton(address) in answer and answer[:2] == i.to_bytes(2, "big")
    return right


def serves_dns(port, name):
    """Waits until a name server answers without an error, as those do that still load their
    names. How often that took to ask."""
    end = time.monotonic() + PATIENCE
    asked = 0
    while time.monotonic() < end:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(0.5)
            try:
                s.connect(("127.0.0.1", port))
                s.send(question(name))
                asked += 1
                if s.recv(512)[3] & 15 == 0:
                    return asked
            except OSError:
                pass
        time.sleep(0.05)
    raise OSError(f"nobody answers on UDP port {port}")
