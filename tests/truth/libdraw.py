"""What is drawn: a shape of server, a fault, and how large, how often and under which load. All of
it follows from one seed."""
import math
import os
import random

SECONDS = 2.0
# Where one thread serves what comes, and where several serve the same queue.
SINGLE = ('epoll', 'poll', 'uv', 'event', 'tasks1', 'pool')
SEVERAL = ('two-loops', 'shared', 'leader', 'tasks2')
LOOPS = SINGLE + SEVERAL
ALL = LOOPS + ('connections',)
PROGRAMS = {'uv': 'uv', 'event': 'event', 'tasks1': 'tasks', 'tasks2': 'tasks'}  # else: shapes


class Fault:
    def __init__(self, name, kind, shapes, rules, places, weight=2, size=(3, 120), sized=True,
                 needs_samples=False):
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


CALL = ('blocking-call',)
FAULTS = {f.name: f for f in (
    Fault('healthy', 'healthy', ALL, (), (), 12, sized=False),
    Fault('sleep', 'call', LOOPS, CALL, ('fault_sleep',), 3),
    Fault('pipe', 'call', LOOPS, CALL, ('fault_pipe',)),
    Fault('poll', 'call', LOOPS, CALL, ('fault_poll',)),
    Fault('write', 'call', LOOPS, CALL, ('fault_write',)),
    Fault('fsync', 'call', LOOPS, CALL, ('fault_fsync',), 1),
    Fault('flock', 'call', LOOPS, CALL, ('fault_flock',)),
    Fault('child', 'child', LOOPS, CALL, ('fault_child',)),
    Fault('condition', 'condition', LOOPS, CALL, ('fault_condition',)),
    Fault('cpu', 'cpu', LOOPS, ('long-callback',), ('fault_cpu',), 5, needs_samples=True),
    Fault('lock-sleep', 'lock', ALL, ('lock-contention',), ('keeps_lock_asleep',), 3),
    Fault('lock-cpu', 'lock', ALL, ('lock-contention',), ('keeps_lock_computing',), 3),
    Fault('stop', 'stopped', ALL, ('process-pause',), (), 3, (20, 250)),
    Fault('neighbours', 'neighbours', ALL, ('kernel-scheduling-delay',), (), 5),
    Fault('quota', 'quota', ALL, ('cpu-throttled',), (), 2),
    Fault('pool', 'pool', ('uv', 'pool'), ('pool-exhausted',), ('fault_pool_sleep',), 2, (5, 60),
          sized=False),
    Fault('flood', 'overload', ('epoll', 'poll', 'uv', 'event', 'two-loops'), ('fd-flood',),
          ('fault_flood',), 2, (0.05, 0.5), False, True),
    Fault('timers', 'overload', ('uv', 'event'), ('timer-storm', 'loop-saturated'),
          ('fault_timer',), 1, (0.15, 0.8), False, True),
    Fault('saturate', 'overload', ('epoll', 'poll', 'uv', 'event', 'tasks1'), ('loop-saturated',),
          ('fault_saturate',), 2, (0.3, 5), False, True),
    Fault('fd-leak', 'leak', ('epoll', 'tasks1'), ('handle-leak',), ('fault_fd_leak',), 1,
          sized=False),
    Fault('timer-leak', 'leak', ('uv', 'event'), ('handle-leak',), ('fault_timer_leak',), 1,
          sized=False),
    Fault('lost-wake', 'lost wake', ('tasks1', 'tasks2'), ('stuck-task',), ('fault_lost_wake',), 1,
          sized=False),
    Fault('hang', 'end', LOOPS, ('hang',), ('fault_hang',), 1, sized=False),
    Fault('spin', 'end', LOOPS, ('never-yields',), ('fault_spin',), 1, sized=False,
          needs_samples=True),
    Fault('deadlock', 'end', LOOPS, ('deadlock',), ('fault_deadlock', 'other_side'), 1,
          sized=False),
)}
AT_END = ('hang', 'spin', 'deadlock')
CLASSES = list(dict.fromkeys(f.kind for f in FAULTS.values()))


def log_uniform(rng, low, high):
    return math.exp(rng.uniform(math.log(low), math.log(high)))


class Draw:
    """One server and its fault."""

    visible = True  # in what is recorded
    alone = False  # it records itself, without tacho run

    def __init__(self, seed):
        self.seed = seed
        rng = random.Random(seed)
        self.fault = rng.choices(list(FAULTS.values()), [f.weight for f in FAULTS.values()])[0]
        self.shape = rng.choice(self.fault.shapes)
        self.threads = {'tasks1': 1, 'tasks2': 2, 'two-loops': 2, 'shared': rng.randint(2, 4),
                        'leader': rng.randint(2, 4), 'pool': rng.randint(2, 4),
                        'uv': rng.randint(1, 4)}.get(self.shape, 1)
        self.connections = 24 if self.shape.startswith('tasks') else rng.randint(4, 24)
        self.work_us = rng.randint(20, 150)
        self.rate = log_uniform(rng, 100, min(1500, 0.3e6 / self.work_us))
        self.size_ms = log_uniform(rng, *self.fault.size)
        duty = log_uniform(rng, 0.03, 0.5)
        self.period_ms = min(max(self.size_ms / duty, 1.5 * self.size_ms), 500)
        self.inlined = rng.random() < 0.5
        self.tail = rng.random() < 0.5
        self.seconds = SECONDS
        self.neighbours = 0
        self.neighbour_cpu = -1  # any
        self.cpu = -1
        self.quota = None
        self.special(rng)

    def wanted(self, only):
        """`only`: names of faults, classes and shapes, or nothing."""
        names = [w for w in only if w not in ALL]
        shapes = [w for w in only if w in ALL]
        return (not names or self.fault.name in names or self.fault.kind in names) and \
            (not shapes or self.shape in shapes)

    def special(self, rng):
        """What some faults need beside or instead of size and period."""
        name = self.fault.name
        own = rng.uniform(0.15, 0.9)
        if name == 'healthy':
            self.neighbours = rng.randint(0, 1)
            self.rate = min(log_uniform(rng, 0.02, 0.6) * 1e6 / self.work_us, 4000)
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
        elif name in AT_END:
            self.seconds = 1.0

    def load(self, rng, share):
        self.work_us = rng.randint(200, 3000)
        self.rate = share * 1e6 / self.work_us

    @property
    def several(self):
        """Whether others go on while one of its threads is kept."""
        return self.shape in SEVERAL

    @property
    def program(self):
        return PROGRAMS.get(self.shape, 'shapes') + ('-inlined' if self.inlined else '')

    def path(self, root):
        """Of the program, in a folder of builds."""
        return os.path.join(root, 'tests/truth/truth-' + self.program)

    def options(self):
        return ['--shape', self.shape, '--fault', self.fault.name,
                '--size-ms', f'{self.size_ms:.4f}', '--period-ms', f'{self.period_ms:.3f}',
                '--work-us', str(self.work_us), '--threads', str(self.threads),
                '--cpu', str(self.cpu), '--tail', str(int(self.tail)),
                '--seconds', str(self.seconds), '--seed', str(self.seed)]

    def text(self):
        more = [f'{self.threads} threads'] if self.threads > 1 else []
        more += [f'{self.neighbours} neighbours'] if self.neighbours else []
        more += [f'quota {self.quota:.2f}'] if self.quota else []
        more += ['inlined'] if self.inlined else []
        more += ['tail'] if self.tail else []
        size = f'{self.size_ms:.3g} ms every {self.period_ms:.0f} ms, ' if self.fault.sized_by_time else ''
        return f'{self.shape} {self.fault.name}: {size}{self.rate:.0f}/s of {self.work_us} us' + \
            ''.join(', ' + m for m in more)
