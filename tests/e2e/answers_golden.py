#!/usr/bin/env python3
"""Recordings in tests/golden-answers and tests/golden-import: every command says of them, word for word,
what stands beside them.

    answers_golden.py             compares
    answers_golden.py --update    writes what tacho says now, to be read as a change like any other
"""
import difflib
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from libcheck import BIN, check, status

TESTS = pathlib.Path(__file__).resolve().parents[1]
ANSWERS, IMPORTS = TESTS / 'golden-answers', TESTS / 'golden-import'
TEXTS = [
    ('info',), ('report',), ('report', '--all', '--ledger'), ('stats', '--top', '4'),
    ('blame', '--slowest', '3'), ('flame',), ('flame', '--off-cpu'),
    ('cat', '--limit', '25'), ('cat', '--last', '20ms', '--limit', '25', '--time', 'wall'),
]
IMPORTED = [IMPORTS / name for name in ('go-stops.trace.gz', 'go-leak.trace.gz', 'dial9/0.5.7.bin.gz')]
COMPARED = ('downstream.tacho', 'wake-latency.tacho')  # neither has what the other has
BUSY = 'leak.tacho'  # of which a part is drawn
TOGETHER = ('crash.tacho', 'threads.tacho')  # a folder of two processes
JSONS = [('report', '--ledger'), ('stats',), ('blame',), ('info',)]
LONG = 70  # lines of an answer, of which the rest is a digest


def tacho(folder, *arguments):
    env = {'PATH': os.environ['PATH'], 'TZ': 'UTC', 'LC_ALL': 'C.UTF-8'}
    p = subprocess.run([BIN, *arguments], cwd=folder, env=env, capture_output=True, timeout=120,
                       stdin=subprocess.DEVNULL)
    said = p.stdout.decode(errors='surrogateescape') + p.stderr.decode(errors='surrogateescape')
    return said if p.returncode == 0 else f'{said}exit {p.returncode}\n'


def digest(text):
    return hashlib.sha256(text.encode(errors='surrogateescape')).hexdigest()[:8]


def shortened(said):
    lines = said.splitlines(keepends=True)
    rest = ''.join(lines[LONG:])
    return ''.join(lines[:LONG]) + (f'{len(lines) - LONG} lines more, {digest(rest)}\n' if rest else '')


def flat(value, path=''):
    """A line for each number and text of a JSON document."""
    if isinstance(value, (dict, list)) and value:
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        return ''.join(flat(inner, f'{path}.{key}') for key, inner in pairs)
    return f'{path[1:]} {json.dumps(value)}\n'


def tables(folder, name):
    """Of each table how many rows it has, one of them, and a digest of each column."""
    names = [line.split()[0] for line in tacho(folder, 'sql', name, '.tables').splitlines()]
    found = {table: [] for table in names}
    said = []
    for line in tacho(folder, 'sql', name, '--json',
                      *(f"SELECT '{table}' AS of_table, * FROM {table}" for table in names)).splitlines():
        row = json.loads(line)
        found[row.pop('of_table')].append(row)
    for table, rows in found.items():
        said.append(f'{table}: {len(rows)} rows\n')
        for row in rows[len(rows) // 2:][:1]:
            said += [f'  {column:18} {digest(json.dumps([r[column] for r in rows]))}  {value}\n'
                     for column, value in row.items()]
    return ''.join(said)


def exports(folder, name):
    """Of each type of facts how many there are, with a digest; and one of what is not text."""
    by_type, said = {}, []
    for line in tacho(folder, 'export', name, '--format', 'jsonl').splitlines():
        by_type.setdefault(json.loads(line)['fact'], []).append(line)
    for kind, lines in sorted(by_type.items()):
        said.append(f'{kind}: {len(lines)}, {digest(chr(10).join(lines))}\n  {lines[0]}\n')
    for form in ('perfetto', 'collapsed'):
        said.append(f"{form}: {digest(tacho(folder, 'export', name, '--format', form))}\n")
    return ''.join(said)


def answers(folder, name):
    parts = {' '.join(['tacho', command, name, *more]):
             shortened(tacho(folder, command, name, *more)) for command, *more in TEXTS}
    for command, *more in JSONS:
        parts[' '.join(['tacho', command, name, *more, '--json'])] = shortened(
            flat(json.loads(tacho(folder, command, name, '--json', *more))))
    parts['tables'] = tables(folder, name)
    parts['exports'] = exports(folder, name)
    return parts


def compared(folder):
    parts = {}
    for pair in (COMPARED, COMPARED[::-1], (BUSY, BUSY)):
        parts[' '.join(['tacho diff', *pair])] = tacho(folder, 'diff', *pair)
        parts[' '.join(['tacho diff', *pair, '--json'])] = flat(
            json.loads(tacho(folder, 'diff', *pair, '--json')))
    return parts


def written(parts):
    return ''.join(f'==== {title}\n{text}' for title, text in parts.items())


def compare(path, parts, update):
    if update:
        path.write_text(written(parts), errors='surrogateescape')
    old = path.read_text(errors='surrogateescape') if path.exists() else ''
    before = dict(part.split('\n', 1) for part in old.split('==== ')[1:])
    check(f'{path.stem}: all is compared', set(before) == set(parts), set(before) ^ set(parts))
    for title, text in parts.items():
        lines = list(difflib.unified_diff(before.get(title, '').splitlines(), text.splitlines(),
                                          'it was', 'it is', lineterm='', n=0))
        check(f'{path.stem}: {title}', not lines, ' | '.join(lines[:12]))


def main():
    update = sys.argv[1:] == ['--update']
    recorded = {path.name.removesuffix('.gz').rpartition('.')[0]: path
                for path in sorted(ANSWERS.glob('*.tacho')) + IMPORTED}
    texts = {path.stem for path in ANSWERS.glob('*.txt') if not path.stem.endswith('.page')}
    known = {*recorded, 'together', 'compared'}
    check('each text has its recording', texts <= known, texts - known)
    for name, path in recorded.items():
        compare(ANSWERS / f'{name}.txt', answers(path.parent, path.name), update)
    compare(ANSWERS / 'compared.txt', compared(ANSWERS), update)
    with tempfile.TemporaryDirectory(prefix='tacho-test-') as folder:
        together = pathlib.Path(folder, 'together')
        together.mkdir()
        for name in TOGETHER:
            shutil.copy(ANSWERS / name, together)
        compare(ANSWERS / 'together.txt', answers(folder, 'together'), update)
    return status()


if __name__ == '__main__':
    sys.exit(main())
