"""Runs programs under a time limit, ends all they started, and counts results.

tests/run.py says what to run; this file knows how.
"""
import ctypes
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = ROOT / 'build' / 'test-logs'
PR_SET_CHILD_SUBREAPER = 36
# Where the kernel groups sessions, it weighs them against each other: nice alone does nothing.
LOW_PRIORITY = ['sh', '-c', '{ echo 19 >/proc/self/autogroup; } 2>/dev/null; exec nice -n 19 "$@"',
                'sh']
LOW_PATIENCE = 4  # factor on time limits of what comes after all others


class Interrupted(Exception):
    """SIGINT, SIGTERM or SIGHUP came."""


class Results:
    """What passed, failed and was skipped. May be used from several threads, each of which belongs
    to a suite."""

    def __init__(self):
        self.lock = threading.Lock()
        self.passed = 0
        self.failed = []
        self.skipped = []
        self.by_suite = {}  # name: [passed, failed, skipped]
        self.here = threading.local()

    def enter(self, suite):
        """What this thread tells from now on is that suite's."""
        self.here.suite = suite

    def suite(self):
        return getattr(self.here, 'suite', '')

    def count(self, what):
        self.by_suite.setdefault(self.suite(), [0, 0, 0])[what] += 1

    def ok(self, _name):
        with self.lock:
            self.passed += 1
            self.count(0)

    def fail(self, name, why, log=None):
        where = f' (log: {log.relative_to(ROOT)})' if log else ''
        with self.lock:
            self.failed.append(f'{name}: {why}')
            self.count(1)
            print(f'  FAILED {name}: {why}{where}', flush=True)

    def skip(self, name, reason):
        with self.lock:
            self.skipped.append(f'{name}: {reason}')
            self.count(2)

    def counts(self):
        """Those of this thread's suite."""
        with self.lock:
            return self.by_suite.get(self.suite(), [0, 0, 0])

    def line(self):
        with self.lock:
            passed, failed, skipped = self.passed, len(self.failed), len(self.skipped)
        tail = f', {skipped} skipped' if skipped else ''
        return f'{passed} passed, {failed} failed{tail}'


class Outcome:
    """How a program ended."""

    def __init__(self, status, output, log, limit):
        self.status = status  # None: the time limit came first
        self.output = output
        self.log = log
        self.limit = limit

    def __bool__(self):
        return self.status == 0

    def why(self):
        if self.status is None:
            return f'not finished after {self.limit:.0f} s'
        end = f'signal {-self.status}' if self.status < 0 else f'exit status {self.status}'
        lines = [line.strip()[:200] for line in self.output.splitlines() if line.strip()]
        telling = [line for line in lines if re.search(r'(error|warning): ', line, re.I)]
        return f'{end}; {(telling or lines[-1:])[0]}' if lines else end


class Runner:
    def __init__(self, environment, low_suites=()):
        self.results = Results()
        self.low_suites = low_suites  # names of those that run at low priority
        self.environment = environment
        self.lock = threading.Lock()
        self.live = {}  # pid -> job number
        self.jobs = 0
        self.took = []  # (seconds, seconds of CPU, suite, name) of what was run
        self.stopping = False
        # Daemons that a test leaves behind become children of this process, not of
        # init, so that they can be found and ended.
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self.interrupt)

    def interrupt(self, number, _frame):
        for other in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(other, signal.SIG_IGN)
        self.stopping = True
        raise Interrupted(signal.Signals(number).name)

    def run(self, name, argv, limit=120, env=None, cwd=ROOT):
        """Runs a program with folders of its own, all its output in a log."""
        if self.stopping:
            raise Interrupted()
        if self.results.suite() in self.low_suites:
            argv, limit = LOW_PRIORITY + list(argv), limit * LOW_PATIENCE
        log = LOGS / (re.sub(r'[^\w.+-]+', '-', name) + '.log')
        log.parent.mkdir(parents=True, exist_ok=True)
        with self.lock:
            self.jobs += 1
            number = f'{os.getpid()}.{self.jobs}'
        shm = '/dev/shm' if os.access('/dev/shm', os.W_OK) else None
        scratch = tempfile.mkdtemp(prefix='tacho-test-')
        os.chmod(scratch, 0o755)  # tests that run as root try things as another user, too
        boxes = tempfile.mkdtemp(prefix='tacho-test-', dir=shm)
        full = dict(self.environment, TMPDIR=scratch, TACHO_BOX_DIR=boxes, TACHO_TEST_JOB=number)
        full.update(env or {})
        try:
            started = time.monotonic()
            with open(log, 'wb') as out:
                status, cpu = self.wait([str(a) for a in argv], number, limit, full, cwd, out)
            with self.lock:
                self.took.append((time.monotonic() - started, cpu, self.results.suite(), name))
            if status is None and self.stopping:
                raise Interrupted()
            return Outcome(status, log.read_text(errors='replace'), log, limit)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
            shutil.rmtree(boxes, ignore_errors=True)

    def wait(self, argv, number, limit, env, cwd, out):
        try:
            # A session of its own is a process group of its own.
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out,
                                     stderr=subprocess.STDOUT, env=env, cwd=cwd,
                                     start_new_session=True)
        except OSError as error:
            out.write(f'cannot run {argv[0]}: {error}\n'.encode())
            return 127, 0
        with self.lock:
            self.live[child.pid] = number
        try:
            end = time.monotonic() + limit
            pause = 0.0005
            while True:
                pid, status, used = os.wait4(child.pid, os.WNOHANG)
                if pid:
                    child.returncode = os.waitstatus_to_exitcode(status)
                    return child.returncode, used.ru_utime + used.ru_stime
                if self.stopping or time.monotonic() >= end:
                    return None, 0
                pause = min(2 * pause, 0.05)
                time.sleep(pause)
        finally:
            end_group(child.pid)
            child.wait()
            self.end_strays(number)
            with self.lock:
                del self.live[child.pid]

    def end_strays(self, number=None):
        """Ends what left its process group: children of ours that carry the job's number
        in their environment; without a number all children that no job waits for."""
        for _ in range(100):
            strays = [pid for pid in children() if self.is_stray(pid, number)]
            if not strays:
                return
            for pid in strays:
                try:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                except (ProcessLookupError, ChildProcessError):
                    pass

    def is_stray(self, pid, number):
        with self.lock:
            if pid in self.live:
                return False
        if number is None:
            return True
        try:
            environ = pathlib.Path(f'/proc/{pid}/environ').read_bytes().split(b'\0')
        except OSError:
            return False
        return f'TACHO_TEST_JOB={number}'.encode() in environ

    def each(self, function, items, jobs):
        """Calls function(item) for all items, `jobs` at a time."""
        pool = ThreadPoolExecutor(max_workers=max(1, jobs), initializer=self.results.enter,
                                  initargs=(self.results.suite(),))
        try:
            for future in [pool.submit(function, item) for item in items]:
                future.result()
        except BaseException:
            self.stopping = True
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    # What programs say of themselves ------------------------------------------------

    def check(self, name, argv, **more):
        """A program whose exit status is the result."""
        outcome = self.run(name, argv, **more)
        if outcome:
            self.results.ok(name)
        else:
            self.results.fail(name, outcome.why(), outcome.log)
        return outcome

    def lines(self, name, argv, **more):
        """A program that prints `ok NAME`, `not ok NAME: why` and `skip NAME: reason`."""
        outcome = self.run(name, argv, **more)
        said = failed = 0
        for line in outcome.output.splitlines():
            if line.startswith('ok '):
                self.results.ok(f'{name}: {line[3:]}')
            elif line.startswith('not ok '):
                test, _, why = line[7:].partition(': ')
                self.results.fail(f'{name}: {test}', why or 'see log', outcome.log)
                failed += 1
            elif line.startswith('skip '):
                test, _, why = line[5:].partition(': ')
                self.results.skip(f'{name}: {test}', why or 'no reason given')
            else:
                continue
            said += 1
        if outcome.status != 0 and not failed:
            self.results.fail(name, outcome.why(), outcome.log)
        elif not said:
            self.results.fail(name, 'printed no result', outcome.log)

    def cmocka(self, name, argv, env=None, **more):
        """A cmocka program, each of its tests counted. A test that skips itself says why
        in a line `reason: ...` before."""
        env = dict(env or {}, CMOCKA_MESSAGE_OUTPUT='TAP')
        outcome = self.run(name, argv, env=env, **more)
        planned = said = failed = 0
        reason = None
        for line in outcome.output.splitlines():
            plan = re.fullmatch(r'1\.\.(\d+)', line)
            result = re.match(r'(not )?ok (\d+) (# SKIP|-) ?(.*)', line)
            if line.startswith('reason: '):
                reason = line[8:]
            elif plan:
                planned += int(plan.group(1))
            elif result:
                said += 1
                test = f'{name}: {result.group(4)}'
                if result.group(3) == '# SKIP':
                    self.results.skip(test, reason or 'no reason given')
                elif result.group(1):
                    failed += 1
                    self.results.fail(test, 'see log', outcome.log)
                else:
                    self.results.ok(test)
                reason = None
        if outcome.status != 0 and not failed:
            self.results.fail(name, outcome.why(), outcome.log)
        elif said < planned or not planned:
            self.results.fail(name, f'{said} of {planned} tests reported', outcome.log)


def end_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def children():
    """The processes whose parent is this one."""
    found = []
    for task in pathlib.Path('/proc/self/task').iterdir():
        try:
            found += [int(pid) for pid in (task / 'children').read_text().split()]
        except OSError:
            pass
    return found


def clean_environment():
    """That of the caller without what would change the recorder's behaviour."""
    keep = ('TACHO_SOAK', 'TACHO_KILLS', 'TACHO_FUZZ_SECONDS')
    env = {k: v for k, v in os.environ.items() if not k.startswith('TACHO_') or k in keep}
    env.pop('LD_PRELOAD', None)
    env['LC_ALL'] = 'C.UTF-8'
    env['PYTHONDONTWRITEBYTECODE'] = '1'
    return env


def say(text):
    print(text, flush=True)
