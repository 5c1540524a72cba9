"""The named points of the recorder, as its sources have them: a new one is tested, or fails."""
import os
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(os.environ.get('TACHO_SOURCE', pathlib.Path(__file__).parents[2]))
BUILD = pathlib.Path(os.environ.get('TACHO_BUILD', SOURCE / 'build'))


def names():
    found = sorted({name for path in (SOURCE / 'src').rglob('*.[ch]')
                    for name in re.findall(r'TACHO_TESTPOINT\("([^"]+)"\)', path.read_text())})
    if len(found) < 30:
        print(f'not ok the sources have test points: only {len(found)} were found')
        sys.exit(1)
    return found


def run(name, points):
    """The status of a program of this folder that is given the points."""
    program = BUILD / 'tests/crash' / name
    if not program.exists():
        sys.exit(f'{program} is not there: configure the build with -Dtestpoints=true, then build it')
    return subprocess.run([program, *points]).returncode
