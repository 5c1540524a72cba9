"""Waiting for what others do, and ports on which they listen. Standard library only."""
import socket
import time

PATIENCE = 60  # seconds for what takes none on an idle machine


def until(condition, seconds=PATIENCE):
    """The first value of condition() that is true, or the last one when time is up."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(0.02)


def free_port(kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET, kind) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def child_of(pid):
    """The first of its children."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return int(f.read().split()[0])
