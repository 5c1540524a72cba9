#!/usr/bin/env python3
"""make bench, second part: what recording costs real servers under load.

    bench/daemons.py [--quick] [--only NAME,...] [--output FILE]

CPU time per request and p99 latency of memcached, redis, nginx and an HTTP server over
libuv: alone, under `tacho run`, and with everything on. docs/overhead.md says how it is
measured and how to read it. A goal that is missed is said and fails nothing; a
measurement that means nothing ends with status 1.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from machine import describe  # noqa: E402
from programs import BUILD, Broken, Programs, number, program, words  # noqa: E402
from table import columns  # noqa: E402

TACHO = BUILD / 'src' / 'cli' / 'tacho'
WAYS = ['plain', 'again', 'default', 'all']
CONNECTIONS = 16
EVERYTHING = ['--call-threshold', '0', '--sched', '--kernel']
WANTED_CPU = 1.01
PATIENCE = 30


# Servers --------------------------------------------------------------------------------


def memcached(_folder, port):
    root = ['-u', 'root'] if os.geteuid() == 0 else []
    return ['memcached', '-l', '127.0.0.1', '-p', str(port), '-U', '0', '-t', '1', *root]


def redis(folder, port):
    return ['redis-server', '--bind', '127.0.0.1', '--port', str(port), '--save', '',
            '--appendonly', 'no', '--dir', str(folder)]


def nginx(folder, port):
    config = pathlib.Path(folder, 'nginx.conf')
    temporary = ''.join(f'{name}_temp_path {folder}/{name}; ' for name in
                        ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'))
    page = '0123456789abcdef' * 4
    # Workers of another user would record into a folder of that user.
    user = 'user root;' if os.geteuid() == 0 else ''
    config.write_text(f"""daemon off; {user} worker_processes 1; pid {folder}/pid;
error_log {folder}/error.log; events {{ worker_connections 512; }}
http {{ access_log off; keepalive_requests 1000000000; {temporary}
server {{ listen 127.0.0.1:{port}; location / {{ return 200 {page}; }} }} }}
""")
    return ['nginx', '-c', str(config)]


def libuv(_folder, port):
    return [str(program('daemons_uv')), str(port)]


SERVERS = {  # name: (protocol of the client, command line)
    'memcached': ('memcached', memcached),
    'redis': ('redis', redis),
    'nginx': ('http', nginx),
    'libuv': ('http', libuv),
}


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(('127.0.0.1', port)) == 0


def children(pid):
    try:
        text = pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


def family(pid):
    return [pid] + [p for child in children(pid) for p in family(child)]


def cpu_ns(pid):
    return sum(int((task / 'schedstat').read_text().split()[0])
               for task in pathlib.Path(f'/proc/{pid}/task').iterdir())


class Server:
    """One server, recorded or not. It has a CPU of its own; tacho may use all."""

    def __init__(self, programs, name, way, cpus):
        self.name, self.way, self.programs = name, way, programs
        self.protocol, command = SERVERS[name]
        self.folder = pathlib.Path(programs.folder())
        self.port = free_port()
        argv = command(self.folder, self.port)
        env = {}
        if way in ('default', 'all'):
            more = EVERYTHING if way == 'all' else []
            env = {'TACHO_SAMPLE_HZ': '999'} if way == 'all' else {}
            argv = [TACHO, 'run', '-q', '--no-symbols', '-o', self.folder, *more, '--', *argv]
        self.cpus = cpus
        self.child = programs.start(argv, env=env, gently=True, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        end = time.monotonic() + PATIENCE
        while not listens(self.port):
            if self.child.poll() is not None or time.monotonic() > end:
                why = self.child.stderr.read() if self.child.poll() is not None else 'no port'
                raise Broken(f'{name} did not start: {why.strip()[-300:]}')
            time.sleep(0.02)
        self.pids = family(self.child.pid)
        self.agent = self.pids.pop(0) if env or way == 'default' else None
        if not self.pids:
            raise Broken(f'{name}: its process was not found')
        for pid in self.pids:
            for task in os.listdir(f'/proc/{pid}/task'):
                os.sched_setaffinity(int(task), {cpus[1]})

    def burst(self, requests):
        """{'cpu': us per request, 'p99': us, ...} of some requests."""
        out, _ = self.programs.output(
            [program('daemons_client'), self.protocol, str(self.port), str(CONNECTIONS),
             str(requests), ','.join(map(str, self.pids))],
            preexec_fn=lambda: os.sched_setaffinity(0, {self.cpus[0]}))
        found = words(out.splitlines())
        if number(found, 'answered') != requests or number(found, 'cpu_ns') <= 0:
            raise Broken(f'{self.name}: {requests} requests were not answered')
        return {'cpu': number(found, 'cpu_ns') / requests / 1e3,
                'p50': number(found, 'p50_ns') / 1e3, 'p99': number(found, 'p99_ns') / 1e3,
                'rate': requests / number(found, 'wall_ns') * 1e9}

    def agent_ns(self):
        return cpu_ns(self.agent) if self.agent else 0

    def finish(self):
        """Ends it; what its window holds: (events, records that were overwritten)."""
        os.kill(self.pids[0], signal.SIGTERM)
        try:
            self.child.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise Broken(f'{self.name} ({self.way}) did not end') from None
        self.child.stderr.close()
        self.programs.end(self.child, 0)
        events = overwritten = 0
        for trace in self.folder.glob('*.tacho'):
            out, _ = self.programs.output([TACHO, 'info', '--json', trace])
            found = json.loads(out)
            events += found['event_count']
            overwritten += sum(loss['count'] for process in found['processes']
                               for loss in process['losses']
                               if loss['name'] == 'overwritten_records')
        shutil.rmtree(self.folder, ignore_errors=True)
        return events, overwritten


# Measuring ------------------------------------------------------------------------------


def generation(programs, name, cpus, rounds, requests, fill):
    """All ways at once, in turns. [{way: burst}], and what the windows held."""
    servers = {way: Server(programs, name, way, cpus) for way in WAYS}
    # With everything on a request is several times the records, and the time.
    first = {'plain': requests, 'again': requests, 'default': fill, 'all': fill // 4}
    for way, server in servers.items():
        server.burst(first[way])
    before = {way: server.agent_ns() for way, server in servers.items()}
    found = []
    for i in range(rounds):
        order = WAYS[i % len(WAYS):] + WAYS[:i % len(WAYS)]
        found.append({way: servers[way].burst(requests) for way in order})
    agent = {way: (servers[way].agent_ns() - before[way]) / rounds / requests / 1e3
             for way in ('default', 'all')}
    windows = {way: server.finish() for way, server in servers.items()}
    for way in ('default', 'all'):
        answered = first[way] + rounds * requests
        events, overwritten = windows[way]
        # A request is at least one descriptor that became ready.
        if not events or events + overwritten < answered:
            raise Broken(f'{name} ({way}): {answered} requests were answered and {events} events '
                         f'are in its window, {overwritten} were overwritten, so it was not '
                         f'recorded')
    if windows['plain'] != (0, 0) or windows['again'] != (0, 0):
        raise Broken(f'{name}: it was recorded where it should not have been')
    return found, agent, windows


def interval(values):
    """The median and where it would lie in 95 of 100 repetitions (bootstrap)."""
    dice = random.Random(1)
    medians = sorted(statistics.median(dice.choices(values, k=len(values))) for _ in range(1000))
    return {'median': statistics.median(values), 'low': medians[25], 'high': medians[974]}


def measure_server(programs, name, cpus, args):
    generations, rounds, requests, fill = \
        (1, 3, 4000, 20000) if args.quick else (3, 16, 15000, 700000)
    bursts, agents, full = [], [], []
    for g in range(generations):
        say(f'  {name}, {g + 1} of {generations}')
        found, agent, windows = generation(programs, name, cpus, rounds, requests, fill)
        bursts += found
        agents.append(agent)
        full.append(windows['default'][1] > 0)
    result = {'bursts': len(bursts), 'requests': requests, 'box_full': all(full), 'ways': {}}
    for way in WAYS:
        result['ways'][way] = {
            key: statistics.median(b[way][key] for b in bursts) for key in ('cpu', 'p50', 'p99',
                                                                            'rate')}
        for key in ('cpu', 'p99'):
            result['ways'][way][key + '_ratio'] = interval(
                [b[way][key] / b['plain'][key] for b in bursts])
        if way in agents[0]:
            result['ways'][way]['agent'] = statistics.median(a[way] for a in agents)
    return result


# Results --------------------------------------------------------------------------------


def goals(servers):
    """What is wanted, each with what was measured. A change of the p99 can be measured when
    its range lies above that of the same server measured against itself."""
    found = []
    for name, server in servers.items():
        cpu = server['ways']['default']['cpu_ratio']
        found.append({'name': f'{name}: CPU per request, default, times plain',
                      'measured': cpu['median'], 'wanted': WANTED_CPU,
                      'met': cpu['median'] <= WANTED_CPU})
        p99 = server['ways']['default']['p99_ratio']
        most = max(1, server['ways']['again']['p99_ratio']['high'])
        found.append({'name': f'{name}: p99, default, least that it grew by, times plain',
                      'measured': p99['low'], 'wanted': most, 'met': p99['low'] <= most})
    return found


def text(results):
    m = results['machine']
    head = (f'{m["cpu"]}, {m["cpus"]} CPUs{", virtual machine" if m["virtual"] else ""}, Linux '
            f'{m["kernel"]}; commit {m["commit"]}; {results["date"]}; load before '
            f'{m["load_before"]:.1f}')
    if results['quick']:
        head += '\n--quick: rough figures'
    parts = [[head]]
    for key, unit in (('cpu', 'CPU per request, us'), ('p99', 'p99 latency, us')):
        rows = [[unit, 'plain', 'plain again', '(noise)', 'default', '', 'everything on', '']]
        for name, server in results['servers'].items():
            row = [name, f'{server["ways"]["plain"][key]:.2f}']
            for way in WAYS[1:]:
                r = server['ways'][way][key + '_ratio']
                row += [f'x {r["median"]:.3f}', f'{r["low"]:.3f}..{r["high"]:.3f}']
            rows.append(row)
        parts.append(columns(rows))
    rows = [['', 'requests/s', 'bursts', 'box', 'tacho itself, us', 'everything on']]
    for name, server in results['servers'].items():
        rows.append([name, f'{server["ways"]["plain"]["rate"]:,.0f}', str(server['bursts']),
                     'full' if server['box_full'] else 'filling',
                     *(f'{server["ways"][way]["agent"]:.3f}' for way in ('default', 'all'))])
    parts.append(columns(rows))
    rows = [['goal', 'measured', 'wanted', '']]
    rows += [[g['name'], f'{g["measured"]:.3f}', f'<= {g["wanted"]:.3f}',
              'met' if g['met'] else 'MISSED'] for g in results['goals']]
    missed = [g['name'] for g in results['goals'] if not g['met']]
    parts.append(columns(rows) + [f'  {len(missed)} of {len(results["goals"])} goals missed'
                                  + (': ' + '; '.join(missed) if missed else '')])
    return '\n\n'.join('\n'.join(part) for part in parts) + '\n'


# Main -----------------------------------------------------------------------------------


def say(line):
    print(line, flush=True)


def arguments():
    parser = argparse.ArgumentParser(description='Measures what tacho costs servers.')
    parser.add_argument('--quick', action='store_true', help='few repetitions, rough figures')
    parser.add_argument('--only', default=','.join(SERVERS), help='servers, such as redis,nginx')
    parser.add_argument('--output', type=pathlib.Path, default=BUILD / 'bench' / 'daemons.json')
    args = parser.parse_args()
    args.only = args.only.split(',')
    for name in args.only:
        if name not in SERVERS:
            parser.error(f'there is no server "{name}"; there are: {", ".join(SERVERS)}')
    return args


def ready(names):
    os.environ['PATH'] += ':/usr/sbin'
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise Broken('server and client need a CPU each, and there is only one')
    needed = [TACHO, program('daemons_client')]
    for name in names:
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
               'connections': CONNECTIONS, 'servers': {},
               'date': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}
    try:
        cpus = ready(args.only)
        say('measuring servers:')
        with Programs(4 << 20 if args.quick else 32 << 20) as programs:
            for name in args.only:
                results['servers'][name] = measure_server(programs, name, cpus, args)
    except Broken as error:
        print(f'bench: {error}', file=sys.stderr)
        return 1
    results['goals'] = goals(results['servers'])
    results['seconds'] = time.monotonic() - begin
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(json.dumps(results, indent=1, sort_keys=True) + '\n')
    say('')
    say(text(results))
    say(f'written: {args.output} ({results["seconds"]:.0f} s)')
    return 0


if __name__ == '__main__':
    sys.exit(main())
