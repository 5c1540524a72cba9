"""LTTng in snapshot mode, private to the benchmark.

A session daemon of its own, in a folder of its own, with as much memory for
its rings as a box has. As root, LTTng knows only one place for its daemon's
sockets, the host's; then daemon, tools and bench-lttng run as nobody.
"""
import os
import pathlib
import re
import shutil
import subprocess
import time

from programs import NOBODY, Broken, program

SESSION = 'tacho-bench'
SUB_BUFFER = 512 * 1024
EVENTS = ','.join(f'tacho_bench:{name}' for name in  # all but `unused`
                  ('park', 'unpark', 'poll_begin', 'poll_end', 'wake', 'two_numbers'))
USER = NOBODY if os.geteuid() == 0 else os.geteuid()
LEFT_BEHIND = [pathlib.Path('/dev/shm', name)
               for name in ('lttng-ust-wait-8', f'lttng-ust-wait-8-{USER}')]


class Lttng:
    def __init__(self, programs, buffer_bytes):
        self.programs = programs
        self.buffer_bytes = buffer_bytes
        self.as_user = {}
        if os.geteuid() == 0:
            self.as_user = {'user': NOBODY, 'group': NOBODY, 'extra_groups': []}
        # Where nobody may go, whatever TMPDIR is.
        self.home = programs.folder('/tmp' if self.as_user else None)
        self.program = pathlib.Path(self.home, 'bench-lttng')
        self.output_folder = pathlib.Path(self.home, 'snapshot')
        self.left_before = {path for path in LEFT_BEHIND if path.exists()}
        self.env = {'HOME': self.home, 'LTTNG_HOME': self.home, 'LTTNG_UST_REGISTER_TIMEOUT': '-1',
                    'TMPDIR': self.home}

    def run(self, *argv, **more):
        return self.programs.output(argv, env=self.env, cwd=self.home, **self.as_user, **more)

    def lttng(self, *argv):
        return self.run('lttng', '--no-sessiond', *argv, limit=60)[0]

    def start(self):
        shutil.copy(program('lttng'), self.program)
        if self.as_user:
            os.chown(self.home, NOBODY, NOBODY)
            os.chown(self.program, NOBODY, NOBODY)
        log = open(pathlib.Path(self.home, 'sessiond.log'), 'w')
        self.daemon = self.programs.start(
            ['lttng-sessiond', '--no-kernel'], env=self.env, cwd=self.home, gently=True,
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self.as_user)
        log.close()
        self.wait_for_daemon()
        # The rings are per CPU and take a power of two of sub-buffers, at least two.
        count = 2
        while count * 2 * SUB_BUFFER * (os.cpu_count() or 1) <= self.buffer_bytes:
            count *= 2
        self.ring_bytes = count * SUB_BUFFER * (os.cpu_count() or 1)
        self.lttng('create', SESSION, '--snapshot', f'--output={self.output_folder}')
        self.lttng('enable-channel', '--userspace', '--overwrite', f'--subbuf-size={SUB_BUFFER}',
                   f'--num-subbuf={count}', 'ring')
        self.lttng('enable-event', '--userspace', '--channel=ring', EVENTS)
        self.lttng('start')

    def wait_for_daemon(self):
        for _ in range(100):
            try:
                self.lttng('list')
                return
            except Broken as error:
                why = error
            if self.daemon.poll() is not None:
                log = pathlib.Path(self.home, 'sessiond.log').read_text().strip()
                raise Broken(f'lttng-sessiond does not start: {log[-300:] or "it said nothing"}')
            time.sleep(0.1)
        raise Broken(f'lttng-sessiond does not answer: {why}')

    def measure(self, repeats):
        return self.run(self.program, str(repeats))[0].splitlines()

    def close(self):
        """Ends the daemon, and removes what LTTng leaves in shared memory for ever."""
        if self.daemon in self.programs.live:
            self.programs.end(self.daemon, 20)
        for path in LEFT_BEHIND:
            if path not in self.left_before:
                path.unlink(missing_ok=True)

    def finish(self):
        """Takes the snapshot; (events in it, bytes of it)."""
        self.lttng('stop')
        self.lttng('snapshot', 'record')
        bytes_ = sum(f.stat().st_size for f in self.output_folder.rglob('ring_*') if f.is_file())
        out, _ = self.run('babeltrace2', self.output_folder, '--component=sink.utils.counter',
                          '--params=step=+0')
        found = re.findall(r'(\d+) Event messages', out)
        self.lttng('destroy', SESSION)
        self.close()
        if not found or int(found[-1]) == 0:
            raise Broken('the LTTng snapshot holds no events')
        return int(found[-1]), bytes_
