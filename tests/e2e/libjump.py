"""A trace as other clocks would have made it: the same records, all of them or those from some time
on, earlier or later. Written from docs/format.md, with what reads traces in tests/e2e. Standard
library only."""
import struct

from libcolumns import DICT, WORDS, read_events
from libcontainer import ABSENT, CLOCK, CRASHES, DEFINITIONS, EVENTS, GAPS, INDEX, META, THREADS, \
    TRIGGERS, Trace
from librecords import SCHED_INTERVAL, crc32c, pad

FIRST, LAST, PARK = 48, 56, 64  # in the header of EVENTS
OPEN_SIZE, OPEN_SINCE = 24, 16
ENTRY_TIMES = {CLOCK: (0, 8), THREADS: (16, 32), TRIGGERS: (8,), CRASHES: (24,), GAPS: (0, 8),
               ABSENT: (16,)}
META_TIMES = (19, 21, 26, 30, 37)  # keys
MODULE, MODULE_SEEN = 10, 24


def shift(payload, offset, by, since=1):
    """Adds `by` to a time at `offset`, if it is not before `since`. 0 is not known."""
    (ns,) = struct.unpack_from('<Q', payload, offset)
    if ns >= since:
        struct.pack_into('<Q', payload, offset, max(ns + by, 0))


def shift_intervals(out, by, since):
    """The times of records that say since when: of SCHED_INTERVAL, in w2."""
    sched = read_events(bytes(out)).columns.get(SCHED_INTERVAL)
    if not sched:
        return
    column = sched.w[1]
    assert column.transform != DICT, 'times are not expected in a list'
    times = [max(ns + by, 0) if ns >= since else ns for ns in column.values]
    out[column.begin:column.end] = struct.pack(f'<BB{len(times)}Q', WORDS, 8, *times)


def shift_events(out, by, since=1):
    shift_intervals(out, by, since)
    size, listed = struct.unpack_from('<I', out)[0], struct.unpack_from('<I', out, 16)[0]
    for offset in (FIRST, LAST, PARK):
        shift(out, offset, by, since)
    for i in range(listed):
        shift(out, size + i * OPEN_SIZE + OPEN_SINCE, by, since)


def entries(payload, head, size_of):
    """(offset of its data, its head) of each entry of META and DEFINITIONS."""
    at, head = 0, struct.Struct(head)
    while at + head.size <= len(payload):
        fields = head.unpack_from(payload, at)
        yield at + head.size, fields
        at += head.size + fields[size_of] + pad(fields[size_of])


def shift_block(kind, out, by):
    """All times of a block. There are no histograms and no calls that did not return."""
    if kind == EVENTS:
        shift_events(out, by)
    elif kind == META:
        for at, (key, _, _) in entries(out, '<HHI', 2):
            if key in META_TIMES:
                shift(out, at, by)
    elif kind == DEFINITIONS:
        for at, (_, _, definition, _) in entries(out, '<IHBB', 1):
            if definition == MODULE:
                shift(out, at + MODULE_SEEN, by)
    elif kind in ENTRY_TIMES:
        size, count = struct.unpack_from('<II', out)
        for i in range(count):
            for offset in ENTRY_TIMES[kind]:
                shift(out, 8 + i * size + offset, by)


def block(kind, number, tag, payload):
    padded = payload + bytes(pad(len(payload)))
    head = struct.pack('<4sHBBIIIII', b'TBLK', kind, 0, 0, len(payload), len(payload), number, tag,
                       crc32c(padded))
    return head + struct.pack('<I', crc32c(head)) + padded


def first_ns(payload):
    return struct.unpack_from('<Q', payload, FIRST)[0]


def rewritten(trace, change):
    """The file with blocks that change(type, payload) has changed, which is given a bytearray."""
    out, listed, index = bytearray(trace.data[:trace.blocks[0].offset]), [], 0
    for b in trace.blocks:
        payload = bytearray(trace.payload(b))
        if b.type == INDEX:
            index = len(out)
            payload = struct.pack('<II', 40, len(listed)) + b''.join(listed)
        else:
            change(b.type, payload)
        entry = [len(out), 32 + len(payload) + pad(len(payload)), b.type, 0, 0, 0, 0, 0]
        if b.type == EVENTS:
            thread, _, entry[3] = struct.unpack_from('<IIH', payload, 4)
            entry[4], entry[5] = thread, struct.unpack_from('<I', payload, 32)[0]
            entry[6], entry[7] = struct.unpack_from('<QQ', payload, FIRST)
        listed.append(struct.pack('<QIHHIIQQ', *entry))
        out += block(b.type, b.number, trace.tag, bytes(payload))
    end = struct.pack('<QQI', index, 0, len(trace.blocks))
    out += end + struct.pack('<I', crc32c(end + b'TACHOEND')) + b'TACHOEND'
    return bytes(out)


def begin_at(data, ns, of_events=False):
    """The file as it would be had its clock stood at `ns` at the earliest time that it tells of,
    or at its first event."""
    trace = Trace(data)
    times = [first_ns(trace.payload(b)) for b in trace.blocks if b.type == EVENTS]
    if not of_events:
        times += [trace.number(19)] + [a[1] for a in trace.anchors] + \
            [t['start'] for t in trace.threads if t['start']]
    by = ns - min(times)
    return rewritten(trace, lambda kind, payload: shift_block(kind, payload, by))


def jump(data, share, by):
    """The file with what lies behind `share` of its time moved by `by` ns, and how many stretches
    of records that concerns, of how many."""
    trace = Trace(data)
    times = [first_ns(trace.payload(b)) for b in trace.blocks if b.type == EVENTS]
    since = int(min(times) + share * (max(times) - min(times)))

    def change(kind, payload):
        if kind == EVENTS and first_ns(payload) >= since:
            shift_events(payload, by, since)
    return rewritten(trace, change), sum(ns >= since for ns in times), len(times)
