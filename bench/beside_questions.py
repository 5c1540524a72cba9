"""What bench/beside.py asks besides the cost: how much is recorded and how large it is, what is left
after kill -9, how long it takes from a trace to an answer, and whether that answer names a fault."""
import gzip
import json
import pathlib
import re
import shutil
import time

import analysis
from beside_services import SATURATED, SOURCE, TACHO, WAYS, Service
from programs import Broken, program, words

WHOLE_BOX = 1 << 30  # large enough that nothing is overwritten
DIAL9_BYTES = 11  # that an event takes, about
STEP = 0.5  # seconds
COPIES = (1, 2, 4, 8)  # of dial9's trace, in one file
MILLIONS = (30, 100)  # events of tacho's, made of copies

# Rates and seconds until kill -9.
KILLS = ((20, 7), (3000, 7), (SATURATED, 3))
# What they are, and text of the lines that an answer should name.
FAULTS = {
    'sleep': ('thread::sleep of 80 ms in async code', ['from_millis(80)']),
    'lock': ('std Mutex held for 60 ms by another thread', ['from_millis(60)']),
    'lost': ('one task of many is never woken', ['spawn(audit(', 'reply.await']),
    'lone': ('the only task of its kind is never woken', ['spawn(backup(', 'Forgets.await']),
}
# Of dial9's report: what it complains of, and not what it lists of any program.
COMPLAINTS = ('LONG POLLS', 'SCHEDULING DELAYS', 'BLOCKING CALLS', 'CPU HOTSPOTS')
FAULT_RATE, FAULT_SECONDS = 3000, 4


def by_dial9(way):
    return 'dial9' in ''.join(WAYS[way].features or [])


def tell(programs, path):
    """What `tacho info` says of the one process of a trace."""
    out, _ = programs.output([TACHO, 'info', '--json', path])
    return json.loads(out)


# How much, and how large ----------------------------------------------------------------


def count_dial9(programs, toolkit, files):
    out, _ = programs.output(['node', '--max-old-space-size=8192', SOURCE / 'count.cjs',
                              toolkit / 'dial9-toolkit' / 'scripts', *files], limit=600)
    return json.loads(out)


def status_of(programs, service):
    out, _ = programs.output([TACHO, 'status', '--json', service.pid],
                             env={'TACHO_BOX_DIR': str(service.boxes)})
    return json.loads(out)


def volume_tacho(programs, service, _toolkit):
    status = status_of(programs, service)
    path = service.dump()
    info = tell(programs, path)
    if status['missing_records']:
        raise Broken(f'{service.way}: {status["missing_records"]} records were overwritten')
    events, disk = info['event_count'], path.stat().st_size
    return {'events': events, 'by_name': info['processes'][0]['events'], 'file': str(path),
            'memory_bytes': status['used_bytes'] / events, 'disk_bytes': disk / events,
            'bytes': disk}


def volume_dial9(programs, service, toolkit):
    service.stop()
    files = service.segments()
    found = count_dial9(programs, toolkit, files)
    size = sum(f.stat().st_size for f in files)
    packed = sum(len(gzip.compress(f.read_bytes(), 1)) for f in files)
    return {'events': found['events'], 'by_name': found['by_name'], 'files': [str(f) for f in files],
            'memory_bytes': size / found['events'], 'disk_bytes': size / found['events'],
            'gzip_bytes': packed / found['events'], 'bytes': size}


def about(programs, service):
    """Events so far; those that dial9 has not written yet are not known."""
    if by_dial9(service.way):
        return sum(f.stat().st_size for f in service.segments()) / DIAL9_BYTES
    return status_of(programs, service)['events']


def volume(programs, way, toolkit, seconds=0, events=0):
    """All events of a service under full load from its first one on: of so many seconds, or until
    there are so many."""
    service = Service(programs, way, box_bytes=WHOLE_BOX)
    answered = service.load(seconds or STEP, SATURATED)['answered']
    while about(programs, service) < events:
        answered += service.load(STEP, SATURATED)['answered']
    found = (volume_dial9 if by_dial9(way) else volume_tacho)(programs, service, toolkit)
    found.update(requests=answered, per_request=found['events'] / answered,
                 bytes_per_request=found['bytes'] / answered)
    return found, service


# After kill -9 --------------------------------------------------------------------------


def last_tacho(programs, service):
    """When the last event was that its trace has."""
    path = service.trace
    if not WAYS[service.way].run:
        programs.output([TACHO, 'recover', '-o', service.folder],
                        env={'TACHO_BOX_DIR': str(service.boxes)})
        path = next(service.folder.glob('*.tacho'))
    return tell(programs, path)['last_ns']


def last_dial9(programs, service, toolkit):
    return int(count_dial9(programs, toolkit, service.segments())['last_task_ns'])


def killed(programs, way, rate, seconds, toolkit):
    """How long before it was killed, under load, the last event was that is left, in seconds; 0: there
    are later ones; None: nothing at all of its tasks is left."""
    service = Service(programs, way)
    client = service.start_client(seconds + 60, rate)
    time.sleep(seconds)
    if client.poll() is not None:
        raise Broken(f'{way}: the client ended before the service was killed')
    at = service.kill()
    programs.end(client, 0)
    last = last_dial9(programs, service, toolkit) if by_dial9(way) else last_tacho(programs, service)
    service.finish()
    return max(0, at - last) / 1e9 if last else None


# From a trace to an answer --------------------------------------------------------------


def ask_tacho(path):
    return [TACHO, 'report', path]


def ask_dial9(toolkit, path):
    return ['node', toolkit / 'dial9-toolkit' / 'scripts' / 'analyze.js', path, '--force']


def took(programs, argv):
    """{'seconds', 'cpu_seconds', 'bytes'} of a command, or why there is no answer."""
    try:
        wall, cpu, peak = analysis.run(programs, argv, None)
    except Broken as error:
        last = re.search(r'peak (\d+) \d+ (\d+)$', str(error))
        return {'failed': f'none: it failed after {int(last.group(1)) / 1e9:.0f} s with '
                f'{int(last.group(2)) / 1e6:,.0f} MB' if last else str(error)}
    return {'seconds': wall / 1e3, 'cpu_seconds': cpu / 1e3, 'bytes': peak}


def copies(files, folder, count):
    """Segments one after the other in one file, so many times: dial9's format allows that."""
    path = folder / 'copies.bin'
    path.unlink(missing_ok=True)
    with path.open('wb') as out:
        for _ in range(count):
            for file in files:
                with open(file, 'rb') as part:
                    shutil.copyfileobj(part, out)
    return path


def larger_dial9(programs, recorded, args):
    """(events, path) of files of once, twice, ... as much."""
    folder = pathlib.Path(programs.folder())
    for count in (1,) if args.quick else COPIES:
        yield recorded['events'] * count, copies(recorded['files'], folder, count)


def larger_tacho(programs, recorded, args):
    yield recorded['events'], pathlib.Path(recorded['file'])
    folder = pathlib.Path(programs.folder())
    for millions in () if args.quick else MILLIONS:
        path = folder / 'copies.tacho'
        path.unlink(missing_ok=True)
        out, _ = programs.output([program('multiply'), recorded['file'], path,
                                  millions * analysis.MILLION], limit=analysis.PATIENCE)
        yield int(words(out.splitlines())['events'][0]), path


def larger(programs, way, recorded, args, say):
    """How long the answers take on traces that get larger, until nobody has one."""
    rows, make = [], larger_dial9 if by_dial9(way) else larger_tacho
    askers = {'tacho report': ask_tacho}
    if by_dial9(way):
        askers['its toolkit'] = lambda path: ask_dial9(args.toolkit, path)
    for events, path in make(programs, recorded, args):
        size = path.stat().st_size
        say(f'  {way}: {events / 1e6:.1f} million events, {size / 1e6:.0f} MB')
        for by, argv in list(askers.items()):
            rows.append(dict(took(programs, argv(path)), by=by, events=events, trace_bytes=size))
            if 'failed' in rows[-1]:
                del askers[by]
        if not askers:
            break
    return rows


# Faults ---------------------------------------------------------------------------------


def planted(fault):
    """The lines of faults.rs of which an answer must name one: those of the function at fault, or for
    a task that nobody wakes where it waits and where it was spawned."""
    lines = (SOURCE / 'src' / 'faults.rs').read_text().splitlines()
    found = [i for i, line in enumerate(lines) if any(text in line for text in FAULTS[fault][1])]
    if fault in ('lost', 'lone'):
        return {i + 1 for i in found}
    first = max(i for i in range(found[0] + 1) if lines[i].startswith('fn '))
    return set(range(first + 1, lines.index('}', first) + 2))


def names_line(findings, fault):
    """Which of the findings names such a line, from 1 on; 0: none does."""
    wanted = planted(fault)
    for i, text in enumerate(findings):
        if any(int(at) in wanted for at in re.findall(r'faults\.rs:(\d+)', text)):
            return i + 1
    return 0


def answer_tacho(programs, service):
    """(what the first finding says, all findings), of the service as it runs: when it ends, its runtime
    drops the task that nobody woke."""
    path = service.dump()
    service.stop()
    out, _ = programs.output(ask_tacho(path))
    findings = re.split(r'^ *\d+\. ', out.partition('\ncallbacks by length')[0],
                        flags=re.MULTILINE)[1:]
    out, _ = programs.output([TACHO, 'report', '--json', path])
    said = [f['summary'] for f in json.loads(out)['findings']]
    return said[0] if said else 'nothing is wrong', findings


def complaints(report):
    parts = re.split(r'^─+\n(.*)\n─+$', report, flags=re.MULTILINE)
    return '\n'.join(text for title, text in zip(parts[1::2], parts[2::2])
                     if title.startswith(COMPLAINTS))


def answer_dial9(programs, service, toolkit):
    """The same; its scan of red flags, its report and its diagnosis of long polls count as one."""
    service.stop()
    folder = service.segments()[0].parent
    script = {name: toolkit / f'dial9-{name}' / 'scripts' for name in ('red-flags',
                                                                      'diagnose-long-poll')}
    flags, _ = programs.output(['node', script['red-flags'] / 'red_flag_scan.js', folder])
    report, _ = programs.output(ask_dial9(toolkit, folder))
    diagnosis, _ = programs.output(
        ['node', script['diagnose-long-poll'] / 'diagnose_long_poll.js', folder])
    said = re.findall(r'\[([a-z-]+)\] (.*)', flags)
    first = {}
    for flag, text in said:
        first.setdefault(flag, text)
    verdict = re.findall(r'=> (.*)', diagnosis)
    said = '; '.join([f'{flag}: {text}' for flag, text in first.items()] + verdict)
    return said or 'no red flags found', ['\n'.join((flags, complaints(report), diagnosis))]


def find_fault(programs, way, fault, toolkit):
    service = Service(programs, way, fault)
    service.load(FAULT_SECONDS, FAULT_RATE)
    said, findings = answer_dial9(programs, service, toolkit) if by_dial9(way) \
        else answer_tacho(programs, service)
    service.finish()
    return {'said': said, 'named_by': names_line(findings, fault), 'findings': findings}
