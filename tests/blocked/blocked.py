#!/usr/bin/env python3
"""The blocked loop: what a callback of a libuv server was doing while nothing else ran, with
function, file and line, whoever records and whatever is refused."""
import errno
import os
import socket
import subprocess
import sys

import libblocked
from libblocked import (Server, as_caller, as_user, check, events, marked, places,
                        polls, skip, took, until, without_perf)

MS = 1000000
PARANOID = '/proc/sys/kernel/perf_event_paranoid'
SLOW_NS = 10 * MS  # from which on a poll is followed by a record of its scheduling (default)
COMPETITORS = 3


def at(event, function, line):
    return (function, 'server.c', line) in list(places(event))


def longest(found, number):
    """The callbacks of reads that took longest, in the order of their begin."""
    slow = sorted(polls(found, 'on_request'), key=took)[-number:]
    return sorted(slow, key=lambda p: p['begin']['ns'])


# What the server is made to do; each gives what it needs to be checked ------------------------


def resolve(server):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as resolver:
        resolver.bind(('127.0.0.1', 0))
        resolver.setblocking(False)
        answer = server.ask(f'resolve/{resolver.getsockname()[1]}')
        try:
            answer['asked'] = b'no-answer' in resolver.recv(512)
        except BlockingIOError:
            answer['asked'] = False
    return answer


def cpu_seconds(pid):
    with open(f'/proc/{pid}/stat') as f:
        fields = f.read().rsplit(')', 1)[1].split()
    return int(fields[11]) + int(fields[12])


def compete(server):
    """With other processes that want the only CPU that the server may use."""
    cpu = {max(os.sched_getaffinity(0))}
    others = []
    try:
        for _ in range(COMPETITORS):
            others.append(subprocess.Popen([sys.executable, '-c', 'while True: pass']))
            os.sched_setaffinity(others[-1].pid, cpu)
        os.sched_setaffinity(server.pid, cpu)
        until(lambda: all(cpu_seconds(p.pid) > 5 for p in others))
        return server.ask('compete')
    finally:
        for p in others:
            p.kill()
            p.wait()
        os.sched_setaffinity(server.pid, os.sched_getaffinity(0))


# What must be in the window -------------------------------------------------------------------


def check_resolve(name, poll, answer):
    calls = [e for e in poll['events'] if e['type'] == 'call']
    call = next((e for e in calls if (e['call'] or {}).get('name') == 'getaddrinfo'), None)
    check(f'{name}: the resolver was asked and did not answer',
          answer['asked'] and answer['error'] and answer['took'] > 500 * MS, answer)
    check(f'{name}: the call is there', call and
          call['path']['name'] == 'no-answer.test' and call['duration_ns'] <= took(poll) and
          call['duration_ns'] >= answer['took'] / 2, (call, answer))
    check(f'{name}: where it was made', call and at(call, 'resolve_host', marked('resolve')),
          list(places(call)))
    # What the resolver itself called is part of it.
    check(f'{name}: once', len(calls) == 1, [e['call'] for e in calls])


def check_burn(name, poll, answer):
    samples = [e for e in poll['events'] if 'sample' in e['type']]
    lines = range(marked('burn from'), marked('burn to') + 1)
    named = [e for e in samples
             if any((*p[:2], p[2] in lines) == ('hash_pages', 'server.c', True)
                    for p in places(e))]
    called = [e for e in samples if any(p[:2] == ('on_request', 'server.c') for p in places(e))]
    # Where perf samples too, each of the two tells all of the time.
    cpu = max(sum(e['cpu_ns'] for e in samples if e['type'] == type)
              for type in {e['type'] for e in samples} or {''})
    check(f'{name}: most samples name the function, file and line',
          len(samples) >= 10 and len(named) >= 0.8 * len(samples),
          (len(samples), len(named), [list(places(e))[:1] for e in samples[:5]]))
    check(f'{name}: their stacks reach the callback', len(called) >= 0.8 * len(samples),
          (len(samples), len(called), [list(places(e)) for e in samples[:1]]))
    # The first one stands for what came before as well.
    check(f'{name}: they stand for its CPU time',
          0.6 * answer['cpu'] <= cpu <= 1.2 * answer['cpu'] + 20 * MS, (cpu, answer))


def check_lock(name, poll, answer, found):
    mine = [e for e in found if str(e.get('lock')) in (str(answer['lock']), hex(answer['lock']))]
    wait = next((e for e in poll['events'] if e in mine and e['type'] == 'lock-wait'), None)
    waited = next((e for e in poll['events'] if e in mine and e['type'] == 'lock-waited'), None)
    if not check(f'{name}: the wait is there', wait and waited and
                 waited['ns'] - wait['ns'] >= answer['took'] / 2, (answer, wait, waited)):
        return
    release = [e for e in mine if e['type'] == 'lock-release' and
               wait['ns'] <= e['ns'] <= waited['ns']]
    stack = [e for e in poll['events'] if e['type'] == 'stack' and
             str(e['of']) in (str(answer['lock']), hex(answer['lock']))]
    check(f'{name}: where it waited', at(wait, 'take_lock', marked('wait')), list(places(wait)))
    check(f'{name}: with its stack', stack and at(stack[0], 'take_lock', marked('wait')) and
          any(p[0] == 'on_request' for p in places(stack[0])), [list(places(e)) for e in stack])
    check(f'{name}: who released it, and where', release and
          release[-1]['thread_name'] == 'holder' and
          at(release[-1], 'hold_lock', marked('release')), release)


def check_compete(name, poll, answer, found):
    """What the kernel told the program inside the callback lies inside what was recorded; and
    the rest is no more than the time that lies outside of it."""
    end = poll['end']['ns']
    sched = next((e for e in found if e['type'] == 'sched' and e['tid'] == poll['begin']['tid'] and
                  e['ns'] >= end), None)
    turn = [e for e in found if e['type'] == 'unpark' and e['tid'] == poll['begin']['tid'] and
            e['ns'] <= poll['begin']['ns']][-1]
    check(f'{name}: the program was kept from its CPU', answer['delay'] > 50 * MS, answer)
    if not check(f'{name}: the delay is there', sched is not None, 'no record'):
        return
    outside = sched['ns'] - turn['ns'] + SLOW_NS - answer['took']
    # That of calls in which it was preempted is told after them.
    told = sum(e['runnable_ns'] for e in found if e['type'] == 'sched' and
               e['tid'] == sched['tid'] and poll['begin']['ns'] <= e['ns'] <= sched['ns'])
    check(f'{name}: it is what the kernel told the program',
          answer['delay'] <= told <= answer['delay'] + outside, (answer, told, outside))
    check(f'{name}: it was preempted', sched['involuntary_switches'] > 0, sched)
    check(f'{name}: which callback', any(p[:2] == ('on_request', 'server.c') and p[2]
                                         for p in places(poll['begin'])), poll['begin'])
    check(f'{name}: what it was at', any(p[0] == 'hash_pages' for e in poll['events']
                                         if 'sample' in e['type'] for p in places(e)),
          len(poll['events']))


def one(situation):
    name = situation.name
    with Server(situation) as server:
        check(f'{name}: the situation is what it is called', situation.holds(server.status()),
              server.status())
        answers = [resolve(server), server.ask('burn'), server.ask('lock'), compete(server)]
        status, said = server.finish()
    found = [events(path) for path in situation.traces()]
    if not check(f'{name}: one window', status == 0 and len(found) == 1, (status, said)):
        return
    slow = longest(found[0], 4)
    if not check(f'{name}: four callbacks were slow',
                 len(slow) == 4 and took(slow[0]) > 100 * MS, [took(p) for p in slow]):
        return
    check_resolve(f'{name}, getaddrinfo', slow[0], answers[0])
    check_burn(f'{name}, burns CPU', slow[1], answers[1])
    check_lock(f'{name}, lock', slow[2], answers[2], found[0])
    check_compete(f'{name}, descheduled', slow[3], answers[3], found[0])


def at_paranoid_2(situation):
    """perf_event_paranoid as asked for; what it was comes back."""
    def level():
        with open(PARANOID) as f:
            return f.read().strip()
    try:
        before = level()
    except OSError as error:
        skip('perf_event_paranoid 2', f'{PARANOID}: {error}')
        return one(situation)
    try:
        if before != '2':
            try:
                with open(PARANOID, 'w') as f:
                    f.write('2')
            except OSError as error:
                skip('perf_event_paranoid 2', f'it is {before} here and cannot be set: {error}')
        one(situation)
    finally:
        if level() != before:
            with open(PARANOID, 'w') as f:
                f.write(before)


def attempt(make, run=one):
    situation = make()
    try:
        run(situation)
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        check(f'{situation.name}: the server ran', False, error)
    finally:
        situation.end()


def main():
    if not os.path.exists(libblocked.SERVER):
        skip('blocked loops', 'libuv1-dev is not installed, so the server was not built')
        return 0
    if os.geteuid() == 0:
        attempt(as_caller)
    else:
        skip('root', 'this is not root')
    attempt(as_user, at_paranoid_2)
    attempt(lambda: without_perf('perf refused with EPERM', errno.EPERM))
    attempt(lambda: without_perf('perf refused with ENOSYS', errno.ENOSYS))
    return libblocked.status()


if __name__ == '__main__':
    sys.exit(main())
