#!/usr/bin/env python3
"""make bench: it measures, refuses to call nonsense a measurement, and leaves nothing behind."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid

from libcheck import check, status

ROOT = pathlib.Path(os.environ.get('TACHO_SOURCE') or pathlib.Path(__file__).parents[2])
BUILD = pathlib.Path(os.environ.get('TACHO_BUILD') or ROOT / 'build')
RUN = ROOT / 'bench' / 'run.py'
LIMIT = 120


def bench(folder, *arguments, build=BUILD):
    """Runs a rough benchmark; (finished process, results or None)."""
    results = pathlib.Path(folder, 'results.json')
    done = subprocess.run([sys.executable, RUN, '--quick', '--output', results, *arguments],
                          env=dict(os.environ, TACHO_BUILD=str(build)), text=True,
                          capture_output=True, timeout=LIMIT)
    print(done.stdout, done.stderr, sep='\n')
    return done, json.loads(results.read_text()) if results.exists() else None


def whole(results, with_lttng):
    """Why the results are not what a run should give; '' when they are."""
    wanted = ['counter', 'clock_gettime', 'off_wake', 'park', 'poll', 'wake', 'event']
    wanted += ['lttng_wake', 'lttng_off'] if with_lttng else []
    for case in wanted:
        for threads in '12':
            if not results['cases'][case][threads]['ns'] > 0:
                return f'{case} with {threads} threads took no time'
    if len(results['workloads']) != 2 or any(w['disk_bytes'] <= 0 for w in results['workloads']):
        return 'no sizes of the reference workload'
    for row in results['analysis']:
        if row['events'] < 1000000 or not row['model']['cpu_ms'] > 0 or \
                not row['report']['peak_bytes'] > 0:
            return 'the analysis of a trace was not measured'
    if not results['analysis']:
        return 'no analysis'
    if with_lttng != bool(results['lttng'] and results['lttng']['read_back']):
        return 'LTTng: not as asked for'
    if any(c['read_back'] + c['overwritten'] != c['made'] for c in results['checks']):
        return 'records are missing'
    return '' if results['goals'] and results['machine']['cpu'] else 'no goals or no machine'


def measures(folder):
    done, results = bench(folder, '--no-lttng')
    check('bench measures', done.returncode == 0 and results is not None, done.stderr[-300:])
    if results is None:
        return
    why = whole(results, False)
    check('bench results are whole', not why, why)
    said = all(name in done.stdout for name in ('ns per event', 'bytes of the box per event', 'goal'))
    check('bench prints its table', said and 'not measured' in done.stdout, done.stdout)


def measures_lttng(folder):
    name = 'bench measures LTTng-UST beside tacho'
    missing = [tool for tool in ('lttng', 'lttng-sessiond', 'babeltrace2') if not shutil.which(tool)]
    if missing or not (BUILD / 'bench' / 'bench-lttng').exists():
        print(f'skip {name}: {", ".join(missing) or "bench-lttng"} is not there')
        return
    done, results = bench(folder)
    check(name, done.returncode == 0 and results and not whole(results, True),
          done.stderr or (whole(results, True) if results else 'no results'))


def false_build(folder, name, script):
    """A build in which one program of the benchmark does something else."""
    build = pathlib.Path(folder, f'build-{uuid.uuid4().hex[:8]}')
    shutil.copytree(BUILD / 'bench', build / 'bench', ignore=lambda _, names: [
        n for n in names if not n.startswith('bench-') or n.endswith('.p')], symlinks=True)
    for other in ('core', 'read', 'cli'):
        (build / 'src').mkdir(exist_ok=True)
        (build / 'src' / other).symlink_to(BUILD / 'src' / other)
    program = build / 'bench' / f'bench-{name}'
    program.unlink()
    program.write_text(script.replace('REAL', str(BUILD / 'bench' / f'bench-{name}')))
    program.chmod(0o755)
    return build


def refuses(folder):
    stale = pathlib.Path(folder, 'results.json')
    cases = [
        ('records that are not in the box', 'record', '1 records were made',
         '#!/bin/sh\nREAL "$@" | sed -u "s/^made .*/made 1/"\n'),
        ('a recorder that is off', 'record', 'cannot record',
         '#!/bin/sh\nTACHO=off exec REAL "$@"\n'),
        ('a workload without records', 'workload', 'nothing was recorded',
         '#!/bin/sh\nREAL "$@" | sed -u "s/^made .*/made 0/"\n'),
        ('blocks that are missing', 'record', 'was not measured',
         '#!/bin/sh\nREAL "$@" | sed -u "/^block wake /d"\n'),
    ]
    for name, program, why, script in cases:
        stale.write_text('{}')
        done, results = bench(folder, '--no-lttng', build=false_build(folder, program, script))
        check(f'bench refuses {name}',
              done.returncode == 1 and why in done.stderr and results is None,
              f'status {done.returncode}: {done.stderr}')


def names_what_is_missing(folder):
    build = pathlib.Path(folder, 'nothing-built')
    (build / 'bench').mkdir(parents=True)
    done, _ = bench(folder, build=build)
    check('bench says what is not built', done.returncode == 1 and 'is not built' in done.stderr,
          done.stderr)


def measures_servers(folder):
    missing = [name for name in ('redis-server', 'memcached')
               if not shutil.which(name)]
    if missing or (os.cpu_count() or 1) < 2 or not (BUILD / 'bench/bench-daemons_uv').exists():
        print(f'skip bench measures servers: {", ".join(missing) or "a second CPU, or libuv"} is '
              f'not there')
        return
    results = pathlib.Path(folder, 'daemons.json')
    script = ROOT / 'bench' / 'daemons.py'

    def run(*arguments):
        done = subprocess.run([sys.executable, script, '--quick', '--output', results, *arguments],
                              env=dict(os.environ, TACHO_BUILD=str(BUILD)), text=True,
                              capture_output=True, timeout=LIMIT)
        print(done.stdout, done.stderr, sep='\n')
        return done
    done = run('--only', 'libuv,redis')
    found = json.loads(results.read_text()) if results.exists() else {'servers': {}, 'goals': []}
    servers = found['servers'].values()
    whole = all(0 < n['low'] <= n['ratio'] <= n['high'] for server in servers
                for way in ('default', 'all') for key in ('cpu', 'p99')
                for n in server[way][key].values())
    check('bench measures servers', done.returncode == 0 and len(servers) == 2 and whole and
          len(found['goals']) == 8 and 'goals missed' in done.stdout, done.stderr)
    # Several times as much, however busy the machine is.
    dear = [server['all']['cpu']['total']['ratio'] for server in servers]
    check('bench sees what costs much', dear and min(dear) > 1.2, dear)
    done = run('--only', 'libuv', '--json')
    check('bench prints what it measured as JSON', done.returncode == 0 and
          json.loads(done.stdout) == json.loads(results.read_text()), done.stdout)
    done = run('--only', 'httpd')
    check('bench knows its servers', done.returncode == 2 and 'httpd' in done.stderr, done.stderr)
    # A tacho that runs the command and records nothing.
    build = pathlib.Path(folder, 'build-servers')
    (build / 'src/cli').mkdir(parents=True)
    false = build / 'src/cli/tacho'
    false.write_text('#!/bin/bash\nwhile [ "$1" != -- ]; do shift || exit; done\nshift\n'
                     'trap "kill $!" TERM\n"$@" & wait\n')
    false.chmod(0o755)
    done = run('--only', 'redis', '--measure', build)
    check('bench refuses servers that were not recorded', done.returncode == 1 and
          'not recorded' in done.stderr and not results.exists(), done.stderr)


def carriers(mark):
    """Processes that were started with the mark in their environment."""
    found = []
    for path in pathlib.Path('/proc').glob('[0-9]*/environ'):
        try:
            if mark in path.read_bytes():
                found.append(path.parent.name)
        except OSError:
            pass
    return found


def interrupted(folder):
    mark = uuid.uuid4().hex
    child = subprocess.Popen([sys.executable, RUN, '--no-lttng', '--output',
                              pathlib.Path(folder, 'results.json')], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=dict(os.environ, BENCH_TEST_MARK=mark, TACHO_BUILD=str(BUILD)))
    try:
        for line in child.stdout:
            if 'round 1' in line:
                break
        child.send_signal(signal.SIGTERM)
        _, err = child.communicate(timeout=60)
    finally:
        child.kill()
        child.wait()
    left = carriers(mark.encode())
    check('an interrupted bench ends its programs',
          child.returncode == 1 and 'interrupted' in err and not left,
          f'status {child.returncode}, left: {left}, {err}')


def main():
    if not (BUILD / 'bench' / 'bench-record').exists():
        print('skip bench: bench-record is not built')
        return 0
    with tempfile.TemporaryDirectory(prefix='tacho-bench-test-') as folder:
        measures(folder)
        measures_lttng(folder)
        refuses(folder)
        names_what_is_missing(folder)
        measures_servers(folder)
        interrupted(folder)
    return status()


if __name__ == '__main__':
    sys.exit(main())
