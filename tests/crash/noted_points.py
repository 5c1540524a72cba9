#!/usr/bin/env python3
"""Kills a program that prepared nothing for its crash at each step of noting that crash, and reads
what its box has of it."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from libresult import check, status  # noqa: E402

build = pathlib.Path(os.environ['TACHO_BUILD'])
PRELOAD = build / 'src/hooks/libtacho-preload-testpoints.so'
PROGRAM = build / 'tests/hooks/hooks-noted_subject'
# What the box has by then: registers, frames.
POINTS = {'crash-begun': (False, False), 'crash-registers': (True, False),
          'crash-stack': (True, True)}


def crash_at(point, how, what):
    """How the program ended, and the crashes in its box."""
    with tempfile.TemporaryDirectory(prefix='tacho-noted-', dir='/dev/shm') as boxes:
        env = dict(os.environ, LD_PRELOAD=str(PRELOAD), TACHO_BOX_DIR=boxes, TACHO_KEEP_BOX='1',
                   TACHO_TESTPOINT=point)
        p = subprocess.run([PROGRAM, how, what], env=env, cwd=boxes, capture_output=True, text=True,
                           timeout=60)
        box = next(pathlib.Path(boxes).glob('*.box'))
        info = subprocess.run([os.environ['TACHO_BIN'], 'info', '--json', box], capture_output=True,
                              text=True, timeout=60)
    told = json.loads(info.stdout)
    return p.returncode, told['processes'][0]['crashes'], told['event_count']


for point_, (registers, frames) in POINTS.items():
    for how_, what_ in (('plain', 'segv'), ('plain', 'abort'), ('thread', 'ill'),
                        ('once', 'segv')):
        code, crashes, events = crash_at(point_, how_, what_)
        check(f'killed at {point_}: {how_} {what_}',
              code == -signal.SIGKILL and events > 0 and len(crashes) == 1 and
              bool(crashes[0]['registers']) == registers and
              bool(crashes[0]['frames']) == frames and
              crashes[0]['unwind_failed'] != frames, (code, events, crashes))
code, crashes, events = crash_at('none', 'plain', 'segv')
check('not killed', code == -signal.SIGSEGV and len(crashes) == 1, (code, crashes))
sys.exit(status())
