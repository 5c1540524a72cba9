#!/usr/bin/env python3
"""bench/estimate.py: intervals hold what was planted, as often as they say."""
import math
import os
import pathlib
import random
import sys

from libcheck import check, status

ROOT = pathlib.Path(os.environ.get('TACHO_SOURCE') or pathlib.Path(__file__).parents[2])
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / 'bench'))
import estimate  # noqa: E402

PLANTED = {'recording': 0.01, 'hooks': 0.005, 'total': 0.015, 'null': 0.0}
BLOCKS = 3
PARTS = [(way, kind) for way in ('plain', 'default') for kind in ('recording', 'paused')]


class Machine:
    """Measures servers that were never there. Every interval has noise, some are twice as
    dear, every process lies differently in memory, and everything gets slower all the time."""

    def __init__(self, seed, noise=0.01, drift=0.002, odd=0.03):
        self.dice, self.noise, self.drift, self.odd = random.Random(seed), noise, drift, odd
        self.slower = 0.0

    def interval(self, way, kind):
        self.slower += self.dice.uniform(0, 2 * self.drift)
        cost = self.slower + self.dice.gauss(0, self.noise)
        cost += math.log(2) if self.dice.random() < self.odd else 0
        if way == 'default':
            cost += PLANTED['hooks'] + (PLANTED['recording'] if kind == 'recording' else 0)
        return cost

    def round(self):
        process = {way: self.dice.gauss(0, self.noise) for way in ('plain', 'default')}
        blocks = []
        for _ in range(BLOCKS):
            order = self.dice.sample(PARTS, len(PARTS))
            blocks.append({(way, kind): 5 * math.exp(self.interval(way, kind) + process[way])
                           for way, kind in order})
        return {'blocks': blocks, 'p99': blocks[0]}

    def rounds(self, count):
        return [self.round() for _ in range(count)]


def held(estimated, name):
    return estimated[name]['low'] <= math.exp(PLANTED[name]) <= estimated[name]['high']


def intervals_hold_what_was_planted():
    runs = 200
    found = [estimate.estimate(Machine(seed).rounds(25), 'default') for seed in range(runs)]
    for name in estimate.NUMBERS:
        share = sum(held(f, name) for f in found) / runs
        check(f'95 of 100 intervals hold the planted value: {name}', 0.91 <= share <= 0.985, share)
        off = sum(math.log(f[name]['ratio']) for f in found) / runs - PLANTED[name]
        check(f'neither drift nor odd intervals pull to a side: {name}', abs(off) < 0.0006, off)
    sees = sum(f['recording']['low'] > 1 for f in found) / runs
    check('1 % is seen', sees > 0.9, sees)


def until_enough(machine, width):
    rounds = machine.rounds(1)
    while True:
        rounds.append(machine.round())
        found = estimate.estimate(rounds, 'default')
        if estimate.is_enough(rounds, found, width):
            return len(rounds), found


def ending_early_does_not_deceive():
    ended = [until_enough(Machine(seed), 0.006) for seed in range(100)]
    good = sum(held(found, 'total') for _, found in ended) / len(ended)
    check('intervals at which a run ends hold the planted value', good >= 0.9, good)
    wide = max(estimate.widest(found) for _, found in ended)
    check('a run does not end before its intervals are narrow', wide <= 0.006, wide)
    count, _ = until_enough(Machine(1, noise=0.0005, odd=0), 0.006)
    check('a run has some rounds in any case', 10 <= count <= 30, count)


def quantiles_are_those_of_the_tables():
    for freedom, known in ((4, 2.776), (9, 2.262), (29, 2.045), (200, 1.972)):
        found = estimate.t_quantile(freedom)
        check(f'Student\'s t, {freedom} degrees of freedom', abs(found / known - 1) < 0.005, found)


def one_number_by_hand():
    block = {('default', 'recording'): 6, ('default', 'paused'): 5, ('plain', 'recording'): 4,
             ('plain', 'paused'): 4}
    found = estimate.estimate([{'blocks': [block], 'p99': block}] * 3, 'default')
    ratios = [round(found[name]['ratio'], 6) for name in ('recording', 'hooks', 'total', 'null')]
    check('ratios are those of the costs', ratios == [1.2, 1.25, 1.5, 1], ratios)
    check('what does not vary has no width', estimate.widest(found) < 1e-9, found)


def main():
    quantiles_are_those_of_the_tables()
    one_number_by_hand()
    intervals_hold_what_was_planted()
    ending_early_does_not_deceive()
    return status()


if __name__ == '__main__':
    sys.exit(main())
