"""What the tests of blocked and crashing servers share: situations to record in, the server,
and the events of its window. Standard library only."""
import glob
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from libresult import check, skip, status  # noqa: E402, F401
from libwait import PATIENCE, child_of, free_port, listens, until  # noqa: E402, F401

BUILD = os.path.abspath(os.environ.get('TACHO_BUILD') or 'build')
BIN = os.path.abspath(os.environ.get('TACHO_BIN') or os.path.join(BUILD, 'src/cli/tacho'))
CLIENT = os.path.join(BUILD, 'bench/bench-daemons_client')
SERVER = os.path.join(BUILD, 'tests/blocked/blocked-server')
NO_PERF = os.path.join(BUILD, 'tests/blocked/blocked-no_perf')
PRELOAD = os.path.join(BUILD, 'src/hooks/libtacho-preload.so')
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'server.c')


def marked(name):
    """The number of the line of server.c that is marked with this name."""
    with open(SOURCE) as f:
        found = [n for n, line in enumerate(f, 1) if f'/* at: {name} */' in line]
    assert len(found) == 1, f'"{name}" marks {len(found)} lines of server.c'
    return found[0]


# Situations --------------------------------------------------------------------------------


class Situation:
    """How a program is recorded: as whom, and with what refused. `holds`: what its process
    says of itself, so that a situation that is not there does not pass for one."""

    def __init__(self, name, before=(), uid=None, holds=None):
        self.name = name
        self.before = list(before)
        self.uid = uid
        self.holds = holds or (lambda status: True)
        self.folder = tempfile.mkdtemp(prefix='tacho-blocked-')
        self.boxes = tempfile.mkdtemp(prefix='tacho-blocked-', dir='/dev/shm')
        # Builds may lie in folders that are closed to other users.
        for path in (BIN, SERVER, NO_PERF, PRELOAD):
            shutil.copy(path, self.folder)
        if uid is not None:
            os.chown(self.folder, uid, uid)
            os.chown(self.boxes, uid, uid)
        self.tacho = os.path.join(self.folder, 'tacho')

    def environment(self, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith(('TACHO', 'XDG_'))}
        env.update(TACHO_BOX_DIR=self.boxes, XDG_RUNTIME_DIR=self.boxes, HOME=self.folder,
                   TACHO_PRELOAD=os.path.join(self.folder, 'libtacho-preload.so'))
        if os.environ.get('TACHO_TEST_JOB'):
            env['TACHO_TEST_JOB'] = os.environ['TACHO_TEST_JOB']
        env.update(more)
        return env

    def start(self, *argv, **more):
        """The program under `tacho run`, which asks for perf; `more` is for its environment."""
        return subprocess.Popen(
            [*self.before, self.tacho, 'run', '--kernel', '-o', self.folder, '--', *argv],
            cwd=self.folder, env=self.environment(**more), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *argv):
        return subprocess.run([*self.before, self.tacho, *argv], cwd=self.folder, text=True,
                              env=self.environment(), capture_output=True, timeout=PATIENCE)

    def traces(self):
        return sorted(glob.glob(os.path.join(self.folder, '*.tacho')))

    def end(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.boxes, ignore_errors=True)


def as_caller():
    return Situation('root' if os.geteuid() == 0 else 'caller')


def free_uid():
    """One that nobody has and no process runs as."""
    import pwd
    taken = {p.pw_uid for p in pwd.getpwall()}
    for path in glob.glob('/proc/[0-9]*'):
        try:
            taken.add(os.stat(path).st_uid)
        except OSError:
            pass
    return next(uid for uid in range(61200, 65000) if uid not in taken)


def as_user():
    """An unprivileged user: another one when this is root."""
    if os.geteuid() != 0:
        return Situation('user', holds=lambda status: not capable(status))
    uid = free_uid()
    return Situation('user', ['setpriv', f'--reuid={uid}', f'--regid={uid}', '--clear-groups'],
                     uid, lambda status: field(status, 'Uid') == str(uid) and not capable(status))


def without_perf(name, error):
    situation = Situation(name, holds=lambda status: field(status, 'Seccomp') == '2')
    situation.before = [os.path.join(situation.folder, 'blocked-no_perf'), str(error)]
    return situation


def field(status, name):
    return next((line.split()[1] for line in status.splitlines() if line.startswith(name + ':')),
                None)


def capable(status):
    return int(field(status, 'CapEff'), 16) != 0


# The server --------------------------------------------------------------------------------


class Server:
    """blocked-server under `tacho run`; `with` ends both."""

    def __init__(self, situation, *before):
        self.situation = situation
        self.counts_path = os.path.join(situation.folder, 'counts')
        self.run = situation.start(*before, os.path.join(situation.folder, 'blocked-server'),
                                   self.counts_path)
        line = self.run.stdout.readline().split()
        if len(line) != 4:
            self.run.kill()
            raise RuntimeError('blocked-server did not start: ' + self.run.communicate()[1])
        self.port, self.pid = int(line[1]), int(line[3])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.run.poll() is None:
            try:
                os.kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            try:
                self.run.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                self.run.kill()
                self.run.communicate()

    def status(self):
        with open(f'/proc/{self.pid}/status') as f:
            return f.read()

    def counts(self):
        """(callbacks begun, when the last, bytes eaten, about to deadlock)"""
        with open(self.counts_path, 'rb') as f:
            return struct.unpack('4Q', f.read(32))

    def ask(self, what, answer=True):
        """The words of its answer as pairs: {'took': 12, ...}."""
        with socket.create_connection(('127.0.0.1', self.port), timeout=PATIENCE) as s:
            s.sendall(f'GET /{what} HTTP/1.1\r\n\r\n'.encode())
            if not answer:
                return None
            text = b''
            while b'\r\n\r\n' not in text or len(text.split(b'\r\n\r\n')[1]) < 2:
                more = s.recv(4096)
                if not more:
                    raise RuntimeError(f'no answer to {what}')
                text += more
        words = text.split(b'\r\n\r\n')[1].decode().split()
        return {words[i]: int(words[i + 1]) for i in range(0, len(words) - 1, 2)}

    def finish(self, number=signal.SIGTERM):
        """(exit status of tacho run, what it said)"""
        if number:
            os.kill(self.pid, number)
        _, err = self.run.communicate(timeout=PATIENCE)
        return self.run.returncode, err


# The window --------------------------------------------------------------------------------


def events(path):
    p = subprocess.run([BIN, 'cat', '--json', path], capture_output=True, text=True,
                       timeout=120, env=dict(os.environ, LC_ALL='C.UTF-8'))
    if p.returncode:
        raise RuntimeError(f'tacho cat {path}: {p.stderr}')
    return [json.loads(line) for line in p.stdout.splitlines()]


def places(value):
    """(function, file name, line) of all frames in an event, innermost first."""
    if isinstance(value, dict):
        if value.get('function') and 'address' in value or 'line' in value and 'function' in value:
            yield (value['function'], os.path.basename(value.get('file') or ''), value.get('line'))
        for part in value.values():
            yield from places(part)
    elif isinstance(value, list):
        for part in value:
            yield from places(part)


def polls(found, function):
    """The polls of a callback, each with its thread, begin, end and what is in between."""
    open_, done = {}, []
    for e in found:
        thread = (e['pid'], e['tid'])
        if e['type'] == 'poll-begin':
            inner = {'begin': e, 'end': None, 'events': []}
            open_.setdefault(thread, []).append(inner)
            if any(name == function for name, _, _ in places(e['kind'])):
                done.append(inner)
            continue
        for poll in open_.get(thread, []):
            poll['events'].append(e)
        if e['type'] == 'poll-end' and open_.get(thread):
            open_[thread].pop()['end'] = e
    return done


def took(poll):
    return poll['end']['ns'] - poll['begin']['ns'] if poll['end'] else 0
