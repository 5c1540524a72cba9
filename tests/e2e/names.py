#!/usr/bin/env python3
"""Names in what is recorded: no frames of tacho's own."""
import gzip
import json
import os
import sys

import libexport
import librun
from libexport import tacho
from librun import check, is_tachos, skip

CASES = os.path.join(os.environ.get("TACHO_BUILD", ""), "tests/cases")


def record(folder, name, *command, options=(), env=None):
    """The trace of a command."""
    path = os.path.join(folder, name + ".tacho")
    p = librun.run(*options, "-o", path, "--", *command, env=env)
    if not os.path.exists(path):
        raise RuntimeError("tacho run " + name + ": " + librun.said(p))
    return path


def frames_of(value):
    """All frames in an event of `tacho cat --json`."""
    if isinstance(value, dict):
        if "module" in value and "offset" in value:
            yield value
        for inner in value.values():
            yield from frames_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from frames_of(inner)


# Frames of tacho --------------------------------------------------------------------------


def own_frames(folder, case):
    """`cat` shows the frames of the hooks; what shows stacks to people does not."""
    program = os.path.join(CASES, "case-" + case)
    if not os.path.exists(program):
        skip(case, "what it needs is not installed")
        return
    path = record(folder, case, program)
    raw = [f for e in librun.events(path) for f in frames_of(e)]
    names = {f.get("function") for f in raw if is_tachos(f)} - \
            {f.get("function") for f in raw if not is_tachos(f)}
    if case.startswith("event"):
        check(case + "_calls_through_tacho", any(n and n.startswith("thunk") for n in names), names)
    shown = b"".join(tacho("flame", path, *o).stdout for o in ((), ("--off-cpu",)))
    stacks = [line.rpartition(" ")[0].split(";") for line in shown.decode().splitlines()]
    bad = [s for s in stacks if any(f in names or f.startswith("[libtacho") for f in s)]
    check(case + "_flame_without_tacho", stacks and not bad, bad[:3] or "no stacks")
    p = tacho("sql", path, "select count(*), sum(module like '%/libtacho%') from frames", "--csv")
    count, own = p.stdout.decode().split()[-1].split(",")
    check(case + "_sql_frames_without_tacho", int(count) > 0 and own == "0", p)
    where = [w for f in json.loads(tacho("report", path, "--json").stdout)["findings"]
             for w in f["where"]]
    check(case + "_report_without_tacho", where and not any(map(is_tachos, where)),
          where)
    for form in ("pprof", "perfetto"):
        data = libexport.export(path, form)
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        check(f"{case}_{form}_without_tacho", b"libtacho-preload" not in data)


def main():
    with librun.folder() as folder:
        for case in ("uv_long_callback", "event_long_callback", "epoll_printf"):
            own_frames(folder, case)
    return 1 if librun.failures else 0


if __name__ == "__main__":
    sys.exit(main())
