#!/usr/bin/env python3
"""The crash handler: programs end as they would without it, and box and file tell all.

Also that between the signal and the end of the process nothing is called but what may
be called in a signal handler, and that the file is made by open, write and close.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

source = pathlib.Path(os.environ.get('TACHO_SOURCE', pathlib.Path(__file__).parents[2]))
build = pathlib.Path(os.environ.get('TACHO_BUILD', source / 'build'))
program = build / 'tests/crash/crash-handler'
ALLOWED = {'gettid', 'getpid', 'prctl', 'tgkill', 'sigaltstack', 'openat', 'write', 'close',
           'clock_gettime', 'nanosleep', 'exit', 'exit_group'}
NULL_WRITE = 0  # number of the case in crash_cases.c


def strace(folder):
    """What is wrong with the system calls of a crash, or None."""
    log, file = folder / 'strace.log', folder / 'crash.tacho'
    env = dict(os.environ, TACHO_BOX_DIR=str(folder))
    subprocess.run(['strace', '-f', '-o', log, program, str(NULL_WRITE), file], env=env,
                   timeout=120, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    lines = log.read_text(errors='replace').splitlines()
    first = next((i for i, line in enumerate(lines) if '--- SIGSEGV' in line), None)
    if first is None:
        return 'there was no SIGSEGV'
    after = [line.split(None, 1)[1] for line in lines[first + 1:]]
    if '+++ killed by SIGSEGV' not in after[-1]:
        return f'it did not die of it: {after[-1]}'
    opened = written = 0
    for line in after:
        call = re.match(r'(\w+)\(', line)
        if not call:
            continue
        name = call.group(1)
        if name not in ALLOWED and not name.startswith('rt_sig'):
            return f'it calls {line}'
        if name == 'openat':
            opened += 1
            if f'"{file}"' not in line or not re.search(r'= \d+$', line):
                return f'it opens {line}'
        written += name == 'write'
    if opened != 1 or not written:
        return f'{opened} files were opened and {written} writes made'
    return None


def check_calls():
    name = 'a crash makes no system calls but those that it may'
    if not shutil.which('strace'):
        print(f'skip {name}: there is no strace here')
        return True
    shm = '/dev/shm' if os.access('/dev/shm', os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix='tacho-crash-', dir=shm) as folder:
        probe = subprocess.run(['strace', '-o', '/dev/null', 'true'], capture_output=True)
        if probe.returncode:
            print(f'skip {name}: strace does not work here: {probe.stderr.decode().strip()}')
            return True
        why = strace(pathlib.Path(folder))
    print(f'not ok {name}: {why}' if why else f'ok {name}')
    return not why


if not program.exists():
    sys.exit(f'{program} is not there: configure the build with -Dtestpoints=true, then build it')
status = subprocess.run([program]).returncode
sys.exit(0 if check_calls() and status == 0 else 1)
