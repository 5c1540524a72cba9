"""How a draw is run, and the truth about it: what the server wrote of itself, what its client saw
and what the kernel counted."""
import contextlib
import copy
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..'), os.path.join(HERE, '..', 'cases')]

os.environ.setdefault('TACHO_BUILD', os.path.abspath(os.path.join(HERE, '..', '..', 'build')))

import libcases  # noqa: E402
import libnumbers  # noqa: E402
from libcases import Failed, Place, Quota, Unavailable  # noqa: E402
from libdraw import AT_END  # noqa: E402
from libwait import until  # noqa: E402

Place.PARTS += ('tests/truth/truth-*',)
HANGS_FOR = 1.6  # seconds that a server is left in what it does not come back from
BASE_NS = 300000  # beside its work, of a request that waits for nothing; where it is not measured
JITTER_NS = 1000000  # less than that is no waiting
MS = 1000000
MANY = 5000  # occurrences that are not kept one by one


class Group(Quota):
    """A cgroup without a quota, whose weight makes all others on the machine unimportant."""

    def __init__(self):
        super().__init__(0)

    def write(self, name, value):
        if name in ('cpu.cfs_quota_us', 'cpu.max', 'cpu.cfs_period_us'):
            return
        super().write(name, value)


class Occurrence(NamedTuple):
    """Of the fault. `ran`: CPU time; `delayed`: time on a run queue; both of the thread that met it."""
    begin: int
    end: int
    function: str
    ran: int = 0
    delayed: int = 0
    pid: int = 0

    @property
    def is_code(self):
        """Its size is its CPU time."""
        return self.function == 'fault_cpu' and self.ran > 0


class Truth:
    """What happened. Times in ns."""

    def __init__(self, draw):
        self.draw = draw
        self.occurrences = []
        self.count = 0  # of them; those that follow each other closely may be one by now
        self.requests = []  # (due, sent or None, answered or None)
        self.begin = self.end = 0
        self.longest_healthy = 0
        self.served = 0
        self.threads = self.runnable = self.ran = 0  # of all threads that serve
        self.helpers_runnable = 0  # of those that these wait for
        self.all_runnable = 0  # of all threads; 0: not known
        self.throttled = 0
        self.late = 0  # that the client ran later than it should
        self.steal = 0  # of the virtual machine, share of the window
        self.disturbed = ''  # why the machine, and not the draw, made what was measured

    PLAIN = ('count', 'begin', 'end', 'longest_healthy', 'served', 'threads', 'runnable', 'ran', 'helpers_runnable',
             'all_runnable', 'throttled', 'late', 'steal', 'disturbed')

    def json(self):
        """Times are relative to the begin, which is CLOCK_MONOTONIC as in the trace."""
        def since(ns):
            return ns and ns - self.begin
        row = {name: getattr(self, name) for name in self.PLAIN}
        row['occurrences'] = [[o.begin - self.begin, o.end - self.begin, *o[2:]] for o in self.occurrences]
        row['requests'] = [[due - self.begin, since(sent), since(answered)] for due, sent, answered in self.requests]
        return row

    @classmethod
    def stored(cls, draw, row):
        truth = cls(draw)
        for name in cls.PLAIN:
            setattr(truth, name, row.get(name, 0))
        begin = truth.begin
        truth.occurrences = [Occurrence(o[0] + begin, o[1] + begin, *o[2:]) for o in row['occurrences']]
        truth.requests = [(due + begin, sent and sent + begin, answered and answered + begin)
                          for due, sent, answered in row['requests']]
        return truth

    def read_server(self, path):
        with open(path, encoding='ascii') as f:
            for line in f:
                e = json.loads(line)
                if 'function' in e:
                    self.occurrences.append(Occurrence(e['begin'], e['end'], e['function'], e.get('ran', 0),
                                                       e.get('delayed', 0), pid))
                elif e.get('helper'):
                    self.helpers_runnable += e['runnable']
                elif 'thread' in e:
                    self.threads += 1
                    self.runnable += e['runnable']
                    self.ran += e['ran']
                else:
                    pid = e['pid']
                    self.begin, self.end = self.begin or e['from'], max(self.end, e['to'])
                    self.longest_healthy = max(self.longest_healthy, e['healthy'])
                    self.served += e['requests']
                    self.throttled += e['throttled']
                    self.all_runnable += e.get('delayed', 0)

    def thin(self):
        """Thousands of occurrences without a pause are one stretch: nothing asks for each of them."""
        self.count = len(self.occurrences)
        if self.count < MANY:
            return
        merged = []
        for o in sorted(self.occurrences):
            last = merged[-1] if merged else None
            if last and o.begin - last.end < MS:
                merged[-1] = last._replace(end=max(last.end, o.end), ran=last.ran + o.ran,
                                           delayed=last.delayed + o.delayed)
            else:
                merged.append(o)
        self.occurrences = merged

    def read_client(self, path):
        with open(path, 'rb') as f:
            self.requests = [(due, sent or None, answered or None)
                             for due, sent, answered in struct.iter_unpack('=QQQ', f.read())]

        with open(path + '.late', encoding='ascii') as f:
            self.late = int(f.read())

    def read_stops(self, path):
        with open(path, 'rb') as f:
            self.occurrences = [Occurrence(a, b, '') for a, b in struct.iter_unpack('=QQ', f.read())]

    @property
    def window(self):
        return self.end - self.begin

    @property
    def delayed(self):
        """What all threads on the way of a request waited for a CPU."""
        return self.runnable + self.helpers_runnable

    def durations(self):
        return [o.end - o.begin for o in self.occurrences]

    def kept(self):
        """For how long each kept its thread: code that the kernel did not run kept nothing then, and
        a stop that met no request nobody at all."""
        if self.draw.fault.name == 'stop':
            return [o.end - o.begin for o in self.occurrences
                    if any(sent < o.end and sent + took > o.begin + MS for sent, took in self.sent())]
        return [o.ran if o.is_code else o.end - o.begin for o in self.occurrences]

    def own(self):
        """The same without what the thread that met it lacked a CPU for."""
        return [o.ran if o.is_code else max(0, o.end - o.begin - o.delayed) for o in self.occurrences]

    def of(self, function):
        """The truth about one of several faults."""
        other = copy.copy(self)
        other.occurrences = [o for o in self.occurrences if o.function == function]
        other.count = len(other.occurrences)
        return other

    def met(self):
        """What requests waited while the fault had its thread, as far as it was the fault itself."""
        sent = self.sent()
        total = 0
        for o, own in zip(self.occurrences, self.own()):
            if o.end > o.begin:
                waited = sum(max(0, min(at + took, o.end) - max(at, o.begin)) for at, took in sent)
                total += waited * own / (o.end - o.begin)
        return total

    def sent(self):
        """(sent, how long until it was answered) of requests that the server has seen."""
        return [(sent, (answered or self.end) - sent) for _, sent, answered in self.requests
                if sent and sent < self.end]

    def apart(self):
        """Of these, those that met no fault, nor what it left behind."""
        windows = sorted((o.begin, o.end + 2 * (o.end - o.begin) + 20 * MS)
                         for o in self.occurrences if o.end > o.begin)
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
                            if any(sent < o.end + (o.end - o.begin) and sent + took > o.begin
                                   for o in self.occurrences)])

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
    """One recording of a draw. A context: ends all that it started."""

    def __init__(self, draw, situation, group):
        self.draw = draw
        self.situation = situation
        self.group = group
        self.folder = None
        self.started = []
        self.server = None  # its pid
        self.truth = Truth(draw)

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix='draw-', dir=self.situation.out)
        os.chmod(self.folder, 0o777)
        return self

    def __exit__(self, *_):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()
        # It goes on when tacho run is killed.
        if self.server and name_of(self.server).startswith('truth-'):
            os.kill(self.server, signal.SIGKILL)
        shutil.rmtree(self.folder, True)

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
            port, self.server = map(int, f.read().split())
        return server, port

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
            server, port = self.serve(enter, more)
            ends = d.fault.name in AT_END
            clients = [self.client('load', port, self.path('client'),
                                   d.seconds + (0.6 if ends else -0.25), d.rate, d.connections,
                                   d.seed % 2**32, d.depth, d.extra)]
            if d.fault.name == 'stop':
                clients.append(self.client('stop', self.server, self.path('stops'), d.seconds - 0.3,
                                           d.size_ms, d.period_ms))
            if ends:
                if not until(lambda: os.path.exists(self.path('truth')), 30):
                    raise Failed('the fault at the end did not come')
                time.sleep(HANGS_FOR)
                os.kill(self.server, signal.SIGKILL)
            self.wait(server, *clients)
            if d.alone:
                self.recover()
            self.truth.steal = (steal_ticks() - before) / os.sysconf('SC_CLK_TCK') / d.seconds
        self.read()

    def recover(self):
        """The trace of a server that recorded itself, from the box that it left."""
        boxes = [os.path.join(self.situation.boxes, name)
                 for name in os.listdir(self.situation.boxes) if name.startswith(f'{self.server}-')]
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
        for name in ('truth', 'client', 'trace.tacho'):
            if not os.path.exists(self.path(name)):
                with open(self.path('stderr'), encoding='utf-8', errors='replace') as f:
                    raise Failed(f'there is no {name}: {f.read()[-300:]}')
        children = [name for name in os.listdir(self.folder) if name.startswith('truth.') and name[6:].isdigit()]
        for name in ['truth', *sorted(children)]:
            self.truth.read_server(self.path(name))
        self.truth.read_client(self.path('client'))
        if self.draw.fault.name == 'stop':
            self.truth.read_stops(self.path('stops'))
        self.truth.thin()


def name_of(pid):
    try:
        with open(f'/proc/{pid}/comm', encoding='utf-8') as f:
            return f.read()
    except OSError:
        return ''


class Recording:
    """A trace and the truth about it, in a folder: what a run left, or what was stored."""

    def __init__(self, draw, truth, situation, trace):
        self.draw = draw
        self.truth = truth
        self.situation = situation  # its name
        self.trace = trace

    def store(self, folder):
        """Into a folder of its own, of which it is the name that is returned."""
        name = '-'.join(map(str, filter(None, (self.draw.seed, self.draw.mode, self.situation))))
        to = os.path.join(folder, name)
        os.makedirs(to, exist_ok=True)
        shutil.copyfile(self.trace, os.path.join(to, 'trace.tacho'))
        with open(os.path.join(to, 'truth.json'), 'w', encoding='ascii') as f:
            json.dump(self.truth.json(), f, separators=(',', ':'))
        # The last one: a folder without it is not complete.
        with open(os.path.join(to, 'draw.json'), 'w', encoding='ascii') as f:
            json.dump(dict(maker=self.draw.maker, situation=self.situation, text=self.draw.text(),
                           draw=self.draw.json()), f, indent=1)
        return name

    @classmethod
    def stored(cls, folder, makers):
        """`makers`: classes of draws by their names."""
        with open(os.path.join(folder, 'draw.json'), encoding='ascii') as f:
            row = json.load(f)
        draw = makers[row['maker']].stored(row['draw'])
        with open(os.path.join(folder, 'truth.json'), encoding='ascii') as f:
            truth = Truth.stored(draw, json.load(f))
        return cls(draw, truth, row['situation'], os.path.join(folder, 'trace.tacho'))

    def report(self, place):
        return libcases.report(place, self.trace, '--all')

    def wrong_numbers(self, place):
        return libnumbers.wrong_numbers(place.tacho, self.trace)


@contextlib.contextmanager
def group_or_none():
    try:
        with Group() as group:
            yield group
    except Unavailable:
        yield None
