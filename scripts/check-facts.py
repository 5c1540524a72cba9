#!/usr/bin/env python3
"""Checks the table of facts (src/model/facts.def) against the structs that it is about (src/model/model.h),
and what people read of it and of the tables of SQL (src/query/tables.def): the members in tacho-export(1),
the tables in tacho-sql(1) and docs/sql.md.

    scripts/check-facts.py [--write] [ROOT]

prints one line per difference; status 1 when there is one. --write puts docs/sql.md right.
"""
import pathlib
import re
import subprocess
import sys

# Of each row the arguments that are looked at. The preprocessor finds them, as it does for everybody else.
ROWS = {
    'FACT(fact, name, type, table, process, ns, what)': 'fact name type table process what',
    'MEMBERS(fact, name, type, process, ns, what)': 'fact name type process',
    'FIELD(fact, role, column, member, get, what)': 'fact role column member get what',
    'FIELD_IF(fact, role, column, member, given, get, what)': 'fact role column member get what',
    'SQL_FIELD(fact, role, column, get, what)': 'fact role column get what',
    'VALUE(fact, value, get)': 'fact get',
    'COLUMN(fact, role, column, value, what)': 'fact role column what',
    'COLUMN2(fact, role, column, value, other, what)': 'fact role column what',
    'MEMBER(fact, role, member, get)': 'fact role member get',
    'MEMBER2(fact, role, member, get, other)': 'fact role member get other',
    'OPEN(fact, member, given)': 'fact member given',
    'HIDDEN(fact, field, why)': 'fact field',
}
TEXTS = {'TEXT', 'NAME', 'THREAD_NAME', 'RESULT', 'FD_KIND', 'LEVEL', 'TRACE_ID', 'ID_NAME', 'ID_UNIT', 'ID_FUNCTION',
         'ID_FILE'}


def rows_of(root, table):
    """(name of the row, {argument: text}) of each."""
    source = f'#include "{table}"\n'
    for head, shown in ROWS.items():
        source = f'#define {head} @{head.partition("(")[0]} #{" #".join(shown.split())}\n' + source
    done = subprocess.run(['cc', '-E', '-P', '-x', 'c', '-I', root / 'src', '-'], text=True, check=True,
                          input=source, capture_output=True)
    shown = {head.partition('(')[0]: names.split() for head, names in ROWS.items()}
    for text in done.stdout.split('@')[1:]:
        row = text.split()[0]
        strings = re.findall(r'"((?:[^"\\]|\\.)*)"', text)
        yield row, {name: string.strip('\\"') for name, string in zip(shown[row], strings)}


def structs_of(header):
    """{name: {field: name of its struct or None}}"""
    text = re.sub(r'/\*.*?\*/', '', header, flags=re.S)
    found = {}
    for name, body in re.findall(r'struct (tacho__\w+) \{(.*?)^\};', text, re.S | re.M):
        found[name] = {}
        for kind, names in re.findall(r'((?:const )?(?:struct )?\w+)((?:[\s*]+\w+,?)+);', body):
            for field in re.findall(r'\w+', names):
                found[name][field] = kind.partition('struct ')[2] or None
    return found


def fields_of(structs, name, path='x->'):
    """'x->begin_ns', 'x->spent.lock_ns'"""
    for field, inner in structs[name].items():
        if inner in structs:
            yield from (f for f in fields_of(structs, inner, f'{path}{field}.')
                        if not f.endswith('.process'))
        else:
            yield path + field


def wrong_in_table(root, rows):
    """Fields of structs that have no row."""
    structs, types, used = structs_of((root / 'src/model/model.h').read_text()), {}, {}
    for row, a in rows:
        fact = a['fact']
        if row in ('FACT', 'MEMBERS'):
            types[fact] = a['type']
        text = ' '.join(a.get(key, '') for key in ('process', 'get', 'other', 'given'))
        # Facts of one struct may show a part of it each.
        used[types[fact]] = used.get(types[fact], '') + re.sub(r'\(&(x->\w+)\)->', r'\1.', text) + ' '
        if row == 'HIDDEN':
            used[types[fact]] += f'x->{a["field"]} '
    for kind, shown in used.items():
        for field in fields_of(structs, kind):
            if not re.search(re.escape(field) + r'\b', shown):
                yield f'no row for {field} of {kind}'


def wrong_in_export(page, rows):
    """Each member stands in the item of its fact, emphasised if it is an object, or before all of them."""
    intro, *items = re.split(r'^\.It Cm ', page.split('.Sh FACTS')[1].split('.Sh ')[0], flags=re.M)
    for row, a in rows:
        if row in ('FACT', 'MEMBERS'):
            name = a['name']
            item = ' '.join(i for i in items if name in re.findall(r'[\w-]+', i.split('\n')[0]))
        if 'member' in a:
            is_object = a.get('role') == 'ID'
            there = rf'^\.Em {a["member"]}\b' if is_object else rf'\b{a["member"]}\b'
            if not re.search(there, item if is_object else intro + item, re.M):
                yield f'{name} has no {a["member"]}'


def wrong_in_sql(page, tables):
    listed = set(re.findall(r'^\.It Cm (\w+)$', page, re.M))
    for name in sorted(listed ^ set(tables)):
        yield f'{name} is ' + ('missing' if name in tables else 'no table')


def tables_of(rows):
    """{name: text of its section}"""
    tables = {}
    for row, a in rows:
        if row == 'FACT':
            name = a['table']
            tables[name] = (f'### {name}\n\nEach row is {a["what"]}.\n\n'
                            '| column | type | meaning |\n|---|---|---|\n')
        if 'column' in a:
            kind = 'TEXT' if a['role'] in TEXTS else 'NUMERIC' if a['role'] == 'VALUE' else 'INTEGER'
            tables[name] += f'| `{a["column"]}` | {kind} | {a["what"]} |\n'
    return tables


def with_tables(text, tables):
    """docs/sql.md as it should be: in the order that it has."""
    before, head, after = text.partition('\n## Tables\n')
    intro, *sections = after.split('\n### ')
    names = [name for name in (section.split('\n')[0] for section in sections) if name in tables]
    names += [name for name in tables if name not in names]
    return before + head + intro.rstrip('\n') + '\n\n' + '\n'.join(tables[name] for name in names)


def main():
    arguments = [a for a in sys.argv[1:] if a != '--write']
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent)
    facts, tables = list(rows_of(root, 'model/facts.def')), tables_of(rows_of(root, 'query/tables.def'))
    docs = root / 'docs/sql.md'
    text = docs.read_text()
    right = with_tables(text, tables)
    found = [f'src/model/facts.def: {line}' for line in wrong_in_table(root, facts)]
    found += [f'man/tacho-export.1: {line}'
              for line in wrong_in_export((root / 'man/tacho-export.1').read_text(), facts)]
    found += [f'man/tacho-sql.1: {line}' for line in wrong_in_sql((root / 'man/tacho-sql.1').read_text(), tables)]
    if '--write' in sys.argv:
        docs.write_text(right)
    elif right != text:
        found += [f'docs/sql.md: not as the table says: {line}'
                  for line in sorted(set(right.split('\n')) ^ set(text.split('\n'))) or ['the order']]
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
