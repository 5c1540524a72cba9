#!/usr/bin/env python3
"""Threads that serve one client each: their waits for it are waits of a loop, all else is not."""
import json
import os
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from libhooks import BIN, BUILD, box_folder, check, finish, run  # noqa: E402

PROGRAM = BUILD + '/tests/hooks/hooks-clients_subject'
CLIENTS, REQUESTS, ASKED = 3, 20, 2


def observe(how):
    with box_folder() as boxes, tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, TACHO_BOX_DIR=boxes, TACHO_CALL_THRESHOLD='10ms')
        trace = os.path.join(folder, 'x.tacho')
        p = run([BIN, 'run', '-o', trace, '--', PROGRAM, how], env, 60)
        check(f'{how}: it is recorded', p.returncode == 0, p.stderr[-300:])
        events = [json.loads(line) for line in
                  run([BIN, 'cat', '--json', trace], env).stdout.splitlines()]
        return events, json.loads(run([BIN, 'report', '--json', '--all', trace], env).stdout)


def of_type(events, name):
    return [e for e in events if e['type'] == name]


def clients(events):
    return [e for e in of_type(events, 'park') if e['loop']['name'] == 'connections']


def asked(events):
    return [e for e in of_type(events, 'call') if e['call']['name'] == 'recv' and
            e['at']['frames'][0].get('function') == 'ask']


def test_threads():
    events, told = observe('threads')
    found = clients(events)
    # The end of each is received as well.
    check('threads: each wait for a client is one',
          len(found) == CLIENTS * (REQUESTS + 1) + CLIENTS, len(found))
    check('threads: all have one loop', len({e['loop']['id'] for e in found}) == 1, found[:4])
    check('threads: each ends', len(of_type(events, 'unpark')) == len(found),
          len(of_type(events, 'unpark')))
    check('threads: in the middle of work it is a call', len(asked(events)) == CLIENTS * ASKED,
          asked(events))
    # A busy machine is one.
    alarms = [f for f in told['findings'] if f['severity'] != 'info' and
              f['rule'] not in ('kernel-scheduling-delay', 'process-pause')]
    check('threads: what one client waits for is told, and no alarm', not alarms and
          told['verdict']['category'] in ('none', 'scheduling', 'blocked-loop'),
          (alarms, told['verdict']))


def test_one():
    for how in ('one', 'unix'):
        events, _ = observe(how)
        check(f'{how}: accepting and receiving are both waits for clients',
              len(clients(events)) == CLIENTS * (REQUESTS + 2), len(clients(events)))
        # When the second is accepted, all have been waiting for long.
        depths = [(e['loop']['name'], e['depth']) for e in of_type(events, 'queue-depth')]
        check(f'{how}: after an accept it is told how many more wait',
              depths[-2:] == [('connections', 1), ('connections', 0)], depths)


def test_turns():
    events, _ = observe('turns')
    depths = [(e['loop']['name'].split()[-1], e['depth']) for e in of_type(events, 'queue-depth')]
    check('turns: what a loop accepts in a turn is told as well, with how many more wait',
          depths[-2:] == [('poll', 1), ('poll', 0)], depths)


def test_polls():
    events, told = observe('polls')
    check('polls: a wait for the only client is one', len(clients(events)) ==
          CLIENTS * (REQUESTS + 1) + CLIENTS, len(clients(events)))
    check('polls: no other loop is there', len(of_type(events, 'park')) == len(clients(events)),
          of_type(events, 'park')[:4])
    check('polls: no loop is compared with others', 'worker-imbalance' not in
          [f['rule'] for f in told['findings'] + told['considered']], told['findings'])


def test_others():
    for how, accepts in (('peeks', CLIENTS), ('spins', CLIENTS), ('proxies', CLIENTS),
                         ('epoll', CLIENTS)):
        events, _ = observe(how)
        check(f'{how}: what cannot wait, or has another loop, does not wait for clients',
              len(clients(events)) == accepts, len(clients(events)))


test_threads()
test_one()
test_turns()
test_polls()
test_others()
finish()
