"""What the tests of `tacho view` and `tacho serve` share: a server, and requests to it, right and
wrong ones. Standard library only."""
import json
import os
import re
import signal
import socket
import subprocess

from libcheck import BIN
from libwait import PATIENCE, until


class Site:
    """A server, until the end of the block."""

    def __init__(self, *arguments, binary=BIN, **more):
        self.process = subprocess.Popen([binary, *arguments, "--no-browser"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, **more)
        self.address = self.process.stdout.readline().strip()
        found = re.fullmatch(r"http://(127\.0\.0\.1:(\d+))/([0-9a-f]{32})/", self.address)
        self.host, self.port, self.secret = (found[1], int(found[2]), found[3]) if found \
            else ("", 0, "")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.end()

    def end(self, number=signal.SIGINT):
        """Its exit status, and what it said."""
        self.process.send_signal(number)
        try:
            _, err = self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            _, err = self.process.communicate()
            return "it did not end", err
        return self.process.returncode, err

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def raw(self, data):
        """Bytes to it, and all that comes back."""
        with self.connect() as s:
            return self.send(s, data)

    @staticmethod
    def send(s, data):
        answer = b""
        try:
            s.sendall(data)
            while piece := s.recv(1 << 16):
                answer += piece
        except ConnectionError:
            pass
        return answer

    def request(self, path, method="GET", secret=None, host=None, **headers):
        """The bytes of a request; what is given replaces what would be right, "" leaves it out."""
        secret = self.secret if secret is None else secret
        host = self.host if host is None else host
        lines = [f"{method} /{secret + '/' if secret else ''}{path} HTTP/1.1", "Connection: close"]
        lines += [f"Host: {host}"] if host else []
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def ask(self, path, **more):
        return Answer(self.raw(self.request(path, **more)))

    def json(self, path):
        answer = self.ask(path)
        return json.loads(answer.body) if answer.status == 200 else {}

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def leaves_no_descriptor(self, before):
        return until(lambda: self.descriptors() <= before)

    def lives(self):
        return self.process.poll() is None and self.ask("what").status == 200


class Answer:
    def __init__(self, data):
        head, _, self.body = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        found = re.match(r"HTTP/1\.[01] (\d+)", lines[0])
        self.status = int(found[1]) if found else 0
        self.headers = {name.lower(): value for name, _, value in
                        (line.partition(": ") for line in lines[1:])}

    def __repr__(self):
        return f"{self.status} {self.headers} {self.body[:200]!r}"
