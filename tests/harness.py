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
MOST_AGAIN = 6  # programs that are run again; when more fail, it is not for other suites


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
        self.unsteady = []  # programs that passed only when they were run again
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
    def __init__(self, environment, low_suites=(), steadied=()):
        self.results = Results()
        self.low_suites = low_suites  # names of those that run at low priority
        self.steadied = steadied  # names of those whose failures are looked at again: judge()
        self.later = []  # what run_again runs
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
        self.judge(name, argv, verdicts_of_lines, more)

    def cmocka(self, name, argv, env=None, **more):
        """A cmocka program, each of its tests counted. A test that skips itself says why
        in a line `reason: ...` before."""
        env = dict(env or {}, CMOCKA_MESSAGE_OUTPUT='TAP')
        self.judge(name, argv, verdicts_of_cmocka, dict(more, env=env))

    def cargo_test(self, name, argv, **more):
        """`cargo test`, each of its tests counted."""
        self.judge(name, argv, verdicts_of_cargo, more)

    def judge(self, name, argv, verdicts, more):
        """Runs a program of several tests. Of a suite that others run beside, what fails is run
        once more when nothing does (see run_again), and then counts."""
        outcome = self.run(name, argv, **more)
        found = verdicts(outcome)
        failed = [f'{test}: {why}' if test else why
                  for what, test, why in found if what == 'failed']
        with self.lock:
            suite = self.results.suite()
            again = failed and suite in self.steadied and len(self.later) < MOST_AGAIN
            if again:
                self.later.append((suite, name, argv, verdicts, more, failed[0]))
        if again:
            say(f'  later  {name}: failed beside other suites, is run again alone: {failed[0]}')
            return failed
        for what, test, why in found:
            test = f'{name}: {test}' if test else name
            if what == 'ok':
                self.results.ok(test)
            elif what == 'skipped':
                self.results.skip(test, why)
            else:
                self.results.fail(test, why, outcome.log)
        return failed

    def run_again(self):
        """What failed beside other suites, alone. What passes now is told as unsteady: a test that
        depends on how busy the machine is has to be mended, but is no fault of what it tests."""
        self.steadied = ()
        for suite, name, argv, verdicts, more, why in self.later:
            self.results.enter(suite)
            if not self.judge(f'{name} alone', argv, verdicts, more):
                self.results.unsteady.append(f'{name}: {why}')


def verdicts_of_lines(outcome):
    """(ok, failed or skipped; test, or nothing for the program; why) of a program for `lines`."""
    found = []
    for line in outcome.output.splitlines():
        test, _, why = line.partition(': ')
        if line.startswith('ok '):
            found.append(('ok', line[3:], ''))
        elif line.startswith('not ok '):
            found.append(('failed', test[7:], why or 'see log'))
        elif line.startswith('skip '):
            found.append(('skipped', test[5:], why or 'no reason given'))
    if outcome.status != 0 and not any(what == 'failed' for what, _, _ in found):
        found.append(('failed', '', outcome.why()))
    elif not found:
        found.append(('failed', '', 'printed no result'))
    return found


def verdicts_of_cmocka(outcome):
    """The same of a program for `cmocka`."""
    found, planned, reason = [], 0, None
    for line in outcome.output.splitlines():
        plan = re.fullmatch(r'1\.\.(\d+)', line)
        result = re.match(r'(not )?ok (\d+) (# SKIP|-) ?(.*)', line)
        if line.startswith('reason: '):
            reason = line[8:]
        elif plan:
            planned += int(plan.group(1))
        elif result:
            test = result.group(4)
            if result.group(3) == '# SKIP':
                found.append(('skipped', test, reason or 'no reason given'))
            elif result.group(1):
                found.append(('failed', test, 'see log'))
            else:
                found.append(('ok', test, ''))
            reason = None
    said = len(found)
    if outcome.status != 0 and not any(what == 'failed' for what, _, _ in found):
        found.append(('failed', '', outcome.why()))
    elif said < planned or not planned:
        found.append(('failed', '', f'{said} of {planned} tests reported'))
    return found


def verdicts_of_cargo(outcome):
    """The same of `cargo test`."""
    found, planned, program = [], 0, ''
    for line in outcome.output.splitlines():
        now = re.match(r'\s+Running (.*) \(|\s+(Doc-tests \w+)', line)
        plan = re.match(r'running (\d+) tests?$', line)
        result = re.match(r'test (.*) \.\.\. (ok|FAILED|ignored)(?:, (.*))?$', line)
        if now:
            program = now.group(1) or now.group(2)
        elif plan:
            planned += int(plan.group(1))
        elif result:
            what = {'ok': 'ok', 'FAILED': 'failed', 'ignored': 'skipped'}[result.group(2)]
            why = {'ok': '', 'failed': 'see log', 'skipped': result.group(3) or 'no reason given'}
            found.append((what, f'{program}: {result.group(1)}', why[what]))
    if outcome.status != 0 and not any(what == 'failed' for what, _, _ in found):
        found.append(('failed', '', outcome.why()))
    elif len(found) < planned or not planned:
        found.append(('failed', '', f'{len(found)} of {planned} tests reported'))
    return found


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
