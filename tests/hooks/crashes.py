#!/usr/bin/env python3
"""A handler of crashes may change all memory and change it back, as redis's does: no sample comes
in between, however many threads began at once and whoever forked whom."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from libresult import check  # noqa: E402

BUILD = os.environ['TACHO_BUILD']
PRELOAD = BUILD + '/src/hooks/libtacho-preload.so'
PROGRAM = BUILD + '/tests/hooks/hooks-crashes_subject'
WHY = {1: 'a sample may come into the handler', 2: 'there is no memory to test or for a thread',
       4: 'the handler did not run', 5: 'a thread has no timer'}
NO_LISTENER = 3
CASES = {
    'the thread has waited': 'wait',
    'the parent was sampled': 'fork',
    'threads began at once': 'threads',
    'one set its handler meanwhile': 'meanwhile',
}


def ends(name, env, *argv):
    """The program's children end as they shall; it says how many did not."""
    out = subprocess.run([PROGRAM, *argv], env=env, capture_output=True, text=True, timeout=120)
    status = int(out.stdout.split()[-1]) if out.stdout else 0
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == NO_LISTENER:
        print(f'skip {name}: seccomp tells nobody of calls here')
        return
    if os.WIFSIGNALED(status):
        why = signal.Signals(os.WTERMSIG(status)).name
    else:
        why = WHY.get(os.WEXITSTATUS(status))
    check(name, out.returncode == 0, f'{out.stdout}: {why} {out.stderr}')


def main():
    if not os.path.exists('/proc/self/timers'):
        print('skip crashes: /proc/self/timers is not there')
        return 0
    boxes = tempfile.mkdtemp(prefix='tacho-crashes-', dir='/dev/shm')
    env = dict(os.environ, TACHO_BOX_DIR=boxes, TACHO_SAMPLE_HZ='1000')
    recorded = dict(env, LD_PRELOAD=PRELOAD)
    try:
        for name, what in CASES.items():
            ends(f'not recorded: {name}', env, what, '2', 'whole')
            ends(f'{name}: samples are blocked', recorded, what, '20')
            ends(f'{name}: the memory test goes well', recorded, what, '4', 'whole')
        ends('threads that begin at once are all sampled', recorded, 'stay', '4')
    finally:
        shutil.rmtree(boxes, ignore_errors=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
