#!/usr/bin/env python3
"""Draws small bugs at random from all of src/, for scripts/mutate.py.

    scripts/draw-mutations.py COUNT [SEED] >tests/mutations/FILE.txt

Every line of code is as likely as any other, and so is every operator that fits the line: what comes is
not chosen. A bug that the compiler refuses, or of which it makes the same code, is drawn anew, in files that
compile without options of the build. Each is named by what the line is then.
"""
import pathlib
import random
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
OPERATORS = [  # what is looked for, and what stands there instead
    (r' < ', ' <= '), (r' <= ', ' < '), (r' > ', ' >= '), (r' >= ', ' > '),
    (r' == ', ' != '), (r' != ', ' == '), (r' && ', ' || '), (r' \|\| ', ' && '),
    (r' \+ ', ' - '), (r' - ', ' + '), (r' \* ', ' + '), (r' / ', ' * '),
    (r' & ', ' | '), (r' \| ', ' & '), (r' << ', ' >> '), (r' >> ', ' << '),
    (r' \+= ', ' -= '), (r' -= ', ' += '), (r' \|= ', ' = '), (r'\+\+', '--'),
    (r'\btrue\b', 'false'), (r'\bfalse\b', 'true'), (r'\bcontinue;', 'break;'),
    (r'\bbreak;', 'continue;'), (r'\bif \(!', 'if ('),
    (r'\bif \((?!!)(.*)\)( \{)?$', r'if (!(\1))\2'),
    (r'\breturn 0;', 'return 1;'), (r'\breturn -E\w+;', 'return 0;'),
    (r'(?<![\w.])[1-9]\d*(?![\w.])', lambda m: str(int(m.group()) + 1)),
    (r'(?<![\w.])[1-9]\d*(?![\w.])', lambda m: str(int(m.group()) - 1)),
]
STATEMENT = re.compile(r'\t+(?!return|break|continue|goto|case|default|static|const|struct|typedef)'
                       r'[\w>*(][^=]*(?:\(| [-+|&]?= |\+\+|--).*;$')


def code_lines():
    """(path, number) of all lines that are neither comments nor empty nor of the preprocessor."""
    found = []
    for path in sorted((ROOT / 'src').rglob('*.[ch]')):
        comment = False
        for number, line in enumerate(path.read_text().splitlines()):
            text = line.strip()
            comment = comment or text.startswith('/*')
            if not comment and text and text[0] != '#' and line[0] == '\t':
                found.append((path, number))
            if '*/' in text:
                comment = False
    return found


def changes_of(line):
    """Every line that one of the operators makes of this one."""
    code = line.partition('/*')[0].rstrip()
    found = [line[:m.start()] + m.expand(new) + line[m.end():] if isinstance(new, str)
             else line[:m.start()] + new(m) + line[m.end():]
             for old, new in OPERATORS for m in re.finditer(old, code)
             if code[:m.start()].count('"') % 2 == 0]
    if STATEMENT.match(code):
        found.append(line[:len(line) - len(line.lstrip())] + ';')
    return found


def compiled(source):
    """The code that the compiler makes of this source; None: it refuses."""
    done = subprocess.run(
        ['gcc', '-std=gnu11', '-O2', '-w', '-S', '-I', 'src', '-I', 'include', '-x', 'c', '-',
         '-o', '-'],
        input=source, capture_output=True, text=True, cwd=ROOT)
    return done.stdout if done.returncode == 0 else None


def once(lines, number):
    """The shortest run of lines from this one on that is in the file once, as mutate looks for it."""
    def alike(text):
        return ' '.join(re.findall(r'\w+|\S', text))
    whole = alike('\n'.join(lines))
    for end in range(number + 1, len(lines) + 1):
        text = '\n'.join(lines[number:end])
        if whole.count(alike(text)) == 1:
            return end
    return None


def draw(places, dice):
    path, number = dice.choice(places)
    lines = path.read_text().splitlines()
    changed = changes_of(lines[number])
    end = once(lines, number)
    if not changed or not end:
        return None
    new = dice.choice(changed)
    bug = lines[:number] + [new] + lines[number + 1:]
    if path.suffix == '.c':
        before, after = (compiled('\n'.join(text) + '\n') for text in (lines, bug))
        if before and (not after or before == after):
            return None
    what = new.strip() if new.strip() != ';' else f'without {lines[number].strip()}'
    return '\n'.join([f'@@ {path.relative_to(ROOT)}: {what}',
                      *(f'- {line.strip()}'.strip() for line in lines[number:end]),
                      *(f'+ {line.strip()}'.strip() for line in bug[number:end])])


def main():
    count = int(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 31)
    drawn, places, dice = [], code_lines(), random.Random(seed)
    while len(drawn) < count:
        bug = draw(places, dice)
        if bug and bug not in drawn:
            drawn.append(bug)
    print(f'# Drawn by scripts/draw-mutations.py {count} {seed}: whatever came is here.\n')
    print('\n\n'.join(drawn))


if __name__ == '__main__':
    main()
