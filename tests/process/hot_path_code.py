#!/usr/bin/env python3
"""The machine code of the hot path in libtacho.so: one clock read, no locked instruction,
no system call, and no call but to the slow path."""
import os
import re
import shutil
import subprocess
import sys

BUILD = os.environ.get('TACHO_BUILD', 'build')
LIBRARY = os.path.join(BUILD, 'src/core/libtacho.so')
# Not tacho__put, for records of any size: what it does with one that is too large is in it.
HOT = ['tacho__put1', 'tacho__put2', 'tacho__loop', 'tacho__park', 'tacho__poll_begin',
       'tacho__poll_switch', 'tacho__poll_end', 'tacho__poll_end_park', 'tacho__span_begin',
       'tacho__span_end']
# Of polls and wakes: what else there is to do is jumped to last, so that nothing is saved for a call.
PLAIN = ['tacho__put1', 'tacho__park', 'tacho__poll_begin', 'tacho__poll_end']
# Slow path; what runs while a sentinel or a poll threshold is set; clock_gettime for machines without
# a usable TSC; memcpy into a record.
MAY_CALL = re.compile(r'tacho__record_slow(_at)?|tacho__watched_\w+|tacho__recorder_ready|'
                      r'tacho__poll_end|tacho__park|\w+_otherwise|'
                      r'clock_gettime|memcpy|__stack_chk_fail|tacho__count')


def functions():
    """Name -> lines of disassembly."""
    text = subprocess.run(['objdump', '-d', '--no-show-raw-insn', LIBRARY], check=True,
                          capture_output=True, text=True).stdout
    found, name = {}, None
    for line in text.splitlines():
        head = re.match(r'[0-9a-f]+ <([\w.]+)>:', line)
        if head:
            # What gcc moves out of the way (.cold) is not on the hot path.
            name = head.group(1).split('@')[0]
            found[name] = []
        elif name and re.match(r'\s+[0-9a-f]+:', line):
            found[name].append(line.split(':', 1)[1].strip())
    return found


def problems(name, code):
    clocks = [c for c in code if re.match(r'rdtscp?\b', c)]
    # With the clock of the kernel as second choice there is still one reading a record.
    if len(clocks) != 1:
        yield f'{len(clocks)} reads of the TSC'
    for c in code:
        if re.match(r'(rep )?lock\b', c) or re.match(r'xchg\b.*\(', c):
            yield f'locked instruction: {c}'
        if re.match(r'(mfence|lfence|sfence|cpuid)\b', c):
            yield f'fence: {c}'
        if re.match(r'(syscall|sysenter|int)\b', c):
            yield f'system call: {c}'
        call = re.match(r'(?:call|jmp)q?\s+.*<([\w.@]+?)(?:@plt)?(\+0x[0-9a-f]+)?>', c)
        if call and call.group(1).split('@')[0].split('.')[0] != name \
                and not MAY_CALL.match(call.group(1)):
            yield f'call of {call.group(1)}'
        if name in PLAIN and re.match(r'call\b', c) and '__stack_chk_fail' not in c:
            yield f'a call in the middle: {c}'
        if re.match(r'call\s+\*', c):
            yield f'call through a pointer: {c}'


def main():
    if os.uname().machine != 'x86_64':
        print('skip code of the hot path: it knows x86-64 only')
        return 0
    if not shutil.which('objdump') or not os.path.exists(LIBRARY):
        print(f'skip code of the hot path: no objdump, or no {LIBRARY}')
        return 0
    code = functions()
    bad = 0
    for name in HOT:
        found = list(problems(name, code[name])) if code.get(name) else ['it is not in the library']
        if found:
            bad = 1
            print(f'not ok hot path of {name}: {"; ".join(found[:3])}')
        else:
            print(f'ok hot path of {name}: one clock read, no lock, no system call')
    return bad


sys.exit(main())
