"""How a draw is run, and the truth about it: what the server wrote of itself, what its client saw
and what the kernel counted."""
import contextlib
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..'), os.path.join(HERE, '..', 'cases')]

os.environ.setdefault('TACHO_BUILD', os.path.abspath(os.path.join(HERE, '..', '..', 'build')))

import libcases  # noqa: E402
from libcases import Failed, Place, Quota, Unavailable  # noqa: E402
from libdraw import AT_END  # noqa: E402
from libwait import until  # noqa: E402

Place.PARTS += ('tests/truth/truth-*',)
HANGS_FOR = 1.6  # seconds that a server is left in what it does not come back from
BASE_NS = 300000  # beside its work, of a request that waits for nothing; where it is not measured
JITTER_NS = 1000000  # less than that is no waiting
MS = 1000000


class Group(Quota):
    """A cgroup without a quota, whose weight makes all others on the machine unimportant."""

    def __init__(self):
        super().__init__(0)

    def write(self, name, value):
        if name in ('cpu.cfs_quota_us', 'cpu.max', 'cpu.cfs_period_us'):
            return
        super().write(name, value)


class Truth:
    """What happened. Times in ns."""

    def __init__(self, draw):
        self.draw = draw
        self.occurrences = []  # (begin, end, function)
        self.cpu = []  # of these, CPU time
        self.requests = []  # (due, sent or None, answered or None)
        self.begin = self.end = 0
        self.longest_healthy = 0
        self.served = 0
        self.threads = self.runnable = self.ran = 0  # of all threads that serve
        self.throttled = 0
        self.late = 0  # that the client ran later than it should
        self.steal = 0  # of the virtual machine, share of the window

    def read_server(self, path):
        with open(path, encoding='ascii') as f:
            for line in f:
                e = json.loads(line)
                if 'function' in e:
                    self.occurrences.append((e['begin'], e['end'], e['function']))
                    self.cpu.append(e.get('ran', 0))
                elif 'thread' in e:
                    self.threads += 1
                    self.runnable += e['runnable']
                    self.ran += e['ran']
                else:
                    self.begin, self.end, self.pid = e['from'], e['to'], e['pid']
                    self.longest_healthy, self.served = e['healthy'], e['requests']
                    self.throttled = e['throttled']

    def read_client(self, path):
        with open(path, 'rb') as f:
            self.requests = [(due, sent or None, answered or None)
                             for due, sent, answered in struct.iter_unpack('=QQQ', f.read())]

        with open(path + '.late', encoding='ascii') as f:
            self.late = int(f.read())

    def read_stops(self, path):
        with open(path, 'rb') as f:
            self.occurrences = [(a, b, '') for a, b in struct.iter_unpack('=QQ', f.read())]

    @property
    def window(self):
        return self.end - self.begin

    def durations(self):
        return [end - begin for begin, end, _ in self.occurrences]

    def kept(self):
        """For how long each kept its thread: code that the kernel did not run kept nothing then, and
        a stop that met no request nobody at all."""
        if self.draw.fault.name == 'cpu' and all(self.cpu):
            return self.cpu
        if self.draw.fault.name == 'stop':
            return [end - begin for begin, end, _ in self.occurrences
                    if any(sent < end and sent + took > begin + MS for sent, took in self.sent())]
        return self.durations()

    def sent(self):
        """(sent, how long until it was answered) of requests that the server has seen."""
        return [(sent, (answered or self.end) - sent) for _, sent, answered in self.requests
                if sent and sent < self.end]

    def apart(self):
        """Of these, those that met no fault, nor what it left behind."""
        windows = sorted((begin, end + 2 * (end - begin) + 20 * MS)
                         for begin, end, _ in self.occurrences if end > begin)
        found, at, until_ns = [], 0, 0
        for sent, took in sorted(self.sent()):
            while at < len(windows) and windows[at][0] <= sent + took:
                until_ns = max(until_ns, windows[at][1])
                at += 1
            if sent > until_ns:
                found.append((sent, took))
        return found

    def waited(self, requests=None):
        """What requests, or all of them, took beyond those that waited for nothing."""
        healthy = sorted(took for _, took in self.apart())
        base = healthy[len(healthy) // 2] if len(healthy) > 20 and self.draw.fault.sized_by_time \
            else BASE_NS + 1500 * self.draw.work_us
        return sum(took - base for _, took in (self.sent() if requests is None else requests)
                   if took > base + JITTER_NS)

    def waited_for_it(self):
        """The same of those that met a fault, or what it had left, which takes no longer than it did;
        the others waited for something else."""
        return self.waited([(sent, took) for sent, took in self.sent()
                            if any(sent < end + (end - begin) and sent + took > begin
                                   for begin, end, _ in self.occurrences)])

    def percentile(self, share):
        took = sorted((answered or self.end) - due for due, _, answered in self.requests)
        return took[min(int(share * len(took)), len(took) - 1)] if took else 0

    def unexplained(self):
        """What requests waited that met no fault."""
        return sum(took for _, took in self.apart() if took > 10 * MS)


def steal_ticks():
    with open('/proc/stat', encoding='ascii') as f:
        return int(f.readline().split()[8])


class Run:
    """One recording of a draw, or what was kept of one. A context: ends all that it started."""

    def __init__(self, draw, situation, group, folder=None):
        self.draw = draw
        self.situation = situation
        self.group = group
        self.folder = folder
        self.started = []
        self.truth = Truth(draw)

    def __enter__(self):
        if not self.folder:
            self.folder = tempfile.mkdtemp(prefix='draw-', dir=self.situation.out)
            os.chmod(self.folder, 0o777)
        return self

    def __exit__(self, *_):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, argv, enter, **more):
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   preexec_fn=enter, **more)
        self.started.append(process)
        return process

    def client(self, *arguments):
        program = os.path.join(self.situation.place.root, 'tests/truth/truth-client')
        return self.start([program, *map(str, arguments)], self.enter, stderr=subprocess.DEVNULL)

    def enter(self):
        if self.group:
            self.group.enter()

    def serve(self, enter, more):
        argv = [self.draw.path(self.situation.place.root), *self.draw.options(), *more,
                '--truth', self.path('truth'), '--ready', self.path('ready')]
        env = self.situation.environment(UV_THREADPOOL_SIZE=str(self.draw.threads))
        if not self.draw.alone:
            argv = self.situation.command(self.path('trace.tacho'), argv)
        with open(self.path('stderr'), 'wb') as err:
            server = self.start(argv, enter, stderr=err, env=env, cwd=self.folder)
        if not until(lambda: os.path.exists(self.path('ready')) or server.poll() is not None, 30) \
                or not os.path.exists(self.path('ready')):
            with open(self.path('stderr'), encoding='utf-8', errors='replace') as f:
                raise Failed(f'the server did not start: {f.read()[-300:]}')
        with open(self.path('ready'), encoding='ascii') as f:
            port, pid = map(int, f.read().split())
        return server, port, pid

    def run(self):
        d = self.draw
        for _ in range(d.neighbours):
            self.client('burn', d.neighbour_cpu, 30)
        with contextlib.ExitStack() as stack:
            enter, more = self.enter, []
            if d.quota:
                quota = stack.enter_context(Quota(d.quota))
                enter = quota.enter
                more = ['--cpu-stat', os.path.join(quota.path, 'cpu.stat')]
            before = steal_ticks()
            server, port, pid = self.serve(enter, more)
            ends = d.fault.name in AT_END
            clients = [self.client('load', port, self.path('client'),
                                   d.seconds + (0.6 if ends else -0.25), d.rate, d.connections,
                                   d.seed % 2**32, int(d.fault.name == 'flood'))]
            if d.fault.name == 'stop':
                clients.append(self.client('stop', pid, self.path('stops'), d.seconds - 0.3,
                                           d.size_ms, d.period_ms))
            if ends:
                if not until(lambda: os.path.exists(self.path('truth')), 30):
                    raise Failed('the fault at the end did not come')
                time.sleep(HANGS_FOR)
                os.kill(pid, signal.SIGKILL)
            self.wait(server, *clients)
            if d.alone:
                self.recover(pid)
            self.truth.steal = (steal_ticks() - before) / os.sysconf('SC_CLK_TCK') / d.seconds
        with open(self.path('steal'), 'w', encoding='ascii') as f:
            f.write(str(self.truth.steal))
        with open(self.path('draw'), 'w', encoding='ascii') as f:
            f.write(' '.join(d.options()))
        self.read()

    def recover(self, pid):
        """The trace of a server that recorded itself, from the box that it left."""
        boxes = [os.path.join(self.situation.boxes, name)
                 for name in os.listdir(self.situation.boxes) if name.startswith(f'{pid}-')]
        if not boxes:
            raise Failed('it left no box')
        done = subprocess.run([self.situation.place.tacho, 'recover', *boxes, '-o', self.folder],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env=self.situation.environment())
        traces = [name for name in os.listdir(self.folder) if name.endswith('.tacho')]
        if done.returncode or len(traces) != 1:
            raise Failed(f'recover: {traces}, {done.stderr.strip()[-300:]}')
        os.rename(self.path(traces[0]), self.path('trace.tacho'))

    def wait(self, *processes):
        for process in processes:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                raise Failed(f'{process.args[0]} did not end') from None

    def read(self):
        for name in ('truth', 'client', 'draw', 'trace.tacho'):
            if not os.path.exists(self.path(name)):
                with open(self.path('stderr'), encoding='utf-8', errors='replace') as f:
                    raise Failed(f'there is no {name}: {f.read()[-300:]}')
        with open(self.path('draw'), encoding='ascii') as f:
            if f.read() != ' '.join(self.draw.options()):
                raise Failed('it was drawn by another version of libdraw.py')
        self.truth.read_server(self.path('truth'))
        self.truth.read_client(self.path('client'))
        if self.draw.fault.name == 'stop':
            self.truth.read_stops(self.path('stops'))
        with open(self.path('steal'), encoding='ascii') as f:
            self.truth.steal = float(f.read())

    def report(self):
        return libcases.report(self.situation.place, self.path('trace.tacho'), '--all')


@contextlib.contextmanager
def group_or_none():
    try:
        with Group() as group:
            yield group
    except Unavailable:
        yield None
