#!/usr/bin/env python3
"""Blame on cases whose fault is known: the pieces add up, and name what it was."""
import json
import os
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from libcases import Failed, Situation, tacho  # noqa: E402
from libresult import check, status  # noqa: E402
from libtable import FAULTS  # noqa: E402


def blame(situation, path, *options):
    done = tacho(situation.place, 'blame', '--json', path, *options)
    if done.returncode:
        raise Failed(f'blame: exit {done.returncode}, {done.stderr.strip()}')
    return json.loads(done.stdout)['subjects']


def largest(subject):
    return max((p for p in subject['pieces'] if p['depth'] == 0), key=lambda p: p['ns'])


def kernel(subject):
    """What the kernel ran instead: on a busy machine, any part of it."""
    return sum(p['ns'] for p in subject['pieces']
               if p['depth'] == 0 and p['owner'] in ('late', 'descheduled'))


def adds_up(name, subjects):
    """To the nanosecond, and no piece outside of it."""
    wrong = []
    for s in subjects:
        total = sum(p['ns'] for p in s['pieces'] if p['depth'] == 0)
        outside = [p for p in s['pieces'] if p['from_ns'] < s['from_ns'] or
                   p['to_ns'] > s['to_ns'] or p['ns'] > p['to_ns'] - p['from_ns']]
        if total != s['ns'] or s['ns'] != s['to_ns'] - s['from_ns'] or outside:
            wrong.append((s['name'], s['ns'], total, outside[:1]))
    check(f'{name}: the pieces of the {len(subjects)} slowest add up',
          subjects and not wrong, wrong[:3])


def place(piece):
    where = piece['where'][0] if piece['where'] else {}
    return where.get('function'), os.path.basename(where.get('file') or ''), where.get('line')


def at_fault(name, piece, case):
    function, file, line = place(piece)
    check(f'{name}: its place is {case.function} where the fault is',
          function == case.function and file == os.path.basename(case.source) and
          line in case.lines(), place(piece))


def record(situation, name):
    case = next(c for c in FAULTS if c.name == name)
    return case, situation.record(name, [situation.place.case(name)])


def guess(situation):
    case, path = record(situation, 'guess')
    found = blame(situation, path, '--slowest', '20')
    adds_up('guess', found)
    # Where reports go to is a thread of the same process; requests are on its first.
    slow = next(s for s in found if s['pieces'][0]['tid'] == s['pid'])
    piece = largest(slow)
    for p in slow['pieces']:
        print(f'  {"  " * p["depth"]}{p["ns"] / 1e6:9.3f} ms  {p["owner"]}: {p["text"]} {place(p)}')
    check('guess: most of the slowest request is a wait for a lock',
          piece['owner'] == 'lock' and piece['ns'] > slow['ns'] / 2, piece)
    check('guess: the lock has a name', str(piece['lock']).startswith('0x'), piece)
    at_fault('guess', piece, case)
    holders = {p['tid'] for p in slow['pieces'] if p['depth'] == 1}
    check('guess: it names the thread that held it, another than the one that waited',
          'held by' in piece['text'] and holders and piece['tid'] not in holders, slow['pieces'])


def uv(situation):
    case, path = record(situation, 'uv_lock')
    found = blame(situation, path, '--slowest', '10')
    adds_up('libuv', found)
    check('libuv: the slowest callback waited for a lock',
          found[0]['name'].startswith('uv_timer') and
          largest(found[0])['owner'] == 'lock', found[0])
    at_fault('libuv', largest(found[0]), case)


def event(situation):
    case, path = record(situation, 'event_pipe')
    found = blame(situation, path, '--slowest', '10')
    adds_up('libevent', found)
    piece = largest(found[0])
    check('libevent: the slowest callback was blocked in read',
          piece['owner'] == 'call' and 'read' in piece['text'], piece)
    at_fault('libevent', piece, case)


def api(situation):
    _, path = record(situation, 'api_long_poll')
    found = blame(situation, path, '--slowest', '40')
    adds_up('tasks', found)
    waited = [s for s in found if s['name'].startswith('tick') and s['ns'] > 40e6]
    others = [[p for p in s['pieces'] if not p['own'] and p['callback'] == 'compact']
              for s in waited]
    check('tasks: a task that was woken waited for another callback of its loop',
          waited and all(sum(p['ns'] for p in o) > (s['ns'] - kernel(s)) / 2
                         for o, s in zip(others, waited)),
          [largest(s) for s in waited[:2]] or [s['name'] for s in found[:6]])
    # The kernel may have run others meanwhile.
    code = [p for o in others for p in o if p['owner'] == 'code' and p['ns'] > 10e6]
    check('tasks: and that was code of compact', code and
          all(place(p)[0] in ('compact', 'compact_table') for p in code), code[:2])
    _, path = record(situation, 'api_downstream')
    found = blame(situation, path, '--span', 'query_database')
    adds_up('spans', found)
    check('spans: the outside took the time', found and
          all(largest(s)['owner'] == 'waiting for I/O' for s in found), found[:1])


def main():
    with Situation('root') as situation:
        for test in (guess, uv, event, api):
            try:
                test(situation)
            except (Failed, KeyError, StopIteration) as error:
                check(test.__name__, False, error)
    return status()


if __name__ == '__main__':
    sys.exit(main())
