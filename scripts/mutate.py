#!/usr/bin/env python3
"""Puts small bugs into a copy of the sources, one at a time, and says which test notices each.

    scripts/mutate.py                  those that have no result yet
    scripts/mutate.py --missed         and once more those that nothing noticed
    scripts/mutate.py --only TEXT ...  those with TEXT in their place or their name, again;
                                       with --missed: unless they were noticed
    scripts/mutate.py --check          only whether all of them still apply
    scripts/mutate.py --table          only the table of what is known

The bugs are in tests/mutations/*.txt:

    @@ src/folder/file.c: what is wrong with it
    - text that is there once
    + what stands there instead; nothing: the text is deleted
    ? tests that are run instead of those of its folder, each as in AREAS
    = why it makes no difference: such a bug is listed, and not tried

Blanks and ends of lines are alike, so that formatting does no harm. AREAS says which tests are those
of a folder: they are run until one fails. It has to fail in the same way again, if it is no unit test,
and to pass without the bug. Results are kept in build/mutate/results.json; a bug whose text changes has
none.
"""
import argparse
import hashlib
import itertools
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / 'tests'))
import harness  # noqa: E402

WORK = ROOT / 'build/mutate'
TREE = WORK / 'tree'
RESULTS = WORK / 'results.json'
LIMIT = 300  # seconds for a program, twice that for a script
MEMORY = 8 << 30  # for each process: some bugs would take all
NICE = ['nice', '-n', '19']
# Programs of meson by name, `*` at the end for several, then scripts by path: the quick ones first. A
# script of tests/hostile may have one of its functions behind a colon.
AREAS = {
    'base': 'core_limits core_text text_* sentinels kernel_symbols read_* symbols_blocks signals '
            'e2e/cli_bad_input.py e2e/cli_trace.py e2e/names.py',
    'format': 'chunk_copy core_* read_* model_* stall view_* crash/kill_points.py '
              'e2e/format_golden.py e2e/format_reader.py crash/hammer.sh',
    'core': 'core_* header_c chunk_copy read_recording life options places threads fork signals '
            'sentinels fork_interrupts sentinels_shared crash/kill_points.py crash/restart_points.py '
            'crash/crash_handler.py crash/stopped.sh crash/window.sh crash/kill_random.sh '
            'crash/hammer.sh e2e/cli_boxes.py tasks_hooked',
    'hooks': 'unwind_frames calls hooked* noted crashes samples polls underway alive uv event handed clients '
             'exec ready restricted tasks_hooked sentinels_hooked',
    'read': 'read_* columns_* chunk_copy damage_trace symbols_blocks trace_write_* '
            'e2e/format_golden.py e2e/format_reader.py e2e/answers_golden.py e2e/cli_trace.py '
            'e2e/cli_bad_input.py e2e/cli_live.py e2e/report_bad_input.py e2e/short_memory.py',
    'text': 'text_* core_text read_ends e2e/answers_golden.py e2e/format_golden.py '
            'e2e/cli_trace.py e2e/cli_columns.py e2e/cli_bad_input.py e2e/cli_live.py '
            'e2e/threads_at_end.py e2e/report_bad_input.py e2e/names.py e2e/ends.py',
    'kernel': 'perf_records kernel_symbols trace_write_kernel kernel',
    'symbols': 'symbols_* place_names e2e/symbols.py e2e/symbols_debuginfod.py e2e/names.py '
               'e2e/threads_at_end.py',
    'write': 'new_file trace_write_* columns_* symbols_blocks read_trace read_files keep_files '
             'e2e/format_reader.py e2e/cli_trace.py e2e/run_recording.py e2e/symbols.py '
             'e2e/cli_bad_input.py',
    'agent': 'sentinels demand kernel_say absent_list listener_groups recording_parts stall* '
             'keep_files exec_command read_ends '
             'engine_descriptors engine segments_facts segments_folder segments segments_full '
             'segments_kill e2e/run_signals.py e2e/run_status.py e2e/run_recording.py '
             'e2e/agent_follow.py e2e/run_continuous.py e2e/run_sentinels.py e2e/run_absent.py '
             'e2e/run_programs.py',
    'model': 'model_* explain_* ledger_* view_* diff_* e2e/answers_golden.py e2e/sql_tables.py '
             'e2e/short_memory.py',
    'explain': 'explain_* ledger_* diff_* e2e/answers_golden.py e2e/threads_at_end.py '
               'e2e/stops.py e2e/diff_runs.py e2e/short_memory.py',
    'answer': 'answer_* e2e/answers_golden.py e2e/format_golden.py e2e/cli_trace.py '
              'e2e/threads_at_end.py e2e/cli_columns.py e2e/sql_tables.py e2e/ends.py e2e/names.py '
              'e2e/short_memory.py',
    'view': 'view_* page/engine_golden.mjs page/tasks_engine.mjs page/numbers.mjs page/lanes.mjs',
    'import': 'import_* e2e/answers_golden.py e2e/import_go.py e2e/import_dial9.py '
              'e2e/short_memory.py',
    'export': 'flame_svg e2e/answers_golden.py e2e/export_flame.py e2e/export_tools.py '
              'e2e/short_memory.py',
    'query': 'sql_made e2e/answers_golden.py e2e/sql_facts.py e2e/sql_use.py e2e/sql_tables.py '
             'e2e/sql_docs.py e2e/short_memory.py',
    'serve': 'e2e/serve.py e2e/serve_live.py page/serve_alone.mjs page/serve_folder.mjs '
             'page/serve_live.mjs',
    'doctor': 'doctor_* e2e/doctor.py',
    'cli': 'e2e/answers_golden.py e2e/cli_trace.py e2e/cli_columns.py e2e/cli_boxes.py '
           'e2e/cli_bad_input.py e2e/cli_live.py e2e/sql_use.py e2e/run_status.py '
           'e2e/report_bad_input.py e2e/run_recording.py e2e/sql_docs.py e2e/ends.py '
           'e2e/doctor.py e2e/symbols_debuginfod.py',
}
INSIDE = ('base', 'format', 'core', 'hooks', 'read')  # part of what recorded programs link
WITH_PAGE = ('serve', 'view')  # the page takes long to build: only where its tests are run


class Mutation:
    def __init__(self, path, what, changes, tests, why_none):
        self.path, self.what, self.changes, self.tests = path, what, changes, tests
        self.why_none = ' '.join(why_none)
        text = json.dumps([path, changes] + ([tests] if tests else []))
        self.key = hashlib.sha256(text.encode()).hexdigest()[:12]
        self.area = pathlib.Path(path).parts[1]

    def apply(self, source):
        """The source with the bug; a sentence in ValueError when it does not apply."""
        for old, new in self.changes:
            pattern = r'\s*'.join(map(re.escape, re.findall(r'\w+|\S', old)))
            count = len(re.findall(pattern, source))
            if count != 1:
                raise ValueError(f'is there {count} times, not once: {old}')
            source = re.sub(pattern, lambda _, new=new: new, source)
        return source


def read_mutations():
    found = []
    for path in sorted((ROOT / 'tests/mutations').glob('*.txt')):
        head, old, new = None, [], []
        for line in path.read_text().splitlines() + ['@@']:
            sign, _, text = line.partition(' ')
            if sign == '-' and new or sign == '@@' and old:
                head[2].append(('\n'.join(old), '\n'.join(new)))
                old, new = [], []
            if sign == '@@':
                if head:
                    found.append(Mutation(*head))
                where, _, what = text.partition(': ')
                head = [where, what, [], [], []]
            elif sign == '?':
                head[3] += text.split()
            elif sign == '=':
                head[4].append(text)
            elif sign == '-':
                old.append(text)
            elif sign == '+':
                new.append(text)
    return found


def check(mutations):
    """Those that apply; the others are told."""
    good = []
    for m in mutations:
        try:
            if m.apply((ROOT / m.path).read_text()) == (ROOT / m.path).read_text():
                raise ValueError('changes nothing')
            good.append(m)
        except (OSError, ValueError) as error:
            print(f'does not apply: {m.path}: {m.what}: {error}')
    return good


def link_or_copy(source, target):
    """Compilers and linkers make new files, so that links are as good as copies of theirs."""
    with open(source, 'rb') as file:
        is_linked = file.read(4) == b'\x7fELF'
    (os.link if is_linked else shutil.copy2)(source, target)


class Copy:
    """The sources in a folder of their own, built with the page or without it."""

    def __init__(self):
        names = subprocess.run(['git', 'ls-files', '-z', '--cached', '--others',
                                '--exclude-standard'], cwd=ROOT, check=True, capture_output=True)
        wanted = {name for name in names.stdout.decode().split('\0')
                  if name and (ROOT / name).is_file()}
        for name in wanted:
            self.restore(name)
        for path in TREE.rglob('*'):
            name = str(path.relative_to(TREE))
            if path.is_file() and name not in wanted and not name.startswith('page/node_modules'):
                path.unlink()
        modules = TREE / 'page/node_modules'
        if (ROOT / 'page/node_modules').exists() and not modules.exists():
            modules.symlink_to(ROOT / 'page/node_modules')
        self.tests = {}

    def restore(self, name):
        source, copy = ROOT / name, TREE / name
        if not copy.exists() or copy.read_bytes() != source.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)
            shutil.copymode(source, copy)

    def begin(self, m):
        """The folder in which its area is built, and one beside it that stays without a bug."""
        with_page = m.area in WITH_PAGE or any('page' in test for test in m.tests)
        page = 'enabled' if with_page else 'disabled'
        folder, clean = WORK / f'page-{page}', WORK / f'clean-page-{page}'
        if folder not in self.tests:
            if not (folder / 'build.ninja').exists():
                subprocess.run(NICE + ['meson', 'setup', folder, TREE, '-Dtests=enabled',
                                       '-Dwerror=false', '-Dtestpoints=true', f'-Dpage={page}'],
                               check=True, stdout=subprocess.DEVNULL)
            wrong = self.build(folder)
            if wrong:
                sys.exit(f'mutate: the sources cannot be built:\n{wrong[-2000:]}')
            shutil.rmtree(clean, ignore_errors=True)
            shutil.copytree(folder, clean, symlinks=True, copy_function=link_or_copy)
        return folder, clean

    def restore_built(self, folder, clean):
        """What was built of a bug is not built again without it: it is taken from the clean folder."""
        for path in clean.rglob('*'):
            other = folder / path.relative_to(clean)
            if not path.is_file() or path.is_symlink():
                continue
            one, two = path.stat(), other.stat() if other.exists() else None
            if not two or (one.st_mtime_ns, one.st_size) != (two.st_mtime_ns, two.st_size):
                other.unlink(missing_ok=True)
                link_or_copy(path, other)

    def build(self, folder, targets=()):
        """What the compiler said, if it failed."""
        done = subprocess.run(NICE + ['ninja', '-j2', '-C', folder, *targets], capture_output=True,
                              text=True)
        return '' if done.returncode == 0 else done.stdout

    def programs(self, folder):
        if folder not in self.tests:
            told = subprocess.run(['meson', 'introspect', '--tests', folder], check=True,
                                  capture_output=True, text=True).stdout
            known = self.tests[folder] = {}
            for test in json.loads(told):  # two suites may have one name
                label = test['name'] if test['name'] not in known else \
                    f"{test['suite'][0].split(':')[-1]} {test['name']}"
                known[label] = dict(test, folder=str(folder))
        return self.tests[folder]


def tests_of(m, known):
    """(name, program of meson or None) in the order in which they are named."""
    for word in m.tests or AREAS[m.area].split():
        if '/' in word:
            yield word, None
            continue
        found = [label for label, test in sorted(known.items(), key=lambda item: not is_unit(item[1]))
                 if test['name'] == word or
                 word.endswith('*') and test['name'].startswith(word[:-1])]
        if not found:
            sys.exit(f'mutate: there is no test "{word}", which {m.path} should have')
        for name in found:
            yield name, known[name]


def is_unit(test):
    return test and 'tests/unit/' in test['cmd'][0]


def targets_of(area, tests, test):
    """What ninja has to make for a test; '': everything."""
    if is_unit(test):
        return {os.path.relpath(other['cmd'][0], other['folder'])
                for _, other in tests if is_unit(other)}
    if area in INSIDE or test:
        return {''}
    return {'src/cli/tacho'}


class Bench:
    """Runs tests of the copy."""

    def __init__(self, copy, jobs):
        harness.LOGS = WORK / 'logs'
        self.copy, self.jobs = copy, jobs
        self.runner = harness.Runner({})
        self.anyway = {}  # name of a test: fails_anyway

    def fails(self, folder, name, test):
        """The checks that fail."""
        env = dict(
            harness.clean_environment(), TACHO_SOURCE=str(TREE), TACHO_BUILD=str(folder),
            TACHO_BIN=str(folder / 'src/cli/tacho'), TACHO_EXAMPLES=str(folder / 'examples'),
            TACHO_KILLS='50', TACHO_SOAK='0', TACHO_TEST_UNDER='unit', CMOCKA_MESSAGE_OUTPUT='TAP')
        if test:
            is_lines = any('lines' in suite for suite in test['suite'])
            argv = [word.replace(test['folder'], str(folder)) for word in test['cmd']]
            env.update({name: value.replace(test['folder'], str(folder))
                        for name, value in test['env'].items()})
            limit = LIMIT
        else:
            how = {'.py': sys.executable, '.sh': 'bash', '.mjs': 'node'}
            script, _, function = name.partition(':')
            argv = [how[pathlib.Path(script).suffix], str(TREE / 'tests' / script)] + function.split()
            is_lines, limit = True, 2 * LIMIT
        outcome = self.runner.run(f'mutate {name}', NICE + argv, limit=limit, env=env, cwd=TREE)
        verdicts = harness.verdicts_of_lines if is_lines else harness.verdicts_of_cmocka
        return [test or why for what, test, why in verdicts(outcome) if what == 'failed']

    def fails_anyway(self, clean, name, test):
        """The checks that fail without a bug, too. The sources in the copy have it, but only documents
        are read there."""
        if name not in self.anyway:
            failed = set(self.fails(clean, name, test))
            self.anyway[name] = failed and failed.intersection(self.fails(clean, name, test))
            for check in self.anyway[name]:
                print(f'  {name} fails without a bug: {check[:90]}', flush=True)
        return self.anyway[name]

    def put_in(self, m):
        (TREE / m.path).write_text(m.apply((ROOT / m.path).read_text()))

    def first_that_fails(self, folder, clean, tests):
        pool = ThreadPoolExecutor(max_workers=self.jobs)
        running = {pool.submit(self.fails, folder, name, test): (name, test)
                   for name, test in tests}
        try:
            for done in as_completed(running):
                name, test = running[done]
                failed = done.result()
                if failed:
                    failed = [check for check in failed
                              if check not in self.fails_anyway(clean, name, test)]
                # What takes its time may fail for want of a CPU: the same has to fail again.
                if failed and not is_unit(test):
                    failed = [check for check in self.fails(folder, name, test) if check in failed]
                if failed:
                    return f'{name}: {failed[0][:90]}'
            return ''
        finally:
            pool.shutdown(cancel_futures=True)

    def notices(self, m):
        """What noticed it; '' when nothing did."""
        folder, clean = self.copy.begin(m)
        tests = list(tests_of(m, self.copy.programs(folder)))
        before = (TREE / m.path).stat()
        self.put_in(m)
        try:
            for needed, group in itertools.groupby(
                    tests, key=lambda named: targets_of(m.area, tests, named[1])):
                wrong = self.copy.build(folder, sorted(needed - {''}))
                if wrong:
                    errors = [line for line in wrong.splitlines() if 'error:' in line]
                    return f'the compiler: {(errors or [wrong])[0][-90:]}'
                by = self.first_that_fails(folder, clean, list(group))
                if by:
                    return by
            return ''
        finally:
            self.copy.restore(m.path)
            os.utime(TREE / m.path, ns=(before.st_atime_ns, before.st_mtime_ns))
            self.copy.restore_built(folder, clean)


def table(mutations, known):
    for m in mutations:
        if m.why_none:
            print(f'{m.path.removeprefix("src/"):28} {m.what:62} no difference: {m.why_none}')
    rows = [(m.path.removeprefix('src/'), m.what, known.get(m.key)) for m in mutations
            if not m.why_none]
    told = [row for row in rows if row[2] is not None]
    for where, what, by in sorted(told, key=lambda row: row[0]):
        print(f'{where:28} {what:62} {by or "NOT NOTICED"}')
    noticed = sum(1 for row in told if row[2])
    share = f', {100 * noticed / len(told):.0f} %' if told else ''
    print(f'{noticed} of {len(told)} noticed{share}; {len(rows) - len(told)} not tried yet')


def main():
    parser = argparse.ArgumentParser(description='which test notices which bug')
    parser.add_argument('--only', nargs='+', default=[], metavar='TEXT')
    parser.add_argument('--missed', action='store_true')
    parser.add_argument('--jobs', type=int, default=2, help='tests at a time')
    parser.add_argument('--check', action='store_true')
    parser.add_argument('--table', action='store_true')
    args = parser.parse_args()
    mutations = read_mutations()
    good = check(mutations)
    if args.check:
        print(f'{len(good)} of {len(mutations)} apply')
        return 0 if len(good) == len(mutations) else 1
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if not args.table:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        bench = Bench(Copy(), args.jobs)
        # Those last that name their tests; of the others those first after which little is built, and
        # whose tests do not mostly wait.
        for m in sorted(good, key=lambda m: (bool(m.tests), m.area in WITH_PAGE, m.area in INSIDE,
                                             m.area == 'agent', m.path.endswith('.h'))):
            if m.why_none or args.only and not any(text in f'{m.path}: {m.what}' for text in args.only):
                continue
            if m.key in known and (known[m.key] or not args.missed) and \
                    (args.missed or not args.only):
                continue
            began = time.monotonic()
            known[m.key] = bench.notices(m)
            print(f'{m.path}: {m.what}: {known[m.key] or "NOT NOTICED"} '
                  f'({time.monotonic() - began:.0f} s)', flush=True)
            new = RESULTS.with_suffix('.new')
            new.write_text(json.dumps(known, indent=1))
            new.replace(RESULTS)
    table(good, known)
    return 0


if __name__ == '__main__':
    sys.exit(main())
