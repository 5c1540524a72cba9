#!/usr/bin/env python3
"""Checks what people and programs read of the rules against their table, src/explain/rules.def, and
the thresholds, src/model/judgement.def: docs/rules.md, docs/report.md, tacho-report(1), docs/agents.

    scripts/check-rules.py [--write] [ROOT]

prints one line per difference; status 1 when there is one. --write puts the tables right, and what
docs/rules.md says at the head of each rule; what stands below that is written by hand.
"""
import pathlib
import re
import sys

UNITS = {'NS': '', 'PERCENT': ' %', 'COUNT': '', 'PER_SECOND': '/s'}


def rows(text, macro):
    """The arguments of each row of a macro: texts without quotes, all else as it stands."""
    text = re.sub(r'/\*.*?\*/', '', text, flags=re.S)
    piece = r'"(?:\\.|[^"\\])*"|\((?:[^()]|\([^()]*\))*\)|[^",()]'
    for arguments in re.findall(rf'^{macro}\(((?:{piece}|,)*)\)$', text, re.M):
        found = [a.strip() for a in re.findall(rf'(?:{piece})+', arguments)]
        yield [''.join(re.findall(r'"((?:\\.|[^"\\])*)"', a)).replace('\\"', '"')
               if a.startswith('"') else a for a in found]


class Threshold:
    def __init__(self, name, text, unit, value, what):
        self.name, self.text, self.what = name, text, what
        scaled = re.match(r'([\d.]+) \* (MS|SECOND)$', value)
        if scaled:
            self.value = f'{scaled[1]} {"ms" if scaled[2] == "MS" else "s"}'
        else:
            self.value = '1 MiB' if value == '1 << 20' else value + UNITS[unit]


class Rule:
    def __init__(self, name, text, title, category, order, rests, needs, helps, limits, finds, advice):
        self.name, self.id, self.title, self.finds, self.advice = name, text, title, finds, advice
        self.category, self.rests = category, rests
        self.needs, self.helps = (re.findall(r'IN\((\w+)\)', a) for a in (needs, helps))
        self.limits = re.findall(r'L\((\w+)\)', limits)


class Table:
    def __init__(self, root):
        text = (root / 'src/explain/rules.def').read_text()
        self.categories = {name: (word, what) for name, word, what in rows(text, 'CATEGORY')}
        self.inputs = {name: (what, by) for name, what, by, *_ in rows(text, 'INPUT')}
        self.rests = dict(rows(text, 'RESTS'))
        self.rules = [Rule(*row) for row in rows(text, 'RULE')]
        thresholds = rows((root / 'src/model/judgement.def').read_text(), 'THRESHOLD')
        self.thresholds = {t[0]: Threshold(*t) for t in thresholds}

    def of(self, **what):
        """Ids of the rules with a category, or that rest on something."""
        return [f'`{r.id}`' for r in self.rules
                if all(getattr(r, key) == value for key, value in what.items())]

    def limits(self, rule):
        return ', '.join(f'`{t.text}` {t.value}' for t in (self.thresholds[n] for n in rule.limits))

    def words(self, inputs):
        return ', '.join(self.inputs[name][0] for name in inputs)

    def head(self, rule):
        """What docs/rules.md says first of a rule."""
        lines = [f'**{rule.title}**: {rule.finds}.', '',
                 f'- category: `{self.categories[rule.category][0]}`',
                 f'- needs: {self.words(rule.needs)}' if rule.needs else '',
                 f'- better with: {self.words(rule.helps)}' if rule.helps else '',
                 f'- thresholds: {self.limits(rule)}' if rule.limits else '',
                 f'- rests on: {self.rests[rule.rests]}',
                 f'- what to do: {rule.advice}']
        return '\n'.join(line for i, line in enumerate(lines) if line or i == 1)

    def tables(self):
        """By their heads, the rows of the tables in the documents."""
        return {
            '| rule | finds | needs | thresholds |': [
                f'| [`{r.id}`](#{r.id}) | {r.finds} | {self.words(r.needs)} | {self.limits(r)} |'
                for r in self.rules],
            '| input | recorded by |': [f'| {what} | {by} |' for what, by in self.inputs.values()],
            '| threshold | default | what it is |': [
                f'| `{t.text}` | {t.value} | {t.what} |' for t in self.thresholds.values()],
            '| category | meaning | rules |': [
                f'| `{word}` | {what} | {", ".join(self.of(category=name))} |'
                for name, (word, what) in self.categories.items()],
            '| findings rest on | rules |': [
                f'| {what} | {", ".join(self.of(rests=name))} |' for name, what in self.rests.items()],
        }

    def man(self):
        return '.Bl -tag -width kernel-scheduling-delay\n' + ''.join(
            f'.It Cm {r.id}\n{r.finds}\n' for r in self.rules) + '.El\n'


def with_tables(table, text):
    for head, lines in table.tables().items():
        text = re.sub(re.escape(head) + r'\n\|(?:---\|)+\n(?:\|.*\n)*',
                      lambda _, h=head, rest=lines: f'{h}\n|{"---|" * (h.count("|") - 1)}\n'
                      + ''.join(re.sub(r'\|  \|', '| |', line) + '\n' for line in rest), text)
    return text


def with_heads(table, text):
    """docs/rules.md with the heads of all rules; one that is new has nothing below."""
    begin = text.index('\n## ', text.index('| rule | finds'))
    written = dict(re.findall(r'^## `([a-z-]+)`\n\n\*\*.*\n\n(?:- .*\n)*\n?((?:(?!## ).*\n)*)',
                              text[begin:], re.M))
    sections = []
    for rule in table.rules:
        below = written.get(rule.id, '').strip('\n')
        sections.append(f'\n## `{rule.id}`\n\n{table.head(rule)}\n' + (f'\n{below}\n' if below else ''))
    return text[:begin] + ''.join(sections)


def with_list(table, page):
    return re.sub(r'(?<=\.Sh RULES\n)(.*?)\.Bl.*?\.El\n', lambda m: m[1] + table.man(), page, flags=re.S)


def wrong_in_agents(table, root):
    """Names that skills use and the table has not, and categories that triage does not know."""
    rules = {r.id for r in table.rules}
    for path in sorted((root / 'docs/agents').glob('*.md')):
        text = path.read_text()
        named = re.findall(r'coverage\.([a-z-]+)\.checked', text)
        named += [n for cell in re.findall(r'\b[Rr]ules? ((?:`[a-z-]+`(?:, | and | or )?)+)', text)
                  for n in re.findall(r'`([a-z-]+)`', cell)]
        for name in sorted(set(named) - rules):
            yield f'{path}: there is no rule {name}'
    told = dict(re.findall(r'^\| `([a-z-]+)` \| (.*?) \|',
                           (root / 'docs/agents/tacho-triage.md').read_text(), re.M))
    for word, what in table.categories.values():
        if told.get(word) != what:
            yield f'docs/agents/tacho-triage.md: `{word}` is not said to mean: {what}'


def main():
    arguments = [a for a in sys.argv[1:] if a != '--write']
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent)
    table = Table(root)
    found = []
    for name, put_right in (('docs/rules.md', (with_tables, with_heads)),
                            ('docs/report.md', (with_tables,)), ('man/tacho-report.1', (with_list,))):
        text = right = (root / name).read_text()
        for function in put_right:
            right = function(table, right)
        if '--write' in sys.argv:
            (root / name).write_text(right)
        elif right != text:
            found += [f'{name}: not as the table says: {line}' for line in
                      sorted(set(right.split('\n')) ^ set(text.split('\n')))] or [f'{name}: other order']
    found += wrong_in_agents(table, root)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
