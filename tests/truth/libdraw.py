"""What is drawn: a family of programs, in it a shape of server and a fault, and how large, how often, under
which load and beside which neighbours. All of it follows from one seed."""
import math
import os
import random

SECONDS = 2.0
# Where one thread serves what comes, and where several serve the same queue.
SINGLE = ('epoll', 'poll', 'uv', 'event', 'tasks1', 'pool')
SEVERAL = ('two-loops', 'shared', 'leader', 'tasks2')
LOOPS = SINGLE + SEVERAL
ALL = LOOPS + ('connections',)
CONSUMERS = ('single-epoll', 'single-poll', 'single-uv', 'single-event', 'single-read')
WORKERS = ('workers',)
PREFORK = ('prefork-epoll', 'prefork-poll')
PROCESSES = PREFORK + ('many-loops',)
GENERIC = ('generic',)
PROGRAMS = {'uv': 'uv', 'event': 'event', 'tasks1': 'tasks', 'tasks2': 'tasks', 'single-uv': 'uv',
            'single-event': 'event', 'single-epoll': 'single', 'single-poll': 'single', 'single-read': 'single',
            'workers': 'workers', 'prefork-epoll': 'prefork', 'prefork-poll': 'prefork'}  # else: shapes
QUEUES = {'workers': ('condition', 'futex', 'semaphore', 'pipe', 'eventfd', 'socket'),
          'single-epoll': ('tcp', 'pipe', 'event'), 'single-poll': ('tcp', 'pipe', 'event'),
          'single-read': ('tcp', 'pipe', 'event'), 'tasks1': ('thread', 'task'), 'tasks2': ('thread', 'task')}
SUPERVISORS = ('none', 'sleep', 'condition', 'signals', 'select', 'epoll')
SUPERVISED = WORKERS + PREFORK + ('shared', 'generic', 'single-read')
PIPELINE = 64  # requests that a consumer's only client may have under way


class Fault:
    def __init__(self, name, kind, shapes, rules, places, weight=2, size=(3, 120), sized=True,
                 needs_samples=False, anywhere=False, contended=0.4):
        self.name = name
        self.kind = kind  # the class that it is counted in
        self.shapes = shapes
        self.rules = rules  # those that are right
        self.places = places  # functions that are right; empty: it has no place in the code
        self.weight = weight
        self.size = size  # ms
        self.sized = sized  # the time it takes is what it costs
        self.sized_by_time = sized and name not in ('neighbours', 'quota')
        self.needs_samples = needs_samples  # without which its place can not be known
        self.anywhere = anywhere  # the place may be any of those that the finding names
        self.contended = contended  # how often it is drawn beside neighbours on its CPU


CALL = ('blocking-call',)
RHYTHM = ('rhythm-stopped', 'rhythm-stops', 'stopped-rhythm', 'stuck-task')
FAULTS = {f.name: f for f in (
    Fault('healthy', 'healthy', ALL, (), (), 12, sized=False),
    Fault('healthy-locks', 'healthy', ALL, (), (), 1, sized=False),
    Fault('healthy-timers', 'healthy', ('uv', 'event'), (), (), 1, (0.005, 0.05), sized=False),
    Fault('healthy-rhythm', 'healthy', ('tasks1', 'tasks2', 'uv', 'event'), (), (), 1, sized=False),
    Fault('healthy-ends', 'healthy', ('tasks1', 'tasks2'), (), (), 1, sized=False),
    Fault('sleep', 'call', LOOPS, CALL, ('fault_sleep',), 3),
    Fault('pipe', 'call', LOOPS, CALL, ('fault_pipe',)),
    Fault('poll', 'call', LOOPS, CALL, ('fault_poll',)),
    Fault('write', 'call', LOOPS, CALL, ('fault_write',)),
    Fault('fsync', 'call', LOOPS, CALL, ('fault_fsync',), 1),
    Fault('flock', 'call', LOOPS, CALL, ('fault_flock',)),
    Fault('fcntl', 'call', LOOPS, CALL, ('fault_fcntl', 'record_lock')),
    Fault('child', 'child', LOOPS, CALL, ('fault_child',)),
    Fault('condition', 'condition', LOOPS, CALL, ('fault_condition',)),
    Fault('cpu', 'cpu', LOOPS, ('long-callback',), ('fault_cpu',), 5, needs_samples=True),
    # Two faults, and both must be named.
    Fault('mixed', 'mixed', SINGLE, CALL + ('long-callback',), ('fault_sleep', 'fault_cpu'), 3, (30, 300),
          needs_samples=True, contended=0.7),
    Fault('lock-sleep', 'lock', ALL, ('lock-contention',), ('keeps_lock_asleep',), 3),
    Fault('lock-cpu', 'lock', ALL, ('lock-contention',), ('keeps_lock_computing',), 3),
    Fault('handover-sleep', 'hand-over', ALL, ('lock-contention',), ('keeps_lock_asleep',), 3, (10, 120)),
    Fault('handover-cpu', 'hand-over', ALL, ('lock-contention',), ('keeps_lock_computing',), 2, (10, 120)),
    # The holder serves requests itself: that it is kept is true as well.
    Fault('own-sleep', 'hand-over', SEVERAL, ('lock-contention',) + CALL, ('holds_lock_asleep',), 2, (20, 120),
          sized=False),
    Fault('own-cpu', 'hand-over', SEVERAL, ('lock-contention', 'long-callback'), ('holds_lock_computing',), 1,
          (20, 120), sized=False, needs_samples=True),
    Fault('stop', 'stopped', ALL, ('process-pause',), (), 3, (20, 250)),
    Fault('neighbours', 'neighbours', ALL, ('kernel-scheduling-delay',), (), 5, contended=0),
    Fault('quota', 'quota', ALL, ('cpu-throttled',), (), 2, contended=0),
    Fault('pool', 'pool', ('uv', 'pool'), ('pool-exhausted',), ('fault_pool_sleep',), 2, (5, 60),
          sized=False),
    Fault('flood', 'overload', ('epoll', 'poll', 'uv', 'event', 'two-loops', 'generic'), ('fd-flood',),
          ('fault_flood',), 2, (0.05, 0.5), False, True),
    Fault('flood-light', 'overload', GENERIC, ('fd-flood', 'loop-saturated'), ('fault_flood_read',), 1,
          (0.002, 0.03), False, True),
    # The shortest take less time than it takes to note them, in who calls it.
    Fault('unread', 'overload', ('generic', 'poll', 'uv', 'event'), ('fd-flood', 'futile-wakeups', 'loop-saturated'),
          ('fault_unread', 'unread_job'), 2, (0.0002, 0.2), False, True),
    Fault('timers', 'overload', ('uv', 'event'), ('timer-storm', 'loop-saturated'),
          ('fault_timer',), 1, (0.01, 0.08), False, True),
    # They leave no time for anything else: what fills the loop is the fault.
    Fault('timers-full', 'overload', ('uv', 'event'), ('loop-saturated',), ('fault_timer',), 1, (0.3, 1),
          False, True),
    Fault('saturate', 'overload', ('epoll', 'poll', 'uv', 'event', 'tasks1'), ('loop-saturated',),
          ('fault_saturate',), 2, (0.3, 5), False, True),
    Fault('fd-leak', 'leak', ('epoll', 'tasks1'), ('handle-leak',), ('fault_fd_leak',), 1,
          sized=False),
    Fault('timer-leak', 'leak', ('uv', 'event'), ('handle-leak',), ('fault_timer_leak',), 1,
          sized=False),
    Fault('lost-wake', 'lost wake', ('tasks1', 'tasks2'), ('stuck-task',), ('fault_lost_wake',), 1,
          sized=False),
    Fault('rhythm', 'rhythm', ('tasks1', 'tasks2'), RHYTHM, ('fault_stops_waking', 'metronome', 'ticker'), 3,
          sized=False),
    Fault('timer-stops', 'rhythm', ('uv', 'event'), RHYTHM, ('fault_forgets_timer', 'on_rhythm'), 1, sized=False),
    Fault('feed-stops', 'rhythm', ('epoll', 'uv', 'event', 'generic'), RHYTHM, (), 1, sized=False),
    Fault('hang', 'end', LOOPS, ('hang',), ('fault_hang',), 1, sized=False),
    Fault('spin', 'end', LOOPS, ('never-yields',), ('fault_spin',), 1, sized=False,
          needs_samples=True),
    Fault('deadlock', 'end', LOOPS, ('deadlock',), ('fault_deadlock', 'other_side'), 1,
          sized=False),
    # Who waits hangs because of who holds the lock, and that one reads.
    Fault('hang-lock', 'held', LOOPS, ('hang', 'deadlock'), ('fault_reads_holding',), 1, sized=False,
          anywhere=True),
)}
AT_END = ('hang', 'spin', 'deadlock', 'hang-lock')
IN_REQUEST = ('sleep', 'pipe', 'poll', 'write', 'fsync', 'flock', 'fcntl', 'child', 'condition', 'cpu', 'lock-sleep',
              'lock-cpu')


class Family:
    """Programs of one make. `shapes`: instead of those that a fault has by itself."""

    def __init__(self, name, weight, faults, shapes=None, grouped=False):
        self.name = name
        self.weight = weight
        self.faults = [FAULTS[f] for f in faults]
        self.shapes = shapes
        self.grouped = grouped  # one cause in all of its processes or threads is one finding


FAMILIES = {f.name: f for f in (
    Family('server', 6, FAULTS),
    Family('single', 1, IN_REQUEST + ('healthy', 'healthy-locks', 'mixed', 'saturate', 'hang', 'spin', 'deadlock',
                                      'hang-lock', 'handover-sleep'), CONSUMERS),
    Family('workers', 2, IN_REQUEST + ('healthy', 'healthy-locks', 'handover-sleep', 'own-sleep', 'own-cpu'), WORKERS),
    Family('processes', 1, ('sleep', 'pipe', 'poll', 'flock', 'fcntl', 'condition', 'cpu', 'lock-sleep', 'lock-cpu',
                            'healthy', 'healthy-locks'), PROCESSES, grouped=True),
)}
SHAPES = ALL + GENERIC + CONSUMERS + WORKERS + PROCESSES
# The rows of all tables.
CLASSES = list(dict.fromkeys(f.kind for f in FAULTS.values())) + [f for f in FAMILIES if f != 'server']
COMPUTES = ('cpu', 'lock-cpu', 'handover-cpu', 'own-cpu')
# Of these the report is known to be wrong in part: draws that have all of these names, of faults, classes,
# families, shapes, and `contended`. The suite does not demand them, and says how many are right.
KNOWN_WRONG = ({'single-read'}, {'workers'}, {'processes'}, {'held'}, {'hand-over'}, {'tokio', 'contended'})


def log_uniform(rng, low, high):
    return math.exp(rng.uniform(math.log(low), math.log(high)))


class Draw:
    """One server and its fault."""

    maker = 'servers'
    visible = True  # in what is recorded
    alone = False  # it records itself, without tacho run
    mode = None

    def __init__(self, seed):
        self.seed = seed
        rng = random.Random(seed)
        self.family = rng.choices(list(FAMILIES.values()), [f.weight for f in FAMILIES.values()])[0]
        self.fault = rng.choices(self.family.faults, [f.weight for f in self.family.faults])[0]
        self.shape = rng.choice(self.family.shapes or self.fault.shapes)
        self.draw_threads(rng)
        self.work_us = rng.randint(20, 150)
        # Some have little to do.
        self.rate = log_uniform(rng, 8, 60) if rng.random() < 0.15 else \
            log_uniform(rng, 100, min(1500, 0.3e6 / self.work_us))
        self.size_ms = log_uniform(rng, *self.fault.size)
        duty = log_uniform(rng, 0.03, 0.5)
        self.period_ms = min(max(self.size_ms / duty, 1.5 * self.size_ms), 500)
        if self.fault.name in COMPUTES and self.shape in PROCESSES:
            self.period_ms = max(self.period_ms, 1.25 * self.size_ms * self.threads)  # all of them compute
        self.inlined = rng.random() < 0.5
        self.tail = rng.random() < 0.5
        self.seconds = SECONDS
        self.queue = rng.choice(QUEUES.get(self.shape, ('none',)))
        self.front = rng.choice(('loop', 'threads'))
        self.supervisor = rng.choice(SUPERVISORS) if self.shape in SUPERVISED else 'none'
        self.stop_ms = 0
        self.neighbours = 0
        self.neighbour_cpu = -1  # any
        self.cpu = -1
        self.quota = None
        self.special(rng)
        self.contended = rng.random() < self.fault.contended  # neighbours on the only CPU that it has
        contend(self, rng)

    def draw_threads(self, rng):
        several = self.fault.name.startswith('own')
        self.threads = {'tasks1': 1, 'tasks2': 2, 'two-loops': 2, 'shared': rng.randint(2, 4),
                        'leader': rng.randint(2, 4), 'pool': rng.randint(2, 4), 'uv': rng.randint(1, 4),
                        'workers': rng.randint(2 if several else 1, 6), 'many-loops': rng.randint(2, 8),
                        'prefork-epoll': rng.randint(2, 8), 'prefork-poll': rng.randint(2, 8)}.get(self.shape, 1)
        self.connections = 24 if self.shape.startswith('tasks') else rng.randint(4, 24)
        self.many = rng.randint(4, 24)  # tasks that have a rhythm
        if self.shape in PROCESSES:
            self.many = rng.randint(2, 4)  # connections of each
            self.connections = self.many * self.threads
        elif self.shape in CONSUMERS:
            self.connections = 1

    def special(self, rng):
        """What some faults need beside or instead of size and period."""
        name = self.fault.name
        own = rng.uniform(0.15, 0.9)
        if name == 'healthy':
            self.neighbours = rng.randint(0, 1)
            self.rate = min(log_uniform(rng, 0.02, 0.6) * 1e6 / self.work_us, 4000)
        elif name == 'healthy-locks':
            self.period_ms = rng.uniform(1, 10)
        elif name == 'neighbours':
            self.cpu = self.neighbour_cpu = max(os.sched_getaffinity(0))
            self.neighbours = rng.randint(1, 3)
            self.load(rng, own)
        elif name == 'quota':
            self.quota = rng.uniform(0.1, 0.3)
            self.load(rng, self.quota * rng.uniform(1.3, 3))
        elif name == 'saturate':
            self.rate = rng.uniform(1.2, 2) * 1000 / self.size_ms
        elif name == 'pool':
            self.rate = min(self.threads * 1000 / self.size_ms * rng.uniform(1.1, 2), 1500)
            self.connections = 24
        elif name in ('fd-leak', 'timer-leak'):
            self.rate = max(self.rate, 200)
        elif name == 'lost-wake':
            self.rate = min(max(self.rate, 100), 300)  # its backend takes more than a millisecond for each
        elif name == 'mixed':
            self.seconds = 4.0
            self.period_ms = self.size_ms * rng.uniform(1.5, 2.5)
            self.rate = log_uniform(rng, 8, 600)
        elif self.fault.kind == 'rhythm' or name in ('healthy-rhythm', 'healthy-ends'):
            self.seconds = 3.0
            self.period_ms = float(rng.randint(5, 40))
            self.stop_ms = rng.uniform(700, 1500)
        elif name in AT_END:
            self.seconds = 1.0
        elif name in ('flock', 'fcntl') and rng.random() < 0.3:
            # Seldom, and a few percent of the window in all.
            self.seconds = 4.0
            self.size_ms = rng.uniform(15, 50)
            self.period_ms = rng.uniform(400, 700)
        elif self.fault.kind in ('call', 'child', 'condition', 'cpu') and rng.random() < 0.2:
            # Few and long, in a longer window.
            self.seconds = 4.0
            self.size_ms = rng.uniform(120, 320)
            self.period_ms = self.size_ms * rng.uniform(2, 4) * (self.threads if name == 'cpu' else 1)

    def load(self, rng, share):
        self.work_us = rng.randint(200, 3000)
        self.rate = share * 1e6 / self.work_us

    @property
    def kind(self):
        """The row that it is counted in."""
        healthy = self.fault.kind == 'healthy'
        return self.fault.kind if healthy or self.family.name == 'server' else self.family.name

    def names(self):
        """All that it can be asked for by."""
        return {self.fault.name, self.fault.kind, self.kind, self.family.name, self.shape,
                'contended' if self.contended else 'alone'}

    def wanted(self, only):
        return wanted(only, self.names(), (tuple(FAMILIES), [s for s in SHAPES if s not in FAMILIES],
                                           ('contended', 'alone')))

    @property
    def known_wrong(self):
        return known_wrong(self.names())

    @property
    def several(self):
        """Whether others go on while one of its threads is kept."""
        return self.shape in SEVERAL + PROCESSES or (self.shape in WORKERS and self.threads > 1)

    @property
    def loops(self):
        """That have connections of their own: what one of them does keeps these, and no others."""
        return self.threads if self.shape in PROCESSES + ('two-loops',) else 1

    @property
    def processes(self):
        """That serve."""
        return self.threads if self.shape in PREFORK else 1

    @property
    def program(self):
        return PROGRAMS.get(self.shape, 'shapes') + ('-inlined' if self.inlined else '')

    def path(self, root):
        """Of the program, in a folder of builds."""
        return os.path.join(root, 'tests/truth/truth-' + self.program)

    @property
    def depth(self):
        """Requests that a connection may have under way."""
        return PIPELINE if self.shape in CONSUMERS else 1

    @property
    def extra(self):
        """What the client does beside its requests."""
        if self.fault.name == 'feed-stops':
            return f'feed:{self.stop_ms:.0f}'
        return 'flood' if self.fault.name in ('flood', 'flood-light') else 'none'

    def options(self):
        return ['--shape', self.shape, '--fault', self.fault.name,
                '--size-ms', f'{self.size_ms:.4f}', '--period-ms', f'{self.period_ms:.3f}',
                '--work-us', str(self.work_us), '--threads', str(self.threads), '--many', str(self.many),
                '--queue', self.queue, '--front', self.front, '--supervisor', self.supervisor,
                '--stop-ms', f'{self.stop_ms:.0f}', '--cpu', str(self.cpu), '--tail', str(int(self.tail)),
                '--seconds', str(self.seconds), '--seed', str(self.seed)]

    def text(self):
        more = [f'{self.threads} {"processes" if self.processes > 1 else "threads"}'] if self.threads > 1 else []
        more += [self.queue] if self.queue != 'none' else []
        more += [f'front {self.front}'] if self.shape in WORKERS else []
        more += [f'supervisor {self.supervisor}'] if self.supervisor != 'none' else []
        more += [f'{self.neighbours} neighbours{" on its CPU" if self.cpu >= 0 else ""}'] if self.neighbours else []
        more += [f'quota {self.quota:.2f}'] if self.quota else []
        more += ['inlined'] if self.inlined else []
        more += ['tail'] if self.tail else []
        size = f'{self.size_ms:.3g} ms every {self.period_ms:.0f} ms, ' if self.fault.sized_by_time else ''
        size = f'stops after {self.stop_ms:.0f} ms, ' if self.fault.kind == 'rhythm' else size
        return f'{self.shape} {self.fault.name}: {size}{self.rate:.0f}/s of {self.work_us} us' + \
            ''.join(', ' + m for m in more)

    def json(self):
        """All that was drawn: what is stored can be judged when others are drawn of the same seed."""
        return dict(vars(self), family=self.family.name, fault=self.fault.name)

    @classmethod
    def stored(cls, row):
        draw = cls.__new__(cls)
        draw.__dict__.update(row, family=FAMILIES[row['family']], fault=FAULTS[row['fault']])
        return draw


def contend(draw, rng):
    """So many busy neighbours have the CPU that all of the server has to run on. It gets as much to do as it
    can do in what they leave to it."""
    neighbours = rng.choice((1, 2, 4))
    if not draw.contended:
        return
    draw.neighbours = neighbours
    draw.cpu = draw.neighbour_cpu = max(os.sched_getaffinity(0))
    draw.seconds = max(draw.seconds, 3.0) if draw.fault.name not in AT_END else 1.0
    share = 1 / (1 + neighbours)
    if draw.fault.kind in ('call', 'child', 'condition', 'cpu', 'mixed', 'lock') and rng.random() < 0.4:
        # Few and long, and little else that runs: the process is off the CPU most of the time.
        draw.seconds = 5.0
        draw.rate = log_uniform(rng, 5, 60)
        draw.size_ms = rng.uniform(100, 320)
        draw.period_ms = draw.size_ms * rng.uniform(1.5, 3)
    if draw.fault.name not in ('saturate', 'pool'):
        draw.rate = min(draw.rate, 0.4e6 * share / draw.work_us)
    if draw.fault.name == 'lost-wake':
        draw.rate = min(draw.rate, 100)
    if draw.fault.name in COMPUTES:
        draw.size_ms = min(draw.size_ms, 100)
        draw.period_ms = max(draw.period_ms, 2 * draw.size_ms * draw.threads / share)


def known_wrong(names):
    return any(wrong <= names for wrong in KNOWN_WRONG)


def wanted(only, names, sorts):
    """Whether something with these names is asked for. `only`: names, or nothing; those of one sort stand for
    each other, those of several sorts must all fit."""
    rest = [w for w in only if not any(w in sort for sort in sorts)]
    return all(not asked or any(w in names for w in asked)
               for asked in [rest, *([w for w in only if w in sort] for sort in sorts)])
