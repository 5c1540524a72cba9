#!/usr/bin/env python3
"""Debian's unbound, tor and pgbouncer, recorded: they work, and each descriptor that was ready
has its callback. Their clients count what they asked; nobody outside loopback is asked."""
import os
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from libevent_hooks import (PRELOAD, Recorded, box_folder, boxes_in, check, finish,  # noqa: E402
                            hooked, skip)

REQUESTS = 500
ROOT = os.geteuid() == 0


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def program(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin")


def connect(port):
    for _ in range(200):
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=20)
        except OSError:
            time.sleep(0.05)
    raise OSError(f"nobody listens on port {port} after 10 s")


class Daemon:
    """A program under the hooks, with folders of its own, as `user` if we are root."""

    def __init__(self, name, user=None):
        self.name = name
        self.user = user if ROOT else None
        self.folder = tempfile.mkdtemp(prefix="tacho-event-")
        self.boxes = box_folder()
        self.process = None
        for folder in (self.folder, self.boxes.name):
            if self.user:
                os.chown(folder, pwd.getpwnam(self.user).pw_uid, -1)

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="ascii") as f:
            f.write(text)
        os.chmod(path, 0o644)
        return path

    def start(self, *argv):
        more = {"user": self.user, "extra_groups": []} if self.user else {}
        with open(os.path.join(self.folder, "log"), "wb") as log:
            self.process = subprocess.Popen([program(self.name), *argv], cwd="/", stdout=log,
                                            stderr=log, stdin=subprocess.DEVNULL,
                                            env=hooked(self.boxes.name), **more)

    def log(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as f:
            return f.read()[-500:]

    def end(self, number):
        self.process.send_signal(number)
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def clean(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.boxes.cleanup()


def verify(name, boxes, least, most):
    """Callbacks of descriptors: one for each that was ready, and `least` to `most` of the
    function that has most."""
    if not check(f"{name}: one box", len(boxes) == 1, boxes):
        return
    recorded = Recorded(boxes[0])
    recorded.whole(name)
    io = {of: n for of, n in recorded.calls.items() if of[0] in ("event", "libevent")}
    check(f"{name}: a callback for each descriptor that was ready, or woken",
          recorded.types["ready"] <= sum(io.values()) <=
          recorded.types["ready"] + recorded.types["wake"],
          f"{recorded.types['ready']} ready, {recorded.types['wake']} wakes, {io}")
    busiest = max(io.values(), default=0)
    check(f"{name}: callbacks for its requests", least <= busiest <= most,
          f"{busiest} polls, {least} to {most} expected")
    check(f"{name}: its waits are libevent's, level callbacks",
          set(recorded.parks) == {("libevent loop", "callbacks")}, recorded.parks)


def unbound(daemon, name):
    port = free_port()
    daemon.start("-d", "-c", daemon.file("conf", f"""server:
  interface: 127.0.0.1@{port}
  username: ""
  chroot: ""
  directory: "{daemon.folder}"
  pidfile: ""
  use-syslog: no
  do-daemonize: no
  num-threads: 2
  local-zone: "test." static
  local-data: "a.test. A 10.0.0.1"
remote-control:
  control-enable: no
"""))
    question = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + b"\1a\4test\0\0\1\0\1"
    right = 0
    connect(port).close()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(20)
        for _ in range(REQUESTS):
            s.sendto(question, ("127.0.0.1", port))
            right += s.recv(512)[-4:] == bytes([10, 0, 0, 1])
    check(f"{name}: answers", right == REQUESTS, right)
    check(f"{name}: ends in order", daemon.end(signal.SIGTERM) == 0, daemon.log())
    # It reads until there is no more, so a callback may serve several questions.
    verify(name, boxes_in(daemon.boxes.name), REQUESTS // 4, REQUESTS)


def tor(daemon, name):
    port = free_port()
    daemon.start("-f", daemon.file("torrc", ""), "--DataDirectory", daemon.folder,
                 "--DisableNetwork", "1", "--SocksPort", "0",
                 "--ControlPort", f"127.0.0.1:{port}")
    right = 0
    with connect(port) as s, s.makefile("rb") as f:
        s.sendall(b"AUTHENTICATE\r\n")
        f.readline()
        for _ in range(REQUESTS):
            s.sendall(b"GETINFO version\r\n")
            right += f.readline().startswith(b"250-version=") and f.readline() == b"250 OK\r\n"
        check(f"{name}: answers", right == REQUESTS, right)
        s.sendall(b"SIGNAL SHUTDOWN\r\n")
        f.readline()
        check(f"{name}: ends in order", daemon.process.wait(60) == 0, daemon.log())
    # Also: the connection, the authentication, the end.
    verify(name, boxes_in(daemon.boxes.name), REQUESTS, REQUESTS + 10)


def pgbouncer(daemon, name):
    port = free_port()
    daemon.start(daemon.file("ini", f"""[databases]
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
admin_users = admin
"""))

    def ready(f):
        """Reads messages up to the one that says that the next query may come."""
        while True:
            kind, size = struct.unpack(">cI", f.read(5))
            body = f.read(size - 4)
            if kind == b"E":
                return body
            if kind == b"Z":
                return None

    errors = []
    with connect(port) as s, s.makefile("rb") as f:
        hello = struct.pack(">I", 196608) + b"user\0admin\0database\0pgbouncer\0\0"
        s.sendall(struct.pack(">I", len(hello) + 4) + hello)
        errors.append(ready(f))
        query = b"SHOW VERSION\0"
        for _ in range(REQUESTS):
            s.sendall(struct.pack(">cI", b"Q", len(query) + 4) + query)
            errors.append(ready(f))
    check(f"{name}: answers", not any(errors), [e for e in errors if e][:1])
    check(f"{name}: ends in order", daemon.end(signal.SIGINT) == 0, daemon.log())
    verify(name, boxes_in(daemon.boxes.name), REQUESTS, REQUESTS + 10)


def main():
    # pgbouncer refuses to be root's.
    for test, user in ((unbound, None), (tor, None), (pgbouncer, "nobody")):
        name = test.__name__
        if not program(name):
            skip(name, f"{name} is not installed")
            continue
        if user and ROOT and not reachable():
            skip(name, f"{user} cannot read {PRELOAD}")
            continue
        daemon = Daemon(name, user)
        try:
            test(daemon, name)
        except (OSError, struct.error, subprocess.TimeoutExpired) as error:
            check(f"{name}: works", False, f"{error}: {daemon.log()}")
        finally:
            daemon.clean()


def reachable():
    """Whether another user can load the hooks."""
    return subprocess.run(["test", "-r", PRELOAD], user="nobody", extra_groups=[],
                          check=False).returncode == 0


main()
finish()
