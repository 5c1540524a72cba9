"""Waiting for what others do, and ports on which they listen. Standard library only."""
import random
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


def free_port():
    """For TCP and UDP, and none that the kernel gives to somebody who asks for any."""
    while True:
        port = random.randrange(10000, 32000)
        with socket.socket() as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            try:
                tcp.bind(("127.0.0.1", port))
                udp.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def child_of(pid):
    """The first of its children."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return int(f.read().split()[0])
