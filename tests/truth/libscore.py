"""Results of draws, however they were recorded: lines, tables, and what differs between two sets of them."""
import json

from libdraw import CLASSES
from libjudge import Judgement
from librun import MS

BINS = (5, 10, 20, 50)  # ms, of the curve
COLUMNS = {'right': 'named first', 'placed': 'placed', 'sized': 'sized', 'grouped': 'one finding', 'cpu': 'CPU told',
           'clean': 'nothing else'}
# From the best to the worst.
WORDS = ('ok', 'below', 'disturbed', 'GROUP', 'SIZE', 'PLACE', 'WRONG')


class Result:
    def __init__(self, draw, situation):
        self.draw = draw
        self.situation = situation
        self.name = str(draw.seed)  # by which it is known in a set of results
        self.word = 'disturbed'
        self.why = self.headline = self.disturbed = ''
        self.due = False
        for name in Judgement.ASKED:
            setattr(self, name, None)
        self.numbers = {}
        self.disagree = []  # numbers of the answers about it, whatever it is worth

    def take(self, judged):
        for name in ('due', 'why', 'headline', *Judgement.ASKED):
            setattr(self, name, getattr(judged, name))
        self.word = judged.word()

    def take_numbers(self, truth, found):
        took = truth.durations()
        self.numbers = {
            'count': truth.count, 'took_ms': round(sum(took) / MS, 1), 'own_ms': round(sum(truth.own()) / MS, 1),
            'waited_ms': round(truth.waited() / MS, 1), 'requests': len(truth.requests),
            'p50_ms': round(truth.percentile(0.5) / MS, 2), 'p99_ms': round(truth.percentile(0.99) / MS, 2),
            'runnable_ms': round(truth.runnable / MS, 1), 'throttled_ms': round(truth.throttled / MS, 1),
            'window_ms': round(truth.window / MS, 1)}
        first = next((f for f in found['findings'] if f['severity'] != 'info'), None)
        if first:
            self.numbers['told_ms'] = round(first['cost_ns'] / MS, 1)
            self.numbers['told_waiting_ms'] = round(first['waiting_ns'] / MS, 1)

    def line(self):
        text = f'{self.name:<10} {self.word:9} {self.draw.text()}'
        if self.numbers:
            text += ' | {count} x, {took_ms} ms in all, waited {waited_ms} ms, p99 {p99_ms} ms, ' \
                    'runnable {runnable_ms} ms'.format(**self.numbers)
        return text + ''.join(f' | {t}' for t in (self.disturbed, self.why, self.headline) if t)

    def json(self):
        d = self.draw
        return dict(name=self.name, maker=d.maker, situation=self.situation, seed=d.seed, fault=d.fault.name,
                    kind=d.kind, family=d.family.name, shape=d.shape, neighbours=d.neighbours, contended=d.contended,
                    draw=d.json(), text=d.text(), word=self.word, due=self.due, why=self.why, headline=self.headline,
                    disturbed=self.disturbed, **{name: getattr(self, name) for name in Judgement.ASKED},
                    **self.numbers)

    @classmethod
    def of_json(cls, row, makers):
        result = cls(makers[row['maker']].stored(row['draw']), row['situation'])
        for name in ('name', 'word', 'due', 'why', 'headline', 'disturbed', *Judgement.ASKED):
            setattr(result, name, row[name])
        return result


def write_json(path, results):
    with open(path, 'w', encoding='utf-8') as f:
        json.dump([r.json() for r in results], f, indent=1)


def read_json(path, makers):
    with open(path, encoding='utf-8') as f:
        return [Result.of_json(row, makers) for row in json.load(f)]


# Tables --------------------------------------------------------------------------------


def share(results, what):
    asked = [getattr(r, what) for r in results if getattr(r, what) is not None]
    return f'{sum(asked)}/{len(asked)}'


def classes(results):
    """Those of the results, in the order of the tables."""
    return list(dict.fromkeys([*CLASSES, *(r.draw.kind for r in results)]))


def counted(results):
    return [r for r in results if r.word != 'disturbed']


def of_class(results, kind):
    """`all`: of the faults."""
    return [r for r in results if kind in (r.draw.kind, 'all') and
            (kind == 'healthy' or r.draw.kind != 'healthy')]


def demanded(results):
    """Those about which something must be said, or, where they are healthy, nothing."""
    return [r for r in results if r.due or r.draw.kind == 'healthy']


def score(results):
    """By class: of those that were due; below that, only whether a wrong cause was named."""
    lines = [f'{"class":12} ' + ' '.join(f'{title:>12}' for title in COLUMNS.values()) +
             f' {"below: no wrong cause":>22}']
    for kind in [*classes(results), 'all']:
        of = of_class(counted(results), kind)
        if of:
            below = [r for r in of if r not in demanded(of)]
            lines.append(f'{kind:12} ' + ' '.join(f'{share(demanded(of), what):>12}' for what in COLUMNS) +
                         f' {share(below, "right"):>22}')
    lines.append(f'disturbed: {len(results) - len(counted(results))} of {len(results)}')
    return '\n'.join(lines)


def side_by_side(title, sets, what='right'):
    """One row for each class, one column for each set of results, as Markdown."""
    lines = [f'| {title} | ' + ' | '.join(sets) + ' |', '|---' * (len(sets) + 1) + '|']

    def row(name, wanted, column):
        cells = [share(wanted(counted(results)), column) for results in sets.values()]
        if any(cell != '0/0' for cell in cells):
            lines.append(f'| {name} | ' + ' | '.join('' if c == '0/0' else c.replace('/', ' of ') for c in cells) +
                         ' |')
    for kind in classes([r for results in sets.values() for r in results]):
        row(kind, lambda results: demanded(of_class(results, kind)), what)
    for column, text in COLUMNS.items():
        row(f'**all: {text}**', lambda results: demanded(of_class(results, 'all')), column)
    row('below that: no wrong cause', lambda results: [r for r in results if r not in demanded(results)], 'right')
    return '\n'.join(lines)


def by(results, key):
    """Sets of results by what `key` says of each."""
    sets = {}
    for r in sorted(results, key=key):
        sets.setdefault(str(key(r)), []).append(r)
    return sets


def neighbours_of(result):
    d = result.draw
    return f'{d.neighbours} on its CPU' if d.contended else 'none on its CPU'


def curve(results):
    """Right and placed against the size of the fault, as a table of Markdown."""
    edges = (0, *BINS, float('inf'))
    names = [f'to {BINS[0]} ms'] + [f'{a} to {b} ms' for a, b in zip(BINS, BINS[1:])] + \
        [f'from {BINS[-1]} ms']
    lines = ['| class | ' + ' | '.join(names) + ' |', '|---' * (len(names) + 1) + '|']
    for kind in classes(results):
        of = [r for r in results if r.draw.kind == kind and r.due and r.draw.fault.sized_by_time]
        if not of:
            continue
        cells = []
        for low, high in zip(edges, edges[1:]):
            here = [r for r in of if low <= r.draw.size_ms < high]
            good = sum(1 for r in here if r.right and r.placed is not False)
            cells.append(f'{good} of {len(here)}' if here else '')
        lines.append(f'| {kind} | ' + ' | '.join(cells) + ' |')
    return '\n'.join(lines)


def compare(old, new):
    """What became better and what worse, of those that are in both sets."""
    before = {r.name: r for r in old}
    changed = [(before[r.name], r) for r in new if r.name in before and before[r.name].word != r.word]
    lines = []
    for title, wanted in (('worse', lambda a, b: WORDS.index(b.word) > WORDS.index(a.word)),
                          ('better', lambda a, b: WORDS.index(b.word) < WORDS.index(a.word))):
        these = [(a, b) for a, b in changed if wanted(a, b)]
        lines.append(f'{title}: {len(these)}')
        lines += [f'  {a.word} -> {b.line()}' for a, b in these]
    return '\n'.join(lines)
