"""What recording costs, from rounds of measured intervals: bench/daemons.py.

A round is {'blocks': [{(way, kind): CPU per request}], 'p99': {(way, kind): us}}: the four
intervals of a block are neighbours. The unit of all statistics is the round: its processes are
fresh, so what comes with a process, such as where its memory lies, differs from round to round,
and an interval over rounds holds it. Of the blocks of a round the median counts; of the rounds
a fifth is cut off at either end. As dice give the order within a block, what disturbs falls on
all kinds of interval alike, and this pulls to no side.
"""
import math
import statistics

CUT = 0.2
ROUNDS_LEAST = 15
# What is estimated, all of it logarithms of ratios:
#   recording   recording against paused, within one process
#   hooks       paused against a server without hooks
#   total       recording against a server without hooks: the sum of the two, round by round
#   null        "recording" against "paused" in the server without hooks, where both are nothing
NUMBERS = ('recording', 'hooks', 'total', 'null')


def t_quantile(freedom):
    """Of Student's t, for 95 % between both sides (Cornish and Fisher; good from 3 on)."""
    z, n = statistics.NormalDist().inv_cdf(0.975), freedom
    return z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2) + \
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)


def cut(values):
    """Sorted, and how many are cut off at either end."""
    return sorted(values), int(CUT * len(values))


def middle(values):
    values, g = cut(values)
    return statistics.fmean(values[g:len(values) - g])


def spread(values):
    """(middle, how far its 95 % interval reaches): the trimmed mean and Tukey and McLaughlin's t."""
    values, g = cut(values)
    n, h = len(values), len(values) - 2 * g
    pulled_in = [min(max(v, values[g]), values[n - 1 - g]) for v in values]
    error = math.sqrt((n - 1) * statistics.variance(pulled_in) / (h * (h - 1)))
    return middle(values), t_quantile(h - 1) * error


def interval(logs):
    """A ratio with its 95 % interval."""
    at, reach = spread(logs)
    return {'ratio': math.exp(at), 'low': math.exp(at - reach), 'high': math.exp(at + reach),
            'half_width': math.sinh(reach) * math.exp(at), 'mean': math.exp(statistics.fmean(logs))}


def compare(costs, way):
    """The numbers, from a cost of each way and kind."""
    log = {key: math.log(cost) for key, cost in costs.items()}
    return {'recording': log[way, 'recording'] - log[way, 'paused'],
            'hooks': log[way, 'paused'] - log['plain', 'paused'],
            'total': log[way, 'recording'] - log['plain', 'recording'],
            'null': log['plain', 'recording'] - log['plain', 'paused']}


def cpu_of(measured, way):
    """The numbers of one round, for CPU per request."""
    blocks = [compare(block, way) for block in measured['blocks']]
    found = {name: statistics.median(b[name] for b in blocks) for name in NUMBERS}
    found['total'] = found['recording'] + found['hooks']
    return found


def p99_of(measured, way):
    return compare(measured['p99'], way)


def estimate(rounds, way, numbers=cpu_of):
    """{number: ratio with its interval}."""
    found = [numbers(measured, way) for measured in rounds]
    return {name: interval([f[name] for f in found]) for name in NUMBERS}


def widest(estimated):
    """Half of the widest interval."""
    return max(e['half_width'] for e in estimated.values())


def is_enough(rounds, estimated, width):
    """Of few rounds an interval may be narrow by chance; ending there would favour those."""
    return len(rounds) >= ROUNDS_LEAST and widest(estimated) <= width
