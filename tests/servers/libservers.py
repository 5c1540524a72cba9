"""Healthy servers: how each is started, what it is asked, and how it ends."""
import glob
import os
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..')]

from libwait import PATIENCE, free_port, until  # noqa: E402

BUILD = os.environ.get('TACHO_BUILD') or os.path.abspath(os.path.join(HERE, '..', '..', 'build'))
TACHO = os.environ.get('TACHO_BIN') or os.path.join(BUILD, 'src/cli/tacho')
ROOT = os.geteuid() == 0
THREADS = '2'
HTTP = b'GET /%s HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n'
LINE = b'x' * 16


class Unavailable(Exception):
    pass


class Failed(Exception):
    pass


def program(name):
    path = shutil.which(name, path=os.environ.get('PATH', '') + ':/usr/sbin:/usr/bin:/sbin')
    if not path:
        raise Unavailable(f'there is no {name}')
    return path


def own(name):
    path = os.path.join(BUILD, 'tests/servers', name)
    if not os.path.exists(path):
        raise Unavailable(f'{name} was not built')
    return path


def ask(port, request, keeps=True):
    """The answer, as long as something comes."""
    out = b''
    with socket.create_connection(('127.0.0.1', port), timeout=PATIENCE) as s:
        s.sendall(request)
        while True:
            data = s.recv(262144)
            out += data
            if not data:
                return out
            s.settimeout(0.05 if keeps else PATIENCE)
            try:
                s.recv(1, socket.MSG_PEEK)
            except TimeoutError:
                return out


class Server:
    """One of them, in a folder of its own. `connections`: with which it is saturated."""

    request = LINE
    keeps = True  # connections, after an answer
    connections = 128
    end_signal = signal.SIGTERM
    user = None  # whose it is, where root's it must not be

    def __init__(self, folder):
        self.folder = folder
        self.port = free_port()

    def become(self, enter):
        """In a new process: the cgroup, then the user."""
        if enter:
            enter()
        if self.user:
            who = pwd.getpwnam(self.user)
            os.setgroups([])
            os.setgid(who.pw_gid)
            os.setuid(who.pw_uid)

    def path(self, name):
        return os.path.join(self.folder, name)

    def file(self, name, text):
        with open(self.path(name), 'w', encoding='ascii') as f:
            f.write(text)
        return self.path(name)

    def argv(self):
        raise NotImplementedError

    def prepare(self):
        """Once it listens."""

    def listens(self):
        with socket.socket() as s:
            return s.connect_ex(('127.0.0.1', self.port)) == 0

    def load(self, enter, seconds, rate, connections):
        """What the client tells of its requests."""
        with open(self.path('request'), 'wb') as f:
            f.write(self.request)
        size = len(ask(self.port, self.request, self.keeps)) if self.keeps else 0
        argv = [own('servers-client'), str(self.port), self.path('request'), str(size),
                str(seconds), str(rate), str(connections)]
        done = subprocess.run(argv, capture_output=True, text=True, preexec_fn=enter,
                              timeout=seconds + PATIENCE)
        if done.returncode:
            raise Failed(f'the client failed: {done.stderr.strip()}')
        return done.stdout


class Memcached(Server):
    KEYS = 200
    request = b'get ' + b' '.join(b'k%d' % i for i in range(KEYS)) + b'\r\n'

    def argv(self):
        return [program('memcached'), '-l', '127.0.0.1', '-p', str(self.port), '-U', '0', '-t',
                THREADS, *(['-u', 'root'] if ROOT else [])]

    def prepare(self):
        ask(self.port, b''.join(b'set k%d 0 0 5\r\nvalue\r\n' % i for i in range(self.KEYS)))


class Redis(Server):
    request = b'SORT l ALPHA LIMIT 0 1\r\n'

    def argv(self):
        return [program('redis-server'), '--port', str(self.port), '--bind', '127.0.0.1', '--save',
                '', '--appendonly', 'no', '--dir', self.folder]

    def prepare(self):
        ask(self.port, b'RPUSH l ' + b' '.join(b'%d' % (i * 7 % 101) for i in range(100)) + b'\r\n')


class Nginx(Server):
    request = HTTP % b''
    CONFIGURATION = '''daemon off; pid {0}/pid; error_log {0}/error.log; worker_processes 2; {1}
events {{ worker_connections 512; }}
http {{ access_log off; client_body_temp_path {0}; proxy_temp_path {0}; fastcgi_temp_path {0};
uwsgi_temp_path {0}; scgi_temp_path {0}; keepalive_requests 100000000; gzip on;
server {{ listen 127.0.0.1:{2} reuseport; root {0}/www; }} }}
'''

    def argv(self):
        os.makedirs(self.path('www'), exist_ok=True)
        self.file('www/index.html', 'hello, world\n' * 3000)
        os.chmod(self.folder, 0o755)
        conf = self.file('conf', self.CONFIGURATION.format(
            self.folder, 'user root;' if ROOT else '', self.port))
        return [program('nginx'), '-e', self.path('error.log'), '-c', conf]


class Haproxy(Server):
    request = HTTP % b''
    CONFIGURATION = '''global
  nbthread 2
defaults
  mode http
  timeout connect 30s
  timeout client 30s
  timeout server 30s
frontend front
  bind 127.0.0.1:{front}
  default_backend back
backend back
  http-reuse always
  server one 127.0.0.1:{back}
frontend answers
  bind 127.0.0.1:{back}
  http-request set-header x-sum %[req.hdr(host){sums},hex]
  http-request return status 200 content-type text/plain string ok
'''

    def argv(self):
        conf = self.file('conf', self.CONFIGURATION.format(
            front=self.port, back=free_port(), sums=',sha2(512)' * 40))
        return [program('haproxy'), '-db', '-f', conf]


class PhpFpm(Server):
    keeps = False
    connections = 16
    CONFIGURATION = '''[global]
error_log = {0}/log
daemonize = no
[www]
listen = 127.0.0.1:{1}
{2}
pm = static
pm.max_children = 2
'''
    PAGE = '<?php $s = ""; for ($i = 0; $i < 2000; $i++) $s = md5($s . $i); echo $s;'

    def argv(self):
        found = sorted(glob.glob('/usr/sbin/php-fpm*'))
        if not found:
            raise Unavailable('there is no php-fpm')
        self.file('page.php', self.PAGE)
        self.request = self.record(1, struct.pack('>HB5x', 1, 0)) + self.record(4, b''.join(
            bytes([len(name), len(value)]) + name + value for name, value in (
                (b'SCRIPT_FILENAME', self.path('page.php').encode()), (b'REQUEST_METHOD', b'GET'),
                (b'SCRIPT_NAME', b'/page.php')))) + self.record(4, b'') + self.record(5, b'')
        conf = self.file('conf', self.CONFIGURATION.format(
            self.folder, self.port, 'user = root\ngroup = root' if ROOT else ''))
        return [found[-1], '-F', '-n', '-y', conf, *(['-R'] if ROOT else [])]

    @staticmethod
    def record(kind, content):
        """Of FastCGI."""
        return struct.pack('>BBHHBx', 1, kind, 1, len(content), 0) + content


class Postgres(Server):
    connections = 16
    end_signal = signal.SIGINT
    user = 'nobody' if ROOT else None

    def binary(self, name):
        found = sorted(glob.glob(f'/usr/lib/postgresql/*/bin/{name}'))
        if not found:
            raise Unavailable(f'there is no {name} of postgresql')
        return found[-1]

    def argv(self):
        data = self.path('data')
        if not os.path.exists(data):
            os.mkdir(data)
            os.chmod(self.folder, 0o777)
            if self.user:
                os.chown(data, pwd.getpwnam(self.user).pw_uid, -1)
            self.tool('initdb', '-D', data, '-A', 'trust', '-U', 'test', '--no-sync', '-E', 'UTF8',
                      '--locale=C')
        return [self.binary('postgres'), '-D', data, '-p', str(self.port), '-c',
                'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=']

    def tool(self, name, *options, enter=None):
        done = subprocess.run([self.binary(name), *options], capture_output=True, text=True,
                              timeout=2 * PATIENCE, cwd=self.folder,
                              preexec_fn=lambda: self.become(enter))
        if done.returncode:
            raise Failed(f'{name}: {done.stderr[-300:]}')
        return done.stdout

    def bench(self, *options, enter=None):
        return self.tool('pgbench', '-h', '127.0.0.1', '-p', str(self.port), '-U', 'test',
                         *options, 'postgres', enter=enter)

    def listens(self):
        return subprocess.run([self.binary('pg_isready'), '-q', '-h', '127.0.0.1', '-p',
                               str(self.port)], timeout=PATIENCE).returncode == 0

    def prepare(self):
        if not os.path.exists(self.path('filled')):
            self.bench('-i', '-q', '-s', '4')
            self.file('filled', '')

    def load(self, enter, seconds, rate, connections):
        for path in glob.glob(self.path('bench.*')):
            os.unlink(path)
        self.bench('-n', '-M', 'prepared', '-c', str(connections), '-T', str(round(seconds)), '-l',
                   '--log-prefix', self.path('bench'), *(['-R', str(rate)] if rate else []),
                   enter=enter)
        took = []  # client, transaction, us, ...
        for path in glob.glob(self.path('bench.*')):
            with open(path, encoding='ascii') as f:
                took += [1000 * int(line.split()[2]) for line in f]
        return told(sorted(took), seconds)


def told(took, seconds):
    """The same that servers-client tells."""
    n, least = len(took), took[len(took) // 20]
    waited = sum(t - least for t in took if t > least + 1000000)
    return (f'{{"answered": {n}, "failed": 0, "rate": {n / seconds}, "p50_ns": {took[n // 2]}, '
            f'"p99_ns": {took[n - 1 - n // 100]}, "max_ns": {took[-1]}, "waited_ns": {waited}}}')


class Tokio(Server):
    def argv(self):
        target = os.path.join(BUILD, 'tests/servers/tokio')
        done = subprocess.run(
            [program('cargo'), 'build', '--release', '--quiet', '--manifest-path',
             os.path.join(HERE, 'tokio/Cargo.toml'), '--target-dir', target], capture_output=True,
            text=True, timeout=10 * PATIENCE)
        if done.returncode:
            raise Unavailable(f'cargo could not build it: {done.stderr.strip()[-300:]}')
        return [os.path.join(target, 'release/servers-tokio'), str(self.port), THREADS]


class Asio(Server):
    def argv(self):
        return [own('servers-asio'), str(self.port), THREADS]


class Threads(Server):
    connections = 16

    def argv(self):
        return [own('servers-threads'), str(self.port)]


class Node(Server):
    request = HTTP % b'file'
    SCRIPT = '''const fs = require('fs');
require('http').createServer((request, response) => {
  fs.readFile(__filename, (error, data) => response.end(data));
}).listen(%d, '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
'''

    def argv(self):
        return [program('node'), self.file('server.js', self.SCRIPT % self.port)]


class Asyncio(Server):
    SCRIPT = '''import asyncio, signal
async def serve(reader, writer):
    while await reader.read(64):
        writer.write(b'%%010d\\n' %% (sum(range(3000)) %% 7))
        await writer.drain()
    writer.close()
async def main():
    end = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end.set)
    await asyncio.start_server(serve, '127.0.0.1', %d)
    await end.wait()
asyncio.run(main())
'''

    def argv(self):
        return [os.path.realpath(sys.executable),
                self.file('server.py', self.SCRIPT % self.port)]


SERVERS = {'memcached': Memcached, 'redis': Redis, 'nginx': Nginx, 'haproxy': Haproxy,
           'postgres': Postgres, 'php-fpm': PhpFpm, 'tokio': Tokio, 'asio': Asio, 'node': Node,
           'asyncio': Asyncio, 'threads': Threads}


class Running:
    """A server that runs, recorded into a file or plainly. A context: ends it."""

    def __init__(self, server, out, enter):
        self.server = server
        argv = server.argv()
        if out:
            argv = [TACHO, 'run', '-q', '-o', out, '--', *argv]
        self.log = open(server.path('log'), 'wb')
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log, cwd=server.folder,
                                        preexec_fn=lambda: server.become(enter))

    def __enter__(self):
        server = self.server
        if not until(lambda: server.listens() or self.process.poll() is not None) or \
                self.process.poll() is not None:
            self.__exit__()
            raise Failed(f'it did not start: {self.said()}')
        server.prepare()
        return self

    def said(self):
        with open(self.server.path('log'), encoding='utf-8', errors='replace') as f:
            return f.read()[-300:]

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(self.server.end_signal)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            for pid in [*family(self.process.pid)][::-1]:
                os.kill(pid, signal.SIGKILL)
            self.process.wait()
        self.log.close()
        # The port is free again.
        time.sleep(0.05)


def family(pid):
    yield pid
    for path in glob.glob(f'/proc/{pid}/task/*/children'):
        with open(path, encoding='ascii') as f:
            for child in f.read().split():
                yield from family(int(child))
