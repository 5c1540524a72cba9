"""How a case is recorded, and what the report says of it."""
import glob
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

BUILD = os.environ.get('TACHO_BUILD', 'build')
LIMIT = 60  # seconds, for what takes three
NOBODY = 65534


class Failed(Exception):
    pass


class Place:
    """Where the programs are: those that were built, or copies that anybody may read."""

    PARTS = ('src/cli/tacho', 'src/hooks/libtacho-preload.so', 'src/core/libtacho.so*',
             'tests/cases/case-*')

    def __init__(self, root):
        self.root = root
        self.tacho = os.path.join(root, 'src/cli/tacho')
        self.preload = os.path.join(root, 'src/hooks/libtacho-preload.so')

    def case(self, name):
        return os.path.join(self.root, 'tests/cases/case-' + name)

    @classmethod
    def copy(cls, folder):
        os.chmod(folder, 0o755)
        for part in cls.PARTS:
            for path in glob.glob(os.path.join(BUILD, part)):
                if os.path.isdir(path):
                    continue
                to = os.path.join(folder, os.path.relpath(path, BUILD))
                os.makedirs(os.path.dirname(to), exist_ok=True)
                shutil.copy2(path, to)
                os.chmod(to, 0o755)
        return cls(folder)


class Unavailable(Exception):
    pass


class Quota:
    """A cgroup with a CPU quota, of version 1 or 2. A context: gives what must be called in the
    process that is to be in it."""

    PERIOD = 100000

    def __init__(self, cpus):
        self.cpus = cpus

    def write(self, name, value):
        with open(os.path.join(self.path, name), 'w', encoding='ascii') as f:
            f.write(str(value))

    def __enter__(self):
        name = f'tacho-cases-{os.getpid()}-{id(self)}'
        self.path = None
        for root, file in (('/sys/fs/cgroup/cpu', 'cpu.cfs_quota_us'),
                           ('/sys/fs/cgroup/cpu,cpuacct', 'cpu.cfs_quota_us'),
                           ('/sys/fs/cgroup', 'cpu.max')):
            path = os.path.join(root, name)
            try:
                os.mkdir(path)
            except OSError:
                continue
            self.path = path
            try:
                if file == 'cpu.max':
                    self.write(file, f'{int(self.cpus * self.PERIOD)} {self.PERIOD}')
                    self.write('cpu.weight', 10000)
                else:
                    self.write('cpu.cfs_period_us', self.PERIOD)
                    self.write(file, int(self.cpus * self.PERIOD))
                    # It must be the quota that stops it, not its neighbours.
                    self.write('cpu.shares', 100000)
                return self
            except OSError:
                self.__exit__()
        raise Unavailable('no cgroup with a CPU quota can be made here')

    def enter(self):
        self.write('cgroup.procs', os.getpid())

    def __exit__(self, *_):
        for _ in range(100):
            try:
                return os.rmdir(self.path)
            except OSError:
                time.sleep(0.05)


class Situation:
    """As whom, and with what, programs are recorded. A context: its folders go with it."""

    NAMES = ('root', 'unprivileged', 'without-perf')

    def __init__(self, name):
        self.name = name
        self.before = []

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix='tacho-cases-')
        self.boxes = tempfile.mkdtemp(prefix='tacho-cases-',
                                      dir='/dev/shm' if os.access('/dev/shm', os.W_OK) else None)
        self.place = Place(BUILD)
        if self.name == 'unprivileged':
            os.chmod(self.folder, 0o755)
            self.out = os.path.join(self.folder, 'out')
            programs = os.path.join(self.folder, 'programs')
            os.mkdir(self.out)
            os.mkdir(programs)
            self.place = Place.copy(programs)
            for path in (self.out, self.boxes):
                os.chown(path, NOBODY, NOBODY)
            self.before = ['setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups']
        else:
            self.out = self.folder
            if self.name == 'without-perf':
                self.before = [self.place.case('without_perf')]
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, True)
        shutil.rmtree(self.boxes, True)

    def environment(self, **more):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith('TACHO') and k != 'LD_PRELOAD'}
        env.update(TACHO_BOX_DIR=self.boxes, TACHO_PRELOAD=self.place.preload, TMPDIR=self.out,
                   HOME=self.out, LC_ALL='C.UTF-8')
        env.update(more)
        return env

    def command(self, output, argv, options=()):
        # With all that perf gives, where it gives something.
        return self.before + [self.place.tacho, 'run', '-q', '--kernel', *options, '-o', output,
                              '--', *argv]

    def record(self, name, argv, options=(), inside=None, **env):
        """Runs it to its end; the trace of the program itself."""
        path = os.path.join(self.out, name + '.tacho')
        return self.wait(self.command(path, argv, options), path, inside, env)

    def run(self, name, argv, inside=None, **env):
        """The same for a program that records and saves its window by itself."""
        path = os.path.join(self.out, name + '.tacho')
        return self.wait(self.before + argv, path, inside, dict(env, TACHO_CASE_FILE=path))

    def dump(self, name, argv, seconds):
        """The window of a program as it is so long after its first event."""
        path = os.path.join(self.out, name + '.tacho')
        process = subprocess.Popen(self.command(path + '.end', argv), cwd=self.out,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env=self.environment())
        try:
            pid = self.recorded(os.path.basename(argv[0])[:15])
            time.sleep(seconds)
            done = subprocess.run(self.before + [self.place.tacho, 'dump', str(pid), '-o', path],
                                  capture_output=True, text=True, timeout=LIMIT,
                                  env=self.environment())
            if done.returncode:
                raise Failed(f'dump: exit {done.returncode}, {done.stderr.strip()[-300:]}')
            os.kill(pid, signal.SIGKILL)
            process.wait(LIMIT)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        return path

    def recorded(self, comm):
        """The process of that name that has a box."""
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            for box in os.listdir(self.boxes):
                pid = box.split('-')[0].split('.')[0]
                try:
                    with open(f'/proc/{pid}/comm', encoding='utf-8') as f:
                        if f.read().strip() == comm:
                            return int(pid)
                except OSError:
                    pass
            time.sleep(0.05)
        raise Failed('it recorded nothing')

    def wait(self, argv, path, inside, env):
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT,
                                  stdin=subprocess.DEVNULL, cwd=self.out,
                                  env=self.environment(**env), preexec_fn=inside)
        except subprocess.TimeoutExpired:
            raise Failed(f'it did not end within {LIMIT} s') from None
        if not os.path.exists(path):
            raise Failed(f'there is no trace; exit {done.returncode}, {done.stderr.strip()[-300:]}')
        return path

    def report(self, path, *options):
        return report(self.place, path, *options)


def undisturbed():
    """Called in a child: it runs before what else there is on the machine, which is not its
    subject. Where that is not allowed, it runs as everybody does."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except OSError:
        pass


def may_be_undisturbed():
    before = os.sched_getscheduler(0)
    undisturbed()
    allowed = os.sched_getscheduler(0) == os.SCHED_RR
    os.sched_setscheduler(0, before, os.sched_param(0))
    return allowed


def tacho(place, *arguments):
    return subprocess.run([place.tacho, *arguments], capture_output=True, text=True,
                          timeout=LIMIT, stdin=subprocess.DEVNULL)


def report(place, path, *options):
    """The report as a program reads it."""
    done = tacho(place, 'report', '--json', path, *options)
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise Failed(f'report: exit {done.returncode}, {done.stderr.strip()[-300:]}') from None


def first_place(finding):
    """What the cases' own helper does counts for who called it."""
    places = [w for w in finding['where'] if os.path.basename(w.get('file') or '') != 'case.c']
    where = places[0] if places else {}
    return (where.get('function') or '', os.path.basename(where.get('file') or ''),
            where.get('line') or 0)


def headline(found):
    """Verdict and findings in one line, for whoever reads a log."""
    findings = [f'{f["rule"]} ({"%s %s:%s" % first_place(f)})' for f in found['findings']
                if f['explained_by'] is None]
    return f'{found["verdict"]["category"]}; ' + ', '.join(findings[:4])
