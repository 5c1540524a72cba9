#!/usr/bin/env python3
"""What a wait found ready is recorded one by one, all at the time of the unpark; and a wait that ends
long after its time-out says so. The same for every function of epoll that waits."""
import ctypes
import json
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from libresult import check, skip  # noqa: E402
from libwait import until  # noqa: E402

BUILD = os.environ['TACHO_BUILD']
BIN = os.environ['TACHO_BIN']
PRELOAD = BUILD + '/src/hooks/libtacho-preload.so'
WAITS = '''
import ctypes, os, select, sys
libc = ctypes.CDLL(None, use_errno=True)
loop = select.epoll()
events = ctypes.create_string_buffer(12 * 64)
def wait(ms):
    at = ctypes.byref((ctypes.c_long * 2)(ms // 1000, ms % 1000 * 1000000))
    f = getattr(libc, sys.argv[1])
    more = {"epoll_wait": (ms,), "epoll_pwait": (ms, None), "epoll_pwait2": (at, None)}[sys.argv[1]]
    return f(loop.fileno(), events, 64, *more)
'''
READY = WAITS + '''
loop.register(os.eventfd(0), select.EPOLLIN)
for _ in range(20):
    r, w = os.pipe()
    os.write(w, b"x")
    loop.register(r, select.EPOLLIN)
for _ in range(500):
    assert wait(1000) == 20
'''
STOPPED = WAITS + '''
wait(1)
print("waits", flush=True)
wait(300)
print("woke", flush=True)
wait(1)
'''
LIST_OF_20 = struct.pack('<I', 20 << 8 | 0xE0)  # a packed record: the unpark and what was ready


def state_of(pid):
    return open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[0]


def stop_in_wait(p):
    """Stops a process that said that it waits, for longer than it wanted to. 0: the wait was over."""
    p.stdout.readline()
    until(lambda: state_of(p.pid) in 'SZ')  # it may have been about to wait
    p.send_signal(signal.SIGSTOP)
    until(lambda: state_of(p.pid) in 'TZ')
    was_in_time = not select.select([p.stdout], [], [], 0)[0]
    time.sleep(1 if was_in_time else 0)
    p.send_signal(signal.SIGCONT)
    return was_in_time


def recorded(way, program, stop=False):
    """Events and facts of the program, and the bytes of its box; None: it was not stopped in time."""
    folder = tempfile.mkdtemp(prefix='tacho-ready-', dir='/dev/shm')
    env = dict(os.environ, TACHO_BOX_DIR=folder, TACHO_KEEP_BOX='1', TACHO_SAMPLE_HZ='0')
    try:
        p = subprocess.Popen([sys.executable, '-c', program, way], env=dict(env, LD_PRELOAD=PRELOAD),
                             stdout=subprocess.PIPE, bufsize=0)
        try:
            missed = stop and not stop_in_wait(p)
            p.communicate(timeout=60)
        finally:
            p.kill()
            p.wait()
        if missed:
            return None
        boxes = [f'{folder}/{f}' for f in os.listdir(folder)]
        out = subprocess.run([BIN, 'cat', '--json', *boxes], env=env, capture_output=True, text=True,
                             timeout=60)
        facts = subprocess.run([BIN, 'info', '--json', *boxes], env=env, capture_output=True,
                               text=True, timeout=60)
        data = b''.join(open(box, 'rb').read() for box in boxes)
        return [json.loads(line) for line in out.stdout.splitlines()], json.loads(facts.stdout), data
    finally:
        shutil.rmtree(folder)


def packed_records(data):
    count, at = 0, data.find(LIST_OF_20)
    while at >= 0:
        count += at % 8 == 0 and struct.unpack_from('<Q', data, at + 8)[0] == 21
        at = data.find(LIST_OF_20, at + 1)
    return count


def test_ready(way):
    events, facts, data = recorded(way, READY)
    unpark, ready, apart, late, unparks = None, 0, 0, 0, 0
    for e in events:
        if e['type'] == 'unpark':
            unpark = int(e['ns'])
            unparks += e['ready'] == 20
        elif e['type'] == 'ready':
            ready += 1
            apart += int(e['ns']) != unpark
            late += int(e['ns']) < unpark
    check(f'{way}: each wait is there', unparks == 500, f'{unparks} of 500')
    check(f'{way}: each descriptor is there', ready == 500 * 20, f'{ready} of 10000')
    check(f'{way}: each wait is one packed record', packed_records(data) == 500, packed_records(data))
    # Where a new chunk begins among them, what is in it cannot be older than the chunk.
    check(f'{way}: they are of the time of the unpark', apart <= 100 and not late, f'{apart} are not')
    definitions = facts['processes'][0]['definitions']
    check(f'{way}: the eventfd by which a program wakes itself is known',
          definitions.get('descriptor') == 1, definitions)


def test_overslept(way):
    """A process that was stopped in a wait with a time-out. On a busy machine the wait may be over
    before the signal comes: then it is tried again."""
    tries = (recorded(way, STOPPED, stop=True) for _ in range(100))
    events = next(filter(None, tries))[0]
    late = [e for e in events if e['type'] == 'late']
    check(f'{way}: a wait that overslept says so', len(late) == 1 and
          int(late[0]['late_ns']) > 100000000, late)


for way in ('epoll_wait', 'epoll_pwait', 'epoll_pwait2'):
    if not hasattr(ctypes.CDLL(None), way):
        skip(way, 'this libc has no such function')
        continue
    test_ready(way)
    test_overslept(way)
