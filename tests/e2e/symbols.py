#!/usr/bin/env python3
"""Functions, files and lines in traces: of C and C++, inlined ones too, of code that a program made
itself, and never of a file that is not the one that ran."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from libresult import check  # noqa: E402
from libwait import until  # noqa: E402

BUILD = os.environ['TACHO_BUILD']
BIN = os.environ['TACHO_BIN']
PRELOAD = BUILD + '/src/hooks/libtacho-preload.so'

CXX = r'''
#include <cstdio>
#include <ctime>
#include <sys/epoll.h>
#include <unistd.h>
static double cpu() {
	timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
volatile unsigned sink;
namespace shop {
template <typename T> struct Basket {
	__attribute__((always_inline)) void add(T n) {
		for (T i = 0; i < n; i++)
			sink += i;                              // the inlined line
	}
	__attribute__((noinline)) void fill(double end) {
		while (cpu() < end)
			add(200000);                            // the call line
	}
};
}
int main() {
	epoll_event event;
	int loop = epoll_create1(0);
	shop::Basket<int> basket;
	epoll_wait(loop, &event, 1, 1);
	basket.fill(cpu() + 0.5);
	epoll_wait(loop, &event, 1, 1);
}
'''

UNIT = r'''
#include <sys/epoll.h>
#include <time.h>
volatile unsigned sink;
static double cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
static __attribute__((noinline)) void burn(double end)
{
	while (cpu() < end)
		for (unsigned i = 0; i < 100000; i++)
			sink += i;
}
int main(void)
{
	struct epoll_event event;
	int loop = epoll_create1(0);

	epoll_wait(loop, &event, 1, 1);
	burn(cpu() + 0.3);
	return epoll_wait(loop, &event, 1, 1);
}
'''

JIT = r'''
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
	/* push rbp; mov rbp, rsp; loop: dec rdi; jnz loop; pop rbp; ret */
	static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x75, 0xfb,
					     0x5d, 0xc3};
	unsigned char *at = mmap(NULL, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct epoll_event event;
	int loop = epoll_create1(0);
	char path[64];
	FILE *map;

	memcpy(at, code, sizeof(code));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	fprintf(map, "garbage\n%lx %zx js:spin it\n", (long)at, sizeof(code));
	fclose(map);
	puts(path);
	epoll_wait(loop, &event, 1, 1);
	((void (*)(unsigned long))at)(1500000000ul);
	epoll_wait(loop, &event, 1, 1);
	return 0;
}
'''


def record(folder, program):
    """(box, output) of a program that was recorded until its end."""
    boxes = tempfile.mkdtemp(dir=folder)
    env = dict(os.environ, LD_PRELOAD=PRELOAD, TACHO_BOX_DIR=boxes, TACHO_KEEP_BOX='1')
    out = subprocess.run([program], env=env, capture_output=True, text=True, timeout=60)
    return next(pathlib.Path(boxes).glob('*.box')), out.stdout


def samples(path):
    out = subprocess.run([BIN, 'cat', '--json', '--type', 'sample', path], capture_output=True,
                         text=True, timeout=60)
    return [json.loads(line) for line in out.stdout.splitlines()]


def dump(box, path, *options):
    return subprocess.run([BIN, 'dump', box, '-o', path, '--force', *options],
                          capture_output=True, text=True, timeout=60)


def line_of(source, mark):
    return next(i for i, text in enumerate(source.splitlines(), 1) if mark in text)


def inlined(folder):
    source, program, trace = folder + '/shop.cc', folder + '/shop', folder + '/shop.tacho'
    pathlib.Path(source).write_text(CXX)
    subprocess.run(['g++', '-O2', '-g', '-o', program, source], check=True)
    box, _ = record(folder, program)
    p = dump(box, trace)
    check('dump with symbols', p.returncode == 0, p.stderr)
    found = samples(trace)
    inner = [s['at']['frames'][0] for s in found
             if s['at']['frames'][0].get('function') == 'shop::Basket<int>::add']
    check('most samples are in the inlined function, by its name in C++',
          len(inner) > len(found) / 2 > 5, f'{len(inner)} of {len(found)}: {found[:1]}')
    if inner:
        frame = inner[0]
        check('with its file and line', frame['file'].endswith('shop.cc') and
              abs(frame['line'] - line_of(CXX, 'the inlined line')) <= 1, frame)
        outer = frame.get('inlined_into', [{}])[0]
        check('and what it was inlined into, with the line of the call',
              outer.get('function') == 'shop::Basket<int>::fill' and
              outer.get('line') == line_of(CXX, 'the call line'), outer)
    stack = [f.get('function') for f in found[-1]['at']['frames']]
    check('the callers are there', 'main' in stack, stack)
    text = subprocess.run([BIN, 'cat', trace], capture_output=True, text=True).stdout
    check('text has function, file and line', f'shop.cc:{line_of(CXX, "the call line")}' in text,
          text[:500])

    p = dump(box, trace, '--no-symbols')
    found = samples(trace)
    check('--no-symbols leaves addresses', p.returncode == 0 and found and
          not any('function' in f for s in found for f in s['at']['frames']), p.stderr)

    debug = folder + '/.debug/shop.debug'
    os.mkdir(folder + '/.debug')
    subprocess.run(['objcopy', '--only-keep-debug', program, debug], check=True)
    subprocess.run(['strip', program], check=True)
    subprocess.run(['objcopy', '--add-gnu-debuglink=' + debug, program], check=True)
    dump(box, trace)
    names = {f.get('function') for s in samples(trace) for f in s['at']['frames']}
    check('a debug file is found by the link to it', 'shop::Basket<int>::add' in names, names)
    other = folder + '/other'
    subprocess.run(['g++', '-O2', '-g', '-Wl,--build-id=0x' + 20 * '12', '-o', other, source],
                   check=True)
    subprocess.run(['objcopy', '--only-keep-debug', other, debug], check=True)
    dump(box, trace)
    names = {f.get('function') for s in samples(trace) for f in s['at']['frames']
             if f['module'] == program}
    check('unless it is of another build', names == {None}, names)
    os.unlink(debug)
    dump(box, trace)
    names = {f.get('function') for s in samples(trace) for f in s['at']['frames']
             if f['module'] == program}
    check('a stripped program names nothing of its own, and nothing wrong', names == {None}, names)
    pathlib.Path(source).write_text(CXX.replace('sink += i', 'sink -= i'))
    subprocess.run(['g++', '-O2', '-g', '-o', program, source], check=True)
    dump(box, trace)
    wrong = [f for s in samples(trace) for f in s['at']['frames']
             if f['module'] == program and 'function' in f]
    check('a program that was built anew is not used', not wrong, wrong[:1])
    os.unlink(program)
    os.mkfifo(program)
    check('nor is what is no file', dump(box, trace).returncode == 0)


def alive(folder):
    """A process that is named by its number is answered for like a dump of it, names included."""
    source, program, trace = folder + '/alive.c', folder + '/alive', folder + '/alive.tacho'
    pathlib.Path(source).write_text(UNIT.replace('return epoll_wait(loop, &event, 1, 1);',
                                                 'for (;;) { epoll_wait(loop, &event, 1, 1); '
                                                 'burn(cpu() + 0.05); }'))
    subprocess.run(['gcc', '-O2', '-g', '-o', program, source], check=True)
    boxes = tempfile.mkdtemp(dir=folder)
    env = dict(os.environ, TACHO_BOX_DIR=boxes)
    p = subprocess.Popen([program], env=dict(env, LD_PRELOAD=PRELOAD))
    try:
        pid = str(p.pid)
        check('a process records', until(lambda: os.listdir(boxes) and len(samples(
            next(pathlib.Path(boxes).glob('*.box')))) > 60))
        running = subprocess.run([BIN, 'report', pid], env=env, capture_output=True, text=True)
        check('the report of a process that runs has names in place of addresses',
              running.returncode == 0 and 'alive+0x' not in running.stdout, running.stdout[:500])
        p.kill()
        p.wait()
        done = subprocess.run([BIN, 'dump', pid, '-o', trace], env=env, capture_output=True, text=True)
        check('its box is dumped', done.returncode == 0, done.stderr)
        # What a report names first depends on how busy the machine was; what samples name does not.
        for command, more, always in (('report', [], False), ('blame', [], False),
                                      ('flame', [], True), ('cat', ['--json'], True),
                                      ('export', ['--format', 'jsonl'], True),
                                      ('sql', ['SELECT function, count(*) FROM frames GROUP BY 1'], True)):
            here, there = (subprocess.run([BIN, command, which, *more], env=env, text=True,
                                          capture_output=True).stdout for which in (pid, trace))
            check(f'{command} names functions of a process as of the dump of it',
                  here and re.findall(r'\bburn\b', here) == re.findall(r'\bburn\b', there) and
                  ('burn' in here or not always) and 'alive+0x' not in here and '[alive]' not in here,
                  [here[:300], there[:300]])
            if command in ('flame', 'sql'):
                check(f'{command} says the same of both', here == there, [here[:300], there[:300]])
    finally:
        p.kill()
        p.wait()


def without_table(folder):
    """clang writes no table of which unit has which address: they are asked one by one."""
    program, trace = folder + '/units', folder + '/units.tacho'
    parts = {'first.c': 'int unused(int n) { return n + 1; }\n', 'second.c': UNIT}
    for name, text in parts.items():
        pathlib.Path(folder, name).write_text(text)
    subprocess.run(['clang', '-O1', '-g', '-o', program, *(f'{folder}/{name}' for name in parts)],
                   check=True)
    tables = subprocess.run(['readelf', '-SW', program], capture_output=True, text=True).stdout
    box, _ = record(folder, program)
    dump(box, trace)
    found = [s['at']['frames'][0] for s in samples(trace)]
    inner = [f for f in found if f.get('function') == 'burn' and f['line'] and
             f['file'].endswith('second.c')]
    check('without a table of units, most samples have function, file and line',
          '.debug_aranges' not in tables and len(inner) > len(found) / 2 > 5, found[:2])


def jit(folder):
    source, program, trace = folder + '/jit.c', folder + '/jit', folder + '/jit.tacho'
    if os.uname().machine != 'x86_64':
        print('skip code made by the program: the test makes code for x86-64')
        return
    pathlib.Path(source).write_text(JIT)
    subprocess.run(['gcc', '-O2', '-g', '-o', program, source], check=True)
    box, path = record(folder, program)
    path = path.strip()
    try:
        dump(box, trace)
        found = [[f.get('function') for f in s['at']['frames']] for s in samples(trace)]
        good = [s for s in found if s[:2] == ['js:spin it', 'main']]
        check('code that the program made has the name of its perf map, and its caller',
              len(good) > 0.9 * len(found) > 5, found[:2])
        os.chmod(path, 0o600)
        os.rename(path, path + '.real')
        os.symlink(path + '.real', path)
        dump(box, trace)
        check('a perf map that is a link is not followed',
              not any('js:spin it' in [f.get('function') for f in s['at']['frames']]
                      for s in samples(trace)))
    finally:
        for name in (path, path + '.real'):
            if os.path.lexists(name):
                os.unlink(name)


def main():
    folder = tempfile.mkdtemp(prefix='tacho-test-', dir='/dev/shm')
    probe = subprocess.run(['ldd', BIN], capture_output=True, text=True).stdout
    try:
        if 'libdw' not in probe:
            print('skip symbols: tacho was built without libdw')
            return 0
        inlined(folder)
        alive(folder)
        without_table(folder)
        jit(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
