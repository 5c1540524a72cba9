#!/usr/bin/env python3
"""What the page takes to open large traces, in Debian's Chromium.

The traces are those of analysis.py. For each: what `tacho report` takes; then `tacho view` serves it,
page.mjs opens it, and zooms and pans through all of it by keys. Prints a table, and writes
build/bench/page.json.
"""
import argparse
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

import analysis
import table
from machine import describe
from programs import BUILD, ROOT, Broken, Programs, number, program

PATIENCE = 1800
GOALS = [  # of 30 million events
    ('30 million events: loaded, times tacho report', 4),
    ('30 million events: memory of the tab, MB', 1000),
    ('30 million events: 95 % of frames within ms', 33),
]


def say(text):
    print(text, flush=True)


def address(child):
    """Where `tacho view` serves; it prints that."""
    for line in child.stdout:
        found = re.search(r'http://\S+', line)
        if found:
            return found[0]
    raise Broken('tacho view said no address')


def percentile(values, share):
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def open_page(programs, path):
    child = programs.start([BUILD / 'src' / 'cli' / 'tacho', 'view', path, '--no-browser'],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, gently=True)
    try:
        out, _ = programs.output(['node', ROOT / 'bench' / 'page.mjs', address(child)],
                                 limit=PATIENCE)
    finally:
        programs.end(child, 10)
    seen = json.loads(out)
    for name in ('frame', 'picture'):
        values = seen.pop(f'{name}_ms')
        seen[f'{name}_median_ms'] = statistics.median(values)
        seen[f'{name}_p95_ms'] = percentile(values, 0.95)
    return seen


def measure_size(programs, folder, base, millions, rounds):
    path = folder / f'{millions}.tacho'
    out, _ = programs.output([program('multiply'), base, path, millions * analysis.MILLION],
                             limit=PATIENCE)
    made = {k: [v] for k, v in (line.split() for line in out.splitlines())}
    row = {'millions': millions, 'events': int(number(made, 'events')),
           'bytes': path.stat().st_size}
    report = [BUILD / 'src' / 'cli' / 'tacho', 'report', '--json', path]
    took = [analysis.run(programs, report, None) for _ in range(rounds)]
    row['report_ms'] = min(t[0] for t in took)
    row['report_cpu_ms'] = min(t[1] for t in took)
    row.update(open_page(programs, path))
    path.unlink()
    return row


def times_report(row):
    """By CPU time, as in analysis.py: what else happens on the machine does not count."""
    return row['loaded_cpu_ms'] / row['report_cpu_ms']


def lines(rows):
    cells = [['page', 'first picture s', 'loaded s', 's of CPU', 'x report', 'tab MB', 'frame ms',
              'p95', 'picture ms', 'p95']]
    for r in rows:
        cells.append([f'{r["events"]:,} events', f'{r["first_ms"] / 1e3:.2f}',
                      f'{r["loaded_ms"] / 1e3:.2f}', f'{r["loaded_cpu_ms"] / 1e3:.2f}',
                      f'{times_report(r):.2f}',
                      f'{r["peak_bytes"] / 1e6:.0f}', f'{r["frame_median_ms"]:.1f}',
                      f'{r["frame_p95_ms"]:.1f}', f'{r["picture_median_ms"]:.0f}',
                      f'{r["picture_p95_ms"]:.0f}'])
    return table.columns(cells)


def goals(rows):
    found = []
    for r in (r for r in rows if r['millions'] == 30):
        measured = [times_report(r), r['peak_bytes'] / 1e6, r['frame_p95_ms']]
        for (name, wanted), value in zip(GOALS, measured):
            found.append({'name': name, 'measured': value, 'wanted': wanted,
                          'direction': 'at most', 'met': value <= wanted})
    return found


def main():
    parser = argparse.ArgumentParser(description='Measures what the page takes.')
    parser.add_argument('--quick', action='store_true', help='a million events only')
    parser.add_argument('--millions', help='of events, such as 1,30')
    parser.add_argument('--output', type=pathlib.Path, default=BUILD / 'bench' / 'page.json')
    args = parser.parse_args()
    sizes = [1] if args.quick else analysis.SIZES
    if args.millions:
        sizes = [int(n) for n in args.millions.split(',')]
    args.output.unlink(missing_ok=True)
    for tool in ('node', 'chromium'):
        if not shutil.which(tool):
            print(f'bench: the page is not measured: there is no {tool}; run: make bench')
            return 0
    try:
        with Programs(analysis.BASE_BOX_BYTES) as programs:
            folder = pathlib.Path(programs.folder())
            say('measuring the page:')
            base = analysis.record(programs, folder, analysis.BASE_BOX_BYTES)
            rows = []
            for millions in sizes:
                say(f'  {millions} million events')
                rows.append(measure_size(programs, folder, base, millions, 3))
                args.output.parent.mkdir(parents=True, exist_ok=True)
                args.output.write_text(json.dumps({'rows': rows}, indent=1) + '\n')
    except Broken as error:
        print(f'bench: {error}', file=sys.stderr)
        return 1
    results = {'machine': describe(), 'rows': rows, 'goals': goals(rows),
               'date': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(json.dumps(results, indent=1, sort_keys=True) + '\n')
    say('\n'.join(['', *lines(rows), '', *(table.goals(results) if results['goals'] else [])]))
    return 0


if __name__ == '__main__':
    sys.exit(main())
