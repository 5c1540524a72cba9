"""Daemons that no other test names: how each is started, and how it is asked."""
import os
import socket
import time

from libservers import ROOT, Server, program
from libwait import PATIENCE

QUESTION = bytes.fromhex('abcd01000001000000000000') + b'\4test\5local\0\0\1\0\1'
USER = 'root' if ROOT else ''


class Asked(Server):
    """One that is asked now and then, and answers something."""

    def ask(self):
        with socket.create_connection(('127.0.0.1', self.port), timeout=PATIENCE) as s:
            s.sendall(self.request)
            return s.recv(4096)

    def load(self, enter, seconds, rate, connections):
        """How often it answered, and what the slowest answer took, in ns."""
        right, longest, end = 0, 0, time.monotonic() + seconds
        while time.monotonic() < end:
            begin = time.monotonic()
            right += bool(self.ask())
            longest = max(longest, time.monotonic() - begin)
            time.sleep(1 / rate)
        return right, 1e9 * longest


class AskedByUdp(Asked):
    request = QUESTION

    def ask(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(1)
            s.connect(('127.0.0.1', self.port))
            try:
                s.send(self.request)
                return s.recv(4096)
            except OSError:
                return b''

    def listens(self):
        return bool(self.ask())


class Beanstalkd(Asked):
    request = b'stats\r\n'

    def argv(self):
        return [program('beanstalkd'), '-l', '127.0.0.1', '-p', str(self.port)]


class Dnsmasq(AskedByUdp):
    def argv(self):
        return [program('dnsmasq'), '-k', '--no-resolv', '--no-hosts', '-p', str(self.port),
                '--listen-address=127.0.0.1', '--bind-interfaces', '--address=/test.local/10.1.2.3',
                '--pid-file=', *(['-u', 'root'] if ROOT else [])]


class Gearmand(Asked):
    request = b'version\n'

    def argv(self):
        return [program('gearmand'), '-L', '127.0.0.1', '-p', str(self.port), '-l', 'stderr',
                *(['-u', 'root'] if ROOT else [])]


class Knotd(AskedByUdp):
    def argv(self):
        os.makedirs(self.path('run'), exist_ok=True)
        zone = self.file('zone', '$ORIGIN local.\n$TTL 60\n@ IN SOA a a 1 1 1 1 1\n@ IN NS a\n'
                         'a IN A 10.0.0.1\ntest IN A 10.1.2.3\n')
        conf = f'''server:
  listen: 127.0.0.1@{self.port}
  rundir: {self.path('run')}
  {'user: root' if ROOT else ''}
database:
  storage: {self.path('run')}
zone:
  - domain: local
    file: {zone}
'''
        return [program('knotd'), '-c', self.file('conf', conf)]


class Lighttpd(Asked):
    request = b'GET /page HTTP/1.0\r\n\r\n'

    def argv(self):
        os.makedirs(self.path('www'), exist_ok=True)
        self.file('www/page', 'hello')
        conf = f'''server.document-root="{self.path('www')}"
server.port={self.port}
server.bind="127.0.0.1"
'''
        return [program('lighttpd'), '-D', '-f', self.file('conf', conf)]


class Mosquitto(Asked):
    request = bytes.fromhex('100c00044d51545404020000') + b'\0\0'

    def argv(self):
        conf = f'listener {self.port} 127.0.0.1\nallow_anonymous true\n' + \
            (f'user {USER}\n' if USER else '')
        return [program('mosquitto'), '-c', self.file('conf', conf)]


class Ngircd(Asked):
    request = b'NICK a\r\nUSER a a a a\r\n'

    def argv(self):
        conf = f'''[Global]
Name=irc.test.local
Info=x
Listen=127.0.0.1
Ports={self.port}
{'ServerUID=0' if ROOT else ''}
{'ServerGID=0' if ROOT else ''}
[Limits]
MaxConnectionsIP=0
[Options]
DNS=no
Ident=no
PAM=no
'''
        return [program('ngircd'), '-n', '-f', self.file('conf', conf)]


class Nsd(AskedByUdp):
    def argv(self):
        zone = self.file('zone', '$ORIGIN local.\n$TTL 60\n@ IN SOA a a 1 1 1 1 1\n@ IN NS a\n'
                         'a IN A 10.0.0.1\ntest IN A 10.1.2.3\n')
        conf = f'''server:
 ip-address: 127.0.0.1@{self.port}
 username: ""
 chroot: ""
 zonesdir: "{self.folder}"
 pidfile: ""
 database: ""
 xfrdfile: ""
 zonelistfile: "{self.path('list')}"
remote-control:
 control-enable: no
zone:
 name: "local"
 zonefile: "{os.path.basename(zone)}"
'''
        return [program('nsd'), '-d', '-c', self.file('conf', conf)]


class Rsyncd(Asked):
    request = b'@RSYNCD: 31.0\n#list\n'

    def argv(self):
        conf = self.file('conf', f'[files]\npath={self.folder}\n')
        return [program('rsync'), '--daemon', '--no-detach', f'--port={self.port}',
                '--address=127.0.0.1', f'--config={conf}']


class Stunnel(Asked):
    """In front of itself: the answer is that nobody is there."""
    request = b'x'

    def argv(self):
        conf = f'''foreground=yes
pid=
[x]
client=yes
accept=127.0.0.1:{self.port}
connect=127.0.0.1:1
'''
        return [program('stunnel4'), self.file('conf', conf)]

    def ask(self):
        try:
            return super().ask() or b'closed'
        except ConnectionError:
            return b'closed'


class Tinyproxy(Asked):
    request = b'GET http://127.0.0.1:1/ HTTP/1.0\r\n\r\n'

    def argv(self):
        conf = f'Port {self.port}\nListen 127.0.0.1\nTimeout 10\nAllow 127.0.0.1\n'
        return [program('tinyproxy'), '-d', '-c', self.file('conf', conf)]


class Varnishd(Asked):
    request = b'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'

    def argv(self):
        return [program('varnishd'), '-F', '-a', f'127.0.0.1:{self.port}', '-b', '127.0.0.1:1', '-n',
                self.path('varnish'), '-s', 'malloc,4m']


DAEMONS = {'beanstalkd': Beanstalkd, 'dnsmasq': Dnsmasq, 'gearmand': Gearmand, 'knotd': Knotd,
           'lighttpd': Lighttpd, 'mosquitto': Mosquitto, 'ngircd': Ngircd, 'nsd': Nsd,
           'rsync': Rsyncd, 'stunnel4': Stunnel, 'tinyproxy': Tinyproxy, 'varnishd': Varnishd}
