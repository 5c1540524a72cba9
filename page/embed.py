#!/usr/bin/env python3
"""The files of the page as a C file and an assembler file, compressed.

    embed.py OUT.c OUT.S FOLDER FILE...

FOLDER is where the compressed files are put, which the assembler reads. The file tacho.html, the page
in one file, is not served.
"""
import gzip
import os
import sys

TYPES = {'.html': 'text/html; charset=utf-8', '.js': 'text/javascript; charset=utf-8',
         '.css': 'text/css; charset=utf-8', '.wasm': 'application/wasm'}


def main():
    c_path, s_path, folder, *files = sys.argv[1:]
    rows, alone, code, names = [], [], [], []
    for number, path in enumerate(files):
        name = os.path.basename(path)
        packed = os.path.join(folder, name + '.gz')
        with open(path, 'rb') as f, open(packed, 'wb') as out:
            data = f.read()
            # The page asks a server for a trace only where it is tacho's.
            if name == 'index.html':
                data = data.replace(b'<body>', b'<body data-served>')
            out.write(gzip.compress(data, 9, mtime=0))
        code.append(f'.global tacho__asset_{number}, tacho__asset_end_{number}\n'
                    f'.hidden tacho__asset_{number}, tacho__asset_end_{number}\n'
                    f'tacho__asset_{number}:\n.incbin "{os.path.abspath(packed)}"\n'
                    f'tacho__asset_end_{number}:\n')
        names.append(f'extern const uint8_t tacho__asset_{number}[];')
        (alone if name == 'tacho.html' else rows).append(
            f'{{"{name}", "{TYPES[os.path.splitext(name)[1]]}", tacho__asset_{number}, '
            f'{os.path.getsize(packed)}}}')
    with open(s_path, 'w', encoding='ascii') as f:
        f.write('.section .rodata\n' + ''.join(code)
                + '.section .note.GNU-stack, "", %progbits\n')
    with open(c_path, 'w', encoding='ascii') as f:
        f.write('#include "serve/site.h"\n\n' + '\n'.join(names)
                + '\n\nconst struct tacho__asset tacho__assets[] = {\n\t' + ',\n\t'.join(rows)
                + '\n};\nconst struct tacho__asset tacho__alone_page = ' + alone[0]
                + ';\nconst size_t tacho__asset_count = '
                'sizeof(tacho__assets) / sizeof(tacho__assets[0]);\n')


main()
