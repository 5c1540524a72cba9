#!/usr/bin/env python3
"""Makes the golden files of version 1 of the trace format, byte for byte the same each time.

    tests/golden/make.py FOLDER

It shares no code with tacho or with tests/e2e/format_reader.py: everything is written from
docs/format.md. The files in this folder are never made again once a version was released; a
newer version of the format gets files of its own beside them. format_golden.py checks that
this program still makes what is here.

v1-segment.tacho is made by make_segment.py. v1-dump.tacho alone is made by neither: tacho 0.1.0
wrote it, with its own choice of columns and with libzstd, from the box that box() makes.
"""
import pathlib
import struct
import sys

S = 1_000_000_000
T0 = 5000 * S  # CLOCK_MONOTONIC when recording began
REAL0 = 1_700_000_000 * S  # the same in wall time: 2023-11-14T22:13:20Z
TICKS0 = 77_000_000_000  # the same in ticks
META, CLOCK, THREADS, DEFINITIONS, EVENTS, CHUNK, HISTOGRAMS, LOSSES, TRIGGERS, CRASHES, \
    SOURCES, INDEX = range(1, 13)
GAPS = 15
TEXT, KIND, LOOP, SPAN, COUNTER, GAUGE, PLACE, SCHEMA, STACK, MODULE = range(1, 11)
M64 = (1 << 64) - 1


# Bytes ---------------------------------------------------------------------------------


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def pad(data, to=8):
    return data + bytes(-len(data) % to)


def zstd_frame(data):
    """A zstd frame of raw and run-length blocks: the same with every version of zstd."""
    out = struct.pack('<IBI', 0xFD2FB528, 0xA0, len(data))
    blocks, at = [], 0
    while at < len(data):
        run = len(data[at:]) - len(data[at:].lstrip(data[at:at + 1]))
        if run >= 8:
            blocks.append((1, run, data[at:at + 1]))
            at += run
        elif blocks and blocks[-1][0] == 0:
            blocks[-1] = (0, blocks[-1][1] + run, blocks[-1][2] + data[at:at + run])
            at += run
        else:
            blocks.append((0, run, data[at:at + run]))
            at += run
    for i, (kind, size, body) in enumerate(blocks):
        out += struct.pack('<I', (i + 1 == len(blocks)) | kind << 1 | size << 3)[:3] + body
    return out


# Records, definitions, chunks ----------------------------------------------------------


def text_words(data):
    padded = pad(data)
    return list(struct.unpack(f'<{len(padded) // 8}Q', padded))


def variable(data, *words):
    return [1 + len(words) | data << 16, *words]


def f64(value):
    return struct.unpack('<Q', struct.pack('<d', value))[0]


def record_bytes(delta, kind, arg, words):
    return struct.pack(f'<{1 + len(words)}Q', kind | arg << 8 | delta << 32,
                       *(w & M64 for w in words))


def named(name, file=b'', line=0, value=0, detail=0, unit=b''):
    return struct.pack('<QIHHBB', value, line, len(name), len(file), detail, len(unit)) + \
        name + file + unit


def schema(name, *fields):
    return struct.pack('<HH', len(name), len(fields)) + name + b''.join(
        struct.pack('<BB', kind, len(field)) + field for field, kind in fields)


def module(start, end, offset, seen, build_id, path):
    return struct.pack('<QQQQBBH', start, end, offset, seen, len(build_id), 0, len(path)) + \
        build_id + path


def definitions(seen):
    """(id, class, flags, payload); id 14 is one that was reserved and never finished."""
    return [
        (1, TEXT, 0, named(b'(names full)')),
        (2, LOOP, 0, named(b'main', b'server.c', 120, 1, 3)),
        (3, LOOP, 0, named(b'main', b'server.c', 120, 2, 1)),
        (4, KIND, 0, named(b'read_request', b'server.c', 42, 0x401100)),
        (5, KIND, 1, named(b'a name that was c')),
        (6, SPAN, 0, named('größe'.encode(), b'span.c')),
        (7, COUNTER, 0, named(b'requests', b'', 0, 0, 1, b'req')),
        (8, GAUGE, 0, named(b'load', b'', 0, 0, 2, b'%')),
        (9, PLACE, 0, named(b'take_lock', b'lock.c', 7)),
        (10, TEXT, 0, named(b'bytes \xff\x1b that are no text')),
        (11, STACK, 1, struct.pack('<3Q', 0x401234, 0x402000, 0x999999)),
        (12, MODULE, 0, module(0x400000, 0x500000, 0x1000, seen, bytes(range(20)),
                               b'/usr/lib/libserver.so.1')),
        (13, SCHEMA, 0, schema(b'request_done', (b'status', 1), (b'delta', 2), (b'ratio', 3),
                               (b'cached', 4), (b'url', 5), (b'note', 0x85))),
        (15, KIND, 0, named(b'write_reply', b'server.c', 77)),
    ]


def every_type():
    """(kind, arg, words) of each type, and of texts and fields in their shapes."""
    url, note = b'/index.html', b'12345678'
    values = [200, -3 & M64, f64(1.25), 1]
    with_url = variable(0b011111, *values, len(url), *text_words(url))
    with_note = variable(0b111110, *values[1:], len(url) | 1 << 15, *text_words(url), len(note),
                         *text_words(note))
    return [
        (0x07, 2, []), (0x01, 2, []), (0x02, 3, []), (0x41, 4, [1 << 63 | 12345]),
        (0x43, 0, [1234]), (0x42, 5, [1234]), (0x04, 6, []), (0xC2, 0, variable(
            0, 0, 0x0123456789ABCDEF, 0xFEDCBA9876543210)), (0x05, 6, []), (0x03, 1, []),
        (0x06, 1, []), (0x06, 0, []), (0x44, 0, [1234]), (0x45, 9, [0x7F0000001000]),
        (0x46, 1, [0x7F0000001000]), (0x45, 11, [0x7F0000001000]), (0x46, 0, [0x7F0000001000]),
        (0x80, 9, [0x7F0000001000, 4]), (0x47, 2, [17]), (0x48, 7, [-5 & M64]),
        (0x48, 8, [f64(0.5)]), (0x82, 6, [900, 800]), (0xC2, 0, variable(0, 900, 1, 2)),
        (0x49, 6, [900]), (0x4A, 10, [1]), (0x81, 2, [3, 6]),
        (0xC0, 4, variable(9, 1234, 55)), (0xC0, 15, variable(0, 1235, 0)),
        (0xC1, 10, variable(11, 1234, 66)), (0xC1, 0, variable(0, 1235, 0)),
        (0xC3, 3, variable(15, *text_words(b'hello w\xc3\xb6rld\n\x00'))),
        (0xC3, 0, variable(0)), (0xC3, 255, variable(4 | 1 << 15, *text_words(b'cut\xff'))),
        (0xC4, 13, with_url), (0xC4, 13, with_note), (0xC4, 13, variable(0)),
        (0x4A, 99, [2]),  # an id that is not in the trace
    ]


def polls(count):
    """What most of a trace is: a few tasks, woken and polled."""
    out = []
    for i in range(count):
        task = 0x5600_0000_0000 + 64 * (i * i % 7)
        out += [(0x43, 0, [task + 64]), (0x41, (4, 15, 4, 5)[i % 4 if i > 9 else i % 2], [task]),
                (0x03, 1 + i % 2, [])]
    return out


def opened(kind, what, task, since):
    return struct.pack('<IIQQ', kind, what, task, since)


def chunk(generation, records, anchor, thread=1, tid=77, flags=0, stream=0, sequence=0, loop=0,
          prior=0, drops=0, name=b'worker', opens=(), open_count=None, park=0, size=65536):
    """records: (ticks since the one before, kind, arg, words)."""
    body = b''.join(record_bytes(*r) for r in records)
    count = sum(r[1] != 0x40 for r in records)
    head = struct.pack('<QQIIIIIHHII', generation, 256 + len(body), 0x4B4E4843, size, thread, tid,
                       flags, stream, len(opens) if open_count is None else open_count, sequence,
                       loop)
    head += struct.pack('<QQQ', *anchor, 0) + struct.pack('<QQII16s', 0, prior, count, drops, name)
    head += b''.join(opens).ljust(120, b'\0') + struct.pack('<QQQ', park, 0, 0)
    return head + body


# EVENTS --------------------------------------------------------------------------------

PLAIN, DELTA, DICT, MATE, WORDS = range(5)


def column(values, transform=PLAIN, list_=None, width=None):
    if transform == WORDS:
        return struct.pack(f'<BB{len(values)}Q', 4, 8, *values)
    if transform == DELTA:
        deltas = [(b - a) & M64 for a, b in zip([0, *values], values)]
        values = [(d << 1 ^ (M64 if d >> 63 else 0)) & M64 for d in deltas]
    top = max(values, default=0)
    if width is None:
        width = 0 if top == 0 else 0x81 if top < 2 else 0x82 if top < 4 else 0x84 if top < 16 \
            else (top.bit_length() + 7) // 8
    out = bytes([transform, width]) + (b'' if list_ is None else bytes([list_]))
    if width & 0x80:
        bits = width & 0x7F
        packed = sum(v << i * bits for i, v in enumerate(values))
        return out + packed.to_bytes((len(values) * bits + 7) // 8, 'little')
    for i in range(width):
        out += bytes(v >> 8 * i & 0xFF for v in values)
    return out


class List:
    def __init__(self):
        self.values, self.row, self.mates = [], [], {}

    def use(self, value):
        if value in self.row:
            place = self.row.index(value) + 1
            self.row.remove(value)
        else:
            place = 0
            self.values.append(value)
        self.row.insert(0, value)
        return place


def events(records, plan=None, first_ns=None, thread=1, tid=77, stream=0, sequence=0, flags=0,
           loop=0, drops=0, prior=0, park=0, name=b'worker', opens=(), open_count=None, more=b''):
    """records: (ns, kind, arg, words). plan: {(kind, 'arg' | 'w0' ...): (transform, list)},
    with None for all that it does not name; 'width' forces the width of all columns."""
    plan = plan or {}
    width = plan.get('width')
    ns = [r[0] for r in records] or [first_ns]
    out = struct.pack('<IIIHHIIIIIIQQQQ16sQ', 96 + len(more), thread, tid, stream,
                      len(opens) if open_count is None else open_count, len(opens), sequence,
                      flags, loop, len(records), drops, prior, ns[0], ns[-1], park, name, 0)
    out += more + b''.join(opens)
    kinds = sorted({r[1] for r in records})
    out += bytes([len(kinds), records[0][1], records[-1][1]]) if records else bytes(3)
    for k in kinds:
        out += struct.pack('<BI', k, sum(r[1] == k for r in records))
    pairs = list(zip(records, records[1:]))
    follow = {k: list(dict.fromkeys(b[1] for a, b in pairs if a[1] == k)) for k in kinds}
    for k in kinds:
        out += bytes([len(follow[k]), *follow[k]])
        out += column([follow[k].index(b[1]) for a, b in pairs if a[1] == k])
    for k in kinds:
        for f in follow[k]:
            out += column([b[0] - a[0] for a, b in pairs if (a[1], b[1]) == (k, f)],
                          plan.get('times', PLAIN), width=width)
    lists = [List() for _ in range(plan.get('lists', 0))]
    columns = {}

    def put(key, value):
        columns.setdefault(key, []).append(value)

    for _, k, arg, words in records:
        if k >> 6 == 3:
            put((k, 'words'), len(words))
            put((k, 'data'), words[0] >> 16)
        for i, w in enumerate(words):
            if k >> 6 == 3 and i == 0:
                continue
            if i > 3:
                put((k, 'rest'), w)
                continue
            transform, list_ = plan.get((k, f'w{i}'), plan.get('words', (PLAIN, None)))
            put((k, f'w{i}'), lists[list_].use(w) if transform == DICT else w)
        if plan.get((k, 'arg')) == MATE:
            item = words[1 if k >> 6 == 3 else 0]
            mates = lists[plan[(k, 'w1' if k >> 6 == 3 else 'w0')][1]].mates
            if item in mates:
                put((k, 'arg'), 0 if mates[item] == arg else arg + 1)
            else:
                put((k, 'new'), arg)
            mates[item] = arg
        else:
            put((k, 'arg'), arg)
    out += bytes([len(lists)])
    for one in lists:
        out += struct.pack('<I', len(one.values)) + column(one.values, DELTA)
    for k in kinds:
        arg = columns.get((k, 'arg'), [])
        if plan.get((k, 'arg')) == MATE:
            new = columns.get((k, 'new'), [])
            out += struct.pack('<BBI', MATE, 0, len(new)) + column(new, DELTA) + column(arg)
        else:
            out += column(arg, plan.get((k, 'arg'), PLAIN), width=width)
        names = ['w0', 'w1'][:k >> 6]
        if k >> 6 == 3:
            out += column(columns[(k, 'words')], width=1)
            out += column(columns[(k, 'data')], plan.get((k, 'data'), PLAIN), width=width)
            names = ['w1', 'w2', 'w3']
        for n in names:
            transform, list_ = plan.get((k, n), plan.get('words', (PLAIN, None)))
            out += column(columns.get((k, n), []), transform, list_,
                          None if transform == DICT else width)
        if k >> 6 == 3:
            out += column(columns.get((k, 'rest'), []), WORDS)
    return out


# The file ------------------------------------------------------------------------------


class File:
    def __init__(self, tag, minor=0, header_size=64, major=1):
        head = struct.pack('<8sHHIIIQ28s', b'TACHOTRC', major, minor, header_size, tag, 0,
                           REAL0 + 99, b'')
        self.data = (head + struct.pack('<I', crc32c(head))).ljust(header_size, b'\0')
        self.tag, self.number, self.entries = tag, 0, []

    def block(self, kind, payload, compress=False, entry=(0, 0, 0, 0, 0)):
        """entry: stream, thread, count, first_ns, last_ns."""
        stored = zstd_frame(payload) if compress else payload
        padded = pad(stored)
        head = struct.pack('<IHBBIIIII', 0x4B4C4254, kind, int(compress), 0, len(stored),
                           len(payload), self.number, self.tag, crc32c(padded))
        self.entries.append((len(self.data), 32 + len(padded), kind, *entry))
        self.data += head + struct.pack('<I', crc32c(head)) + padded
        self.number += 1

    def events(self, payload, compress=False):
        thread, _, stream = struct.unpack_from('<IIH', payload, 4)
        count, = struct.unpack_from('<I', payload, 32)
        first, last = struct.unpack_from('<QQ', payload, 48)
        self.block(EVENTS, payload, compress, (stream, thread, count, first, last))

    def array(self, kind, size, entries, more=0):
        """`more`: bytes that a newer minor has behind each entry."""
        self.block(kind, struct.pack('<II', size + more, len(entries)) +
                   b''.join(e + b'\xEE' * more for e in entries))

    def meta(self, **values):
        keys = dict(pid=1, uid=2, start_time=3, boot_id=4, exe=5, comm=6, build_id=7, service=8,
                    clock=9, max_bytes=10, min_age=11, poll_threshold=12, state=13, reason=14,
                    parent_pid=15, box_name=16, host=17, arch=18, created_mono=19,
                    created_real=20, taken_mono=21, taken_real=22, taken_by=23, version=24,
                    alive=25, cut_before=26, unread_chunks=27, threads_seen=28, why=29, why_mono=30,
                    segment=31, recording=32, agent_cpu=33, unknown=999)
        out = b''
        for key, value in values.items():
            value = struct.pack('<Q', value) if isinstance(value, int) else value
            out += struct.pack('<HHI', keys[key], 0, len(value)) + pad(value)
        self.block(META, out)

    def definitions(self, entries):
        self.block(DEFINITIONS, b''.join(
            struct.pack('<IHBB', number, len(payload), kind, flags) + pad(payload)
            for number, kind, flags, payload in entries))

    def index(self):
        entries = [struct.pack('<QIHHIIQQ', *e) for e in self.entries]
        offset = len(self.data)
        self.array(INDEX, 40, entries)
        return self.end(offset)

    def end(self, index_offset=0):
        end = struct.pack('<QQI', index_offset, 0, self.number)
        self.data += end + struct.pack('<I', crc32c(end + b'TACHOEND')) + b'TACHOEND'
        return self.data


PROCESS = dict(pid=4194300, uid=1000, start_time=4711, boot_id=bytes(range(16)),
               exe=b'/usr/bin/server', comm=b'server', build_id=bytes(range(100, 120)),
               service=b'web', max_bytes=1 << 20, min_age=0, poll_threshold=0, state=2,
               arch=62, created_mono=T0, created_real=REAL0, version=b'0.1.0', threads_seen=4)


def thread_entry(state, number, tid, start, name, pending=(0, 0, 0)):
    task, ticks, kind = pending
    return struct.pack('<IIIIQQQII16s', state, number, tid, 0xFFFFFFFF, start, task, ticks, kind,
                       0, name)


def trigger_entry(number, tid, ticks, reason, flags=0, value=0):
    return struct.pack('<IIQII200sQ24x', number, tid, ticks, len(reason), flags, reason, value)


def crash_entry(state, ticks, regs=(), frames=(), flags=0, tid=77, number=11):
    return struct.pack('<IIiiQQ16sIIII', state, tid, number, 1, 0xDEADBEEF, ticks, b'worker',
                       len(regs), len(frames), 62, flags) + \
        struct.pack('<34Q', *regs, *[0] * (34 - len(regs))) + \
        struct.pack('<64Q', *frames, *[0] * (64 - len(frames)))


def hist_entry(kind, loop, thread, since, total, counts):
    return struct.pack('<IIIIQQ', kind, loop, thread, 0, since, total) + \
        struct.pack('<40I', *(counts.get(b, 0) for b in range(40))) + bytes(64)


def at(ns, records, step=1000):
    """Records with times: `step` apart, but two at one instant now and then."""
    out = []
    for i, r in enumerate(records):
        out.append((ns, *r))
        ns += step * (i % 5) + i % 3
    return out


RICH = {'lists': 2, 'times': DELTA, (0x41, 'w0'): (DICT, 0), (0x43, 'w0'): (DICT, 0),
        (0x41, 'arg'): MATE, (0xC0, 'w1'): (DICT, 1), (0xC0, 'arg'): MATE,
        (0xC0, 'w2'): (DICT, 1), (0xC1, 'w1'): (DICT, 1), (0x44, 'w0'): (DICT, 0),
        (0x45, 'arg'): DELTA, (0xC0, 'data'): DELTA, (0x45, 'w0'): (DELTA, None),
        (0x46, 'w0'): (WORDS, None), (0xC4, 'w1'): (WORDS, None)}
WIDE = {'width': 8}
ALL_WORDS = {'words': (WORDS, None)}


def v1_events():
    """As `tacho dump` writes it: EVENTS of all types, an index, a tick is a nanosecond."""
    f = File(0x1001)
    f.meta(**PROCESS, clock=2, taken_mono=T0 + 9 * S, taken_real=REAL0 + 9 * S, taken_by=3,
           alive=1, host=b'host.example', box_name=b'4194300-4711-0.box', parent_pid=4194200,
           reason=b'The box could not grow.')
    f.array(CLOCK, 24, [struct.pack('<QQQ', T0, T0, REAL0),
                        struct.pack('<QQQ', T0 + 2 * S, T0 + 2 * S, REAL0 + 2 * S + 5)])
    f.array(SOURCES, 8, [struct.pack('<HHi', *e) for e in ((2, 0, 0), (1, 0, 0), (3, 0, 13))])
    f.array(THREADS, 64, [thread_entry(1, 1, 77, T0 + 5, b'worker'),
                          thread_entry(2, 2, 78, T0 + 7, b'ended'), bytes(64)])
    f.array(LOSSES, 8, [struct.pack('<Q', n) for n in (3, 0, 1, 0, 2, 0, 100, 1)])
    f.array(TRIGGERS, 256, [trigger_entry(1, 77, T0 + S, b'slow request'),
                            trigger_entry(2, 78, T0 + 2 * S, b'x' * 200, 1), bytes(256)])
    f.array(CRASHES, 848, [])
    f.definitions(definitions(T0)[:7])
    f.definitions(definitions(T0)[7:])
    every = every_type() + [(0xC5, 4, variable(2, 0, T0 - 500, 5000, 3 << 48 | 7, 10 << 48 | 2))]
    one = at(T0 + 1000, every)
    two = at(one[-1][0] + 5, polls(20) + every)
    three = at(two[-1][0] + S, polls(3))
    f.events(events(one, WIDE, loop=2), compress=True)
    f.events(events(two, RICH, sequence=1, prior=len(one), loop=2, flags=1,
                    opens=[opened(4, 0x41, 1234, T0 + 2000), opened(6, 0x04, 0, T0 + 2100)]))
    # A hole: 100 records in an overwritten chunk; then drops, an empty stretch, a cut one.
    f.events(events(three, ALL_WORDS, sequence=3, prior=len(one + two) + 100, loop=2, flags=2,
                    park=T0 + 999, opens=[opened(4, 0x41, 1, 0)] * 5, open_count=9), compress=True)
    f.events(events([], sequence=4, prior=len(one + two + three) + 100, drops=12, loop=3,
                    first_ns=three[-1][0] + 10))
    f.events(events(at(T0 + 1500, polls(2)), stream=1))
    f.events(events(at(T0 + 3000, every[:9]), thread=2, tid=78, name=b'ended', sequence=5, prior=70,
                    flags=0x101))
    f.meta(unread_chunks=2, cut_before=T0 + 3000)
    return f.index()


def chunks():
    """What v1-chunks.tacho and the box hold: a clock of three ticks a nanosecond, not quite."""
    def anchor(ns, off=0):
        return TICKS0 + 3 * (ns - T0) + off, ns

    every = every_type() + [(0xC5, 4, variable(2, 0, TICKS0, 15000, 3 << 48 | 7, 10 << 48 | 2))]
    first = [(7 + 3000 * (i % 4), *r) for i, r in enumerate(every)]
    late = TICKS0 + 3 * 9 * S + 1
    second = [(10 * i, *r) for i, r in enumerate(polls(12))]
    second += [(0, 0x40, 0, [late]), (0, 0x41, 4, [9]), (1, 0x04, 6, [])]
    signal_ = [(5, 0x41, 15, [10]), (5, 0xC3, 1, variable(2, *text_words(b'hi'))), (5, 0x03, 2, [])]
    quiet = [(4, 0x41, 4, [5]), (6, 0x03, 2, [])]
    return [
        chunk(1, first, anchor(T0 + 1000), flags=1, loop=2),
        chunk(4, second, anchor(T0 + 2 * S, 31), sequence=1, prior=len(first), loop=2, flags=2,
              park=TICKS0 + 3100, opens=[opened(4, 0x41, 1234, TICKS0 + 3050)]),
        chunk(2, signal_, anchor(T0 + S, -20), stream=1, size=4096),
        # Its entry in the table was taken by another thread.
        chunk(3, quiet, anchor(T0 + S + 5), thread=2, tid=78, name=b'gone', size=4096, flags=1),
        # Begun, and nothing stored yet but what was dropped before it.
        chunk(5, [], anchor(T0 + 3 * S), thread=4, tid=80, name=b'busy', sequence=2, prior=50,
              drops=6, size=4096),
    ]


def chunk_threads():
    return [thread_entry(1, 1, 77, TICKS0 + 3000, b'worker'),
            thread_entry(1, 3, 79, TICKS0 + 9000, b'pending', (321, TICKS0 + 90000, 15)),
            thread_entry(1, 4, 80, TICKS0, b'busy')]


def chunk_hists():
    """The first stands in a record already; the last two come behind all records."""
    return [hist_entry(4, 2, 1, TICKS0, 15000, {3: 7, 10: 2}), bytes(256),
            hist_entry(15, 2, 1, TICKS0 + 3_000_000, 999, {0: 1, 39: 4}),
            hist_entry(4, 0, 3, TICKS0 + 60000, 33, {5: 1})]


def chunk_crashes():
    return [crash_entry(3, TICKS0 + 3 * 9 * S, range(23), [0x401234, 0x402000], 1),
            crash_entry(1, TICKS0 + 3 * 9 * S + 9, tid=80, number=6), bytes(848)]


def v1_chunks():
    """As the crash handler writes it: CHUNK blocks, plain, no index."""
    f = File(0x1002)
    f.meta(**PROCESS, clock=2, taken_mono=T0 + 20 * S, taken_real=REAL0 + 20 * S, taken_by=2,
           alive=1)
    f.array(CLOCK, 24, [struct.pack('<QQQ', TICKS0, T0, REAL0)])
    f.array(SOURCES, 8, [struct.pack('<HHi', *e) for e in ((2, 0, 0), (2, 0, 0))])
    for one in chunks():
        f.block(CHUNK, one)
    f.definitions(definitions(TICKS0))
    for part in chunk_threads()[:2], chunk_threads()[2:]:
        f.array(THREADS, 64, part)
    for part in chunk_hists()[:1], chunk_hists()[1:]:
        f.array(HISTOGRAMS, 256, part)
    f.array(LOSSES, 8, [struct.pack('<Q', 0)] * 16)
    f.array(TRIGGERS, 256, [trigger_entry(1, 77, TICKS0 + 3 * S, b'slow request')])
    f.array(CRASHES, 848, chunk_crashes())
    return f.end()


def v1_cut():
    """v1-events without its end, its index and half of its last EVENTS block."""
    whole = v1_events()
    return whole[:whole.rindex(struct.pack('<IH', 0x4B4C4254, EVENTS)) + 96]


def v1_newer():
    """Of a minor that is not there yet: unknown blocks, keys, classes, records; longer entries."""
    f = File(0x1003, minor=7, header_size=96)
    f.block(99, b'what this is nobody knows yet')
    f.meta(**PROCESS, clock=2, unknown=b'?', taken_by=9, alive=1)
    f.array(CLOCK, 24, [struct.pack('<QQQ', TICKS0, T0, REAL0),
                        struct.pack('<QQQ', TICKS0 + 30 * S, T0 + 10 * S, REAL0 + 10 * S)], 8)
    f.array(SOURCES, 8, [struct.pack('<HHi', 2, 0, 0)] * 14, 8)
    f.array(THREADS, 64, [thread_entry(1, 1, 77, TICKS0, b'worker'),
                          thread_entry(9, 2, 78, TICKS0, b'of a new state')], 16)
    f.array(LOSSES, 8, [struct.pack('<Q', i) for i in range(20)])
    f.array(TRIGGERS, 256, [trigger_entry(1, 77, TICKS0, b'slow request')], 64)
    f.array(CRASHES, 848, [crash_entry(3, TICKS0, range(34), [0x401234])], 8)
    f.array(GAPS, 32, [struct.pack('<QQQIi', T0, T0 + S, 0, 99, 0)], 16)
    f.definitions(definitions(TICKS0) + [(16, 77, 0, b'a class of its own')])
    new = [(0x3E, 5, []), (0x7F, 6, [7]), (0xBF, 8, [9, 10]), (0xFE, 11, variable(12, 13)),
           (0xFF, 0, variable(1, 2, 3, 4, 5, 6)), (0x03, 7, []), (0x41, 16, [1]),
           (0xC0, 4, variable(9, 1234, 55, 66, 77, 88)), (0x03, 2, [])]
    f.events(events(at(T0 + 1000, new), more=b'\xEE' * 24), compress=True)
    f.block(98, b'')
    f.block(CHUNK, chunk(1, [(3000, *r) for r in new], (TICKS0 + 30000, T0 + 10000), sequence=1,
                         prior=len(new), flags=0x80))
    return f.index()


# The box -------------------------------------------------------------------------------


def box(uid, version=1, state=2, control=bytes(128), recording=0):
    """A box with what v1-chunks.tacho holds, and what a reader must not take for more."""
    sizes = [(len(control), 1), (8, 64), (256, 64), (848, 8), (64, 8), (256, 8), (16, 64), (4, 64),
             (1, 8192), (16, 4), (65536, 4)]
    offset, regions, places = 4096, b'', []
    for i, (entry, count) in enumerate(sizes):
        offset += -offset % (65536 if i == 10 else 4096)
        places.append(offset)
        regions += struct.pack('<QQII', offset, entry * count, entry, count)
        offset += entry * count
    out = bytearray(offset)

    def put(region, content, behind=0):
        start = places[region] + behind
        out[start:start + len(content)] = content

    directory, data = bytearray(16 * 64), b''
    for number, kind, flags, payload in definitions(TICKS0):
        struct.pack_into('<IHBBII', directory, 16 * number, len(data) // 8 + 1, len(payload), kind,
                         flags, 0, 0)
        data += pad(payload)
    whole, later, in_handler, gone, busy = chunks()
    put(0, control)
    put(2, trigger_entry(1, 77, TICKS0 + 3 * S, b'slow request'))
    put(3, b''.join(chunk_crashes()))
    put(4, b''.join(chunk_threads()))
    put(5, b''.join(chunk_hists()))
    put(6, directory)
    put(8, data)
    taken = (0b1111 << 24) | (2 << 40) | 2
    put(9, struct.pack('<QII', 1 | 1 << 40, 0xFFFF, 0) + struct.pack('<QII', taken, 0xF, 0) +
        struct.pack('<QII', 1 | 3 << 40, 0xFFFF, 0) + struct.pack('<QII', 1 | 1 << 40, 0xFFFF, 0))
    put(10, whole)
    # Behind the commit of a chunk stands what was being stored.
    put(10, later + b'\xFF' * 40, 2 * 65536)
    put(10, in_handler, 65536)
    put(10, gone, 65536 + 4096)
    put(10, busy, 65536 + 2 * 4096)
    # Being made: generation 0. Not given out since the split. Younger than the superblock.
    put(10, chunk(0, [(1, 1, 2, [])], (TICKS0, T0)), 65536 + 3 * 4096)
    put(10, chunk(6, [(1, 1, 2, [])], (TICKS0, T0), thread=9, size=4096), 65536 + 4 * 4096)
    put(10, chunk(99, [(1, 1, 2, [])], (TICKS0, T0), thread=9), 3 * 65536)
    p = PROCESS
    sup = struct.pack('<8sIIQIiIIQ16sII', b'TACHOBOX', version, 4096, offset, state, 0, p['pid'],
                      uid, p['start_time'], p['boot_id'], 2, 11)
    sup += struct.pack('<QQQQQ', TICKS0, T0, REAL0, p['min_age'], p['poll_threshold'])
    sup += struct.pack('<IIIIIIIIQQQ24x', 65536, 4096, 4, 3, 4, p['threads_seen'], 16, 1, len(data),
                       6, recording)
    sup += regions + bytes(24 * 5)
    sup += struct.pack('<HHi', 2, 0, 0) * 2 + bytes(8 * 30)
    sup += struct.pack('<IB3x20s16s64s512s256s', 0, 20, p['build_id'], p['comm'], p['service'],
                       p['exe'], b'')
    assert len(sup) == 1708
    out[:len(sup)] = sup
    return bytes(out)


FILES = {'v1-events.tacho': v1_events, 'v1-chunks.tacho': v1_chunks, 'v1-cut.tacho': v1_cut,
         'v1-newer.tacho': v1_newer}


def main():
    folder = pathlib.Path(sys.argv[1])
    for name, make in FILES.items():
        (folder / name).write_bytes(make())


if __name__ == '__main__':
    main()
