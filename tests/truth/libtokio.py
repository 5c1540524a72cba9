"""Services of Tokio: what is drawn, and how the program is built for what records it."""
import copy
import os
import random
import re
import shutil
import subprocess

from libdraw import Family, Fault, contend, known_wrong, log_uniform, wanted

HERE = os.path.dirname(os.path.abspath(__file__))
SHAPES = ('echo', 'children', 'handed', 'periodic')
RUNTIMES = ('current', '1', '2', '2', '4')
STYLES = ('called', 'inlined', 'awaited')
# What records: `tacho run` alone on the program as it is; the crate, without and with Tokio's hooks, alone
# and under `tacho run`.
MODES = ('run', 'stable', 'unstable', 'stable+run', 'unstable+run')
CRATE = MODES[1:]
# What a crate alone knows of a poll that takes long: whose it is.
SPAWNED = ('echo', 'children', 'request', 'pooled', 'pool_worker', 'beside')


class Planted(Fault):
    def __init__(self, name, kind, rules, places, modes=MODES, **more):
        super().__init__(name, kind, SHAPES, rules, places, **more)
        self.modes = modes  # that can see it

    def of_crate(self):
        """Without `tacho run`: which call or lock a poll is in is not known, nor which function."""
        other = copy.copy(self)
        if self.kind in ('call', 'cpu', 'lock', 'end', 'overload'):
            other.rules += ('long-callback', 'hang') if self.kind != 'end' else ('hang',)
            other.places += SPAWNED if self.places else ()
            other.sized = False
        return other


CALL = ('blocking-call',)
# Of a task that keeps a lock while it computes, two things are true.
KEPT = ('lock-contention', 'long-callback')
FAULTS = {f.name: f for f in (
    Planted('healthy', 'healthy', (), (), weight=8, sized=False),
    Planted('sleep', 'call', CALL, ('fault_sleep',), weight=3),
    Planted('file', 'call', CALL, ('fault_file',)),
    Planted('recv', 'call', CALL, ('fault_recv',)),
    Planted('condvar', 'call', CALL, ('fault_condvar',)),
    Planted('child', 'call', CALL, ('fault_child',), weight=1),
    Planted('cpu', 'cpu', ('long-callback',), ('fault_cpu',), needs_samples=True),
    # Of a process that was killed, the crate alone knows what was open, and not for how long.
    Planted('spin', 'end', ('never-yields',), ('fault_spin',), ('run', 'stable+run', 'unstable+run'),
            sized=False, needs_samples=True),
    Planted('lock-task', 'lock', KEPT, ('fault_holds_lock',), sized=False, needs_samples=True),
    Planted('lock-sleep', 'lock', ('lock-contention',), ('keeps_lock_asleep',)),
    Planted('lock-cpu', 'lock', ('lock-contention',), ('keeps_lock_computing',)),
    Planted('lock-shared', 'lock', ('lock-contention',), ('keeps_writing',)),
    # A task that finds its next request there already goes on with it, for up to 128 of them.
    Planted('saturate', 'overload', ('loop-saturated', 'long-callback'), ('fault_saturate',), size=(0.3, 5),
            sized=False, needs_samples=True),
    Planted('timers', 'overload', ('timer-storm', 'loop-saturated', 'wake-storm'),
            ('fault_timers',), sized=False, needs_samples=True),
    Planted('herd', 'overload', ('wake-storm',), ('fault_herd', 'one_of_the_herd'), CRATE,
            sized=False),
    Planted('pool', 'pool', ('pool-exhausted',), ('fault_pool', 'request'), CRATE, size=(5, 60),
            sized=False),
    Planted('leak', 'leak', ('task-leak',), ('fault_leak',), CRATE, sized=False),
    Planted('channel', 'leak', ('queue-growth',), ('lines in the channel', 'fault_channel'), CRATE, sized=False),
    # The line, if that poll was looked at, else what was spawned.
    Planted('lost-wake', 'lost wake', ('stuck-task',), ('fault_lost_wake', 'request'), CRATE,
            sized=False),
    Planted('async-lock', 'async lock', ('lock-contention',), ('keeps_async_lock',), CRATE,
            sized=False),
)}
KINDS = list(dict.fromkeys(f.kind for f in FAULTS.values()))


class TokioDraw:
    """One service and its fault. Follows from the seed alone, but for what records it."""

    maker = 'tokio'
    family = Family('tokio', 0, ())
    quota = None
    loops = processes = depth = 1
    extra = 'none'

    def __init__(self, seed, mode='run'):
        self.seed = seed
        self.mode = mode
        rng = random.Random(seed)
        self.fault = rng.choices(list(FAULTS.values()), [f.weight for f in FAULTS.values()])[0]
        self.shape = rng.choice(SHAPES)
        self.runtime = rng.choice(RUNTIMES)
        self.style = rng.choice(STYLES)
        self.place = rng.choice(('request', 'beside'))
        self.connections = rng.randint(4, 24)
        self.work_us = rng.randint(20, 150)
        self.rate = log_uniform(rng, 100, min(1500, 0.3e6 / self.work_us))
        self.size_ms = log_uniform(rng, *self.fault.size)
        duty = log_uniform(rng, 0.03, 0.5)
        self.period_ms = min(max(self.size_ms / duty, 1.5 * self.size_ms), 500)
        self.seconds = 2.0
        self.many = 0
        self.threads = self.workers
        self.special(rng)
        self.neighbours = 0
        self.neighbour_cpu = self.cpu = -1
        self.contended = rng.random() < 0.3
        contend(self, rng)
        if self.alone:
            self.fault = self.fault.of_crate()

    def special(self, rng):
        """What some faults need beside or instead of size and period."""
        name = self.fault.name
        if name == 'healthy':
            self.rate = min(log_uniform(rng, 0.02, 0.6) * 1e6 / self.work_us, 3000)
        elif name == 'spin':
            self.seconds = 1.0
            self.runtime = rng.choice(('current', '1'))  # beside others, clients may see nothing
        elif name == 'saturate':
            self.runtime = rng.choice(('current', '1'))
            self.rate = rng.uniform(1.2, 2) * 1000 / self.size_ms
            self.connections = 24
        elif name == 'timers':
            self.runtime = rng.choice(('current', '1'))
            self.period_ms = rng.randint(2, 8)
            self.many = int(rng.uniform(700, 1500) * self.period_ms)
        elif name == 'herd':
            # Several workers share it, and what descriptors wake comes before it.
            self.runtime = rng.choice(('current', '1'))
            self.many = rng.randint(1000, 5000)
            self.period_ms = rng.uniform(20, 100)
        elif name == 'pool':
            self.threads = rng.randint(1, 4)
            self.rate = min(self.threads * 1000 / self.size_ms * rng.uniform(1.1, 2), 1500)
            self.connections = 24
        elif name in ('leak', 'channel'):
            self.rate = max(self.rate, 200)
        elif name == 'lost-wake':
            # The backend takes up to 2 ms for each: beyond that, what is wrong is that it is full.
            self.rate = min(max(self.rate, 200), 300)
        elif name in ('lock-task', 'lock-sleep', 'lock-cpu', 'lock-shared', 'async-lock'):
            self.place = 'beside' if rng.random() < 0.5 else 'request'
        if self.fault.name != 'pool':
            self.threads = self.workers

    @property
    def alone(self):
        return self.mode in ('stable', 'unstable')

    @property
    def workers(self):
        return 1 if self.runtime == 'current' else int(self.runtime)

    @property
    def several(self):
        return self.workers > 1

    @property
    def visible(self):
        return self.mode in self.fault.modes

    @property
    def kind(self):
        return self.fault.kind

    @property
    def known_wrong(self):
        return known_wrong(self.names())

    def names(self):
        return {self.fault.name, self.fault.kind, self.shape, 'tokio', 'contended' if self.contended else 'alone'}

    def wanted(self, only):
        return wanted(only, self.names(), (SHAPES, ('contended', 'alone'), ('tokio',)))

    def path(self, root):
        return os.path.join(root, folder(self.mode), 'release/truth-tokio')

    def options(self):
        return ['--shape', self.shape, '--fault', self.fault.name, '--style', self.style,
                '--place', self.place, '--runtime', self.runtime, '--many', str(self.many),
                '--size-ms', f'{self.size_ms:.4f}', '--period-ms', f'{self.period_ms:.3f}',
                '--work-us', str(self.work_us), '--threads', str(self.threads), '--cpu', str(self.cpu),
                '--seconds', str(self.seconds), '--seed', str(self.seed)]

    def text(self):
        size = f'{self.size_ms:.3g} ms every {self.period_ms:.0f} ms, ' if self.fault.sized else ''
        many = f', {self.many} tasks' if self.many else ''
        many += f', {self.neighbours} neighbours on its CPU' if self.neighbours else ''
        return f'{self.mode} {self.shape} {self.fault.name}: {size}{self.rate:.0f}/s of ' \
            f'{self.work_us} us, runtime {self.runtime}, {self.style}, {self.place}{many}'

    def json(self):
        return dict(vars(self), fault=self.fault.name)

    @classmethod
    def stored(cls, row):
        draw = cls.__new__(cls)
        draw.__dict__.update(row, fault=FAULTS[row['fault']])
        if draw.alone:
            draw.fault = draw.fault.of_crate()
        return draw


def folder(mode):
    return f'tests/truth/tokio-{mode.partition("+")[0]}'


def too_old(cargo):
    """Why this cargo does not build the program, or nothing."""
    with open(os.path.join(HERE, 'tokio/Cargo.toml'), encoding='utf-8') as f:
        wanted = re.search(r'rust-version = "(\d+)\.(\d+)"', f.read())
    need = f'cargo {wanted.group(1)}.{wanted.group(2)} or newer is needed, which rustup installs'
    if not cargo:
        return f'there is no cargo here; {need}'
    said = subprocess.run([cargo, '--version'], capture_output=True, text=True).stdout
    version = re.match(r'cargo (\d+)\.(\d+)', said)
    if not version or tuple(map(int, version.groups())) < tuple(map(int, wanted.groups())):
        return f'there is {said.strip()}; {need}'
    return None


def build(mode, root):
    """None, or why the program could not be built."""
    cargo = shutil.which('cargo')
    why_not = too_old(cargo)
    if why_not:
        return why_not
    feature = mode.partition('+')[0]
    flags = ['--cfg', 'tokio_unstable'] if feature == 'unstable' else []
    features = [] if mode == 'run' else ['--features', feature]
    done = subprocess.run(
        [cargo, 'build', '--release', '--quiet', '--locked', '--manifest-path',
         os.path.join(HERE, 'tokio/Cargo.toml'), '--target-dir', os.path.join(root, folder(mode)),
         *features], capture_output=True, text=True, stdin=subprocess.DEVNULL,
        env=dict(os.environ, RUSTFLAGS=' '.join(flags)))
    return f'cargo could not build it: {done.stderr.strip()[-400:]}' if done.returncode else None
