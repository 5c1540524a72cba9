#!/usr/bin/env python3
"""Checks the order of the folders in src/ (src/README.md).

A file includes from its own folder and from those above it, and always with
the folder's name ("base/crc32c.h"). src/read does not include the recorder, and
asks the operating system for something in ask.c and open.c alone.

    scripts/check-order.py [ROOT]

prints one line per violation; status 1 when there is one.
"""
import pathlib
import re
import sys

ORDER = ['base', 'format', 'core', 'hooks', 'read', 'text', 'kernel', 'symbols', 'write', 'agent',
         'import', 'model', 'explain', 'answer', 'view', 'export', 'query', 'serve', 'doctor', 'cli']
# Further than the order: folder -> folders that it may not include although they are above.
APART = {'read': {'core', 'hooks'}}
PUBLIC = {'tacho.h', 'tacho_events.h', 'tacho_read.h', 'tacho_values.h'}
OS_FREE = {'read': {'ask.c', 'open.c'}, 'model': set(), 'explain': set(), 'answer': set(), 'view': set()}
OS_HEADERS = re.compile(r'(sys/.*|linux/.*|unistd|fcntl|dirent|pthread|threads|signal|poll|sched'
                        r'|time|spawn|dlfcn|link|termios)\.h')
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)


def violations_of(path, folder):
    text = path.read_text(encoding='utf-8', errors='replace')
    for match in INCLUDE.finditer(text):
        kind, name = match.groups()
        line = text.count('\n', 0, match.start(2)) + 1
        where = f'{path}:{line}: includes "{name}"'
        if kind == '<':
            if name in PUBLIC or name.split('/')[0] in ORDER:
                yield f'{where} in <>; write it in quotes'
            elif OS_HEADERS.fullmatch(name) and path.name not in OS_FREE.get(folder, {path.name}):
                yield f'{where}, but src/{folder} makes no calls to the operating system'
            continue
        if name in PUBLIC:
            continue
        other = name.split('/')[0]
        if '/' not in name or other not in ORDER:
            yield f'{where}, which names no folder of src/ (write "folder/file.h")'
        elif ORDER.index(other) > ORDER.index(folder):
            yield f'{where}, but src/{other} is below src/{folder}'
        elif other in APART.get(folder, ()):
            yield f'{where}, but src/{folder} stays apart from src/{other}'


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    found = []
    for path in sorted((root / 'src').rglob('*.[ch]')):
        folder = path.relative_to(root / 'src').parts[0]
        if folder not in ORDER:
            found.append(f'{path}: src/{folder} has no place in the order of src/README.md')
            continue
        found.extend(violations_of(path, folder))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
