#!/usr/bin/env python3
"""make bench, second part: what recording costs real servers under load.

    bench/daemons.py [--quick] [--only NAME,...] [--seconds N] [--width PERCENT]
                     [--measure BUILD] [--output FILE] [--json]

CPU time per request and p99 latency of memcached, redis, nginx and an HTTP server over
libuv, under `tacho run` against alone, with 95 % intervals; and with everything on.
docs/overhead.md says how it is measured and how to read it. A goal that is missed is said
and fails nothing; a measurement that means nothing ends with status 1.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import statistics
import sys
import time

sys.dont_write_bytecode = True
from estimate import estimate, is_enough, p99_of, widest  # noqa: E402
from machine import describe  # noqa: E402
from programs import BUILD, Broken, Programs, library, program  # noqa: E402
from servers import CONNECTIONS, SERVERS, Server, switchback  # noqa: E402
from table import columns  # noqa: E402

WANTED_CPU = 1.01
BLOCKS = 3  # in a round, of four intervals each
ROUNDS_ALL = 6  # with everything on
# A turn of a server answers at most one request per connection, and its wait is recorded in 16
# bytes or more: so many requests fill a chunk, and the oldest one is overwritten.
REQUESTS_SURE = 100_000


# Measuring ------------------------------------------------------------------------------


def measure_round(programs, name, way, args):
    """Fresh servers, plain and `way`, that take turns."""
    servers = [Server(programs, name, w, args.measure, args.cpus) for w in ('plain', way)]
    agent = servers[1].agent_ns()
    found = switchback(programs, servers, args.blocks, random.getrandbits(63))
    answered, overwritten = found['answered'], found['overwritten'][way]
    requests = answered[way, 'recording']
    found['agent'] = (servers[1].agent_ns() - agent) / (requests + answered[way, 'paused']) / 1e3
    for server in servers:
        server.finish()
    if requests > REQUESTS_SURE and not overwritten:
        raise Broken(f'{name}: {requests} requests were answered and nothing was overwritten in '
                     f'the full box, so it was not recorded')
    return found


def measure_default(programs, name, args):
    """Rounds until the intervals are narrow enough, or the time is over."""
    rounds, begin = [], time.monotonic()
    while True:
        rounds.append(measure_round(programs, name, 'default', args))
        seconds = time.monotonic() - begin
        if len(rounds) < 2:
            continue
        cpu = estimate(rounds, 'default')
        ends = is_enough(rounds, cpu, args.width) or seconds >= args.seconds
        if ends or len(rounds) % 10 == 0:
            say(f'  {name}, {len(rounds)} rounds, {seconds:.0f} s: {ratio(cpu["total"])}')
        if ends:
            return rounds, seconds


def summary(rounds, way):
    """What the rounds say in all; the absolute values are medians."""
    def median(values):
        return statistics.median(v for r in rounds for v in values(r))
    plain = [('plain', 'recording'), ('plain', 'paused')]
    return {'rounds': len(rounds), 'cpu': estimate(rounds, way),
            'p99': estimate(rounds, way, p99_of),
            'plain_cpu': median(lambda r: (b[key] for b in r['blocks'] for key in plain)),
            'plain_p99': median(lambda r: (r['p99'][key] for key in plain)),
            'rate': median(lambda r: (r['rate'][key] for key in plain)),
            'agent': median(lambda r: [r['agent']])}


def measure_server(programs, name, args):
    rounds, seconds = measure_default(programs, name, args)
    say(f'  {name}, everything on')
    everything = [measure_round(programs, name, 'all', args) for _ in range(args.all)]
    return {'default': summary(rounds, 'default'), 'all': summary(everything, 'all'),
            'seconds': seconds}


# Results --------------------------------------------------------------------------------


def goals(servers, width):
    """What is wanted, each with what was measured. A change of the p99 can be measured when
    its interval lies above that of the null check."""
    found = []

    def goal(name, measured, wanted):
        found.append({'name': name, 'measured': measured, 'wanted': wanted,
                      'met': measured <= wanted})
    for name, server in servers.items():
        cpu, p99 = server['default']['cpu'], server['default']['p99']
        goal(f'{name}: CPU per request in all, times plain', cpu['total']['ratio'], WANTED_CPU)
        goal(f'{name}: half of its widest interval', widest(cpu), width)
        goal(f'{name}: how far the null check lies from 1',
             max(0, cpu['null']['low'] - 1, 1 - cpu['null']['high']), 0)
        goal(f'{name}: p99, least that it grew by while recording', p99['recording']['low'],
             max(1, p99['null']['high']))
    return found


def ratio(found):
    return f'{found["ratio"]:.4f} +-{found["half_width"]:.4f}'


def text(results):
    m = results['machine']
    head = (f'{m["cpu"]}, {m["cpus"]} CPUs{", virtual machine" if m["virtual"] else ""}, Linux '
            f'{m["kernel"]}; commit {m["commit"]}; {results["date"]}; load before '
            f'{m["load_before"]:.1f}')
    if results['measured'] != str(BUILD):
        head += f'\ntacho of {results["measured"]}'
    if results['quick']:
        head += '\n--quick: rough figures'
    parts = [[head]]
    for key, unit in (('cpu', 'CPU per request, us'), ('p99', 'p99 latency, us')):
        rows = [[unit, 'plain', 'recording', 'hooks, paused', 'total', 'null check',
                 'everything on']]
        for name, server in results['servers'].items():
            found = server['default'][key]
            rows.append([name, f'{server["default"]["plain_" + key]:.2f}',
                         *(ratio(found[n]) for n in ('recording', 'hooks', 'total', 'null')),
                         ratio(server['all'][key]['total'])])
        parts.append(columns(rows))
    rows = [['', 'requests/s', 'rounds', 'seconds', 'tacho itself, us', 'everything on']]
    for name, server in results['servers'].items():
        default = server['default']
        rows.append([name, f'{default["rate"]:,.0f}', str(default['rounds']),
                     f'{server["seconds"]:.0f}', f'{default["agent"]:.3f}',
                     f'{server["all"]["agent"]:.3f}'])
    parts.append(columns(rows))
    rows = [['goal', 'measured', 'wanted', '']]
    rows += [[g['name'], f'{g["measured"]:.4f}', f'<= {g["wanted"]:.4f}',
              'met' if g['met'] else 'MISSED'] for g in results['goals']]
    missed = [g['name'] for g in results['goals'] if not g['met']]
    parts.append(columns(rows) + [f'  {len(missed)} of {len(results["goals"])} goals missed'
                                  + (': ' + '; '.join(missed) if missed else '')])
    return '\n\n'.join('\n'.join(part) for part in parts) + '\n'


# Main -----------------------------------------------------------------------------------


def say(line):
    print(line, file=sys.stderr, flush=True)


def arguments():
    parser = argparse.ArgumentParser(description='Measures what tacho costs servers.')
    parser.add_argument('--quick', action='store_true', help='few rounds, rough figures')
    parser.add_argument('--only', default=','.join(SERVERS), help='servers, such as redis,nginx')
    parser.add_argument('--seconds', type=float, default=300,
                        help='when to stop at the latest, per server (300)')
    parser.add_argument('--width', type=float, default=0.5, metavar='PERCENT',
                        help='stop when all intervals are +- this or narrower (0.5)')
    parser.add_argument('--measure', type=pathlib.Path, default=BUILD, metavar='BUILD',
                        help='the build folder whose tacho is measured; the programs of the '
                        'benchmark are always those of this tree')
    parser.add_argument('--output', type=pathlib.Path, default=BUILD / 'bench' / 'daemons.json')
    parser.add_argument('--json', action='store_true', help='print the results as JSON')
    args = parser.parse_args()
    args.only = args.only.split(',')
    for name in args.only:
        if name not in SERVERS:
            parser.error(f'there is no server "{name}"; there are: {", ".join(SERVERS)}')
    args.measure = args.measure.resolve()
    args.width /= 100
    args.blocks, args.all = BLOCKS, ROUNDS_ALL
    if args.quick:
        args.blocks, args.all, args.seconds = 1, 2, 0
    return args


def ready(args):
    """The CPUs of client and server."""
    os.environ['PATH'] += ':/usr/sbin'
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise Broken('server and client need a CPU each, and there is only one')
    needed = [args.measure / 'src/cli/tacho', program('daemons_client'), library('daemons_probe')]
    for name in args.only:
        what = SERVERS[name][1](None, 0)[0] if name != 'nginx' else 'nginx'
        if name == 'libuv':
            needed.append(pathlib.Path(what))
        elif not shutil.which(what):
            raise Broken(f'{what} is not installed; run: make setup')
    for path in needed:
        if not path.exists():
            raise Broken(f'{path} is not built; run: make bench')
    return cpus[0], cpus[-1]


def main():
    args = arguments()
    begin = time.monotonic()
    args.output.unlink(missing_ok=True)  # an old result is not that of this run
    results = {'command': 'bench/daemons.py', 'quick': args.quick, 'machine': describe(),
               'connections': CONNECTIONS, 'measured': str(args.measure), 'servers': {},
               'date': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}
    try:
        args.cpus = ready(args)
        say('measuring servers:')
        with Programs(32 << 20) as programs:
            for name in args.only:
                results['servers'][name] = measure_server(programs, name, args)
    except Broken as error:
        print(f'bench: {error}', file=sys.stderr)
        return 1
    results['goals'] = goals(results['servers'], args.width)
    results['seconds'] = time.monotonic() - begin
    written = json.dumps(results, indent=1, sort_keys=True) + '\n'
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(written)
    print(written if args.json else '\n' + text(results))
    say(f'written: {args.output} ({results["seconds"]:.0f} s)')
    return 0


if __name__ == '__main__':
    sys.exit(main())
