"""Real daemons under normal load, with clients of our own. Each gives the traces it left."""
import glob
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import sys
import threading
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from libcases import LIMIT, Failed, Unavailable, undisturbed  # noqa: E402
from libwait import free_port  # noqa: E402

SECONDS = 2.0


def wait_for(port, process):
    end = time.monotonic() + LIMIT / 2
    while time.monotonic() < end:
        if process.poll() is not None:
            raise Failed(f'the daemon ended, status {process.returncode}: '
                         + process.stderr.read().decode(errors='replace')[-300:])
        try:
            return socket.create_connection(('127.0.0.1', port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
    raise Failed('the daemon does not listen')


def load(port, request, clients=4, pause=0.002):
    """Clients that ask, wait for an answer, and pause."""
    end = time.monotonic() + SECONDS
    served = []

    def client():
        count = 0
        with socket.create_connection(('127.0.0.1', port), timeout=LIMIT / 2) as s:
            while time.monotonic() < end:
                s.sendall(request)
                if not s.recv(65536):
                    break
                count += 1
                time.sleep(pause)
        served.append(count)
    threads = [threading.Thread(target=client) for _ in range(clients)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if len(served) < clients or sum(served) < 100:
        raise Failed(f'clients were served {served} times')


def daemon(situation, name, argv, port, work):
    """Starts it under tacho run, lets `work` load it, ends it; its traces."""
    out = tempfile.mkdtemp(prefix=name + '-', dir=situation.out)
    if situation.name == 'unprivileged':
        os.chown(out, 65534, 65534)
    process = subprocess.Popen(situation.command(out, argv), stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=out,
                               env=situation.environment(), preexec_fn=undisturbed)
    try:
        wait_for(port, process)
        work()
        process.send_signal(signal.SIGTERM)
        process.wait(LIMIT)
    except subprocess.TimeoutExpired:
        raise Failed('the daemon did not end') from None
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stderr.close()
    return sorted(glob.glob(os.path.join(out, '*.tacho')))


def program(name):
    path = shutil.which(name, path=os.environ.get('PATH', '') + ':/usr/sbin:/usr/local/sbin')
    if not path:
        raise Unavailable(f'there is no {name}')
    return path


def redis(situation):
    port = free_port()
    bench = program('redis-benchmark')

    def work():
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            done = subprocess.run([bench, '-p', str(port), '-c', '2', '-n', '5000', '-q', '-t',
                                   'set,get'], capture_output=True, timeout=LIMIT)
            if done.returncode:
                raise Failed('redis-benchmark failed')
    return daemon(situation, 'redis', [program('redis-server'), '--port', str(port), '--bind',
                                       '127.0.0.1', '--save', '', '--appendonly', 'no'],
                  port, work)


def memcached(situation):
    port = free_port()
    argv = [program('memcached'), '-l', '127.0.0.1', '-p', str(port), '-U', '0', '-t', '2']
    if os.geteuid() == 0 and situation.name != 'unprivileged':
        argv += ['-u', 'root']
    return daemon(situation, 'memcached', argv, port,
                  lambda: load(port, b'set a 0 0 5\r\nhello\r\n'))


NGINX = '''daemon off; pid {out}/nginx.pid; error_log {out}/error.log; worker_processes 1; {user}
events {{ worker_connections 64; }}
http {{ access_log off; client_body_temp_path {out}; proxy_temp_path {out}; fastcgi_temp_path {out};
uwsgi_temp_path {out}; scgi_temp_path {out}; keepalive_requests 100000;
server {{ listen 127.0.0.1:{port}; location / {{ return 200 "hello"; }} }} }}
'''


def nginx(situation):
    port = free_port()
    conf = os.path.join(situation.out, 'nginx.conf')
    root = os.geteuid() == 0 and situation.name != 'unprivileged'
    with open(conf, 'w', encoding='ascii') as f:
        f.write(NGINX.format(out=situation.out, port=port, user='user root;' if root else ''))
    os.chmod(conf, 0o644)
    return daemon(situation, 'nginx', [program('nginx'), '-e', situation.out + '/error.log', '-c',
                                       conf], port,
                  lambda: load(port, b'GET / HTTP/1.1\r\nHost: a\r\n\r\n'))


NODE = '''require('http').createServer((q, r) => r.end('hello')).listen(%d, '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
'''


def script(situation, name, text):
    path = os.path.join(situation.out, name)
    with open(path, 'w', encoding='ascii') as f:
        f.write(text)
    os.chmod(path, 0o644)
    return path


def node(situation):
    port = free_port()
    return daemon(situation, 'node', [program('node'), script(situation, 'server.js', NODE % port)],
                  port, lambda: load(port, b'GET / HTTP/1.1\r\nHost: a\r\n\r\n'))


ASYNCIO = '''import asyncio, signal
async def serve(r, w):
    while data := await r.readline():
        w.write(data)
        await w.drain()
    w.close()
async def main():
    end = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end.set)
    server = await asyncio.start_server(serve, '127.0.0.1', %d)
    await end.wait()
asyncio.run(main())
'''


def asyncio(situation):
    port = free_port()
    python = '/usr/bin/python3' if os.path.exists('/usr/bin/python3') else sys.executable
    return daemon(situation, 'asyncio', [python, script(situation, 'server.py', ASYNCIO % port)],
                  port, lambda: load(port, b'hello\n'))


ALL = [redis, memcached, nginx, node, asyncio]
