#!/usr/bin/env python3
"""Services of Tokio with planted faults, drawn at random, and whether the report is right about them.

    tokio.py [--seed N] [--draws N] [--only NAMES] [--mode run|stable|unstable|stable+run|unstable+run ...]
    tokio.py --draw SEED [--keep FOLDER]        what is kept is judged again by truth.py judge
    tokio.py --each N                           N draws of each fault
    tokio.py                                    what make test runs: a few, in two ways
    tokio.py --build                            builds what that needs, and runs nothing

As truth.py, for one program of Rust (tokio/) that is recorded in up to five ways: unchanged, with
`tacho run` alone; by the crate, without and with Tokio's hooks (tokio_unstable); by both together.
"""
import argparse
import contextlib
import itertools
import os
import sys
import time

import libscore
import libtokio
import truth
from libcases import BUILD, Place, Situation
from libresult import skip, status
from librun import group_or_none
from libtokio import FAULTS, MODES, TokioDraw

Place.PARTS += tuple(os.path.join(libtokio.folder(mode), 'release/truth-tokio') for mode in MODES)
# Shares of right answers, as two runs had them on a machine that many others used (README.md).
truth.NAMED, truth.SILENT = 0.88, 0.9
# In make test: one of each of these, of two modes. In a soak, one of all.
SHORT = ('healthy', 'sleep', 'condvar', 'cpu', 'lock-sleep', 'lock-shared', 'spin', 'herd', 'leak',
         'async-lock')
SHORT_MODES = ('run', 'unstable+run')


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seed', type=int, help='of all draws; else a new one')
    parser.add_argument('--draws', type=int, default=0)
    parser.add_argument('--each', type=int, default=0, help='draws of each fault')
    parser.add_argument('--draw', type=int, action='append', help='this draw alone, by its seed')
    parser.add_argument('--only', default='', help='faults, classes or shapes, with commas')
    parser.add_argument('--mode', action='append', choices=MODES)
    parser.add_argument('--unprivileged', action='store_true')
    parser.add_argument('--without-perf', action='store_true')
    parser.add_argument('--build', action='store_true', help='what it needs, and nothing else')
    parser.add_argument('--keep', help='a folder for traces and truths, to be judged again')
    parser.add_argument('--json', help='a file for the results')
    options = parser.parse_args()
    if options.seed is None:
        options.seed = int(time.time() * 1000) % 1000000
    if os.environ.get('TACHO_SOAK') == '1' and not options.draws:
        options.each = options.each or 1
    options.short = not (options.draws or options.each or options.draw or options.only)
    options.mode = options.mode or list(SHORT_MODES if options.short else MODES)
    return options


def seeds(options, only):
    """Of the draws: the same for each mode."""
    if options.draw:
        return options.draw
    numbers = itertools.count(options.seed * 10000)
    draws = (d for d in map(TokioDraw, numbers) if d.wanted(only))
    if options.draws:
        return [d.seed for d in itertools.islice(draws, options.draws)]
    each = options.each or 1
    names = SHORT if options.short else \
        [n for n in FAULTS if not only or n in only or FAULTS[n].kind in only]
    left = {name: each for name in names}
    found = []
    while any(left.values()):
        draw = next(draws)
        if left.get(draw.fault.name, 0):
            left[draw.fault.name] -= 1
            found.append(draw)
    order = {name: i for i, name in enumerate(FAULTS)}
    return [d.seed for d in sorted(found, key=lambda d: order[d.fault.name])]


def cell(results):
    """Right, of those that were due; in brackets those that this way of recording cannot see, or that
    cost too little, and have no wrong cause."""
    must = [r for r in results if r.due or r.draw.fault.name == 'healthy']
    rest = [r for r in results if not (r.due or r.draw.fault.name == 'healthy')]
    good = sum(1 for r in must if r.right and r.placed is not False)
    text = f'{good} of {len(must)}' if must else ''
    if rest:
        silent = sum(1 for r in rest if r.right)
        visible = all(r.draw.visible for r in rest)
        text += f'{" " if text else ""}({"small" if visible else "not seen"}: {silent} of ' \
            f'{len(rest)} silent)'
    return text


def table(results, modes):
    counted = [r for r in results if r.word != 'disturbed']
    lines = ['| fault | ' + ' | '.join(modes) + ' |', '|---' * (len(modes) + 1) + '|']
    for name in FAULTS:
        cells = [cell([r for r in counted if r.draw.fault.name == name and r.draw.mode == mode])
                 for mode in modes]
        if any(cells):
            lines.append(f'| {name} | ' + ' | '.join(cells) + ' |')
    for what, title in (('right', 'all that is due'), ('placed', 'its place'),
                        ('sized', 'its sizes')):
        lines.append(f'| **{title}** | ' + ' | '.join(
            libscore.share([r for r in counted if r.due and r.draw.mode == mode],
                        what).replace('/', ' of ') for mode in modes) + ' |')
    return '\n'.join(lines) + f'\ndisturbed: {len(results) - len(counted)} of {len(results)}'


def record_all(draws, situation, group, options):
    results = []
    for seed in draws:
        for mode in options.mode:
            result = truth.judge(TokioDraw(seed, mode), situation, group, options)
            results.append(result)
            print(result.line(), flush=True)
            if options.json:
                libscore.write_json(options.json, results)
    return results


def main():
    options = arguments()
    only = [name for name in options.only.split(',') if name]
    for mode in list(options.mode):
        why = libtokio.build(mode, BUILD)
        if why:
            skip(f'services of Tokio, {mode}', why)
            options.mode.remove(mode)
    if options.build or not options.mode:
        return status()
    draws = seeds(options, only)
    print(f'seed {options.seed}, {len(draws)} draws, {", ".join(options.mode)}', flush=True)
    options.until = time.monotonic() + truth.AGAIN_S * len(draws) * len(options.mode)
    name = 'unprivileged' if options.unprivileged else \
        'without-perf' if options.without_perf else 'root'
    with contextlib.ExitStack() as stack:
        situation = stack.enter_context(Situation(name))
        group = stack.enter_context(group_or_none())
        results = record_all(draws, situation, group, options)
    print(table(results, options.mode))
    truth.tell(results, options)
    return status()


if __name__ == '__main__':
    sys.exit(main())
