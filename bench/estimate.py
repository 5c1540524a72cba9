"""What recording costs, from rounds of measured intervals: bench/daemons.py.

A round is {way: [stretch, stretch]}; a stretch has 'intervals', neighbours two by two as
(kind, CPU per request), and 'p99' by kind. The unit of all statistics is the round: its
processes are fresh, so what comes with a process (where its memory lies) differs from round to
round, and an interval over rounds holds it. Of a round's numbers, and of the rounds, the
middle counts: a fifth at either end is cut off. As a coin gives the order of the kinds, and of
the ways, disturbances fall on either side alike, and cutting off pulls to neither.
"""
import math
import statistics

CUT = 0.2
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


def interval(logs):
    """A ratio with its 95 % interval: the trimmed mean and Tukey and McLaughlin's t."""
    values, g = cut(logs)
    n, h = len(values), len(values) - 2 * g
    pulled_in = [min(max(v, values[g]), values[n - 1 - g]) for v in values]
    error = math.sqrt((n - 1) * statistics.variance(pulled_in) / (h * (h - 1)))
    reach, at = t_quantile(h - 1) * error, middle(values)
    return {'ratio': math.exp(at), 'low': math.exp(at - reach), 'high': math.exp(at + reach),
            'half_width': math.sinh(reach) * math.exp(at), 'mean': math.exp(statistics.fmean(logs))}


def pairs(stretch):
    """Recording against paused, of each pair of neighbours."""
    rows = stretch['intervals']
    for first, second in zip(rows[::2], rows[1::2]):
        by_kind = dict([first, second])
        yield math.log(by_kind['recording'] / by_kind['paused'])


def level(stretches, kinds):
    return middle([math.log(cost) for s in stretches for kind, cost in s['intervals']
                   if kind in kinds])


def logs_of(measured, way):
    """{number: logarithm} of one round, for CPU per request."""
    plain, hooked = measured['plain'], measured[way]
    found = {'recording': middle([p for s in hooked for p in pairs(s)]),
             'null': middle([p for s in plain for p in pairs(s)]),
             'hooks': level(hooked, ['paused']) - level(plain, ['paused', 'recording'])}
    found['total'] = found['recording'] + found['hooks']
    return found


def p99_of(measured, way):
    """The same for the p99."""
    def mean(way, *kinds):
        return statistics.fmean(math.log(s['p99'][kind]) for s in measured[way] for kind in kinds)
    plain = mean('plain', 'paused', 'recording')
    return {'recording': mean(way, 'recording') - mean(way, 'paused'),
            'hooks': mean(way, 'paused') - plain, 'total': mean(way, 'recording') - plain,
            'null': mean('plain', 'recording') - mean('plain', 'paused')}


def estimate(rounds, way, logs=logs_of):
    """{number: ratio with its interval}."""
    found = [logs(measured, way) for measured in rounds]
    return {name: interval([f[name] for f in found]) for name in NUMBERS}


def widest(estimated):
    """Half of the widest interval."""
    return max(e['half_width'] for e in estimated.values())
