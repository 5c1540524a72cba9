#!/usr/bin/env python3
"""The numbers of every answer agree with each other (libnumbers.py), in every recording that is in tests/ and
in those that other suites have left in build/. And that is noticed where they do not."""
import copy
import json
import os
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from libcheck import BIN, check, status
import libnumbers  # beside libresult.py

TESTS = pathlib.Path(__file__).resolve().parents[1]
EXAMPLE = TESTS / 'golden-answers' / 'lock.tacho'


def recordings():
    build = pathlib.Path(os.environ.get('TACHO_BUILD', TESTS.parent / 'build'))
    yield from sorted(TESTS.glob('golden*/*.tacho'))
    yield from sorted(TESTS.glob('golden-import/*.trace*'))
    yield from sorted(TESTS.glob('golden-import/dial9/**/*.bin*'))
    # What was made to be unreadable, or is being written, is another test's.
    for path in sorted(build.glob('**/*.tacho')):
        if subprocess.run([BIN, 'report', path], capture_output=True, timeout=300).returncode == 0:
            yield path


def look_at_all():
    paths = list(recordings())
    check('there are recordings', len(paths) > 30, paths)
    with ThreadPoolExecutor(max_workers=2) as pool:
        answers = pool.map(lambda path: libnumbers.wrong_numbers(BIN, str(path)), paths)
        for path, wrong in zip(paths, answers):
            check(f'{path.parent.name}/{path.name}: its numbers agree', not wrong, wrong)


def changed(report, change):
    report = copy.deepcopy(report)
    change(report['findings'][0])
    return libnumbers.wrong_in_report(report)


def notices():
    """Each relation, by a finding that breaks it."""
    p = subprocess.run([BIN, 'report', '--all', '--json', '--ledger', EXAMPLE], capture_output=True, check=True)
    report = json.loads(p.stdout)
    check('an example has an alarm with a measure', report['findings'][0]['measure'], report['findings'][0])
    check('its numbers agree', not libnumbers.wrong_in_report(report), libnumbers.wrong_in_report(report))

    def summary(text):
        return lambda f: f.update(summary=text)

    def measure(**numbers):
        return lambda f: f['measure'].update(numbers)

    def evidence(**numbers):
        return lambda f: f['evidence'][0].update(numbers)
    broken = {
        'an alarm of 0 ns': summary('nothing of the process ran for up to 0 ns'),
        'a time longer than the window': summary('it has waited for 9000 s'),
        'an id that is there twice': summary('held by refresher (20083) (20083)'),
        'a longest that is longer than all': measure(longest_ns=3 * 10**8, total_ns=2 * 10**8, count=3),
        'a sum that its parts do not reach': measure(longest_ns=10, total_ns=100, count=3),
        'a sum longer than the window': measure(longest_ns=10**10, total_ns=10**10, count=1, threads=1),
        'a measure of nothing': measure(count=0),
        'evidence before the window': evidence(from_ns=0),
        'a warning above a critical finding': lambda f: f.update(severity='warning'),
        'a condition above what something waited for': lambda f: f.update(condition=True),
        'instances that are not as many as processes': lambda f: f.update(processes=2, processes_in_all=2),
        'instances that do not add up': lambda f: f['instances'][0].update(waiting_ns=1),
        'evidence that ends before it begins': evidence(to_ns=report['findings'][0]['evidence'][0]['from_ns'] - 1),
    }
    for name, change in broken.items():
        check(f'{name} is noticed', changed(report, change), name)
    report['ledger']['threads'][0]['owners'][0]['longest_ns'] = 10**15
    check('a ledger with a longest that is longer than all is noticed', libnumbers.wrong_in_report(report))


def main():
    notices()
    look_at_all()
    return status()


if __name__ == '__main__':
    sys.exit(main())
