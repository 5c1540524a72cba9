#!/usr/bin/env python3
"""Requests that nobody would send, at random, to `tacho view` and `tacho serve`: they must answer or
refuse each, go on, and have no descriptor more afterwards. TACHO_BIN is a program with
AddressSanitizer, so that it ends at the first byte out of bounds.

    serve_requests.py [SECONDS [SEED]]
"""
import os
import random
import shutil
import signal
import sys
import tempfile
import time

sys.dont_write_bytecode = True
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(TESTS, "e2e"), TESTS]
from libcheck import check, status  # noqa: E402
from libserve import Site  # noqa: E402

TRACE = os.path.join(TESTS, "golden/v1-dump.tacho")
PATHS = ["", "what", "trace", "list", "list/1", "traces/a.tacho", "traces/..%2fa.tacho", "live",
         "snapshot", "keep", "keep/1", "main.js", "engine.wasm", "index.html", "%00", "%", "%zz"]
METHODS = ["GET", "HEAD", "POST", "PUT", "OPTIONS", "TRACE", "X" * 300]
HEADERS = ["Range: bytes=0-9", "Range: bytes=-1", "Range: bytes=99999999999999999999-",
           "Range: bytes=999999999-", "Range: x",
           'If-Range: "1"', "Origin: null", "Origin: http://127.0.0.1", "Content-Length: 0",
           "Content-Length: 5", "Content-Length: -1", "Content-Length: 99999999999",
           "Transfer-Encoding: chunked", "Expect: 100-continue", "Connection: keep-alive",
           "Connection: Upgrade", "Upgrade: h2c", "Host: evil", "Accept-Encoding: \xff", ": ", "X",
           "Accept-Encoding: gzip", "Accept-Encoding: *;q=0, gzip ; q=", "Accept-Encoding: ,;,;q=0",
           "Cookie: " + "a=b; " * 500, "\tfolded"]


def request(site, r):
    lines = [f"{r.choice(METHODS if r.random() < .3 else ['GET', 'POST'])} "
             f"/{site.secret}/{r.choice(PATHS)} HTTP/1.{r.choice('0112')}", f"Host: {site.host}"]
    lines += r.choices(HEADERS, k=r.randrange(5))
    if r.random() < .2:
        r.shuffle(lines)
    body = r.choice(["", "", "x" * r.randrange(9000), "5\r\nhello\r\n0\r\n\r\n", "ffffffff\r\n"])
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode("latin-1")


def mutated(data, r):
    data = bytearray(data)
    for _ in range(r.choice((0, 0, 1, 2, 5, 30))):
        at = r.randrange(len(data) + 1)
        how = r.randrange(4)
        if how == 0 and at < len(data):
            data[at] = r.randrange(256)
        elif how == 1:
            data[at:at] = r.randbytes(r.choice((1, 2, 40, 5000)))
        elif how == 2:
            del data[at:at + r.randrange(40)]
        else:
            data[at:at] = data[at:at + r.randrange(60)]
    return bytes(data)


def throw(site, r):
    """One connection, with one request, several, or less than one; it is closed in some way."""
    with site.connect() as s:
        s.settimeout(0.05)
        try:
            for _ in range(r.choice((1, 1, 1, 2, 8))):
                data = mutated(request(site, r), r)
                if r.random() < .2:
                    data = data[:r.randrange(len(data) + 1)]
                s.sendall(data)
            if r.random() < .7:
                s.recv(r.choice((1, 100, 1 << 16)))
            if r.random() < .3:
                s.shutdown(1)
                s.recv(1 << 16)
        except OSError:
            pass  # refused, or still waiting for the rest


def fuzz(name, seconds, seed, *arguments):
    r = random.Random(seed)
    with Site(*arguments) as site:
        if not check(f"{name}: it is served", site.secret, site.process.poll()):
            return
        site.ask("list")
        site.ask("trace")
        before, count, stop = site.descriptors(), 0, time.monotonic() + seconds
        while time.monotonic() < stop and site.process.poll() is None:
            throw(site, r)
            count += 1
        print(f"{name}: {count} connections, seed {seed}")
        check(f"{name}: it still answers", site.process.poll() is None and
              site.ask("what").status == 200, f"after {count} connections, seed {seed}")
        check(f"{name}: no descriptor is left", site.process.poll() is not None or
              site.leaves_no_descriptor(before), f"{before} before, seed {seed}")
        code, err = site.end(signal.SIGTERM)
        check(f"{name}: the sanitizer has nothing to say", code == 0 and "ERROR" not in err,
              (code, err[-800:]))


def main():
    soak = os.environ.get("TACHO_SOAK") == "1"
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60 if soak else 10
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    with tempfile.TemporaryDirectory(prefix="tacho-serve-") as tmp:
        for name in ("a.tacho", "b.tacho"):
            shutil.copy(TRACE, os.path.join(tmp, name))
        fuzz("tacho view", seconds / 2, seed, "view", TRACE)
        fuzz("tacho serve", seconds / 2, seed + 1, "serve", "--dir", tmp)
    return status()


if __name__ == "__main__":
    sys.exit(main())
