#!/usr/bin/env python3
"""tacho export, read by decoders that are not tacho's: protoc with the published field numbers,
and Go's pprof. What they find is compared with the events that `tacho cat` prints."""
import collections
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import libexport
import librun
from libexport import BIN, Perfetto, decode, export, tacho
from librun import check, skip


def first_difference(got, wanted):
    if got == wanted:
        return ""
    has, wants = set(map(str, got)), set(map(str, wanted))
    extra = [x for x in got if str(x) not in wants][:2]
    missing = [x for x in wanted if str(x) not in has][:2]
    return f"{len(got)} for {len(wanted)}; too many: {extra}; missing: {missing}"


# Perfetto -------------------------------------------------------------------------------


def perfetto(name, path, events):
    trace = Perfetto(export(path, "perfetto"))
    check(f"{name}_perfetto_has_published_fields_only", not trace.strange, trace.strange)
    check(f"{name}_perfetto_names_tracks_and_slices_are_whole", not trace.problems,
          trace.problems[:5])
    perfetto_polls(name, trace, events)
    perfetto_samples(name, trace, events)
    perfetto_wakes(name, trace, events)
    loops = {e["loop"]["name"] for e in events if e["type"] == "park"}
    turns = collections.Counter(trace.tracks[s.track].one("name") for s in trace.slices
                                if s.category == "turn")
    check(f"{name}_perfetto_has_a_track_for_each_loop",
          {f"loop {loop}" for loop in loops} >= set(turns) and turns, turns)
    clock = trace.trace.all("packet")[0].one("clock_snapshot")
    check(f"{name}_perfetto_time_is_monotonic_and_wall", clock and
          clock.one("primary_trace_clock") == 3 and
          [c.one("clock_id") for c in clock.all("clocks")] == [3, 1], clock)
    return trace


def perfetto_polls(name, trace, events):
    wanted = sorted(libexport.polls_of(events))
    last = events[-1]["ns"]  # what is open then lasts until the process was last seen alive
    # A kind that is known by its function is called "kind: function".
    got = sorted((trace.tid(s.track), s.name.split(": ")[0], s.begin, s.end)
                 for s in trace.slices if s.category == "poll" and s.end <= last)
    check(f"{name}_perfetto_has_each_poll_where_it_was", wanted and got == wanted,
          first_difference(got, wanted))


def perfetto_samples(name, trace, events):
    wanted = sorted((ns, tid, names) for ns, tid, _, names in libexport.samples_of(events))
    got = sorted((ns, tid, names or []) for ns, tid, names in trace.samples)
    check(f"{name}_perfetto_has_each_sample_with_its_stack", wanted and got == wanted,
          first_difference(got, wanted))


def perfetto_wakes(name, trace, events):
    """An arrow leads from each wake to the poll that was next for its task."""
    woken, wanted = {}, []
    for e in events:
        if e["type"] == "wake":
            woken.setdefault(e["task"], (e["ns"], e["tid"]))
        elif e["type"] in ("poll-begin", "poll-switch") and e["task"] in woken:
            wanted.append(woken.pop(e["task"]) + (e["ns"], e["tid"]))
    polls = {(s.begin, s.track) for s in trace.slices if s.category == "poll"}
    got = []
    for flow, (ns, track, _) in trace.flow_ends.items():
        if (ns, track) in polls:
            begin, source = trace.flows.get(flow, (None, None))
            got.append((begin, trace.tid(source), ns, trace.tid(track)))
    check(f"{name}_perfetto_arrows_lead_from_waker_to_woken",
          sorted(got, key=str) == sorted(wanted, key=str), first_difference(got, wanted))
    lost = [f for f in trace.flow_ends if f not in trace.flows]
    late = [f for f in trace.flow_ends if f in trace.flows and
            trace.flows[f][0] > trace.flow_ends[f][0]]
    check(f"{name}_perfetto_arrows_have_two_ends_in_order", not lost and not late, (lost, late))


def perfetto_demo(trace, events):
    counted = [(e["ns"], e["value"]) for e in events if e["type"] == "counter" and
               e["counter"]["name"] == "served"]
    check("demo_perfetto_has_each_value_of_a_counter",
          counted and sorted(trace.counters["served"]) == sorted(counted),
          first_difference(trace.counters["served"], counted))
    depths = [(e["ns"], e["depth"]) for e in events if e["type"] == "queue-depth"]
    got = trace.counters["queue of front"] + trace.counters["queue of back"]
    check("demo_perfetto_has_each_depth_of_a_queue", depths and sorted(got) == sorted(depths),
          first_difference(got, depths))
    ends = sum(e["type"] == "span-end" for e in events)
    spans = [s for s in trace.slices if s.category == "span"]
    check("demo_perfetto_has_each_span_inside_of_its_poll",
          len(spans) >= ends > 0 and {s.name for s in spans} == {"store"} and
          all(s.depth >= 1 for s in spans), (len(spans), ends))
    notes = [{n.one("name"): n for n in e.all("debug_annotations")}
             for _, _, name, e in trace.instants if name == "request_done"]
    wanted = [e["fields"] for e in events if e["type"] == "event"]
    check("demo_perfetto_has_each_event_with_its_fields",
          sorted(n["id"].one("uint_value") for n in notes) == sorted(f["id"] for f in wanted) and
          all(n["path"].one("string_value") == "/index.html" for n in notes), len(notes))


def perfetto_uv(trace, events):
    turns = sum(s.category == "turn" for s in trace.slices)
    unparks = sum(e["type"] == "unpark" for e in events)
    check("uv_perfetto_has_each_turn", turns == unparks, f"{turns} turns, {unparks} unparks")
    works = [s for s in trace.slices if s.category == "work"]
    begun = sum(e["type"] == "work-begin" for e in events)
    check("uv_perfetto_has_each_work_of_the_pool", len(works) == begun > 0, (len(works), begun))
    submits = {flow for _, _, name, e in trace.instants if name == "submit work"
               for flow in e.all("flow_ids")}
    check("uv_perfetto_arrows_lead_from_submit_to_work",
          all(set(s.event.all("terminating_flow_ids")) <= submits for s in works) and submits)
    calls = sorted((e["ns"] - e["duration_ns"], e["ns"]) for e in events if e["type"] == "call")
    got = sorted((s.begin, s.end) for s in trace.slices if s.category == "call")
    check("uv_perfetto_has_each_blocking_call", calls and got == calls,
          first_difference(got, calls))
    waits = [s for s in trace.slices if s.category == "lock"]
    released = [n for _, _, n, e in trace.instants if e.all("flow_ids") and n in
                ("lock released", "signalled")]
    check("uv_perfetto_has_waits_for_locks_and_who_released_them", waits and released,
          (len(waits), len(released)))


# pprof ----------------------------------------------------------------------------------


def pprof(name, path, events, functions):
    data = export(path, "pprof")
    plain = gzip.decompress(data)
    check(f"{name}_pprof_is_compressed", len(data) < len(plain), (len(data), len(plain)))
    profile, strange = decode(plain, "export_profile.proto", "perftools.profiles.Profile")
    text = profile.all("string_table")
    samples = libexport.samples_of(events)
    check(f"{name}_pprof_has_published_fields_only", not strange, strange)
    values = [s.all("value") for s in profile.all("sample")]
    got = [sum(v[0] for v in values), sum(v[1] for v in values)]
    wanted = [len(samples), sum(s[2] for s in samples)]
    check(f"{name}_pprof_has_all_samples_and_all_time", got == wanted and wanted[0],
          (got, wanted))
    types = [(text[t.one("type")], text[t.one("unit")]) for t in profile.all("sample_type")]
    check(f"{name}_pprof_says_what_its_values_are",
          types == [("samples", "count"), ("cpu", "nanoseconds")], types)
    pprof_stacks(name, profile, text, samples)
    labels = {text[la.one("key")]: text[la.one("str", 0)] or la.one("num", 0)
              for s in profile.all("sample") for la in s.all("label")}
    # The demo's polls are short: none of its few samples need be inside of one.
    least = {"loop", "thread"} if name == "demo" else {"loop", "kind", "task", "thread"}
    check(f"{name}_pprof_has_labels", least <= set(labels), labels)
    go_pprof(name, data, wanted, functions, profile, text)


def pprof_stacks(name, profile, text, samples):
    lines = {f.one("id"): text[f.one("name", 0)] for f in profile.all("function")}
    places = {loc.one("id"): [lines[ln.one("function_id")] for ln in loc.all("line")] or [""]
              for loc in profile.all("location")}
    got = collections.Counter()
    for s in profile.all("sample"):
        names = [n for loc in s.all("location_id") for n in places[loc]]
        got[tuple(names[::-1])] += s.all("value")[0]
    wanted = collections.Counter(tuple(names) for *_, names in samples)
    check(f"{name}_pprof_has_each_stack", got == wanted,
          f"{(got - wanted).most_common(2)} / {(wanted - got).most_common(2)}")


def go_pprof(name, data, wanted, functions, profile, text):
    go = shutil.which("go")
    if not go:
        skip(f"{name}_go_pprof", "there is no go here (package golang-go)")
        return
    # Newer toolchains build pprof when it is first asked for, and keep it in their cache.
    env = dict(os.environ, GOTOOLCHAIN="local")
    p = subprocess.run([go, "tool", "pprof", "-help"], env=env, capture_output=True, text=True,
                       timeout=300)
    if "-raw" not in p.stdout + p.stderr:
        skip(f"{name}_go_pprof", "go has no pprof here: " + " ".join(p.stderr.split())[-200:])
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "profile.pb.gz")
        with open(path, "wb") as f:
            f.write(data)
        env["PPROF_TMPDIR"] = folder

        def run(*options):
            p = subprocess.run([go, "tool", "pprof", "-symbolize=none", *options, path], env=env,
                               capture_output=True, text=True, timeout=120)
            return p.stdout + p.stderr
        top, raw = run("-top", "-sample_index=samples"), run("-raw")
    total = re.search(r"Total samples = (\d+)", top)
    check(f"{name}_go_pprof_reads_all_samples", total and int(total.group(1)) == wanted[0], top)
    check(f"{name}_go_pprof_names_functions", all(f in top for f in functions), top)
    values = re.findall(r"^ +(\d+) +(\d+): [\d ]+$", raw, re.M)
    check(f"{name}_go_pprof_raw_adds_up", [sum(int(v[0]) for v in values),
                                           sum(int(v[1]) for v in values)] == wanted, raw[:400])
    ids = [text[m.one("build_id", 0)] for m in profile.all("mapping")]
    check(f"{name}_go_pprof_has_modules_with_build_ids",
          all(i in raw for i in ids) and any(len(i) == 40 for i in ids), raw[-600:])


# Collapsed stacks and JSON lines ------------------------------------------------------------


def collapsed(name, path, events):
    samples = libexport.samples_of(events)
    for weight, wanted in (("samples", len(samples)), ("ns", sum(s[2] for s in samples))):
        lines = export(path, "collapsed", "--weight", weight).decode().splitlines()
        got = sum(int(line.rpartition(" ")[2]) for line in lines)
        check(f"{name}_collapsed_{weight}_add_up", lines and got == wanted, (got, wanted))
    lines = export(path, "collapsed").decode().splitlines()
    stacks = [line.rpartition(" ")[0] for line in lines]
    check(f"{name}_collapsed_has_each_stack_once", len(set(stacks)) == len(stacks))
    got = collections.Counter()
    for line in lines:
        stack, _, count = line.rpartition(" ")
        # The thread first; what has no name is called after its module.
        got[tuple("" if f.startswith("[") else f.removesuffix("_[k]")
                  for f in stack.split(";")[1:])] += int(count)
    wanted = collections.Counter(tuple(names) for *_, names in samples)
    check(f"{name}_collapsed_has_the_functions", got == wanted,
          f"{(got - wanted).most_common(2)} / {(wanted - got).most_common(2)}")


def jsonl(name, path, events):
    facts = [json.loads(line) for line in export(path, "jsonl").splitlines()]
    count = collections.Counter(f["fact"] for f in facts)
    polls = sorted((f["tid"], f["kind"]["name"], f["from_ns"], f["to_ns"]) for f in facts
                   if f["fact"] == "poll" and f["kind"] and not f["cut"])
    wanted = sorted(libexport.polls_of(events))
    check(f"{name}_jsonl_has_each_poll", polls == wanted, first_difference(polls, wanted))
    types = collections.Counter(e["type"] for e in events)
    types["sample"] += types["kernel-sample"]
    for fact, kind in (("sample", "sample"), ("call", "call"), ("counter", "counter"),
                       ("event", "event"), ("ready", "ready")):
        check(f"{name}_jsonl_has_each_{fact}", count[fact] == types[kind],
              (count[fact], types[kind]))


# ------------------------------------------------------------------------------------------


def bad_input(folder, path):
    out = os.path.join(folder, "kept")
    with open(out, "w", encoding="utf-8") as f:
        f.write("mine")
    p = tacho("export", path, "--format", "pprof", "-o", out)
    check("a_file_that_exists_is_kept",
          p.returncode == 0 and open(out + ".old", encoding="utf-8").read() == "mine", p)
    p = tacho("export", path, "--format", "pprof", "-o", out, "--force")
    check("force_replaces_it", p.returncode == 0 and open(out, "rb").read(2) == b"\x1f\x8b", p)
    for name, arguments in (("a_format_is_needed", []),
                            ("an_unknown_format_is_refused", ["--format", "xml"]),
                            ("weight_needs_collapsed",
                             ["--format", "jsonl", "--weight", "ns"])):
        p = tacho("export", path, *arguments)
        check(name, p.returncode == 2 and b"tacho export: " in p.stderr and not p.stdout, p)
    p = tacho("export", os.path.join(folder, "nothing"), "--format", "jsonl")
    check("a_file_that_is_not_there_is_said", p.returncode == 1 and b"nothing" in p.stderr, p)
    with open("/dev/full", "wb") as full:
        for form in ("perfetto", "pprof", "collapsed", "jsonl"):
            p = subprocess.run([BIN, "export", path, "--format", form], stdout=full,
                               stderr=subprocess.PIPE, timeout=60)
            check(f"a_full_disk_fails_{form}", p.returncode == 1 and b"No space" in p.stderr, p)


def damaged(folder):
    """Whatever is left of a damaged trace is exported; nothing crashes."""
    golden = os.path.join(os.environ["TACHO_SOURCE"], "tests/golden")
    worst = []
    for name in sorted(os.listdir(golden)):
        if not name.endswith(".tacho"):
            continue
        data = open(os.path.join(golden, name), "rb").read()
        for i in range(3):
            broken = bytearray(data[:len(data) * (3 - i) // 3] if i else data)
            for at in range(97 * i, len(broken), 1009) if i else ():
                broken[at] ^= 0x41
            path = os.path.join(folder, "broken.tacho")
            with open(path, "wb") as f:
                f.write(broken)
            for form in ("perfetto", "pprof", "collapsed", "jsonl"):
                p = tacho("export", path, "--format", form)
                if p.returncode not in (0, 1) or (p.returncode == 1 and not p.stderr):
                    worst.append((name, i, form, p.returncode, p.stderr[-300:]))
                elif p.returncode == 0 and form == "perfetto" and libexport.PROTOC and i < 2:
                    trace = Perfetto(p.stdout)
                    if trace.problems or trace.strange:
                        worst.append((name, i, form, trace.problems[:2], trace.strange))
                elif p.returncode == 0 and form == "jsonl":
                    for line in p.stdout.splitlines():
                        json.loads(line)
    check("damaged_traces_are_exported_as_far_as_they_go", not worst, worst[:3])


def one(name, path, functions):
    events = librun.events(path)
    collapsed(name, path, events)
    jsonl(name, path, events)
    if not libexport.PROTOC:
        skip(f"{name}_protoc", "there is no protoc here (package protobuf-compiler)")
        return None, events
    trace = perfetto(name, path, events)
    pprof(name, path, events, functions)
    return trace, events


def main():
    with tempfile.TemporaryDirectory(prefix="tacho-export-") as folder:
        demo = libexport.record_tasks(folder)
        trace, events = one("demo", demo, ["loop_main"])
        if trace:
            perfetto_demo(trace, events)
        uv = libexport.record_uv(folder)
        if uv:
            trace, events = one("uv", uv, ["burn_cpu"])
            if trace:
                perfetto_uv(trace, events)
        else:
            skip("uv", "there is no libuv here")
        bad_input(folder, demo)
        damaged(folder)
    return 1 if librun.failures else 0


if __name__ == "__main__":
    sys.exit(main())
