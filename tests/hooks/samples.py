#!/usr/bin/env python3
"""CPU samples and scheduling records of programs that know nothing of tacho: where, when and how
much they burn is what the trace says; and signals stay what they were to the program."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from libresult import check, skip  # noqa: E402

BUILD = os.environ['TACHO_BUILD']
BIN = os.environ['TACHO_BIN']
PRELOAD = BUILD + '/src/hooks/libtacho-preload.so'
PROGRAM = BUILD + '/tests/hooks/hooks-samples_program'


def symbols(path):
    """(start, end, name) of the functions of a file."""
    out = subprocess.run(['nm', '-S', path], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in out.splitlines()]
    return [(int(r[0], 16), int(r[0], 16) + int(r[1], 16), r[3]) for r in rows
            if len(r) == 4 and r[2] in 'tT']


class Run:
    def __init__(self, *argv, preload=True, **env):
        self.boxes = tempfile.mkdtemp(prefix='tacho-test-', dir='/dev/shm')
        env = dict(os.environ, TACHO_BOX_DIR=self.boxes, TACHO_KEEP_BOX='1', **env)
        if preload:
            env['LD_PRELOAD'] = PRELOAD
        self.out = subprocess.run([PROGRAM, *argv], env=env, capture_output=True, text=True,
                                  timeout=60)
        self.events = []
        self.sources = {}
        for box in sorted(pathlib.Path(self.boxes).glob('*.box')):
            cat = subprocess.run([BIN, 'cat', '--json', box], capture_output=True, text=True,
                                 timeout=60)
            self.events += [json.loads(line) for line in cat.stdout.splitlines()]
            info = subprocess.run([BIN, 'info', '--json', box], capture_output=True, text=True,
                                  timeout=60)
            for p in json.loads(info.stdout)['processes']:
                self.sources.update({s['name']: s for s in p['sources']})
                self.losses = {s['name']: s['count'] for s in p['losses']}
        shutil.rmtree(self.boxes, ignore_errors=True)

    def stretches(self, what):
        """(tid, from, to, cpu ns) as the program measured."""
        rows = [line.split() for line in self.out.stdout.splitlines()]
        return [tuple(int(r[i]) for i in (2, 4, 6, 8)) for r in rows if r and r[0] == what]

    def of(self, kind, tid, begin, end):
        return [e for e in self.events if e['type'].startswith(kind) and e['tid'] == tid and
                begin <= int(e['ns']) <= end]

    def behaviour(self):
        """What the program found out about itself."""
        for line in self.out.stdout.splitlines():
            if line.startswith(('ok ', 'not ok ', 'skip ')):
                print(line)
        check(f'{self.out.args[1]}: the program ends well', self.out.returncode == 0,
              self.out.stderr)


def functions(sample, known):
    names = []
    for frame in (sample['at'] or {}).get('frames', []):
        if frame['module'] and frame['module'].endswith('hooks-samples_program'):
            at = int(frame['offset'], 16) - 1
            names += [name for start, end, name in known if start <= at < end]
    return names


def stretch(run, what, known, number=0, most=1.35, least=0.65):
    found = run.stretches(what)
    if len(found) <= number:
        check(f'{what}: the program ran', False, run.out.stderr or run.out.stdout)
        return
    tid, begin, end, cpu = found[number]
    samples = run.of('sample', tid, begin, end)
    wanted = cpu * 99 / 1e9
    check(f'{what}: as many samples as CPU time', least * wanted <= len(samples) <= most * wanted,
          f'{len(samples)} of about {wanted:.0f}')
    total = sum(int(s['cpu_ns']) for s in samples)
    check(f'{what}: they add up to the CPU time', 0.8 * cpu <= total <= 1.2 * cpu,
          f'{total} of {cpu} ns')
    stacks = [functions(s, known) for s in samples]
    good = sum('callback' in s and 'hot' in s and s.index('hot') < s.index('callback')
               for s in stacks)
    check(f'{what}: they show the function and its caller', good >= 0.95 * len(samples) > 0,
          f'{good} of {len(samples)}: {stacks[:3]}')
    if what not in ('busy', 'child', 'blocked'):
        return  # the others burn elsewhere, too
    outside = [e for e in run.events if e['type'].startswith('sample') and e['tid'] == tid and
               'hot' in functions(e, known) and
               not any(s[1] - 10**6 <= int(e['ns']) <= s[2] + 10**6 for s in found)]
    check(f'{what}: none of these lies outside of the stretch', not outside, outside[:1])


def sched(run):
    """A slow turn says what the scheduler did; the loop is at level waits."""
    tid, begin, end, cpu = run.stretches('busy')[0]
    records, since, last = [], 0, {'type': ''}
    for e in [e for e in run.events if e['tid'] == tid and not e['type'].startswith('sample')]:
        # Waits, calls and turns that are not slow have one only if others ran.
        if e['type'] == 'sched' and last['type'] == 'park' and \
                int(last['ns']) - since >= 10 * 10**6:
            records.append(e)
        if e['type'] == 'unpark':
            since = int(e['ns'])
        last = e
    check('sched: one for each slow turn, also that of the sleep', len(records) == 3,
          f'{len(records)}')
    if records:
        wall = end - begin
        delay = int(records[0]['runnable_ns'])
        lost = wall - cpu
        check('sched: it agrees with what was not CPU time',
              abs(delay - lost) < 0.1 * wall + 10**6, f'{delay} ns, {lost} ns by the clocks')


def subjects(run, name):
    """A record of the scheduler says what ended right before it, and covers all of that."""
    said, last, unpark = {}, {}, {}
    for e in run.events:
        if e['stream'] or e['type'].startswith('sample') or e['type'] in ('ready', 'counter'):
            continue
        before, last[e['tid']] = last.get(e['tid']), e
        if e['type'] == 'unpark':
            unpark[e['tid']] = int(e['ns'])
        if e['type'] != 'sched':
            continue
        begin, ns, runnable = (int(e[k]) for k in ('begin_ns', 'ns', 'runnable_ns'))
        subject = {'unpark': 'wait', 'call': 'call', 'park': 'iteration'}.get(before['type'])
        of = {'call': int(before['ns']) - int(before.get('duration_ns', 0)),
              'iteration': unpark.get(e['tid'], 0)}.get(subject, int(before['ns']))
        said.setdefault(e['subject'], []).append(e)
        # The kernel and the program have clocks that differ a little.
        check(f'{name}: a record of the scheduler says what it is about',
              e['subject'] == subject and begin <= of + 10**5 and
              runnable <= (ns - begin) * 1.01 + 10**5, (before, e))
    check(f'{name}: there are records of calls and iterations',
          {'call', 'iteration'} <= set(said), {k: len(v) for k, v in said.items()})


def crowded(*argv, **env):
    """The program shares one CPU with two that burn: it is runnable, and does not run."""
    global PROGRAM
    cpu = str(min(os.sched_getaffinity(0)))
    rivals = [subprocess.Popen(['taskset', '-c', cpu, 'sh', '-c', 'while :; do :; done'])
              for _ in range(2)]
    try:
        alone, PROGRAM = PROGRAM, 'taskset'
        return Run('-c', cpu, alone, *argv, **env)
    finally:
        PROGRAM = alone
        for r in rivals:
            r.kill()
            r.wait()


def descheduled():
    run = crowded('busy')
    subjects(run, 'descheduled')
    found = run.stretches('busy')
    # Its own record comes after it.
    records = found and sorted(run.of('sched', found[0][0], found[0][2], 1 << 62),
                               key=lambda e: int(e['ns']))
    if not records:
        check('descheduled: it is recorded', False, run.out.stderr)
        return
    lost = found[0][2] - found[0][1] - found[0][3]
    delay = int(records[0]['runnable_ns'])
    check('descheduled: most of the time was spent waiting for the CPU', lost > found[0][3] / 2,
          f'{lost} ns')
    check('descheduled: the record says so', 0.85 * lost <= delay <= 1.15 * lost,
          f'{delay} ns of {lost}')
    check('descheduled: it was preempted', int(records[0]['involuntary_switches']) > 3, records[0])


def delays():
    """What the kernel told the program itself of its code and of its call is what is recorded of
    them. A call that the kernel works in hides the delay of code before it: there is none."""
    run = crowded('delays', TACHO_SAMPLE_HZ='0')
    rows = [line.split() for line in run.out.stdout.splitlines() if line.startswith('delays')]
    check('delays: the program ran', len(rows) == 2, run.out.stderr)
    since = 0
    for name, row in zip(('code', 'call'), rows):
        tid, code, call, until = (int(row[i]) for i in (2, 4, 6, 8))
        said = {what: sum(int(e['runnable_ns']) for e in run.of('sched', tid, since, until)
                          if e['subject'] == what) for what in ('call', 'iteration')}
        room = 0.1 * (code + call) + 3 * 10**6
        check(f'delays: the program lacked its CPU in its {name}', {'code': code, 'call': call}[name] >
              3 * room, row)
        check(f'delays: most of it in the {name}: the records of calls say theirs',
              abs(said['call'] - call) < room, (said, row))
        check(f'delays: most of it in the {name}: that of the iteration says the rest',
              abs(said['iteration'] - code) < room, (said, row))
        since = until


def many_stacks(known):
    """More stacks than may be defined: the rest come with their samples, and names still fit."""
    run = Run('stacks', TACHO_MAX_BYTES='1M', TACHO_SAMPLE_HZ='1')
    if run.out.stdout.startswith('skip'):
        print(run.out.stdout.strip())
        return
    samples = [e for e in run.events if e['type'] == 'sample']
    alone = [s for s in samples if s['at'] and s['at']['id'] is None]
    check('stacks beyond the room for them are in the samples', len(alone) > 500,
          f'{len(alone)} of {len(samples)}')
    ways = {tuple(functions(s, known)) for s in samples}
    check('and no two are the same', len(ways) == len(samples) > 1000 or
          len(ways) >= len(samples) - 2, f'{len(ways)} of {len(samples)}')
    check('names are not crowded out', run.losses['defs_full'] == 0, run.losses)


def valgrind():
    """It finds no errors in a program that has none."""
    if not shutil.which('valgrind'):
        skip('valgrind finds no errors', 'valgrind is not installed')
        return
    run = subprocess.run(['valgrind', '-q', '--error-exitcode=9', PROGRAM, 'thread'],
                         env=dict(os.environ, LD_PRELOAD=PRELOAD), capture_output=True, text=True,
                         timeout=170)
    check('valgrind finds no errors', run.returncode == 0 and not run.stderr,
          f'{run.returncode} {run.stderr}')


def main():
    known = symbols(PROGRAM)
    many_stacks(known)
    valgrind()
    run = Run('busy')
    stretch(run, 'busy', known)
    stretch(run, 'busy', known, 1)
    sched(run)
    subjects(run, 'busy')
    for source in ('cpu_samples', 'sched'):
        state = run.sources.get(source, {}).get('state')
        check(f'the trace says that {source} is on', state == 'on', state)
    descheduled()
    delays()
    for what in ('thread', 'blocked'):
        stretch(Run(what), what, known)
    run = Run('fork')
    stretch(run, 'fork', known, most=1.6, least=0.4)
    stretch(run, 'child', known)
    for what in ('defaults', 'takeover', 'waiting', 'named', 'crashes', 'fiber'):
        run = Run(what)
        run.behaviour()
        stretch(run, what, known)
        inside = run.stretches('inside')
        check(f'{what}: handlers of crashes are not sampled',
              len(inside) == 3 * (what == 'crashes') and
              not [e for s in inside for e in run.of('sample', *s[:3])], inside)
        Run(what, preload=False).behaviour()
    for what in ('killed', 'many', 'interrupted'):
        Run(what).behaviour()
    run = Run('busy', TACHO_SAMPLE_HZ='0', TACHO_SLOW_POLL='0')
    check('samples can be switched off', run.sources['cpu_samples']['state'] == 'off' and
          not [e for e in run.events if e['type'].startswith('sample') or e['type'] == 'sched'],
          run.sources['cpu_samples'])
    run = Run('busy', TACHO_SAMPLE_HZ='many')
    check('a rate that is none is refused, and the rest goes on',
          run.sources['cpu_samples']['state'] == 'refused' and len(run.events) > 3,
          run.sources['cpu_samples'])
    run = Run('busy', TACHO_SAMPLE_HZ='20')
    n = len([e for e in run.events if e['type'].startswith('sample')])
    check('another rate is another number of samples', 12 <= n <= 28, n)
    return 0


if __name__ == '__main__':
    sys.exit(main())
