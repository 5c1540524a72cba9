#!/usr/bin/env python3
"""The golden files in tests/golden: every reader says of them what it always said.

    format_golden.py             compares
    format_golden.py --update    writes what tacho says now beside them; the files themselves
                                 are never made again (docs/format.md, section 16)
"""
import json
import os
import pathlib
import re
import shutil
import struct
import sys
import tempfile

import libcolumns
import libformat
from libcontainer import Trace
from libformat import check, difference, first_difference, tacho
from librecords import Bad

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / 'tests/golden'
sys.path.insert(0, str(GOLDEN))
sys.dont_write_bytecode = True
import make  # noqa: E402
import make_segment  # noqa: E402

NAMES = ['v1-chunks', 'v1-cut', 'v1-dump', 'v1-events', 'v1-newer', 'v1-segment']
# What is wrong with them, as the stable names of problems.
PROBLEMS = {'v1-cut': ['cut'], 'v1-events': ['overwritten-while-read']}


def line_difference(expected, got):
    for i, (a, b) in enumerate(zip(expected.splitlines(), got.splitlines()), 1):
        if a != b:
            at = next((k for k, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            return f'line {i}: expected ...{a[max(at - 30, 0):at + 60]!r}, got ' \
                   f'...{b[max(at - 30, 0):at + 60]!r}'
    return f'{len(expected.splitlines())} lines expected, {len(got.splitlines())} came'


def golden(name, update):
    for command in ('info', 'cat'):
        path = GOLDEN / f'{name}.{command}.json'
        p = tacho(command, '--json', f'{name}.tacho', cwd=GOLDEN)
        if update:
            path.write_text(p.stdout)
        expected = path.read_text()
        check(f'{name}: tacho {command} says what it always said',
              p.returncode == 0 and p.stdout == expected,
              f'exit {p.returncode}: {p.stderr or line_difference(expected, p.stdout)}')
    trace = Trace((GOLDEN / f'{name}.tacho').read_bytes())
    why = difference(libformat.Json(trace).events(), libformat.cat(f'{name}.tacho', cwd=GOLDEN))
    check(f'{name}: the independent reader finds the same events', not why, why)
    why = first_difference(libformat.info(trace),
                           libformat.tacho_info(f'{name}.tacho', cwd=GOLDEN))
    check(f'{name}: the independent reader finds the same facts', not why, why)
    said = re.findall(r'"problems": (\[.*\])', (GOLDEN / f'{name}.info.json').read_text(), re.S)
    names = re.findall(r'"name": "([^"]*)"', said[0])
    check(f'{name}: what is wrong with it is said', names == PROBLEMS.get(name, []), names)


def example():
    """The worked example of docs/format.md is what its table says."""
    section = (ROOT / 'docs/format.md').read_text().split('## 9. A worked example')[1]
    section = section.split('## 10.')[0]
    rows = re.findall(r'^\| (\d+) \| ([0-9a-f]{2}) \w+ \| (\d+) \| ?(\d*) ?\|$', section, re.M)
    code = section.split('```')[1]
    payload = bytes.fromhex(''.join(line.split(';')[0] for line in code.splitlines()))
    s = libcolumns.read_events(payload)
    got = [(str(r.time), f'{r.type:02x}', str(r.arg), str(r.words[0]) if r.words else '')
           for r in s.records]
    check('the worked example of the specification decodes to its table', rows == got and len(rows) == 9,
          f'{got} instead of {rows}')
    f = make.File(1)
    f.events(payload)
    with tempfile.TemporaryDirectory(prefix='tacho-test-') as folder:
        path = pathlib.Path(folder, 'example.tacho')
        path.write_bytes(f.index())
        said = libformat.cat(path)
        times = [str(e['ns']) for e in said if e['type'] != 'resume'] if isinstance(said, list) \
            else said
        check('tacho reads the worked example, too', times == [r[0] for r in rows], times)


def refused(name, path, sentence, **more):
    for command in ('info', 'cat'):
        p = tacho(command, path, **more)
        check(f'{name} is refused by tacho {command}',
              p.returncode == 1 and sentence in p.stderr and not p.stdout,
              f'exit {p.returncode}: {p.stdout!r} {p.stderr!r}')


def newer_major(folder):
    path = folder / 'v2.tacho'
    data = bytearray((GOLDEN / 'v1-events.tacho').read_bytes())
    struct.pack_into('<H', data, 8, 2)
    struct.pack_into('<I', data, 60, make.crc32c(data[:60]))
    path.write_bytes(data)
    refused('a file of major 2', path, 'it has version 2 of the trace format and this tacho knows '
            'up to 1; use a newer tacho')
    try:
        Trace(data)
        check('a file of major 2 is refused by the independent reader', False, 'it was read')
    except Bad as why:
        check('a file of major 2 is refused by the independent reader', 'version 2' in str(why), why)


def boxes(folder):
    path = folder / '4194300-4711-0.box'
    path.write_bytes(make.box(os.geteuid()))
    p = tacho('cat', '--json', path)
    expected = (GOLDEN / 'v1-chunks.cat.json').read_text()
    check('a box holds the same events as its chunks in a file',
          p.returncode == 0 and p.stdout == expected and not p.stderr,
          f'exit {p.returncode}: {p.stderr or line_difference(expected, p.stdout)}')
    out = folder / 'dump.tacho'
    p = tacho('dump', path, '-o', out)
    said = libformat.cat(out) if p.returncode == 0 else p.stderr
    why = difference(libformat.cat(GOLDEN / 'v1-chunks.tacho'), said)
    check('a trace that is dumped from the box holds the same events', not why, why)
    path.write_bytes(make_segment.watched_box(os.geteuid()))
    p = tacho('status', '--json', path)
    said = json.loads(p.stdout) if p.returncode == 0 else {}
    check('the agent and the sentinels of a box are shown',
          said.get('agent_pid') == 1 and said.get('sentinels') == {'poll': 50_000_000, 'queue': 1000},
          p.stdout or p.stderr)
    p = tacho('info', '--json', path)
    said = json.loads(p.stdout)['processes'][0] if p.returncode == 0 else {}
    check('the number of its recording, too', said.get('recording_number') == 4711, said or p.stderr)
    path.write_bytes(make.box(os.geteuid(), version=3))
    refused('a box of version 3', path,
            'it is a box of version 3 and this tacho knows up to 2; use a newer tacho')


def main():
    update = sys.argv[1:] == ['--update']
    check('every golden file is checked',
          sorted(p.stem for p in GOLDEN.glob('*.tacho')) == NAMES, list(GOLDEN.glob('*.tacho')))
    for name, function in {**make.FILES, **make_segment.FILES}.items():
        check(f'make.py makes {name}', function() == (GOLDEN / name).read_bytes(),
              'it differs from the golden file')
    for name in NAMES:
        golden(name, update)
    example()
    shm = '/dev/shm' if os.access('/dev/shm', os.W_OK) else None
    folder = pathlib.Path(tempfile.mkdtemp(prefix='tacho-test-', dir=shm))
    try:
        newer_major(folder)
        boxes(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return bool(libformat.failures)


if __name__ == '__main__':
    sys.exit(main())
