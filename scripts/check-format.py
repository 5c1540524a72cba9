#!/usr/bin/env python3
"""Checks the tables of records (include/tacho_events.h; TACHO_PACKED in src/format/record.h) and
what people read of them: section 2 of docs/format.md, and the members of events in tacho-cat(1).

    scripts/check-format.py [--write] [ROOT]

prints one line per difference; status 1 when there is one. --write puts docs/format.md right.
"""
import pathlib
import re
import sys

# Numbers that are no events.
OTHERS = {
    0x00: '| 0x00 | | never written: a zeroed word is no record | |',
    0x3f: '| 0x3f | | never written: readers use it for an event of their own (section 11) | |',
    0x40: '| 0x40 | TIME | 0 | w0: ticks of the next record |',
}
HEAD = '| type | name | argument | payload |\n|---|---|---|---|\n'
PACKED_HEAD = '| type | name | stands for | argument and payload |\n|---|---|---|---|\n'
DEFINED = {'ID', 'KIND', 'FRAMES'}  # roles that are objects in JSON
HIDDEN = {'CUT', 'SLOT'}  # that are no members
ADDED = {'TEXT': {'cut'}, 'BUCKETS': {'from_ns'}, 'TRIGGER': {'value'}, 'FRAMES': {'kernel'}}


class Event:
    def __init__(self, name, number, text_name, words, _state, text, what):
        self.name, self.text_name, self.text, self.what = name, text_name, text, what
        self.number, self.words, self.fields = int(number, 0), int(words), []
        self.variable = self.number >> 6 == 3

    def row(self):
        argument = [f.row(self) for f in self.fields if f.word < 0 and f.what]
        payload = [self.what] if self.what else []
        payload += [f.row(self) for f in sorted(self.fields, key=lambda f: (f.word, f.low))
                    if f.word >= 0 and f.what]
        cells = [f'0x{self.number:02x}', self.name, '; '.join(argument) or '0', '; '.join(payload)]
        return '| ' + ' | '.join(c.replace('|', r'\|') for c in cells).rstrip() + ' |'

    def needed_words(self):
        ends = [f.word + (1 if f.bits else 0) + (f.role == 'TRACE_ID') for f in self.fields]
        return max(ends + [1 if self.variable else self.number >> 6])


class Field:
    def __init__(self, _event, name, at, role, what):
        self.name, self.role, self.what = name, role, what
        kind, *numbers = re.findall(r'\w+', at)
        numbers = [int(n) for n in numbers]
        self.word, self.low, self.bits = {
            'ARG': lambda: (-1, 0, 24), 'ARG_BITS': lambda a, n: (-1, a, n),
            'DATA': lambda: (0, 16, 48), 'BITS': lambda k, a, n: (k, a, n),
            'W': lambda k: (k, 0, 64), 'REST': lambda k: (k, 0, 0)}[kind](*numbers)

    def row(self, event):
        """'w3 bits 0..31: path'"""
        low, whole, where = self.low, 64, f'w{self.word}'
        if self.word < 0:
            whole, where = 24, ''
        elif self.word == 0 and event.variable:
            low, whole, where = low - 16, 48, 'data'
        elif self.role == 'TRACE_ID':
            where += f', w{self.word + 1}'
        elif not self.bits:
            where += '...'
        if 0 < self.bits < whole:
            where += f' bit {low}' if self.bits == 1 else f' bits {low}..{low + self.bits - 1}'
        return f'{where.strip()}: {self.what}' if where else self.what


def argument(text):
    """Without quotes, if it is strings, one after the other."""
    strings = re.findall(r'"([^"]*)"', text)
    return ''.join(strings) if strings else text.strip(' \t\n\\')


def calls(header, table):
    """(macro, arguments) of each line of a table."""
    text = re.search(rf'#define {table}\(.*?\)((?:.*\\\n)*.*\n)', header)[1]
    piece = r'"[^"]*"|\([^()]*\)|[^",()]'
    for what, arguments in re.findall(rf'\b([A-Z])\(((?:{piece}|,)*)\)', text):
        yield what, [argument(a) for a in re.findall(f'(?:{piece})+', arguments)]


def read_events(header):
    """The events with their fields."""
    events = []
    for what, values in calls(header, 'TACHO_EVENTS'):
        if what == 'E':
            events.append(Event(*values))
        else:
            events[-1].fields.append(Field(*values))
    return events


def wrong_in_table(events, packed):
    numbers = [e.number for e in events] + [int(p[1], 0) for p in packed] + list(OTHERS)
    if len(set(numbers)) != len(numbers):
        yield 'two records have one number'
    for e in events:
        names = [f.name for f in e.fields]
        for name in re.findall(r'\{(\w+)', e.text):
            if name not in names:
                yield f'{e.name}: its text shows {{{name}}}, which is no field of it'
        if len(set(names)) != len(names):
            yield f'{e.name}: two fields have one name'
        text, before = e.text, None
        while text != before:
            before = text
            text = re.sub(r'\{\w+(\?[^][{}|]*\|[^][{}|]*)?\}|\[[^][{}|]*\]', '', text)
        if re.search(r'[][{}|]', text):
            yield f'{e.name}: braces and brackets of its text do not match'
        if e.words != e.needed_words():
            yield f'{e.name}: says {e.words} words, its fields are in {e.needed_words()}'


def with_tables(text, events, packed):
    """docs/format.md as it should be."""
    rows = OTHERS | {e.number: e.row() for e in events}
    tables = {HEAD: [rows[n] for n in sorted(rows)],
              PACKED_HEAD: [f'| {number} | {name} | {stands} | {what} |'
                            for name, number, _, stands, what in packed]}
    for head, lines in tables.items():
        text, count = re.subn(re.escape(head) + r'(\|.*\n)*',
                              lambda _: head + '\n'.join(lines) + '\n', text)
        if not count:
            sys.exit(f'docs/format.md has no table with the head {head}')
    return text


def wrong_in_man(events, page):
    """Each member stands in the item of its type, emphasised if it is an object."""
    body = page.split('.Sh EVENTS')[1].split('.Bl ')[1].split('.El')[0]
    items = {}
    for item in body.split('.It Cm ')[1:]:
        names, _, rest = item.partition('\n')
        for name in re.findall(r'[\w-]+', names):
            items[name] = set(re.findall(r'^\.(Em|Ql) (\w+)', rest, re.MULTILINE)), names
    for e in events:
        if e.text_name not in items:
            yield f'{e.text_name} is missing'
            continue
        for f in e.fields:
            how = 'Em' if f.role in DEFINED else 'Ql'
            if f.role not in HIDDEN and (how, f.name) not in items[e.text_name][0]:
                yield f'{e.text_name}: ".{how} {f.name}" is missing'
    for name in items.keys() - {'resume', 'unknown'}:
        shown, together = items[name]
        fields = [f for e in events if e.text_name in re.findall(r'[\w-]+', together)
                  for f in e.fields]
        known = {f.name for f in fields}.union(*(ADDED.get(f.role, ()) for f in fields))
        for extra in sorted({member for _, member in shown} - known):
            yield f'{name}: has no {extra}'


def main():
    arguments = [a for a in sys.argv[1:] if a != '--write']
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent)
    docs, man = root / 'docs/format.md', root / 'man/tacho-cat.1'
    header = root / 'include/tacho_events.h'
    events = read_events(header.read_text())
    packed = [p for _, p in calls((root / 'src/format/record.h').read_text(), 'TACHO_PACKED')]
    found = [f'{header}: {line}' for line in wrong_in_table(events, packed)]
    text = docs.read_text()
    right = with_tables(text, events, packed)
    if '--write' in sys.argv:
        docs.write_text(right)
    elif right != text:
        found += [f'{docs}: not as the table says: {line}' for line in
                  sorted(set(right.split('\n')) ^ set(text.split('\n')))]
    found += [f'{man}: {line}' for line in wrong_in_man(events, man.read_text())]
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
