#!/usr/bin/env python3
"""The casebook: programs with one fault each and healthy ones, recorded, and what the report says.

    run_cases.py [--situation NAME] [--keep FOLDER] [CASE ...]

Prints a line for each case and the score of each situation. Below 95 % of right first findings
with the right place, or with one false alarm on a healthy program, it fails.
"""
import argparse
import os
import shutil
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import libdaemons
from libcases import Failed, Quota, Situation, Unavailable, first_place, headline, \
    undisturbed
from libtable import FAULTS, HEALTHY, HEALTHY_API

PASS = 0.95
TOGETHER = 6  # of those that are not alone: nearly all of their time is sleep
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
    if case.rule == 'crash':
        env['TACHO_CRASH_FILE'] = os.path.join(situation.out, case.name + '.crash')
    try:
        if case.quota:
            with Quota(case.quota) as quota:
                path = situation.record(case.name, [program], inside=quota.enter, **env)
        elif case.dump:
            path = situation.dump(case.name, [program], case.dump)
        elif case.api:
            path = situation.run(case.name, [program], **env)
        else:
            path = situation.record(case.name, [program],
                                    inside=undisturbed if case.calm else None, **env)
        if keep:
            shutil.copy(path, os.path.join(keep, f'{situation.name}-{case.name}.tacho'))
        good, placed, why = judge(case, situation.report(path))
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


def run_healthy(name, record, situation, score, keep):
    label = f'{situation.name} {name}'
    try:
        verdicts = []
        for path in record(situation):
            if keep:
                shutil.copy(path, os.path.join(keep, f'{situation.name}-{name}-'
                                               + os.path.basename(path)))
            found = situation.report(path)
            verdicts.append((found['verdict']['category'], headline(found)))
        bad = [text for category, text in verdicts
               if category not in ('none', 'not-enough-data')]
        # A parent that only waits for its workers may have recorded too little.
        why = '; '.join(bad) or ('' if any(c == 'none' for c, _ in verdicts) else
                                 f'nothing was judged: {verdicts}')
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
    if name in HEALTHY_API:
        return lambda s: [s.run(name, [s.place.case(name)])]
    return lambda s: [s.record(name, [s.place.case(name)], inside=undisturbed)]


def jobs_of(situation, wanted, score, keep):
    """What is to be run: (alone, function)."""
    for case in FAULTS:
        if not wanted or case.name in wanted:
            yield case.alone, lambda c=case: run_fault(c, situation, score, keep)
    for name in HEALTHY:
        if not wanted or name in wanted:
            yield True, lambda n=name: run_healthy(n, program_of(n), situation, score, keep)
    for daemon in libdaemons.ALL:
        name = 'healthy_' + daemon.__name__
        if not wanted or name in wanted:
            yield True, lambda n=name, d=daemon: run_healthy(n, d, situation, score, keep)


def run_situation(name, wanted, keep):
    score = Score(name)
    with Situation(name) as situation:
        jobs = list(jobs_of(situation, wanted, score, keep))
        with ThreadPoolExecutor(max_workers=TOGETHER) as pool:
            for future in [pool.submit(job) for alone, job in jobs if not alone]:
                future.result()
        for alone, job in jobs:
            if alone:
                job()
    right = score.tried - len(score.wrong)
    if score.tried and right < PASS * score.tried:
        for text in score.wrong:
            say(f'not ok {text}')
        score.broken = True
    elif score.tried:
        say(f'ok {name}: {right} of {score.tried} cases')
    return score


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
    scores = [run_situation(name, options.cases, options.keep) for name in names]
    for score in scores:
        say(score.line())
    return any(getattr(score, 'broken', False) for score in scores)


if __name__ == '__main__':
    sys.exit(main())
