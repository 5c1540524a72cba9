"""What it takes to make something of a trace: reading it, the model, a report.

The traces are copies of a recording of the reference workload, one after the other
(multiply.c), on disk; each is deleted before the next is made. Reading alone, the model
and the report take turns on the same file, so that what else happens on the machine
meets all of them alike; the least CPU time of each counts.
"""
import pathlib

from programs import BUILD, Broken, number, program

MILLION = 1000000
BASE_BOX_BYTES = 14 << 20  # about a million events
QUICK_BOX_BYTES = 4 << 20
SIZES = [1, 10, 30, 100]
PATIENCE = 1200


def record(programs, folder, box_bytes):
    """A trace of the reference workload; its path."""
    base = folder / 'base.tacho'
    before = programs.environment['TACHO_MAX_BYTES']
    programs.environment['TACHO_MAX_BYTES'] = str(box_bytes)
    try:
        found, let_go = programs.held('workload', '--ids=number', '1')
        programs.output([BUILD / 'src' / 'cli' / 'tacho', 'dump', found['box'][0], '-o', base])
        let_go()
    finally:
        programs.environment['TACHO_MAX_BYTES'] = before
    return base


def run(programs, argv, events):
    """(wall ms, CPU ms, peak bytes) of a program over a trace."""
    out, err = programs.output([program('peak'), *argv], limit=PATIENCE)
    last = err.strip().splitlines()[-1].split()
    if last[0] != 'peak':
        raise Broken(f'{argv[0]}: {err}')
    if events is not None:
        said = [line.split()[1] for line in out.splitlines() if line.startswith('events ')]
        # The model also counts what the reader says of where streams begin.
        if not said or int(said[0]) < events or int(said[0]) > events * 1.001 + 10000:
            raise Broken(f'{pathlib.Path(argv[0]).name} saw {said} events of {events}')
    return float(last[1]) / 1e6, float(last[2]) / 1e6, float(last[3])


def measure_file(programs, path, events, rounds):
    argvs = {'decode': ([program('count'), path], events),
             'model': ([program('model'), path], events),
             'report': ([BUILD / 'src' / 'cli' / 'tacho', 'report', '--json', path], None)}
    taken = {name: [] for name in argvs}
    for _ in range(rounds):
        for name, (argv, expected) in argvs.items():
            taken[name].append(run(programs, argv, expected))
    return {name: {'wall_ms': min(t[0] for t in runs), 'cpu_ms': min(t[1] for t in runs),
                   'peak_bytes': max(t[2] for t in runs)} for name, runs in taken.items()}


def measure(programs, quick, say):
    folder = pathlib.Path(programs.folder())
    say('  recording for the analysis')
    base = record(programs, folder, QUICK_BOX_BYTES if quick else BASE_BOX_BYTES)
    rows = []
    for millions in SIZES[:1] if quick else SIZES:
        say(f'  analysis of {millions} million events')
        path = folder / f'{millions}.tacho'
        out, _ = programs.output([program('multiply'), base, path, millions * MILLION],
                                 limit=PATIENCE)
        made = dict(line.split() for line in out.splitlines())
        events = int(number({k: [v] for k, v in made.items()}, 'events'))
        row = {'millions': millions, 'events': events, 'bytes': path.stat().st_size}
        row.update(measure_file(programs, path, events, 1 if quick or millions > 30 else 3))
        rows.append(row)
        path.unlink()
    return rows


def goals(rows):
    """(name, measured, wanted) of what the project wants of the analysis."""
    found = []
    by_size = {row['millions']: row for row in rows}
    if 30 in by_size:
        row = by_size[30]
        share = 30 * MILLION / row['events']
        found.append(('report on 30 million events: s', row['report']['cpu_ms'] / 1e3 * share, 3))
        found.append(('report on 30 million events: MB', row['report']['peak_bytes'] / 1e6, 300))
    if 10 in by_size and 100 in by_size:
        each = [by_size[n]['report']['cpu_ms'] / by_size[n]['events'] for n in (10, 100)]
        found.append(('report: time per event, 100 million to 10', each[1] / each[0], 1.25))
    return found
