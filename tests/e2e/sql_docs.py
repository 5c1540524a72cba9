#!/usr/bin/env python3
"""docs/sql.md: its tables are those of the program, and each of its queries runs on recordings of
real programs and finds something."""
import os
import re
import sys

from libsql import BUILD, record_tasks, record_redis, record_uv, rows, sql
from librun import check, folder, said, skip

ROOT = os.environ.get("TACHO_SOURCE") or os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
# What a query needs, if not all recordings have it; the rest finds rows in each.
NEEDS = {
    "From wake to poll: which kinds wait": {"demo", "uv"},
    "What ran while a woken task waited": {"demo", "uv"},
    "Who wakes whom": {"demo", "uv"},
    "Waits for locks: where, and who held them": {"uv"},
    "Blocking calls, by caller": {"uv"},
    "Callbacks that spend their time in blocking calls": {"uv"},
    "Thread pool: who waits, who takes long": {"uv"},
    "CPU time by function, innermost of the program": {"uv"},
    "CPU time by function, callees included": {"uv"},
    "Stacks of one kind of callback, collapsed": {"uv"},
    "Timers that came late": {"uv"},
    "What the kernel's scheduler did to callbacks": {"uv"},
    "Spans by name": {"demo"},
    "Tasks that live on, by where they were spawned": {"demo", "uv"},
    "Queue depths and counters": {"demo"},
    "The program's own events, by a field": {"demo"},
}


def queries(text):
    """title: query"""
    part = text.partition("## Queries")[2].partition("\n## Tables")[0]
    return dict(re.findall(r"^### (.+?)\n.*?^```sql\n(.*?)^```", part, re.M | re.S))


def schema_of_document(text):
    """table: [(column, type, meaning)]"""
    part = text.partition("\n## Tables")[2]
    return {name: [(c, t, m) for c, t, m in re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \|$", body,
                                                       re.M)]
            for name, body in re.findall(r"^### (\w+)\n(.*?)(?=^### |\Z)", part, re.M | re.S)}


def schema_of_program(path):
    tables, columns = {}, None
    for line in sql(path, ".schema").stdout.splitlines():
        if line.startswith("  "):
            columns.append(tuple(line.split(None, 2)))
        else:
            columns = tables.setdefault(line.split()[0], [])
    return tables


def main():
    with open(os.path.join(ROOT, "docs/sql.md"), encoding="utf-8") as f:
        text = f.read()
    asked = queries(text)
    check("sql_docs_has_twenty_queries", len(asked) >= 20, len(asked))
    check("sql_docs_needs_are_of_queries", set(NEEDS) <= set(asked), set(NEEDS) - set(asked))
    with folder() as base:
        paths = {"demo": os.path.join(base, "demo.tacho"), "uv": os.path.join(base, "uv.tacho"),
                 "redis": os.path.join(base, "redis.tacho")}
        p = record_tasks(paths["demo"])
        check("sql_docs_records_demo", p.returncode == 0, said(p))
        if os.access(os.path.join(BUILD, "tests/e2e/export_uv"), os.X_OK):
            record_uv(paths["uv"])
        if not record_redis(paths["redis"], base):
            skip("sql_docs_redis", "redis is not here")
        written, told = schema_of_document(text), schema_of_program(paths["demo"])
        check("sql_docs_tables", list(written) == list(told), set(written) ^ set(told))
        for name in told:
            check(f"sql_docs_table_{name}", written.get(name) == told[name],
                  set(written.get(name, [])) ^ set(told[name]))
        for title, query in asked.items():
            wrong = []
            for name, path in paths.items():
                if not os.path.exists(path):
                    continue
                try:
                    found = rows(path, query)
                except RuntimeError as error:
                    wrong.append(str(error))
                    continue
                if not found and name in NEEDS.get(title, paths):
                    wrong.append(f"no rows of {name}")
            check(f"sql_docs_query {title}", not wrong, wrong)
    return 0


if __name__ == "__main__":
    sys.exit(main())
