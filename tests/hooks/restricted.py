#!/usr/bin/env python3
"""Programs that restrict their own system calls (seccomp) go on under tacho as they do without."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from libresult import check, skip, status  # noqa: E402

BUILD = os.environ['TACHO_BUILD']
BIN = os.environ['TACHO_BIN']
PROGRAM = BUILD + '/tests/hooks/hooks-restricted_subject'
REASON = 'system calls that recording needs'


def recorded(tmp, name, *argv):
    """How it ended, how many waits were recorded, and what the trace says of the process."""
    out = f'{tmp}/{name}.tacho'
    run = subprocess.run([BIN, 'run', '-o', out, '--', PROGRAM, *argv], capture_output=True,
                         text=True, timeout=120)
    cat = subprocess.run([BIN, 'cat', '--json', out], capture_output=True, text=True, timeout=60)
    info = subprocess.run([BIN, 'info', '--json', out], capture_output=True, text=True, timeout=60)
    parks = sum(json.loads(line)['type'] == 'park' for line in cat.stdout.splitlines())
    process = json.loads(info.stdout)['processes'][0] if info.returncode == 0 else {}
    return run, parks, process


def main():
    with tempfile.TemporaryDirectory() as tmp:
        for how, answer in (('prctl', 'kill'), ('seccomp', 'kill'), ('raw', 'kill'),
                            ('seccomp', 'trap'), ('strict', 'kill'), ('seccomp', 'error'),
                            ('none', 'kill'), ('accept', 'kill')):
            name = f'{how} {answer}'
            plain = subprocess.run([PROGRAM, how, answer], capture_output=True, text=True,
                                   timeout=60)
            if plain.returncode == 4:
                skip(name, 'the kernel takes no filters')
                continue
            run, parks, process = recorded(tmp, name, how, answer)
            check(f'{name}: the program ends as it does without',
                  (run.returncode, run.stdout) == (plain.returncode, plain.stdout) and
                  plain.returncode == 7, (plain, run))
            goes_on = how in ('none', 'accept') or answer == 'error'
            check(f'{name}: what came before is recorded', parks >= 2, (parks, run.stderr))
            check(f'{name}: recording goes on if it can', (parks > 50) == goes_on, parks)
            check(f'{name}: the trace says why if it does not',
                  (REASON in (process.get('reason') or '')) != goes_on, process)
    return status()


if __name__ == '__main__':
    sys.exit(main())
