"""What scripts ask of a report, and what they have in common."""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..'), os.path.join(HERE, '..', 'truth')]

from libservers import TACHO, Failed, Unavailable  # noqa: E402
from libresult import check, skip  # noqa: E402
from librun import group_or_none  # noqa: E402

SUM = 0.01  # that a ledger may be off by
UNITS = {'ns': 1, 'us': 1000, 'ms': 1000000, 's': 1000000000}


def report(path):
    done = subprocess.run([TACHO, 'report', '--json', '--all', '--ledger', path],
                          capture_output=True, text=True, timeout=600)
    if done.returncode not in (0, 1) or not done.stdout:
        raise Failed(f'tacho report: {done.stderr.strip()[-300:]}')
    return json.loads(done.stdout)


def alarms(found):
    return [f for f in found['findings'] if f['severity'] != 'info' and f['explained_by'] is None]


def unbalanced(found):
    """Threads whose owners do not add up to their time."""
    out = []
    for t in found['ledger']['threads']:
        length, sum_ns = t['to_ns'] - t['from_ns'], sum(o['ns'] for o in t['owners'])
        if abs(sum_ns - length) > SUM * length:
            out.append(f'{t["tid"]}: {sum_ns} of {length} ns')
    return out


def not_observed(found):
    """The share of all threads' time in percent, and the reasons with theirs."""
    whole, reasons = 0, {}
    for t in found['ledger']['threads']:
        whole += t['to_ns'] - t['from_ns']
        for o in t['owners']:
            if o['owner'] == 'not observed':
                reasons[o['key']] = reasons.get(o['key'], 0) + o['ns']
    shares = {key: 100 * ns / max(whole, 1) for key, ns in reasons.items()}
    why = ', '.join(f'{key} {share:.1f} %' for key, share in
                    sorted(shares.items(), key=lambda item: -item[1]) if share >= 0.1)
    return sum(shares.values()), why


def longest_told(finding):
    match = re.search(r'up to ([\d.]+) (ns|us|ms|s)\b', finding['summary'])
    return float(match.group(1)) * UNITS[match.group(2)] if match else 0


class Options:
    """Of the command line; and the frame of a script: all that are asked for, each in a folder and in
    a cgroup before which the rest of the machine counts little, and a table."""

    def __init__(self):
        parser = argparse.ArgumentParser()
        parser.add_argument('--only', default='',
                            type=lambda text: text.split(',') if text else [])
        parser.add_argument('--seconds', type=float, default=5)
        parser.add_argument('--keep', help='a folder for what was recorded')
        parser.add_argument('--again', help='a folder of before, to judge what is there')
        parser.parse_args(namespace=self)

    def each(self, names, run, columns):
        out = self.again or self.keep or tempfile.mkdtemp(prefix='tacho-servers-')
        rows = []
        os.makedirs(out, exist_ok=True)
        os.chmod(out, 0o755)
        # Some change their user, and could make no box in a folder that is root's.
        os.environ.pop('TACHO_BOX_DIR', None)
        with group_or_none() as group:
            for name in self.only or names:
                folder = os.path.join(out, name)
                try:
                    os.makedirs(folder, exist_ok=bool(self.again))
                    found = run(name, self, group.enter if group else None, folder)
                    rows += found if isinstance(found, list) else [found]
                except Unavailable as error:
                    skip(name, error)
                except (Failed, OSError, ValueError, LookupError,
                        subprocess.SubprocessError) as error:
                    check(f'{name}: it can be used', False, f'{type(error).__name__}: {error}')
        if not self.keep and not self.again:
            shutil.rmtree(out, ignore_errors=True)
        for row in (columns, ['---'] * len(columns), *rows):
            print('| ' + ' | '.join(row) + ' |')
