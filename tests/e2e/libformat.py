"""What `tacho cat --json` must say of a trace that format_reader.py read; the members are those
of tacho-cat(1). Shared by the format tests."""
import datetime
import json
import math
import os
import struct
import subprocess

from libcheck import BIN, check, failures  # noqa: F401
from librecords import ID_MAX, Record

API = {
    0x01: 'park', 0x02: 'unpark', 0x03: 'poll-end', 0x04: 'span-begin', 0x05: 'span-end',
    0x06: 'pause', 0x07: 'loop', 0x41: 'poll-begin', 0x42: 'poll-switch', 0x43: 'wake',
    0x44: 'task-end', 0x45: 'lock-wait', 0x46: 'lock-waited', 0x47: 'queue-depth',
    0x48: 'counter', 0x49: 'async-end', 0x4A: 'trigger', 0x80: 'lock-release', 0x81: 'steal',
    0x82: 'async-begin', 0xC0: 'spawn', 0xC1: 'task-waits', 0xC2: 'trace-id', 0xC3: 'log',
    0xC4: 'event', 0xC5: 'poll-hist',
}
NAMES = {
    **API, 0x08: 'switch-out', 0x09: 'switch-in', 0x4B: 'work-submit', 0x4C: 'work-begin',
    0x4D: 'work-end', 0x4E: 'ready', 0x4F: 'late', 0x50: 'stack', 0x51: 'sample', 0x53: 'no-waker',
    0x83: 'sched', 0x84: 'stopped', 0xC6: 'call', 0xC7: 'sample', 0xC8: 'kernel-sample',
    0xCA: 'sched',
}
SENTINELS = [None, 'poll', 'wake', 'lag', 'sched', 'queue']
READY = ['in', 'pri', 'out', 'err', 'hup', 'nval', 'rdnorm', 'rdband', 'wrnorm', 'wrband', 'msg',
         None, None, 'rdhup']
DESCRIPTORS = [None, 'file', 'folder', 'pipe', 'terminal', 'TCP', 'UDP', 'UNIX', 'socket',
               'eventfd', 'device']
CLASSES = [None, 'text', 'kind', 'loop', 'span', 'counter', 'gauge', 'place', 'schema', 'stack',
           'module', 'descriptor']
SUBJECTS = [None, 'wait', 'call', 'poll', 'iteration']
LEVELS = [None, 'waits', 'callbacks', 'api']


# ---------------------------------------------------------------------- program


def tacho(*arguments, **more):
    """The program's outcome, texts as UTF-8."""
    return subprocess.run([BIN, *map(str, arguments)],
                          capture_output=True, timeout=120, stdin=subprocess.DEVNULL,
                          encoding='utf-8', env=dict(os.environ, TZ='UTC'), **more)


def cat(path, **more):
    """What `tacho cat --json` says: a list, or what went wrong as a text."""
    p = tacho('cat', '--json', path, **more)
    if p.returncode:
        return f'exit {p.returncode}: {p.stderr}'
    return [json.loads(line) for line in p.stdout.splitlines()]


def difference(expected, got):
    """None, or where two lists of events differ first."""
    if isinstance(got, str):
        return got
    for i, (a, b) in enumerate(zip(expected, got)):
        if a != b:
            keys = [k for k in {**a, **b} if a.get(k, 'not there') != b.get(k, 'not there')]
            return f'event {i}: ' + '; '.join(
                f'{k}: reader {a.get(k, "not there")!r}, tacho {b.get(k, "not there")!r}'
                for k in keys) + f' in {b}'
    if len(expected) != len(got):
        return f'{len(expected)} events by the reader, {len(got)} by tacho'
    return None


# ------------------------------------------------------------------------ values


def number(value):
    """Integers beyond 2^53 - 1 are strings."""
    return value if abs(value) < 1 << 53 else str(value)


def signed(word):
    return number(word - (1 << 64) if word >> 63 else word)


def real(word):
    value = struct.unpack('<d', struct.pack('<Q', word))[0]
    if math.isnan(value):
        return 'NaN'
    if math.isinf(value):
        return 'Infinity' if value > 0 else '-Infinity'
    return value


def string(data):
    return bytes(data).decode('utf-8', 'backslashreplace')


def known(data):
    return string(data) if data else None


def utc(real_ns):
    if not real_ns:
        return None
    at = datetime.datetime.fromtimestamp(real_ns // 10**9, datetime.timezone.utc)
    return at.strftime('%Y-%m-%dT%H:%M:%S') + f'.{real_ns % 10**9:09}Z'


class Json:
    """The events of a trace as JSON objects."""

    def __init__(self, trace):
        self.trace = trace
        self.all = trace.events()

    def events(self):
        return [self.event(*e) for e in self.all]

    def event(self, ns, thread, stream, what):
        t = self.trace
        who = t.thread(thread)
        record = isinstance(what, Record)
        out = {
            'ns': number(ns), 'rel_ns': number(ns - self.all[0][0]), 'wall': utc(t.wall(ns)),
            'pid': t.number(1, 0), 'thread': thread, 'tid': who[0] if who else None,
            'thread_name': known(who[1]) if who else None, 'stream': stream,
            'type': NAMES.get(what.type, 'unknown') if record else 'resume',
        }
        self.ns = ns
        if not record:
            out.update(self.resume(*what))
        elif hasattr(self, 'put_%02x' % what.type):
            out.update(getattr(self, 'put_%02x' % what.type)(what.arg, what.words))
        else:
            out.update(type_number=what.type, arg=what.arg,
                       words=[number(w) for w in what.words])
        return out

    def address(self, address, returns=False):
        at = (address - returns) % (1 << 64)
        m = self.trace.module_at(at, self.ns)
        out = {'address': hex(address), 'module': known(m.name) if m else None,
               'offset': hex((address - m.start + m.offset) % (1 << 64)) if m else None}
        frames = [{'function': known(function), 'file': known(file), 'line': line or None}
                  for function, file, line in self.trace.symbols.get((at, m.id if m else 0), [])]
        out.update(frames[0] if frames else {})
        if len(frames) > 1:
            out['inlined_into'] = frames[1:]
        return out

    def stack(self, frames, exact):
        return [self.address(a, i > 0 or not exact) for i, a in enumerate(frames)]

    def id(self, number_):
        if number_ == 0:
            return None
        d = self.trace.definitions.get(min(number_, ID_MAX))
        out = {'id': min(number_, ID_MAX), 'class': CLASSES[d.kind] if d else None}
        if not d or d.kind != 9:
            out['name'] = known(d.name) if d else None
        if d and d.file:
            out.update(file=string(d.file), line=d.line or None)
        if d and d.kind == 3:
            out.update(number=number(d.value),
                       level=LEVELS[d.detail] if d.detail < len(LEVELS) else None)
        if d and d.kind in (2, 7) and d.value:
            out['code'] = self.address(d.value, d.kind == 7)
        if d and d.kind in (5, 6):
            out['unit'] = known(d.unit)
        if d and d.kind == 9:
            out['frames'] = self.stack(d.frames, d.exact)
        if d and d.cut:
            out['cut'] = True
        return out

    def resume(self, missing, first, s):
        out = {'first': first, 'missing': number(missing), 'dropped': s.drops,
               'loop': self.id(s.loop), 'parked': s.parked is not None,
               'open_count': s.open_count, 'open': []}
        if s.parked is not None:
            out['parked_ns'] = number(s.parked) or None
        for kind, what, task, since in s.open:
            item = {'span': self.id(kind)} if what == 4 else \
                {'kind': self.id(kind), 'task': number(task) or None}
            out['open'].append({**item, 'since_ns': number(since) or None})
        return out

    # One function a type, by its number.

    def put_01(self, arg, _):
        return {'loop': self.id(arg)}

    def put_02(self, arg, _):
        return {'ready': arg}

    def put_03(self, arg, _):
        return {'result': {1: 'pending', 2: 'done'}.get(arg)}

    def put_04(self, arg, _):
        return {'span': self.id(arg)}

    put_05 = put_04

    def put_06(self, arg, _):
        return {'paused': arg != 0}

    put_07 = put_01

    def put_08(self, arg, _):
        return {'preempted': arg != 0}

    def put_09(self, arg, _):
        return {'cpu': arg}

    def put_41(self, arg, w):
        return {'kind': self.id(arg), 'task': number(w[0]) or None}

    put_42 = put_41

    def put_43(self, _, w):
        return {'task': number(w[0]) or None}

    put_44 = put_43

    def put_45(self, arg, w):
        return {'lock': number(w[0]), 'at': self.id(arg)}

    def put_46(self, arg, w):
        return {'lock': number(w[0]), 'taken': bool(arg & 1), 'signal': bool(arg & 2)}

    def put_47(self, arg, w):
        return {'loop': self.id(arg), 'depth': number(w[0])}

    def put_48(self, arg, w):
        d = self.trace.definitions.get(arg)
        form = {1: signed, 2: real}.get(d.detail if d and d.kind in (5, 6) else 0, hex)
        return {'counter': self.id(arg), 'value': form(w[0])}

    def put_49(self, arg, w):
        return {'span': self.id(arg), 'span_id': number(w[0])}

    def put_4a(self, arg, w):
        found = [t for t in self.trace.triggers if t['number'] == w[0]]
        return {'reason': self.id(arg), 'number': number(w[0]), **sentinel(found[0] if found else None)}

    def put_4b(self, arg, w):
        return {'kind': self.id(arg), 'work': number(w[0]) or None}

    put_4c = put_4b

    def put_4d(self, _, w):
        return {'work': number(w[0]) or None}

    def put_4e(self, arg, w):
        names = [n for i, n in enumerate(READY) if n and arg >> i & 1]
        rest = arg & ~sum(1 << i for i, n in enumerate(READY) if n)
        data = w[0] >> 63
        return {'fd': None if data else number(w[0]), 'data': hex(w[0] & ~(1 << 63)) if data else None,
                'events': names + ([hex(rest)] if rest else [])}

    def put_4f(self, _, w):
        return {'late_ns': number(w[0])}

    def put_50(self, arg, w):
        return {'of': number(w[0]), 'at': self.id(arg)}

    def put_51(self, arg, w):
        return {'cpu_ns': number(w[0]), 'at': self.id(arg)}

    def put_80(self, arg, w):
        return {'lock': number(w[0]), 'waiters': number(w[1]), 'at': self.id(arg)}

    def put_81(self, arg, w):
        return {'thief': self.id(arg), 'victim': self.id(w[0]), 'tasks': number(w[1])}

    def put_82(self, arg, w):
        return {**self.put_49(arg, w), 'parent': number(w[1]) or None}

    def put_83(self, arg, w):
        return {'runnable_ns': number(w[0]), 'involuntary_switches': arg,
                'minor_faults': w[1] & 0xFFFFFFFF, 'major_faults': w[1] >> 32}

    def put_84(self, arg, w):
        return {'until_ns': number(w[0]) or None, 'seen_ns': number(w[1]) or None,
                'traced': bool(arg & 1), 'frozen': bool(arg & 2)}

    def put_c0(self, arg, w):
        return {'kind': self.id(arg), 'task': number(w[1]) or None,
                'parent': number(w[2]) or None, 'at': self.id(w[0] >> 16)}

    def put_c1(self, arg, w):
        return {'task': number(w[1]) or None, 'for': self.id(arg),
                'resource': number(w[2]) or None, 'at': self.id(w[0] >> 16)}

    def put_c2(self, _, w):
        return {'trace_id': f'{w[2]:016x}{w[3]:016x}', 'span_id': number(w[1]) or None}

    def put_c3(self, arg, w):
        length = w[0] >> 16
        data = struct.pack(f'<{len(w) - 1}Q', *w[1:])
        fits = length & 0x7FFF <= len(data)
        return {'level': arg, 'text': string(data[:length & 0x7FFF]) if fits else None,
                'cut': bool(fits and length & 0x8000)}

    def put_c4(self, arg, w):
        d = self.trace.definitions.get(arg)
        fields, at = {}, 1
        for i, (name, kind) in enumerate(d.fields if d else []):
            if not w[0] >> 16 + i & 1:
                continue
            value, at = self.field(kind, w, at)
            fields[string(name)] = value
        return {'event': self.id(arg), 'fields': fields}

    def field(self, kind, w, at):
        """(value, place of the next field)."""
        if kind == 5:
            size = w[at] & 0x7FFF
            end = at + 1 + (size + 7) // 8
            return string(struct.pack(f'<{end - at - 1}Q', *w[at + 1:end])[:size]), end
        return {1: number, 2: signed, 3: real, 4: bool}[kind](w[at]), at + 1

    def put_c5(self, arg, w):
        pairs = [(p >> 48, p & (1 << 48) - 1) for p in w[4:]]
        return {'kind': self.id(arg), 'loop': self.id(w[0] >> 16), 'since_ns': number(w[2]) or None,
                'total_ns': number(w[3]), 'count': number(sum(n for _, n in pairs)),
                'buckets': [{'from_ns': number(1 << b if b else 0), 'count': number(n)}
                            for b, n in pairs]}


    def put_c6(self, arg, w):
        error, kind = w[3] >> 32 & 0xFFFF, w[3] >> 48
        return {'call': self.id(arg), 'duration_ns': number(w[1]),
                'on': None if w[2] == (1 << 64) - 1 else number(w[2]),
                'fd_kind': DESCRIPTORS[kind] if kind < len(DESCRIPTORS) else None,
                'path': self.id(w[3] & 0xFFFFFFFF), 'errno': error or None,
                'error': os.strerror(error) if error else None, 'at': self.id(w[0] >> 16)}

    def put_c7(self, _, w):
        at = {'id': None, 'class': 'stack', 'frames': self.stack(w[2:], True)}
        if w[0] >> 16 & 1:
            at['cut'] = True
        return {'cpu_ns': number(w[1]), 'at': at}

    def put_c8(self, arg, w):
        out, kernel = self.put_c7(arg, w), min(arg, len(w) - 2)
        out['at']['frames'] = [
            {**({'kernel': True} if i < kernel else {}), **self.address(a, i not in (0, kernel))}
            for i, a in enumerate(w[2:])]
        return {**out, 'kernel_frames': kernel}

    def put_ca(self, arg, w):
        subject = w[0] >> 16 & 0xFF
        return {'subject': SUBJECTS[subject] if subject < len(SUBJECTS) else None,
                'begin_ns': number(w[2]) or None, 'runnable_ns': number(w[1]),
                'involuntary_switches': arg, 'minor_faults': w[3] & 0xFFFFFFFF,
                'major_faults': w[3] >> 32}


# What `tacho info --json` must say ---------------------------------------------

STATES = [None, 'off', 'recording', 'paused', 'stopped']
TAKEN_BY = ['box', 'snapshot', 'crash handler', 'dump', 'recover', 'segment']
GAPS = [None, 'no-agent', 'no-space', 'unwritable', 'too-fast', 'kernel']
ABSENT = [None, 'rights', 'static', 'machine', 'libc', 'environment', 'library', 'excluded', 'idle',
          'refused', 'hidden']
CLOCKS = [None, 'CLOCK_MONOTONIC', 'TSC', 'CNTVCT']
ARCHS = {62: 'x86-64', 183: 'arm64'}
SOURCES = 'api crash_handler waits threads locks calls libuv libevent cpu_samples sched'.split()
LOSSES = ('no_chunk no_thread nesting defs_full text_cut stack_cut overwritten_records '
          'overwritten_chunks min_age grow clock_back modules hist_full record_big abandoned '
          'unwind not_sampled').split()
REGISTERS = {62: ('r8 r9 r10 r11 r12 r13 r14 r15 rdi rsi rbp rbx rdx rax rcx rsp rip eflags '
                  'csgsfs err trapno oldmask cr2').split(),
             183: [f'x{i}' for i in range(31)] + ['sp', 'pc', 'pstate']}


def pick(table, i):
    return table[i] if i is not None and i < len(table) and table[i] else 'unknown'


def listed(table, i):
    return table[i] if i < len(table) else 0


def counted(items):
    out = {}
    for item in items:
        out[item] = out.get(item, 0) + 1
    return out


def sentinel(t):
    if not t or not t['sentinel']:
        return {'sentinel': None, 'value': None}
    return {'sentinel': pick(SENTINELS, t['sentinel']), 'value': number(t['value'])}


def gap_info(t):
    return [{'from_ns': number(from_), 'to_ns': number(to), 'wall': utc(t.wall(from_)),
             'records': number(records) or None, 'reason': pick(GAPS, reason),
             'error': os.strerror(error) if error else None}
            for from_, to, records, reason, error in sorted(t.gaps)]


def absent_info(t):
    return [{'pid': pid, 'comm': string(comm) or None, 'exe': string(exe) or None,
             'seen_ns': number(seen), 'reason': pick(ABSENT, reason), 'said': string(said) or None,
             'error': os.strerror(error) if error else None,
             'hindered': reason not in (7, 8), **({'parent_pid': parent} if parent else {})}
            for _, (pid, parent, reason, error, seen, comm, exe, said) in sorted(t.absent.items())]


def process_info(t):
    why_ns = t.number(30)
    return {
        'why': known(t.meta.get(29)), 'why_ns': number(why_ns or 0) or None,
        'why_wall': utc(t.wall(why_ns)) if why_ns else None, 'segment': t.number(31),
        'recording_number': number(t.number(32, 0)) or None, 'agent_cpu_ns': t.number(33),
        'pid': t.number(1, 0), 'uid': t.number(2, 0), 'parent_pid': t.number(15) or None,
        'start_time': t.number(3, 0), 'boot_id': t.meta.get(4, bytes(16)).hex(),
        'program': known(t.meta.get(6)), 'exe': known(t.meta.get(5)),
        **({'command_line': known(t.meta[40])} if 40 in t.meta else {}),
        'service': known(t.meta.get(8)), 'host': known(t.meta.get(17)),
        'version': known(t.meta.get(24)), 'build_id': t.meta.get(7, b'').hex() or None,
        'arch': ARCHS.get(t.number(18)), 'clock': pick(CLOCKS, t.number(9, 0)),
        'state': pick(STATES, t.number(13, 0)), 'reason': known(t.meta.get(14)),
        'alive': bool(t.number(25)) if 25 in t.meta else None,
        'taken_by': pick(TAKEN_BY, t.number(23, 0)), 'taken': utc(t.number(22)),
        'since': utc(t.number(20)), 'max_bytes': t.number(10, 0),
        'min_age_ns': t.number(11, 0), 'poll_threshold_ns': t.number(12, 0),
        'threads_seen': t.number(28, 0),
    }


ENDS = ['untold', 'exited', 'killed', 'gone', 'running', 'exec']


def end_of(t):
    """[how, status, flags, ns] of the only process, by its crash records where nobody saw it; and
    until when records tell all, or None."""
    how, status, flags, ns = [t.number(key, 0) for key in (35, 36, 38, 37)]
    last = max((e[0] for e in t.events()), default=0)
    by = None  # the thread whose crash ended it
    for c in sorted(t.crashes, key=lambda c: c['ticks']):
        at = t.clock.ns(c['ticks'])
        again = by == c['tid']
        if (how == 3 or how == 4 and t.number(23) == 2 or again) and last <= at + 10**9 and \
                not c['survived']:
            how, status, flags, by = 2, c['signal'], flags & ~4, c['tid']
            ns = ns if ns and t.number(23) != 2 and not again else at
    return [how, status, flags, ns], ns if how not in (0, 5) and t.number(13) == 2 and ns else None


def end_info(t):
    """Of `tacho info --json` without sentence and name of the signal."""
    (how, status, flags, ns), _ = end_of(t)
    if how == 0:
        return {}
    return {'end': {'how': ENDS[how], 'status': status if how == 1 else None,
                    'ns': number(ns) or None, 'core_dumped': bool(flags & 1),
                    'out_of_memory': bool(flags & 2), 'earlier_boot': bool(flags & 4)}}


def thread_info(t):
    table = {e['number']: e for e in t.threads if e['state']}
    out = []
    for number_ in sorted(table.keys() | {s.thread for s in t.stretches}):
        tid, name = t.thread(number_)
        e = table.get(number_, {'state': 0, 'start': 0})
        out.append({'number': number_, 'tid': tid, 'name': known(name), 'running': e['state'] == 1,
                    'start_ns': number(t.clock.ns(e['start'])) if e['start'] else None})
    return out


def crash_info(t, c):
    json_ = Json.__new__(Json)
    json_.trace, json_.ns = t, t.clock.ns(c['ticks'])
    names = REGISTERS.get(c['arch'], [])
    more = {'said': known(c['said'])} if c['said'] else {}
    more.update({'survived': True} if c['survived'] else {})
    return {'signal_number': c['signal'], **more, 'code': c['code'], 'address': hex(c['address']),
            'ns': number(json_.ns), 'wall': utc(t.wall(json_.ns)), 'tid': c['tid'],
            'thread_name': known(c['thread_name'].split(b'\0')[0]), 'unwind_failed': c['failed'],
            'frames': json_.stack(c['frame'], True),
            'registers': {names[i] if i < len(names) else f'r#{i}': hex(v)
                          for i, v in enumerate(c['reg'])}}


def info(t):
    """Of `tacho info --json` all but path, problems, sentences, names of signals and what the model
    makes of the events."""
    events = t.events()
    records = [e for e in events if isinstance(e[3], Record)]
    holes = [e for e in events if not isinstance(e[3], Record)]
    broken = [e[0] for e in holes if not e[3][1] and (e[3][0] or e[3][2].drops)]
    out = {'event_count': len(records), 'missing_records': sum(e[3][0] for e in holes),
           'dropped_records': sum(e[3][2].drops for e in holes)}
    if events:
        first, last = events[0][0], max(events[-1][0], end_of(t)[1] or 0)
        out.update(first_ns=number(first), last_ns=number(last), window_ns=last - first,
                   unbroken_ns=last - (broken[-1] if broken else first))
    process = {**process_info(t), **end_info(t)}
    process['events'] = counted(NAMES.get(e[3].type, 'type-0x%02x' % e[3].type) for e in records)
    process['definitions'] = counted(CLASSES[d.kind] for d in t.definitions.values())
    process['threads'] = thread_info(t)
    process['modules'] = [
        {'path': string(d.name), 'start': hex(d.start), 'end': hex(d.end),
         'offset': hex(d.offset), 'build_id': d.build_id.hex() or None}
        for _, d in sorted(t.definitions.items()) if d.kind == 10]
    states = ['absent', 'off', 'on', 'refused']
    process['sources'] = [{'name': n, 'state': states[t.sources[i][0] if i < len(t.sources) else 0]}
                          for i, n in enumerate(SOURCES)]
    unknown = [i for i in range(len(LOSSES), len(t.losses)) if t.losses[i]]
    names = LOSSES + [f'unknown_{i:02}' for i in range(len(LOSSES), max(unknown, default=0) + 1)]
    process['losses'] = [{'name': n, 'count': listed(t.losses, i)} for i, n in enumerate(names)]
    process['gaps'] = gap_info(t)
    process['triggers'] = [
        {'number': g['number'], 'tid': g['tid'], 'ns': number(t.clock.ns(g['ticks'])),
         'wall': utc(t.wall(t.clock.ns(g['ticks']))), 'reason': string(g['reason']),
         **sentinel(g)}
        for g in sorted(t.triggers, key=lambda g: g['number'])]
    process['crashes'] = [crash_info(t, c) for c in sorted(t.crashes, key=lambda c: c['tid'])]
    if t.absent:
        out['absent'] = absent_info(t)
    return dict(out, processes=[process])


def tacho_info(path, **more):
    """What `tacho info --json` says, without what info() leaves out; or what went wrong."""
    p = tacho('info', '--json', path, **more)
    if p.returncode:
        return f'exit {p.returncode}: {p.stderr}'
    said = json.loads(p.stdout)
    del said['path'], said['problems']
    for entry in said.get('absent', []):
        del entry['text']
    for process in said['processes']:
        for member in ('text', 'signal'):
            process.get('end', {}).pop(member, None)
        process.pop('threads_at_end', None)
        for part, members in (('sources', ['reason']), ('losses', ['text', 'lossy']), ('gaps', ['text']),
                              ('crashes', ['signal'])):
            for entry in process[part]:
                for member in members:
                    del entry[member]
    return said


def first_difference(a, b, where='info'):
    """None, or where two JSON values differ first: `a` is the reader's, `b` tacho's."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in {**a, **b}:
            why = first_difference(a.get(key, 'not there'), b.get(key, 'not there'),
                                   f'{where}.{key}')
            if why:
                return why
        return None
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            why = first_difference(x, y, f'{where}[{i}]')
            if why:
                return why
        return None
    return None if a == b else f'{where}: reader {a!r}, tacho {b!r}'
