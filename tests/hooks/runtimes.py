#!/usr/bin/env python3
"""Runtimes that handle fatal signals themselves keep what they do: node, Python's faulthandler and
sanitizers print the same and end in the same way with the hooks, and what they survive is no
crash."""
import json
import os
import re
import shutil
import subprocess
import tempfile

from libhooks import BIN, box_folder, check, finish, skip

CRASHING = r'''
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int shared;
static void *loop(void *arg)
{
	struct epoll_event event;
	int fd = epoll_create1(0);

	for (int i = 0; i < 200; i++) {
		epoll_wait(fd, &event, 1, i % 2);
		pthread_mutex_lock(&mutex);
		shared++;
		pthread_mutex_unlock(&mutex);
	}
	return arg;
}
int main(int argc, char **argv)
{
	volatile char *p = malloc(8);
	struct epoll_event event;
	int fd = epoll_create1(0);

	epoll_wait(fd, &event, 1, 1);
	epoll_wait(fd, &event, 1, 1);
	if (argv[1][0] == 'n')
		*(volatile int *)(p - p) = argc;
	else if (argv[1][0] == 'h')
		p[9] = 1;
	else if (argv[1][0] == 't') {
		pthread_t threads[4];

		for (int i = 0; i < 4; i++)
			pthread_create(&threads[i], NULL, loop, NULL);
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
	} else
		abort();
	return 0;
}
'''
# (module (memory 1) (func (export "f") (param i32) (result i32) local.get 0 i32.load8_u))
TRAPS = '''const m = new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array([0, 97, 115, 109,
1, 0, 0, 0, 1, 6, 1, 96, 1, 127, 1, 127, 3, 2, 1, 0, 5, 3, 1, 0, 1, 7, 5, 1, 1, 102, 0, 0, 10, 9, 1, 7,
0, 32, 0, 45, 0, 0, 11])));
let n = 0;
for (let i = 0; i < 2000; i++)
    try { m.exports.f(70000 + i * 64); } catch (e) { n++; }
console.log('traps', n);'''
PYTHON = '/usr/bin/python3'
# What runs, and the signal of the crash that is noted, or None.
NODE = {
    'node: abort': ('console.log(1); process.abort()', 'SIGABRT'),
    'node: a signal that is sent': ("console.log(1); process.kill(process.pid, 'SIGSEGV'); "
                                    'setTimeout(() => {}, 60000)', 'SIGSEGV'),
    'node: traps of WebAssembly': (TRAPS, None),
    'node: an overflow of its stack': ('let n = 0; function f() { n++; f() }; '
                                       'try { f() } catch (e) { console.log(e.name) }', None),
}
# With a loop, so that there is a box.
WAITS = 'import ctypes, faulthandler, os, select, signal; p = select.epoll(); p.poll(0); p.poll(0); '
PYTHONS = {
    'a fault': ('ctypes.string_at(0)', 'SIGSEGV'),
    'abort': ('os.abort()', 'SIGABRT'),
    'a division': ('faulthandler._sigfpe()', 'SIGFPE'),
    'what signals do': ('print([signal.getsignal(s) for s in (4, 5, 6, 7, 8, 11, 31)])', None),
}
SANITIZERS = [
    ('AddressSanitizer', ['clang', '-fsanitize=address'], (('null', None), ('heap', None), ('abort', 'SIGABRT'),
                                                           ('threads', None))),
    # What its threads do in the box is no race of theirs.
    ('ThreadSanitizer', ['gcc', '-fsanitize=thread'], (('null', None), ('abort', 'SIGABRT'),
                                                       ('threads', None))),
]


def plain(text):
    """Without what differs from run to run."""
    text = re.sub(r'0x[0-9a-f]+|/tmp/[^ ]*', 'N', text)
    return re.sub(r'\b(T?)\d{2,}\b', r'\1N', text)


def run(argv, place, recorded):
    """Status, output and whether there is a core; the crashes that were noted."""
    folder = tempfile.mkdtemp(dir=place)
    trace = os.path.join(folder, 'out.tacho')
    under = [BIN, 'run', '-q', '-o', trace, '--'] if recorded else []
    with box_folder() as boxes:
        p = subprocess.run(['bash', '-c', 'ulimit -c unlimited; exec "$@"', 'x', *under, *argv],
                           cwd=folder, capture_output=True, text=True, errors='replace',
                           timeout=120, env=dict(os.environ, TACHO_BOX_DIR=boxes))
    crashes = []
    if recorded and os.path.exists(trace):
        info = subprocess.run([BIN, 'info', '--json', trace], capture_output=True, text=True)
        crashes = [c['signal'] for c in json.loads(info.stdout)['processes'][0]['crashes']]
    status = p.returncode if p.returncode >= 0 else 128 - p.returncode
    core = any(name.startswith('core') for name in os.listdir(folder))
    shutil.rmtree(folder)
    return (status, plain(p.stdout), plain(p.stderr), core), crashes


def compare(name, argv, noted, place):
    without, _ = run(argv, place, False)
    recorded, crashes = run(argv, place, True)
    check(f'{name}: all is the same', recorded == without, f'{recorded}, without us {without}')
    check(f'{name}: {noted or "no crash"} is noted', crashes == ([noted] if noted else []), crashes)


def main(place):
    if shutil.which('node'):
        for name, (code, noted) in NODE.items():
            compare(name, ['node', '-e', code], noted, place)
    else:
        skip('node', 'it is not here')
    for name, (code, noted) in PYTHONS.items():
        for option in ([], ['-X', 'faulthandler']):
            # Nothing tells how its handler is set.
            if not noted and option:
                continue
            compare(f'Python: {name}' + (', with a handler' if option else ''),
                    [PYTHON, *option, '-c', WAITS + code], noted, place)
    source, program = os.path.join(place, 'crashing.c'), os.path.join(place, 'crashing')
    with open(source, 'w') as f:
        f.write(CRASHING)
    for name, compiler, cases in SANITIZERS:
        if subprocess.run([*compiler, '-w', '-g', '-o', program, source],
                          capture_output=True).returncode:
            skip(name, f'{compiler[0]} does not build with it here')
            continue
        for what, noted in cases:
            compare(f'{name}: {what}', [program, what], noted, place)


with tempfile.TemporaryDirectory(prefix='tacho-runtimes-') as folder_:
    main(folder_)
finish()
