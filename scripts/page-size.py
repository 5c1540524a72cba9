#!/usr/bin/env python3
"""How large the page's code is: what a browser loads before it has seen a trace.

    scripts/page-size.py [BUILD]

prints a row for each file of the page, with its size and what it is compressed by gzip, as the
program has it inside.
"""
import gzip
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WHAT = {'.html': 'HTML', '.css': 'style', '.js': 'JavaScript', '.wasm': 'WASM'}

# Loaded with the first query, and the whole page in one file.
LATER = {'sql.js', 'sqlite3.wasm', 'tacho.html'}


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / 'build') / 'page'
    rows = []
    for packed in sorted(build.glob('*.gz')):
        name = packed.name[:-len('.gz')]
        data = packed.read_bytes()
        rows.append((name, WHAT[pathlib.Path(name).suffix], len(gzip.decompress(data)), len(data)))
    if not rows:
        sys.exit(f'page-size: there is no page in {build}; build it first')
    first = [row for row in rows if row[0] not in LATER]
    rows.append(('at first', 'all but ' + ', '.join(sorted(LATER)), sum(row[2] for row in first),
                 sum(row[3] for row in first)))
    print('| file | | bytes | compressed |\n|---|---|---|---|')
    for name, what, plain, packed in rows:
        print(f'| {name} | {what} | {plain:,} | {packed:,} |')


main()
