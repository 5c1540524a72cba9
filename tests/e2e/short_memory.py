#!/usr/bin/env python3
"""Memory that runs out: whichever allocation of a command fails, it does not crash, and what it says is
the whole answer or an error. Nothing that was left out for want of memory looks like an answer.

    short_memory.py [WORD]      only commands with WORD in them
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from libcheck import BIN, check, said, skip, status
from librun import watched

TESTS = pathlib.Path(__file__).resolve().parents[1]
ANSWERS, IMPORTS = TESTS / 'golden-answers', TESTS / 'golden-import'
LIBRARY = os.path.join(os.environ['TACHO_BUILD'], 'tests/e2e/libshort_memory.so')
EACH = 3  # of the allocations of one place in the code: the first ones, and as many of the last
endless = []  # what does not end takes long enough once
COMMANDS = [
    ('info', 'threads.tacho'), ('info', '--json', 'crash.tacho'),
    ('report', 'lock.tacho'), ('report', '--all', '--ledger', 'pool.tacho'),
    ('report', '--json', '--ledger', 'deadlock.tacho'), ('report', IMPORTS / 'go-leak.trace.gz'),
    ('stats', 'lost-wake.tacho'), ('blame', '--slowest', '3', 'downstream.tacho'),
    ('diff', 'backlog.tacho', 'bufferevent.tacho'), ('flame', 'names.tacho'),
    ('cat', '--limit', '200', 'lock.tacho'), ('cat', '--json', '--limit', '200', 'crash.tacho'),
    ('sql', 'lock.tacho', 'SELECT * FROM polls JOIN locks ORDER BY 1, 2, 3, 4 LIMIT 50'),
    ('sql', 'lost-wake.tacho', 'SELECT count(*), sum(p.ns) FROM wakes w JOIN polls p ON p.task = w.task'),
    ('export', '--format', 'perfetto', '-o', '-', 'leak.tacho'),
    ('export', '--format', 'pprof', '-o', '-', 'names.tacho'),
    ('cat', IMPORTS / 'go-stops.trace.gz'), ('cat', IMPORTS / 'dial9/0.5.7.bin.gz'),
]


def tacho(arguments, **short):
    kept = {name: os.environ[name] for name in ('PATH', 'TACHO_BOX_DIR') if name in os.environ}
    env = {**kept, 'TZ': 'UTC', 'LC_ALL': 'C.UTF-8', 'LD_PRELOAD': LIBRARY,
           **{f'SHORT_MEMORY_{name.upper()}': str(value) for name, value in short.items()}}
    return subprocess.run([BIN, *arguments], cwd=ANSWERS, env=env, capture_output=True, timeout=120,
                          stdin=subprocess.DEVNULL)


def chosen(places):
    """Which of all allocations are to fail: some of each place."""
    of = {}
    for number, place in enumerate(places, 1):
        of.setdefault(place, []).append(number)
    return sorted({number for numbers in of.values()
                   for number in numbers[:EACH] + numbers[-EACH:]})


def wrong(arguments, whole, number, all_after):
    """What is wrong when this allocation fails; '': nothing."""
    if endless:
        return ''
    try:
        p = tacho(arguments, at=number, all=int(all_after))
    except subprocess.TimeoutExpired:
        endless.append(number)
        return 'it does not end'
    if p.returncode < 0:
        return f'{signal.Signals(-p.returncode).name}: {p.stderr.decode()[-100:]}'
    if p.returncode == 0 and (p.stdout, p.stderr) != (whole.stdout, whole.stderr):
        return f'it says something else: {p.stderr.decode()[-200:]}'
    if p.returncode != 0 and not p.stderr.strip():
        return f'exit {p.returncode} without a word'
    return ''


def test(arguments, tmp):
    name = ' '.join(getattr(word, 'name', word) for word in arguments)
    log = os.path.join(tmp, 'log')
    if os.path.exists(log):
        os.unlink(log)
    whole = tacho(arguments, log=log)
    places = pathlib.Path(log).read_text().split() if os.path.exists(log) else []
    check(f'{name}: it allocates', whole.returncode == 0 and len(places) > 10,
          (whole.returncode, len(places), whole.stderr[-300:]))
    numbers = chosen(places)
    with ThreadPoolExecutor(max_workers=2) as pool:
        for all_after in (False, True):
            found = pool.map(lambda n, a=all_after: wrong(arguments, whole, n, a), numbers)
            bad = [f'number {n} of {len(places)}, at {places[n - 1]}: {what}'
                   for n, what in zip(numbers, found) if what]
            which = 'all from one on' if all_after else 'one'
            check(f'{name}: {which} of {len(numbers)} allocations', not bad,
                  f'{len(bad)} times, first: ' + ' ;; '.join(bad[:12]))


def record(out, files, **short):
    """A program that says by files that it has begun, and that it has come to its end."""
    begun, ended = files
    return tacho(('run', '-q', '-o', out, '--', watched(), f'touch:{begun}', 'turns:20',
                  f'touch:{ended}', 'exit:7'), **short)


def wrong_run(number, tmp):
    """What is wrong with a recording in which this allocation fails; '': nothing."""
    out, *files = (os.path.join(tmp, f'{number}.{end}') for end in ('tacho', 'begun', 'ended'))
    p = record(out, files, at=number)
    if os.path.exists(files[0]) and (p.returncode != 7 or not os.path.exists(files[1])):
        return f'the program did not run to its end, but to exit {p.returncode}: {said(p)[:200]}'
    if p.returncode < 0:
        return f'{signal.Signals(-p.returncode).name}: {p.stderr.decode()[-100:]}'
    if p.returncode == 7 and not p.stderr.strip():
        info = tacho(('info', '--json', out))
        if info.returncode != 0:
            return f'there is no trace, and nothing is said: {info.stderr.decode()[-200:]}'
    elif not p.stderr.strip():
        return f'exit {p.returncode} without a word'
    return ''


def test_run(tmp):
    """The program is recorded, or it is said why not; and once begun, it runs to its end."""
    if not watched():
        skip('run', 'the program to record was not built')
        return
    log = os.path.join(tmp, 'run-log')
    whole = record(f'{tmp}/whole.tacho', (f'{tmp}/begun', f'{tmp}/ended'), log=log)
    places = pathlib.Path(log).read_text().split()
    check('run: it allocates', whole.returncode == 7 and len(places) > 10 and
          os.path.exists(f'{tmp}/ended'), said(whole))
    numbers = chosen(places)
    with ThreadPoolExecutor(max_workers=2) as pool:
        bad = [f'number {n} of {len(places)}, at {places[n - 1]}: {what}' for n, what in
               zip(numbers, pool.map(lambda n: wrong_run(n, tmp), numbers)) if what]
    check(f'run: one of {len(numbers)} allocations', not bad,
          f'{len(bad)} times: ' + ' ;; '.join(bad[:12]))


def main():
    words = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix='tacho-short-memory-') as tmp:
        for arguments in COMMANDS:
            if all(word in ' '.join(map(str, arguments)) for word in words):
                test(arguments, tmp)
        if not words or 'run' in words:
            test_run(tmp)
    return status()


if __name__ == '__main__':
    sys.exit(main())
