"""A memory cgroup of one's own, of whichever version there is."""
import ctypes
import os
import tempfile

CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 0x40000


def mounts():
    with open('/proc/mounts') as f:
        return [line.split()[:4] for line in f]


def mounted():
    """A cgroup2 in a mount namespace of this process's own; raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)

    def call(function, *arguments):
        if function(*arguments):
            raise OSError(ctypes.get_errno(), f'{function.__name__}: '
                          + os.strerror(ctypes.get_errno()))
    call(libc.unshare, CLONE_NEWNS)
    call(libc.mount, None, b'/', None, MS_REC | MS_PRIVATE, None)
    where = tempfile.mkdtemp(prefix='tacho-cgroup-')
    try:
        call(libc.mount, b'none', where.encode(), b'cgroup2', 0, None)
    except OSError:
        os.rmdir(where)
        raise
    return where


def write(path, value):
    with open(path, 'w') as f:
        f.write(str(value))


class MemoryGroup:
    """A group whose processes may have `limit` bytes. Raises OSError where that can't be."""

    def __init__(self, limit):
        self.old, root = self.find()
        self.path = os.path.join(root, f'tacho-test-{os.getpid()}')
        os.mkdir(self.path)
        try:
            if self.old:
                write(self.path + '/memory.limit_in_bytes', limit)
                self.optional('memory.memsw.limit_in_bytes', limit)
            else:
                write(self.path + '/memory.max', limit)
                self.optional('memory.swap.max', 0)
        except OSError:
            self.end()
            raise

    @staticmethod
    def find():
        """(whether of version 1, its root)"""
        found = mounts()
        for _, where, kind, options in found:
            if kind == 'cgroup' and 'memory' in options.split(','):
                return True, where
        roots = [where for _, where, kind, _ in found if kind == 'cgroup2']
        for root in roots or [mounted()]:
            with open(root + '/cgroup.controllers') as f:
                if 'memory' not in f.read().split():
                    continue
            with open(root + '/cgroup.subtree_control') as f:
                if 'memory' not in f.read().split():
                    write(root + '/cgroup.subtree_control', '+memory')
            return False, root
        raise OSError('no cgroup with a memory controller')

    def optional(self, name, value):
        path = os.path.join(self.path, name)
        if os.path.exists(path):
            write(path, value)

    def kills(self):
        with open(self.path + ('/memory.oom_control' if self.old else '/memory.events')) as f:
            return next(int(line.split()[1]) for line in f if line.startswith('oom_kill '))

    def before(self):
        """What a command line begins with to be in the group."""
        return ['sh', '-c', f'echo $$ >"{self.path}/cgroup.procs" && exec "$@"', 'sh']

    def end(self):
        try:
            os.rmdir(self.path)
        except OSError:
            pass
