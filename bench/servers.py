"""The servers that bench/daemons.py measures: how they are started, loaded and ended."""
import collections
import os
import pathlib
import shutil
import socket
import subprocess
import time

from programs import Broken, library, program, words

CONNECTIONS = 16
EVERYTHING = ['--call-threshold', '0', '--sched', '--kernel']
PATIENCE = 30
# enum tacho_state, as the probe says it
NO_HOOKS, STATES = '0', {'recording': '2', 'paused': '3'}


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


SERVERS = {  # name: (protocol of the client, command line, processes; the last one answers)
    'memcached': ('memcached', memcached, 1),
    'redis': ('redis', redis, 1),
    'nginx': ('http', nginx, 2),
    'libuv': ('http', libuv, 1),
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
    """One server: plain, under `tacho run`, or under it with everything on. It has a CPU of its
    own; tacho may use all. The probe is in it in any case."""

    def __init__(self, programs, name, way, build, cpus):
        self.name, self.way, self.programs, self.cpus = name, way, programs, cpus
        self.protocol, command, count = SERVERS[name]
        self.folder = pathlib.Path(programs.folder())
        self.memory = pathlib.Path(programs.folder(programs.boxes))
        self.shared = self.memory / 'probe'
        self.shared.write_bytes(bytes(4096))
        self.port = free_port()
        argv = command(self.folder, self.port)
        env = {'LD_PRELOAD': str(library('daemons_probe')), 'TACHO_BOX_DIR': str(self.memory),
               'BENCH_PROBE_FILE': str(self.shared)}
        if way != 'plain':
            more = EVERYTHING if way == 'all' else []
            env.update({'TACHO_SAMPLE_HZ': '999'} if way == 'all' else {})
            argv = [build / 'src/cli/tacho', 'run', '-q', '--no-symbols', '-o', self.folder,
                    *more, '--', *argv]
        self.child = programs.start(argv, env=env, gently=True, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        count += way != 'plain'
        end = time.monotonic() + PATIENCE
        while len(family(self.child.pid)) != count or not listens(self.port):
            if self.child.poll() is not None or time.monotonic() > end:
                why = self.child.stderr.read() if self.child.poll() is not None else 'no port'
                raise Broken(f'{name} did not start: {why.strip()[-300:]}')
            time.sleep(0.01)
        self.pids = family(self.child.pid)
        self.agent = self.pids.pop(0) if way != 'plain' else None

    def pin(self):
        for pid in self.pids:
            for task in os.listdir(f'/proc/{pid}/task'):
                os.sched_setaffinity(int(task), {self.cpus[1]})

    def believe(self, kind, requests, ns, state):
        """An interval counts when recording was in it what it should have been."""
        if requests <= 0 or ns <= 0:
            raise Broken(f'{self.name} ({self.way}): requests were not answered')
        wanted = NO_HOOKS if self.way == 'plain' else STATES[kind]
        if state != wanted:
            why = 'it was not recorded' if state == NO_HOOKS else \
                f'the recorder was in state {state} and not in {wanted}'
            raise Broken(f'{self.name} ({self.way}), {kind}: {why}')

    def agent_ns(self):
        return cpu_ns(self.agent) if self.agent else 0

    def finish(self):
        self.child.stderr.close()
        self.programs.end(self.child, 0)
        for folder in (self.folder, self.memory):
            shutil.rmtree(folder, ignore_errors=True)


def switchback(programs, servers, blocks, seed):
    """Some blocks of intervals of servers that take turns. [{(way, kind): us of CPU per
    request}], and what is of all of them: {'p99': {(way, kind): us}, 'overwritten':
    {way: records}, 'answered': {(way, kind): requests}, 'rate': {way: requests per second}}."""
    where = [word for server in servers for word in (server.port, server.pids[-1], server.shared)]
    for server in servers:
        server.pin()
    out, _ = programs.output(
        [program('daemons_client'), servers[0].protocol, CONNECTIONS, blocks, seed, *where],
        preexec_fn=lambda: os.sched_setaffinity(0, {servers[0].cpus[0]}))
    found = words(out.splitlines())
    costs = [{} for _ in range(blocks)]
    answered, wall = collections.Counter(), collections.Counter()
    for row in found.get('interval', []):
        block, server, kind, requests, ns, wall_ns, state = row.split()
        server, requests, ns = servers[int(server)], int(requests), int(ns)
        server.believe(kind, requests, ns, state)
        costs[int(block) - 1][server.way, kind] = ns / requests / 1e3
        answered[server.way, kind] += requests
        wall[server.way, kind] += int(wall_ns)
    if any(len(block) != 2 * len(servers) for block in costs):
        raise Broken(f'{servers[0].name}: not all intervals were measured')
    p99 = (row.split() for row in found.get('p99_ns', []))
    overwritten = (row.split() for row in found.get('overwritten', []))
    return {'blocks': costs, 'answered': answered,
            'p99': {(servers[int(n)].way, kind): int(ns) / 1e3 for n, kind, ns in p99},
            'overwritten': {servers[int(n)].way: int(count) for n, count in overwritten},
            'rate': {key: answered[key] / wall[key] * 1e9 for key in answered}}
