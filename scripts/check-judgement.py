#!/usr/bin/env python3
"""Checks the constants of src/model/judgement.def: each has a reason, and names unit tests.

    scripts/check-judgement.py

prints one line for each that is wrong; status 1 when there is one.

    scripts/check-judgement.py --try [NAME ...]

makes each constant, or those named, a little more and a little less, and runs the tests that it names with
that, which `ninja -C build` has built: one of them must fail each time. With --all, all tests of the rules are
run, and those that fail are printed.
"""
import argparse
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

TESTS = ('judgement_', 'explain_', 'diff_', 'model_')


def constants(text):
    """name: (unit, value, reason, tests)"""
    found = {}
    literal = r'((?:"[^"]*"\s*)+)'
    for name, unit, value, reason, tests in re.findall(
            rf'^CONSTANT\((\w+), (\w+), ([^,"]+),\s*{literal},\s*{literal}\)$', text, re.M):
        reason, tests = (''.join(re.findall(r'"([^"]*)"', t)) for t in (reason, tests))
        found[name] = unit, value, reason, tests.split()
    return found


def wrong(root):
    text = (root / 'src/model/judgement.def').read_text()
    table = constants(text)
    known = {f'{path.stem}:{test}' for path in (root / 'tests/unit').glob('*.c')
             for test in re.findall(r'cmocka_unit_test\((\w+)\)', path.read_text())}
    if len(table) != len(re.findall('^CONSTANT', text, re.M)):
        yield 'a row is not as others are'
    for name, (_, _, reason, tests) in table.items():
        if not reason:
            yield f'{name}: it has no reason'
        if not tests:
            yield f'{name}: it names no test'
        for test in tests:
            if test not in known:
                yield f'{name}: there is no unit test {test}'


def moved(unit, value, way):
    """The value, a little more or less."""
    number = eval(value, {'US': 1e3, 'MS': 1e6, 'SECOND': 1e9})  # of our own table
    if unit == 'COUNT':
        return number + way
    if unit == 'SHARE' and number > 0.5:
        return 1 - (1 - number) * (1 - 0.1 * way)
    if unit == 'TIMES' and number < 2:
        return 1 + (number - 1) * (1 + 0.1 * way)
    return number * (1 + 0.1 * way)


class Trial:
    """Links unit tests with other constants, and runs them."""

    def __init__(self, root, folder):
        self.root, self.folder, self.build = root, pathlib.Path(folder), root / 'build'
        self.text = (root / 'src/model/judgement.def').read_text()
        self.object = self.folder / 'judgement.o'

    def make(self, name, value):
        changed = self.folder / 'model/judgement.def'
        changed.parent.mkdir(exist_ok=True)
        text, count = re.subn(rf'^(CONSTANT\({name}, \w+, )[^,"]+', rf'\g<1>{value!r}', self.text,
                              flags=re.M)
        assert count == 1, name
        changed.write_text(text)
        subprocess.run(['cc', '-std=gnu11', '-fPIC', f'-I{self.folder}', f'-I{self.root}/src', '-c',
                        '-o', self.object, self.root / 'src/model/judgement.c'], check=True)

    def fails(self, test, only=None):
        """The tests of a program that fail."""
        target = f'tests/unit/unit-{test}'
        commands = subprocess.run(['ninja', '-C', self.build, '-t', 'commands', '-s', target],
                                  capture_output=True, text=True, check=True).stdout
        link = next(shlex.split(line) for line in commands.splitlines() if f' -o {target} ' in line)
        program = self.folder / f'unit-{test}'
        link[link.index('-o') + 1:link.index('-o') + 2] = [str(program), str(self.object)]
        subprocess.run(link, cwd=self.build, check=True)
        p = subprocess.run([program], capture_output=True, text=True, timeout=300,
                           errors='replace', env={'PATH': '/usr/bin:/bin', 'TMPDIR': str(self.folder)})
        failed = re.findall(r'\[  FAILED  \] ([a-z]\w+)', p.stdout + p.stderr)
        return sorted({f'{test}:{name}' for name in failed if not only or f'{test}:{name}' in only}
                      or ({f'{test}:?'} if p.returncode and not only and not failed else set()))


def attempt(root, names, all_tests):
    table = constants((root / 'src/model/judgement.def').read_text())
    programs = sorted(p.stem for p in (root / 'tests/unit').glob('*.c') if p.stem.startswith(TESTS))
    missed = 0
    with tempfile.TemporaryDirectory(prefix='tacho-judgement-') as folder:
        trial = Trial(root, folder)
        for name in names or table:
            unit, value, _, tests = table[name]
            for way in (1, -1):
                trial.make(name, moved(unit, value, way))
                tried = programs if all_tests else sorted({t.split(':')[0] for t in tests})
                failed = [f for t in tried for f in trial.fails(t, None if all_tests else tests)]
                missed += not failed
                print(f'{name}, {"more" if way > 0 else "less"}: {" ".join(failed) or "NOTHING FAILED"}',
                      flush=True)
    return missed


def main():
    options = argparse.ArgumentParser()
    options.add_argument('--try', dest='attempt', action='store_true')
    options.add_argument('--all', action='store_true')
    options.add_argument('names', nargs='*')
    a = options.parse_args()
    root = pathlib.Path(__file__).resolve().parent.parent
    if a.attempt or a.all:
        return 1 if attempt(root, a.names, a.all) else 0
    found = list(wrong(root))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
