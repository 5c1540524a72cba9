#!/usr/bin/env python3
"""Threads that say in tacho.h that they run a loop or tasks are loops to every hook, however they
wait: their blocking calls are recorded with their place, and so are CPU samples, locks and how the
kernel treated slow polls."""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from libresult import check, skip, status  # noqa: E402

BUILD = os.path.abspath(os.environ.get('TACHO_BUILD') or 'build')
BIN = os.environ.get('TACHO_BIN') or BUILD + '/src/cli/tacho'
PROGRAM = BUILD + '/tests/hooks/hooks-tasks_subject'
MS = 1_000_000


class Run:
    """The program recorded for two seconds, in which it has four faults."""

    def __init__(self, fault, way, workers):
        self.fault = fault
        self.name = f'{fault}, {way}, {workers} workers'
        with tempfile.TemporaryDirectory(prefix='tacho-tasks-') as folder:
            trace = folder + '/tasks.tacho'
            subprocess.run([BIN, 'run', '-o', trace, '--', PROGRAM, fault, way, str(workers), '2'],
                           capture_output=True, timeout=90, check=True)
            lines = subprocess.run([BIN, 'cat', '--json', trace], capture_output=True, text=True,
                                   timeout=90, check=True).stdout.splitlines()
            self.events = [json.loads(line) for line in lines]
            self.report = json.loads(subprocess.run(
                [BIN, 'report', '--json', trace], capture_output=True, text=True, timeout=90,
                check=False).stdout)

    def of(self, *types):
        return [e for e in self.events if e['type'] in types]

    def before(self, kind):
        """What the same thread recorded before each of them."""
        last, found = {}, []
        for e in self.events:
            if e['type'] == kind:
                found.append(last.get(e['thread'], {'type': None}))
            last[e['thread']] = e
        return found

    def in_function(self, event, function):
        return any(f.get('function') == function or
                   any(i['function'] == function for i in f.get('inlined_into', []))
                   for f in (event.get('at') or {}).get('frames', []))

    def not_looked_for(self):
        return [rule for rule, c in self.report['coverage'].items() if not c['checked']]


def sleeps(run):
    calls = [e for e in run.of('call') if e['call']['name'] in ('nanosleep', 'clock_nanosleep', 'poll') and
             run.in_function(e, f'fault_{run.fault}s') and e['duration_ns'] >= 75 * MS]
    check(f'{run.name}: the call that blocks a poll is recorded, with its place', calls,
          [e['call']['name'] for e in run.of('call')])
    before = [e['type'] for e in run.before('sched')]
    check(f'{run.name}: how the kernel treated the poll is recorded, before the next one begins',
          'poll-end' in before and not {'poll-begin', 'poll-switch'} & set(before), before)
    check(f'{run.name}: blocking calls and scheduling were looked for',
          not {'blocking-call', 'kernel-scheduling-delay'} & set(run.not_looked_for()),
          run.not_looked_for())


def named(run):
    # A busy machine may keep it for longer than its faults do.
    first = next((f for f in run.report['findings'] if f['rule'] != 'kernel-scheduling-delay'), {})
    check(f'{run.name}: the report names the function',
          'fault_' in first.get('summary', '') or
          any(w['function'].startswith('fault_') for w in first.get('where', [])),
          run.report['verdict'])


def computes(run):
    check(f'{run.name}: CPU samples are taken of the poll',
          [e for e in run.of('sample', 'sample-frames') if run.in_function(e, 'fault_computes')],
          f"{len(run.of('sample', 'sample-frames'))} samples")
    # It has its thread for 80 ms of CPU time.
    check(f'{run.name}: how the kernel treated the poll is recorded', run.of('sched'), 'nothing')


def holds(run):
    function = run.fault
    locks = {e['of'] for e in run.of('stack')
             if run.in_function(e, 'fault_wants' + run.fault[11:]) or
             run.in_function(e, 'fault_wants')}
    releases = [e for e in run.of('lock-release') if e['lock'] in locks]
    check(f'{run.name}: the release of the lock says who held it',
          releases and all(run.in_function(e, function) for e in releases),
          [e.get('at') for e in releases])
    found = [f for f in run.report['findings'] if f['rule'] == 'lock-contention']
    check(f'{run.name}: the report names the function that held the lock',
          any(f['where'] and f['where'][0]['function'] == function for f in found),
          [f['summary'] for f in run.report['findings']])


def waits_for_work(run):
    calls = [(e['call']['name'], e['duration_ns']) for e in run.of('call')
             if e['call']['name'] != 'pthread_join']  # at the end
    check(f'{run.name}: what a worker waits for work with is no blocking call', not calls, calls)


def waits_in_its_park(run):
    """A worker that waits in epoll between park and unpark: its park is told once, on its own loop, and
    the wait ends where the call returned."""
    parked, wrong = {}, []
    for e in run.of('park', 'unpark'):
        if (e['type'] == 'park') == parked.get(e['thread'], False):
            wrong.append(e)
        parked[e['thread']] = e['type'] == 'park'
    check(f'{run.name}: each park has one end', not wrong, wrong[:2])
    others = {e['loop']['name'] for e in run.of('park') if e['loop']['level'] != 'api'}
    check(f'{run.name}: parks are those of the loop that the worker says', not others, others)
    before = [e['type'] for e in run.before('ready')]
    check(f'{run.name}: what is ready is told where the wait ends',
          before and set(before) <= {'unpark', 'ready'}, set(before))


CASES = [(sleeps, ('sleep', way, workers)) for way, workers in (
    ('cond', 1), ('cond', 2), ('epoll', 2), ('bare', 1), ('late', 2), ('polls', 1),
    ('packed', 1))]
CASES += [(sleeps, ('poll', way, 1)) for way in ('cond', 'packed')]
CASES += [(named, ('sleep', way, 1)) for way in ('cond', 'epoll', 'bare', 'late')]
CASES += [(computes, ('cpu', way, 1)) for way in ('cond', 'polls')]
CASES += [(holds, (fault, 'cond', 2)) for fault in (
    'fault_holds', 'fault_holds_tail', 'fault_holds_pointer')]
if b'fault_holds_cpp' in open(PROGRAM, 'rb').read():
    CASES += [(holds, (fault, 'cond', 2)) for fault in (
        'fault_holds_cpp', 'fault_holds_plain')]
else:
    skip('locks of C++', 'there was no compiler for it when tacho was built')
CASES += [(waits_for_work, ('none', way, 2)) for way in ('nap', 'epoll', 'cond')]
CASES += [(waits_in_its_park, ('none', 'epoll', 2))]

with concurrent.futures.ThreadPoolExecutor(4) as pool:
    runs = {}
    for _, arguments in CASES:
        if arguments not in runs:
            runs[arguments] = pool.submit(Run, *arguments)
    for test, arguments in CASES:
        test(runs[arguments].result())
sys.exit(status())
