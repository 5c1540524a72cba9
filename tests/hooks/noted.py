#!/usr/bin/env python3
"""Crashes are noted in the box, and nothing else changes: what programs print, what their handlers
see, how they end, and what their cores say."""
import json
import os
import struct
import subprocess
import sys
import tempfile

from libhooks import BIN, BUILD, PRELOAD, box_folder, boxes_in, check, finish, skip

PROGRAM = os.path.join(BUILD, 'tests/hooks/hooks-noted_subject')
NT_PRSTATUS, NT_SIGINFO = 1, 0x53494749
X86 = os.uname().machine == 'x86_64'
FAULTS = ['segv', 'call', 'general', 'bus', 'ill', 'fpe', 'trap', 'abort', 'sys', 'queue']
SIGNALS = {'segv': 'SIGSEGV', 'call': 'SIGSEGV', 'general': 'SIGSEGV', 'bus': 'SIGBUS',
           'ill': 'SIGILL', 'fpe': 'SIGFPE', 'trap': 'SIGTRAP', 'abort': 'SIGABRT',
           'sys': 'SIGSYS', 'queue': 'SIGSEGV'}
# How the program prepares, its crash, and what is noted: None nothing, else (signal, function), or
# several of these.
CASES = [('plain', what, (SIGNALS[what], 'crash_' + what)) for what in FAULTS]
CASES += [('plain', str(number), (name, 'crash')) for name, number in
          (('SIGSEGV', 11), ('SIGBUS', 7), ('SIGFPE', 8), ('SIGILL', 4), ('SIGABRT', 6),
           ('SIGTRAP', 5), ('SIGSYS', 31))]
CASES += [(how, what, None) for how in ('handler', 'info') for what in ('segv', 'abort', '8')]
CASES += [(how, what, (SIGNALS[what], 'crash_' + what))
          for how in ('once', 'once-nodefer', 'once-later', 'once-onstack', 'taken-back',
                      'alternate', 'thread')
          for what in ('segv', 'ill', 'abort')]
CASES += [
    ('gives-back', 'segv', ('SIGSEGV', 'crash_segv')),
    ('gives-back', 'abort', None),  # the C library sets the default action itself
    ('raises-again', 'segv', ('SIGSEGV', 'crash_segv')),
    ('aborts', 'segv', ('SIGABRT', 'aborts')),
    ('nodefer', 'segv', None),
    ('faults', 'segv', None),
    ('faults', 'ill', None),
    ('ignored', '11', None),
    ('ignored', 'segv', None),
    ('blocked', 'segv', None),
    ('blocked', '6', ('SIGABRT', 'blocked')),
    ('plain', 'overflow', None),
    ('thread', 'overflow', None),
    ('alternate', 'overflow', ('SIGSEGV', 'crash_overflow')),
    ('alternate-handler', 'overflow', None),
    ('once-onstack', 'overflow', ('SIGSEGV', 'crash_overflow')),
    ('jumps', 'segv', ('SIGSEGV', 'crash_segv')),
    ('jumps-once', 'segv', ('SIGSEGV', 'crash_segv')),
    ('deeper', 'segv', [('SIGFPE', 'crash'), ('SIGSEGV', 'crash_segv')]),
    ('deeper-onstack', 'segv', [('SIGFPE', 'crash'), ('SIGSEGV', 'crash_segv')]),
    ('forbidden', 'segv', None),
    ('forbidden', '6', None),
    ('refused', 'segv', None),
    ('refused', '8', None),
    ('children', 'segv', None),
    ('exec', '', None),
    ('queries', '', None),
]


def notes_of(core):
    """(type, content) of the notes of a core file."""
    with open(core, 'rb') as f:
        data = f.read(1 << 20)
    offset, = struct.unpack_from('<Q', data, 32)
    size, count = struct.unpack_from('<HH', data, 54)
    for i in range(count):
        kind, _, at, _, _, length = struct.unpack_from('<IIQQQQ', data, offset + i * size)
        if kind != 4:  # PT_NOTE
            continue
        end = at + length
        while at + 12 <= end:
            name, desc, what = struct.unpack_from('<III', data, at)
            at += 12 + (name + 3 & ~3)
            yield what, data[at:at + desc]
            at += desc + 3 & ~3


def about_core(folder):
    """What the first thread of the core says that is the same in each run; None: no core."""
    files = [f for f in os.listdir(folder) if f.startswith('core')]
    if not files:
        return None
    found = {}
    for kind, content in notes_of(os.path.join(folder, files[0])):
        if kind == NT_SIGINFO:
            signal, _, code, _, address = struct.unpack_from('<iiiiQ', content)
            sent = code <= 0
            value = struct.unpack_from('<i', content, 24)[0] if code == -1 else 0
            # Libraries and stack lie elsewhere with us.
            found.setdefault('siginfo', (signal, code, value if sent else address & 0xfff))
        if kind == NT_PRSTATUS and 'pc' not in found:
            # Blocked signals, and where it was, if that is in the program.
            found['blocked'] = struct.unpack_from('<Q', content, 24)[0] & 0x7fffffff
            pc = struct.unpack_from('<Q', content, 112 + (16 if X86 else 32) * 8)[0]
            found['pc'] = pc if pc >> 40 == 0x55 else 0
    return found


def run(how, what, boxes):
    """Status, output and core; without hooks where `boxes` is none."""
    env = dict(os.environ)
    if boxes:
        env.update(LD_PRELOAD=PRELOAD, TACHO_BOX_DIR=boxes, TACHO_KEEP_BOX='1')
    with tempfile.TemporaryDirectory(prefix='tacho-noted-') as folder:
        # The program lies at the same address each time.
        p = subprocess.run(['setarch', '-R', PROGRAM, how] + ([what] if what else []), env=env,
                           cwd=folder, capture_output=True, text=True, timeout=60)
        return p.returncode, p.stdout, p.stderr, about_core(folder)


def functions():
    out = subprocess.run(['nm', '-S', '--defined-only', PROGRAM], capture_output=True, text=True)
    rows = [line.split() for line in out.stdout.splitlines()]
    return [(int(r[0], 16), int(r[1], 16), r[3]) for r in rows if len(r) == 4 and r[2] in 'tT']


def noted_in(boxes, names):
    """Crashes as (signal, innermost function of the program), of the first process."""
    p = subprocess.run([BIN, 'info', '--json', boxes_in(boxes)[0]], capture_output=True, text=True)
    crashes = []
    for c in json.loads(p.stdout)['processes'][0]['crashes']:
        # A frame but the first is where a call returns to.
        own = [int(f['offset'], 16) - (i > 0) for i, f in enumerate(c['frames'])
               if f.get('module') == PROGRAM]
        name = [n for at, size, n in names if own and at <= own[0] < at + size]
        crashes.append((c['signal'], name[0] if name else ''))
    return crashes


def compare(how, what, expected, names):
    name = f'{how} {what}'.strip()
    plain = run(how, what, None)
    with box_folder() as boxes:
        hooked = run(how, what, boxes)
        noted = noted_in(boxes, names)
    if what == 'overflow' and plain[3]:
        # Where it was met depends on the environment, also which instruction; and where there is no
        # frame for our handler, the kernel says so in the core.
        for core in (plain[3], hooked[3]):
            core.pop('siginfo')
            core.pop('pc')
    check(f'{name}: ends as without us', plain == hooked, f'{hooked}, without us {plain}')
    expected = [] if not expected else expected if isinstance(expected, list) else [expected]
    check(f'{name}: {" and ".join(s for s, _ in expected) or "nothing"} is noted',
          noted == expected, f'{noted}, expected {expected}')


def report(folder, options, how, what):
    """The first line of the report of a recording, and its findings."""
    trace = os.path.join(folder, f'{how}-{what}.tacho')
    p = subprocess.run([BIN, 'run', '-q', '-f', '-o', trace, *options, '--', PROGRAM, how, what],
                       cwd=folder, capture_output=True, text=True, timeout=60,
                       env=dict(os.environ, TACHO_BOX_DIR=folder))
    out = subprocess.run([BIN, 'report', trace], capture_output=True, text=True, timeout=60)
    found = subprocess.run([BIN, 'report', '--all', '--json', trace], capture_output=True, text=True)
    # The first line tells how it ended.
    return p.returncode, out.stdout.splitlines()[1], json.loads(found.stdout)['findings']


def reports():
    with box_folder() as folder:
        for what, status, says in (('segv', 139, ''), ('abort', 134, 'raised by the process itself'),
                                   ('assert', 134, "Assertion `zero == 1' failed.")):
            code, line, found = report(folder, [], 'plain', what)
            check(f'the report begins with the crash: {what}', code == status and
                  line.startswith('crash: ') and f'in crash_{what} (noted_subject.c:' in line and
                  says in json.dumps(found[0]), (code, line, found[:1]))
        code, line, found = report(folder, [], 'aborts', 'segv')
        check('the place is what the handler that aborts was called for', code == 134 and
              'SIGABRT (6) in crash_segv (noted_subject.c:' in line, (code, line))
        code, line, found = report(folder, [], 'jumps-once', 'segv')
        check('what was survived is no alarm', code == 0 and not line.startswith('crash') and
              [f['severity'] for f in found if f['rule'] == 'crash'] == ['info'], (line, found))
        code, line, found = report(folder, ['--no-crash'], 'plain', 'segv')
        check('nothing is noted with --no-crash', code == 139 and
              not [f for f in found if 'in crash_segv' in f['summary']], (code, line, found))


def main():
    if subprocess.run(['setarch', '-R', 'true'], capture_output=True).returncode:
        skip('noted', 'the addresses of a program cannot be made the same in each run here')
        return
    names = functions()
    for case in CASES:
        compare(*case, names)
    reports()
    status, _, _, core = run('plain', 'segv', None)
    if not core:
        skip('cores say the same', f'there are none here (status {status})')


main()
finish()
