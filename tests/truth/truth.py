#!/usr/bin/env python3
"""Servers with planted faults, drawn at random, and whether the report is right about them.

    truth.py [--seed N] [--draws N] [--only NAMES] [--unprivileged | --without-perf]
    truth.py --draw SEED [--keep FOLDER]
    truth.py --own-load 0.3,0.5,0.7,0.9 [--only SHAPES]
    truth.py --tables ROOT.json UNPRIVILEGED.json ...
    truth.py record --into FOLDER ...       a corpus, see libcorpus.py
    truth.py judge FOLDER ...

The server (shapes.c, single.c, workers.c, prefork.c, uv.c, event.c, tasks.c; its fault in faults.c and locks.c)
writes what really happened while it runs, a client of its own process what its requests waited. A fault must be
named first, with its function and its sizes, when it costs requests 2 % of the window or stalls them 50 ms three
times; below that no wrong cause may be named; a healthy server has no alarm. What the machine disturbed is
drawn again and never counted.
"""
import argparse
import contextlib
import itertools
import math
import os
import sys
import time

import libcorpus
from libdraw import LOOPS, Draw
from libjudge import disturbed
from librun import Failed, Recording, Run, group_or_none
from libscore import Result, by, curve, neighbours_of, read_json, score, side_by_side, write_json
from libcases import Quota, Situation, Unavailable
from libresult import check, skip, status

# Shares of right answers, as hundreds of draws had them (README.md), and how often a run may fall below
# what they promise.
NAMED, SIZED, SILENT = 0.95, 0.93, 0.99
FLAKES = 1e-4
TRIES = 4
AGAIN_S = 3.3  # of each draw: when these are over, what the machine disturbs is not drawn again
LOADED = ('epoll', 'uv', 'event', 'tasks1', 'shared', 'tasks2', 'two-loops', 'leader')


def judge(draw, situation, group, options):
    """The draw, run until the machine did not disturb it, and not for ever."""
    result = Result(draw, situation.name)
    for _ in range(TRIES if time.monotonic() < options.until else 1):
        with Run(draw, situation, group) as run:
            try:
                run.run()
                why = run.truth.disturbed = disturbed(run.truth)
                recording = Recording(draw, run.truth, situation.name, run.path('trace.tacho'))
                if options.keep:
                    recording.store(options.keep)
                disagree = result.disagree
                result = libcorpus.judge_recording(recording, situation.place, numbers=True)
                result.disagree += disagree
            except Failed as error:
                # Also that of a client that the machine gave no chance; not each time.
                result.word, result.why, result.right = 'WRONG', str(error), False
                continue
        if not why:
            return result
        result.word, result.right, result.due = 'disturbed', None, False
    return result


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


def tell_known(results):
    """Of classes that the report is known to be wrong about nothing is demanded."""
    right = sum(1 for r in results if r.word in ('ok', 'below'))
    print(f'of classes that are known to be wrong: {right} of {len(results)} are right; wrong: '
          f'{seeds([r for r in results if r.word not in ("ok", "below")])}')


def tell(results, options):
    """The score as checks, and how to see again what was wrong."""
    wrong = []
    judged = [r for r in results if r.word != 'disturbed']
    known = [r for r in judged if r.draw.known_wrong]
    sound = [r for r in judged if not r.draw.known_wrong]
    due = [r for r in sound if r.due]
    asked = [r for r in due if r.sized is not None]
    rest = [r for r in sound if not r.due]
    if due:
        wrong += demand('faults are named first, with their places', due,
                        lambda r: r.right and r.placed is not False, NAMED)
    if asked:
        wrong += demand('have their true sizes', asked, lambda r: r.sized, SIZED)
    if rest:
        wrong += demand('that are healthy or cost little have no wrong cause', rest,
                        lambda r: r.right, SILENT)
    if known:
        tell_known(known)
    disagree = [f'{r.draw.seed}: {text}' for r in results for text in r.disagree]
    check(f'the numbers of {len(results)} answers agree with each other', not disagree, disagree)
    if len(judged) < len(results) / 2:
        skip('most draws', f'the machine disturbed {len(results) - len(judged)} of {len(results)}')
    if wrong:
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
                        default=500 if os.environ.get('TACHO_SOAK') == '1' else 50)
    parser.add_argument('--draw', type=int, action='append', help='this draw alone, by its seed')
    parser.add_argument('--only', default='', help='faults, classes, families or shapes, with commas')
    parser.add_argument('--unprivileged', action='store_true')
    parser.add_argument('--without-perf', action='store_true')
    parser.add_argument('--keep', help='a folder for traces and truths, to be judged again')
    parser.add_argument('--json', help='a file for the results')
    parser.add_argument('--own-load', help='neighbours beside a service that needs these shares of '
                        'its CPU, with commas, in each shape')
    parser.add_argument('--tables', nargs='+', help='files of --json: their scores side by side')
    parser.add_argument('--curve', action='store_true', help='right answers against the size')
    options = parser.parse_args()
    if options.seed is None:
        options.seed = int(time.time() * 1000) % 1000000
    return options


def draws_of(seed, count, only):
    """Each follows from its own seed alone; those that are not wanted are passed over."""
    only = [name for name in only.split(',') if name]
    quota = can_have_quota()
    draws = (Draw(number) for number in itertools.islice(itertools.count(seed * 10000), 1000 * count))
    return list(itertools.islice((d for d in draws if d.wanted(only) and (quota or not d.quota)), count))


def drawn(options):
    if options.draw:
        return [Draw(seed) for seed in options.draw]
    if options.own_load:
        shapes = [name for name in options.only.split(',') if name in LOOPS] or LOADED
        wanted = [(float(share), shape) for share in options.own_load.split(',')
                  for shape in shapes]
        return list(loaded(itertools.count(options.seed * 10000), wanted))
    return draws_of(options.seed, options.draws, options.only)


def loaded(numbers, wanted):
    """The next draw of neighbours beside each shape, with this load."""
    for share, shape in wanted:
        draw = next(d for d in map(Draw, numbers) if d.fault.name == 'neighbours'
                    and d.shape == shape)
        draw.own_load = share
        draw.rate = share * 1e6 / draw.work_us
        yield draw


def tables(paths):
    """Scores of several runs side by side, and the curve of all of them."""
    sets = {os.path.splitext(os.path.basename(path))[0]: read_json(path, libcorpus.MAKERS) for path in paths}
    everything = [r for results in sets.values() for r in results]
    return '\n\n'.join((side_by_side('class', sets), side_by_side('class', by(everything, neighbours_of)),
                        curve(everything)))


def main():
    if sys.argv[1:2] and sys.argv[1] in ('record', 'judge'):
        return libcorpus.main(sys.argv[1:], draws_of)
    options = arguments()
    if options.tables:
        print(tables(options.tables))
        return 0
    draws = drawn(options)
    name = 'unprivileged' if options.unprivileged else \
        'without-perf' if options.without_perf else 'root'
    print(f'seed {options.seed}, {len(draws)} draws, {name}' +
          (f', only {options.only}' if options.only else ''), flush=True)
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
                write_json(options.json, results)
    print(score(results))
    if options.curve:
        print(curve(results))
    if options.own_load:
        print(loads(results))
    tell(results, options)
    return status()


if __name__ == '__main__':
    sys.exit(main())
