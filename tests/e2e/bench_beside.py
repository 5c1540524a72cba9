#!/usr/bin/env python3
"""make bench-beside: what it says of planted results is true, and it measures a service for real, where
cargo can build that. Nothing of dial9 or Go is needed."""
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

from libcheck import check, skip, status

ROOT = pathlib.Path(os.environ.get('TACHO_SOURCE') or pathlib.Path(__file__).parents[2])
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / 'bench'))
import beside_page  # noqa: E402
import beside_questions  # noqa: E402

SCRIPT = ROOT / 'bench' / 'beside.py'
LIMIT = 580


# Planted results ------------------------------------------------------------------------


def planted_rounds(added, seed):
    """20 rounds of services that were never there: all get slower, each block has noise."""
    dice, rounds = random.Random(seed), []
    for number in range(20):
        def service(way):
            ns = 5000 + 10 * number + dice.gauss(0, 20) + added.get(way, 0)
            return {'ns': ns, 'p99': 100 * ns, 'rate': 1e9 / ns}
        ways = ('bare', *added)
        rounds.append({'loads': {load: [{way: service(way) for way in ways} for _ in range(3)]
                                 for load in ('saturated', 'paced')},
                       'memory': {way: {'VmHWM': 3e6, 'VmRSS': 3e6, 'RssShmem': 0} for way in ways}})
    return rounds


def verdicts(results):
    return {name: measured <= wanted for name, measured, wanted, _ in beside_page.goals(results)}


def costs_are_those_that_were_planted():
    rounds = planted_rounds({'tacho-tokio': 100, 'tacho-tokio unstable': 400}, 1)
    for way, ns in (('tacho-tokio', 100), ('tacho-tokio unstable', 400)):
        found = beside_page.against(rounds, 'paced', way, 'bare')
        check(f'the interval of {way} holds what was planted', found['low'] <= ns <= found['high'],
              found)
        check(f'the interval of {way} is narrow', found['high'] - found['low'] < 40, found)
    said = verdicts({'cost': rounds})
    check('a cost below the goal is met', said['tacho-tokio, saturated: added to a request'], said)
    check('a cost above the goal is missed',
          not said['tacho-tokio unstable, saturated: added to a request'], said)


def losses_and_faults_are_told():
    killed = [{'way': way, 'rate': 3000, 'after': 7, 'missing': missing}
              for way, missing in (('tacho-tokio', 0.001), ('tacho run', None), ('dial9', 3.5))]
    text = '\n'.join(beside_page.killed(killed))
    check('what is missing is told, and where all is', '| 0.001 s | all | 3.500 s |' in text, text)
    said = verdicts({'killed': killed})
    check('a trace without events misses the goal', list(said.values()) == [True, False], said)
    named = [{'fault': fault, 'way': 'tacho run', 'said': 'a | b', 'named_by': by, 'findings': []}
             for fault, by in (('sleep', 1), ('lock', 2), ('lost', 0), ('lone', 0))]
    text = '\n'.join(beside_page.faults(named))
    check('whether a line is named is told', re.findall(r'\| ([^|]*) \|$', text, re.MULTILINE)[1:]
          == ['yes', 'as finding 2', 'no', 'no'], text)
    check('only a first finding meets the goal', sorted(verdicts({'faults': named}).values())
          == [False, False, False, True], verdicts({'faults': named}))


def lines_of_faults_are_known():
    lines = (ROOT / 'bench/beside/src/faults.rs').read_text().splitlines()
    for fault, text in (('sleep', 'from_millis(80)'), ('lock', 'PRICES.lock().unwrap();'),
                        ('lost', 'spawn(audit('), ('lone', 'spawn(backup(')):
        at = next(i + 1 for i, line in enumerate(lines) if text in line)
        found = [beside_questions.names_line([answer], fault)
                 for answer in (f'called by f  src/faults.rs:{at}', 'faults.rs:1 and other.rs:80')]
        check(f'the line of {fault} is known, and others are not it', found == [1, 0], found)
    bar = '─' * 60
    report = '\n'.join([bar, 'LONG POLLS (>1ms)', bar, 'faults.rs:1', bar, 'TASK LIFECYCLE', bar,
                        'faults.rs:2', ''])
    found = beside_questions.complaints(report)
    check('what dial9 lists of any program is no complaint',
          'faults.rs:1' in found and 'faults.rs:2' not in found, found)


# For real -------------------------------------------------------------------------------


def run(folder, *arguments):
    results = pathlib.Path(folder, 'results.json')
    done = subprocess.run([sys.executable, SCRIPT, '--output', results, *arguments], text=True,
                          capture_output=True, timeout=LIMIT)
    print(done.stdout, done.stderr, sep='\n')
    return done, json.loads(results.read_text()) if results.exists() else None


def nonsense_is_refused(folder):
    for arguments in (['--only', 'nothing'], ['--ways', 'bare,nobody']):
        done, results = run(folder, *arguments)
        check(f'refused: {" ".join(arguments)}', done.returncode == 2 and results is None and
              'there are: ' in done.stderr, done.stderr)


def why_not():
    """Why the service cannot be built here; '' when it can."""
    cargo = shutil.which('cargo')
    if not cargo:
        return 'there is no cargo'
    said = subprocess.run([cargo, '--version'], capture_output=True, text=True).stdout
    version = re.match(r'cargo (\d+)\.(\d+)', said)
    if not version or tuple(map(int, version.groups())) < (1, 85):
        return f'"{said.strip()}" is too old for the packages of bench/beside, which need 1.85; ' \
               'rustup has a newer one'
    fetched = subprocess.run([cargo, 'fetch', '--locked', '--manifest-path',
                              ROOT / 'bench/beside/Cargo.toml'], capture_output=True, text=True)
    return '' if fetched.returncode == 0 else \
        f'cargo cannot fetch its packages: {fetched.stderr.strip().splitlines()[-1:]}'


def a_service_is_measured(folder):
    done, results = run(folder, '--quick', '--only', 'cost,killed', '--ways',
                        'bare,bare again,tacho run')
    check('it ends well', done.returncode == 0 and results, done.stderr[-500:])
    if not results:
        return
    blocks = [b for r in results['cost'] for load in r['loads'].values() for b in load]
    check('every service answered and had CPU time', len(blocks) == 4 and all(
        sorted(b) == ['bare', 'bare again', 'tacho run'] and
        all(s['ns'] > 0 and s['rate'] > 0 for s in b.values()) for b in blocks), blocks)
    check('of a service that was killed something is left',
          [k['missing'] is not None for k in results['killed']] == [True], results['killed'])
    check('a page is printed', '| tacho run | ' in done.stdout, done.stdout)


costs_are_those_that_were_planted()
losses_and_faults_are_told()
lines_of_faults_are_known()
with tempfile.TemporaryDirectory() as temporary:
    nonsense_is_refused(temporary)
    reason = why_not()
    if reason:
        skip('a service is measured', reason)
    else:
        a_service_is_measured(temporary)
sys.exit(status())
