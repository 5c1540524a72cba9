#!/usr/bin/env python3
"""A reader of trace files, written from docs/format.md alone.

Its parts are librecords.py, libcolumns.py and libcontainer.py. It shares no code with tacho: where the two disagree, the text or the code is wrong.
format_independent.py and format_golden.py compare them.

    format_reader.py FILE     prints what it reads
    format_reader.py          checks itself
"""
import sys

from libcolumns import Column, DELTA, PLAIN
from libcontainer import Clock, Trace, longest_run
from librecords import Bytes, Record, crc32c


def self_check():
    checks = [
        ('the checksum of 123456789', crc32c(b'123456789') == 0xE3069283),
        ('planes', Column(Bytes(b'\0\2\1\2\3\4'), 2, (PLAIN,)).values == [0x301, 0x402]),
        ('bits', Column(Bytes(b'\0\x82\x24'), 3, (PLAIN,)).values == [0, 1, 2]),
        ('zigzag', Column(Bytes(b'\1\1\4\3\2'), 3, (DELTA,)).values == [2, 0, 1]),
        ('a clock between and beyond anchors', [Clock([(100, 1000, False), (200, 3000, False)]).ns(t)
                                                for t in (50, 150, 300)] == [0, 2000, 5000]),
        ('the longest run of anchors', longest_run([(1, 5), (2, 900), (3, 6), (4, 7)]) ==
         [(1, 5), (3, 6), (4, 7)]),
    ]
    for name, good in checks:
        print(f'ok {name}' if good else f'not ok {name}: it came out wrong')
    return not all(good for _, good in checks)


def main():
    if len(sys.argv) < 2:
        return self_check()
    with open(sys.argv[1], 'rb') as file:
        trace = Trace(file.read())
    for ns, thread, stream, what in trace.events():
        if isinstance(what, Record):
            print(ns, thread, stream, f'{what.type:#04x}', what.arg, *what.words)
        else:
            print(ns, thread, stream, 'resume', 'missing', what[0])
    for offset, size, what in trace.problems:
        print(f'problem at {offset}, {size} bytes: {what}', file=sys.stderr)
    return 0


if __name__ == '__main__':
    sys.exit(main())
