#!/usr/bin/env python3
"""All tests of tacho: `make test` and, with TACHO_SOAK=1, `make soak`.

    TACHO_TEST_ONLY=unit,e2e tests/run.py     runs these suites alone

The last line is the count. Every program's output is in build/test-logs/.
CONTRIBUTING.md says what each suite is and what a test may rely on.
"""
import itertools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from harness import LOGS, ROOT, Interrupted, Runner, clean_environment, say

SOAK = os.environ.get('TACHO_SOAK') == '1'
FUZZ_SECONDS = int(os.environ.get('TACHO_FUZZ_SECONDS') or (600 if SOAK else 20))
IMPORT_FUZZ_SECONDS = int(os.environ.get('TACHO_FUZZ_SECONDS') or (600 if SOAK else 60))
KILLS = os.environ.get('TACHO_KILLS') or ('1000' if SOAK else '50')
PATIENCE = 12 if SOAK else 1  # factor on time limits of what TACHO_SOAK makes longer
CPUS = min(2, os.cpu_count() or 1)
WAITERS = 2 * CPUS  # at a time, of what spends most of its time waiting
BUILD = ROOT / 'build'
OS_FILES = {pathlib.Path('src/read', name) for name in ('ask.c', 'open.c')}  # not on the page
OLDEST_GLIBC = (2, 17)  # of programs that libtacho-preload.so is loaded into; of 2012
QUIET = LOGS / 'quiet'  # is there when nothing computes beside the tests
SANITIZERS = {
    'ASAN_OPTIONS': 'detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1',
    'UBSAN_OPTIONS': 'halt_on_error=1:print_stacktrace=1',
    'TSAN_OPTIONS': 'halt_on_error=1:history_size=4',
}
BUILDS = {  # folder: (compiler, options of meson setup)
    'build': ('gcc', ['-Dtestpoints=true', '-Dpage=enabled']),
    # Optimized less, as sanitizers see more then: a fifth less time to build.
    'build-asan': ('clang', ['-Db_sanitize=address,undefined', '-Db_lundef=false',
                             '-Doptimization=1']),
    'build-tsan': ('clang', ['-Db_sanitize=thread', '-Db_lundef=false', '-Dpage=disabled']),
    'build-fuzz': ('clang', ['-Db_sanitize=address,undefined', '-Db_lundef=false', '-Dfuzz=true',
                             '-Doptimization=1', '-Dpage=disabled',
                             '-Dc_args=-fsanitize=fuzzer-no-link']),
    'build-arm64': (None, [f'--cross-file={ROOT}/.arm64/root.ini',
                           f'--cross-file={ROOT}/cross/aarch64.ini', '-Dpage=disabled']),
}
runner = None  # set by main
results = None
built = {}  # folder: True when it was built, False when that failed
building = {folder: threading.Lock() for folder in BUILDS}


# Building ----------------------------------------------------------------------------


def build(folder, suite=None):
    """Configures and builds once, all or what the tests of a suite need; a failure counts once."""
    with building[folder]:
        if folder not in built:
            built[folder] = configure(folder) and bool(runner.check(
                f'{folder} ninja', ['ninja', '-C', ROOT / folder] + targets(folder, suite),
                limit=600))
        return built[folder]


def targets(folder, suite):
    if not suite:
        return []
    return sorted({os.path.relpath(test['cmd'][0], ROOT / folder)
                   for test in programs(folder, suite)})


def configure(folder):
    compiler, options = BUILDS[folder]
    env = {'CC': compiler, 'CXX': {'gcc': 'g++', 'clang': 'clang++'}[compiler]} if compiler else {}
    options = ['-Dtests=enabled'] + options
    # What the folder was configured with: other options, or a folder that `make` made
    # before the tests' packages were there, mean to configure again.
    note = ROOT / folder / 'test-options.txt'
    wanted = shlex.join(options)
    argv = ['meson', 'setup', ROOT / folder, ROOT] + options
    if (ROOT / folder / 'build.ninja').exists():
        if note.exists() and note.read_text() == wanted:
            return True
        argv.insert(2, '--wipe' if note.exists() else '--reconfigure')
    if not runner.check(f'{folder} meson', argv, env=env, limit=300):
        return False
    note.write_text(wanted)
    return True


def programs(folder, suite):
    """The tests that meson knows of in a suite."""
    known = json.loads(subprocess.run(['meson', 'introspect', '--tests', ROOT / folder], check=True,
                                      capture_output=True, text=True).stdout)
    for test in known:
        test['suite'] = [name.split(':')[-1] for name in test['suite']]
    return [test for test in known if suite in test['suite']]


def program_suite(label, folder, suite='unit', before=(), slower=1, jobs=CPUS, only=False):
    """Runs the programs of a suite. `only`: nothing else is built in that folder."""
    if not build(folder, suite if only else None):
        results.skip(label, f'{folder} was not built')
        return
    tests = programs(folder, suite)
    if not tests:
        results.fail(label, 'there are no tests')
    env = dict(SANITIZERS, TACHO_TEST_UNDER=label)

    def one(test):
        how = runner.lines if 'lines' in test['suite'] else runner.cmocka
        how(f"{label} {test['name']}", list(before) + test['cmd'], env=dict(env, **test['env']),
            limit=test['timeout'] * slower * PATIENCE)
    together = [test for test in tests if test['is_parallel']]
    runner.each(one, sorted(together, key=lambda test: -test['priority']), jobs)
    runner.each(one, [test for test in tests if not test['is_parallel']], 1)


def fixed_addresses():
    """Sanitizers want their addresses free; some kernels place mappings there."""
    argv = ['setarch', '-R']
    try:
        works = subprocess.run(argv + ['true'], capture_output=True).returncode == 0
    except OSError:
        works = False
    return argv if works else []


# The suites ----------------------------------------------------------------------------


def order():
    """No folder includes from one below it; no file is forgotten by the build."""
    runner.check('folder order', [ROOT / 'scripts/check-order.py'])
    runner.check('file lists', [ROOT / 'scripts/check-lists.py'])
    with tempfile.TemporaryDirectory(prefix='tacho-test-') as folder:
        wrong = pathlib.Path(folder, 'src/read/wrong.c')
        wrong.parent.mkdir(parents=True)
        for include in ('"cli/main.h"', '"core/box.h"', '"wrong.h"', '<base/crc32c.h>',
                        '<unistd.h>'):
            wrong.write_text(f'#include {include}\n')
            name = f'folder order refuses {include} in src/read'
            refuses(name, [ROOT / 'scripts/check-order.py', folder])
    table_of_records()
    table_of_facts()
    table_of_rules()
    runner.check('judgement constants', [ROOT / 'scripts/check-judgement.py'])


def refuses(name, argv):
    """A check that must find something."""
    outcome = runner.run(name, argv)
    if outcome.status == 1:
        results.ok(name)
    else:
        results.fail(name, 'it did not', outcome.log)


def table_of_records():
    """docs/format.md and tacho-cat(1) say of records what their table says."""
    table('table of records', 'scripts/check-format.py', {
        'include/tacho_events.h': ('[task {task}]', '[task {tusk}]'),
        'src/format/record.h': ('"UNPARK, READY"', '"UNPARK"'),
        'docs/format.md': ('| 0x43 | WAKE |', '| 0x42 | WAKE |'),
        'man/tacho-cat.1': ('.Ql depth', '.Ql deep')})


def table_of_facts():
    """All fields of facts are in their table; docs/sql.md, tacho-export(1) and tacho-sql(1) say what it says."""
    table('table of facts', 'scripts/check-facts.py', {
        'src/model/model.h': ('uint64_t polls_ns;', 'uint64_t polls_ns, more_ns;'),
        'src/model/facts.def': ('x->spent.off_cpu_ns', '0'),
        'src/model/rows.def': ('MEMBER(fact, ID, kind,', 'MEMBER(fact, ID, sort,'),
        'src/query/tables.def': ('problems, 0', 'trouble, 0'),
        'docs/sql.md': ('| `inner_ns` | INTEGER |', '| `inner_ns` | TEXT |'),
        'man/tacho-export.1': ('.Ql waited_ns', '.Ql waited'),
        'man/tacho-sql.1': ('.It Cm ledger', '.It Cm ledgers')})


def table_of_rules():
    """docs/rules.md, docs/report.md, tacho-report(1) and the skills say of rules what their table says."""
    table('table of rules', 'scripts/check-rules.py', {
        'src/explain/rules.def': ('"timers fire late"', '"timers fire"'),
        'src/model/judgement.def': ('"hang.ns", NS, 1 *', '"hang.ns", NS, 2 *'),
        'docs/rules.md': ('## `hang`', '## `hangs`'),
        'docs/report.md': ('| `lock-contention` |', '| `lock` |'),
        'man/tacho-report.1': ('.It Cm hang', '.It Cm hangs'),
        'docs/agents/tacho-triage.md': ('| `stuck` |', '| `stick` |')})


def table(what, script, changes):
    """A check of what follows from a table: it passes, and refuses each of the changes."""
    runner.check(what, [ROOT / script])
    for changed in changes:
        name = f'{what} refuses another {changed}'
        with tempfile.TemporaryDirectory(prefix='tacho-test-') as folder:
            for path, change in changes.items():
                copy = pathlib.Path(folder, path)
                copy.parent.mkdir(parents=True, exist_ok=True)
                text = (ROOT / path).read_text()
                copy.write_text(text.replace(*change) if path == changed else text)
            refuses(name, [ROOT / script, folder])


def c_files(*folders):
    return sorted(path for folder in folders for path in (ROOT / folder).rglob('*')
                  if path.suffix in ('.c', '.h', '.cpp'))


def look():
    """clang-format finds nothing to change."""
    folders = {}
    for path in c_files('include', 'src', 'tests', 'examples', 'bench', 'crates/tacho/c'):
        folders.setdefault(path.parent.relative_to(ROOT), []).append(path)

    def one(folder):
        runner.check(f'format {folder}', ['clang-format', '--dry-run', '-Werror', *folders[folder]])
    runner.each(one, folders, CPUS)


def headers():
    """Each public header compiles twice and before each other, in C11 and C++17, silently."""
    names = sorted(path.name for path in (ROOT / 'include').glob('*.h'))
    with tempfile.TemporaryDirectory(prefix='tacho-test-') as folder:
        for first, second in itertools.product(names, names):
            source = pathlib.Path(folder, 'source')
            source.write_text(f'#include "{first}"\n#include "{second}"\n')
            for compiler, language, standard in (
                    ('gcc', 'c', 'c11'), ('clang', 'c', 'c11'),
                    ('g++', 'c++', 'c++17'), ('clang++', 'c++', 'c++17')):
                runner.check(f'header {first} before {second} {compiler} {standard}',
                             [compiler, f'-std={standard}', '-x', language, '-fsyntax-only',
                              '-Wall', '-Wextra', '-Wshadow', '-Werror', '-I', ROOT / 'include',
                              source])
    portable()


def portable():
    """What the page runs compiles for WASM without a warning."""
    if not pathlib.Path('/usr/include/wasm32-wasi').is_dir():
        results.skip('wasm', 'there is no wasi-libc here')
        return
    files = [ROOT / 'src/base/crc32c.c'] + [
        path for path in c_files('src/read', 'src/text', 'src/model', 'src/explain', 'src/answer',
                                 'src/view')
        if path.suffix == '.c' and path.relative_to(ROOT) not in OS_FILES]

    def one(path):
        runner.check(f'wasm {path.relative_to(ROOT)}',
                     ['clang', '--target=wasm32-wasi', '-std=gnu11', '-O1', '-Wall', '-Wextra',
                      '-Wshadow', '-Wconversion', '-Werror', '-I', ROOT / 'src',
                      '-I', ROOT / 'include', '-c', path, '-o', '/dev/null'])
    runner.each(one, files, CPUS)


def man():
    """mandoc has nothing to say about the man pages."""
    for page in sorted((ROOT / 'man').glob('*.[1-8]')):
        runner.check(f'man {page.name}', ['mandoc', '-T', 'lint', '-W', 'warning,stop', page])


def unit():
    """The unit tests, built by gcc."""
    program_suite('unit', 'build')


def elf():
    """What the libraries need and export."""
    if not build('build'):
        results.skip('elf', 'build was not built')
        return
    libc = {'libc.so.6', 'ld-linux-x86-64.so.2', 'ld-linux-aarch64.so.1'}
    for library, header, needed in (
            (BUILD / 'src/core/libtacho.so', 'tacho.h', libc),
            (BUILD / 'src/read/libtacho-read.so', 'tacho_read.h', libc | {'libzstd.so.1'})):
        name = library.name
        dynamic = runner.run(f'elf {name} dynamic', ['readelf', '-dW', library])
        symbols = runner.run(f'elf {name} symbols', ['nm', '-D', '--defined-only', library])
        stack = runner.run(f'elf {name} headers', ['readelf', '-lW', library])
        needs = {line.split('[')[1].rstrip(']') for line in dynamic.output.splitlines()
                 if '(NEEDED)' in line}
        exported = [line.split()[-1].split('@')[0] for line in symbols.output.splitlines()
                    if ' A ' not in line]
        public = set(re.findall(r'\w+', (ROOT / 'include' / header).read_text()))
        foreign = [s for s in exported if not s.startswith('tacho_') or s not in public]
        expect(f'{name} needs nothing but {", ".join(sorted(needed & needs)) or "libc"}',
               bool(dynamic) and needs and needs <= needed, f'it needs {sorted(needs)}', dynamic)
        expect(f'{name} exports what {header} declares alone',
               bool(symbols) and exported and not foreign, f'it exports {foreign or "nothing"}',
               symbols)
        expect(f'{name} has no executable stack',
               bool(stack) and 'GNU_STACK' in stack.output and 'RWE' not in stack.output,
               'GNU_STACK is executable or missing', stack)
        if name == 'libtacho.so':
            expect(f'{name} is never unloaded', 'NODELETE' in dynamic.output, 'no NODELETE',
                   dynamic)
            expect(f'{name} binds its calls when it is loaded', 'NOW' in dynamic.output, 'no NOW',
                   dynamic)
    old_libraries(BUILD / 'src/hooks/libtacho-preload.so')


def old_libraries(library):
    """A program with an older glibc can load it. Else the dynamic linker would end the program."""
    outcome = runner.run(f'elf {library.name} versions', ['readelf', '-VW', library])
    needs = outcome.output.partition("'.gnu.version_r'")[2]
    found = {tuple(map(int, v.split('.'))) for v in re.findall(r'GLIBC_([0-9.]+)', needs)}
    newer = sorted(v for v in found if v > OLDEST_GLIBC)
    expect(f'{library.name} needs no glibc after {".".join(map(str, OLDEST_GLIBC))}',
           found and not newer and 'GLIBC_PRIVATE' not in needs,
           f'it needs versions {newer}: see src/hooks/old_glibc.c', outcome)


    preloads()


def names_of(library, *options):
    """(names of its dynamic symbols by their kind, as nm tells; what nm did)"""
    outcome = runner.run(f'elf {library.name} names {" ".join(options)}', ['nm', '-D', *options, library])
    names = {}
    for line in outcome.output.splitlines():
        words = line.split()
        names.setdefault(words[-2], set()).add(words[-1].split('@')[0])
    return names, outcome


def preloads():
    """Either C library can load both recording libraries: each has the names that they need."""
    libraries = [path for path in (BUILD / 'src/hooks/libtacho-preload.so',
                                   BUILD / 'src/hooks/libtacho-preload-musl.so') if path.exists()]
    libcs = [pathlib.Path(path) for path in (
        f'/lib/{os.uname().machine}-linux-gnu/libc.so.6', f'/lib/{os.uname().machine}-linux-musl/libc.so')
        if os.path.exists(path)]
    if len(libcs) < 2:
        results.skip('both C libraries can load the recording libraries', 'musl is not installed')
        return
    for library in libraries:
        needed, outcome = names_of(library, '--undefined-only')
        for libc in libcs:
            there = set().union(*names_of(libc, '--defined-only')[0].values())
            missing = sorted(needed.get('U', set()) - there)
            expect(f'{library.name} can be loaded by {libc.name}', bool(outcome) and not missing,
                   f'it has no {missing}', outcome)


def expect(name, good, why, outcome):
    if good:
        results.ok(name)
    else:
        results.fail(name, why, outcome.log)


def install():
    """A program builds and runs with what `make install` installs, through pkg-config."""
    if not build('build'):
        results.skip('install', 'build was not built')
        return
    runner.lines('install', [ROOT / 'tests/install.sh', BUILD], limit=300)


def just_booted():
    """What stands before a command that is to find clocks near zero, and why that cannot be."""
    clocks = {'--monotonic': time.CLOCK_MONOTONIC, '--boottime': time.CLOCK_BOOTTIME}
    argv = ['unshare', '--time', '--fork']
    for option, clock in clocks.items():
        argv += [option, f'-{int(time.clock_gettime(clock))}']
    done = subprocess.run([*argv, 'true'], capture_output=True, text=True)
    return argv, done.stderr.strip() if done.returncode else None


def scripts(folder, limit, jobs=1, first=(), alone=(), again=()):
    """Those that take longest come first; those that measure, or need what all share, are alone.
    `again`: some are also run on a machine that has just booted, as far as they can see."""
    if not build('build'):
        results.skip(folder, 'build was not built')
        return
    how = {'.py': sys.executable, '.sh': 'bash', '.mjs': 'node'}
    found = {path.name: path for path in sorted((ROOT / 'tests' / folder).iterdir())
             if path.suffix in how and not path.name.startswith('lib')}  # lib*: what tests share

    def one(name, label='', before=()):
        path = found[name]
        runner.lines(f'{folder} {name}{label}', [*before, how[path.suffix], path],
                     limit=limit * PATIENCE)

    def just_after_boot(name):
        before, why_not = just_booted()
        if why_not:
            results.skip(f'{folder} {name} just after boot', why_not)
        else:
            one(name, ' just after boot', before)
    rest = [name for name in found if name not in first and name not in alone]
    jobs_of = [(one, name) for name in first] + [(just_after_boot, name) for name in again] + \
        [(one, name) for name in rest]
    runner.each(lambda job: job[0](job[1]), jobs_of, jobs)
    runner.each(one, alone, 1)


def e2e():
    """The programs as a user meets them."""
    scripts('e2e', 600, WAITERS, first=('run_sentinels.py', 'run_continuous.py', 'doctor.py'),
            alone=('bench_run.py', 'cli_boxes.py', 'diff_runs.py', 'examples.py'),
            again=('run_continuous.py', 'report_extremes.py', 'sql_tables.py', 'run_status.py',
                   'cli_live.py'))


def hostile():
    """One user attacks another, and root, through boxes, files and folders."""
    scripts('hostile', 1200 if SOAK else 400)


def harm():
    """Programs in narrow places do with tacho what they do without it."""
    scripts('harm', 600)
    show_tables('harm', sorted(path.stem for path in (ROOT / 'tests/harm').glob('[!l]*.py')))


def show_tables(suite, names):
    """The rows of tables in what these scripts printed."""
    for name in names:
        log = LOGS / f'{suite}-{name}.py.log'
        for line in log.read_text().splitlines() if log.exists() else ():
            if line.startswith('| '):
                say(f'  {line}')


def daemons():
    """Real servers, unchanged, under load: what is recorded is what others count."""
    scripts('daemons', 400)


def cases():
    """Programs with one fault each, and healthy ones: what the report names first."""
    scripts('cases', 1800)
    log = LOGS / 'cases-run_cases.py.log'
    for line in log.read_text().splitlines() if log.exists() else ():
        if line.startswith('score '):
            say(f'  {line}')


def truth():
    """Servers that are drawn at random: the report against what really happened."""
    scripts('truth', 7200 if SOAK else 1200)
    for name in ('truth', 'tokio'):
        log = LOGS / f'truth-{name}.py.log'
        lines = log.read_text().splitlines() if log.exists() else []
        for number, line in enumerate(lines):
            if line.startswith('seed '):
                say(f'  {line}')
            elif line.startswith(('class ', '| fault ')):
                for row in lines[number:]:
                    say(f'  {row}')
                break


def servers():
    """Healthy servers under three loads: the report against what their clients saw."""
    scripts('servers', 600)
    show_tables('servers', ('servers', 'daemons'))


def page():
    """The page in Chromium, as a person uses it."""
    if not build('build'):
        results.skip('page', 'build was not built')
        return
    if not (BUILD / 'page/engine.wasm').exists():
        results.skip('page', 'tacho was built without its page')
        return
    for folder in ('page-shots', 'page-traces'):
        shutil.rmtree(BUILD / folder, ignore_errors=True)
    scripts('page', 600)


def process():
    """What recorded processes do: fork, exec, daemon, signals, dlopen, limits."""
    program_suite('process', 'build', 'process', jobs=WAITERS)


def crash():
    """The recorded process is killed at named points and at random."""
    if build('build') and programs('build', 'crash'):
        program_suite('crash', 'build', 'crash', jobs=1)
    scripts('crash', 400, WAITERS, first=('hammer.sh',))


def blocked():
    """Servers whose loops are blocked, and servers that end under load."""
    program_suite('blocked', 'build', 'blocked', jobs=1)


def asan():
    """The unit tests and tacho itself under AddressSanitizer and UndefinedBehaviorSanitizer."""
    program_suite('asan', 'build-asan', before=fixed_addresses(), slower=3)
    # The program itself: all that it says of recordings, recording, and strange requests.
    tacho = ROOT / 'build-asan/src/cli/tacho'

    def script(name, limit=600):
        runner.lines(f'asan {pathlib.Path(name).name}', [
            *fixed_addresses(), sys.executable, ROOT / 'tests' / name],
            env=dict(SANITIZERS, TACHO_BIN=str(tacho),
                     TACHO_TEST_PRELOAD=str(BUILD / 'src/hooks/libtacho-preload.so')), limit=limit)
    if built.get('build-asan') and build('build'):
        runner.each(script, ('e2e/run_continuous.py', 'e2e/run_recording.py',
                             'e2e/answers_golden.py'), CPUS)
    if built.get('build-asan') and 'microhttpd' in subprocess.run(
            ['ldd', tacho], capture_output=True, text=True).stdout:
        script('fuzz/serve_requests.py')
    else:
        results.skip('asan serve_requests.py', 'build-asan was not built, or without its page')


def tsan():
    """The recorder's unit tests under ThreadSanitizer."""
    program_suite('tsan', 'build-tsan', 'recorder', before=fixed_addresses(), slower=4, only=True)


def valgrind():
    """The reader's unit tests under valgrind."""
    program_suite('valgrind', 'build', 'reader', slower=4, before=[
        'valgrind', '-q', '--error-exitcode=99', '--leak-check=full', '--errors-for-leak-kinds=all',
        '--show-leak-kinds=all', '--track-origins=no', '--trace-children=no',
        '--child-silent-after-fork=yes'])


def arm64():
    """arm64 compiles; its unit tests run under qemu."""
    if os.uname().machine == 'aarch64':
        results.skip('arm64', 'this machine is arm64, so the unit suite was it')
        return
    for tool in ('aarch64-linux-gnu-gcc', 'qemu-aarch64'):
        if not shutil.which(tool):
            results.skip('arm64', f'there is no {tool} here')
            return
    if not (ROOT / '.arm64/ready').exists():
        results.skip('arm64', 'its libraries could not be fetched (scripts/arm64-root.sh)')
        return
    program_suite('arm64', 'build-arm64', slower=5, before=[
        'qemu-aarch64', '-L', '/usr/aarch64-linux-gnu',
        '-E', f'LD_LIBRARY_PATH={ROOT}/.arm64/usr/lib/aarch64-linux-gnu'])


def too_old(cargo):
    """Why this cargo does not build the crates, or nothing."""
    wanted = max((version for path in (ROOT / 'crates').rglob('Cargo.toml')
                  for version in re.findall(r'^rust-version = "([\d.]+)"', path.read_text(), re.M)),
                 key=lambda version: [int(n) for n in version.split('.')])
    newer = 'rustup (https://rustup.rs) installs a newer one beside it'
    if not cargo:
        return f'there is no cargo here; the crates need {wanted} or newer, which rustup ' \
            '(https://rustup.rs) installs'
    said = subprocess.run([cargo, '--version'], capture_output=True, text=True).stdout
    version = re.match(r'cargo (\d+)\.(\d+)', said)
    if not version:
        return f'cargo does not tell its version, but "{said.strip()}"'
    if [int(n) for n in version.groups()] < [int(n) for n in wanted.split('.')]:
        return f'{said.strip()} is too old; the crates need {wanted} or newer: {newer}'
    return None


def crates():
    """The crates: cargo test with stable features and with tokio_unstable, and their documents."""
    why_not = too_old(shutil.which('cargo'))
    if not why_not and not build('build'):
        why_not = 'build was not built'
    more = {'cwd': ROOT / 'crates', 'limit': 900}
    if not why_not:
        fetched = runner.run('crates fetch', ['cargo', 'fetch', '--locked'], **more)
        why_not = None if fetched else f'their dependencies were not fetched: {fetched.why()}'
    if why_not:
        results.skip('crates', why_not)
        return

    def test(name, flags, *options):
        runner.cargo_test(f'crates {name}', [
            'cargo', 'test', '--locked', '--workspace', '--no-fail-fast', f'-j{CPUS}',
            '--target-dir', BUILD / 'crates' / name, *options],
            env={'RUSTFLAGS': flags, 'CARGO_TERM_COLOR': 'never'}, **more)
    test('stable', '', '--features', 'tacho/tracing')
    test('unstable', '--cfg tokio_unstable', '--all-features')
    runner.check('crates documents', [
        'cargo', 'doc', '--locked', '--workspace', '--no-deps', '--features', 'tacho/tracing',
        '--target-dir', BUILD / 'crates/stable'], env={'RUSTDOCFLAGS': '-D warnings'}, **more)
    listed = runner.run('crates package', ['cargo', 'package', '--list', '--package', 'tacho',
                                           '--locked', '--allow-dirty'], **more)
    wanted = {f'c/{path.relative_to(ROOT / "src")}'
              for path in c_files('src/base', 'src/format', 'src/core')}
    missing = sorted(wanted - set(listed.output.splitlines()))
    expect('the package of the crate has the files of the recorder', listed and not missing,
           f'it has not {missing}', listed)
    if shutil.which('cargo-fmt'):
        runner.check('crates format', ['cargo', 'fmt', '--all', '--check'], **more)
    else:
        results.skip('crates format', 'there is no cargo fmt here')
    # So that drawn services need not be compiled when nothing else may run.
    runner.run('crates services', [sys.executable, ROOT / 'tests/truth/tokio.py', '--build'],
               limit=900)


def analysis():
    """clang-tidy (with clang's analyzer) and cppcheck find nothing."""
    # What is not initialized is left to clang's analyzer: cppcheck 2.10 takes parameters
    # and structs filled by memcpy for it. It does not know _Generic over pointers, either, which
    # src/query/tables.c makes of the rows of facts.def.
    runner.check('cppcheck', [
        'cppcheck', '--quiet', '--error-exitcode=1', '--inline-suppr',
        '--enable=warning,portability', '--std=c11', '--library=gnu', f'-j{CPUS}', '-I', 'src',
        '-I', 'include', '--suppress=missingIncludeSystem', '--suppress=uninitvar',
        '--suppress=uninitStructMember', '--suppress=normalCheckLevelMaxBranches',
        '--suppress=internalAstError:src/model/facts.def', 'src'],
        limit=900)
    if not build('build-asan'):
        results.skip('clang-tidy', 'build-asan was not built')
        return

    # How far the analyzer follows a function. Beyond this it finds little, and takes most of its
    # time; a soak goes to the end.
    paths = [] if SOAK else [f'--extra-arg={word}' for word in (
        '-Xclang', '-analyzer-config', '-Xclang', 'max-nodes=20000')]

    def one(path):
        runner.check(f'clang-tidy {path.relative_to(ROOT)}',
                     ['clang-tidy', '--quiet', '-p', ROOT / 'build-asan', *paths, path],
                     limit=900)
    files = [path for path in c_files('src') if path.suffix == '.c']
    runner.each(one, sorted(files, key=lambda path: -path.stat().st_size), CPUS)


def fuzz():
    """libFuzzer on boxes, trace files, imports and what is made of them; longer in a soak."""
    if not build('build-fuzz', 'fuzz'):
        results.skip('fuzz', 'build-fuzz was not built')
        return

    def one(test):
        name, command = test['name'], test['cmd']
        grown = ROOT / 'build-fuzz' / 'corpus' / name
        grown.mkdir(parents=True, exist_ok=True)
        imports = name.startswith('fuzz_import')
        golden = 'golden-import' if imports else 'golden'
        seconds = IMPORT_FUZZ_SECONDS if imports else FUZZ_SECONDS
        seeds = [path for path in (ROOT / 'tests/fuzz/corpus' / name, ROOT / 'tests' / golden)
                 if path.is_dir()]
        runner.check(f'fuzz {name}', fixed_addresses() + command + [
            f'-max_total_time={seconds}', '-timeout=20', '-rss_limit_mb=2048',
            '-max_len=262144', '-print_final_stats=1', f'-artifact_prefix={LOGS}/{name}-', grown,
            *seeds], env=SANITIZERS, limit=seconds + 120)
    runner.each(one, programs('build-fuzz', 'fuzz'), CPUS)


# What is told soon, with the machine for itself; what mostly waits; and, at the same time but after
# it, what cares for no time, and rows of what only computes. The cases measure time in the end, and
# do that when nothing is beside them any more; nor is anything beside what comes after them.
SOON = [order, man, unit, elf, install]
WAITING = [e2e, hostile, harm, daemons, blocked, cases, truth]
BESIDE = [page, process, crash]
# What other programs do is for longer tests: in a soak, or by name.
if SOAK or 'servers' in os.environ.get('TACHO_TEST_ONLY', '').split(','):
    WAITING.append(servers)
COMPUTING = [[look, headers, asan, fuzz, tsan, valgrind], [analysis, arm64, crates]]
SUITES = SOON + WAITING + BESIDE + [suite for row in COMPUTING for suite in row]


def main():
    global runner, results
    names = [suite.__name__ for suite in SUITES]
    only = [name for name in os.environ.get('TACHO_TEST_ONLY', '').split(',') if name]
    for name in only:
        if name not in names:
            sys.exit(f'tests: TACHO_TEST_ONLY names no suite with "{name}"; there are: '
                     + ' '.join(names))
    LOGS.mkdir(parents=True, exist_ok=True)
    QUIET.unlink(missing_ok=True)
    runner = Runner(dict(
        clean_environment(), TACHO_SOURCE=str(ROOT), TACHO_BUILD=str(BUILD), TACHO_KILLS=KILLS,
        TACHO_BIN=str(BUILD / 'src/cli/tacho'), TACHO_EXAMPLES=str(BUILD / 'examples'),
        TACHO_SOAK='1' if SOAK else '0', TACHO_TEST_QUIET=str(QUIET)),
        low_suites={suite.__name__ for row in [BESIDE, *COMPUTING] for suite in row},
        steadied=() if SOAK else {suite.__name__ for suite in [e2e, hostile, harm, daemons, blocked, asan, *BESIDE]})
    results = runner.results

    def run(suites):
        for suite in suites:
            if not only or suite.__name__ in only:
                run_suite(suite)
    interrupted = None
    beside = threading.Thread(target=compute, args=[run])
    try:
        run(SOON)
        beside.start()
        run(WAITING)
        beside.join()
        runner.run_again()
    except Interrupted as reason:
        interrupted = str(reason)
    finally:
        if beside.ident:
            beside.join()
        runner.end_strays()
    return summary(interrupted)


def compute(run):
    """BESIDE and all of COMPUTING. QUIET says when it is done."""
    def row(suites):
        try:
            run(suites)
        except Interrupted:
            pass  # main says so
    rows = [threading.Thread(target=row, args=[suites]) for suites in [BESIDE, *COMPUTING]]
    for thread in rows:
        thread.start()
    for thread in rows:
        thread.join()
    QUIET.touch()


def run_suite(suite):
    started = time.monotonic()
    results.enter(suite.__name__)
    try:
        suite()
    except Interrupted:
        raise
    except Exception as error:  # whatever it is: no suite is lost in silence
        results.fail(suite.__name__, f'the suite itself failed: {error!r}')
    later = any(name == suite.__name__ for name, *_ in runner.later)
    if not any(results.counts()) and not later:
        results.fail(suite.__name__, 'it has no tests')
    passed, failed, skipped = results.counts()
    cpu = sum(cpu for _, cpu, name, _ in runner.took if name == suite.__name__)
    say(f'{suite.__name__:<10} {passed:>5} passed {failed:>3} failed {skipped:>3} skipped '
        f'{time.monotonic() - started:>5.0f} s {cpu:>5.0f} s of CPU  '
        f'{(suite.__doc__ or "").split(chr(10))[0]}')


def summary(interrupted):
    lines = [f'skipped: {what}' for what in results.skipped]
    lines += [f'unsteady: {what}' for what in results.unsteady]
    lines += [f'failed: {what}' for what in results.failed]
    if interrupted is not None:
        lines.append(f'interrupted ({interrupted or "signal"}): not all suites were run')
    lines.append(results.line())
    (LOGS / 'summary.txt').write_text('\n'.join(lines) + '\n')
    (LOGS / 'durations.txt').write_text(''.join(
        f'{seconds:8.1f} s {cpu:8.1f} s of CPU  {name}\n'
        for seconds, cpu, _, name in sorted(runner.took, reverse=True)))
    say('\n'.join(lines))
    if interrupted is not None:
        return 130
    return 1 if results.failed or not results.passed else 0


if __name__ == '__main__':
    sys.exit(main())
