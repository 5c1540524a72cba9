#!/usr/bin/env python3
"""Checks that nothing is forgotten: every source, test and man page stands in the
meson.build of its folder or of the one above, and every system call of the recorder in
hooks/seccomp.c, which tries them out on filters.

    scripts/check-lists.py [ROOT]

prints one line per forgotten file or call; status 1 when there is one.
"""
import pathlib
import re
import sys

PATTERNS = ['src/*/*.c', 'tests/unit/*.c', 'tests/fuzz/*.c', 'tests/crash/*.c', 'tests/e2e/*.c',
            'tests/process/*.c', 'tests/hooks/*.c', 'tests/kernel/*.c', 'tests/agent/*.c',
            'tests/blocked/*.c', 'tests/cases/*.c', 'tests/truth/*.c', 'tests/page/*.c', 'examples/*.c',
            'bench/*.c', 'man/*.[1-8]', 'page/src/*.ts', 'page/engine/*.c']

# Of the program, or made when it calls tacho_snapshot.
NOT_RECORDING = {'io_uring_enter', 'rt_sigtimedwait', 'seccomp', 'setuid', 'setreuid', 'setresuid', 'setgid',
                 'setregid', 'setresgid'}


def forgotten_calls(root):
    tried = root / 'src/hooks/seccomp.c'
    known = set(re.findall(r'\{SYS_(\w+)', tried.read_text())) if tried.exists() else set()
    for folder in ('base', 'core', 'hooks'):
        for path in sorted((root / 'src' / folder).glob('*.[ch]')):
            used = set(re.findall(r'\bSYS_([a-z]\w+)', path.read_text()))
            for call in sorted(used - known - NOT_RECORDING):
                yield f'{path}: SYS_{call} is not in hooks/seccomp.c, so no filter is tried on it'


def listed(folder):
    """The quoted words of the meson.build that builds this folder."""
    build = folder / 'meson.build'
    if not build.exists():
        return None
    return re.findall(r"'([^']*)'|#.*", build.read_text())


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    found = list(forgotten_calls(root))
    for pattern in PATTERNS:
        for path in sorted(root.glob(pattern)):
            words = listed(path.parent) or listed(path.parent.parent)
            if words is None:
                found.append(f'{path}: its folder has no meson.build')
            elif not {path.name, path.stem, f'{path.parent.name}/{path.name}'} & set(words):
                found.append(f'{path}: not in {path.parent.name}/meson.build, so it is never built')
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
