#!/usr/bin/env python3
"""Healthy servers under light, moderate and saturating load: a report may claim only what the client
saw, and says saturation where there is.

    python3 tests/servers/servers.py [--only redis,node] [--seconds 4] [--keep FOLDER]
    python3 tests/servers/servers.py --again FOLDER     # judges what was kept, without recording

Prints a line for each check and, at the end, the table. Each recording's ledger must add up.
"""
import json
import os
import sys

sys.dont_write_bytecode = True
from libservers import SERVERS, Running  # noqa: E402
from libreport import (Options, alarms, longest_told, not_observed, report,  # noqa: E402
                       unbalanced)
from libresult import check, status  # noqa: E402

MS = 1000000
LIGHT, MODERATE = 0.02, 0.4  # of what it can do
LIGHT_MAX = 200  # per second
QUEUED = 4  # times as long as at light load: requests that wait for others
# They say that there is more to do than can be done: by threads, or by the CPUs that they share.
SATURATION = ('loop-saturated', 'pool-exhausted')
CPUS = ('kernel-scheduling-delay',)


def is_saturated(seen, light):
    """Whether the client's requests wait for each other. Less than a millisecond is no waiting."""
    return seen['p50_ns'] > max(QUEUED * light['p50_ns'], MS)


def confirmed(finding, seen, light):
    """Whether the client saw what is claimed: that there is too much to do; or requests that took as
    long as the longest, and waited for as long in all."""
    if finding['rule'] in SATURATION:
        return is_saturated(seen, light)
    waited = [e['value'] for e in finding['evidence'] if 'waited' in e['text']]
    return seen['max_ns'] >= longest_told(finding) / 2 and \
        seen['waited_ns'] >= max(waited, default=0) / 2


def text(ns):
    return f'{ns / MS:.3g} ms'


def row(name, load, seen, found):
    first = alarms(found)[:1]
    verdict = f'{first[0]["rule"]}: {first[0]["summary"]}' if first else \
        found['verdict']['category']
    share, why = not_observed(found)
    return (name, load, f'{seen["rate"]:.0f}/s', text(seen['p50_ns']), text(seen['p99_ns']),
            verdict, f'{share:.1f} %', why)


def judge(label, seen, light, found):
    wrong = unbalanced(found)
    check(f'{label}: its ledger adds up to its window', found['ledger']['threads'] and not wrong,
          wrong or 'there is no thread in it')
    told = '; '.join(f'{f["rule"]}: {f["summary"]}' for f in alarms(found)) or 'none'
    client = f'p50 {text(seen["p50_ns"])}, p99 {text(seen["p99_ns"])}, longest ' \
             f'{text(seen["max_ns"])}, waited {text(seen["waited_ns"])}'
    if is_saturated(seen, light):
        first = alarms(found)[:1]
        check(f'{label}: it says saturation', first and first[0]['rule'] in SATURATION + CPUS,
              f'{told}; the client: {client}')
    false = [f'{f["rule"]}: {f["summary"]}' for f in alarms(found) if not confirmed(f, seen, light)]
    check(f'{label}: it claims what the client saw', not false, f'{false}; the client: {client}')


def record(server, rate, seconds, enter, path):
    with Running(server, f'{path}.tacho', enter):
        seen = server.load(enter, seconds, rate, server.connections)
    with open(f'{path}.client', 'w', encoding='ascii') as f:
        f.write(seen)


def run(name, options, enter, folder):
    server, most, rows, light = SERVERS[name](folder), 0, [], None
    if not options.again:
        with Running(server, None, enter):
            most = json.loads(server.load(enter, 1, 0, server.connections))['rate']
    for load, rate in (('light', min(LIGHT * most, LIGHT_MAX)), ('moderate', MODERATE * most),
                       ('saturating', 0)):
        path = os.path.join(folder, load)
        if not options.again:
            # So long that it fills its window.
            record(server, rate, options.seconds * (1 if rate else 2), enter, path)
        with open(f'{path}.client', encoding='ascii') as f:
            seen = json.load(f)
        found = report(f'{path}.tacho')
        light = light or seen
        judge(f'{name}, {load}', seen, light, found)
        rows.append(row(name, load, seen, found))
    return rows


Options().each(SERVERS, run, ('server', 'load', 'rate', 'p50', 'p99', 'verdict', 'not observed',
                              'why'))
sys.exit(status())
