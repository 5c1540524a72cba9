#!/usr/bin/env python3
"""docs/migration.md: the commands, options, calls and rules that it names exist, its queries run, and
its links lead somewhere. What it says of others cannot be checked here."""
import glob
import os
import re
import shlex
import subprocess
import sys

from libdocs import SOURCE, inline, links, unknown
from librun import BIN, check, failures, folder, said
from libsql import record_tasks, sql


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def calls(text):
    """Of calls of tacho.h and the crates, those that are not there."""
    header = read(os.path.join(SOURCE, "include/tacho.h"))
    missing = [name for name in re.findall(r"`(tacho_[a-z_]+|TACHO_[A-Z_]+)`", text)
               if not re.search(rf"\b{name}\b", header)]
    for crate, path in re.findall(r"\b(tacho|tacho_tokio)::(\w+(?:::\w+)*)", text):
        # All of tacho is in tacho-tokio as well.
        sources = "".join(read(file) for name in {"tacho", crate.replace("_", "-")}
                          for file in glob.glob(os.path.join(SOURCE, "crates", name, "src/*.rs")))
        if not all(re.search(rf"\b(fn|struct|enum|trait|macro_rules!) {word}\b|"
                             rf"\bpub use [^;]*\b{word}\b", sources) for word in path.split("::")):
            missing.append(f"{crate}::{path}")
    return missing


def rules(text):
    """(rules that are named, those that there are not)"""
    told = subprocess.run([BIN, "report", "--rules"], capture_output=True, text=True).stdout
    table = text.partition("| red flag |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`([a-z]+-[a-z-]+)`", table) + re.findall(r"rule `([a-z-]+)`", text))
    return named, [name for name in named if not re.search(rf"^  {name} ", told, re.M)]


def main():
    text = read(os.path.join(SOURCE, "docs/migration.md"))
    commands = inline(text)
    wrong = [why for why in map(unknown, commands) if why]
    check("migration_names_commands_that_exist", len(commands) > 40 and not wrong, wrong)
    check("migration_links_lead_somewhere", not links(text, "docs"), links(text, "docs"))
    check("migration_names_calls_that_exist", not calls(text), calls(text))
    check("migration_notices_calls_that_do_not_exist",
          calls("`tacho_no` tacho::no tacho_tokio::Options::no") ==
          ["tacho_no", "tacho::no", "tacho_tokio::Options::no"], "")
    named, wrong = rules(text)
    check("migration_names_rules_that_exist", len(named) > 10 and not wrong, wrong or named)
    with folder() as base:
        path = os.path.join(base, "tasks.tacho")
        p = record_tasks(path)
        check("migration_records", p.returncode == 0, said(p))
        for command in commands:
            words = shlex.split(command)
            if words[1] == "sql" and len(words) > 3 and "..." not in words[3]:
                p = sql(path, words[3])
                check(f"migration_query {words[3][:50]}", p.returncode == 0 and
                      len(p.stdout.splitlines()) > 1, said(p))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
