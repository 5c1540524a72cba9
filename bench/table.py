"""The results as a table for people."""

NAMES = {
    'empty': 'empty loop',
    'counter': 'counter alone (rdtsc, cntvct)',
    'clock_gettime': 'clock_gettime(CLOCK_MONOTONIC)',
    'off_poll': 'recording off: poll begin, end',
    'off_wake': 'recording off: wake',
    'off_event': 'recording off: event with 2 ints',
    'park': 'park, unpark',
    'poll': 'poll begin, poll end',
    'poll_switch': 'poll switch',
    'turn': 'unpark with poll, poll end with park',
    'wake': 'wake',
    'spawn': 'task spawn',
    'event': 'event with 2 ints',
    'lttng_off': 'LTTng-UST: tracepoint not enabled',
    'lttng_park': 'LTTng-UST: park, unpark',
    'lttng_poll': 'LTTng-UST: poll begin, poll end',
    'lttng_wake': 'LTTng-UST: wake',
    'lttng_event': 'LTTng-UST: event with 2 ints',
}


def columns(rows):
    """Rows of texts; the first column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ['  ' + '  '.join(cell.ljust(w) if i == 0 else cell.rjust(w)
                             for i, (cell, w) in enumerate(zip(row, widths))).rstrip()
            for row in rows]


def costs(results):
    rows = [['ns per event', 'one thread', '10%..90%', 'two threads', '10%..90%', 'x clock']]
    clock = results['cases'][results['clock']]['1']['ns']
    for case, name in NAMES.items():
        if case not in results['cases']:
            continue
        one, two = (results['cases'][case][n] for n in ('1', '2'))
        disturbed = '' if one['quiet'] and two['quiet'] else ' *'
        rows.append([name + disturbed]
                    + [text for v in (one, two)
                       for text in (f'{v["ns"]:.2f}', f'{v["p10"]:.2f}..{v["p90"]:.2f}')]
                    + [f'{one["ns"] / clock:.2f}'])
    lines = columns(rows)
    if any('*' in row[0] for row in rows):
        lines.append('  * other processes disturbed most of these blocks')
    lines.append(f'  Clock of the records: {NAMES[results["clock"]]}.')
    lines.append(f'  A record while the box takes its memory for the first time: '
                 f'{results["fresh_ns"]:.1f} ns.')
    return lines


def sizes(results):
    rows = [['reference workload'] + [f'task id: {w["ids"]}' for w in results['workloads']]]

    def row(name, value):
        rows.append([name] + [value(w) for w in results['workloads']])
    row('events per second', lambda w: f'{w["events_per_second"]:,.0f}')
    row('loops busy', lambda w: f'{w["busy"] * 100:.0f} %')
    row('bytes of the box per event, all in all', lambda w: f'{w["box_bytes"]:.2f}')
    row('bytes per event on disk (tacho dump)', lambda w: f'{w["disk_bytes"]:.2f}')
    row('full box: tacho dump, ms', lambda w: f'{w["dump"]["wall_ms"]:.0f}')
    row('full box: tacho dump, ms of CPU', lambda w: f'{w["dump"]["cpu_ms"]:.0f}')
    row('full box: tacho dump, peak MiB', lambda w: f'{w["dump"]["peak_bytes"] / 2**20:.1f}')
    row('full box: tacho_snapshot, ms', lambda w: f'{w["snapshot"]["wall_ms"]:.0f}')
    lines = columns(rows)
    if results['lttng']:
        lines.append(f'  LTTng-UST: {results["lttng"]["bytes_per_event"]:.1f} bytes per event in '
                     f'the snapshot of the cases above.')
    return lines


def analysis(results):
    rows = [['analysis', 'events', 'M events/s', 's of CPU', 'x decode', 'peak MiB']]
    names = {'decode': 'reading alone', 'model': 'model', 'report': 'tacho report'}
    for row in results['analysis']:
        for name, text_ in names.items():
            took = row[name]
            rows.append([text_, f'{row["events"]:,}', f'{row["events"] / took["cpu_ms"] / 1e3:.1f}',
                         f'{took["cpu_ms"] / 1e3:.2f}',
                         f'{took["cpu_ms"] / row["decode"]["cpu_ms"]:.2f}',
                         f'{took["peak_bytes"] / 2**20:.1f}'])
    return columns(rows)


def checks(results):
    made = sum(c['made'] for c in results['checks'] + [w['check'] for w in results['workloads']])
    lines = [f'  {made:,} records made; all read back from the boxes or counted as overwritten.']
    if results['lttng']:
        lines.append(f'  LTTng-UST: {results["lttng"]["made"]:,} events made, '
                     f'{results["lttng"]["read_back"]:,} in the snapshot of its rings.')
    else:
        lines.append('  LTTng-UST was not measured (--no-lttng).')
    return lines


def goals(results):
    rows = [['goal', 'measured', 'wanted', '']]
    for g in results['goals']:
        sign = '>=' if g['direction'] == 'at least' else '<='
        rows.append([g['name'], f'{g["measured"]:.3g}', f'{sign} {g["wanted"]:g}',
                     'met' if g['met'] else 'MISSED'])
    missed = [g['name'] for g in results['goals'] if not g['met']]
    lines = columns(rows)
    lines.append(f'  {len(missed)} of {len(results["goals"])} goals missed'
                 + (': ' + '; '.join(missed) if missed else ''))
    return lines


def text(results):
    m = results['machine']
    head = (f'{m["cpu"]}, {m["cpus"]} CPUs{", virtual machine" if m["virtual"] else ""}, Linux '
            f'{m["kernel"]}, clocksource {m["clocksource"]}\n'
            f'{m["compiler"]}; LTTng-UST {m["lttng_ust"]}; commit {m["commit"]}; {results["date"]}'
            f'; load before {m["load_before"]:.1f}')
    if results['quick']:
        head += '\n--quick: rough figures'
    parts = [[head], costs(results), sizes(results), analysis(results), checks(results),
             goals(results)]
    return '\n\n'.join('\n'.join(part) for part in parts) + '\n'
