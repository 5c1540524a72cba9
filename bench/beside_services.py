"""The services that bench/beside.py measures: how each is built, started, loaded and ended."""
import collections
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

from programs import BUILD, ROOT, Broken
from servers import PATIENCE, children, cpu_ns, free_port, listens

SOURCE = ROOT / 'bench' / 'beside'
BUILT = BUILD / 'beside'
TACHO = BUILD / 'src' / 'cli' / 'tacho'
CLIENT = BUILD / 'tests' / 'servers' / 'servers-client'
CONNECTIONS = 32
MESSAGE = 16
SATURATED = 0
BOX_BYTES = 32 << 20
BUILD_PATIENCE = 3600

UNSTABLE = '--cfg tokio_unstable'
FRAMES = '-C force-frame-pointers=yes'

# How a service is recorded. features, flags: of cargo; None: the service of Go.
Way = collections.namedtuple('Way', 'features flags run environment words',
                             defaults=([], '', False, {}, []))

DIAL9 = {'DIAL9_ENABLED': 'true', 'DIAL9_TASK_TRACKING_ENABLED': 'true',
         'DIAL9_CPU_PROFILE_ENABLED': 'false', 'DIAL9_SCHEDULE_PROFILE_ENABLED': 'false'}
PROFILING = dict(DIAL9, DIAL9_CPU_PROFILE_ENABLED='true', DIAL9_SCHEDULE_PROFILE_ENABLED='true')

WAYS = {
    'bare': Way(),
    'bare again': Way(),
    'tacho run': Way(run=True),
    'tacho-tokio': Way(['tacho']),
    'tacho-tokio unstable': Way(['tacho-unstable'], UNSTABLE),
    'tacho run with tacho-tokio': Way(['tacho-unstable'], UNSTABLE, run=True),
    'dial9': Way(['dial9'], UNSTABLE, environment=DIAL9),
    'dial9 with profiling': Way(['dial9-profiling'], f'{UNSTABLE} {FRAMES}', environment=PROFILING),
    'Go': Way(None),
    'Go again': Way(None),
    'Go with FlightRecorder': Way(None, words=['record']),
}


# Building -------------------------------------------------------------------------------


def binary(way):
    features = WAYS[way].features
    return BUILT / ('go' if features is None else '-'.join(features) or 'bare')


def build_rust(programs, way):
    """Builds of one set of flags share a folder, and so what they have in common."""
    target = BUILT / ('target' + ''.join(c for c in WAYS[way].flags if c.isalpha()))
    programs.output(['cargo', 'build', '--release', '--locked', '--quiet',
                     '--manifest-path', SOURCE / 'Cargo.toml', '--target-dir', target,
                     '--features', ','.join(WAYS[way].features)],
                    limit=BUILD_PATIENCE, env={'RUSTFLAGS': WAYS[way].flags})
    fresh = binary(way).with_suffix('.new')  # another run may be using the one that is there
    shutil.copy2(target / 'release' / 'beside', fresh)
    fresh.replace(binary(way))


def build_go(programs, way):
    programs.output(['go', 'build', '-C', SOURCE / 'go', '-o', binary(way), '.'],
                    limit=BUILD_PATIENCE)


def build(programs, ways, say):
    BUILT.mkdir(parents=True, exist_ok=True)
    done = set()
    for way in ways:
        if binary(way) in done:
            continue
        done.add(binary(way))
        say(f'building {binary(way).name}')
        (build_go if WAYS[way].features is None else build_rust)(programs, way)


def toolkit(programs):
    """The folder of dial9's analysis scripts: they are in its package."""
    out, _ = programs.output(['cargo', 'metadata', '--locked', '--format-version', '1', '--features', 'dial9',
                              '--manifest-path', SOURCE / 'Cargo.toml'], limit=BUILD_PATIENCE)
    for package in json.loads(out)['packages']:
        if package['name'] == 'dial9':
            return pathlib.Path(package['manifest_path']).parent / 'skills'
    raise Broken('the package dial9 is not in bench/beside/Cargo.lock')


# Running --------------------------------------------------------------------------------


class Service:
    """One service that listens, recorded in a way or not at all."""

    def __init__(self, programs, way, fault=None, box_bytes=BOX_BYTES, flags=()):
        self.programs, self.way, self.kind, self.client = programs, way, WAYS[way], None
        self.folder = pathlib.Path(programs.folder())
        self.boxes = pathlib.Path(programs.folder(programs.boxes))
        self.trace = self.folder / 'run.tacho'
        self.port = free_port()
        argv = [binary(way), self.port, *self.kind.words, *([fault] if fault else [])]
        if self.kind.run:
            argv = [TACHO, 'run', '-q', '--memory', box_bytes, '-o', self.trace, *flags, '--', *argv]
        env = dict(self.kind.environment, TACHO_BOX_DIR=str(self.boxes),
                   TACHO_MAX_BYTES=str(box_bytes), DIAL9_TRACE_DIR=str(self.folder))
        self.child = programs.start(argv, env=env, gently=True, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.wait_for_port()
        self.pid = children(self.child.pid)[0] if self.kind.run else self.child.pid

    def wait_for_port(self):
        end = time.monotonic() + PATIENCE
        while not listens(self.port):
            if self.child.poll() is not None or time.monotonic() > end:
                why = self.child.stderr.read() if self.child.poll() is not None else 'no port'
                raise Broken(f'{self.way} did not start: {why.strip()[-300:]}')
            time.sleep(0.01)

    def request(self):
        """What the client sends, and how long an answer to it is."""
        path = self.folder / 'request'
        if self.kind.features is not None:
            path.write_bytes(bytes(MESSAGE))
            return path, MESSAGE
        path.write_text('GET /guess?number=7 HTTP/1.1\r\nHost: go\r\n\r\n')
        return path, 0

    def start_client(self, *load):
        """Of a load that ends by itself, or of those that ask() asks for."""
        path, size = self.request()
        return self.programs.start(
            [CLIENT, self.port, path, size or http_size(self.port, path), *(load or '--'),
             CONNECTIONS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def load(self, seconds, rate):
        """What the client says, and the CPU time of the service meanwhile. What tacho run needs
        outside of the service counts as well."""
        if not self.client:
            self.client = self.start_client()
        before = self.cpu_ns()
        print(seconds, rate, file=self.client.stdin, flush=True)
        line = self.client.stdout.readline()
        used = self.cpu_ns() - before
        if not line:
            why = self.client.stderr.read().strip()
            raise Broken(f'{self.way}: requests were not answered: {why}')
        found = json.loads(line)
        found['ns'] = used / found['answered']
        return found

    def end_client(self):
        if self.client:
            for pipe in (self.client.stdin, self.client.stdout, self.client.stderr):
                pipe.close()
            self.programs.end(self.client, 0)
            self.client = None

    def cpu_ns(self):
        return cpu_ns(self.pid) + (cpu_ns(self.child.pid) if self.kind.run else 0)

    def memory(self):
        """{field: bytes}: what is resident, its peak, and what of it is the box."""
        lines = pathlib.Path(f'/proc/{self.pid}/status').read_text().splitlines()
        fields = dict(line.split(':', 1) for line in lines)
        return {key: int(fields[key].split()[0]) * 1024 for key in ('VmRSS', 'VmHWM', 'RssShmem')}

    def dump(self, name='dump.tacho'):
        path = self.folder / name
        self.programs.output([TACHO, 'dump', self.pid, '-o', path],
                             env={'TACHO_BOX_DIR': str(self.boxes)})
        return path

    def stop(self):
        """As its user would. What it wrote stays."""
        self.end_client()
        os.kill(self.pid, signal.SIGTERM)
        try:
            self.child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise Broken(f'{self.way} did not end on SIGTERM') from None
        self.leave()

    def kill(self):
        """When that was, on the monotonic clock."""
        at = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        os.kill(self.pid, signal.SIGKILL)
        self.child.wait(PATIENCE)
        self.leave()
        return at

    def leave(self):
        self.child.stderr.close()
        self.programs.end(self.child, 0)

    def segments(self):
        """What dial9 wrote, in the order of the segments."""
        return sorted(self.folder.glob('*/trace.*.bin*'),
                      key=lambda path: int(path.name.split('.')[1]))

    def finish(self):
        if self.child in self.programs.live:
            self.stop()
        for folder in (self.folder, self.boxes):
            shutil.rmtree(folder, ignore_errors=True)


def http_size(port, request):
    """Of an answer. All are of one length."""
    with socket.create_connection(('127.0.0.1', port)) as s:
        s.sendall(request.read_bytes())
        s.settimeout(PATIENCE)
        got = b''
        while b'\r\n\r\n' not in got:
            got += s.recv(4096)
        head, _, body = got.partition(b'\r\n\r\n')
        length = [line for line in head.split(b'\r\n') if line.lower().startswith(b'content-length')]
        if not length:
            raise Broken('the service of Go did not say how long its answer is')
        return len(head) + 4 + int(length[0].split(b':')[1])
