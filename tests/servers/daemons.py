#!/usr/bin/env python3
"""Daemons that no other test names, asked now and then: their ledgers add up to their windows, and
their reports claim nothing that the client did not see.

    python3 tests/servers/daemons.py [--only nsd,ngircd] [--keep FOLDER]
"""
import sys

sys.dont_write_bytecode = True
from libasked import DAEMONS  # noqa: E402
from libreport import (Options, alarms, longest_told, not_observed, report,  # noqa: E402
                       unbalanced)
from libservers import Running  # noqa: E402
from libresult import check, status  # noqa: E402

RATE = 50  # per second


def windows(found):
    """Of each process, how much of its window its longest thread has in the ledger, in percent."""
    out = []
    for p in found['processes']:
        threads = [t['to_ns'] - t['from_ns'] for t in found['ledger']['threads']
                   if t['pid'] == p['pid']]
        if threads and p['to_ns'] > p['from_ns']:
            out.append(100 * max(threads) / (p['to_ns'] - p['from_ns']))
    return out


def run(name, options, enter, out):
    daemon = DAEMONS[name](out)
    trace = daemon.path('trace.tacho')
    with Running(daemon, trace, enter):
        answers, longest = daemon.load(enter, options.seconds, RATE, 1)
    found = report(trace)
    threads = found['ledger']['threads']
    wrong = unbalanced(found)
    check(f'{name}: it answers', answers > 10, answers)
    check(f'{name}: its ledger adds up to its window', threads and not wrong and
          min(windows(found)) > 99, wrong or windows(found))
    false = [f'{f["rule"]}: {f["summary"]}' for f in alarms(found) if longest_told(f) > 2 * longest]
    check(f'{name}: it claims what the client saw', not false,
          f'{false}; the slowest answer took {longest / 1e6:.1f} ms')
    share, why = not_observed(found)
    return (name, f'{len(threads)}', f'{min(windows(found), default=0):.1f} %', f'{share:.1f} %',
            why, found['verdict']['category'])


Options().each(DAEMONS, run, ('daemon', 'threads', 'of its window', 'not observed', 'why',
                              'verdict'))
sys.exit(status())
