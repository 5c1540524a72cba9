#!/usr/bin/env python3
"""tacho cat and tacho info on trace files that are built here byte by byte.

The builder follows src/format/*.h; cli_boxes.py and cli_bad_input.py use it too.
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

from libcheck import BIN, check, failures, said, skip  # noqa: F401

S = 1_000_000_000
T0 = 5000 * S  # CLOCK_MONOTONIC of the first event
REAL0 = 1_700_000_000 * S  # the same instant in wall time: 2023-11-14T22:13:20Z


# ---------------------------------------------------------------- program


def tacho(*arguments, env=None, cwd=None, binary=None, text=True, **more):
    """Runs the program; a hang or a crash is a failure of the caller's check."""
    environment = dict(os.environ, TZ="UTC", **(env or {}))
    try:
        return subprocess.run([binary or BIN, *arguments], capture_output=True, timeout=60,
                              env=environment, cwd=cwd, stdin=subprocess.DEVNULL,
                              **(dict(encoding="utf-8", errors="surrogateescape") if text else {}),
                              **more)
    except subprocess.TimeoutExpired:
        empty = "" if text else b""
        return subprocess.CompletedProcess(arguments, -999, empty, "timed out" if text else b"")


# ----------------------------------------------------------------- builder

def crc_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = (n >> 1) ^ 0x82F63B78 if n & 1 else n >> 1
        table.append(n)
    return table


CRC_TABLE = crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def pad8(data):
    return data + b"\0" * (-len(data) % 8)


def name_payload(name, file=b"", line=0, value=0, detail=0, unit=b""):
    return struct.pack("<QIHHBB", value, line, len(name), len(file), detail, len(unit)) + \
        name + file + unit


def schema_payload(name, fields):
    out = struct.pack("<HH", len(name), len(fields)) + name
    for field, kind in fields:
        out += struct.pack("<BB", kind, len(field)) + field
    return out


def module_payload(start, end, offset, path, build_id=b"\xab" * 20):
    return struct.pack("<QQQQBBH", start, end, offset, 0, len(build_id), 0, len(path)) + \
        build_id + path


TEXT, KIND, LOOP, SPAN, COUNTER, GAUGE, PLACE, SCHEMA, STACK, MODULE = range(1, 11)


class Recording:
    """What one thread recorded; becomes a box or a trace file."""

    def __init__(self, pid=4194300, start_time=1, comm=b"demo", service=b"web", name=b"worker",
                 tid=77):
        self.pid, self.start_time, self.comm, self.service = pid, start_time, comm, service
        self.name, self.tid = name, tid
        self.definitions = [(1, TEXT, name_payload(b"(names full)"))]
        self.records = b""
        self.count = 0
        self.last = 0
        self.losses = [0] * 16
        self.crashes = b""
        self.triggers = []
        self.state = 2
        self.uid = os.geteuid()
        self.boot_id = b"\x11" * 16
        self.thread_live = 2

    def define(self, cls, payload):
        self.definitions.append((len(self.definitions) + 1, cls, payload))
        return len(self.definitions)

    def record(self, kind, arg=0, words=(), at=None):
        """`at`: ns since the first event; never before the one before."""
        at = self.last if at is None else at
        self.records += struct.pack("<Q", kind | arg << 8 | (at - self.last) << 32)
        self.records += b"".join(struct.pack("<Q", w & (2**64 - 1)) for w in words)
        self.last = at
        self.count += 1

    def variable(self, kind, arg, data, words=(), at=None):
        self.record(kind, arg, [(1 + len(words)) | data << 16, *words], at)

    def log(self, text, level=3, at=None):
        padded = pad8(text)
        words = struct.unpack(f"<{len(padded) // 8}Q", padded)
        self.variable(0xC3, level, len(text), words, at)

    def crash(self, number, address, frames):
        regs = [0] * 34
        self.crashes += struct.pack("<IIiiQQ16sIIII", 3, self.tid, number, 1, address,
                                    T0 + self.last, self.name, 23, len(frames), 62, 0)
        self.crashes += struct.pack("<34Q", *regs)
        self.crashes += struct.pack("<64Q", *(frames + [0] * (64 - len(frames))))

    def chunk(self):
        head = struct.pack("<QQIIIIIHHII", 1, 256 + len(self.records), 0x4B4E4843, 65536, 1,
                           self.tid, 1, 0, 0, 0, 0)
        head += struct.pack("<QQQ", T0, T0, 0)
        head += struct.pack("<QQII", T0 + self.last, 0, self.count, 0)
        head += struct.pack("<16s", self.name) + bytes(120 + 8 + 16)
        assert len(head) == 256
        return head + self.records

    def thread_entry(self):
        return struct.pack("<IIIIQQQII16s", self.thread_live, 1, self.tid, 0xFFFFFFFF, T0, 0, 0,
                           0, 0, self.name)

    # ------------------------------------------------------------- trace

    def trace(self, host=b"host", taken_by=3):
        tag = 0x1234
        meta = b""

        def number(key, value):
            nonlocal meta
            meta += struct.pack("<HHIQ", key, 0, 8, value)

        def blob(key, value):
            nonlocal meta
            meta += struct.pack("<HHI", key, 0, len(value)) + pad8(value)

        for key, value in ((1, self.pid), (2, self.uid), (3, self.start_time), (9, 1),
                           (10, 32 << 20), (13, self.state), (18, 62), (19, T0), (20, REAL0),
                           (21, T0 + 10 * S), (22, REAL0 + 10 * S), (23, taken_by), (25, 0),
                           (28, 1)):
            number(key, value)
        for key, value in ((4, self.boot_id), (5, b"/usr/bin/" + self.comm), (6, self.comm),
                           (8, self.service), (17, host), (24, b"0.1.0")):
            blob(key, value)
        clock = struct.pack("<II", 24, 2)
        clock += struct.pack("<QQQ", T0, T0, REAL0)
        clock += struct.pack("<QQQ", T0 + 100 * S, T0 + 100 * S, REAL0 + 100 * S)
        definitions = b""
        for number_, cls, payload in self.definitions:
            definitions += struct.pack("<IHBB", number_, len(payload), cls, 0) + pad8(payload)
        blocks = [(1, meta), (2, clock),
                  (3, struct.pack("<II", 64, 1) + self.thread_entry()),
                  (4, definitions),
                  (8, struct.pack(f"<II{len(self.losses)}Q", 8, len(self.losses), *self.losses))]
        if self.crashes:
            blocks.append((10, struct.pack("<II", 848, len(self.crashes) // 848) + self.crashes))
        if self.triggers:
            blocks.append((9, struct.pack("<II", 256, len(self.triggers)) +
                           b"".join(self.triggers)))
        blocks.append((6, self.chunk()))
        head = struct.pack("<8sHHIIIQ28s", b"TACHOTRC", 1, 0, 64, tag, 0, REAL0, b"")
        out = head + struct.pack("<I", crc32c(head))
        for n, (kind, payload) in enumerate(blocks):
            padded = pad8(payload)
            block = struct.pack("<IHBBIIIII", 0x4B4C4254, kind, 0, 0, len(payload), len(payload),
                                n, tag, crc32c(padded))
            out += block + struct.pack("<I", crc32c(block)) + padded
        end = struct.pack("<QQI", 0, 0, len(blocks))
        return out + end + struct.pack("<I", crc32c(end + b"TACHOEND")) + b"TACHOEND"

    # --------------------------------------------------------------- box

    def box(self, slots=2):
        page = 4096
        at = page
        sizes = [("control", 128, 1), ("losses", 8, 16), ("triggers", 256, 64),
                 ("crashes", 848, 8), ("threads", 64, 4), ("histograms", 256, 2),
                 ("def_dir", 16, 64), ("def_buckets", 4, 64), ("def_data", 1, 8192),
                 ("slots", 16, slots), ("pool", 65536, slots)]
        regions, offsets = b"", {}
        for name, entry, count in sizes:
            align = 65536 if name == "pool" else page
            at += -at % align
            offsets[name] = at
            regions += struct.pack("<QQII", at, entry * count, entry, count)
            at += entry * count
        out = bytearray(at)
        directory, data = bytearray(16 * 64), b""
        for number, cls, payload in self.definitions:
            struct.pack_into("<IHBBII", directory, 16 * number, len(data) // 8 + 1, len(payload),
                             cls, 0, 0, 0)
            data += pad8(payload)

        def put(name, content):
            out[offsets[name]:offsets[name] + len(content)] = content

        put("losses", struct.pack("<16Q", *self.losses))
        put("crashes", self.crashes)
        put("threads", self.thread_entry())
        put("def_dir", directory)
        put("def_data", data)
        put("slots", struct.pack("<QII", 1 | 1 << 40, 0xFFFF, 0))
        put("pool", self.chunk())
        sup = struct.pack("<8sIIQIiIIQ16sII", b"TACHOBOX", 1, 4096, at, self.state, 0, self.pid,
                          self.uid, self.start_time, self.boot_id, 1, 11)
        sup += struct.pack("<QQQQQ", T0, T0, REAL0, 0, 0)
        sup += struct.pack("<IIIIIIIIQQ32x", 65536, 4096, 1, 1, 0, 1, len(self.definitions) + 1,
                           0, len(data), 1)
        sup += regions + bytes(24 * 5)
        sup += struct.pack("<HHi", 2, 0, 0) + struct.pack("<HHi", 3, 0, 1) + bytes(8 * 30)
        sup += struct.pack("<IB3x20s16s64s512s256s", 0, 0, b"", self.comm, self.service,
                           b"/usr/bin/" + self.comm, b"")
        out[:len(sup)] = sup
        return bytes(out)

    def note(self, reason):
        """A box of a process that could not record."""
        sup = bytearray(self.box()[:4096])
        struct.pack_into("<QIi", sup, 16, 4096, 1, 28)
        struct.pack_into("<I", sup, 68, 0)
        sup[192:192 + 24 * 16] = bytes(24 * 16)
        at = 192 + 24 * 16 + 8 * 32 + 4 + 4 + 20 + 16 + 64 + 512
        sup[at:at + 256] = reason.ljust(256, b"\0")
        return bytes(sup)

    def box_name(self, number=0):
        return f"{self.pid}-{self.start_time}-{number}.box"


HOSTILE = b"\x1b[31mred\x07\xff\xe2\x80\xae\"\\end"
BIG = 2**63 + 12345


def full_recording():
    """One event of each type, a hostile name, numbers beyond 2^53."""
    r = Recording()
    loop = r.define(LOOP, name_payload(b"main", b"demo.c", 10, 1, 3))
    loop2 = r.define(LOOP, name_payload(b"main", b"demo.c", 10, 2, 3))
    kind = r.define(KIND, name_payload(b"read_request", b"demo.c", 42))
    bad = r.define(KIND, name_payload(HOSTILE, b"evil\n.c", 1))
    span = r.define(SPAN, name_payload(b"parse", b"demo.c", 50))
    counter = r.define(COUNTER, name_payload(b"requests", b"", 0, 0, 1, b"req"))
    gauge = r.define(GAUGE, name_payload(b"load", b"", 0, 0, 2, b"%"))
    place = r.define(PLACE, name_payload(b"take_lock", b"demo.c", 60))
    text = r.define(TEXT, name_payload(b"the database"))
    stack = r.define(STACK, struct.pack("<2Q", 0x401234, 0x999999))
    r.define(MODULE, module_payload(0x400000, 0x500000, 0x1000, b"/usr/lib/libdemo.so.1"))
    schema = r.define(SCHEMA, schema_payload(b"request_done", [
        (b"status", 1), (b"delta", 2), (b"ratio", 3), (b"cached", 4), (b"url", 5),
        (b"note", 5 | 0x80)]))

    step = iter(range(0, 1000 * 1_000_000, 1_000_000))
    r.record(0x01, loop, at=next(step))
    r.record(0x02, 3, at=next(step))
    r.record(0x41, kind, [BIG], at=next(step))
    r.record(0x43, 0, [1234], at=next(step))
    r.record(0x42, bad, [99], at=next(step))
    r.record(0x03, 1, at=next(step))
    r.record(0x04, span, at=next(step))
    r.record(0x05, span, at=next(step))
    r.record(0x06, 1, at=next(step))
    r.record(0x06, 0, at=next(step))
    r.record(0x44, 0, [1234], at=next(step))
    r.record(0x45, place, [0x7F0000001000], at=next(step))
    r.record(0x46, 1, [0x7F0000001000], at=next(step))
    r.record(0x47, loop, [17], at=next(step))
    r.record(0x48, counter, [-5], at=next(step))
    r.record(0x48, gauge, struct.unpack("<Q", struct.pack("<d", 0.5)), at=next(step))
    r.record(0x82, span, [900, 800], at=next(step))
    r.record(0x49, span, [900], at=next(step))
    r.record(0x4A, text, [1], at=next(step))
    r.record(0x80, stack, [0x7F0000001000, 4], at=next(step))
    r.record(0x81, loop, [loop2, 6], at=next(step))
    r.variable(0xC0, kind, place, [1234, 55], at=next(step))
    r.variable(0xC1, text, stack, [1234, 66], at=next(step))
    r.variable(0xC2, 0, 0, [900, 0x0123456789ABCDEF, 0xFEDCBA9876543210], at=next(step))
    r.log(b"hello\n\x1b[2J w\xc3\xb6rld", at=next(step))
    url = b"/index.html"
    words = [200, -3, struct.unpack("<Q", struct.pack("<d", 1.25))[0], 1, len(url)]
    words += struct.unpack("<2Q", pad8(url))
    r.variable(0xC4, schema, 0b011111, words, at=next(step))
    r.variable(0xC5, kind, loop, [0, T0, 5000, 3 << 48 | 7, 10 << 48 | 2], at=next(step))
    r.record(0x07, loop2, at=next(step))
    path = r.define(TEXT, name_payload(b"/var/lib/demo/log"))
    call = r.define(TEXT, name_payload(b"fsync"))
    r.record(0x4B, kind, [7001], at=next(step))
    r.record(0x4C, kind, [7001], at=next(step))
    r.record(0x4D, 0, [7001], at=next(step))
    r.record(0x4E, 0x2011 | 1 << 20, [12], at=next(step))
    r.record(0x4E, 0x4, [1 << 63 | 0x7F0000002000], at=next(step))
    r.record(0x4F, 0, [2_500_000], at=next(step))
    r.record(0x50, stack, [0x7F0000001000], at=next(step))
    r.record(0x51, stack, [10_000_000], at=next(step))
    r.record(0x83, 4, [3_000_000, 21 | 2 << 32], at=next(step))
    r.variable(0xCA, 5, 2, [4_000_000, T0 + 3_000_000, 22 | 3 << 32], at=next(step))
    r.variable(0xC6, call, stack, [12_000_000, 9, path | 5 << 32 | 1 << 48], at=next(step))
    r.variable(0xC6, call, 0, [1_000_000, 2**64 - 1, 0], at=next(step))
    r.record(0x3E, 5, at=next(step))  # a type from the future
    r.losses[0] = 12
    r.losses[6] = 1000
    r.crash(11, 0xDEAD, [0x401234, 0x999999])
    r.triggers.append(struct.pack("<IIQII200s32x", 1, 77, T0 + 5_000_000, 12, 0, b"slow request"))
    return r


EXPECTED_TYPES = ["park", "unpark", "poll-begin", "wake", "poll-switch", "poll-end", "span-begin",
                  "span-end", "pause", "pause", "task-end", "lock-wait", "lock-waited",
                  "queue-depth", "counter", "counter", "async-begin", "async-end", "trigger",
                  "lock-release", "steal", "spawn", "task-waits", "trace-id", "log", "event",
                  "poll-hist", "loop", "work-submit", "work-begin", "work-end", "ready", "ready",
                  "late", "stack", "sample", "sched", "sched", "call", "call", "unknown"]


# ------------------------------------------------------------------- tests

def safe_for_terminals(text):
    """No control characters but newline, nothing that is not UTF-8, no direction marks."""
    return not any((ord(c) < 32 and c != "\n") or 0x7F <= ord(c) <= 0x9F or
                   0xDC80 <= ord(c) <= 0xDCFF or c in "\u202e\u2066" for c in text)


def test_cat_text(path):
    p = tacho("cat", path)
    check("cat_succeeds", p.returncode == 0 and p.stderr == "", said(p))
    check("cat_output_cannot_drive_a_terminal", p.stdout and safe_for_terminals(p.stdout),
          said(p))
    for name, words in {
        "park": "park          loop main#2 (demo.c:10)",
        "unpark": "unpark        3 ready",
        "poll_begin": f"poll-begin    read_request (demo.c:42) task {BIG:#x}",
        "hostile_name": r"\x1b[31mred\x07\xff\xe2\x80\xae",
        "poll_end": "poll-end      pending",
        "lock_wait": "lock-wait     lock 0x7f0000001000 at take_lock (demo.c:60)",
        "stack": "at [libdemo.so.1+0x2234 < 0x999999]",
        "counter": "counter       requests = -5 req",
        "gauge": "counter       load = 0.5 %",
        "steal": "steal         main#2 (demo.c:10) took 6 tasks from main#3 (demo.c:10)",
        "spawn": "read_request (demo.c:42) task 1234 parent 55 at take_lock (demo.c:60)",
        "waits": "task 1234 for the database resource 66 at [libdemo.so.1+0x2234",
        "trace_id": "0123456789abcdeffedcba9876543210 of span 900",
        "log": r"level 3: hello\x0a\x1b[2J w" + "\u00f6rld",
        "event": 'request_done status=200 delta=-3 ratio=1.25 cached=true url="/index.html"',
        "hist": "9 short polls, 5.000 us in all",
        "trigger_of_no_sentinel": "trigger       number 1: the database\n",
        "loop": "loop          main#3 (demo.c:10)",
        "work_submit": "work-submit   read_request (demo.c:42) work 7001",
        "work_begin": "work-begin    read_request (demo.c:42) work 7001",
        "work_end": "work-end      work 7001",
        "ready": "ready         descriptor 12: in,hup,rdhup,0x100000",
        "ready_data": "ready         data 0x7f0000002000: out",
        "late": "late          timer by 2.500 ms",
        "stack_of_a_lock": "stack         of 0x7f0000001000 at [libdemo.so.1+0x2234 < 0x999999]",
        "sample": "sample        10.000 ms of CPU at [libdemo.so.1+0x2234",
        "sched": "sched         3.000 ms runnable but not running, 4 involuntary switches, "
                 "21 minor and 2 major faults",
        "sched_of_an_interval": "sched         call: 4.000 ms runnable but not running since "
                                "0.003000000, 5 involuntary switches, 22 minor and 3 major faults",
        "call": "call          fsync took 12.000 ms on descriptor 9 (file) path "
                "/var/lib/demo/log failed: Input/output error at [libdemo.so.1+0x2234",
        "call_without_more": "call          fsync took 1.000 ms\n",
        "unknown_type": "type-0x3e",
        "begin_of_a_stream": "\u2026 what is known of this thread begins here",
    }.items():
        check(f"cat_shows_{name}", words in p.stdout, f"{words!r} not in {p.stdout}")
    check("cat_time_is_relative", p.stdout.lstrip().startswith("0.000000000  worker/77"),
          p.stdout[:100])


def lines_of(p):
    return [json.loads(line) for line in p.stdout.splitlines()]


def test_cat_json(path):
    p = tacho("cat", path, "--json")
    try:
        events = lines_of(p)
    except ValueError as error:
        check("cat_json_parses", False, f"{error}: {said(p)}")
        return
    check("cat_json_parses", p.returncode == 0 and len(events) > 0, said(p))
    check("cat_json_is_safe", safe_for_terminals(p.stdout), said(p))
    events = [e for e in events if e["type"] != "resume"]
    types = [e["type"] for e in events]
    check("cat_json_has_every_event", types == EXPECTED_TYPES, types)
    if types != EXPECTED_TYPES:
        return
    by_type = {e["type"]: e for e in events}
    poll = by_type["poll-begin"]
    check("cat_json_large_numbers_are_exact", poll["task"] == str(BIG), poll)
    check("cat_json_resolves_ids", poll["kind"]["name"] == "read_request" and
          poll["kind"]["file"] == "demo.c" and poll["kind"]["line"] == 42, poll)
    check("cat_json_times", poll["ns"] == T0 + 2_000_000 and poll["rel_ns"] == 2_000_000 and
          poll["wall"] == "2023-11-14T22:13:20.002000000Z", poll)
    bad = by_type["poll-switch"]["kind"]["name"]
    check("cat_json_keeps_hostile_text", bad == '\x1b[31mred\x07\\xff\u202e"\\end', bad)
    check("cat_json_counter", [e["value"] for e in events if e["type"] == "counter"] ==
          [-5, 0.5], events)
    check("cat_json_fields", by_type["event"]["fields"] ==
          {"status": 200, "delta": -3, "ratio": 1.25, "cached": True, "url": "/index.html"},
          by_type["event"])
    check("cat_json_log", by_type["log"]["text"] == "hello\n\x1b[2J w\u00f6rld", by_type["log"])
    check("cat_json_hist", by_type["poll-hist"]["buckets"] ==
          [{"from_ns": 8, "count": 7}, {"from_ns": 1024, "count": 2}], by_type["poll-hist"])
    check("cat_json_stack", by_type["lock-release"]["at"]["frames"][0] ==
          {"address": "0x401234", "module": "/usr/lib/libdemo.so.1", "offset": "0x2234"},
          by_type["lock-release"])


def test_cat_json_observed(path):
    """What hooks and the kernel's part record."""
    types, p = types_of(path)
    if types != EXPECTED_TYPES:
        check("cat_json_observed", False, said(p))
        return
    events = [e for e in lines_of(p) if e["type"] != "resume"]
    by_type = {}
    for e in events:
        by_type.setdefault(e["type"], []).append(e)
    frame = {"address": "0x401234", "module": "/usr/lib/libdemo.so.1", "offset": "0x2234"}
    work = by_type["work-begin"][0]
    check("cat_json_work", work["kind"]["name"] == "read_request" and work["work"] == 7001 and
          by_type["work-end"][0]["work"] == 7001, work)
    ready, data = by_type["ready"]
    check("cat_json_ready", ready["fd"] == 12 and ready["data"] is None and
          ready["events"] == ["in", "hup", "rdhup", "0x100000"], ready)
    check("cat_json_ready_data", data["fd"] is None and data["data"] == "0x7f0000002000" and
          data["events"] == ["out"], data)
    check("cat_json_late", by_type["late"][0]["late_ns"] == 2_500_000, by_type["late"])
    stack = by_type["stack"][0]
    check("cat_json_stack_of", stack["of"] == 0x7F0000001000 and
          stack["at"]["frames"][0] == frame, stack)
    sample = by_type["sample"][0]
    check("cat_json_sample", sample["cpu_ns"] == 10_000_000 and
          sample["at"]["frames"][0] == frame, sample)
    sched, of_call = by_type["sched"]
    check("cat_json_sched", (sched["runnable_ns"], sched["involuntary_switches"],
                             sched["minor_faults"], sched["major_faults"]) ==
          (3_000_000, 4, 21, 2), sched)
    check("cat_json_sched_of_an_interval",
          (of_call["subject"], of_call["begin_ns"], of_call["runnable_ns"],
           of_call["involuntary_switches"], of_call["minor_faults"], of_call["major_faults"]) ==
          ("call", T0 + 3_000_000, 4_000_000, 5, 22, 3), of_call)
    call, bare = by_type["call"]
    check("cat_json_call", call["call"]["name"] == "fsync" and
          call["duration_ns"] == 12_000_000 and call["on"] == 9 and call["fd_kind"] == "file" and
          call["path"]["name"] == "/var/lib/demo/log" and call["errno"] == 5 and
          call["error"] == "Input/output error" and call["at"]["frames"][0] == frame, call)
    check("cat_json_call_without_more", bare["on"] is None and bare["fd_kind"] is None and
          bare["path"] is None and bare["errno"] is None and bare["at"] is None, bare)


def types_of(path, *options):
    p = tacho("cat", path, "--json", *options)
    try:
        return [e["type"] for e in lines_of(p) if e["type"] != "resume"], p
    except ValueError:
        return None, p


def test_cat_filters(path):
    for name, options, expected in [
        ("type_group", ["--type", "poll"], ["poll-begin", "poll-switch", "poll-end",
                                            "poll-hist"]),
        ("type_list", ["--type", "wake,spawn"], ["wake", "spawn"]),
        ("from_and_to", ["--from", "2ms", "--to", "4.0ms"],
         ["poll-begin", "wake", "poll-switch"]),
        ("from_the_end", ["--from", "-1ms"], ["call", "unknown"]),
        ("to_before_the_end", ["--to", "-39ms"], ["park", "unpark"]),
        ("last", ["--last", "1000us"], ["call", "unknown"]),
        ("last_longer_than_all", ["--last", "1h"], EXPECTED_TYPES),
        ("thread_by_tid", ["--thread", "77", "--type", "wake"], ["wake"]),
        ("thread_by_name", ["--thread", "worker", "--type", "wake"], ["wake"]),
        ("limit_none", ["--limit", "0"], []),
    ]:
        types, p = types_of(path, *options)
        check(f"cat_{name}", types == expected and p.returncode == 0, f"{types} {said(p)}")
    p = tacho("cat", path, "--limit", "3")
    check("cat_limit", len(p.stdout.splitlines()) == 3, said(p))
    p = tacho("cat", path, "--type", "wake", "--time", "wall")
    check("cat_wall_time", p.stdout.startswith("2023-11-14T22:13:20.003000000Z"), said(p))
    p = tacho("cat", path, "--type", "wake", "--time", "mono")
    check("cat_mono_time", p.stdout.lstrip().startswith("5000.003000000 "), said(p))
    p = tacho("cat", path, "--thread", "nobody")
    check("cat_unknown_thread_is_an_error", p.returncode == 1 and "nobody" in p.stderr, said(p))


def test_info(path):
    p = tacho("info", path)
    check("info_succeeds", p.returncode == 0 and p.stderr == "", said(p))
    for name, words in {"process": "4194300 demo, service web", "host": "host, x86-64",
                        "taken": "by dump on 2023-11-14T22:13:30", "type": "poll-begin",
                        "crash": "SIGSEGV (code 1) at address 0xdead in thread worker/77",
                        "frame": "libdemo.so.1+0x2234", "trigger": "slow request",
                        "loss": "no_chunk", "definitions": "2 loop"}.items():
        check(f"info_shows_{name}", words in p.stdout, f"{words!r} not in {p.stdout}")
    check("info_output_cannot_drive_a_terminal", safe_for_terminals(p.stdout), said(p))
    p = tacho("info", path, "--json")
    try:
        info = json.loads(p.stdout)
    except ValueError as error:
        check("info_json_parses", False, f"{error}: {said(p)}")
        return
    check("info_json_parses", p.returncode == 0)
    process = info["processes"][0]
    check("info_json_counts", info["event_count"] == len(EXPECTED_TYPES) and
          process["events"]["pause"] == 2, info)
    check("info_json_losses", {x["name"]: x["count"] for x in process["losses"]}["no_chunk"] == 12,
          process["losses"])
    check("info_json_crash", process["crashes"][0]["signal"] == "SIGSEGV" and
          process["crashes"][0]["frames"][0]["offset"] == "0x2234", process["crashes"])
    check("info_json_no_problems", info["problems"] == [], info["problems"])


def test_damage(folder, data):
    path = os.path.join(folder, "damaged.tacho")
    flipped = bytearray(data)
    flipped[data.index(b"the database")] ^= 1
    with open(path, "wb") as f:
        f.write(flipped)
    p = tacho("info", path)
    check("damaged_block_is_a_warning", p.returncode == 0 and
          "tacho info: warning: " in p.stderr, said(p))
    p = tacho("cat", path)
    check("events_without_definitions_are_shown", p.returncode == 0 and
          "is not in the trace" in p.stdout and "warning" in p.stderr, said(p))
    with open(path, "wb") as f:
        f.write(data[:-200])
    p = tacho("info", path)
    check("cut_file_is_a_warning", p.returncode in (0, 1) and p.stderr.count("tacho info:") > 0,
          said(p))
    bad = [n for n in range(0, len(data), 97)
           if tacho_on_cut(path, data[:n]) not in (0, 1)]
    check("every_cut_ends_in_order", bad == [], f"cuts at {bad[:10]}")


def tacho_on_cut(path, data):
    with open(path, "wb") as f:
        f.write(data)
    return tacho("cat", path).returncode


def test_folder(folder, recording):
    both = os.path.join(folder, "both")
    os.mkdir(both)
    with open(os.path.join(both, "a.tacho"), "wb") as f:
        f.write(recording.trace())
    other = full_recording()
    other.pid, other.comm = 4194299, b"other"
    with open(os.path.join(both, "b.tacho"), "wb") as f:
        f.write(other.trace())
    p = tacho("info", both)
    check("folder_is_one_trace", p.returncode == 0 and "2 processes" in p.stdout and
          "other" in p.stdout, said(p))
    p = tacho("cat", both, "--type", "wake")
    check("folder_lines_name_the_process", "4194300:worker/77" in p.stdout and
          "4194299:worker/77" in p.stdout, said(p))


def test_output(path):
    shell = f"'{BIN}' cat '{path}' --json | head -n 1"
    p = subprocess.run(["/bin/sh", "-c", shell], capture_output=True, timeout=60)
    check("closed_pipe_is_quiet", p.stderr == b"" and p.stdout.count(b"\n") == 1, p.stderr)
    with open("/dev/full", "wb") as full:
        p = subprocess.run([BIN, "info", path], stdout=full, stderr=subprocess.PIPE, timeout=60)
    check("full_disk_is_told", p.returncode == 1 and b"No space left" in p.stderr, p.stderr)
    p = subprocess.run(["/bin/sh", "-c", f"'{BIN}' info '{path}' >&-"], capture_output=True,
                       timeout=60)
    check("closed_output_does_no_harm", p.returncode in (0, 1), p)
    p = tacho("info", path, env={"TERM": "xterm"})
    check("no_colours_in_a_pipe", "\x1b" not in p.stdout + p.stderr, said(p))


def main():
    recording = full_recording()
    data = recording.trace()
    with tempfile.TemporaryDirectory(prefix="tacho-cli-") as folder:
        path = os.path.join(folder, "full.tacho")
        with open(path, "wb") as f:
            f.write(data)
        test_cat_text(path)
        test_cat_json(path)
        test_cat_json_observed(path)
        test_cat_filters(path)
        test_info(path)
        test_damage(folder, data)
        test_folder(folder, recording)
        test_output(path)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
