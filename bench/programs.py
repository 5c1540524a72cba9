"""Starts the programs of the benchmark, and ends all of them whatever happens."""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get('TACHO_BUILD') or ROOT / 'build').resolve()
NOBODY = 65534


class Broken(Exception):
    """What was measured means nothing, or nothing could be measured."""


class Programs:
    """Runs programs in process groups of their own; `with` ends those that are left."""

    def __init__(self, box_bytes):
        self.live = []
        self.folders = []
        self.starting = True  # until __exit__ will be called
        self.signal = None
        self.environment = {k: v for k, v in os.environ.items()
                            if not k.startswith(('TACHO', 'LTTNG_', 'BABELTRACE_'))
                            and k != 'LD_PRELOAD'}
        self.environment.update(LC_ALL='C.UTF-8', TACHO_MAX_BYTES=str(box_bytes))

    def __enter__(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self.interrupted)
        shm = '/dev/shm' if os.access('/dev/shm', os.W_OK) else None
        self.boxes = self.folder(shm)
        self.environment['TACHO_BOX_DIR'] = self.boxes
        self.starting = False
        return self

    def __exit__(self, *_):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        for child in reversed(self.live):
            self.end(child, 10 if child.gently else 0)
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)

    def interrupted(self, number, _frame):
        self.signal = signal.Signals(number).name
        if not self.starting:
            raise Broken(f'interrupted by {self.signal}')

    def folder(self, where=None):
        self.folders.append(tempfile.mkdtemp(prefix='tacho-bench-', dir=where))
        return self.folders[-1]

    def start(self, argv, env=None, gently=False, **more):
        # A signal between the start of a child and its place in the list must wait, or
        # nobody would end that child.
        self.starting = True
        try:
            child = subprocess.Popen([str(a) for a in argv], start_new_session=True, text=True,
                                     env=dict(self.environment, **(env or {})), **more)
            child.gently = gently  # it has something to clean up itself
            self.live.append(child)
        except OSError as error:
            raise Broken(f'cannot run {argv[0]}: {error}') from error
        finally:
            self.starting = False
        if self.signal:
            raise Broken(f'interrupted by {self.signal}')
        return child

    def end(self, child, patience):
        if patience and child.poll() is None:
            child.terminate()
            try:
                child.wait(timeout=patience)
            except subprocess.TimeoutExpired:
                pass
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()
        self.live.remove(child)

    def output(self, argv, limit=120, **more):
        """What a program prints (standard output, standard error); it must succeed."""
        more.setdefault('stdin', subprocess.DEVNULL)
        child = self.start(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
        try:
            out, err = child.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            raise Broken(f'{argv[0]} was not finished after {limit} s') from None
        finally:
            self.end(child, 0)
        if child.returncode:
            why = (err or out).strip().splitlines()[-1:] or ['it said nothing']
            name = pathlib.Path(argv[0]).name
            raise Broken(f'{name} failed (status {child.returncode}): {why[0]}')
        return out, err

    def bench(self, name, *arguments):
        """The words that a bench program prints, as {name: [values]}, when it ends."""
        out, _ = self.output([program(name), *arguments])
        return words(out.splitlines())

    def held(self, name, *arguments):
        """The same for one that then waits for the end of its standard input: (words,
        function that lets it end)."""
        child = self.start([program(name), *arguments], stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        lines = []
        for line in child.stdout:
            lines.append(line)
            if line.startswith('box '):
                break
        else:
            why = child.stderr.read().strip() or 'it said nothing'
            raise Broken(f'bench-{name} failed: {why}')

        def let_go():
            child.stdin.close()
            child.wait(timeout=60)
            self.end(child, 0)
            if child.returncode:
                raise Broken(f'bench-{name} ended with status {child.returncode}')
        return words(lines), let_go


def program(name):
    return BUILD / 'bench' / f'bench-{name}'


def library(name):
    return BUILD / 'bench' / f'libbench-{name}.so'


def words(lines):
    found = {}
    for line in lines:
        name, _, rest = line.strip().partition(' ')
        found.setdefault(name, []).append(rest)
    return found


def number(found, name):
    if name not in found:
        raise Broken(f'a program of the benchmark did not say "{name}"')
    return float(found[name][0])
