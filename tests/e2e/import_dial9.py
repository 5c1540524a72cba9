#!/usr/bin/env python3
"""Traces of dial9: counts as dial9's own tools count them, and every command takes them.

    import_dial9.py             compares with tests/golden-import/dial9/counts.json, and with what
                                dial9's toolkit says where cargo and node are there
    import_dial9.py --update    writes what the toolkit says into that file
"""
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from libcheck import BIN, check, said, skip, status

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden-import/dial9"
COUNTS = GOLDEN / "counts.json"
TOOLKIT = "dial9-viewer", "0.5.7"
# What the toolkit counts, and what that is in tacho.
EVENTS = {"polls": "poll-begin", "poll_ends": "poll-end", "parks": "park", "unparks": "unpark",
          "wakes": "wake", "spawns": "spawn", "ends": "task-end", "spans": "async-begin",
          "samples": "sample", "dumps": "task-waits"}
COUNT = """
const [toolkit, file] = process.argv.slice(1);
const parser = require(toolkit + "/trace_parser.js");
const analysis = require(toolkit + "/trace_analysis.js");
parser.parseTrace(require("fs").readFileSync(file)).then((t) => {
  const of = (type) => t.events.filter((e) => e.eventType === type).length;
  const spans = analysis.buildSpanData(t.customEvents, [], t.tidBindings, t.blockInPlaceGaps);
  console.log(JSON.stringify({
    polls: of(0), poll_ends: of(1), parks: of(2), unparks: of(3), wakes: of(9),
    spawns: t.taskSpawnTimes.size, ends: t.taskTerminateTimes.size,
    spans: spans.allSpans.length,
    samples: t.cpuSamples.filter((s) => s.source === 0).length,
    switches: t.cpuSamples.filter((s) => s.source === 1).length,
    dumps: [...t.taskDumps.values()].reduce((n, d) => n + d.length, 0),
    allocations: t.allocEvents.length, frees: t.freeEvents.length,
    own: t.customEvents.filter((e) => e.name === "RequestCompleted").length,
  }));
});
"""


def tacho(*arguments, **options):
    return subprocess.run([BIN, *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL, **options)


def traces():
    return sorted(GOLDEN.glob("*.bin.gz"))


def counts_of_tacho(path):
    p = tacho("info", "--json", path)
    if p.returncode:
        return said(p)
    events = json.loads(p.stdout)["processes"][0]["events"]
    counts = {name: events.get(event, 0) for name, event in EVENTS.items()}
    typed = {"switches": "left its CPU", "allocations": "sampled allocation", "frees": "FreeEvent",
             "own": "RequestCompleted"}
    p = tacho("cat", "--json", "--type", "event", path)
    names = [json.loads(line)["event"]["name"] for line in p.stdout.splitlines()]
    for name, event in typed.items():
        counts[name] = names.count(event)
    return counts


def toolkit():
    """The folder of dial9's scripts in the crate's source, or why there is none."""
    cargo, node = shutil.which("cargo"), shutil.which("node")
    if not cargo or not node:
        return None, f"no {'node' if cargo else 'cargo'}: dial9's own tools cannot be run"
    name, version = TOOLKIT
    p = subprocess.run([cargo, "info", "--quiet", f"{name}@{version}"], capture_output=True,
                       text=True, timeout=300, stdin=subprocess.DEVNULL, cwd="/")
    if p.returncode:
        return None, f"'cargo info', which is of cargo 1.82, cannot fetch {name} {version}"
    home = pathlib.Path(os.environ.get("CARGO_HOME") or pathlib.Path.home() / ".cargo")
    for folder in home.glob(f"registry/src/*/{name}-{version}/skills/dial9-toolkit/scripts"):
        return folder, ""
    return None, f"{name} {version} was not unpacked by cargo"


def counts_of_dial9(folder, path):
    p = subprocess.run(["node", "-e", COUNT, str(folder), str(path)], capture_output=True,
                       text=True, timeout=300, stdin=subprocess.DEVNULL)
    return json.loads(p.stdout) if p.returncode == 0 and p.stdout else said(p)


def compare_with_dial9(update):
    folder, why = toolkit()
    if not folder:
        skip("counts are those of dial9's own tools", why)
        return
    theirs = {path.name: counts_of_dial9(folder, path) for path in traces()}
    if update:
        COUNTS.write_text(json.dumps(theirs, indent=1) + "\n")
    for path in traces():
        ours = counts_of_tacho(path)
        check(f"{path.name}: counts are those of dial9's own tools", ours == theirs[path.name],
              f"tacho {ours}, dial9 {theirs[path.name]}")


def compare_with_golden():
    golden = json.loads(COUNTS.read_text())
    check("every trace has its counts", sorted(golden) == [p.name for p in traces()])
    for path in traces():
        ours = counts_of_tacho(path)
        check(f"{path.name}: counts are what they always were", ours == golden[path.name],
              f"{ours}, not {golden[path.name]}")


def commands(folder):
    """Each takes a file and a folder of segments; what is kept says the same."""
    segments = os.path.join(folder, "segments")
    os.mkdir(segments)
    newest = traces()[-1]
    with open(os.path.join(segments, "trace.0.bin"), "wb") as f:
        f.write(gzip.decompress(newest.read_bytes()))
    kept = os.path.join(folder, "kept.tacho")
    p = tacho("import", newest, "-o", kept)
    check("import keeps it", p.returncode == 0 and os.path.exists(kept), said(p))
    for command in (["report"], ["report", "--json"], ["blame", "--slowest", "2"], ["stats"],
                    ["cat", "--json"], ["sql", "select count(*) from polls"]):
        got = [tacho(*command[:1], path, *command[1:]) for path in (newest, segments, kept)]
        check(f"{' '.join(command)}: file, folder and what was kept say the same",
              got[0].returncode == 0 and len({p.returncode for p in got}) == 1 and
              len({strip(p.stdout, path) for p, path in zip(got, (newest, segments, kept))}) == 1,
              " / ".join(said(p)[:200] for p in got))
    for what in ("perfetto", "pprof"):
        out = os.path.join(folder, what)
        p = tacho("export", segments, "--format", what, "-o", out)
        check(f"export to {what}", p.returncode == 0 and os.path.getsize(out) > 0, said(p))


def strip(text, path):
    return text.replace(str(path), "PATH")


def damaged(folder):
    whole = gzip.decompress(traces()[-1].read_bytes())
    middle = len(whole) // 2
    cases = {"cut": whole[:middle], "cut_gzip": traces()[-1].read_bytes()[:30000],
             "unknown": whole[:middle] + b"\x77" * 100 + whole[middle:]}
    for name, data in cases.items():
        path = os.path.join(folder, name)
        with open(path, "wb") as f:
            f.write(data)
        p = tacho("info", "--json", path)
        reason = json.loads(p.stdout)["processes"][0]["reason"] if p.returncode == 0 else ""
        check(f"{name}: read as far as it is whole, which is said",
              p.returncode == 0 and json.loads(p.stdout)["event_count"] > 100 and name.split("_")[0] in
              reason.replace("unpacked: its gzip ends early", "cut"), said(p)[:500])
    path = os.path.join(folder, "header")
    with open(path, "wb") as f:
        f.write(b"TRC\0\1")
    p = tacho("report", path)
    check("a header alone is refused in one sentence",
          p.returncode == 1 and p.stdout == "" and "without any event" in p.stderr, said(p))
    with open(path, "wb") as f:
        f.write(b"TOKIOTRC" + bytes(100))
    p = tacho("report", path)
    check("a trace of before 0.3 is refused by its version", p.returncode == 1 and p.stdout == ""
          and "dial9 before 0.3" in p.stderr and len(p.stderr.splitlines()) == 1, said(p))


def main():
    compare_with_dial9("--update" in sys.argv)
    compare_with_golden()
    with tempfile.TemporaryDirectory() as folder:
        commands(folder)
        damaged(folder)
    return status()


if __name__ == "__main__":
    sys.exit(main())
