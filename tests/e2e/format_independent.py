#!/usr/bin/env python3
"""Every kind of trace file, read by tacho and by the reader that was written from
docs/format.md alone: both must say the same of every event, name, thread and fact."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import libcolumns
import libformat
from libcontainer import CHUNK, EVENTS, Trace
from libformat import check, difference, first_difference, tacho
from librecords import Bad, Record

BUILD = os.environ.get('TACHO_BUILD', '')
EXAMPLES = os.environ.get('TACHO_EXAMPLES', BUILD + '/examples')
types = set()     # of records that were compared
encodings = set()  # (type of block, encoding)
kept = []


def compare(name, path):
    try:
        trace = Trace(pathlib.Path(path).read_bytes())
    except (OSError, Bad) as error:
        check(name, False, error)
        return None
    check(f'{name}: nothing is wrong with the file', not trace.problems, trace.problems)
    events = libformat.Json(trace).events()
    why = difference(events, libformat.cat(path))
    check(f'{name}: the same {"events" if events else "(no) events"}', events and not why, why)
    why = first_difference(libformat.info(trace), libformat.tacho_info(path))
    check(f'{name}: the same process, threads, losses and incidents', not why, why)
    types.update(e[3].type for e in trace.events() if isinstance(e[3], Record))
    encodings.update((b.type, b.encoding) for b in trace.blocks)
    return trace


class Recorded:
    """A recorded program that is ended in any case."""

    def __init__(self, folder, argv, env):
        self.folder = folder
        self.boxes = tempfile.mkdtemp(prefix='tacho-test-', dir='/dev/shm')
        kept.append(self)
        self.env = dict(os.environ, TACHO_BOX_DIR=self.boxes, **env)
        self.process = subprocess.Popen(argv, env=self.env, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, cwd=folder)

    def dump(self, name):
        path = f'{self.folder}/{name}.tacho'
        p = subprocess.run([os.environ['TACHO_BIN'], 'dump', str(self.process.pid), '-o', path],
                           env=self.env, capture_output=True, text=True, timeout=60)
        if p.returncode:
            check(f'{name}: tacho dump', False, p.stderr)
        return path

    def recover(self, name):
        folder = tempfile.mkdtemp(dir=self.folder)
        p = subprocess.run([os.environ['TACHO_BIN'], 'recover', '-o', folder], env=self.env,
                           capture_output=True, text=True, timeout=60)
        files = list(pathlib.Path(folder).glob('*.tacho'))
        if len(files) != 1:
            check(f'{name}: tacho recover', False, f'{files}: {p.stderr}')
            return None
        return files[0]

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        shutil.rmtree(self.boxes, ignore_errors=True)


def demo(folder):
    r = Recorded(folder, [EXAMPLES + '/tasks'], {})
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:  # until something is there to be read
        boxes = list(pathlib.Path(r.boxes).glob('*.box'))
        if boxes and tacho('cat', boxes[0], '--limit', '400').stdout.count('\n') == 400:
            break
        time.sleep(0.05)
    compare('the demo, running', r.dump('running'))
    r.process.send_signal(signal.SIGSTOP)
    compare('the demo, stopped', r.dump('stopped'))
    r.process.kill()
    r.process.wait()
    compare('the demo, killed', r.recover('killed'))
    r.end()


def program(folder, name, rounds, threads, expect=None, **env):
    """format_program in all kinds of files that its window can be taken as."""
    snapshot, crash = f'{folder}/{name}-snapshot.tacho', f'{folder}/{name}-crash.tacho'
    r = Recorded(folder, [BUILD + '/tests/e2e/format_program', str(rounds), str(threads), snapshot],
                 dict(env, TACHO_CRASH_FILE=crash))
    if r.process.stdout.readline() != b'ready\n':
        check(f'{name}: the program runs', False, f'exit {r.process.wait()}')
        return
    traces = [compare(f'{name}, snapshot', snapshot),
              compare(f'{name}, dump', r.dump(f'{name}-dump'))]
    r.process.stdin.write(b'\n')
    r.process.stdin.flush()
    r.process.wait(timeout=60)
    traces += [compare(f'{name}, crash file', crash),
               compare(f'{name}, recovered', r.recover(f'{name}-recovered'))]
    r.end()
    same_records(name, traces)
    if expect:
        for kind, trace in zip(('snapshot', 'dump', 'crash file', 'recovered'), traces):
            expect(f'{name}, {kind}', trace)


def records_of(trace):
    """By stream what was recorded, without what depends on the anchors that were at hand."""
    out = {}
    for ns, thread, stream, r in trace.events():
        if isinstance(r, Record):
            words = r.words[:2] + [0, 0] + r.words[4:] if r.type == 0xC5 else r.words
            out.setdefault((thread, stream), []).append((r.type, r.arg, words, ns))
    return out


def same_records(name, traces):
    """The program recorded nothing between one file and the next."""
    if None in traces:
        return
    all_ = [records_of(t) for t in traces]
    for kind, other in zip(('dump', 'crash file', 'recovered trace'), all_[1:]):
        same = {k: [r[:3] for r in v] for k, v in other.items()} == \
            {k: [r[:3] for r in v] for k, v in all_[0].items()}
        check(f'{name}: {kind} and snapshot hold the same records', same, 'they do not')
        far = max((abs(a[3] - b[3]) for k in all_[0] for a, b in zip(all_[0][k], other.get(k, []))),
                  default=0)
        check(f'{name}: {kind} and snapshot agree on times within 10 ms', far < 10**7,
              f'{far} ns apart')


def has_holes(name, trace):
    """Two threads recorded as much as each other, which is more than the box holds."""
    lost = trace and trace.losses[6]
    there = trace and sum(len(s.records) for s in trace.stretches)
    most = trace and max(s.prior + len(s.records) for s in trace.stretches)
    check(f'{name}: records were overwritten', lost, 'none was')
    check(f'{name}: those are what is missing', trace and there < 2 * most <= there + lost,
          f'{there} records, {lost} overwritten; one thread recorded {most}')


def has_counts(name, trace):
    found = trace and {e[3].type for e in trace.events() if isinstance(e[3], Record)}
    check(f'{name}: short polls were counted', found and 0xC5 in found, 'there is no POLL_HIST')


def has_threads(name, trace):
    live = trace and sum(t['state'] == 1 for t in trace.threads)
    check(f'{name}: all threads are there', live and live >= 1200, f'{live} of 1200 are live')


def main():
    folder = tempfile.mkdtemp(prefix='tacho-test-')
    try:
        demo(folder)
        program(folder, 'all types', 120, 3)
        program(folder, 'monotonic clock', 40, 1, TACHO_CLOCK='monotonic')
        program(folder, 'poll threshold', 150, 2, has_counts, TACHO_POLL_THRESHOLD='1s')
        program(folder, 'small box', 2500, 2, has_holes, TACHO_MAX_BYTES='1M')
        program(folder, 'many threads', 10, 1200, has_threads, TACHO_MAX_BYTES='16M')
    finally:
        for r in kept:
            r.end()
        shutil.rmtree(folder, ignore_errors=True)
    known = set(libformat.API)
    check('records of every type were compared', known <= types,
          f'none of {[hex(t) for t in sorted(known - types)]}')
    check('EVENTS in zstd and CHUNK in plain were compared',
          {(EVENTS, 1), (CHUNK, 0)} <= encodings, encodings)
    check('columns of every transform were compared', libcolumns.transforms >= set(range(5)),
          libcolumns.transforms)
    check('columns of bits and of several bytes were compared',
          libcolumns.widths >= {0, 1, 2, 0x81, 0x82, 0x84}, libcolumns.widths)
    return bool(libformat.failures)


if __name__ == '__main__':
    sys.exit(main())
