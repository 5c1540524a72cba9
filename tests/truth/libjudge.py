"""What a report must say of a draw, given the truth about it."""
import re

from libdraw import AT_END
from librun import MS

DUE = 0.02  # of the window, in waiting; or of the capacity of several threads
STALL = 50 * MS
STALLS = 3
MARGIN = 1.25  # what is this near to the line is not demanded
WITHIN = 0.1
LATE = 20 * MS  # of the client, which nothing but the machine keeps
FAR = 3  # so many times as much time must come first
FULL = 0.9  # of the window, of a loop that is full
FLOOD = 0.5  # of what a loop runs, for one descriptor
BEATS = 10  # that a rhythm has before it stops
UNITS = {'ns': 1, 'us': 1000, 'ms': MS, 's': 1000 * MS}
DURATION = re.compile(r'(?<![\w.])([\d.]+) (ns|us|ms|s)\b')
CPU = 'kernel-scheduling-delay'


# The machine ---------------------------------------------------------------------------


def disturbed(truth):
    """Why the machine, and not the draw, made what was measured; '' when it did not."""
    name, window = truth.draw.fault.name, truth.window
    if truth.steal > 0.05:
        return f'{100 * truth.steal:.0f} % of the time was stolen from the virtual machine'
    if truth.late > LATE:
        return f'the client was kept for {truth.late / MS:.0f} ms'
    if name in ('neighbours', 'quota') or truth.draw.contended:
        return ''
    # Who computes much waits more often.
    limit = 0.03 * window * truth.threads + 0.05 * truth.ran
    # The kernel's own threads write, on the CPUs of the program; an alarm about healthy ones is
    # judged by how long they waited; the rest ends by something else.
    waits = name not in ('fsync', *AT_END) and truth.draw.fault.kind != 'healthy'
    if name == 'fsync' and truth.runnable * 2 > sum(truth.durations()):
        return f'of its calls, threads waited {truth.runnable / MS:.0f} ms for a CPU'
    if waits and truth.delayed > limit:
        return f'serving threads waited {truth.delayed / MS:.0f} ms for a CPU'
    if name in ('stop', 'pool', 'herd', 'async-lock', *AT_END) or truth.draw.fault.kind == 'overload':
        return ''
    if truth.longest_healthy > 10 * MS + 1000 * truth.draw.work_us:
        return f'a healthy request took {truth.longest_healthy / MS:.1f} ms'
    if name in ('sleep', 'poll') and \
            max(truth.durations(), default=0) > (1.2 * truth.draw.size_ms + 10) * MS:
        return f'a sleep took {max(truth.durations()) / MS:.1f} ms'
    late = truth.unexplained()
    if late > 0.01 * window:
        return f'requests that met no fault waited {late / MS:.0f} ms'
    return ''


# What must be found --------------------------------------------------------------------


def behind(truth, took):
    """What others waited because of it, where several threads serve."""
    d = truth.draw
    if not d.contended:
        return truth.waited_for_it() - sum(took)
    # What waits for the CPU can not be told from what waits for the fault, but where each loop has its own.
    return (truth.met() - sum(took)) / d.loops if d.loops > 1 else 0


def due(truth):
    """Whether the fault cost requests so much that it must be found."""
    d, window = truth.draw, truth.window
    name = d.fault.name
    if d.fault.kind == 'healthy' or not d.visible:
        return False
    if d.fault.kind == 'leak':
        return len(truth.occurrences) >= 150
    if name in AT_END:
        return True
    if name in ('timer-stops', 'feed-stops'):
        return False
    if name == 'rhythm':
        return truth.count >= BEATS
    if name == 'lost-wake':
        return any(took > 1200 * MS for took in truth.durations())
    if name in ('unread', 'flood-light'):
        return truth.count > 1500 * window / 1e9  # the loop never rests, whoever waits
    if name == 'neighbours':
        return min(truth.runnable, truth.waited()) > MARGIN * DUE * window
    if name == 'quota':
        return min(truth.throttled, truth.waited()) > MARGIN * DUE * window
    took = truth.own() if d.contended else truth.durations()
    if d.several and d.fault.kind not in ('stopped', 'overload'):
        # Others go on meanwhile: only the capacity is lost, and what waits for it.
        lost = sum(took) if name != 'cpu' else 0
        return lost > MARGIN * DUE * window * d.threads or \
            behind(truth, took) > MARGIN * DUE * window * d.processes
    waited = truth.met() if d.contended or name == 'mixed' else truth.waited()
    if all(o.is_code for o in truth.occurrences):
        # What a request computes for itself is its work; what others wait meanwhile is not.
        waited -= sum(took)
    if name == 'fsync':
        # What was written before, and the kernel's threads, are not the call.
        waited = min(waited, sum(took))
    return waited > MARGIN * DUE * window or sum(1 for t in took if t > 1.1 * STALL) >= STALLS


def noted(truth):
    """Whether only those that met the fault waited, but so much that there is a note about it; or a rhythm
    stopped that may have been meant to."""
    d = truth.draw
    if d.fault.name in ('timer-stops', 'feed-stops'):
        return truth.count >= BEATS
    return d.several and d.fault.kind in ('call', 'child', 'condition', 'lock', 'hand-over') and \
        sum(truth.own()) > MARGIN * DUE * truth.window * d.processes


def also_right(truth, finding):
    """What can be known is less in some shapes."""
    draw, rule = truth.draw, finding['rule']
    if draw.fault.name == 'pool' and draw.shape == 'pool':
        return rule == 'blocking-call'  # it is not libuv's: nothing is known but what threads do
    if draw.shape == 'workers':
        return rule == 'pool-exhausted' and bool(draw.fault.rules)  # by what its threads do
    if draw.fault.name == 'timers-full':
        return rule == 'timer-storm' and sum(truth.durations()) < FULL * truth.window
    if draw.fault.name == 'flood':
        # poll does not tell descriptors apart; a loop that is full is full; and one that has most of it is no flood
        # if others have as much.
        most = truth.count * draw.size_ms * MS > MARGIN * FLOOD * truth.ran
        return rule == 'loop-saturated' and (draw.shape == 'poll' or not due(truth) or not most)
    return False


def is_fault(truth, finding):
    return finding['rule'] in truth.draw.fault.rules or also_right(truth, finding)


def allowed(truth, finding):
    """Whether an alarm that is not the planted fault is true nevertheless: by the kernel's own count, or,
    of a healthy server, by what its requests waited, for which there is no other reason."""
    if finding['rule'] == CPU:
        healthy = truth.draw.fault.kind == 'healthy'
        return max(truth.delayed, truth.all_runnable) > DUE * truth.window or \
            (healthy and truth.waited() > DUE * truth.window)
    return False


def may_come_first(truth, finding):
    """Where the kernel ran others, both are true: that it waits for the CPU, and the fault. Which of them is
    first is not asked, unless one took far more time. What never comes back is first in any case."""
    return truth.draw.fault.name not in AT_END and not is_fault(truth, finding) and allowed(truth, finding) and \
        (not truth.draw.fault.sized or sum(truth.own()) < FAR * truth.delayed)


# Sizes ---------------------------------------------------------------------------------


def near(value, truth, more=0):
    return abs(value - truth) <= WITHIN * truth + 0.5 * MS + more


def near_any(cost, truths):
    """The time that was lost, or what was waited because of it: which one is the report's choice."""
    if any(near(cost, t) for t in truths):
        return ''
    return f'cost {cost / MS:.4g} ms; truth ' + ' or '.join(f'{t / MS:.4g} ms' for t in truths)


def outside(what, value, low, high):
    """'' if it is in between, else what is wrong."""
    if (1 - WITHIN) * low - 0.5 * MS <= value <= (1 + WITHIN) * high + 0.5 * MS:
        return ''
    between = f'{high / MS:.4g} ms' if near(low, high) else f'{low / MS:.4g} to {high / MS:.4g} ms'
    return f'{what} {value / MS:.4g} ms; truth {between}'


def longest_told(finding):
    match = re.search(r'up to ([\d.]+) (ns|us|ms|s)\b', finding['summary'])
    return float(match.group(1)) * UNITS[match.group(2)] if match else None


def sized_by_measure(truth, finding):
    """A call keeps its length, with or without what its thread then lacked a CPU for; code is its CPU time."""
    measure = finding.get('measure')
    if not measure:
        return 'it has no measure'
    own, wall = truth.own(), truth.kept()
    low = sum(own)
    if truth.draw.fault.kind in ('lock', 'hand-over'):
        low = max(0, low - truth.helpers_runnable)  # the holder may not have run
    slack = 0 if low == sum(own) else truth.helpers_runnable
    return outside('all take', measure['total_ns'], low, sum(wall)) or \
        outside('the longest takes', measure['longest_ns'], max(0, max(own) - slack), max(wall))


def sized(truth, finding):
    """Whether the sizes that are told are true; what is wrong with them."""
    name = truth.draw.fault.name
    if name == 'neighbours':
        return near_any(finding['cost_ns'], (truth.runnable, truth.waited()))
    if name == 'quota':
        return near_any(finding['cost_ns'], (truth.throttled, truth.runnable, truth.waited()))
    if truth.draw.contended or name == 'mixed':
        return sized_by_measure(truth, finding)
    took = truth.kept()
    wrong = near_any(finding['cost_ns'], (sum(took), truth.waited(), truth.waited() - sum(took)))
    longest = longest_told(finding)
    # The callback has its healthy work, too, in which the machine may have kept it.
    if not wrong and longest is not None and \
            not near(longest, max(took), truth.longest_healthy):
        wrong = f'the longest took {max(took) / MS:.3g} ms, not {longest / MS:.3g} ms'
    times = re.search(r'\b(\d+) times\b', finding['summary'])
    long = sum(1 for t in took if t > MS)  # the short ones may be counted or not
    if not wrong and times and not \
            (1 - WITHIN) * long - 1 <= int(times.group(1)) <= (1 + WITHIN) * len(took) + 1:
        wrong = f'it happened {len(took)} times, not {times.group(1)}'
    return wrong


def timed(truth, finding):
    """The same of a rhythm: when it stopped, or for how long it has been silent."""
    last = max(o.end for o in truth.occurrences)
    slack = 2 * truth.draw.period_ms * MS + 20 * MS
    moments = [e[name] for e in finding['evidence'] for name in ('from_ns', 'to_ns')]
    texts = [finding['summary']] + [e['text'] for e in finding['evidence']]
    silences = [float(n) * UNITS[unit] for text in texts for n, unit in DURATION.findall(text)]
    if any(abs(at - last) < slack for at in moments) or \
            any(near(ns, truth.end - last, slack) for ns in silences):
        return ''
    return f'that it stopped {(last - truth.begin) / MS:.0f} ms after the begin is not told'


def waiting_for_cpu(truth, found):
    """Whether the time without a CPU is told, and as long as the kernel counted it; None: not asked."""
    if not truth.draw.contended or min(truth.delayed, truth.waited()) < 2 * DUE * truth.window * truth.draw.processes:
        return None
    told = sum((f.get('measure') or {}).get('total_ns', f['cost_ns']) for f in found['findings'] if f['rule'] == CPU)
    return not outside('CPU', told, 0.9 * truth.runnable, 1.1 * max(truth.delayed, truth.all_runnable))


# Places and groups ---------------------------------------------------------------------


def function(where):
    """Without the modules of Rust that it is in, and the line that tells several blocks of it apart."""
    return re.sub(r':\d+$', '', (where['function'] or '').rsplit('::', 1)[-1])


def of_finding(truth, finding):
    """The truth about the one of two faults that it names."""
    named = [f for f in map(function, finding['where'][:1]) if f in truth.draw.fault.places]
    return truth.of(named[0]) if truth.draw.fault.name == 'mixed' and named else truth


def placed(truth, finding):
    fault = truth.draw.fault
    functions = [function(where) for where in finding['where']]
    if fault.kind == 'rhythm':
        # Who woke last may be a function, a task or a thread: it must be named at all.
        text = ' '.join([finding['summary']] + [e['text'] for e in finding['evidence']] + functions)
        return any(place in text for place in fault.places)
    return any(f in fault.places for f in (functions if fault.anywhere else functions[:1]))


def processes_told(finding):
    """In how many processes it happened, as the finding says."""
    told = finding.get('processes', finding.get('pids'))
    if isinstance(told, list):
        return len(told)
    if told is not None:
        return told
    match = re.search(r'\b(\d+) of \d+ (?:workers|processes)\b|\bin (\d+) (?:workers|processes)\b',
                      finding['summary'])
    return int(match.group(1) or match.group(2)) if match else 1


def grouped(truth, alarms):
    """One cause is one finding, in whatever processes and threads; what is wrong with that."""
    same = [f for f in alarms if is_fault(truth, f)]
    if len(same) > 1:
        return f'one cause is {len(same)} findings'
    took = {}
    for o, own in zip(truth.occurrences, truth.own()):
        took[o.pid] = took.get(o.pid, 0) + own
    must = sum(1 for ns in took.values() if ns > MARGIN * DUE * truth.window)
    told = processes_told(same[0])
    if truth.draw.processes > 1 and not must <= told <= len(took):
        return f'it is told of {told} processes; truth {must} to {len(took)}'
    return ''


# All of it -----------------------------------------------------------------------------


def headline(found):
    alarms = [f for f in found['findings'] if f['severity'] != 'info'
              and f['explained_by'] is None]
    if not alarms:
        return f'none ({found["verdict"]["category"]})'
    first = alarms[0]
    place = first['where'][0].get('function') if first['where'] else None
    more = f'; then {", ".join(f["rule"] for f in alarms[1:3])}' if len(alarms) > 1 else ''
    return f'{first["rule"]} @ {place}: {first["summary"][:140]}{more}'


class Judgement:
    """right: the fault is first, or there is no alarm where there must be none. placed, sized, grouped: the
    function, the numbers, and that one cause is one finding. cpu: what was waited for the CPU is told beside it.
    clean: no other alarm. True, False, or None where it is not asked."""

    ASKED = ('right', 'placed', 'sized', 'grouped', 'cpu', 'clean')

    def __init__(self, truth, found, samples):
        self.due = due(truth)
        self.healthy = truth.draw.fault.kind == 'healthy'
        self.right = self.placed = self.sized = self.grouped = self.cpu = self.clean = None
        self.why = ''
        self.headline = headline(found)
        alarms = [f for f in found['findings'] if f['severity'] != 'info' and f['explained_by'] is None]
        others = [f for f in alarms if not is_fault(truth, f) and not allowed(truth, f)]
        self.judge_first(truth, found, [f for f in alarms if not may_come_first(truth, f)], samples)
        if self.right and truth.draw.fault.name not in ('stop', 'fsync', 'quota') and \
                any(f['rule'] == 'process-pause' for f in others):
            self.right, self.why = False, 'nothing was stopped'
        if self.due and self.right and truth.draw.fault.name == 'mixed':
            self.judge_second(truth, alarms)
        if self.due and self.right:
            self.clean = not others
            self.cpu = waiting_for_cpu(truth, found)
            if truth.draw.family.grouped:
                self.judge_group(truth, alarms)

    def judge_first(self, truth, found, alarms, samples):
        fault = truth.draw.fault
        first = alarms[0] if alarms else None
        if not first and not self.due and noted(truth):
            self.right = any(is_fault(truth, f) for f in found['findings'])
            self.why = '' if self.right else 'there is no note about it'
        elif not first:
            self.right = not self.due
            self.why = 'nothing was found' if self.due else ''
        elif not is_fault(truth, first):
            self.right = not self.due and allowed(truth, first)
            self.why = '' if self.right else \
                'a wrong cause is first' if fault.rules else 'a false alarm'
        elif not self.due:
            functions = [function(where) for where in first['where']]
            has_place = fault.places and (samples or not fault.needs_samples)
            wrong = has_place and fault.sized and not any(place in functions for place in fault.places)
            self.right = not wrong
            self.why = 'a wrong cause: the place is another one' if wrong else ''
        else:
            self.right = True
            self.judge_details(truth, first, samples)

    def judge_details(self, truth, first, samples):
        fault = truth.draw.fault
        if fault.places and (samples or not fault.needs_samples):
            self.placed = placed(truth, first)
            if not self.placed:
                self.why = f'the place is not {" or ".join(fault.places)}'
        if first['rule'] in fault.rules and (fault.sized or fault.kind == 'rhythm'):
            wrong = (sized if fault.sized else timed)(of_finding(truth, first), first)
            self.sized = not wrong
            self.why = '; '.join(w for w in (self.why, wrong) if w)

    def judge_second(self, truth, alarms):
        """Of two faults each must be named that is due by itself."""
        for name in truth.draw.fault.places:
            one = truth.of(name)
            if one.occurrences and due(one) and not any(function(where) == name for f in alarms
                                                        for where in f['where'][:1]):
                self.right, self.why = False, f'{name} is not named'

    def judge_group(self, truth, alarms):
        wrong = grouped(truth, alarms)
        self.grouped = not wrong
        self.why = '; '.join(w for w in (self.why, wrong) if w)

    def word(self):
        if not self.right:
            return 'WRONG'
        if self.placed is False:
            return 'PLACE'
        if self.sized is False:
            return 'SIZE'
        if self.grouped is False:
            return 'GROUP'
        return 'ok' if self.due or self.healthy else 'below'
