#!/usr/bin/env python3
"""The skills as a C file, which becomes part of the tacho program.

    embed.py OUT.c FILE.md...

A file begins with its front matter: a line with its name, which is that of the file, and one with
its description.
"""
import os
import re
import sys


def literal(text):
    lines = text.encode('utf-8').splitlines(keepends=True)
    return '\n'.join('\t\t"' + ''.join(
        f'\\{chr(b)}' if b in b'"\\' else '\\n' if b == 10 else chr(b) if 32 <= b < 127 else f'\\{b:03o}'
        for b in line) + '"' for line in lines)


def main():
    out, *files = sys.argv[1:]
    rows = []
    for path in files:
        with open(path, encoding='utf-8') as f:
            text = f.read()
        name = os.path.splitext(os.path.basename(path))[0]
        front = re.match(r'---\nname: (.+)\ndescription: (.+)\n---\n\n', text)
        if not front or front[1] != name:
            sys.exit(f'{path}: it does not begin with its name and description')
        rows.append(f'\t{{\n\t\t"{name}",\n{literal(front[2])},\n{literal(text)},\n'
                    f'\t\t{len(front[0].encode())},\n\t}},\n')
    with open(out, 'w', encoding='ascii') as f:
        f.write('#include "cli/skills.h"\n\nconst struct cli_skill cli_skills[] = {\n' + ''.join(rows)
                + '};\nconst size_t cli_skill_count = sizeof(cli_skills) / sizeof(cli_skills[0]);\n')


main()
