#!/usr/bin/env python3
"""The page in one file, which needs no server: a trace can be dropped on it, or written into it.

    alone.py OUT FILE...

Styles and scripts stand in it as they are, allowed by their hashes; the engine and the worker in
scripts of a type that no browser runs. `tacho view --html` puts a trace before the line MARK.
"""
import base64
import gzip
import hashlib
import os
import re
import sys

MARK = '<!-- trace -->\n'


def allowed(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def holder(name, data):
    packed = base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()
    return f'<script type="text/plain" id="{name}">{packed}</script>\n'


def main():
    out, *paths = sys.argv[1:]
    files = {}
    for path in paths:
        with open(path, 'rb') as f:
            files[os.path.basename(path)] = f.read()
    page = files['index.html'].decode()
    main_code = files['main.js'].decode()
    # What ends a script, or begins a comment in it, must not stand in one.
    if re.search(r'</script|<!--', main_code, re.I):
        sys.exit('alone.py: main.js holds </script or <!--')
    styles = []

    def style(match):
        styles.append(files[match[1]].decode())
        return f'<style>{styles[-1]}</style>'
    page = re.sub(r'<link rel="stylesheet" href="([^"]+)">', style, page)
    policy = ("default-src 'none'; script-src 'wasm-unsafe-eval' " + allowed(main_code)
              + '; style-src ' + ' '.join(allowed(text) for text in styles)
              + "; img-src data:; connect-src data:; worker-src blob:; base-uri 'none'; form-action 'none'")
    head = '<meta charset="utf-8">\n'
    code = '<script src="main.js"></script>\n'
    if page.count(head) != 1 or page.count(code) != 1 or not styles:
        sys.exit('alone.py: index.html is not as expected')
    page = page.replace(
        head, f'{head}<meta http-equiv="Content-Security-Policy" content="{policy}">\n')
    page = page.replace(code, holder('engine-code', files['engine.wasm'])
                        + holder('worker-code', files['worker.js']) + MARK
                        + f'<script>{main_code}</script>\n')
    with open(out, 'w', encoding='utf-8') as f:
        f.write(page)


main()
