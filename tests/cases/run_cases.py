#!/usr/bin/env python3
"""The casebook: programs with one fault each and healthy ones, recorded, and what the report says.

    run_cases.py [--situation NAME] [--keep FOLDER] [CASE ...]

Prints a line for each case and the score of each situation. Below 95 % of right first findings
with the right place, or with one false alarm on a healthy program, it fails.
"""
import argparse
import contextlib
import os
import queue
import shutil
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
import libdaemons  # noqa: E402
import libnumbers  # noqa: E402
from libcases import Failed, Quota, Situation, Unavailable, first_place, headline, \
    may_be_undisturbed, undisturbed
from libtable import FAULTS, HEALTHY, HEALTHY_ALONE, HEALTHY_API

PASS = 0.95
CALM, ALONE = range(2)  # how a case is run
lock = threading.Lock()


def say(text):
    with lock:
        print(text.replace('\n', ' | ')[:700], flush=True)


class Score:
    def __init__(self, situation):
        self.situation = situation
        self.right = self.placed = self.places = self.tried = 0
        self.healthy = self.alarms = 0
        self.wrong = []

    def line(self):
        share = 100 * self.right / self.tried if self.tried else 0
        return (f'score {self.situation}: right first finding {self.right} of {self.tried} '
                f'({share:.1f} %), right place {self.placed} of {self.places}, '
                f'false alarms {self.alarms} of {self.healthy} healthy programs')


def judge(case, found):
    """(finding is right, place is right or None, what is wrong)"""
    if case.rule == 'not-enough-data':
        good = found['verdict']['category'] == case.rule
        return good, None, '' if good else headline(found)
    first = found['findings'][0] if found['findings'] else None
    if not first or first['rule'] != case.rule:
        return False, None if case.function is None else False, \
            f'{case.rule} is not first: {headline(found)}'
    if first['severity'] == 'info' and found['verdict']['category'] != 'none':
        return False, None if case.function is None else False, \
            f'a note changes the verdict: {headline(found)}'
    if case.function is None:
        return True, None, ''
    function, file, line = first_place(first)
    if function == case.function and file == os.path.basename(case.source) and \
            line in case.lines():
        return True, True, ''
    return True, False, f'place is {function} {file}:{line}, not {case.function} ' \
                        f'{sorted(case.lines())}'


def run_fault(case, situation, score, keep):
    program = situation.place.case(case.name)
    name = f'{situation.name} {case.name}'
    if not os.path.exists(program):
        say(f'skip {name}: it was not built')
        return
    env = dict(case.env)
    try:
        if case.quota:
            with Quota(case.quota) as quota:
                path = situation.record(case.name, [program], inside=quota.enter, **env)
        elif case.dump:
            path = situation.dump(case.name, [program], case.dump)
        else:
            how = situation.run if case.api else situation.record
            path = how(case.name, [program], inside=undisturbed if case.calm else None, **env)
        if keep:
            shutil.copy(path, os.path.join(keep, f'{situation.name}-{case.name}.tacho'))
        good, placed, why = judge(case, situation.report(path))
        look_at_numbers(name, path, situation, score)
    except Unavailable as error:
        say(f'skip {name}: {error}')
        return
    except Failed as error:
        good, placed, why = False, None if case.function is None else False, str(error)
    with lock:
        score.tried += 1
        score.right += good
        score.places += placed is not None
        score.placed += placed is True
        if why:
            score.wrong.append(f'{name}: {why}')
    say(f'wrong {name}: {why}' if why else f'ok {name}')


def look_at_numbers(name, path, situation, score):
    """They agree with each other, whatever was found."""
    wrong = libnumbers.wrong_numbers(situation.place.tacho, path)
    if wrong:
        say(f'not ok {name}, its numbers: {wrong}')
        score.broken = True


def alarms_of(name, record, situation, score, keep):
    """(alarms, what is wrong) of one recording of a healthy program."""
    verdicts = []
    for path in record(situation):
        if keep:
            shutil.copy(path, os.path.join(keep, f'{situation.name}-{name}-'
                                           + os.path.basename(path)))
        found = situation.report(path)
        look_at_numbers(f'{situation.name} {name}', path, situation, score)
        verdicts.append((found['verdict']['category'], headline(found)))
    bad = [text for category, text in verdicts
           if category not in ('none', 'not-enough-data')]
    # A parent that only waits for its workers may have recorded too little.
    return bad, '; '.join(bad) or ('' if any(c == 'none' for c, _ in verdicts) else
                                   f'nothing was judged: {verdicts}')


def run_healthy(name, record, situation, score, keep):
    label = f'{situation.name} {name}'
    try:
        bad, why = alarms_of(name, record, situation, score, keep)
        if bad:
            # A virtual machine may lose its CPU for some milliseconds, which looks as if the
            # program's own code had run: what is wrong with the report is wrong twice.
            say(f'again {label}: {why}')
            bad, why = alarms_of(name, record, situation, score, keep)
    except Unavailable as error:
        say(f'skip {label}: {error}')
        return
    except Failed as error:
        bad, why = [], str(error)
    with lock:
        score.healthy += 1
        score.alarms += bool(bad)
    say(f'not ok {label}: {why}' if why else f'ok {label}')
    score.broken = getattr(score, 'broken', False) or bool(why)


def program_of(name):
    how = Situation.run if name in HEALTHY_API else Situation.record
    return lambda s: [how(s, name, [s.place.case(name)], inside=undisturbed)]


def jobs_of(situation, wanted, score, keep):
    """What is to be run: (how, function)."""
    calm = CALM if may_be_undisturbed() else ALONE
    for case in FAULTS:
        if not wanted or case.name in wanted:
            yield ALONE if case.alone else calm, \
                lambda c=case: run_fault(c, situation, score, keep)
    for name in HEALTHY:
        if not wanted or name in wanted:
            yield ALONE if name in HEALTHY_ALONE else calm, \
                lambda n=name: run_healthy(n, program_of(n), situation, score, keep)
    for daemon in libdaemons.ALL:
        name = 'healthy_' + daemon.__name__
        if not wanted or name in wanted:
            yield calm, lambda n=name, d=daemon: run_healthy(n, d, situation, score, keep)


def shares_of_cpus():
    """Two that have nothing in common, where there are two CPUs."""
    cpus = sorted(os.sched_getaffinity(0))
    shares = queue.SimpleQueue()
    for share in (cpus[0::2], cpus[1::2]):
        if share:
            shares.put(share)
    return shares


def run_calm(jobs):
    """They come before all others, each on CPUs of its own, of which they take little."""
    shares = shares_of_cpus()
    with ThreadPoolExecutor(max_workers=shares.qsize(),
                            initializer=lambda: os.sched_setaffinity(0, shares.get())) as pool:
        for future in [pool.submit(job) for how, job in jobs if how == CALM]:
            future.result()


def run_alone(jobs):
    """Once nothing else is tested: tests/run.py says when."""
    quiet = os.environ.get('TACHO_TEST_QUIET')
    while quiet and not os.path.exists(quiet):
        time.sleep(0.1)
    for how, job in jobs:
        if how == ALONE:
            job()


def judged(score):
    right = score.tried - len(score.wrong)
    if score.tried and right < PASS * score.tried:
        for text in score.wrong:
            say(f'not ok {text}')
        score.broken = True
    elif score.tried:
        say(f'ok {score.situation}: {right} of {score.tried} cases')
    say(score.line())


def raise_priority():
    """What else the machine does is not the subject. Sessions are weighed against each other
    where the kernel groups them."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -15)
        with open('/proc/self/autogroup', 'w', encoding='ascii') as f:
            f.write('-15')
    except OSError:
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--situation', action='append', choices=Situation.NAMES)
    parser.add_argument('--keep', help='a folder for the traces')
    parser.add_argument('cases', nargs='*')
    options = parser.parse_args()
    known = {c.name for c in FAULTS} | set(HEALTHY) | \
        {'healthy_' + d.__name__ for d in libdaemons.ALL}
    for name in options.cases:
        if name not in known:
            sys.exit(f'run_cases.py: there is no case {name}')
    names = options.situation or Situation.NAMES
    if os.geteuid() != 0:
        say('skip root and unprivileged: it is not run as root, so there is one situation less')
        names = [n for n in names if n == 'without-perf']
    else:
        raise_priority()
    scores = [Score(name) for name in names]
    with contextlib.ExitStack() as stack:
        jobs = [job for score in scores
                for job in jobs_of(stack.enter_context(Situation(score.situation)), options.cases,
                                   score, options.keep)]
        run_calm(jobs)
        run_alone(jobs)
    for score in scores:
        judged(score)
    return any(getattr(score, 'broken', False) for score in scores)


if __name__ == '__main__':
    sys.exit(main())
