#!/usr/bin/env python3
"""Small files that claim many events: columns in which all is the same, zstd and gzip over nothing."""
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../golden"))
import make  # noqa: E402
from libcheck import BIN, check, said, status  # noqa: E402

PARK, WAKE = 0x01, 0x43
EVENTS_MAX = 1 << 20  # of a block
PER_BYTE, FREE = 64, 4 << 20  # of src/read/reader.h
MEMORY = 2 << 30


def frame(data):
    """A zstd frame of raw and run-length blocks, none larger than zstd takes."""
    out, at = struct.pack("<IBI", 0xFD2FB528, 0xA0, len(data)), 0
    while at < len(data):
        piece = data[at:at + (128 << 10)]
        same = piece.count(piece[:1]) == len(piece) and len(piece) > 8
        if not same:  # up to where the long run begins
            piece = piece[:512]
        at += len(piece)
        head = (at == len(data)) | (1 if same else 0) << 1 | len(piece) << 3
        out += struct.pack("<I", head)[:3] + (piece[:1] if same else piece)
    return out


def payload(count, kind, number, word):
    """An EVENTS block: one type, which follows itself at once, with the same argument."""
    ns = make.T0 + 1000 + number
    out = struct.pack("<IIIHHIIIIIIQQQQ16sQ", 96, 1, 77, 0, 0, 0, number, 0, 0, count, 0,
                      number * count, ns, ns, 0, b"worker", 0)
    out += bytes([1, kind, kind]) + struct.pack("<BI", kind, count)
    out += bytes([1, kind, 0, 0])  # what follows
    out += bytes([0, 0]) + bytes([0]) + bytes([0, 0])  # times, lists, arguments
    return out + word


def bomb(path, blocks, kind=PARK, word=b"", index=True):
    f = make.File(0x1001)
    f.meta(**make.PROCESS, clock=2, taken_mono=make.T0 + 9 * make.S,
           taken_real=make.REAL0 + 9 * make.S, taken_by=3, alive=1)
    f.array(make.CLOCK, 24, [struct.pack("<QQQ", make.T0, make.T0, make.REAL0)])
    f.array(make.THREADS, 64, [make.thread_entry(1, 1, 77, make.T0 + 5, b"worker")])
    before, make.zstd_frame = make.zstd_frame, frame
    for i in range(blocks):
        f.events(payload(EVENTS_MAX, kind, i, word), compress=True)
    make.zstd_frame = before
    with open(path, "wb") as out:
        out.write(f.index() if index else f.end())
    return path


def tacho(*arguments):
    """With 2 GiB of memory."""
    return subprocess.run([BIN, *arguments], capture_output=True, text=True, timeout=300,
                          stdin=subprocess.DEVNULL, preexec_fn=lambda: resource.setrlimit(
                              resource.RLIMIT_DATA, (MEMORY, MEMORY)))


def events(read):
    return sum(sum(p["events"].values()) for p in json.loads(read.stdout)["processes"]) \
        if read.stdout else 0


def test_blocks(tmp):
    for name, more in (("with an index", {}), ("without an index", {"index": False}),
                       ("of tasks that differ",
                        {"kind": WAKE, "word": b"\x01\x01" + b"\x02" * EVENTS_MAX})):
        path = bomb(os.path.join(tmp, "bomb.tacho"), 200, **more)
        size = os.path.getsize(path)
        read = tacho("info", "--json", path)
        check(f"dense: a file {name} is read up to what its bytes can hold",
              read.returncode == 0 and 0 < events(read) <= FREE + PER_BYTE * size,
              (size, events(read), said(read)[-300:]))
        check(f"dense: what is left out of a file {name} is said", "too-dense" in read.stdout and
              "more than 64 for each byte" in read.stdout, said(read)[-300:])
        for command in (["report"], ["stats"], ["blame", "--slowest", "1"],
                        ["sql", "SELECT count(*) FROM wakes"]):
            p = tacho(command[0], path, *command[1:])
            check(f"dense: {command[0]} has enough memory for a file {name}",
                  p.returncode in (0, 1) and "memory" not in p.stderr, said(p)[-300:])


def test_honest(tmp):
    """Few events in few bytes are read, however well they are packed."""
    path = bomb(os.path.join(tmp, "few.tacho"), 4)
    read = tacho("info", "--json", path)
    check("dense: four million events that are alike are read", events(read) == 4 * EVENTS_MAX and
          "too-dense" not in read.stdout, said(read)[-300:])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="tacho-dense-") as base:
        test_blocks(base)
        test_honest(base)
    sys.exit(status())
