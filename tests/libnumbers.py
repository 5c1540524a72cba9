"""Relations that hold between the numbers of every answer, whatever was recorded.

A relation that does not hold is a sentence; `wrong_numbers` returns all of them. Used for every recording in
tests/ (e2e/properties.py), and for each trace that the suites cases and truth record. Standard library only.
"""
import json
import re
import subprocess

UNITS = {'ns': 1, 'us': 10**3, 'ms': 10**6, 's': 10**9}
DURATION = re.compile(r'(?<![\w.+-])(\d+(?:\.\d+)?) (ns|us|ms|s)\b')
# Times of several threads, or of several things that waited, are added up: more than the window.
ADDED = re.compile(r'\bin all\b|\badded up\b|\ball threads\b')
TWICE = re.compile(r'\((\d+)\) \(\1\)')
ROUNDED = 1.006  # three digits
ALARMS = ('warning', 'critical')
SEVERITIES = ('info', *ALARMS)


def durations(text):
    """Of a sentence: (ns, the words around it)."""
    return [(float(m[1]) * UNITS[m[2]], text[max(0, m.start() - 24):m.end() + 40])
            for m in DURATION.finditer(text)]


def wrong_in_text(text, window):
    """Of a sentence, which is of a process that was seen for so long."""
    wrong = []
    if TWICE.search(text):
        wrong.append(f'the id of a thread is there twice: {text}')
    for ns, words in durations(text):
        if ns > ROUNDED * window and not ADDED.search(words):
            wrong.append(f'{ns / 1e6:.6g} ms in a window of {window / 1e6:.6g} ms: {text}')
    return wrong


def wrong_in_measure(measure, window):
    count, longest, total = measure['count'], measure['longest_ns'], measure['total_ns']
    wrong = []
    if not count or not longest or not total:
        wrong.append('nothing is measured')
    if longest > total:
        wrong.append('the longest is longer than all of them')
    if total > count * longest:
        wrong.append('all of them are longer than each as long as the longest')
    if longest > window and not measure['is_sum']:
        wrong.append('the longest is longer than the window')
    if total > window * measure['threads']:
        wrong.append('they are longer than the time of all threads')
    return [f'{text}: {measure}, window {window}' for text in wrong]


def wrong_in_evidence(evidence, begin, end):
    from_ns, to_ns, text = evidence['from_ns'], evidence['to_ns'], evidence['text']
    wrong = wrong_in_text(text, end - begin)
    if not begin <= from_ns <= to_ns <= end:
        wrong.append(f'{from_ns}..{to_ns} is not in the window {begin}..{end}: {text}')
    return wrong


def wrong_in_finding(finding, begin, end, window):
    wrong = wrong_in_text(finding['summary'], end - begin)
    for evidence in finding['evidence']:
        wrong += wrong_in_evidence(evidence, begin, end)
    if finding.get('measure'):
        wrong += wrong_in_measure(finding['measure'], window)
    if finding['severity'] in ALARMS:
        wrong += [f'an alarm of no length: {finding["summary"]}'
                  for ns, _ in durations(finding['summary']) if not ns]
    if finding['cost_ns'] < 0 or finding['waiting_ns'] < 0:
        wrong.append('it costs less than nothing')
    return [f'{finding["severity"]} {finding["rule"]}: {text}' for text in wrong]


def wrong_in_ledger(ledger):
    wrong = []
    for thread in ledger['threads']:
        span = thread['to_ns'] - thread['from_ns']
        if sum(owner['ns'] for owner in thread['owners']) != span:
            wrong.append(f'owners of thread {thread["tid"]} do not add up to {span}')
        for owner in thread['owners']:
            if owner['longest_ns'] > owner['ns']:
                wrong.append(f'ledger: the longest is longer than all: {owner}')
            if owner['estimated_ns'] > owner['waiting_ns']:
                wrong.append(f'ledger: more is estimated than waited: {owner}')
    for owner in ledger['owners']:
        if owner['longest_ns'] > owner['ns']:
            wrong.append(f'ledger: the longest is longer than all: {owner}')
    return wrong


def wrong_in_instances(finding):
    """A finding is the sum of what it is in each process."""
    listed, measure = finding['instances'], finding['measure']
    wrong = []
    if finding['processes'] != len(listed) + finding['instances_left_out'] or not listed:
        wrong.append('processes and instances disagree')
    if finding['processes'] > finding['processes_in_all'] or finding['threads'] > finding['threads_in_all']:
        wrong.append('it is in more workers than there are')
    if len({i['pid'] for i in listed}) != len(listed) and all(i['pid'] for i in listed):
        wrong.append('a process is there twice')
    if not finding['instances_left_out']:
        waiting = sum(i['waiting_ns'] for i in listed)
        if abs(waiting - finding['waiting_ns']) > 1e-6 * waiting + 1:
            wrong.append(f'waiting of its instances is {waiting}')
        if measure and sum(i['count'] for i in listed) != measure['count']:
            wrong.append('their counts are not its count')
        if measure and max(i['longest_ns'] for i in listed) != measure['longest_ns']:
            wrong.append('the longest of them is not its longest')
    if [i['waiting_ns'] for i in listed] != sorted((i['waiting_ns'] for i in listed), reverse=True):
        wrong.append('most waiting does not come first')
    return [f'{finding["rule"]}: {text}: {finding["instances"]}' for text in wrong]


def wrong_in_order(findings):
    """Severity, then waiting; conditions behind those of their severity; what is explained last."""
    wrong = []
    for above, below in zip(findings, findings[1:]):
        if above['explained_by'] is not None or below['explained_by'] is not None:
            if above['explained_by'] is not None and below['explained_by'] is None:
                wrong.append('what is explained stands above what is not')
            continue
        severity = [SEVERITIES.index(f['severity']) for f in (above, below)]
        if severity[0] < severity[1]:
            wrong.append('a finding stands below one that is less severe')
        if severity[0] == severity[1] and above['condition'] and not below['condition']:
            wrong.append('a condition has a rank')
    causes = [(f['rule'], str(f['where'][0])) for f in findings if f['where'] and f['rule'] == 'blocking-call']
    if len(set(causes)) != len(causes):
        wrong.append(f'one place is several findings: {causes}')
    return wrong


def wrong_in_report(report):
    """Of `tacho report --all --json`, with or without --ledger."""
    windows = {p['pid']: (p['from_ns'], p['to_ns']) for p in report['processes']}
    wrong = wrong_in_order(report['findings'])
    for finding in report['findings']:
        begin, end = windows[finding['pid']]
        # Sums are over processes, each of which has its own window.
        longest = max((e - b for b, e in windows.values()), default=0)
        wrong += wrong_in_finding(finding, begin, end, longest if finding['processes'] > 1 else end - begin)
        wrong += wrong_in_instances(finding)
    if report['verdict']['category'] not in ('none', 'not-enough-data') and \
            not any(f['severity'] in ALARMS for f in report['findings']):
        wrong.append('the verdict is an alarm, and no finding is')
    return wrong + (wrong_in_ledger(report['ledger']) if 'ledger' in report else [])


def wrong_in_stats(stats):
    wrong = []
    for table in (value for value in stats.values() if isinstance(value, list)):
        for row in table:
            if not row.get('count'):
                continue
            steps = [row[name] for name in ('p50_ns', 'p90_ns', 'p99_ns', 'max_ns') if name in row]
            if steps != sorted(steps) or not row['max_ns'] <= row['total_ns'] <= row['count'] * row['max_ns']:
                wrong.append(f'stats: {row}')
    return wrong


def wrong_in_blame(blame):
    wrong = []
    for subject in blame['subjects']:
        if sum(piece['ns'] for piece in subject['pieces'] if not piece['depth']) != subject['ns']:
            wrong.append(f'blame: pieces do not add up to {subject["ns"]}: {subject["name"]}')
        for piece in subject['pieces']:
            if piece['ns'] > piece['to_ns'] - piece['from_ns'] or piece['from_ns'] < subject['from_ns'] \
                    or piece['to_ns'] > subject['to_ns']:
                wrong.append(f'blame: {piece["owner"]} {piece["ns"]} of {piece["from_ns"]}..{piece["to_ns"]} '
                             f'in {subject["from_ns"]}..{subject["to_ns"]}')
    return wrong


def wrong_numbers(tacho, trace, env=None):
    """All relations that do not hold in the answers about a trace."""
    def answer(*arguments):
        p = subprocess.run([tacho, *arguments, '--json', trace], capture_output=True, timeout=300, env=env,
                           stdin=subprocess.DEVNULL)
        if b'holds nothing that was asked for' in p.stderr:
            return {'subjects': []}
        if p.returncode:
            raise RuntimeError(f'{arguments[0]}: {p.stderr.decode(errors="replace")[-300:]}')
        return json.loads(p.stdout)
    return wrong_in_report(answer('report', '--all', '--ledger')) + wrong_in_stats(answer('stats')) + \
        wrong_in_blame(answer('blame'))
