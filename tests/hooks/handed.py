#!/usr/bin/env python3
"""What loops hand to threads that wait at a condition or semaphore: how much of it waits, and their calls."""
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from libhooks import BIN, BUILD, box_folder, boxes_in, check, finish, hooked, run  # noqa: E402

PROGRAM = BUILD + '/tests/hooks/hooks-handed_subject'
PIECES = 60


def record(how):
    """Its events, and how many pieces waited when the last was given."""
    with box_folder() as folder:
        p = run([PROGRAM, how], hooked(folder, {'TACHO_CALL_THRESHOLD': '10ms'}))
        out = folder + '/out'
        os.mkdir(out)
        run([BIN, 'recover', *boxes_in(folder), '-o', out], dict(os.environ))
        lines = run([BIN, 'cat', '--json', out], dict(os.environ)).stdout.splitlines()
    check(f'{how}: it runs', p.returncode == 0, (p.returncode, p.stderr[-300:]))
    events = [json.loads(line) for line in lines]
    return events, int(p.stdout.split()[1]) if p.stdout else -1


def queues(events):
    return [e for e in events if e['type'] == 'lock-queue']


def calls(events, name):
    return [e for e in events if e['type'] == 'call' and e['call']['name'] == name
            and e['at']['frames'][0].get('function') == 'piece']


def test_full(how, call):
    events, waiting = record(how)
    seen = queues(events)
    given = [q for q in seen if q.get('at')]
    # What was given without a signal is known when the next is.
    check(f'{how}: what waits is told', given and
          -(how == 'frugal') <= given[-1]['waiting'] - waiting <= 2, (given[-1:], waiting))
    check(f'{how}: nothing waits in the end', seen and seen[-1]['waiting'] == 0, seen[-1:])
    found = calls(events, call)
    check(f'{how}: calls of the pool are recorded, with their place',
          PIECES - 4 <= len(found) <= PIECES, len(found))


def test_none():
    events, _ = record('free')
    most = max((q['waiting'] for q in queues(events)), default=0)
    check('free: hardly anything waits', most <= 2, most)
    for how in ('batch', 'mutual'):
        events, _ = record(how)
        check(f'{how}: no queue is told', events and not queues(events), queues(events)[:2])
    check('batch: calls of its threads are not recorded', not calls(record('batch')[0], 'nanosleep'))


test_full('full', 'nanosleep')
test_full('relocks', 'nanosleep')
test_full('polls', 'poll')
test_full('semaphore', 'nanosleep')
test_full('frugal', 'nanosleep')
test_none()
finish()
