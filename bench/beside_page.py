"""The results of bench/beside.py as a page of Markdown."""
import math
import statistics

from beside_questions import FAULTS
from estimate import interval, spread

# Those in which all that the crate tells goes into the box of the service itself.
CRATE = ('tacho-tokio', 'tacho-tokio unstable')


def table(rows):
    """Rows of cells; the first row is the head."""
    lines = ['| ' + ' | '.join(row) + ' |' for row in rows]
    lines.insert(1, '|' + '---|' * len(rows[0]))
    return lines


def mb(bytes_):
    return f'{bytes_ / 1e6:,.1f}' if bytes_ < 10e6 else f'{bytes_ / 1e6:,.0f}'


# Cost -----------------------------------------------------------------------------------


def of_round(measured, load, number):
    """Of the blocks of a round the median counts, as in estimate.py."""
    return statistics.median(number(block) for block in measured['loads'][load])


def against(rounds, load, way, base):
    """What a way costs more than the base: ns a request, and times; each with its interval."""
    more = [of_round(r, load, lambda b: b[way]['ns'] - b[base]['ns']) for r in rounds]
    logs = {key: [of_round(r, load, lambda b: math.log(b[way][key] / b[base][key])) for r in rounds]
            for key in ('ns', 'p99')}
    at, reach = spread(more)
    return {'ns': at, 'low': at - reach, 'high': at + reach, 'times': interval(logs['ns']),
            'p99': interval(logs['p99'])}


def median(rounds, load, way, key):
    return statistics.median(of_round(r, load, lambda b: b[way][key]) for r in rounds)


def cost_cells(rounds, load, way, base):
    p99 = f'{median(rounds, load, way, "p99") / 1e3:,.0f}'
    if way == base:
        return [f'{median(rounds, load, way, "ns"):,.0f}', '', p99]
    more = against(rounds, load, way, base)
    share = more['times']
    return [f'{more["ns"]:+,.0f} [{more["low"]:+,.0f}, {more["high"]:+,.0f}]',
            f'{100 * share["ratio"] - 100:+.1f} % [{100 * share["low"] - 100:+.1f}, '
            f'{100 * share["high"] - 100:+.1f}]', p99]


def cost_rows(rounds):
    ways = list(rounds[0]['memory'])
    loads = list(rounds[0]['loads'])
    rows = [['', *(text for load in loads for text in (f'{load}: ns a request', 'in %', 'p99 us')),
             'peak MB', 'of these the box']]
    for way in ways:
        peak = statistics.median(r['memory'][way]['VmHWM'] for r in rounds)
        shared = statistics.median(r['memory'][way]['RssShmem'] for r in rounds)
        rows.append([way, *(cell for load in loads
                            for cell in cost_cells(rounds, load, way, ways[0])),
                     mb(peak), mb(shared) if shared else ''])
    return rows


def cost(rounds, what):
    rates = ', '.join(f'{load} {median(rounds, load, list(rounds[0]["memory"])[0], "rate"):,.0f}/s'
                      for load in rounds[0]['loads'])
    return [f'{what}: {len(rounds)} rounds; {rates}. The first line is CPU time, the others what is '
            'added to it, with 95 % intervals.', '', *table(cost_rows(rounds)), '']


# The rest -------------------------------------------------------------------------------


def volume(found):
    rows = [['', 'requests', 'events', 'events a request', 'bytes an event in memory',
             'on disk', 'gzipped', 'bytes a request on disk']]
    for way, v in found.items():
        packed = f'{v["gzip_bytes"]:.2f}' if 'gzip_bytes' in v else 'is packed'
        rows.append([way, f'{v["requests"]:,}', f'{v["events"]:,}', f'{v["per_request"]:.2f}',
                     f'{v["memory_bytes"]:.2f}', f'{v["disk_bytes"]:.2f}', packed,
                     f'{v["bytes_per_request"]:.1f}'])
    return ['Saturated, all events from the start of the service on:', '', *table(rows), '']


def killed(found):
    ways = list(dict.fromkeys(k['way'] for k in found))
    rows = [['killed after', *ways]]
    for rate, after in dict.fromkeys((k['rate'], k['after']) for k in found):
        cells = [k['missing'] for k in found if (k['rate'], k['after']) == (rate, after)]
        load = f'{rate} requests/s' if rate else 'saturated'
        rows.append([f'{after} s, {load}', *('all' if c is None else f'{c:.3f} s' for c in cells)])
    return ['What is missing after kill -9 under load, from the last event in the trace on:', '',
            *table(rows), '']


def answer_cell(row):
    if 'failed' in row:
        return [row['failed'].replace('|', '/'), '', '']
    return [f'{row["seconds"]:.2f} s', f'{row["cpu_seconds"]:.2f} s', f'{mb(row["bytes"])} MB']


def answers(found):
    rows = [['trace of', 'events', 'size', 'asked', 'until the answer', 'CPU time', 'peak memory']]
    for way, many in found.items():
        for row in many:
            rows.append([way, f'{row["events"] / 1e6:,.1f} million', f'{mb(row["trace_bytes"])} MB',
                         row['by'], *answer_cell(row)])
    return ['From a trace to an answer:', '', *table(rows), '']


def faults(found):
    rows = [['fault', 'asked', 'says', 'names the line']]
    for f in found:
        said = f['said'] if len(f['said']) < 300 else f['said'][:300] + ' ...'
        named = {0: 'no', 1: 'yes'}.get(f['named_by'], f'as finding {f["named_by"]}')
        rows.append([FAULTS[f['fault']][0], f['way'], said.replace('|', '/'), named])
    return ['Faults, one at a time:', '', *table(rows), '']


def goals(results):
    """(name, measured, wanted, what is measured in) of what is wanted of tacho."""
    found = []
    for load in ('saturated', 'paced') if 'cost' in results else ():
        for way in (w for w in results['cost'][0]['memory'] if w in CRATE):
            found.append((f'{way}, {load}: added to a request',
                          against(results['cost'], load, way, 'bare')['ns'], 150, 'ns'))
    for way, v in results.get('volume', {}).items():
        if way in CRATE:
            found.append((f'{way}: an event on disk', v['disk_bytes'], 2.5, 'bytes'))
    for k in results.get('killed', []):
        if 'tacho' in k['way']:
            # The last request may have come some time before: as many as that are expected.
            few = max(0.01, 5 / k['rate'] if k['rate'] else 0)
            missing = math.inf if k['missing'] is None else k['missing']
            found.append((f'{k["way"]}, {k["rate"] or "all the"} requests/s: missing after kill -9',
                          missing, few, 's'))
    for way, rows in results.get('answers', {}).items():
        if way in CRATE and 'seconds' in rows[0]:
            found.append((f'{way}: report on {rows[0]["events"] / 1e6:.1f} million events',
                          rows[0]['seconds'], 1, 's'))
    for fault in FAULTS if 'faults' in results else ():
        unnamed = all(f['named_by'] != 1 for f in results['faults']
                      if f['fault'] == fault and 'tacho' in f['way'])
        found.append((f'{FAULTS[fault][0]}: not named first by any way of tacho', unnamed, 0, ''))
    return found


def goal_lines(found):
    if not found:
        return []
    rows = [['goal', 'measured', 'at most', '']]
    for name, measured, wanted, unit in found:
        rows.append([name, f'{measured:.3g} {unit}'.strip(), f'{wanted:.3g} {unit}'.strip(),
                     'met' if measured <= wanted else 'MISSED'])
    return table(rows) + ['']


def head(results):
    m, tools = results['machine'], results['tools']
    lines = [f'{m["cpu"]}, {m["cpus"]} CPUs{", virtual machine" if m["virtual"] else ""}, Linux '
             f'{m["kernel"]}; {"; ".join(t for t in tools.values() if t)}; commit {m["commit"]}; '
             f'{results["date"]}; load before {m["load_before"]:.1f}; '
             f'{results["seconds"]:.0f} s.']
    if results['quick']:
        lines.append('--quick: rough figures.')
    return [*lines, '']


def page(results):
    lines = head(results)
    for part, make in (('cost', lambda r: cost(r, 'Tokio')), ('go', lambda r: cost(r, 'Go')),
                       ('volume', volume), ('killed', killed), ('answers', answers),
                       ('faults', faults)):
        if part in results:
            lines += make(results[part])
    return '\n'.join(lines + goal_lines(goals(results)))
