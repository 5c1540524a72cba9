#!/usr/bin/env python3
"""A turn with one callback reads the clock twice; the time of the program itself, between two turns,
is not taken for a wait."""
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from libhooks import BIN, BUILD, box_folder, boxes_in, check, finish, hooked, run, skip  # noqa: E402

TURNS, WORK_MS = 200, 20


def events_of(name, program, turns, ms, more=None):
    """What the thread of the loop recorded, by the order of time."""
    with box_folder() as folder:
        p = run([program, str(turns), str(ms)], hooked(folder, more))
        boxes = boxes_in(folder)
        if not check(f'{name}: it is recorded', p.returncode == 0 and len(boxes) == 1,
                     (p.returncode, p.stderr[-300:])):
            return []
        out = run([BIN, 'cat', '--json', boxes[0]], dict(os.environ)).stdout
    return [(e['type'], int(e['ns'])) for e in map(json.loads, out.splitlines())]


def turns_of(events):
    """From unpark to park, as lists of events; those with one callback."""
    turns, turn = [], None
    for kind, ns in events:
        if kind == 'unpark':
            turn = []
        if turn is not None:
            turn.append((kind, ns))
        if kind == 'park' and turn:
            turns.append(turn)
            turn = None
    return [t for t in turns if [k for k, _ in t].count('poll-begin') == 1]


def shares(name, program):
    turns = turns_of(events_of(name, program, TURNS, 0))
    check(f'{name}: the turns are there', len(turns) >= TURNS - 2, len(turns))
    # What the kernel did to a slow callback is recorded behind it, with a time of its own.
    plain = [t for t in turns if [k for k, _ in t] == ['unpark', 'ready', 'poll-begin', 'poll-end',
                                                       'park']]
    check(f'{name}: nearly all have nothing but their callback', len(plain) >= TURNS * 0.8,
          (len(plain), turns[:1]))
    wrong = [t for t in plain if len({ns for _, ns in t}) != 2 or t[2][1] != t[0][1]
             or t[4][1] != t[3][1]]
    # Where a new chunk begins, the clock is read.
    check(f'{name}: the callback shares the time of the unpark, the park that of its end',
          len(wrong) <= TURNS * 0.05, (len(wrong), wrong[:1]))


def tells_work(name, program):
    events = events_of(f'{name} by turns', program, 10, WORK_MS)
    ends = [(ns, events[i + 1][1]) for i, (kind, ns) in enumerate(events[:-1])
            if kind == 'poll-end' and events[i + 1][0] == 'park']
    hidden = [b - a for a, b in ends if b - a < WORK_MS * 1e6]
    check(f'{name} by turns: the work between two turns is no wait', len(ends) >= 8 and not hidden,
          (len(ends), hidden[:3]))


def counts_turns(name, program):
    """Polls that are only counted leave no record, and their time is still the turn's."""
    events = events_of(f'{name} with a poll threshold', program, TURNS, 0,
                       {'TACHO_POLL_THRESHOLD': '10s'})
    begun, lengths = None, []
    for kind, ns in events:
        if kind == 'unpark':
            begun = ns
        elif kind == 'park' and begun is not None:
            lengths.append(ns - begun)
            begun = None
    check(f'{name} with a poll threshold: turns have a length',
          len(lengths) >= TURNS - 2 and sum(n > 0 for n in lengths) >= len(lengths) * 0.95,
          (len(lengths), sum(n > 0 for n in lengths)))


for library in ('event', 'uv'):
    program = os.path.join(BUILD, f'tests/hooks/hooks-clock_{library}')
    if not os.path.exists(program):
        skip(f'lib{library}', f'no development package of lib{library} when it was built')
        continue
    shares(f'lib{library}', program)
    tells_work(f'lib{library}', program)
    counts_turns(f'lib{library}', program)
finish()
