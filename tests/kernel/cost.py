#!/usr/bin/env python3
"""What a CPU sample costs the sampled thread: taken by a timer inside the process, and by perf with
a copy of 16 KiB of the stack. The thread looks at the clock all the time; counted are the gaps in
which a sample lies. Rounds by turns, medians. Not a test.

    TACHO_BUILD=build python3 tests/kernel/cost.py [ROUNDS]
"""
import bisect
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

BUILD = os.environ['TACHO_BUILD']
BIN = BUILD + '/src/cli/tacho'
WAYS = {'timer': (1000, 0), 'perf': (0, 1000)}


def once(timer_hz, perf_hz):
    """ns of each gap with a sample, and CPU us of whoever took those of perf, for each."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix='tacho-cost-', dir='/dev/shm'))
    env = dict(os.environ, LD_PRELOAD=BUILD + '/src/hooks/libtacho-preload.so',
               TACHO_BOX_DIR=str(folder), TACHO_KEEP_BOX='1', TACHO_SAMPLE_HZ=str(timer_hz))
    # Before all others where that is allowed.
    before = ['chrt', '-f', '10'] if os.geteuid() == 0 else []
    subject = subprocess.Popen(
        [*before, 'taskset', '-c', '0', BUILD + '/tests/kernel/kernel-subject', 'gaps'], env=env,
        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    follower = None
    outside = 0
    try:
        subject.stdout.readline()
        box = next(folder.glob('*.box'))
        trace = box
        if perf_hz:
            trace = folder / 'out.tacho'
            follower = subprocess.Popen(
                ['taskset', '-c', '1', BUILD + '/tests/kernel/kernel-follow', 'trace',
                 str(subject.pid), box, trace, str(perf_hz), '0', str(64 << 20)], text=True,
                stdout=subprocess.PIPE)
            follower.stdout.readline()
        out = subject.communicate('go\n', timeout=100)[0]
        if follower:
            outside = int(follower.communicate(timeout=100)[0].split()[3])
        cat = subprocess.run([BIN, 'cat', trace, '--json', '--type', 'sample,kernel-sample'],
                             text=True, capture_output=True, timeout=100).stdout
        gaps = [[int(x) for x in line.split()[1:]] for line in out.splitlines()]
        samples = [json.loads(line)['ns'] for line in cat.splitlines()]
        hit = [gaps[bisect.bisect_right(gaps, [ns, 1 << 63]) - 1] for ns in samples if gaps]
        return ([end - begin for (begin, end), ns in zip(hit, samples) if begin <= ns <= end],
                outside / max(len(samples), 1))
    finally:
        for p in (subject, follower):
            if p and p.poll() is None:
                p.kill()
                p.wait()
        shutil.rmtree(folder)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    runs = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way, rates in WAYS.items():
            runs[way].append(once(*rates))
    for way, results in runs.items():
        gaps = [g for r in results for g in r[0]]
        print(f'{way}: {len(gaps)} samples, {statistics.median(gaps) / 1000:.1f} us each in the '
              f'sampled thread, {statistics.median(r[1] for r in results):.1f} us outside')


if __name__ == '__main__':
    main()
