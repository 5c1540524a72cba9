#!/usr/bin/env python3
"""tacho sql as it is used: forms of output, the prompt, errors, folders, strange traces."""
import contextlib
import csv
import io
import json
import os
import pty
import select
import signal
import sqlite3
import struct
import subprocess
import sys
import time

import cli_trace
from cli_trace import BIG, HOSTILE, Recording, full_recording, name_payload
from libsql import cat, one, record_tasks, rows, sql, table
from librun import BIN, check, environment, folder, said


def write(base, name, data):
    path = os.path.join(base, name)
    with open(path, "wb") as f:
        f.write(data)
    return path


# --------------------------------------------------------------------- output

def forms(path):
    query = "SELECT function, task, ns, cut, result FROM polls ORDER BY begin_ns LIMIT 500"
    lines = rows(path, query)
    plain = table(path, query)
    check("sql_csv_has_the_names_first", plain[0] == ["function", "task", "ns", "cut", "result"],
          plain[0])
    check("sql_csv_and_json_have_the_same_rows",
          [[("" if v is None else str(v)) for v in r.values()] for r in lines] == plain[1:],
          (lines[:2], plain[:3]))
    p = sql(path, query)
    shown = p.stdout.splitlines()
    check("sql_table_has_a_line_for_each", len(shown) == len(lines) + 1 and
          shown[0].split() == plain[0], shown[:2])
    check("sql_table_stands_in_columns",
          len({line.rfind(" ", 0, len(shown[0])) >= 0 for line in shown}) == 1 and
          all("\t" not in line for line in shown), shown[:3])
    odd = "SELECT 'a,b' AS x, 'say \"no\"' AS y, 'two\nlines' AS z, NULL AS n, '' AS e, " \
          "x'00ff41' AS b, 1.5 AS f, -9223372036854775808 AS i, char(27) || '[31m' AS c"
    p = sql(path, odd, form="csv", errors="surrogateescape")
    got = list(csv.reader(io.StringIO(p.stdout, newline="")))[1]
    check("sql_csv_quotes", got[:5] == ["a,b", 'say "no"', "two\nlines", "", ""] and
          got[6] == "1.5" and got[7] == "-9223372036854775808", got)
    check("sql_csv_tells_null_from_empty", ',,"",' in p.stdout, p.stdout)
    p = sql(path, odd, form="json")
    got = json.loads(p.stdout)
    check("sql_json_values", got["x"] == "a,b" and got["z"] == "two\nlines" and got["n"] is None and
          got["e"] == "" and got["f"] == 1.5 and got["i"] == "-9223372036854775808", got)
    p = sql(path, odd)
    check("sql_table_is_safe_on_a_terminal", "\x1b" not in p.stdout and "two\\x0alines" in p.stdout
          and " - " in p.stdout, p.stdout)
    p = sql(path, "SELECT 1 AS a; SELECT 2 AS b", "SELECT 3 AS c", form="json")
    check("sql_several_queries", p.stdout.split() == ['{"a":1}', '{"b":2}', '{"c":3}'], said(p))
    p = sql(path, "CREATE VIEW slow AS SELECT * FROM polls WHERE ns > 1; "
                  "SELECT count(*) > 0 AS n FROM slow", form="json")
    check("sql_views", p.stdout == '{"n":1}\n', said(p))
    check("sql_no_rows", sql(path, "SELECT 1 WHERE 0", form="json").stdout == "" and
          sql(path, "SELECT 1 AS x WHERE 0", form="csv").stdout.strip() == "x")
    p = subprocess.run(f"'{BIN}' sql '{path}' --csv 'SELECT * FROM polls a, polls b' | head -n 1",
                       shell=True, capture_output=True, text=True, timeout=60)
    check("sql_stops_when_nobody_reads", p.returncode == 0 and p.stdout.startswith("process,"),
          said(p))


def schema(path):
    tables = [line.split()[0] for line in sql(path, ".tables").stdout.splitlines()]
    wanted = "loops turns tasks polls wakes locks calls pool spans samples frames counters losses"
    check("sql_has_the_tables", set(wanted.split()) <= set(tables), tables)
    for name in tables:
        listed = [line.split()[:2] for line in
                  sql(path, f".schema {name}").stdout.splitlines()[1:]]
        told = [[r["name"], r["type"]] for r in rows(path, f"PRAGMA table_info({name})")]
        check(f"sql_schema_of_{name}", listed == told and told, (listed, told))
        found = rows(path, f"SELECT * FROM {name} LIMIT 50")
        types = dict(map(tuple, told))
        wrong = [(c, v) for r in found for c, v in r.items() if v is not None and
                 (isinstance(v, str) and not v.lstrip("-").isdigit()) != (types[c] == "TEXT") and
                 not (types[c] == "TEXT" and isinstance(v, str))]
        check(f"sql_types_of_{name}", not wrong, wrong[:3])
        p = sql(path, f"SELECT count(*) FROM {name}", f"SELECT count(*) FROM {name} WHERE rowid "
                      f"IS NOT NULL", form="csv")
        counts = p.stdout.split()[1::2]
        check(f"sql_count_of_{name}", counts[0] == counts[1], said(p))


# --------------------------------------------------------------------- prompt

class Prompt:
    """A session on a terminal."""

    def __init__(self, path):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(BIN, [BIN, "sql", path], dict(environment(), TERM="dumb", NO_COLOR="1"))
        self.text = ""

    def wait(self, wanted, seconds=60):
        end = time.monotonic() + seconds
        while wanted not in self.text and time.monotonic() < end:
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    data = os.read(self.fd, 65536)
                except OSError:
                    break
                if not data:
                    break
                self.text += data.decode(errors="replace")
        found = wanted in self.text
        seen = self.text
        self.text = self.text.partition(wanted)[2]
        return found, seen

    def send(self, text):
        os.write(self.fd, text.encode())

    def end(self):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return -999


def prompt(path):
    p = Prompt(path)
    check("sql_prompt_greets", *p.wait("tacho> "))
    p.send("SELECT 40 +\n")
    check("sql_prompt_waits_for_the_semicolon", *p.wait("...> "))
    p.send("2 AS answer;\n")
    check("sql_prompt_answers", *p.wait("    42"))
    p.wait("tacho> ")
    p.send("SELECT tsak FROM polls;\n")
    found, seen = p.wait("tacho> ")
    check("sql_prompt_goes_on_after_an_error", found and "no such column: tsak" in seen and
          "^" in seen, seen)
    p.send(".schema wakes\n")
    found, seen = p.wait("tacho> ")
    check("sql_prompt_schema", "latency_ns" in seen and "turns" not in seen, seen)
    p.send(".format json\nSELECT 1 AS x;\n")
    check("sql_prompt_format", *p.wait('{"x":1}'))
    p.wait("tacho> ")
    p.send(".frob\n")
    check("sql_prompt_unknown_command", *p.wait("there is no '.frob'"))
    p.wait("tacho> ")
    p.send("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
           "SELECT max(i) FROM n;\n")
    time.sleep(1)
    p.send("\x03")
    check("sql_prompt_ctrl_c_ends_the_query", *p.wait("interrupted"))
    p.wait("tacho> ")
    p.send(".quit\n")
    check("sql_prompt_quits", p.end() == 0)
    p = Prompt(path)
    p.wait("tacho> ")
    p.send("\x04")
    check("sql_prompt_ends_with_ctrl_d", p.end() == 0)

    p = subprocess.run([BIN, "sql", path, "--csv", "SELECT 1"], capture_output=True, timeout=60)
    check("sql_csv_lines_end_as_rfc_4180_says", p.stdout == b"1\r\n1\r\n", said(p))
    p = subprocess.run([BIN, "sql", path, "--csv"], capture_output=True, text=True, timeout=60,
                       input="SELECT 1 AS a;\n.format json\nSELECT 2\nAS b;\nSELECT 3 AS c")
    check("sql_reads_a_script", p.stdout == 'a\n1\n{"b":2}\n{"c":3}\n' and p.returncode == 0,
          said(p))
    p = subprocess.run([BIN, "sql", path], capture_output=True, text=True, timeout=60,
                       input="SELEC 1;\nSELECT 2;\n")
    check("sql_script_stops_at_an_error", p.returncode == 1 and not p.stdout, said(p))


# --------------------------------------------------------------------- errors

def errors(path, base):
    for name, query, text in (
            ("syntax", "SELEC 1", 'near "SELEC": syntax error.'),
            ("table", "SELECT * FROM pools", "no such table: pools."),
            ("column", "SELECT tsak FROM polls", "no such column: tsak."),
            ("function", "SELECT median(ns) FROM polls", "no such function: median."),
            ("end", "SELECT (1", "incomplete input."),
            ("write", "DELETE FROM polls", "table polls may not be modified."),
            ("overflow", "SELECT abs(-9223372036854775808)", "integer overflow."),
            ("command", ".frob", "there is no '.frob'"),
            ("schema", ".schema frob", "there is no table 'frob'")):
        p = sql(path, query)
        check(f"sql_error_{name}", p.returncode == 1 and not p.stdout and
              p.stderr.startswith("tacho sql: ") and text in p.stderr.splitlines()[0], said(p))
    lines = sql(path, "SELECT begin_ns, tsak FROM polls").stderr.splitlines()
    check("sql_error_has_a_caret", lines[1].index("tsak") == lines[2].index("^"), lines)
    lines = sql(path, "SELECT\n  'w\u00f6rter\u0007', tsak\nFROM polls").stderr.splitlines()
    check("sql_caret_in_a_query_of_several_lines", lines[1].index("tsak") == lines[2].index("^"),
          lines)
    for name, arguments, status, text in (
            ("no_argument", [], 2, "which trace?"), ("form", [path, "--format", "xml"], 2, "none of"),
            ("option", [path, "--frob"], 2, "--frob"),
            ("no_file", [os.path.join(base, "nothing.tacho"), "SELECT 1"], 1, "nothing.tacho"),
            ("no_trace", [__file__, "SELECT 1"], 1, "sql_use.py"),
            ("empty", [write(base, "empty.tacho", b""), "SELECT 1"], 1, "empty.tacho")):
        p = subprocess.run([BIN, "sql", *arguments], capture_output=True, text=True, timeout=60,
                           stdin=subprocess.DEVNULL)
        check(f"sql_refuses_{name}", p.returncode == status and text in p.stderr and
              not p.stdout and len(p.stderr.splitlines()) <= 2, said(p))


# -------------------------------------------------------------- strange traces

def reads_only(path, base):
    out, kept = os.path.join(base, "taken.db"), os.path.join(base, "kept.db")
    for query in (f"ATTACH '{out}' AS x; CREATE TABLE x.polls AS SELECT * FROM polls",
                  f"VACUUM INTO '{out}'", f"VACUUM main INTO '{out}'", "DETACH main",
                  f"PRAGMA temp_store_directory = '{base}'", "PRAGMA writable_schema = 1",
                  "SELECT load_extension('x')"):
        p = sql(path, query)
        check(f"sql_refuses {query.split(' ')[0]} {query.split(' ')[1]}", p.returncode == 1 and
              "authoriz" in p.stderr and not os.path.exists(out), said(p))
    p = sql(path, "PRAGMA table_info(polls)", "CREATE TEMP VIEW v AS SELECT count(*) AS n FROM polls",
            "CREATE TABLE t AS SELECT * FROM v", "SELECT n > 0 AS some FROM t", form="json")
    check("sql_has_tables_of_its_own", p.stdout.splitlines()[-1:] == ['{"some":1}'], said(p))
    p = sql(path, "--into", kept, "CREATE TABLE out.polls AS SELECT * FROM polls")
    with contextlib.closing(sqlite3.connect(kept)) as db:
        check("sql_keeps_what_it_is_asked_to", p.returncode == 0 and
              list(db.execute("SELECT count(*) FROM polls")) ==
              [tuple(one(path, "SELECT count(*) FROM polls"))], said(p))
    p = sql(path, "--into", kept, f"ATTACH '{out}' AS x")
    check("sql_refuses_a_second_database", p.returncode == 1 and "--into" in p.stderr and
          not os.path.exists(out), said(p))
    for name in (write(base, "none.db", b"this is no database, but long enough to look at" * 40),
                 os.path.join(base, "missing", "x.db")):
        p = sql(path, "--into", name, "SELECT 1")
        check("sql_says_that_it_can_not_write", p.returncode == 1 and name in p.stderr and
              p.stdout == "", said(p))


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "


def uses_only_what_is_listed(path, base):
    """Functions, virtual tables and pragmas that reach files or native code, and new ones."""
    pointer = "x'4141414141414141'"
    for name, query in (
            ("leaks_a_pointer", "SELECT hex(fts3_tokenizer('simple'))"),
            ("installs_a_pointer", f"SELECT fts3_tokenizer('x', {pointer})"),
            ("fts3", "CREATE VIRTUAL TABLE t USING fts3(a, tokenize=simple)"),
            ("fts4", "CREATE VIRTUAL TABLE temp.t USING fts4(a)"),
            ("fts5", "CREATE VIRTUAL TABLE t USING fts5(a)"),
            ("rtree", "CREATE VIRTUAL TABLE t USING rtree(a, b, c)"),
            ("own_table", "CREATE VIRTUAL TABLE t USING polls"),
            ("tokenize", "SELECT * FROM fts3tokenize('simple', 'a')"),
            ("pages", "SELECT * FROM sqlite_dbpage"), ("dbstat", "SELECT * FROM dbstat"),
            ("statements", "SELECT * FROM sqlite_stmt"),
            ("extension", "SELECT load_extension('x')"), ("log", "SELECT sqlite_log(1, 'x')"),
            ("files", "SELECT readfile('/etc/passwd')"), ("edit", "SELECT edit('x', 'sh')"),
            ("options", "SELECT sqlite_compileoption_get(1)"),
            ("schema", "PRAGMA writable_schema = 1"), ("trust", "PRAGMA trusted_schema = 1"),
            ("heap", "PRAGMA hard_heap_limit = 0"), ("journal", "PRAGMA journal_mode = off"),
            ("pragma_function", "SELECT * FROM pragma_cache_size"),
            ("master", "UPDATE sqlite_master SET sql = 'x'"), ("analyze", "CREATE TABLE t(a); ANALYZE"),
            ("check", "CREATE TABLE t(a CHECK (fts3_tokenizer('simple')))"),
            ("view", "CREATE VIEW v AS SELECT fts3_tokenizer('simple'); SELECT * FROM v"),
            ("trigger", "CREATE TABLE t(a); CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT 1; END"),
            ("alter", "CREATE TABLE t(a); ALTER TABLE t ADD b DEFAULT (fts3_tokenizer('simple'))")):
        p = sql(path, query)
        check(f"sql_refuses_{name}", p.returncode == 1 and not p.stdout and
              any(t in p.stderr for t in ("not authorized", "no such function", "no such table",
                                          "may not be modified", "unsafe use")), said(p))
    check("sql_reads_json_in_tables", one(path, "SELECT sum(value) FROM json_each('[1, 2]')") == [3])
    own = one(path, "SELECT count(*) FROM pragma_module_list WHERE name NOT LIKE 'pragma%' AND name "
                    "NOT IN ('json_each', 'json_tree')")
    tables = len(sql(path, ".tables").stdout.splitlines())
    check("sql_has_no_other_virtual_tables", own == [tables], (own, tables))
    # A database that somebody else made, with all that runs by itself.
    evil = os.path.join(base, "evil.db")
    with contextlib.closing(sqlite3.connect(evil)) as db:
        db.executescript("CREATE TABLE t(a); CREATE TABLE said(a); "
                         "CREATE TRIGGER r AFTER INSERT ON t BEGIN INSERT INTO said VALUES(1); END;"
                         "CREATE VIEW v AS SELECT hex(fts3_tokenizer('simple')) AS h;"
                         "CREATE VIRTUAL TABLE f USING fts4(a);"
                         "CREATE TABLE d(a, b DEFAULT (fts3_tokenizer('simple')))")
    p = sql(path, "--into", evil, "INSERT INTO out.t VALUES(1)", "SELECT count(*) AS n FROM out.said",
            form="json")
    check("sql_triggers_do_not_run", p.stdout == '{"n":0}\n', said(p))
    for name, query in (("view", "SELECT * FROM out.v"), ("table", "SELECT * FROM out.f"),
                        ("default", "INSERT INTO out.d(a) VALUES(1)")):
        p = sql(path, "--into", evil, query)
        check(f"sql_does_not_trust_a_{name}_of_a_database", p.returncode == 1 and not p.stdout and
              any(t in p.stderr for t in ("unsafe use", "no such function", "no such module",
                                          "unknown function")), said(p))


def plant_journal(db, victim):
    """A journal that SQLite plays back, and that names a file to delete when that is done."""
    magic, name = bytes.fromhex("d9d505f920a163d7"), victim.encode()
    head = magic + struct.pack(">IIIII", 0, 1, os.path.getsize(db) // 4096, 512, 4096)
    tail = struct.pack(">I", 0x40000000 // 4096 + 1) + name
    tail += struct.pack(">II", len(name), sum(name)) + magic
    with open(db + "-journal", "wb") as f:
        f.write(head.ljust(512, b"\0") + tail)


def touches_no_other_file(path, base):
    db, victim = os.path.join(base, "beside.db"), os.path.join(base, "victim")
    write(base, "victim", b"precious")
    with contextlib.closing(sqlite3.connect(db)) as made:
        made.executescript("PRAGMA page_size = 4096; CREATE TABLE t(a)")
    plant_journal(db, victim)
    p = sql(path, "--into", db, "SELECT 1")
    check("sql_deletes_no_file_that_a_journal_names", os.path.exists(victim) and
          p.returncode == 1 and db in p.stderr, said(p))
    # A journal of its own, of a writer that was killed, is played back.
    with contextlib.suppress(FileNotFoundError):
        os.unlink(db + "-journal")
    writer = ("import os, sqlite3, sys; db = sqlite3.connect(sys.argv[1], isolation_level=None); "
              "db.execute('PRAGMA cache_size = 1'); db.execute('BEGIN'); "
              "db.executemany('INSERT INTO t VALUES(?)', [('x' * 1000,)] * 1000); os._exit(0)")
    subprocess.run([sys.executable, "-c", writer, db], timeout=60, check=True)
    check("sql_has_a_hot_journal", os.path.exists(db + "-journal"))
    p = sql(path, "--into", db, "SELECT count(*) AS n FROM out.t", form="json")
    check("sql_rolls_a_dead_writer_back", p.stdout == '{"n":0}\n', said(p))
    # A name that would be a URI is a file.
    p = sql(path, "--into", "file:uri.db?mode=memory", "CREATE TABLE out.t(a)", cwd=base)
    check("sql_into_is_a_path", p.returncode == 0 and
          os.path.exists(os.path.join(base, "file:uri.db?mode=memory")), said(p))
    with contextlib.closing(sqlite3.connect(db)) as made:
        made.executescript("PRAGMA journal_mode = wal; INSERT INTO t VALUES(1)")
    p = sql(path, "--into", db, "INSERT INTO out.t VALUES(2)", "SELECT count(*) AS n FROM out.t",
            form="json")
    check("sql_writes_to_a_database_with_a_log", p.stdout == '{"n":2}\n', said(p))


def ends_by_itself(path, base):
    def stopped(name, *arguments, text):
        p = sql(path, *arguments)
        check(f"sql_ends {name}", p.returncode == 1 and not p.stdout and text in p.stderr, said(p))

    stopped("without rows", "--max-time", "300ms", ENDLESS + "SELECT max(i) FROM n",
            text="stopped after 300.000 ms of CPU time.\ntacho sql: Allow more with --max-time")
    stopped("in one call", "--max-time", "1ms",
            "SELECT instr(hex(zeroblob(15000000)) || '1', hex(zeroblob(7000000)) || '2')",
            text="did not stop; tacho ends. Allow more time with --max-time")
    stopped("large tables", "--max-memory", "20M", "CREATE TABLE t AS " + ENDLESS + "SELECT i FROM n",
            text="needs more memory than the 20.0 MiB")
    stopped("large values", "SELECT length(zeroblob(100000000))", text="too big")
    stopped("long queries", "SELECT 1" + " + 1" * 600, text="too large")
    p = sql(path, "--max-time", "100h", "--max-memory", "100G", "SELECT 1 AS x", form="json")
    check("sql_has_other_limits_if_asked_to", p.stdout == '{"x":1}\n', said(p))
    for size in ("lots", "0"):
        p = sql(path, "--max-memory", size, "SELECT 1")
        check("sql_refuses_a_size_that_is_none", p.returncode == 2 and "--max-memory" in p.stderr,
              said(p))
    # Many large rows are not all kept for the widths of their columns.
    p = subprocess.run(f"ulimit -v 400000; '{BIN}' sql '{path}' \"{ENDLESS} SELECT "
                       "hex(zeroblob(5000000)) FROM n LIMIT 40\" | wc -c", shell=True,
                       capture_output=True, text=True, timeout=120)
    check("sql_does_not_keep_large_rows", int(p.stdout) > 4 * 10**8, said(p))


def strange(base):
    path = write(base, "full.tacho", full_recording().trace())
    big = BIG - 2**64
    got = rows(path, f"SELECT task, printf('%llx', task) AS hex FROM polls WHERE task = {big}")
    check("sql_finds_ids_above_2_63", [r["hex"] for r in got] == [f"{BIG:x}"], got)
    got = rows(path, f"SELECT hex(1), task FROM polls WHERE task = 0x{BIG:x}")
    check("sql_finds_ids_in_hexadecimal", len(got) == 1, got)
    check("sql_negative_bounds", one(path, "SELECT count(*) FROM polls WHERE task < 0") == [1] and
          one(path, "SELECT count(*) FROM polls WHERE task > 0") ==
          one(path, "SELECT count(*) FROM polls WHERE +task > 0"))
    for bound in ("-1", "-1e30", "1e30", "98.5", "99.0", "'99'", "NULL", "x'00'", "99"):
        for op in ("=", "<", "<=", ">", ">=", "IS"):
            a = one(path, f"SELECT count(*) FROM polls WHERE task {op} {bound}")
            b = one(path, f"SELECT count(*) FROM polls WHERE +task {op} CAST({bound} AS INTEGER)"
                    if bound == "'99'" else
                    f"SELECT count(*) FROM polls WHERE +task {op} {bound}")
            if a != b:
                check(f"sql_bound_{op}_{bound}", False, (a, b))
    r = Recording()
    kind = r.define(cli_trace.KIND, name_payload(b"k", b"k.c", 1))
    tasks = [5, 7, 99, BIG, BIG + 1]  # in order only if numbers had no sign
    for i, task in enumerate(tasks):
        r.record(0x41, kind, [task], at=1000 * i)
        r.record(0x03, 1, at=1000 * i + 5)
    mixed = write(base, "mixed.tacho", r.trace())
    got = [one(mixed, f"SELECT begin_ns FROM polls WHERE task = 0x{t:x}") for t in tasks]
    check("sql_finds_large_ids_among_small_ones",
          got == [[cli_trace.T0 + 1000 * i] for i in range(len(tasks))], got)
    names = [r["kind"] for r in rows(path, "SELECT kind FROM polls WHERE kind NOTNULL")]
    hostile = [n for n in names if "red" in n]
    check("sql_hostile_names_are_escaped", hostile and "\x1b" not in hostile[0] and
          "\\xff" in hostile[0] and "\\x1b" in hostile[0], names)
    raw = sql(path, "SELECT * FROM polls", form="csv").stdout
    check("sql_csv_of_hostile_names_is_text", "\x1b" not in raw and "\x07" not in raw, raw)
    check("sql_values_keep_their_types",
          [r["value"] for r in rows(path, "SELECT value FROM counters WHERE depth = 0 ORDER BY ns")]
          == [-5, 0.5])
    r = Recording()
    span = r.define(cli_trace.SPAN, name_payload(b"request", b"r.c", 1))
    r.record(0x82, span, [900, 800], at=0)
    r.variable(0xC2, 0, 0, [900, 0x0123456789ABCDEF, 0xFEDCBA9876543210], at=10)
    r.record(0x49, span, [900], at=20)
    got = rows(write(base, "span.tacho", r.trace()),
               "SELECT trace_id FROM spans WHERE trace_id NOTNULL")
    check("sql_trace_id", got == [{"trace_id": "0123456789abcdeffedcba9876543210"}], got)
    got = rows(path, "SELECT name, fd, fd_kind, errno, path FROM calls ORDER BY begin_ns")
    check("sql_calls_say_what_is_absent", {"name": "fsync", "fd": None, "fd_kind": None,
                                           "errno": None, "path": None} in got and
          {"name": "fsync", "fd": 9, "fd_kind": "file", "errno": 5, "path": "/var/lib/demo/log"}
          in got, got)
    got = rows(path, "SELECT text, cut FROM logs")
    check("sql_logs", got == [{"text": "hello\\x0a\\x1b[2J w\u00f6rld", "cut": 0}], got)
    check("sql_losses", one(path, "SELECT count FROM losses ORDER BY rowid LIMIT 1") == [12])
    check("sql_sched_is_null_where_not_asked",
          one(path, "SELECT count(delay_ns) < count(*) FROM polls") == [1])

    data = bytearray(full_recording().trace())
    data[-300] ^= 0x55
    broken = write(base, "broken.tacho", bytes(data))
    p = sql(broken, "SELECT name FROM problems", "SELECT name, text FROM problems", form="json")
    check("sql_damage_is_a_row", p.returncode == 0 and p.stdout.count('"name":"') >= 2 and
          p.stderr, said(p))
    cut = write(base, "cut.tacho", full_recording().trace()[:-200])
    p = sql(cut, "SELECT count(*) FROM problems", form="csv")
    check("sql_cut_file_opens", p.returncode == 0 and p.stdout.split()[1] != "0", said(p))
    none = Recording()
    p = sql(write(base, "none.tacho", none.trace()), *(f"SELECT * FROM {t}" for t in
                                                      ("polls", "wakes", "samples", "frames")))
    check("sql_trace_without_events", p.returncode == 0, said(p))


def self_join(base):
    """Two cursors in one table that need different columns, one after the other."""
    r = Recording()
    kind = r.define(cli_trace.KIND, name_payload(b"k", b"k.c", 1))
    for i in range(2500):
        r.record(0x41, kind, [i % 7 + 1], at=i * 1000)
        r.record(0x03, 1, at=i * 1000 + i % 13)
    path = write(base, "many.tacho", r.trace())
    events = cat(path)
    n = sum(e["type"] == "poll-begin" for e in events)
    check("sql_many_rows", one(path, "SELECT count(*) FROM polls") == [n] and n == 2500, n)
    got = one(path, "SELECT count(*), sum(b.depth), max(b.end_ns - a.begin_ns) FROM polls a JOIN "
                    "polls b ON b.begin_ns = a.begin_ns AND b.task = a.task AND b.result NOTNULL")
    check("sql_two_cursors_in_one_table", got[0] == n and got[1] == 0 and got[2] == 12, got)
    got = one(path, "SELECT sum(x) FROM (SELECT (SELECT count(*) FROM polls b WHERE b.task = "
                    "a.task AND b.begin_ns < a.begin_ns + 7001 AND b.begin_ns >= a.begin_ns) AS x "
                    "FROM polls a)")
    check("sql_ranges_and_ids_together", got[0] == 2 * n - 7, (got, n))


def folders(base, path):
    import shutil
    both = os.path.join(base, "folder")
    os.mkdir(both)
    shutil.copy(path, os.path.join(both, "a.tacho"))
    other = Recording(pid=4194200, comm=b"other")
    kind = other.define(cli_trace.KIND, name_payload(b"far", b"f.c", 1))
    other.record(0x41, kind, [5], at=100)
    other.record(0x03, 1, at=200)
    write(both, "b.tacho", other.trace())
    got = {r["comm"]: r["n"] for r in rows(both, "SELECT comm, count(p.rowid) AS n FROM processes "
                                                 "LEFT JOIN polls p USING (process) GROUP BY 1")}
    check("sql_folder_is_one_trace", got.get("other") == 1 and
          got.get("tasks") == one(path, "SELECT count(*) FROM polls")[0], got)


def main():
    with folder() as base:
        path = os.path.join(base, "demo.tacho")
        p = record_tasks(path)
        check("sql_use_has_a_recording", p.returncode == 0, said(p))
        forms(path)
        schema(path)
        prompt(path)
        errors(path, base)
        reads_only(path, base)
        uses_only_what_is_listed(path, base)
        touches_no_other_file(path, base)
        ends_by_itself(path, base)
        strange(base)
        self_join(base)
        folders(base, path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
