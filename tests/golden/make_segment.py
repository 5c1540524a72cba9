#!/usr/bin/env python3
"""Makes the golden file of what minor 1 of the trace format added.

    tests/golden/make_segment.py FOLDER

A segment as an agent writes it: why it was taken, gaps, triggers of sentinels, records of hooks,
and the stream of the kernel. As make.py, of which it uses the bytes, it shares no code with tacho.
"""
import pathlib
import struct
import sys

from make import CLOCK, CRASHES, File, GAPS, LOSSES, PROCESS, REAL0, S, SOURCES, T0, THREADS, \
    TRIGGERS, at, box, definitions, events, named, STACK, TEXT, polls, thread_entry, \
    trigger_entry, variable

NO_AGENT, NO_SPACE, UNWRITABLE, TOO_FAST, KERNEL = range(1, 6)
POLL, WAKE, LAG, SCHED, QUEUE = (n << 8 for n in range(1, 6))


def observed():
    """(kind, arg, words) of each type that hooks record."""
    return [
        (0x4E, 0x2001, [7]), (0x4E, 0x800004, [1 << 63 | 0x7F0000001000]), (0x4F, 0, [1_500_000]),
        (0x41, 4, [99]), (0x4B, 15, [77]), (0x50, 11, [99]), (0x51, 16, [10_101_010]),
        (0xC6, 17, variable(11, 25_000_000, 5, 18 | 110 << 32 | 5 << 48)),
        (0xC6, 17, variable(0, 1_000_000, (1 << 64) - 1, 0)),
        (0xC7, 0, variable(1, 10_000_000, 0x401234, 0x402000)), (0x03, 2, []),
        (0x83, 3, [4_000_000, 12 | 1 << 32]), (0x4C, 15, [77]), (0x4D, 0, [77]), (0x4A, 10, [3]),
        (0x4A, 10, [9]),
    ]


def kernel():
    """Of the stream of the kernel: the thread is preempted, waits, and is sampled in both."""
    above = 0xFFFFFFFF81000000
    return [
        (0x08, 1, []), (0x09, 0, []),
        (0xC8, 2, variable(0, 10_101_010, above + 0x10, above + 0x20, 0x401234, 0x402000)),
        (0x08, 0, []), (0x09, 11, []), (0xC8, 0, variable(1, 10_101_010, 0x401300)),
    ]


def gap(start, end, records, reason, error=0):
    return struct.pack('<QQQIi', T0 + start, T0 + end, records, reason, error)


def v1_segment():
    f = File(0x1101, minor=1)
    process = dict(PROCESS, version=b'0.2.0')
    f.meta(**process, clock=2, taken_mono=T0 + 9 * S, taken_real=REAL0 + 9 * S, taken_by=5,
           alive=1, host=b'host.example', why='poll>50ms: a poll took 73.2 ms — "größe"'.encode(),
           why_mono=T0 + S + 5, segment=7, recording=0x0123456789ABCDEF, agent_cpu=12_345_678)
    f.array(CLOCK, 24, [struct.pack('<QQQ', T0, T0, REAL0),
                        struct.pack('<QQQ', T0 + 2 * S, T0 + 2 * S, REAL0 + 2 * S + 5)])
    f.array(SOURCES, 8, [struct.pack('<HHi', 2, 0, 0)] * 9 + [struct.pack('<HHi', 3, 0, 1)])
    f.array(THREADS, 64, [thread_entry(1, 1, 77, T0 + 5, b'worker')])
    f.array(LOSSES, 8, [struct.pack('<Q', n) for n in range(17)])
    f.array(TRIGGERS, 256, [
        trigger_entry(1, 77, T0 + S, b'slow request', 0, 55),  # of no sentinel: no value either
        trigger_entry(2, 77, T0 + S + 1, b'a poll took long', POLL, 73_200_000),
        trigger_entry(3, 77, T0 + S + 2, b'the queue is long', QUEUE | 1, 1234),
        trigger_entry(4, 77, T0 + S + 3, b'of a newer tacho', 200 << 8, 5)])
    f.array(GAPS, 32, [gap(0, S, 1000, TOO_FAST), gap(S, 3 * S, 0, NO_SPACE, 28),
                       gap(3 * S, 3 * S, 5, KERNEL)])
    f.array(GAPS, 32, [gap(4 * S, 5 * S, 77, NO_AGENT), gap(6 * S, 7 * S, 1, UNWRITABLE, 13)])
    f.array(CRASHES, 848, [])
    f.definitions(definitions(T0) + [
        (16, STACK, 2, struct.pack('<2Q', 0x401234, 0x402000)), (17, TEXT, 0, named(b'connect')),
        (18, TEXT, 0, named(b'/run/resolver'))])
    one = at(T0 + 1000, observed() + polls(4))
    f.events(events(one, sequence=6, prior=5000, loop=2), compress=True)
    f.events(events(at(T0 + 1500, kernel()), stream=15, prior=40), compress=True)
    return f.index()


def watched_box(uid):
    """The box of make.py, of a recording, with an agent and two sentinels."""
    control = struct.pack('<IIIIII', 3, 1, 2, 1, 8, 20)
    limits = [50_000_000, 0, 0, 0, 1000] + [0] * 11
    control += struct.pack('<16Q', *limits) + bytes(512 - 24 - 128)
    return box(uid, control=control, recording=4711)


FILES = {'v1-segment.tacho': v1_segment}


def main():
    folder = pathlib.Path(sys.argv[1])
    for name, make in FILES.items():
        (folder / name).write_bytes(make())


if __name__ == '__main__':
    main()
