#!/usr/bin/env python3
"""What a thread is in when its process is killed: the call or the lock, and where; or nothing."""
import json
import os
import random
import subprocess
import sys
import time

from libhooks import BIN, BUILD, box_folder, boxes_in, check, finish, hooked, run

PROGRAM = BUILD + '/tests/hooks/hooks-underway_subject'


def asleep(pid):
    with open(f'/proc/{pid}/stat') as f:
        return f.read().rsplit(')', 1)[1].split()[0] == 'S'


def killed(what, wait):
    """Its events after a SIGKILL, when `wait` says so, and its thread ids."""
    with box_folder() as folder:
        p = subprocess.Popen([PROGRAM, what], env=hooked(folder, {'TACHO_CALL_THRESHOLD': '1ms'}),
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        try:
            p.stdout.readline()
            wait(p.pid)
        finally:
            os.killpg(p.pid, 9)
            p.wait()
        box = [b for b in boxes_in(folder) if f'/{p.pid}-' in b]
        os.mkdir(folder + '/out')
        run([BIN, 'recover', *box, '-o', folder + '/out'], dict(os.environ))
        cat = run([BIN, 'cat', '--json', folder + '/out'], dict(os.environ))
    return p.pid, [json.loads(line) for line in cat.stdout.splitlines()], cat


def settled(pid):
    """It was asleep each of ten times: it is where it stays."""
    seen = 0
    while seen < 10:
        time.sleep(0.005)
        seen = seen + 1 if asleep(pid) else 0


def functions(at):
    return [f.get('function') for f in (at or {}).get('frames', [])]


def test_call():
    pid, events, cat = killed('read', settled)
    last = events[-1] if events else {}
    check('a call that does not return is told with its place', last.get('type') == 'call-open' and
          last['call']['name'] == 'read' and last['on'] == 0 and last['tid'] == pid and
          functions(last['at']) == ['pull'], (last, cat.stderr))
    for what in ('back', 'jumped', 'child'):
        _, events, cat = killed(what, settled)
        check(f'{what}: nothing is under way', len(events) > 10 and
              not any(e['type'] == 'call-open' for e in events), (events[-1:], cat.stderr))


def test_plain():
    """The same on a thread without a loop."""
    for what, call, function, timed in (('read', 'read', 'pull', False),
                                        ('sleep', 'nanosleep', 'doze', True)):
        pid, events, cat = killed('thread:' + what, sleeps_in_plain)
        opened = [e for e in events if e['type'] == 'call-open']
        check(f'{what}: a call of a thread without a loop is told with its place',
              len(opened) == 1 and opened[0]['call']['name'] == call and
              opened[0]['tid'] != pid and functions(opened[0]['at']) == [function] and
              (opened[0]['since_ns'] is not None) == timed, (opened, cat.stderr))
    for what in ('quick', 'jumped', 'child'):
        pid, events, cat = killed('thread:' + what, lambda pid: time.sleep(0.05))
        mine = [e for e in events if e['tid'] != pid]
        check(f'{what}: nothing is under way on a thread without a loop, and nothing was recorded',
              mine and not any(e['type'] in ('call-open', 'call') for e in mine),
              (mine[-2:], cat.stderr))
    pid, events, cat = killed('join:read', sleeps_in_plain)
    opened = {e['tid']: e for e in events if e['type'] == 'call-open'}
    join = opened.get(pid, {'call': {}, 'at': None})
    check('who makes threads and waits for them is known, though it records nothing',
          len(opened) == 2 and join['call'].get('name') == 'pthread_join' and
          functions(join['at']) == ['main'] and join['on'] in opened, (opened, cat.stderr))


def sleeps_in_plain(pid):
    """The thread without a loop is where it stays."""
    def threads():
        for tid in os.listdir(f'/proc/{pid}/task'):
            with open(f'/proc/{pid}/task/{tid}/stat') as f:
                name, rest = f.read().rsplit(')', 1)
            if name.endswith('(plain'):
                yield rest.split()[0]
    seen, until = 0, time.monotonic() + 60
    while seen < 10 and time.monotonic() < until:
        time.sleep(0.005)
        seen = seen + 1 if list(threads()) == ['S'] else 0


def test_condition():
    for what, wait in (('wait', settled), ('thread:wait', sleeps_in_plain)):
        pid, events, cat = killed(what, wait)
        waits = [e for e in events if e['type'] == 'lock-wait']
        owner = [e for e in events if e['type'] == 'lock-owner']
        check(f'{what}: a wait for a condition is told from one for a lock',
              len(waits) == len(owner) == 1 and waits[0]['lock'] == owner[0]['lock'] and
              owner[0]['signal'] is True and (owner[0]['tid'] == pid) == (what == 'wait') and
              waits[0]['at']['code']['function'] == 'await', (waits, owner, cat.stderr))


def test_lock():
    pid, events, cat = killed('lock', settled)
    wait = [e for e in events if e['type'] == 'lock-wait']
    owner = [e for e in events if e['type'] == 'lock-owner']
    check('a wait that does not end is told with its owner', len(wait) == len(owner) == 1 and
          wait[0]['lock'] == owner[0]['lock'] and owner[0]['owner'] != pid and
          owner[0]['tid'] == pid and owner[0]['signal'] is False and wait[0]['at']['code']['function'] == 'take',
          (wait, owner, cat.stderr))


def test_any_time(what):
    """Killed at any time, what is told is whole: this call, from there, or none."""
    wrong, told, seed = [], 0, 0
    while seed < 25 or (told < 5 and seed < 400):
        seed += 1
        pause = random.Random(seed).uniform(0, 0.01)
        _, events, cat = killed(what, lambda _: time.sleep(pause))
        opened = [e for e in events if e['type'] == 'call-open']
        told += len(opened)
        if cat.returncode or len(opened) > 1 or not events:
            wrong.append((cat.returncode, cat.stderr, len(opened)))
        for e in opened:
            if (e['call']['name'], functions(e['at'])) not in (('read', ['pull']),
                                                               ('write', ['get_into'])):
                wrong.append(e)
    check(f'{what}: killed at any time, what is told is whole', not wrong, wrong[:3])
    check(f'{what}: calls were told', told > 0, told)


test_call()
test_lock()
test_plain()
test_condition()
test_any_time('busy')
test_any_time('thread:busy')
finish()
