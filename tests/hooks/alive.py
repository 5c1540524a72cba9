#!/usr/bin/env python3
"""What programs begin and do not end is a finding, with the place that begins it; what they keep, fill
up once, or begin and end is none."""
import concurrent.futures
import json
import os
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from libhooks import BIN, BUILD, box_folder, check, finish, run, skip  # noqa: E402

# Program, what it does, the function that begins what is not ended ('': all is well), and what that
# is called.
CASES = [
    ('uv', 'leak', 'begin_session', 'uv_timer handles'),
    ('uv', 'comes-and-goes', '', ''),
    ('uv', 'pool', '', ''),
    ('uv', 'restarted', '', ''),
    ('uv', 'ended', '', ''),
    ('uv', 'many', '', ''),
    ('uv', 'crowded', '', ''),
    ('event', 'new', 'begin_new', 'events'),
    ('event', 'added', 'begin_added', 'added events'),
    ('event', 'bufferevent', 'begin_connection', 'bufferevents'),
    ('event', 'comes-and-goes', '', ''),
    ('event', 'pool', '', ''),
    ('plain', 'descriptors', 'watch_event', 'descriptors of epoll sets'),
    ('plain', 'descriptors-come-and-go', '', ''),
    ('plain', 'descriptors-pool', '', ''),
    ('plain', 'gone', 'watch_connection', 'descriptors of epoll sets'),
    ('plain', 'connections', '', ''),
    ('plain', 'opened', 'open_one', 'descriptors'),
    ('plain', 'opened-pool', '', ''),
    ('plain', 'opened-come-and-go', '', ''),
    ('plain', 'pairs', 'make_pair', 'descriptors'),
    ('plain', 'forgotten', 'watch_and_forget', 'descriptors'),
    ('plain', 'load', '', ''),
    ('plain', 'threads', 'begin_thread', 'threads'),
    ('plain', 'threads-come-and-go', '', ''),
    ('plain', 'threads-pool', '', ''),
]
LEAKS = ('handle-leak', 'task-leak')


def report(program, mode):
    """The report of one run; None: the program was not built."""
    path = os.path.join(BUILD, f'tests/hooks/hooks-alive_{program}')
    if not os.path.exists(path):
        return None
    with box_folder() as boxes, tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, TACHO_BOX_DIR=boxes)
        trace = os.path.join(folder, 'x.tacho')
        made = run([BIN, 'run', '-o', trace, '--', path, mode], env, 120)
        if made.returncode:
            return {'failed': made.stderr}
        told = run([BIN, 'report', '--json', trace], env)
        if not told.stdout:
            return {'failed': told.stderr}
        counters = run([BIN, 'cat', '--json', '--type', 'counter', trace], env).stdout
        return dict(json.loads(told.stdout),
                    counters=[json.loads(line) for line in counters.splitlines()])


def leaks_in(told):
    return [f for f in told.get('findings', []) if f['rule'] in LEAKS]


def observe(case):
    """Again where nothing was found: a machine may stop a program for so long that nothing grows."""
    program, mode, function, _ = case
    for _ in range(3):
        told = report(program, mode)
        if told is None or not function or leaks_in(told):
            break
    return told


def judge(program, mode, function, called, told):
    name = f'{program}: {mode}'
    if told is None:
        skip(name, f'lib{program} is not there')
        return
    leaks = leaks_in(told)
    if not function:
        check(name, 'findings' in told and not leaks, leaks or told)
        return
    found = leaks[0] if leaks else {'rule': 'none', 'where': [], 'summary': json.dumps(told)}
    where = [p.get('function') for p in found['where']]
    check(f'{name}: found, once', [f['rule'] for f in leaks] == ['handle-leak'], found['summary'])
    check(f'{name}: where', where[:1] == [function], where)
    check(f'{name}: what', found['summary'].startswith(called + ' pile up'), found['summary'])


with concurrent.futures.ThreadPoolExecutor(6) as pool:
    reports = list(pool.map(observe, CASES))
for case, told in zip(CASES, reports):
    judge(*case, told)
load = reports[CASES.index(('plain', 'load', '', ''))]
check('what grows with the connections is said', 'open connections' in
      (load['coverage']['handle-leak'].get('why') or ''), load['coverage']['handle-leak'])


def alive(mode):
    """How many were told to be alive, each time, at the place that told last; None: the program was
    not built."""
    told = reports[CASES.index(('uv', mode, '', ''))]
    gauges = told and [c for c in told.get('counters', []) if c['counter']['unit'] == 'alive']
    return gauges and [c['value'] for c in gauges
                       if c['counter']['id'] == gauges[-1]['counter']['id']]


many, crowded = alive('many'), alive('crowded')
if many is not None:
    # What has ended since it was told last.
    check('many are counted well', many and 10050 <= many[-1] <= 20000, many[-4:])
    # Seven in each of eight levels (hooks/alive.c), of which one may have just ended.
    check('those of one hash are counted as far as there is room',
          crowded and max(crowded) in (55, 56), crowded)
finish()
