#!/usr/bin/env python3
"""Servers with planted faults, drawn at random, and whether the report is right about them.

    truth.py [--seed N] [--draws N] [--only NAMES] [--unprivileged | --without-perf]
    truth.py --draw SEED [--keep FOLDER]
    truth.py --again FOLDER
    truth.py --own-load 0.3,0.5,0.7,0.9 [--only SHAPES]
    truth.py --tables ROOT.json UNPRIVILEGED.json ...

The server (shapes.c, uv.c, event.c, tasks.c; its fault in faults.c) writes what really happened
while it runs, a client of its own process what its requests waited. A fault must be named first, with
its function and its sizes, when it costs requests 2 % of the window or stalls them 50 ms three times;
below that no wrong cause may be named; a healthy server has no alarm. What the machine disturbed is
drawn again and never counted.
"""
import argparse
import contextlib
import itertools
import json
import math
import os
import shutil
import sys
import time

from libdraw import CLASSES, LOOPS, Draw
from libjudge import Judgement, disturbed
from librun import MS, Failed, Run, group_or_none
from libcases import Quota, Situation, Unavailable
from libresult import check, skip, status

# Shares of right answers, as hundreds of draws had them (README.md), and how often a run may fall below
# what they promise.
NAMED, SIZED, SILENT = 0.95, 0.93, 0.99
FLAKES = 1e-4
TRIES = 4
AGAIN_S = 2.8  # of each draw: when these are over, what the machine disturbs is not drawn again
BINS = (5, 10, 20, 50)  # ms, of the curve
LOADED = ('epoll', 'uv', 'event', 'tasks1', 'shared', 'tasks2', 'two-loops', 'leader')


class Result:
    def __init__(self, draw):
        self.draw = draw
        self.word = 'disturbed'
        self.why = self.headline = ''
        self.due = False
        self.right = self.placed = self.sized = None
        self.numbers = {}

    def take(self, judged):
        for name in ('due', 'right', 'placed', 'sized', 'why', 'headline'):
            setattr(self, name, getattr(judged, name))
        self.word = judged.word()

    def line(self):
        text = f'{self.draw.seed:<10} {self.word:9} {self.draw.text()}'
        if self.numbers:
            text += ' | {count} x, {took_ms} ms in all, waited {waited_ms} ms, p99 {p99_ms} ms, ' \
                    'runnable {runnable_ms} ms'.format(**self.numbers)
        return text + (f' | {self.why}' if self.why else '') + \
            (f' | {self.headline}' if self.headline else '')

    def json(self):
        d = self.draw
        return dict(seed=d.seed, fault=d.fault.name, kind=d.fault.kind, shape=d.shape,
                    text=d.text(), size_ms=d.size_ms, word=self.word, due=self.due,
                    right=self.right, placed=self.placed, sized=self.sized, why=self.why,
                    headline=self.headline, **self.numbers)


def numbers_of(truth):
    took = truth.durations()
    return {'count': len(took), 'took_ms': round(sum(took) / MS, 1),
            'waited_ms': round(truth.waited() / MS, 1), 'requests': len(truth.requests),
            'p50_ms': round(truth.percentile(0.5) / MS, 2),
            'p99_ms': round(truth.percentile(0.99) / MS, 2),
            'runnable_ms': round(truth.runnable / MS, 1),
            'throttled_ms': round(truth.throttled / MS, 1),
            'window_ms': round(truth.window / MS, 1)}


def judge(draw, situation, group, options):
    """The draw, run until the machine did not disturb it, and not for ever."""
    result = Result(draw)
    kept = os.path.join(options.again, str(draw.seed)) if options.again else None
    for _ in range(1 if kept else TRIES if time.monotonic() < options.until else 1):
        with Run(draw, situation, group, kept) as run:
            try:
                if kept:
                    run.read()
                else:
                    run.run()
                found = run.report()
            except Failed as error:
                # Also that of a client that the machine gave no chance; not each time.
                result.word, result.why, result.right = 'WRONG', str(error), False
                continue
            finally:
                if options.keep:
                    shutil.copytree(run.folder, os.path.join(options.keep, str(draw.seed)),
                                    dirs_exist_ok=True)
                if not kept:
                    shutil.rmtree(run.folder, True)
        result.word, result.right = 'disturbed', None
        result.numbers = numbers_of(run.truth)
        first = next((f for f in found['findings'] if f['severity'] != 'info'), None)
        if first:
            result.numbers['told_ms'] = round(first['cost_ns'] / MS, 1)
            result.numbers['told_waiting_ms'] = round(first['waiting_ns'] / MS, 1)
        result.why = disturbed(run.truth)
        if not result.why:
            result.take(Judgement(run.truth, found, situation.name != 'without-perf'))
            return result
    return result


def share(results, what):
    asked = [getattr(r, what) for r in results if getattr(r, what) is not None]
    return f'{sum(asked)}/{len(asked)}'


def score(results):
    """By class: of those that were due; below that, only whether a wrong cause was named."""
    lines = [f'{"class":12} {"right":>8} {"placed":>8} {"sized":>8} {"below: no wrong cause":>22}']
    counted = [r for r in results if r.word != 'disturbed']
    for kind in [*CLASSES, 'all']:
        of = [r for r in counted if kind in (r.draw.fault.kind, 'all')
              and (kind == 'healthy' or r.draw.fault.kind != 'healthy')]
        if not of:
            continue
        must = [r for r in of if r.due or kind == 'healthy']
        below = [r for r in of if not r.due and kind != 'healthy']
        lines.append(f'{kind:12} {share(must, "right"):>8} {share(must, "placed"):>8} '
                     f'{share(must, "sized"):>8} {share(below, "right"):>22}')
    lines.append(f'disturbed: {len(results) - len(counted)} of {len(results)}')
    return '\n'.join(lines)


def of_json(path):
    """The results that --json wrote."""
    results = []
    with open(path, encoding='utf-8') as f:
        for row in json.load(f):
            result = Result(Draw(row['seed']))
            for name in ('word', 'due', 'right', 'placed', 'sized'):
                setattr(result, name, row[name])
            results.append(result)
    return results


def tables(sets):
    """Scores of several runs side by side, and the curve of all of them, as Markdown."""
    lines = ['| class | ' + ' | '.join(sets) + ' |', '|---' * (len(sets) + 1) + '|']

    def row(name, wanted, what='right'):
        cells = [share([r for r in results if r.word != 'disturbed' and wanted(r)], what)
                 for results in sets.values()]
        if any(cell != '0/0' for cell in cells):
            lines.append(f'| {name} | ' + ' | '.join(c.replace('/', ' of ') for c in cells) + ' |')
    for kind in CLASSES:
        row(kind, lambda r: r.draw.fault.kind == kind and (r.due or kind == 'healthy'))
    row('**all that is due**', lambda r: r.due)
    row('its place', lambda r: r.due, 'placed')
    row('its sizes', lambda r: r.due, 'sized')
    row('below that: no wrong cause', lambda r: not r.due and r.draw.fault.kind != 'healthy')
    return '\n'.join(lines) + '\n\n' + curve([r for results in sets.values() for r in results])


def curve(results):
    """Right and placed against the size of the fault, as a table of Markdown."""
    edges = (0, *BINS, float('inf'))
    names = [f'to {BINS[0]} ms'] + [f'{a} to {b} ms' for a, b in zip(BINS, BINS[1:])] + \
        [f'from {BINS[-1]} ms']
    lines = ['| class | ' + ' | '.join(names) + ' |', '|---' * (len(names) + 1) + '|']
    for kind in CLASSES:
        of = [r for r in results if r.draw.fault.kind == kind and r.due
              and r.draw.fault.sized_by_time]
        if not of:
            continue
        cells = []
        for low, high in zip(edges, edges[1:]):
            here = [r for r in of if low <= r.draw.size_ms < high]
            good = sum(1 for r in here if r.right and r.placed is not False)
            cells.append(f'{good} of {len(here)}' if here else '')
        lines.append(f'| {kind} | ' + ' | '.join(cells) + ' |')
    return '\n'.join(lines)


def loads(results):
    """Neighbours beside a service of a given load, as a table of Markdown. Times in ms."""
    lines = ['| own load | shape | neighbours | named first | told without a CPU | the kernel counted '
             '| told waiting | clients waited |', '|---' * 8 + '|']
    for r in results:
        d, n = r.draw, r.numbers
        named = 'disturbed' if r.word == 'disturbed' else 'not due' if not r.due else \
            'yes' if r.right else 'no'
        lines.append(f'| {100 * d.own_load:.0f} % | {d.shape} | {d.neighbours} | {named} '
                     f'| {n.get("told_ms", 0):.0f} | {n.get("runnable_ms", 0):.0f} '
                     f'| {n.get("told_waiting_ms", 0):.0f} | {n.get("waited_ms", 0):.0f} |')
    return '\n'.join(lines)


def mark(count, share):
    """So many of `count` are right in all but one of 10,000 runs, if each is with that probability."""
    below, least = 0, 0
    while least < count:
        below += math.comb(count, least) * share**least * (1 - share)**(count - least)
        if below >= FLAKES:
            break
        least += 1
    return least


def demand(what, results, good, share):
    least = mark(len(results), share)
    wrong = [r for r in results if not good(r)]
    check(f'{len(results) - len(wrong)} of {len(results)} {what} (at least {least})',
          len(results) - len(wrong) >= least, f'draws {seeds(wrong)}')
    return wrong


def tell(results, options):
    """The score as checks, and how to see again what was wrong."""
    wrong = []
    due = [r for r in results if r.due]
    asked = [r for r in due if r.sized is not None]
    rest = [r for r in results if not r.due and r.word != 'disturbed']
    if due:
        wrong += demand('faults are named first, with their places', due,
                        lambda r: r.right and r.placed is not False, NAMED)
    if asked:
        wrong += demand('have their true sizes', asked, lambda r: r.sized, SIZED)
    if rest:
        wrong += demand('that are healthy or cost little have no wrong cause', rest,
                        lambda r: r.right, SILENT)
    if len(due) + len(rest) < len(results) / 2:
        skip('most draws', f'the machine disturbed {len(results) - len(due) - len(rest)} of '
             f'{len(results)}')
    if wrong and not options.again:
        how = ' --unprivileged' if options.unprivileged else \
            ' --without-perf' if options.without_perf else ''
        print(f'again: python3 tests/truth/{os.path.basename(sys.argv[0])} --keep traces' + how +
              ''.join(f' --draw {seed}' for seed in sorted(set(seeds(wrong)))))


def seeds(results):
    return [r.draw.seed for r in results]


def can_have_quota():
    try:
        with Quota(0.5):
            return True
    except Unavailable:
        return False


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seed', type=int, help='of all draws; else a new one')
    parser.add_argument('--draws', type=int,
                        default=500 if os.environ.get('TACHO_SOAK') == '1' else 60)
    parser.add_argument('--draw', type=int, action='append', help='this draw alone, by its seed')
    parser.add_argument('--only', default='', help='faults, classes or shapes, with commas')
    parser.add_argument('--unprivileged', action='store_true')
    parser.add_argument('--without-perf', action='store_true')
    parser.add_argument('--keep', help='a folder for traces and truths')
    parser.add_argument('--again', help='a folder of --keep: what is in it is judged again')
    parser.add_argument('--json', help='a file for the results')
    parser.add_argument('--own-load', help='neighbours beside a service that needs these shares of '
                        'its CPU, with commas, in each shape')
    parser.add_argument('--tables', nargs='+', help='files of --json: their scores side by side')
    parser.add_argument('--curve', action='store_true', help='right answers against the size')
    options = parser.parse_args()
    if options.seed is None:
        options.seed = int(time.time() * 1000) % 1000000
    return options


def drawn(options, only):
    """Each follows from its own seed alone; those that are not wanted are passed over."""
    if options.again and not options.draw:
        options.draw = sorted(int(name) for name in os.listdir(options.again) if name.isdigit())
    if options.draw:
        return [Draw(seed) for seed in options.draw]
    if options.own_load:
        shapes = [name for name in only if name in LOOPS] or LOADED
        wanted = [(float(share), shape) for share in options.own_load.split(',')
                  for shape in shapes]
        return list(loaded(itertools.count(options.seed * 10000), wanted))
    quota = can_have_quota()
    numbers = itertools.count(options.seed * 10000)
    draws = (Draw(seed) for seed in itertools.islice(numbers, 1000 * options.draws))
    return list(itertools.islice((d for d in draws if d.wanted(only)
                                  and (quota or not d.quota)), options.draws))


def loaded(numbers, wanted):
    """The next draw of neighbours beside each shape, with this load."""
    for share, shape in wanted:
        draw = next(d for d in map(Draw, numbers) if d.fault.name == 'neighbours'
                    and d.shape == shape)
        draw.own_load = share
        draw.rate = share * 1e6 / draw.work_us
        yield draw


def main():
    options = arguments()
    if options.tables:
        print(tables({os.path.splitext(os.path.basename(path))[0]: of_json(path)
                      for path in options.tables}))
        return 0
    only = [name for name in options.only.split(',') if name]
    draws = drawn(options, only)
    name = 'unprivileged' if options.unprivileged else \
        'without-perf' if options.without_perf else 'root'
    print(f'seed {options.seed}, {len(draws)} draws, {name}' +
          (f', only {options.only}' if only else ''), flush=True)
    results = []
    options.until = time.monotonic() + AGAIN_S * len(draws)
    with contextlib.ExitStack() as stack:
        situation = stack.enter_context(Situation(name))
        group = stack.enter_context(group_or_none())
        for draw in draws:
            result = judge(draw, situation, group, options)
            results.append(result)
            print(result.line(), flush=True)
            if options.json:
                with open(options.json, 'w', encoding='utf-8') as f:
                    json.dump([r.json() for r in results], f, indent=1)
    print(score(results))
    if options.curve:
        print(curve(results))
    if options.own_load:
        print(loads(results))
    tell(results, options)
    return status()


if __name__ == '__main__':
    sys.exit(main())
