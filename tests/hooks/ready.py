#!/usr/bin/env python3
"""What a wait found ready is recorded one by one, all at the time of the unpark."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from libresult import check  # noqa: E402

BUILD = os.environ['TACHO_BUILD']
BIN = os.environ['TACHO_BIN']
PRELOAD = BUILD + '/src/hooks/libtacho-preload.so'
PROGRAM = '''
import os, select
loop = select.epoll()
loop.register(os.eventfd(0), select.EPOLLIN)
for _ in range(20):
    r, w = os.pipe()
    os.write(w, b"x")
    loop.register(r, select.EPOLLIN)
for _ in range(500):
    assert len(loop.poll(1)) == 20
'''


folder = tempfile.mkdtemp(prefix='tacho-ready-', dir='/dev/shm')
try:
    env = dict(os.environ, TACHO_BOX_DIR=folder, TACHO_KEEP_BOX='1', TACHO_SAMPLE_HZ='0')
    subprocess.run([sys.executable, '-c', PROGRAM], env=dict(env, LD_PRELOAD=PRELOAD), check=True,
                   timeout=60)
    boxes = [f'{folder}/{f}' for f in os.listdir(folder)]
    out = subprocess.run([BIN, 'cat', '--json', *boxes], env=env, capture_output=True, text=True,
                         timeout=60)
    told = subprocess.run([BIN, 'info', '--json', *boxes], env=env, capture_output=True, text=True,
                          timeout=60)
    events = [json.loads(line) for line in out.stdout.splitlines()]
finally:
    shutil.rmtree(folder)

unpark, ready, apart, late, unparks = None, 0, 0, 0, 0
for e in events:
    if e['type'] == 'unpark':
        unpark = int(e['ns'])
        unparks += e['ready'] == 20
    elif e['type'] == 'ready':
        ready += 1
        apart += int(e['ns']) != unpark
        late += int(e['ns']) < unpark
check('each wait is there', unparks == 500, f'{unparks} of 500')
check('each descriptor is there', ready == 500 * 20, f'{ready} of 10000')
# Where a new chunk begins among them, what is in it cannot be older than the chunk.
check('they are of the time of the unpark', apart <= 100 and not late, f'{apart} are not')
definitions = json.loads(told.stdout)['processes'][0]['definitions']
check('what a program wakes itself with is known', definitions.get('descriptor') == 1, definitions)
