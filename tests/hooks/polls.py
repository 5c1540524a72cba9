#!/usr/bin/env python3
"""poll and select are calls where a thread has a loop of another kind, and a loop where it has none; and
epoll is, on another set than that of the loop."""
import json
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from libhooks import BIN, BUILD, box_folder, boxes_in, check, finish, hooked, run, skip  # noqa: E402

PROGRAM = BUILD + '/tests/hooks/hooks-polls_subject'
EVENTS, MS = 60, 30


def read(folder):
    """The events of the boxes in a folder, by process, with names of functions."""
    out = folder + '/out'
    os.mkdir(out)
    run([BIN, 'recover', *boxes_in(folder), '-o', out], dict(os.environ))
    processes = {}
    for line in run([BIN, 'cat', '--json', out], dict(os.environ)).stdout.splitlines():
        e = json.loads(line)
        processes.setdefault(e['pid'], []).append(e)
    return list(processes.values())


def events_of(how, threshold='10ms'):
    with box_folder() as folder:
        p = run([PROGRAM, how], hooked(folder, {'TACHO_CALL_THRESHOLD': threshold}))
        events = read(folder)
    check(f'{how}: it is recorded', p.returncode == 0 and events, (p.returncode, p.stderr[-300:]))
    return events or [[]]


def functions(at):
    return [f.get('function') for f in (at or {}).get('frames', [])]


def parks(events, name):
    return sum(e['type'] == 'park' and name in e['loop']['name'] for e in events)


def calls(events, name):
    return [e for e in events if e['type'] == 'call' and e['call']['name'] == name]


def seen(events):
    kinds = {}
    for e in events:
        kinds[e['type']] = kinds.get(e['type'], 0) + 1
    return kinds


def test_epoll():
    for how, early in (('epoll', 0), ('looks', 7)):  # before it is known how the thread waits
        events = events_of(how)[0]
        found = calls(events, 'poll')
        good = [c for c in found if 'ask' in functions(c['at'])[:1] and
                int(c['duration_ns']) >= MS * 990000]
        check(f'{how}: poll in the middle of work is a call, with its place',
              len(found) == len(good) == EVENTS // 20, found or seen(events))
        check(f'{how}: it is no wait of a second loop', parks(events, ' poll') == early and
              parks(events, ' epoll') == EVENTS, seen(events))


def test_sets():
    """A loop that is run in the middle of another's turn blocks that."""
    events = events_of('sets')[0]
    found = calls(events, 'epoll_wait')
    good = [c for c in found if 'run_other' in functions(c['at'])[:1] and
            int(c['duration_ns']) >= MS * 990000]
    check('sets: a wait of another loop is a call, with its place',
          len(found) == len(good) == EVENTS // 20 and parks(events, ' epoll') == EVENTS,
          found or seen(events))
    events = events_of('switch', '0')[0]
    n = parks(events, ' epoll')
    check('switch: a thread may go over to another set', 4 * EVENTS <= n <= 5 * EVENTS and
          len(calls(events, 'epoll_wait')) + n == 5 * EVENTS, (n, seen(events)))


def test_between():
    """Waits of one kind are told apart by where they are called, after the first few."""
    for how, every in (('between', 5), ('often', 3)):
        events = events_of(how)[0]
        found = [c for c in calls(events, 'poll') if functions(c['at'])[:1] == ['ask']]
        check(f'{how}: poll between two waits for work is a call', len(found) == len(
            calls(events, 'poll')) and EVENTS // every - 4 <= len(found) < EVENTS // every,
            (len(found), seen(events)))
    events = events_of('sleeps')[0]
    found = [c for c in calls(events, 'select') if functions(c['at'])[:1] == ['pick'] and
             int(c['duration_ns']) >= MS * 990000]
    check('sleeps: select for nothing between two waits for work is a call', len(found) == len(
        calls(events, 'select')) and EVENTS // 5 - 4 <= len(found) < EVENTS // 5,
        (len(found), seen(events)))
    events = events_of('timer', '0')[0]
    check('timer: where nothing else is waited for, it is where the thread rests',
          not calls(events, 'select') and parks(events, ' select') == EVENTS, seen(events))
    for how, n in (('phases', 2 * EVENTS), ('nested', EVENTS + EVENTS // 10 * 3)):
        events = events_of(how, '0')[0]
        check(f'{how}: another loop is no call', not calls(events, 'poll') and
              parks(events, ' poll') == n, seen(events))


def test_loops():
    for how, least, most in (('poll', EVENTS, EVENTS), ('even', EVENTS, EVENTS),
                             ('later', 3 * EVENTS, 4 * EVENTS)):
        events = events_of(how, '0')[0]
        n = parks(events, ' poll')
        check(f'{how}: a loop of poll is one', least <= n <= most and
              len(calls(events, 'poll')) + n == most, (n, seen(events)))
    child = [e for e in events_of('child', '0') if not parks(e, ' epoll')]
    check('a child begins anew', len(child) == 1 and parks(child[0], ' poll') == EVENTS,
          [seen(e) for e in child])


def test_uv():
    with open(PROGRAM, 'rb') as f:
        if b'uv_run' not in f.read():
            skip('libuv', 'no development package of libuv when it was built')
            return
    events = events_of('uv')[0]
    found = calls(events, 'select')
    check('select in a callback of libuv is a call, with its place', len(found) == 3 and
          all(functions(c['at'])[:1] == ['choose'] for c in found), found or seen(events))
    check('it is no wait of a loop', not parks(events, ' select'), seen(events))


def test_killed():
    """A poll that does not return is under way, and the thread is not parked."""
    with box_folder() as folder:
        p = subprocess.Popen([PROGRAM, 'killed'], env=hooked(folder), stdout=subprocess.PIPE)
        p.stdout.readline()
        time.sleep(0.2)
        p.kill()
        p.wait()
        p.stdout.close()
        events = read(folder)
    last = events[0][-1] if events else {}
    check('a poll that does not return is told with its place', last.get('type') == 'call-open' and
          last['call']['name'] == 'poll' and functions(last['at']) == ['ask'], last)


test_epoll()
test_sets()
test_between()
test_loops()
test_uv()
test_killed()
finish()
