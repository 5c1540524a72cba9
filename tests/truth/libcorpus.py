"""A corpus: draws that are recorded once, with the truth about them, and judged with each version of the report.

    truth.py record --draws N --seed S --situation root|unprivileged|no-perf --into FOLDER [--only NAMES]
    truth.py judge FOLDER ... [--build FOLDER] [--json FILE] [--compare OLD.json] [--only NAMES]

Each draw is a folder: trace.tacho, truth.json (what happened) and draw.json (what was drawn, with a line that says
it). What the machine disturbed is kept, and marked in its truth.
"""
import argparse
import contextlib
import os
import time
from concurrent.futures import ProcessPoolExecutor

import libscore
from libcases import Failed, Place, Situation
from libdraw import Draw
from libjudge import Judgement, disturbed
from librun import Recording, Run, group_or_none
from libscore import Result
from libtokio import TokioDraw

MAKERS = {draw.maker: draw for draw in (Draw, TokioDraw)}
SITUATIONS = {'root': 'root', 'unprivileged': 'unprivileged', 'no-perf': 'without-perf',
              'without-perf': 'without-perf'}
TRIES = 2  # of a draw that could not be recorded


def judge_recording(recording, place, numbers=False):
    """What the report of that build says of it: the one judge of fresh and of stored draws."""
    result = Result(recording.draw, recording.situation)
    found = recording.report(place)
    result.disturbed = recording.truth.disturbed
    result.take_numbers(recording.truth, found)
    result.take(Judgement(recording.truth, found, recording.situation != 'without-perf'))
    if numbers:
        result.disagree = recording.wrong_numbers(place)
    return result


# Recording -----------------------------------------------------------------------------


def record_one(draw, situation, group, folder):
    """The name of what was stored, and whether it was disturbed."""
    for left in reversed(range(TRIES)):
        try:
            with Run(draw, situation, group) as run:
                run.run()
                run.truth.disturbed = disturbed(run.truth)
                recording = Recording(draw, run.truth, situation.name, run.path('trace.tacho'))
                return recording.store(folder), run.truth.disturbed
        except Failed as error:
            if not left:
                return None, str(error)


def record(argv, draws_of):
    """`draws_of`: the draws that are asked for."""
    parser = argparse.ArgumentParser(prog='truth.py record', description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--draws', type=int, default=100)
    parser.add_argument('--seed', type=int, default=int(time.time() * 1000) % 1000000)
    parser.add_argument('--situation', choices=SITUATIONS, default='root')
    parser.add_argument('--only', default='', help='faults, classes, families or shapes, with commas')
    parser.add_argument('--into', required=True)
    options = parser.parse_args(argv)
    os.makedirs(options.into, exist_ok=True)
    with contextlib.ExitStack() as stack:
        situation = stack.enter_context(Situation(SITUATIONS[options.situation]))
        group = stack.enter_context(group_or_none())
        for draw in draws_of(options.seed, options.draws, options.only):
            name, why = record_one(draw, situation, group, options.into)
            line = f'{name or draw.seed} {draw.text()}' + (f' | {"disturbed" if name else "failed"}: {why}' if why
                                                          else '')
            print(line, flush=True)
            with open(os.path.join(options.into, 'index.txt'), 'a', encoding='utf-8') as f:
                f.write(line + '\n')
    return 0


# Judging -------------------------------------------------------------------------------


def judge_stored(job):
    folder, build, numbers = job
    recording = Recording.stored(folder, MAKERS)
    try:
        result = judge_recording(recording, Place(build), numbers)
    except Failed as error:
        result = Result(recording.draw, recording.situation)
        result.word, result.right, result.why = 'WRONG', False, str(error)
    result.name = os.path.basename(folder)
    if result.disturbed:
        result.why = f'{result.word}: {result.why}' if result.why else result.word
        result.word = 'disturbed'
    return result


def stored_folders(roots):
    found = [os.path.join(root, name) for root in roots for name in sorted(os.listdir(root))]
    return [path for path in found if os.path.exists(os.path.join(path, 'draw.json'))]


def judge(argv):
    parser = argparse.ArgumentParser(prog='truth.py judge', description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folders', nargs='+')
    parser.add_argument('--build', default=os.environ['TACHO_BUILD'], help='the build whose report is judged')
    parser.add_argument('--json', help='a file for the results')
    parser.add_argument('--compare', help='an older file of --json')
    parser.add_argument('--only', default='', help='faults, classes, families or shapes, with commas')
    parser.add_argument('--situation', choices=SITUATIONS)
    parser.add_argument('--numbers', action='store_true', help='also whether the numbers of all answers agree')
    parser.add_argument('--jobs', type=int, default=2)
    options = parser.parse_args(argv)
    jobs = [(folder, options.build, options.numbers) for folder in stored_folders(options.folders)]
    with ProcessPoolExecutor(options.jobs) as pool:
        results = list(pool.map(judge_stored, jobs, chunksize=4))
    only = [name for name in options.only.split(',') if name]
    results = [r for r in results if r.draw.wanted(only) and
               (not options.situation or r.situation == SITUATIONS[options.situation])]
    if options.json:
        libscore.write_json(options.json, results)
    tell(results)
    if options.compare:
        print('\n' + libscore.compare(libscore.read_json(options.compare, MAKERS), results))
    return 0


def tell(results):
    print(libscore.score(results) + '\n')
    print(libscore.side_by_side('named first', libscore.by(results, lambda r: r.situation)) + '\n')
    print(libscore.side_by_side('named first', libscore.by(results, libscore.neighbours_of)) + '\n')
    wrong = [r for r in results if r.word not in ('ok', 'below', 'disturbed')]
    print(f'wrong: {len(wrong)} of {len(results)}')
    for r in sorted(wrong, key=lambda r: (r.draw.kind, r.draw.fault.name, r.name)):
        print(r.line())
    for r in results:
        for text in r.disagree:
            print(f'{r.name} numbers: {text}')


def main(argv, draws_of):
    if argv[0] == 'record':
        return record(argv[1:], draws_of)
    return judge(argv[1:])
