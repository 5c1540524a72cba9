#!/usr/bin/env python3
"""Sentinels in programs that know nothing of tacho: a script in the agent's place writes limits
into the control area of the box, and reads from it what fired."""
import glob
import os
import struct
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from libresult import check  # noqa: E402

BUILD = os.environ['TACHO_BUILD']
PRELOAD = BUILD + '/src/hooks/libtacho-preload.so'
DEADLINE = 50  # the programs end by themselves after 60 s
MS = 1_000_000
POLL, WAKE, LAG, SCHED, QUEUE = range(5)
MAX = 16  # TACHO_SENTINEL_MAX
REGIONS = 192  # in the superblock; checked below
# struct tacho_box_control
CONFIG, IDLE, LIMIT = 8, 12, 24
ARMED = LIMIT + 8 * MAX
FIRED = ARMED + 4 * MAX
SUPPRESSED = FIRED + 4 * MAX


class Program:
    """A program under the hooks, and its box as an agent has it."""

    def __init__(self, program, *argv, **env):
        self.folder = tempfile.mkdtemp(prefix='tacho-sentinels-', dir='/dev/shm')
        env = dict(os.environ, TACHO_BOX_DIR=self.folder, LD_PRELOAD=PRELOAD,
                   TACHO_SAMPLE_HZ='0', UV_THREADPOOL_SIZE='1', **env)
        self.process = subprocess.Popen([f'{BUILD}/tests/hooks/hooks-{program}', *argv], env=env,
                                        stdin=subprocess.DEVNULL)
        self.fd = -1

    def __enter__(self):
        try:
            self.open()
        except BaseException:
            self.__exit__()
            raise
        return self

    def open(self):
        end = time.monotonic() + DEADLINE
        while self.fd < 0 and time.monotonic() < end:
            for path in glob.glob(self.folder + '/*.box'):
                if os.path.getsize(path) >= 4096:
                    self.fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            time.sleep(0.01)
        if self.fd < 0:
            raise TimeoutError('there is no box')
        while os.pread(self.fd, 8, 0) != b'TACHOBOX' and time.monotonic() < end:
            time.sleep(0.01)
        self.off = struct.unpack('<I', os.pread(self.fd, 4, 24))[0] == 1  # TACHO_STATE_OFF
        if not self.off:
            self.control = self.region(0)
            self.triggers = self.region(2)

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        if self.fd >= 0:
            os.close(self.fd)
        for path in glob.glob(self.folder + '/*'):
            os.unlink(path)
        os.rmdir(self.folder)

    def region(self, number):
        offset, size, entry, _ = struct.unpack('<QQII', os.pread(self.fd, 24,
                                                                 REGIONS + 24 * number))
        assert offset % 4096 == 0 and size % entry == 0 and entry >= 256
        return offset

    def get(self, at, form='<I'):
        return struct.unpack(form, os.pread(self.fd, struct.calcsize(form), self.control + at))[0]

    def put(self, at, value, form='<I'):
        os.pwrite(self.fd, struct.pack(form, value), self.control + at)

    def limit(self, sentinel, value):
        self.put(LIMIT + 8 * sentinel, value, '<Q')
        self.put(CONFIG, self.get(CONFIG) + 1)

    def arm(self, sentinel):
        self.put(ARMED + 4 * sentinel, self.get(ARMED + 4 * sentinel) + 1)

    def suppressed(self, sentinel):
        return self.get(SUPPRESSED + 8 * sentinel, '<Q')

    def count(self):
        return max((self.trigger(n)[0] for n in range(1, 65)), default=0)

    def trigger(self, number):
        """(number, sentinel, value, reason)"""
        raw = os.pread(self.fd, 256, self.triggers + 256 * ((number - 1) % 64))
        n, _, _, size, flags = struct.unpack_from('<IIQII', raw)
        return (n, (flags >> 8 & 255) - 1, struct.unpack_from('<Q', raw, 224)[0],
                raw[24:24 + size].decode())

    def until(self, condition):
        end = time.monotonic() + DEADLINE
        while not condition() and time.monotonic() < end and self.process.poll() is None:
            time.sleep(0.01)
        return condition()

    def fires(self, name, sentinel, value, least, begin, end):
        """Sets a limit and sees it fire, twice, with a reason; and the rest counted."""
        self.limit(sentinel, value)
        found = None
        for _ in range(200):  # it may hold for more than one cause
            before = self.count()
            self.arm(sentinel)
            if not self.until(lambda n=before: self.count() > n):
                break
            found = self.trigger(before + 1)
            if found[3].startswith(begin) and before:
                break
        if not check(f'{name}: it fires, again and again', found, 'nothing fired'):
            return
        _, which, got, reason = found
        check(f'{name}: the trigger says which and how much',
              which == sentinel and least <= got < 3600 * 1000 * MS, found)
        check(f'{name}: the reason says what', reason.startswith(begin) and end in reason, reason)
        n, seen = self.count(), self.suppressed(sentinel)
        check(f'{name}: once; the rest is counted',
              self.until(lambda: self.suppressed(sentinel) > seen + 2) and self.count() == n,
              f'{self.count()} triggers, {self.suppressed(sentinel)} suppressed')
        others = [self.get(FIRED + 4 * s) or self.suppressed(s)
                  for s in range(5) if s != sentinel]
        check(f'{name}: no other sentinel', not any(others), others)

    def forgets(self, name):
        """No wake is above the limit, in as many polls as it takes to be sure."""
        self.arm(WAKE)
        self.put(LIMIT + 8 * WAKE, 10 * MS, '<Q')
        self.limit(POLL, 1)  # every poll is counted
        check(name, self.until(lambda: self.suppressed(POLL) > 20) and
              not self.get(FIRED + 4 * WAKE), self.trigger(1))


def waits():
    with Program('sentinels_waits') as p:
        p.fires('a slow turn is a slow poll', POLL, 10 * MS, 30 * MS, 'turn took ', ' epoll ')
    with Program('sentinels_waits') as p:
        p.fires('a slow turn is lag', LAG, 10 * MS, 30 * MS, 'turn took ', ' epoll ')
    with Program('sentinels_waits') as p:
        # Whoever sleeps waits for the CPU afterwards, for some time at least.
        p.fires('a slow turn that had to wait', SCHED, 1, 2, 'turn waited ', ' for a CPU: ')


def off():
    for program, mode in (('sentinels_waits', ''), ('sentinels_uv', 'late'),
                          ('sentinels_uv', 'pool'), ('sentinels_uv', 'async'),
                          ('sentinels_event', 'wake')):
        if not os.path.exists(f'{BUILD}/tests/hooks/hooks-{program}'):
            continue
        with Program(program, mode) as p:
            for s in range(5):
                p.arm(s)
            time.sleep(0.3)
            check(f'{program} {mode}: nothing fires without a limit',
                  p.count() == 0 and not any(p.suppressed(s) for s in range(5)), p.trigger(1))


def libuv():
    with Program('sentinels_uv', 'slow') as p:
        p.fires('libuv: a slow callback', POLL, 10 * MS, 30 * MS, 'poll took ', ': uv_timer')
    with Program('sentinels_uv', 'slow', TACHO_POLL_THRESHOLD='1ms') as p:
        p.fires('libuv: a slow callback, with a poll threshold', POLL, 10 * MS, 30 * MS,
                'poll took ', ': uv_timer')
    with Program('sentinels_uv', 'slow') as p:
        p.fires('libuv: a slow callback that had to wait', SCHED, 1, 2, 'poll waited ',
                ' for a CPU: uv_timer')
    with Program('sentinels_uv', 'slow') as p:
        p.fires('libuv: a long turn', LAG, 20 * MS, 20 * MS, 'turn took ', ': uv loop')
    with Program('sentinels_uv', 'late') as p:
        p.fires('libuv: a late timer', LAG, 15 * MS, 15 * MS, 'timer was ', ' late: uv_timer')
    with Program('sentinels_uv', 'pool') as p:
        p.fires('libuv: works that wait for the pool', QUEUE, 5, 6, '6 wait for a thread ',
                ': uv_work')
        check('libuv: what the pool began with waits no more',
              p.until(lambda: p.suppressed(QUEUE) > 40) and p.trigger(p.count())[2] <= 12,
              p.trigger(p.count()))
    with Program('sentinels_uv', 'files') as p:
        p.fires('libuv: files that wait for the pool', QUEUE, 5, 6, '6 wait for a thread ',
                ': uv_fs_stat')
        p.until(lambda: p.suppressed(QUEUE) > 4000)
        before = p.count()
        p.arm(QUEUE)
        check('libuv: files that are done or cancelled wait no more',
              p.until(lambda: p.count() > before) and p.trigger(p.count())[2] <= 12,
              p.trigger(p.count()))
    with Program('sentinels_uv', 'async') as p:
        p.fires('libuv: a wake of a busy loop', WAKE, 15 * MS, 15 * MS, 'wake was followed ',
                ': uv_async')
    with Program('sentinels_uv', 'gone') as p:
        p.forgets('libuv: a wake of a closed handle is forgotten')


def libevent():
    with Program('sentinels_event', 'slow') as p:
        p.fires('libevent: a slow callback', POLL, 10 * MS, 30 * MS, 'poll took ', ': event')
    with Program('sentinels_event', 'wake') as p:
        p.fires('libevent: an event that waits for another', WAKE, 10 * MS, 29 * MS,
                'wake was followed ', ': event')
    with Program('sentinels_event', 'gone') as p:
        p.forgets('libevent: a wake of a deleted event is forgotten')


def idle():
    with Program('sentinels_waits') as p:
        seq = p.get(0)
        p.put(IDLE, 1)
        check('an agent that sleeps is woken when the loop unparks',
              p.until(lambda: p.get(IDLE) == 0) and p.until(lambda: p.get(0) == seq + 1),
              f'{p.get(0) - seq} wakes')


def refused():
    """As other options that are not understood: nothing is recorded, and it says why."""
    with Program('sentinels_waits', TACHO_SLOW_POLL='soon') as p:
        page = os.pread(p.fd, 4096, 0)
        check('TACHO_SLOW_POLL: what is no duration is refused',
              p.off and b'TACHO_SLOW_POLL=soon' in page,
              page[:32])


idle()
waits()
for what, part in (('uv', libuv), ('event', libevent)):
    if os.path.exists(f'{BUILD}/tests/hooks/hooks-sentinels_{what}'):
        part()
    else:
        print(f'skip sentinels in lib{what}: its headers were not there when tacho was built')
off()
refused()
