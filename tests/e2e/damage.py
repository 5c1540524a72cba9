#!/usr/bin/env python3
"""Damage is no alarm: a trace that was cut, or of which bytes were flipped, zeroed or taken out, raises no finding
that the whole one does not have, and its report begins with how much of it can be read. The seeds are fixed;
TACHO_SOAK=1 tries many."""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from libcheck import BIN, check, skip, status

TESTS = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ['TACHO_BUILD'])
TRACES = sorted((TESTS / 'golden-answers').glob('*.tacho'))
SEEDS = 100 if os.environ.get('TACHO_SOAK') == '1' else 6
OF_DAMAGE = {'recorder-loss'}  # the finding that tells of it


def flipped(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice((1, 3, 10, 40))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def cut(data, rng):
    return data[:rng.randrange(64, len(data))]


def zeroed(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice((1, 3))):
        at, size = rng.randrange(len(data)), max(8, len(data) // 30)
        data[at:at + size] = bytes(len(data[at:at + size]))
    return bytes(data)


def shortened(data, rng):
    for _ in range(rng.choice((1, 3))):
        at, size = rng.randrange(len(data) // 8) * 8, rng.randrange(8, len(data) // 10)
        data = data[:at] + data[at + size // 8 * 8:]
    return data


KINDS = (flipped, cut, zeroed, shortened)


def report(path, *more):
    """Of a file of which nothing can be read: None."""
    p = subprocess.run([BIN, 'report', '--json', str(path), *more], capture_output=True, timeout=60)
    return json.loads(p.stdout) if p.returncode == 0 else None


def first_line(path):
    p = subprocess.run([BIN, 'report', str(path)], capture_output=True, text=True, timeout=60)
    return p.stdout.split('\n', 1)[0]


def alarms(found):
    return {f['rule'] for f in found['findings'] if f['severity'] != 'info'} - OF_DAMAGE


def one(job):
    """What is wrong with the report of a trace that was damaged so; None: nothing of it can be read."""
    path, kind, seed, before, folder = job
    broken = folder / f'{path.stem}-{kind.__name__}-{seed}.tacho'
    broken.write_bytes(kind(path.read_bytes(), random.Random(f'{path.name} {kind.__name__} {seed}')))
    found = report(broken)
    if found is None:
        return None
    readable = found['verdict']['readable']
    wrong = [f'{broken.name} has {rule}' for rule in alarms(found) - before]
    if readable['lost_records'] and not readable['damaged']:
        wrong.append(f'{broken.name}: records are lost, and it does not say so')
    if readable['damaged'] and readable['text'] not in first_line(broken):
        wrong.append(f'{broken.name}: {readable["text"]!r} is not in its first line: {first_line(broken)!r}')
    broken.unlink()
    return wrong


def damage_all(folder):
    before = {path: alarms(report(path)) for path in TRACES}
    for kind in KINDS:
        jobs = [(path, kind, seed, before[path], folder) for path in TRACES for seed in range(SEEDS)]
        with ThreadPoolExecutor(max_workers=2) as pool:
            results = list(pool.map(one, jobs))
        read = [r for r in results if r is not None]
        wrong = [text for r in read for text in r]
        check(f'{kind.__name__}: most of {len(jobs)} can still be read', len(read) > len(jobs) / 2, len(read))
        check(f'{kind.__name__}: no alarm that the whole trace does not have', not wrong, wrong)


def says_how_much(folder):
    """The sentences, and that what is whole has none."""
    path = TESTS / 'golden-answers' / 'names.tacho'
    whole = report(path)
    check('a trace that is whole says so', whole['verdict']['readable'] == {
        'damaged': False, 'cut': False, 'share': 1, 'share_is_bound': False,
        'records': whole['trace']['events'], 'lost_records': 0, 'text': None}, whole['verdict'])
    data = path.read_bytes()
    broken = folder / 'cut.tacho'
    broken.write_bytes(data[:6000])
    check('a file that is cut says so, and what is left',
          first_line(broken).startswith('recording: the file is cut: its end is missing. 723 records of 1.06 s are left'), first_line(broken))
    check('it has no other alarm', not alarms(report(broken)), report(broken)['verdict'])
    found = report(broken, '--fail-on', 'any')
    check('and fails for who asks for that', found is None, found)
    # A byte in the first block of records.
    broken.write_bytes(data[:2500] + bytes([data[2500] ^ 1]) + data[2501:])
    found = report(broken)['verdict']['readable']
    check('a file with one bad block says how many records are left',
          found['damaged'] and not found['share_is_bound'] and 0 < found['share'] < 1
          and found['records'] + found['lost_records'] >= whole['trace']['events'] - 2
          and f'{found["records"]} of {found["records"] + found["lost_records"]} records' in first_line(broken),
          (found, first_line(broken)))


def beside_others(folder):
    """What is wrong with one file says nothing about another process."""
    both = folder / 'both'
    both.mkdir()
    whole = TESTS / 'golden-answers' / 'lock.tacho'
    (both / 'whole.tacho').write_bytes(whole.read_bytes())
    (both / 'cut.tacho').write_bytes((TESTS / 'golden-answers' / 'leak.tacho').read_bytes()[:3000])
    (both / 'none.tacho').write_bytes(b'This is no trace.')
    found = report(both)
    check('findings of a whole trace stay beside one that is cut', alarms(found) == alarms(report(whole)),
          alarms(found))
    check('and the first line says that not all can be read',
          first_line(both).startswith('recording: the trace is cut'), first_line(both))


def end(process):
    process.send_signal(signal.SIGKILL)
    process.wait()


def boxes():
    """The box of a process that was killed, cut as a copy that did not end."""
    program = BUILD / 'tests/cases/case-healthy_tasks'
    if not program.exists():
        skip('boxes', 'the programs of tests/cases were not built')
        return
    place = pathlib.Path(tempfile.mkdtemp(prefix='tacho-damage-', dir='/dev/shm'))
    try:
        with subprocess.Popen([program], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(
                os.environ, TACHO_BOX_DIR=str(place),
                LD_PRELOAD=str(BUILD / 'src/hooks/libtacho-preload.so'))) as process:
            time.sleep(1.2)
            end(process)
        box = next(place.glob('*.box'), None)
        if not check('it left a box', box, list(place.iterdir())):
            return
        data = box.read_bytes()
        used = [at for at in range(0, len(data), 4096) if any(data[at:at + 4096])]
        before = alarms(report(box))
        rng = random.Random('boxes')
        wrong, read = [], 0
        for at in sorted(rng.sample(used, min(len(used), 8))):
            part = place / 'part.box'
            with open(part, 'wb') as f:
                for page in (page for page in used if page <= at):
                    f.seek(page)
                    f.write(data[page:page + 4096 if page < at else page + 1000])
            found = report(part)
            if found is None:
                continue
            read += 1
            wrong += [f'cut at {at}: {rule}' for rule in alarms(found) - before]
            if not found['verdict']['readable']['damaged']:
                wrong.append(f'cut at {at}: it does not say so')
        check('boxes that are cut can be read', read, used)
        check('a box that is cut has no alarm that the whole one does not have', not wrong, wrong)
    finally:
        for path in place.iterdir():
            path.unlink()
        place.rmdir()


def main():
    with tempfile.TemporaryDirectory(prefix='tacho-test-') as name:
        folder = pathlib.Path(name)
        damage_all(folder)
        says_how_much(folder)
        beside_others(folder)
        boxes()
    return status()


if __name__ == '__main__':
    sys.exit(main())
