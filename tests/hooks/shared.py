#!/usr/bin/env python3
"""Sentinels of threads that serve one epoll set: a worker that idles while another waits in the set
trips none, however it idles; when all that serve it are blocked, each fires."""
import concurrent.futures
import os
import subprocess
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from libresult import check, skip, status  # noqa: E402

BUILD = os.path.abspath(os.environ.get('TACHO_BUILD') or 'build')
BIN = os.environ.get('TACHO_BIN') or BUILD + '/src/cli/tacho'
SUBJECT = BUILD + '/tests/hooks/hooks-shared_subject'
ASIO = BUILD + '/tests/hooks/hooks-shared_asio'
CONDITIONS = ('stall>600ms', 'lag>600ms', 'poll>600ms')


def fired(argv, conditions):
    """What tacho run says of windows that a condition made it take, in three seconds."""
    with tempfile.TemporaryDirectory(prefix='tacho-shared-') as folder:
        p = subprocess.run([BIN, 'run', '--on', ' or '.join(conditions), '--after', '0', '-o',
                            folder, '--', *argv], capture_output=True, text=True, timeout=90,
                           check=True)
        return [line for line in p.stderr.splitlines() if any(c + ': ' in line for c in conditions)]


def healthy(name, argv):
    # A busy machine may stall a healthy program: not twice.
    found = fired(argv, CONDITIONS) and fired(argv, CONDITIONS)
    check(f'{name}: no sentinel fires', not found, found)


def stalls(name, argv, condition):
    check(f'{name}: {condition} fires when all that serve the set are blocked',
          fired(argv + ['stalls'], [condition]), 'nothing fired')


subjects = [(mode, [SUBJECT, mode]) for mode in ('leaders', 'alone', 'cond', 'futex', 'sleep',
                                                 'accept')]
if os.path.exists(ASIO):
    subjects.insert(0, ('Asio', [ASIO]))
else:
    skip('Asio', 'its headers were not there when tacho was built, or no C++ compiler')
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    jobs = [pool.submit(healthy, *s) for s in subjects]
    jobs += [pool.submit(stalls, *s, c) for s in subjects for c in CONDITIONS
             if c == CONDITIONS[0] or s[0] in ('Asio', 'leaders', 'alone')]
    for job in jobs:
        job.result()
sys.exit(status())
