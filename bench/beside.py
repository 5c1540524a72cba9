#!/usr/bin/env python3
"""make bench-beside: tacho beside dial9 and Go's FlightRecorder, on the same services in one run.

    bench/beside.py [--quick] [--rounds N] [--only PART,...] [--ways WAY,...]
                    [--output FILE]

A TCP service on Tokio (bench/beside/) is built bare, with tacho and with dial9; a service of Go runs
with and without its FlightRecorder. PARTs: cost, go, volume, killed, answers, faults. Prints a page
of Markdown. docs/rivals.md has one, and says how it is measured. Nothing fails because it took long.
"""
import argparse
import json
import pathlib
import random
import shutil
import statistics
import sys
import time

sys.dont_write_bytecode = True
import beside_questions as ask  # noqa: E402
from beside_page import page  # noqa: E402
from beside_services import (BOX_BYTES, CLIENT, SATURATED, TACHO, WAYS, Service,  # noqa: E402
                             build, toolkit)
from machine import describe, first_line  # noqa: E402
from programs import BUILD, Broken, Programs, program  # noqa: E402

LOADS = {'saturated': SATURATED, 'paced': 8000}
# Who takes part in what.
TAKE_PART = {
    'cost': ('bare', 'bare again', 'tacho run', 'tacho-tokio', 'tacho-tokio unstable',
             'tacho run with tacho-tokio', 'dial9'),
    'go': ('Go', 'Go again', 'Go with FlightRecorder'),
    'volume': ('tacho-tokio', 'tacho-tokio unstable', 'dial9'),
    'killed': ('tacho run', 'tacho-tokio', 'tacho-tokio unstable', 'dial9'),
    'answers': ('tacho-tokio unstable', 'dial9'),
    'faults': ('tacho run', 'tacho-tokio', 'tacho-tokio unstable', 'tacho run with tacho-tokio',
               'dial9', 'dial9 with profiling'),
}
ANSWER_EVENTS, QUICK_EVENTS = 7_000_000, 100_000  # dial9 has 7 million in 79 MB
ROUNDS, BLOCKS, INTERVAL, WARM = 20, 3, 0.25, 0.2


# Measuring ------------------------------------------------------------------------------


def block(services, rate, interval):
    """They take turns in an order of dice, and back, so that what gets slower all the time meets all
    alike. {way: {'ns', 'p99', 'rate'}}."""
    order = random.sample(list(services), len(services))
    taken = {way: [] for way in order}
    for way in order + order[::-1]:
        taken[way].append(services[way].load(interval, rate))
    return {way: {name: statistics.fmean(t[key] for t in both)
                  for name, key in (('ns', 'ns'), ('p99', 'p99_ns'), ('rate', 'rate'))}
            for way, both in taken.items()}


def measure_round(programs, ways, args):
    """Fresh services of all ways: {'loads': {load: [block]}, 'memory': {way: ...}}."""
    services = {way: Service(programs, way) for way in ways}
    found = {}
    for load, rate in LOADS.items():
        for service in services.values():
            service.load(WARM, rate)
        found[load] = [block(services, rate, args.interval) for _ in range(args.blocks)]
    memory = {way: service.memory() for way, service in services.items()}
    for service in services.values():
        service.finish()
    return {'loads': found, 'memory': memory}


def measure_cost(programs, ways, args):
    rounds = []
    for number in range(args.rounds):
        rounds.append(measure_round(programs, ways, args))
        if number % 5 == 4 or args.quick:
            say(f'  {ways[0]} and others, {number + 1} of {args.rounds} rounds')
    return rounds


def measure_volume(programs, ways, args):
    found = {}
    for way in ways:
        say(f'  events of {way}')
        found[way], service = ask.volume(programs, way, args.toolkit, args.seconds)
        service.finish()
    return found


def measure_killed(programs, ways, args):
    found = []
    for rate, seconds in ask.KILLS[-1:] if args.quick else ask.KILLS:
        for way in ways:
            say(f'  kill -9 of {way}, {rate or "as many as it can"} requests/s')
            found.append({'way': way, 'rate': rate, 'after': seconds,
                          'missing': ask.killed(programs, way, rate, seconds, args.toolkit)})
    return found


def measure_answers(programs, ways, args):
    """Of each a trace of as many events as dial9 has in 79 MB, and of larger ones."""
    events = QUICK_EVENTS if args.quick else ANSWER_EVENTS
    found = {}
    for way in ways:
        say(f'  recording for the answers: {way}')
        recorded, service = ask.volume(programs, way, args.toolkit, events=events)
        found[way] = ask.larger(programs, way, recorded, args, say)
        service.finish()
    return found


def measure_faults(programs, ways, args):
    found = []
    for fault in ask.FAULTS:
        for way in ways:
            say(f'  fault {fault}: {way}')
            found.append(dict(ask.find_fault(programs, way, fault, args.toolkit),
                              way=way, fault=fault))
    return found


MEASURE = {'cost': measure_cost, 'go': measure_cost, 'volume': measure_volume,
           'killed': measure_killed, 'answers': measure_answers, 'faults': measure_faults}


# Main -----------------------------------------------------------------------------------


def say(line):
    print(line, file=sys.stderr, flush=True)


def arguments():
    parser = argparse.ArgumentParser(description='Measures tacho beside dial9 and Go.')
    parser.add_argument('--quick', action='store_true', help='few rounds, rough figures')
    parser.add_argument('--rounds', type=int, default=ROUNDS, help=f'of the cost ({ROUNDS})')
    parser.add_argument('--only', default=','.join(TAKE_PART), help='parts, such as cost,faults')
    parser.add_argument('--ways', default=','.join(WAYS),
                        help='who takes part, such as "bare,bare again,tacho run"')
    parser.add_argument('--output', type=pathlib.Path, default=BUILD / 'bench' / 'beside.json')
    args = parser.parse_args()
    args.only, args.ways = args.only.split(','), args.ways.split(',')
    for given, known, what in ((args.only, TAKE_PART, 'part'), (args.ways, WAYS, 'way')):
        for name in given:
            if name not in known:
                parser.error(f'there is no {what} "{name}"; there are: {", ".join(known)}')
    args.blocks, args.interval, args.seconds = BLOCKS, INTERVAL, 3
    if args.quick:
        args.rounds, args.blocks, args.interval, args.seconds = 2, 1, 0.1, 0.5
    return args


def plan(args):
    """{part: ways}, without parts that nobody is left for."""
    found = {part: [way for way in TAKE_PART[part] if way in args.ways] for part in args.only}
    return {part: ways for part, ways in found.items() if ways}


def ready(programs, planned, args):
    for path in (TACHO, CLIENT, program('peak'), program('multiply')):
        if not path.exists():
            raise Broken(f'{path} is not built; run: make')
    ways = [way for ways in planned.values() for way in ways]
    rust = [way for way in ways if WAYS[way].features is not None]
    dial9 = [way for way in ways if ask.by_dial9(way)]
    for tool, wanted in (('cargo', rust), ('go', set(ways) - set(rust)), ('node', dial9)):
        if wanted and not shutil.which(tool):
            raise Broken(f'there is no {tool}, which {", ".join(sorted(wanted))} needs; '
                         'choose others with --ways')
    build(programs, ways, say)
    args.toolkit = toolkit(programs) if dial9 else None


def main():
    args = arguments()
    begin = time.monotonic()
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.unlink(missing_ok=True)  # an old result is not that of this run
    results = {'command': 'bench/beside.py', 'quick': args.quick, 'machine': describe(),
               'tools': {'cargo': first_line('cargo', '--version'),
                         'go': first_line('go', 'version'), 'node': first_line('node', '--version')},
               'date': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}
    try:
        with Programs(BOX_BYTES) as programs:
            planned = plan(args)
            ready(programs, planned, args)
            for part, ways in planned.items():
                say(f'measuring {part}:')
                results[part] = MEASURE[part](programs, ways, args)
                results['seconds'] = time.monotonic() - begin
                args.output.write_text(json.dumps(results, indent=1, sort_keys=True) + '\n')
    except Broken as error:
        print(f'bench: {error}', file=sys.stderr)
        return 1
    print(page(results))
    say(f'written: {args.output} ({results["seconds"]:.0f} s)')
    return 0


if __name__ == '__main__':
    sys.exit(main())
