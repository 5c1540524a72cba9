#!/usr/bin/env python3
"""What the kernel tells of a program lies where the program was at that time, on the clock of the
records: samples with frames of the kernel, context switches. As root, as a user at each
level of perf_event_paranoid, and where perf is refused."""
import contextlib
import errno
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from libresult import check, skip  # noqa: E402

BUILD = os.environ['TACHO_BUILD']
BIN = os.environ['TACHO_BIN']
NOBODY = 65534
ROOT = os.geteuid() == 0
SLACK = 200_000  # ns: the kernel's clock for interrupts may be that far from ours


@contextlib.contextmanager
def setting(name, value):
    """A sysctl, for as long as it lasts."""
    path = pathlib.Path('/proc/sys/kernel') / name
    before = path.read_text()
    try:
        if before.strip() != str(value):
            path.write_text(str(value))
        yield
    finally:
        if path.read_text() != before:
            path.write_text(before)


class Place:
    """A folder with the programs, which anybody may use."""

    def __init__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix='tacho-test-kernel-', dir='/dev/shm'))
        self.path.chmod(0o755)
        for name in ('src/hooks/libtacho-preload.so', 'tests/kernel/kernel-subject',
                     'tests/kernel/kernel-follow'):
            shutil.copy(f'{BUILD}/{name}', self.path)
        self.follow = str(self.path / 'kernel-follow')
        self.runs = 0

    def folder(self, user):
        self.runs += 1
        folder = self.path / f'run{self.runs}'
        folder.mkdir(mode=0o700)
        if user is not None:
            os.chown(folder, user, user)
        return folder

    def possible(self, hz, switches, user=None, **env):
        p = subprocess.run([self.follow, 'possible', str(hz), str(int(switches))], user=user,
                           env=dict(os.environ, **env), capture_output=True, text=True, timeout=60)
        code, _, text = p.stdout.strip().partition(' ')
        return int(code or 99), text


class Run:
    """The subject, followed from before it begins to its end."""

    def __init__(self, place, what, hz=0, switches=True, user=None, limit=8 << 20, cpu=None,
                 **env):
        self.folder = place.folder(user)
        self.place, self.what, self.user = place, what, user
        self.events = []
        env = dict(os.environ, **env)
        subject = subprocess.Popen(
            [str(place.path / 'kernel-subject'), what], user=user, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=dict(env, LD_PRELOAD=str(place.path / 'libtacho-preload.so'), TACHO_KEEP_BOX='1',
                     TACHO_BOX_DIR=str(self.folder)))
        follower = None
        try:
            self.pid = int(subject.stdout.readline().split()[2])
            if cpu is not None:
                os.sched_setaffinity(self.pid, {cpu})
            box = next(self.folder.glob('*.box'))
            self.trace = self.folder / 'out.tacho'
            follower = subprocess.Popen(
                [place.follow, 'trace', str(self.pid), str(box), str(self.trace), str(hz),
                 str(int(switches)), str(limit)], user=user, env=env, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.first = follower.stdout.readline().strip()
            out, _ = subject.communicate('go\n', timeout=100)
            self.lines = [line.split() for line in out.splitlines()]
            told, self.stderr = follower.communicate(timeout=100)
        finally:
            for p in (subject, follower):
                if p and p.poll() is None:
                    p.kill()
                    p.wait()
        words = told.split()
        self.told = dict(zip(words[::2], words[1::2]))
        if self.trace.exists() and self.first == 'attached':
            cat = subprocess.run([BIN, 'cat', '--json', self.trace], capture_output=True,
                                 text=True, timeout=100)
            self.events = [json.loads(line) for line in cat.stdout.splitlines()]
            self.stderr += cat.stderr

    def stretch(self, name):
        return next(tuple(int(r[i]) for i in (2, 4, 6, 8)) for r in self.lines if r[0] == name)

    def of(self, kinds, tid=None, begin=0, end=1 << 63):
        return [e for e in self.events if e['type'] in kinds and begin <= e['ns'] <= end and
                (tid is None or e['tid'] == tid)]


SWITCHES = ('switch-in', 'switch-out')


def functions(sample, kernel=None):
    """Names in a sample: all, those of the kernel, those of the program."""
    names = []
    for f in sample['at']['frames'] if sample['at'] else []:
        if kernel is None or kernel == bool(f.get('kernel')):
            names += [f.get('function')] + [i['function'] for i in f.get('inlined_into', [])]
    return names


def enough(name, samples, cpu, hz=99):
    wanted = cpu * hz / 1e9
    check(f'{name}: as many samples as CPU time', 0.65 * wanted <= len(samples) <= 1.35 * wanted,
          f'{len(samples)} of about {wanted:.0f}')


def asleep(who, run):
    """One switch out and one in, within the stretch and around all of the sleep."""
    tid, begin, end, _ = run.stretch('asleep')
    inside = run.of(SWITCHES, tid, begin - SLACK, end + SLACK)
    waits = [(a, b) for a, b in zip(inside, inside[1:])
             if a['type'] == 'switch-out' and b['type'] == 'switch-in' and
             b['ns'] - a['ns'] >= 295_000_000]
    check(f'{who}: switches bracket the sleep', len(waits) == 1 and
          waits[0][1]['ns'] - waits[0][0]['ns'] <= end - begin + 2 * SLACK,
          [(e['type'], e['ns'] - begin) for e in inside])
    check(f'{who}: the thread was not preempted but waited',
          waits and waits[0][0]['preempted'] is False, waits)


def alternate(who, run):
    last, bad = {}, []
    switches = run.of(SWITCHES)
    for e in switches:
        if last.get(e['tid']) == e['type']:
            bad.append((e['tid'], e['type'], e['ns']))
        last[e['tid']] = e['type']
    check(f'{who}: out and in take turns', switches and not bad, bad)


def as_root(place):
    run = Run(place, 'all', hz=99)
    check('root: perf can be had', run.first == 'attached', run.first)
    check('root: nothing is lost or missed', run.told.get('lost') == '0' == run.told.get('missed'),
          run.told)
    tid, begin, end, cpu = run.stretch('busy')
    samples = run.of(('kernel-sample',), tid)
    enough('root, busy', run.of(('kernel-sample',), tid, begin, end), cpu)
    hot = [s for s in samples if 'busy' in functions(s, False)]
    outside = [s for s in hot if not begin - SLACK <= s['ns'] <= end + SLACK]
    check('root: all samples of the busy function lie in its stretch', hot and not outside,
          [s['ns'] - begin for s in outside])
    stacks = [functions(s, False) for s in run.of(('kernel-sample',), tid, begin, end)]
    good = [s for s in stacks if [n for n in s if n in ('hot', 'busy', 'main')] ==
            ['hot', 'busy', 'main']]
    check('root: they show the function and its callers', len(good) >= 0.9 * len(stacks) > 0,
          stacks[:3])
    timers = run.of(('sample',), tid, begin - SLACK, end + SLACK)
    enough('timers inside the process, busy', timers, cpu)
    asleep('root', run)
    alternate('root', run)
    _, begin, end, _ = run.stretch('asleep')
    check('root: no sample lies in the sleep',
          not run.of(('kernel-sample',), tid, begin + SLACK, end - SLACK), 'there is one')

    tid, begin, end, cpu = run.stretch('calls')
    samples = run.of(('kernel-sample',), tid, begin, end)
    enough('root, calls', samples, cpu)
    named = [s for s in samples if 'vfs_read' in functions(s, True) and
             'calls' in functions(s, False)]
    check('root: frames of the kernel have names, and go on in the program',
          len(named) >= 0.3 * len(samples) > 3, [functions(s) for s in samples[:3]])
    check('root: they are marked, and come first',
          all([bool(f.get('kernel')) for f in s['at']['frames']] ==
              [i < s['kernel_frames'] for i in range(len(s['at']['frames']))] for s in samples) and
          any(s['kernel_frames'] for s in samples), samples[:1])

    tid, begin, end, cpu = run.stretch('thread')
    samples = run.of(('kernel-sample',), tid, begin, end)
    enough('a thread that began later', samples, cpu)
    check('a thread that began later: its stack is whole',
          any('start_thread' in functions(s) or 'thread' in functions(s) for s in samples),
          [functions(s) for s in samples[:2]])
    tids = {run.stretch('busy')[0], tid}
    others = [e for e in run.events if e['stream'] == 15 and e['tid'] not in tids]
    check('a child by fork is not followed', not others, others[:1])
    text = subprocess.run([BIN, 'cat', run.trace, '--type', 'kernel-sample'], text=True,
                          capture_output=True, timeout=60).stdout
    check('as text, frames of the kernel are marked',
          'at kernel [' in text and '] from [' in text and '(kernel)' in text, text[:300])
    first = [e for e in run.of(('resume',)) if e['stream'] == 15]
    check('one beginning for each thread, and no hole', len(first) == 2 and
          all(e['first'] and not e['missing'] for e in first), first)
    with setting('kptr_restrict', 2):
        run = Run(place, 'all', hz=99, switches=False)
    tid, begin, end, cpu = run.stretch('calls')
    samples = run.of(('kernel-sample',), tid, begin, end)
    check('addresses that are hidden stay without names, and the rest goes on',
          any(s['kernel_frames'] for s in samples) and
          not any(n for s in samples for n in functions(s, True)) and
          any('calls' in functions(s, False) for s in samples),
          [functions(s) for s in samples[:2]])
    check('without --sched there are no switches', not run.of(SWITCHES), run.of(SWITCHES)[:1])


def as_user(place, user):
    """Switches need nothing; frames of the kernel need a level of 1."""
    for level in (1, 2, 3):
        with setting('perf_event_paranoid', level) if ROOT else contextlib.nullcontext():
            who = f'user at {level}'
            code, text = place.possible(99, False, user)
            if level > 1:
                check(f'{who}: samples are refused, with what to do',
                      code == -errno.EACCES and f'perf_event_paranoid is {level}' in text and
                      'perf_event_paranoid=1' in text, (code, text))
            else:
                check(f'{who}: samples can be had', code == 0, (code, text))
                run = Run(place, 'busy', hz=99, user=user)
                tid, begin, end, cpu = run.stretch('busy')
                enough(who, run.of(('kernel-sample',), tid, begin, end), cpu)
            code, text = place.possible(0, True, user)
            if code and level > 2:
                # Debian's kernels.
                check(f'{who}: switches are refused, with what to do',
                      f'perf_event_paranoid is {level}' in text, (code, text))
                continue
            check(f'{who}: switches can be had', code == 0, (code, text))
            run = Run(place, 'all', user=user)
            asleep(who, run)
            alternate(who, run)
            tid, begin, end, cpu = run.stretch('busy')
            enough(f'{who}, timers inside the process',
                   run.of(('sample',), tid, begin - SLACK, end + SLACK), cpu)


def refused(place):
    for name in ('EPERM', 'ENOSYS'):
        number = getattr(errno, name)
        for hz, switches in ((99, False), (0, True)):
            code, text = place.possible(hz, switches, TEST_SECCOMP=str(number))
            check(f'seccomp with {name}, {hz} Hz: refused with a sentence',
                  code == -number and 'seccomp' in text, (code, text))
    p = subprocess.Popen(['true'])
    p.wait()
    out = subprocess.run([place.follow, 'trace', str(p.pid), 'x', 'x', '0', '1', '1000'],
                         capture_output=True, text=True, timeout=60)
    check('a process that is gone: refused with a sentence',
          out.returncode == 3 and 'no such process' in out.stdout, out.stdout)
    if ROOT:
        out = subprocess.run([place.follow, 'trace', '1', 'x', 'x', '0', '1', '1000'], user=NOBODY,
                             capture_output=True, text=True, timeout=60)
        check("another user's process: refused with a sentence",
              out.returncode == 3 and 'belongs to another user' in out.stdout, out.stdout)
    out = subprocess.run(['sh', '-c', f'ulimit -n 6; exec {place.follow} possible 0 1'],
                         capture_output=True, text=True, timeout=60)
    check('no more descriptors: refused with a sentence',
          out.stdout.startswith(f'-{errno.EMFILE} ') and 'ulimit -n' in out.stdout, out.stdout)


def little_memory(place):
    """What users may lock for rings: as much as there is, and a sentence when it is too little."""
    limits = f'ulimit -l 0; exec {place.follow} possible 0 1'
    with setting('perf_event_mlock_kb', 16):
        out = subprocess.run(['sh', '-c', limits], capture_output=True, text=True, timeout=60,
                             user=NOBODY)
        check('rings become smaller where little may be locked', out.stdout.startswith('0'),
              out.stdout)
    with setting('perf_event_mlock_kb', 4):
        out = subprocess.run(['sh', '-c', limits], capture_output=True, text=True, timeout=60,
                             user=NOBODY)
        check('too little: refused with a sentence',
              out.stdout.startswith(f'-{errno.EPERM} ') and 'perf_event_mlock_kb' in out.stdout,
              out.stdout)


def preempted(place, user):
    cpu = min(os.sched_getaffinity(0))
    rivals = [subprocess.Popen(['taskset', '-c', str(cpu), 'sh', '-c', 'while :; do :; done'])
              for _ in range(2)]
    try:
        run = Run(place, 'busy', user=user, cpu=cpu)
    finally:
        for r in rivals:
            r.kill()
            r.wait()
    tid, begin, end, spent = run.stretch('busy')
    switches = run.of(SWITCHES, tid, begin, end)
    outs = [e for e in switches if e['type'] == 'switch-out']
    check('competitors: the thread was preempted', len(outs) > 5 and
          sum(e['preempted'] for e in outs) >= 0.9 * len(outs), outs[:5])
    away = sum(b['ns'] - a['ns'] for a, b in zip(switches, switches[1:])
               if a['type'] == 'switch-out' and b['type'] == 'switch-in')
    lost = end - begin - spent
    check('competitors: what it was away adds up to what was not CPU time',
          0.9 * lost <= away <= 1.1 * lost + SLACK and lost > 100_000_000, f'{away} ns of {lost}')
    check('competitors: it came back on its CPU',
          {e['cpu'] for e in switches if e['type'] == 'switch-in'} == {cpu}, switches[:2])


def delivered(place, user):
    # Of 40,000 switches of 16 bytes, a window of 10 ms needs no more room than there is at first.
    # On one CPU: what comes from several is not in the order of time.
    run = Run(place, 'switches', user=user, cpu=min(os.sched_getaffinity(0)), TEST_WINDOW_MS='10')
    tid, _, end, _ = run.stretch('switches')
    kept = run.of(SWITCHES, tid)
    check('what no window reaches back to makes room',
          100 <= len(kept) <= 65536 // 16 and kept[-1]['ns'] >= end - SLACK, len(kept))
    run = Run(place, 'switches', user=user, TEST_DELIVER='often')
    told = run.told
    check('what is new is delivered once, in order',
          int(told['delivered']) >= 38000 and told['delivered'] == str(len(run.of(SWITCHES))) and
          told['disorder'] == '0' == told['undelivered'], told)
    run = Run(place, 'switches', user=user, limit=65536, TEST_DELIVER='ends')
    told = run.told
    check('what made room undelivered is counted',
          38000 <= int(told['delivered']) + int(told['undelivered']) <= 42000 and
          int(told['undelivered']) >= 20000, told)


def bounds(place, user):
    run = Run(place, 'switches', user=user)
    tid, begin, end, _ = run.stretch('switches')
    n = len(run.of(SWITCHES, tid, begin, end))
    # A timer may be over before its thread has gone to sleep.
    check('many switches: all are there', n >= 2 * 19500 and run.told.get('lost') == '0',
          (n, run.told))
    alternate('many switches', run)
    run = Run(place, 'switches', user=user, limit=65536)
    tid, begin, end, _ = run.stretch('switches')
    kept = run.of(SWITCHES, tid)
    check('what is kept has a limit', 3000 <= len(kept) <= 65536 // 16, len(kept))
    late = [e for e in kept if e['ns'] > end - (end - begin) // 2]
    check('the newest are kept', kept and kept[-1]['ns'] >= end - SLACK and
          len(late) == len(kept), (len(late), len(kept)))
    delivered(place, user)
    run = Run(place, 'switches', user=user, cpu=min(os.sched_getaffinity(0)), TEST_STALL='1')
    kept = len(run.of(SWITCHES))
    check('what found no room is counted', 38000 <= int(run.told.get('lost', 0)) + kept <= 42000 and
          0 < kept < 20000, (kept, run.told, run.stderr))
    run = Run(place, 'exec', user=user)
    tid, begin, end, _ = run.stretch('busy')
    after = run.of(SWITCHES, tid, end + 20_000_000)
    # It may have had to wait for a CPU before it came to that; afterwards there are hundreds.
    check('exec ends it', run.of(SWITCHES, tid) and len(after) < 20, len(after))


def idle(place, user):
    """A few hundred switches do not fill a ring."""
    run = Run(place, 'idle', user=user)
    check('an idle program wakes nobody', run.told.get('wakes') == '0' and
          len(run.of(SWITCHES)) >= 600 * 0.9, (run.told, len(run.of(SWITCHES))))


def many_threads(place, user):
    """Threads begin and end while they are being found."""
    run = Run(place, 'many', user=user)
    threads = {e['tid'] for e in run.events if e['type'] == 'park' and e['stream'] == 0}
    told = {e['tid'] for e in run.of(SWITCHES)}
    check('many threads: none is missed', run.told.get('missed') == '0', run.told)
    if run.told.get('lost') == '0':
        alternate('many threads', run)
    else:
        skip('many threads: out and in take turns', 'the machine is too busy: some were lost')
    check('many threads: the old and the new ones are followed', len(told) >= 250 and
          run.pid in told, (len(threads), len(told)))


def few_bytes(place):
    """Records of different sizes make room for each other."""
    run = Run(place, 'busy', hz=999, limit=8192)
    tid, begin, end, _ = run.stretch('busy')
    kept = [e for e in run.events if e['stream'] == 15 and e['type'] != 'resume']
    check('few bytes: the newest samples and switches are kept', kept and
          kept[-1]['ns'] >= end - SLACK and {e['type'] for e in kept} & set(SWITCHES) and
          run.of(('kernel-sample',)) and len(kept) <= 8192 // 16 and not run.stderr,
          (len(kept), run.stderr))


def main():
    place = Place()
    user = NOBODY if ROOT else None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        refused(place)
        code, text = place.possible(0, True)
        if code:
            skip('what perf tells', text)
            return 0
        if ROOT:
            as_root(place)
            as_user(place, user)
            little_memory(place)
            few_bytes(place)
        else:
            skip('root, other users, sysctls', 'not root')
        preempted(place, user)
        bounds(place, user)
        idle(place, user)
        many_threads(place, user)
    finally:
        shutil.rmtree(place.path, ignore_errors=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
