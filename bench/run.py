#!/usr/bin/env python3
"""make bench: what tacho costs, beside the clock alone and LTTng-UST.

    bench/run.py [--quick] [--no-lttng] [--output FILE]

prints a table and writes build/bench/results.json. docs/overhead.md says how it is
measured and how to read it. A goal that is missed is said and fails nothing; a
measurement that means nothing (records that are not in the box, an LTTng
snapshot without events, ...) ends with status 1.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import analysis  # noqa: E402
import table  # noqa: E402
from lttng_session import Lttng  # noqa: E402
from machine import describe  # noqa: E402
from programs import BUILD, ROOT, Broken, Programs, number, program  # noqa: E402

BOX_BYTES = 32 << 20
QUICK_BOX_BYTES = 4 << 20
QUIET = 1.1  # a block whose wall time is at most this much of its CPU time
RECORDS = ['park', 'poll', 'poll_switch', 'turn', 'wake', 'spawn', 'event']
OFF = ['off_poll', 'off_wake', 'off_event']
PEERS = {name: f'lttng_{name}' for name in ('park', 'poll', 'wake', 'event')}


# Blocks ---------------------------------------------------------------------------------


class Blocks:
    """All blocks of all rounds: (case, threads) -> round -> [ns per event]."""

    def __init__(self):
        self.quiet = {}
        self.every = {}

    def add(self, round_, lines):
        together = {}
        for line in lines:
            case, threads, repeat, wall, cpu = line.split()
            together.setdefault((case, int(threads), repeat), []).append((float(wall), float(cpu)))
        for (case, threads, _), times in together.items():
            values = [cpu for _, cpu in times]
            if min(values) <= 0:
                raise Broken(f'{case}: a block took no time')
            # Two threads that other processes kept from running at once met no contention.
            if len(times) == threads and all(wall <= QUIET * cpu for wall, cpu in times):
                self.put(self.quiet, case, threads, round_, values)
            self.put(self.every, case, threads, round_, values)

    @staticmethod
    def put(where, case, threads, round_, values):
        where.setdefault((case, threads), {}).setdefault(round_, []).extend(values)

    def rounds(self, case, threads):
        """Values by round; those of quiet blocks where at least a quarter was quiet."""
        if (case, threads) not in self.every:
            raise Broken(f'{case} was not measured with {threads} threads')
        quiet, every = self.quiet.get((case, threads), {}), self.every[case, threads]
        enough = sum(map(len, quiet.values())) * 4 >= sum(map(len, every.values()))
        return (quiet if enough else every), enough

    def summary(self, case, threads):
        rounds, enough = self.rounds(case, threads)
        values = sorted(v for part in rounds.values() for v in part)
        return {'ns': statistics.median(values), 'p10': values[len(values) // 10],
                'p90': values[len(values) * 9 // 10], 'blocks': len(values), 'quiet': enough}

    def ratio(self, case, threads, to_case, to_threads):
        """Median over the rounds of the ratio within a round, and its least and most."""
        a, _ = self.rounds(case, threads)
        b, _ = self.rounds(to_case, to_threads)
        ratios = [statistics.median(a[r]) / statistics.median(b[r]) for r in sorted(a) if r in b]
        if not ratios:  # quiet blocks in no common round
            ratios = [self.summary(case, threads)['ns'] / self.summary(to_case, to_threads)['ns']]
        return {'ratio': statistics.median(ratios), 'least': min(ratios), 'most': max(ratios)}


# Measurements ---------------------------------------------------------------------------


def check_box(found, counted, what):
    """Every record that was made is in the box or was counted as overwritten, exactly."""
    made, overwritten, dropped = (int(number(found, n)) for n in ('made', 'overwritten', 'dropped'))
    events = int(number(counted, 'events'))
    if events <= 0 or made <= 0:
        raise Broken(f'{what}: nothing was recorded')
    if number(counted, 'problems'):
        raise Broken(f'{what}: the box cannot be read whole')
    if dropped or events + overwritten != made:
        raise Broken(f'{what}: {made} records were made, but {events} are in the box, '
                     f'{overwritten} were overwritten and {dropped} dropped')
    return {'made': made, 'read_back': events, 'overwritten': overwritten}


def measure_records(programs, lttng, rounds, repeats):
    blocks = Blocks()
    fresh, checks, lttng_made, clock = [], [], 0, None
    for round_ in range(rounds):
        say(f'  round {round_ + 1} of {rounds}')
        found, let_go = programs.held('record', str(repeats))
        counted = programs.bench('count', found['box'][0])
        let_go()
        checks.append(check_box(found, counted, 'bench-record'))
        clock = int(number(counted, 'clock'))
        fresh.append(number(found, 'fresh'))
        blocks.add(round_, found['block'])
        if lttng:
            lines = lttng.measure(repeats)
            blocks.add(round_, [line[6:] for line in lines if line.startswith('block ')])
            lttng_made += sum(int(line[5:]) for line in lines if line.startswith('made '))
    return blocks, statistics.median(fresh), checks, lttng_made, clock


def measure_workload(programs, ids, seconds, dumps):
    """The reference workload: sizes, and the cost of taking the window of a full box."""
    name = f'reference workload (task id: {ids})'
    say(f'  {name}')
    trace = pathlib.Path(programs.boxes, 'dump.tacho')
    inside = pathlib.Path(programs.boxes, 'snapshot.tacho')
    found, let_go = programs.held('workload', f'--ids={ids}', f'--snapshot={inside}', str(seconds))
    box = found['box'][0]
    counted = programs.bench('count', box)
    check = check_box(found, counted, name)
    if not check['overwritten']:
        raise Broken(f'{name}: the box did not become full')
    taken = [dump(programs, box, trace) for _ in range(dumps)]
    for path in (trace, inside):
        if number(programs.bench('count', path), 'events') != check['read_back']:
            raise Broken(f'{name}: {path.name} does not hold the events of the box')
    let_go()
    events = check['read_back']
    result = {
        'ids': ids, 'check': check, 'busy': number(found, 'busy'),
        'seconds': number(found, 'ran_ns') / 1e9,
        'events_per_second': check['made'] / (number(found, 'ran_ns') / 1e9),
        'box_bytes': number(found, 'used_bytes') / events,
        'disk_bytes': trace.stat().st_size / events,
        'trace_bytes': trace.stat().st_size,
        'types': {t.split()[0]: int(t.split()[1]) for t in counted['type']},
        'dump': {'wall_ms': statistics.median(t[0] for t in taken) / 1e6,
                 'cpu_ms': statistics.median(t[1] for t in taken) / 1e6,
                 'peak_bytes': max(t[2] for t in taken)},
        'snapshot': {'wall_ms': statistics.median(map(float, found['snapshot_ns'])) / 1e6,
                     'bytes': inside.stat().st_size},
    }
    trace.unlink()
    inside.unlink()
    return result


def dump(programs, box, trace):
    """(wall ns, CPU ns, peak bytes) of `tacho dump`."""
    tacho = BUILD / 'src' / 'cli' / 'tacho'
    _, err = programs.output([program('peak'), tacho, 'dump', box, '--force', '-o', trace])
    last = err.strip().splitlines()[-1].split()
    if last[0] != 'peak' or not trace.stat().st_size:
        raise Broken(f'tacho dump: {err}')
    return [float(v) for v in last[1:]]


def check_lttng(lttng, made):
    events, bytes_ = lttng.finish()
    if events > made or bytes_ < lttng.ring_bytes / 4:
        raise Broken(f'LTTng: its snapshot holds {events} events in {bytes_} bytes; {made} were '
                     f'made into rings of {lttng.ring_bytes} bytes')
    return {'made': made, 'read_back': events, 'ring_bytes': lttng.ring_bytes,
            'bytes_per_event': bytes_ / events}


# Goals ----------------------------------------------------------------------------------


def goals(results, blocks, clock):
    """What the project wants, each with what was measured."""
    found = []

    def goal(name, measured, wanted, at_least=False):
        met = measured >= wanted if at_least else measured <= wanted
        found.append({'name': name, 'measured': measured, 'wanted': wanted,
                      'direction': 'at least' if at_least else 'at most', 'met': met})

    def cost(what, case, to_case, wanted, threads=1, at_least=False):
        ratio = blocks.ratio(case, threads, to_case, 1)['ratio']
        goal(f'{table.NAMES[case]}: {what}', ratio, wanted, at_least)

    for case in RECORDS:
        cost('times the bare clock read', case, clock, 1.25)
    if results['lttng']:
        for case, peer in PEERS.items():
            cost('times the cost of tacho', peer, case, 6, at_least=True)
    for case in OFF:
        cost('parts of a clock read', case, clock, 0.15)
    for case in RECORDS:
        cost('on two threads, times one', case, case, 1.1, threads=2)
    for load in results['workloads']:
        small = load['ids'] == 'number'
        goal(f'bytes of the box per event (task id: {load["ids"]})', load['box_bytes'],
             9 if small else 12)
        goal(f'bytes per event on disk (task id: {load["ids"]})', load['disk_bytes'],
             2 if small else 2.5)
    for name, measured, wanted in analysis.goals(results['analysis']):
        goal(name, measured, wanted)
    return found


# Main -----------------------------------------------------------------------------------


def say(text):
    print(text, flush=True)


def ready(with_lttng):
    """All programs are there; if LTTng came after the build was configured, configures anew."""
    if with_lttng and not program('lttng').exists() and (BUILD / 'build.ninja').exists():
        for argv in (['meson', 'setup', '--reconfigure', BUILD, ROOT], ['ninja', '-C', BUILD]):
            done = subprocess.run(argv, capture_output=True, text=True)
            if done.returncode:
                raise Broken(f'{argv[0]} failed: {(done.stdout + done.stderr).strip()[-500:]}')
    names = ['record', 'workload', 'count', 'peak', 'multiply', 'model']
    for name in names + (['lttng'] if with_lttng else []):
        if not program(name).exists():
            hint = '' if name != 'lttng' else ' (liblttng-ust-dev is missing; or use --no-lttng)'
            raise Broken(f'{program(name)} is not built{hint}; run: make bench')


def arguments():
    parser = argparse.ArgumentParser(description='Measures what tacho costs.')
    parser.add_argument('--quick', action='store_true', help='few repetitions, rough figures')
    parser.add_argument('--no-lttng', action='store_true', help='without the comparison')
    parser.add_argument('--output', type=pathlib.Path, default=BUILD / 'bench' / 'results.json')
    return parser.parse_args()


def measure(args):
    rounds, repeats, seconds, dumps = (2, 3, 1, 1) if args.quick else (7, 20, 4, 5)
    results = {'command': 'make bench', 'quick': args.quick, 'machine': describe(),
               'date': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}
    results['box_bytes'] = QUICK_BOX_BYTES if args.quick else BOX_BYTES
    with Programs(results['box_bytes']) as programs:
        lttng = None if args.no_lttng else Lttng(programs, results['box_bytes'])
        try:
            if lttng:
                lttng.start()
            blocks, fresh, checks, made, clock = measure_records(programs, lttng, rounds, repeats)
            results['lttng'] = check_lttng(lttng, made) if lttng else None
        finally:
            if lttng:
                lttng.close()
        results['workloads'] = [measure_workload(programs, ids, seconds, dumps)
                                for ids in ('number', 'address')]
        results['analysis'] = analysis.measure(programs, args.quick, say)
    base = 'clock_gettime' if clock == 1 else 'counter'
    results.update(clock=base, fresh_ns=fresh, checks=checks)
    results['cases'] = {case: {str(threads): blocks.summary(case, threads) for threads in (1, 2)}
                        for case in sorted({case for case, _ in blocks.every})}
    results['times_clock'] = {case: blocks.ratio(case, 1, base, 1)
                              for case in RECORDS + OFF + ['clock_gettime']}
    results['goals'] = goals(results, blocks, base)
    return results


def main():
    args = arguments()
    begin = time.monotonic()
    args.output.unlink(missing_ok=True)  # an old result is not that of this run
    try:
        ready(not args.no_lttng)
        say('measuring:')
        results = measure(args)
    except Broken as error:
        print(f'bench: {error}', file=sys.stderr)
        return 1
    results['seconds'] = time.monotonic() - begin
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(json.dumps(results, indent=1, sort_keys=True) + '\n')
    say('')
    say(table.text(results))
    try:
        shown = args.output.resolve().relative_to(pathlib.Path(os.getcwd()).resolve())
    except ValueError:
        shown = args.output
    say(f'written: {shown} ({results["seconds"]:.0f} s)')
    return 0


if __name__ == '__main__':
    sys.exit(main())
