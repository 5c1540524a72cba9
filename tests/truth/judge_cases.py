#!/usr/bin/env python3
"""The judge of drawn programs, on truths and reports of a few lines: what it calls right, and what wrong."""
import sys

from librun import MS, Occurrence, Truth
from libdraw import FAMILIES, FAULTS, Draw
from libjudge import Judgement
from libresult import check, status

WINDOW = 2000 * MS


def truth_of(fault, took=(), family='server', delayed=0, runnable=0, waiting=4, **more):
    """Occurrences of so many ms, one each 200 ms, and as many requests that wait for each of them."""
    draw = Draw(0)
    draw.__dict__.update(dict(family=FAMILIES[family], fault=FAULTS[fault], shape='epoll', threads=1, contended=False,
                              work_us=50, period_ms=20), **more)
    truth = Truth(draw)
    truth.begin, truth.end, truth.threads = MS, MS + WINDOW, 1
    truth.runnable = runnable * MS
    place = (draw.fault.places or ('',))[0]
    for i, ms in enumerate(took):
        begin = (100 + 200 * i) * MS
        truth.occurrences.append(Occurrence(begin, begin + (ms + delayed) * MS, place, ms * MS if fault == 'cpu' else 0,
                                            delayed * MS, 1 + i % draw.processes))
        truth.requests += [(begin, begin, begin + (ms + delayed) * MS)] * waiting
    for i in range(40):
        begin = (60 + 200 * (i % 10)) * MS
        truth.requests.append((begin, begin, begin + MS // 10))
    truth.count = len(truth.occurrences)
    return truth


def finding(rule, place=None, total=0, longest=0, count=1, severity='warning', cost=None, summary='', **more):
    return dict({'rule': rule, 'severity': severity, 'explained_by': None, 'summary': summary, 'evidence': [],
                 'where': [{'function': place}] if place else [], 'cost_ns': (total if cost is None else cost) * MS,
                 'waiting_ns': 0,
                 'measure': {'total_ns': total * MS, 'longest_ns': longest * MS, 'count': count}}, **more)


def says(name, truth, findings, word):
    found = {'findings': findings, 'verdict': {'category': 'x'}}
    judged = Judgement(truth, found, True)
    check(f'{name}: {word}', judged.word() == word, f'{judged.word()} {judged.why}')
    return judged


def alone():
    sleeps = truth_of('sleep', [80] * 5)
    right = finding('blocking-call', 'fault_sleep', 400, 80, 5)
    says('a call that is named first', sleeps, [right], 'ok')
    says('one that is not found', sleeps, [], 'WRONG')
    says('one below a wrong cause', sleeps, [finding('lock-contention', 'f', 900), right], 'WRONG')
    says('one in another function', sleeps, [finding('blocking-call', 'other', 400, 80)], 'PLACE')
    places = [{'function': 'other'}, {'function': 'fault_sleep'}]
    says('one whose function comes second', sleeps, [dict(right, where=places)], 'PLACE')
    says('one of half its time', sleeps, [finding('blocking-call', 'fault_sleep', 200, 40)], 'SIZE')
    says('one beside a stop that was none', sleeps, [right, finding('process-pause', None, 100)], 'WRONG')
    says('a healthy program without alarm', truth_of('healthy'), [], 'ok')
    says('a healthy program with one', truth_of('healthy'), [finding('blocking-call', 'f', 100)], 'WRONG')
    says('a healthy program that waits for the CPU, with that', truth_of('healthy', runnable=100),
         [finding('kernel-scheduling-delay', None, 100)], 'ok')
    says('a note about a healthy program', truth_of('healthy'), [finding('outlier', severity='info')], 'ok')
    says('a small fault that is not named', truth_of('sleep', [3], waiting=1), [], 'below')


def contended():
    cpu = finding('kernel-scheduling-delay', None, 300, 20)
    more = dict(delayed=20, runnable=300, contended=True)
    sleeps = truth_of('sleep', [80] * 5, **more)
    call = finding('blocking-call', 'fault_sleep', 400, 80, 5)
    says('a call after the wait for the CPU', sleeps, [cpu, call], 'ok')
    says('a call with its wait for the CPU', sleeps, [finding('blocking-call', 'fault_sleep', 500, 100)], 'ok')
    says('a call that shrank by what others ran', sleeps, [cpu, finding('blocking-call', 'fault_sleep', 100, 20)],
         'SIZE')
    says('the wait for the CPU alone', sleeps, [cpu], 'WRONG')
    says('a stop that was none', sleeps, [finding('process-pause', None, 500), call], 'WRONG')
    judged = says('the CPU is told', sleeps, [cpu, call], 'ok')
    check('that the CPU is told is seen', judged.cpu is True)
    judged = says('the CPU is not told', sleeps, [call], 'ok')
    check('that the CPU is not told is seen', judged.cpu is False)
    rare = truth_of('sleep', [100] * 6, delayed=2, runnable=60, contended=True)
    says('far less time without a CPU, first', rare, [finding('kernel-scheduling-delay', None, 60),
                                                      finding('blocking-call', 'fault_sleep', 600, 100)], 'WRONG')
    code = truth_of('cpu', [60] * 5, **dict(more, delayed=100))
    says('code by its CPU time', code, [finding('long-callback', 'fault_cpu', 300, 60)], 'ok')
    says('code by its wall time', code, [finding('long-callback', 'fault_cpu', 800, 160)], 'SIZE')
    beside = truth_of('neighbours', runnable=300)
    beside.requests += [(begin * MS, begin * MS, (begin + 31) * MS) for begin in range(50, 1000, 100)]
    says('neighbours, as the only fault', beside, [cpu], 'ok')


def groups():
    more = dict(family='processes', shape='prefork-epoll', threads=4)
    truth = truth_of('sleep', [80] * 8, **more)
    one = finding('blocking-call', 'fault_sleep', 640, 80)
    says('one finding of four processes', truth, [dict(one, processes=4)], 'ok')
    says('the number in its sentence', truth, [dict(one, summary='f blocks 4 of 4 workers')], 'ok')
    says('two findings of four processes', truth, [dict(one, processes=4)] * 2, 'GROUP')
    says('one finding of one process', truth, [one], 'GROUP')


def rhythms():
    truth = truth_of('rhythm', [])
    truth.occurrences = [Occurrence(MS + i * 20 * MS, MS + i * 20 * MS, 'fault_stops_waking') for i in range(40)]
    truth.count = 40
    last = truth.occurrences[-1].end
    moment = [{'from_ns': last, 'to_ns': last, 'text': 'the last wake, by thread metronome'}]
    says('a rhythm that stops, unnoticed', truth, [], 'WRONG')
    says('with its last waker and when', truth, [finding('stuck-task', 'poll', evidence=moment)], 'ok')
    says('without its waker', truth, [finding('stuck-task', 'poll', evidence=[dict(moment[0], text='')])], 'PLACE')
    says('with another time', truth, [finding('stuck-task', 'fault_stops_waking')], 'SIZE')


def several_faults():
    truth = truth_of('mixed', [80] * 8, threads=1)
    truth.occurrences = [o._replace(function='fault_cpu', ran=o.end - o.begin) if i % 2 else o
                         for i, o in enumerate(truth.occurrences)]
    call, code = finding('blocking-call', 'fault_sleep', 320, 80), finding('long-callback', 'fault_cpu', 320, 80)
    says('both faults', truth, [call, code], 'ok')
    says('one of two faults', truth, [call], 'WRONG')
    held = truth_of('hang-lock', [1])
    places = [{'function': 'waits_behind_reader'}, {'function': 'fault_reads_holding'}]
    says('who waits, and the holder', held, [finding('hang', where=places)], 'ok')
    says('who waits alone', held, [finding('hang', where=places[:1])], 'PLACE')


def main():
    for cases in (alone, contended, groups, rhythms, several_faults):
        cases()
    return status()


if __name__ == '__main__':
    sys.exit(main())
