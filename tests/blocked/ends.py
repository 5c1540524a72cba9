#!/usr/bin/env python3
"""However a program under load ends or stops, its window is there, up to its last callback."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys

import libblocked
from libblocked import (CLIENT, PATIENCE, Server, as_caller, check, child_of, events, free_port,
                        listens, marked, places, skip, until)
from libgroup import MemoryGroup

CONNECTIONS = 8
LOAD = 20000  # requests before something happens; fewer than a box holds
GROUP_BYTES = 512 << 20  # boxes may take a twentieth of it, which is enough for the whole load


class Load:
    """A client at full speed; `with` ends it."""

    def __init__(self, protocol, port):
        self.client = subprocess.Popen([CLIENT, protocol, str(CONNECTIONS), str(port)],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.answered = None

    def __enter__(self):
        return self

    def finish(self):
        """How many requests were answered; the server is gone or is not needed any more."""
        if self.answered is None:
            self.client.terminate()
            out, err = self.client.communicate(timeout=PATIENCE)
            if not out.startswith('answered '):
                raise RuntimeError(f'the client failed: {err}')
            self.answered = int(out.split()[1])
        return self.answered

    def __exit__(self, *_):
        if self.client.poll() is None:
            self.client.kill()
            self.client.communicate()


def lines(path, *wanted):
    """How many events of a window have all these texts in them."""
    cat = subprocess.Popen([libblocked.BIN, 'cat', '--json', path], stdout=subprocess.PIPE,
                           text=True)
    with cat.stdout:
        return sum(all(w in line for w in wanted) for line in cat.stdout)


def missing(path):
    """How many records are not in a window that were made."""
    out = subprocess.run([libblocked.BIN, 'info', '--json', path], capture_output=True, text=True,
                         timeout=PATIENCE).stdout
    found = json.loads(out)
    overwritten = sum(loss['count'] for process in found['processes']
                      for loss in process['losses'] if loss['name'] == 'overwritten_records')
    return found['missing_records'] + found['dropped_records'] + overwritten


def check_reach(name, path, begun, answered):
    """Each callback that the program counted is in the window, the last one included."""
    polls = lines(path, '"type":"poll-begin"', '"function":"on_request"')
    # Between the record and the program's own count one may have been cut off.
    check(f'{name}: the window reaches up to the end',
          missing(path) == 0 and LOAD - CONNECTIONS <= answered <= begun <= polls <= begun + 1,
          (missing(path), answered, begun, polls))


# A server over libuv -------------------------------------------------------------------------


def under_load(name, body, *before):
    situation = as_caller()
    try:
        with Server(situation, *before) as server, Load('http', server.port) as load:
            if not until(lambda: server.counts()[0] >= LOAD):
                check(f'{name}: there is load', False, server.counts())
                return
            body(name, situation, server, load)
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        check(f'{name}: the server ran', False, error)
    finally:
        situation.end()


def ends(status, do):
    """It ends by what `do` does; `status` is then that of tacho run."""
    def body(name, situation, server, load):
        do(server)
        code, said = server.finish(None)
        answered, begun = load.finish(), server.counts()[0]
        found = situation.traces()
        if check(f'{name}: the window is there', code == status and len(found) == 1,
                 (code, found, said)):
            check_reach(name, found[0], begun, answered)
        check(f'{name}: no box is left', os.listdir(situation.boxes) == [],
              os.listdir(situation.boxes))
    return body


def kill(number):
    return lambda server: os.kill(server.pid, number)


def ask(what):
    return lambda server: server.ask(what, answer=False)


def out_of_memory():
    name = 'killed for memory'
    try:
        group = MemoryGroup(GROUP_BYTES)
    except OSError as error:
        skip(name, f'no memory cgroup can be made here: {error}')
        return
    try:
        under_load(name, ends(128 + signal.SIGKILL, ask('eat')), *group.before())
        check(f'{name}: it was the kernel', group.kills() == 1, group.kills())
    finally:
        group.end()


def state(pid):
    with open(f'/proc/{pid}/stat') as f:
        return f.read().rsplit(')', 1)[1].split()[0]


def stopped(name, situation, server, load):
    window = os.path.join(situation.folder, 'stopped.dump')
    os.kill(server.pid, signal.SIGSTOP)
    until(lambda: state(server.pid) == 'T')
    begun = server.counts()[0]
    dump = situation.run('dump', str(server.pid), '-o', window)
    check(f'{name}: the window is there', dump.returncode == 0 and state(server.pid) == 'T' and
          server.counts()[0] == begun, (dump.returncode, dump.stderr))
    os.kill(server.pid, signal.SIGCONT)
    check(f'{name}: it goes on', until(lambda: server.counts()[0] > begun + 100), begun)
    check_reach(name, window, begun, LOAD)
    load.finish()
    code, said = server.finish()
    check(f'{name}: it ends well', code == 0 and len(situation.traces()) == 1, (code, said))


def open_waits(found):
    """The waits for locks that never ended: thread -> place."""
    waits = {}
    for e in found:
        if e['type'] == 'lock-wait':
            waits[e['tid']] = list(places(e))
        elif e['type'] == 'lock-waited':
            waits.pop(e['tid'], None)
    return waits


def deadlocked(name, situation, server, load):
    window = os.path.join(situation.folder, 'deadlock.dump')
    server.ask('deadlock', answer=False)
    until(lambda: server.counts()[3] == 1)
    # Each of the two has recorded its wait when it sleeps.
    until(lambda: sum(state_of_task(server.pid, t) == 'S'
                      for t in os.listdir(f'/proc/{server.pid}/task')) >= 2)
    begun = server.counts()[0]
    dump = situation.run('dump', str(server.pid), '-o', window)
    if check(f'{name}: the window is there', dump.returncode == 0, dump.stderr):
        check_reach(name, window, begun, LOAD)
        waits = open_waits(events(window))
        check(f'{name}: who waits where',
              waits.get(server.pid) == [('lock_both', 'server.c', marked('deadlock loop'))] and
              [('other_way_round', 'server.c', marked('deadlock other'))] in waits.values() and
              len(waits) == 2, waits)
    code, said = server.finish(signal.SIGKILL)
    answered = load.finish()
    found = situation.traces()
    if check(f'{name}: and when it was killed', code == 128 + 9 and len(found) == 1, (code, said)):
        check_reach(f'{name}, killed', found[0], server.counts()[0], answered)


def state_of_task(pid, tid):
    with open(f'/proc/{pid}/task/{tid}/stat') as f:
        return f.read().rsplit(')', 1)[1].split()[0]


# redis ---------------------------------------------------------------------------------------


def answered_by(port):
    """How many commands redis has answered."""
    with socket.create_connection(('127.0.0.1', port), timeout=PATIENCE) as s:
        s.sendall(b'INFO stats\r\n')
        text = b''
        while b'total_commands_processed:' not in text or not text.endswith(b'\r\n'):
            text += s.recv(65536)
    return int(text.split(b'total_commands_processed:')[1].split()[0])


def redis(number):
    name = f'redis, {signal.Signals(number).name}'
    situation, port, run = as_caller(), free_port(), None
    try:
        # Its own report tests all memory by changing it. What the kernel reads there itself
        # (rseq, of glibc) is left out: redis dies of that, recorded or not, whenever it is
        # preempted at the wrong time.
        run = situation.start('redis-server', '--port', str(port), '--save', '', '--bind',
                              '127.0.0.1', TACHO_SAMPLE_HZ='999',
                              GLIBC_TUNABLES='glibc.pthread.rseq=0')
        until(lambda: listens(port))
        pid = child_of(run.pid)
        with Load('redis', port) as load:
            until(lambda: answered_by(port) >= LOAD)
            os.kill(pid, number)
            log, said = run.communicate(timeout=PATIENCE)
            answered = load.finish()
        found = situation.traces()
        if check(f'{name}: the window is there', run.returncode == 128 + number and
                 len(found) == 1, (run.returncode, said)):
            ready = lines(found[0], '"type":"ready"')
            check(f'{name}: the window reaches up to the end',
                  missing(found[0]) == 0 and LOAD / 2 <= answered <= ready, (answered, ready))
        # A sample in the middle of the test would find memory that is not as it was.
        if number != signal.SIGKILL:
            check(f'{name}: its own report is whole', log.count('crashed by signal') == 1 and
                  'memory test PASSED' in log, log[-500:])
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        check(f'{name}: the server ran', False, error)
    finally:
        if run and run.poll() is None:
            os.kill(child_of(run.pid), signal.SIGKILL)
            run.communicate(timeout=PATIENCE)
        situation.end()


def main():
    for path, package in ((libblocked.SERVER, 'libuv1-dev'), (CLIENT, 'the build')):
        if not os.path.exists(path):
            skip('ends', f'{path} is not there: it needs {package}')
            return 0
    under_load('SIGKILL', ends(128 + 9, kill(signal.SIGKILL)))
    under_load('SIGSEGV', ends(128 + 11, ask('segv')))
    under_load('abort', ends(128 + 6, ask('abort')))
    out_of_memory()
    under_load('SIGSTOP', stopped)
    under_load('deadlock', deadlocked)
    if shutil.which('redis-server'):
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT):
            redis(number)
    else:
        skip('redis', 'redis-server is not installed')
    return libblocked.status()


if __name__ == '__main__':
    sys.exit(main())
