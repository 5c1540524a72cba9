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
UNITS = {'ns': 1, 'us': 1000, 'ms': MS, 's': 1000 * MS}


def disturbed(truth):
    """Why the machine, and not the draw, made what was measured; '' when it did not."""
    name, window = truth.draw.fault.name, truth.window
    if truth.steal > 0.05:
        return f'{100 * truth.steal:.0f} % of the time was stolen from the virtual machine'
    if truth.late > LATE:
        return f'the client was kept for {truth.late / MS:.0f} ms'
    if name in ('neighbours', 'quota'):
        return ''
    # Who computes much waits more often.
    limit = 0.03 * window * truth.threads + 0.05 * truth.ran
    # The kernel's own threads write, on the CPUs of the program; an alarm about healthy ones is
    # judged by how long they waited; the rest ends by something else.
    waits = name not in ('fsync', 'healthy', *AT_END)
    if name == 'fsync' and truth.runnable * 2 > sum(truth.durations()):
        return f'of its calls, threads waited {truth.runnable / MS:.0f} ms for a CPU'
    if waits and truth.runnable > limit:
        return f'serving threads waited {truth.runnable / MS:.0f} ms for a CPU'
    if name in ('stop', 'saturate', 'flood', 'timers', 'pool', 'herd', 'async-lock', *AT_END):
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


def due(truth):
    """Whether the fault cost requests so much that it must be found."""
    d, window = truth.draw, truth.window
    name = d.fault.name
    if name == 'healthy' or not d.visible:
        return False
    if d.fault.kind == 'leak':
        return len(truth.occurrences) >= 150
    if name in AT_END:
        return True
    if name == 'lost-wake':
        return any(end - begin > 1200 * MS for begin, end, _ in truth.occurrences)
    waited = truth.waited()
    if name == 'neighbours':
        return min(truth.runnable, waited) > MARGIN * DUE * window
    if name == 'quota':
        return min(truth.throttled, waited) > MARGIN * DUE * window
    took = truth.durations()
    if d.several and d.fault.kind not in ('stopped', 'overload'):
        # Others go on meanwhile: only the capacity is lost, and what waits for it.
        lost = sum(took) if name != 'cpu' else 0
        return lost > MARGIN * DUE * window * d.threads or \
            truth.waited_for_it() - sum(took) > MARGIN * DUE * window
    stalls = sum(1 for t in took if t > 1.1 * STALL)
    if name == 'cpu':
        # What a request computes for itself is its work; what others wait meanwhile is not.
        waited -= sum(took)
    if name == 'fsync':
        # What was written before, and the kernel's threads, are not the call.
        waited = min(waited, sum(took))
    return waited > MARGIN * DUE * window or stalls >= STALLS


def noted(truth):
    """Whether only those that met the fault waited, but so much that there is a note about it."""
    d = truth.draw
    return d.several and d.fault.kind in ('call', 'child', 'condition', 'lock') and \
        sum(truth.durations()) > MARGIN * DUE * truth.window


def also_right(truth, finding):
    """What can be known is less in some shapes."""
    draw, rule = truth.draw, finding['rule']
    if draw.fault.name == 'pool' and draw.shape == 'pool':
        return rule == 'blocking-call'  # it is not libuv's: nothing is known but what threads do
    if draw.fault.name == 'flood':
        # poll does not tell descriptors apart; and a loop that is full is full.
        return rule == 'loop-saturated' and (draw.shape == 'poll' or not due(truth))
    return False


def near(value, truth, more=0):
    return abs(value - truth) <= WITHIN * truth + 0.5 * MS + more


def longest_told(finding):
    match = re.search(r'up to ([\d.]+) (ns|us|ms|s)\b', finding['summary'])
    return float(match.group(1)) * UNITS[match.group(2)] if match else None


def sized(truth, finding):
    """Whether the sizes that are told are true; what is wrong with them."""
    name = truth.draw.fault.name
    if name == 'neighbours':
        return near_any(finding['cost_ns'], (truth.runnable, truth.waited()))
    if name == 'quota':
        return near_any(finding['cost_ns'], (truth.throttled, truth.runnable, truth.waited()))
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


def near_any(cost, truths):
    """The time that was lost, or what was waited because of it: which one is the report's choice."""
    if any(near(cost, t) for t in truths):
        return ''
    return f'cost {cost / MS:.4g} ms; truth ' + ' or '.join(f'{t / MS:.4g} ms' for t in truths)


def allowed(truth, finding):
    """Whether an alarm that is not the planted fault is true nevertheless: by the kernel's own count, or,
    of a healthy server, by what its requests waited, for which there is no other reason."""
    if finding['rule'] == 'kernel-scheduling-delay':
        healthy = truth.draw.fault.name == 'healthy'
        return truth.runnable > DUE * truth.window or \
            (healthy and truth.waited() > DUE * truth.window)
    return False


def function(where):
    """Without the modules of Rust that it is in, and the line that tells several blocks of it apart."""
    return re.sub(r':\d+$', '', (where['function'] or '').rsplit('::', 1)[-1])


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
    """right, placed, sized: True, False, or None where it is not asked."""

    def __init__(self, truth, found, samples):
        self.due = due(truth)
        self.healthy = truth.draw.fault.name == 'healthy'
        self.right = self.placed = self.sized = None
        self.why = ''
        self.headline = headline(found)
        fault = truth.draw.fault
        alarms = [f for f in found['findings'] if f['severity'] != 'info']
        first = alarms[0] if alarms else None
        if not first and not self.due and noted(truth):
            self.right = any(f['rule'] in fault.rules for f in found['findings'])
            self.why = '' if self.right else 'there is no note about it'
            return
        if not first:
            self.right = not self.due
            self.why = 'nothing was found' if self.due else ''
            return
        if first['rule'] not in fault.rules and not also_right(truth, first):
            self.right = not self.due and allowed(truth, first)
            self.why = '' if self.right else \
                'a wrong cause is first' if fault.rules else 'a false alarm'
            return
        self.right = True
        has_place = fault.places and (samples or not fault.needs_samples)
        if not self.due:
            functions = [function(where) for where in first['where']]
            if has_place and fault.sized and not any(place in functions for place in fault.places):
                self.right, self.why = False, 'a wrong cause: the place is another one'
            return
        if has_place:
            self.placed = bool(first['where']) and function(first['where'][0]) in fault.places
            if not self.placed:
                self.why = f'the place is not {" or ".join(fault.places)}'
        if fault.sized:
            wrong = sized(truth, first)
            self.sized = not wrong
            self.why = '; '.join(w for w in (self.why, wrong) if w)

    def word(self):
        if not self.right:
            return 'WRONG'
        if self.placed is False:
            return 'PLACE'
        if self.sized is False:
            return 'SIZE'
        return 'ok' if self.due or self.healthy else 'below'
