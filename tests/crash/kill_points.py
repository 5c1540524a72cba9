#!/usr/bin/env python3
"""Kills recorded processes at every named point of the recorder and reads what is left.

The names are taken from the sources, so that a new point is tested or fails.
"""
import os
import pathlib
import re
import subprocess
import sys

source = pathlib.Path(os.environ.get('TACHO_SOURCE', pathlib.Path(__file__).parents[2]))
build = pathlib.Path(os.environ.get('TACHO_BUILD', source / 'build'))

names = sorted({name for path in (source / 'src').rglob('*.[ch]')
                for name in re.findall(r'TACHO_TESTPOINT\("([^"]+)"\)', path.read_text())})
if len(names) < 30:
    print(f'not ok the sources have test points: only {len(names)} were found')
    sys.exit(1)
program = build / 'tests/crash/kill-points'
if not program.exists():
    sys.exit(f'{program} is not there: configure the build with -Dtestpoints=true, then build it')
sys.exit(subprocess.run([program, *names]).returncode)
