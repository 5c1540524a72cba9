"""A trace as a clock that jumped would have made it: the same records, from some time on earlier
or later. Written from docs/format.md, with what reads traces in tests/e2e. Standard library only."""
import struct

from libcontainer import EVENTS, INDEX, Trace
from librecords import crc32c, pad

FIRST, LAST, PARK = 48, 56, 64  # in the header of EVENTS
OPEN, OPEN_SIZE, OPEN_SINCE = 96, 24, 16


def shift(payload, offset, since, by):
    """Adds `by` to a time at `offset`, if it is not before `since`."""
    (ns,) = struct.unpack_from('<Q', payload, offset)
    if ns >= since:
        struct.pack_into('<Q', payload, offset, max(ns + by, 0))


def moved(payload, since, by):
    """The payload of EVENTS whose records are all of `since` or later, by so much."""
    out = bytearray(payload)
    size, listed = struct.unpack_from('<I', out)[0], struct.unpack_from('<I', out, 16)[0]
    for offset in (FIRST, LAST, PARK):
        shift(out, offset, since, by)
    for i in range(listed):
        shift(out, size + i * OPEN_SIZE + OPEN_SINCE, since, by)
    return bytes(out)


def block(kind, number, tag, payload):
    padded = payload + bytes(pad(len(payload)))
    head = struct.pack('<4sHBBIIIII', b'TBLK', kind, 0, 0, len(payload), len(payload), number, tag,
                       crc32c(padded))
    return head + struct.pack('<I', crc32c(head)) + padded


def first_ns(payload):
    return struct.unpack_from('<Q', payload, FIRST)[0]


def jump(data, share, by):
    """The file with what lies behind `share` of its time moved by `by` ns, and how many stretches
    of records that concerns, of how many."""
    trace = Trace(data)
    payloads = [trace.payload(b) for b in trace.blocks]
    times = [first_ns(p) for b, p in zip(trace.blocks, payloads) if b.type == EVENTS]
    since = int(min(times) + share * (max(times) - min(times)))
    out, entries, index, count = bytearray(data[:trace.blocks[0].offset]), [], 0, 0
    for b, payload in zip(trace.blocks, payloads):
        if b.type == INDEX:
            index = len(out)
            payload = struct.pack('<II', 40, len(entries)) + b''.join(entries)
        elif b.type == EVENTS and first_ns(payload) >= since:
            payload, count = moved(payload, since, by), count + 1
        entry = [len(out), 32 + len(payload) + pad(len(payload)), b.type, 0, 0, 0, 0, 0]
        if b.type == EVENTS:
            thread, _, entry[3] = struct.unpack_from('<IIH', payload, 4)
            entry[4], entry[5] = thread, struct.unpack_from('<I', payload, 32)[0]
            entry[6], entry[7] = struct.unpack_from('<QQ', payload, FIRST)
        entries.append(struct.pack('<QIHHIIQQ', *entry))
        out += block(b.type, b.number, trace.tag, payload)
    end = struct.pack('<QQI', index, 0, len(trace.blocks))
    out += end + struct.pack('<I', crc32c(end + b'TACHOEND')) + b'TACHOEND'
    return bytes(out), count, len(times)
