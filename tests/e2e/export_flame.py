#!/usr/bin/env python3
"""tacho flame: the stacks of any part of a trace, and the picture of them."""
import collections
import os
import sys
import tempfile
import xml.etree.ElementTree

import libexport
import librun
from libexport import tacho
from librun import check, skip

SVG = "{http://www.w3.org/2000/svg}"


def stacks(path, *options):
    """{stack: value}, or the message of a failure."""
    p = tacho("flame", path, *options)
    if p.returncode != 0:
        return {}, p.stderr.decode()
    found = collections.Counter()
    for line in p.stdout.decode().splitlines():
        stack, _, value = line.rpartition(" ")
        found[tuple(stack.split(";"))] += int(value)
    return found, p.stderr.decode()


def running(events):
    """For each sample the names of loop and kind, and the task, that were running."""
    open_ = collections.defaultdict(list)
    counted = {id(e) for e in libexport.counted_samples(events)}
    loops = {}
    for e in events:
        if e["type"] == "poll-begin":
            open_[e["tid"]].append((e["kind"], e["task"]))
        elif e["type"] == "poll-end" and open_[e["tid"]]:
            open_[e["tid"]].pop()
        elif e["type"] in ("park", "loop"):
            loops[e["tid"]] = e["loop"]["name"] if e["loop"] else None
        elif id(e) in counted:
            kind, task = open_[e["tid"]][-1] if open_[e["tid"]] else ({}, None)
            yield e, loops.get(e["tid"]), kind, task


def on_cpu(path, events):
    all_, _ = stacks(path)
    samples = list(libexport.counted_samples(events))
    check("all_samples_are_there", sum(all_.values()) == len(samples) > 0, len(samples))
    where = list(running(events))
    kind, _ = stacks(path, "--kind", "on_burn")
    wanted = sum((k.get("code") or {}).get("function") == "on_burn" for _, _, k, _ in where)
    # A sample may hit what runs just before and after the callback.
    apart = {s: n for s, n in kind.items() if "on_burn" not in s}
    check("a_kind_by_its_function", sum(kind.values()) == wanted > 0 and
          sum(apart.values()) <= wanted / 10, (sum(kind.values()), wanted, apart))
    by_name, _ = stacks(path, "--kind", "uv_timer")
    wanted = sum(k.get("name") == "uv_timer" for _, _, k, _ in where)
    check("a_kind_by_its_name", sum(by_name.values()) == wanted > 0, (by_name, wanted))
    loop, _ = stacks(path, "--loop", "uv loop")
    wanted = sum(name == "uv loop" for _, name, _, _ in where)
    check("a_loop_by_its_name", sum(loop.values()) == wanted > 0 and wanted < len(samples),
          (sum(loop.values()), wanted))
    as_told = stacks(path, "--loop", b"uv loop, thread <m>&\"';\x01\xff")[0]
    check("a_loop_by_its_name_and_thread", as_told == loop, (as_told, loop))
    other, _ = stacks(path, "--loop", "uv loop, thread other")
    check("a_loop_of_another_thread", not other, other)
    task = collections.Counter(t for _, _, _, t in where if t).most_common(1)[0]
    of_task, _ = stacks(path, "--task", str(task[0]))
    check("a_task_by_its_number", sum(of_task.values()) == task[1], (of_task, task))
    ns, _ = stacks(path, "--weight", "ns")
    check("weight_in_time", sum(ns.values()) == sum(e["cpu_ns"] for e in samples))
    middle = samples[len(samples) // 2]["rel_ns"] + 1
    halves = [sum(stacks(path, option, f"{at}ns")[0].values())
              for option, at in (("--to", middle - 1), ("--from", middle))]
    wanted = [len(list(libexport.counted_samples([e for e in events if in_half(e["rel_ns"])])))
              for in_half in (lambda ns: ns < middle, lambda ns: ns >= middle)]
    check("a_stretch_of_time", halves == wanted, (halves, wanted))
    nothing = tacho("flame", path, "--kind", "no such kind")
    check("nothing_is_said", nothing.returncode == 1 and b"nothing in the trace" in nothing.stderr,
          nothing)


def off_cpu(path, events):
    found, _ = stacks(path, "--off-cpu")
    wanted = collections.Counter()
    for e in events:
        if e["type"] == "call" and e["call"]["name"] == "usleep":
            frames = (e["at"] or {}).get("frames") or []
            names = libexport.functions_of(frames)
            if "on_sleep" in names:
                wanted[names[-1]] += e["duration_ns"]
    got = collections.Counter()
    for stack, value in found.items():
        if stack[-1] == "[usleep]" and "on_sleep" in stack:
            got[stack[-2]] += value
    check("time_in_blocking_calls_is_that_of_the_calls", wanted and got == wanted, (got, wanted))
    check("waits_for_locks_have_their_stack",
          any(s[-1] == "[lock]" and "hold_lock" in s for s in found), list(found)[:9])
    check("no_sample_counts_off_the_cpu", not any("burn_cpu" in s for s in found))


def switches(folder):
    """Where switches were recorded, a call is not counted again as what it was switched out for."""
    path = os.path.join(folder, "sched.tacho")
    p = librun.run("--sched", "-o", path, "--",
                   os.path.join(libexport.BUILD, "tests/e2e/export_uv"))
    events = librun.events(path) if p.returncode == 0 else []
    if not any(e["type"] == "switch-out" for e in events or []):
        skip("switches", "no switches could be recorded: " + p.stderr.strip()[-200:])
        return
    found, _ = stacks(path, "--off-cpu", "--kind", "on_sleep")
    called = sum(v for s, v in found.items() if s[-1] == "[usleep]")
    rest = sum(v for s, v in found.items() if s[-1] == "[switched out]")
    check("switches_inside_of_a_call_are_the_calls", called and rest < called / 4, found)


def picture(folder, path):
    out = os.path.join(folder, "flame.svg")
    p = tacho("flame", path, "-o", out)
    check("svg_is_written", p.returncode == 0 and os.path.getsize(out) > 1000, p)
    tree = xml.etree.ElementTree.parse(out)
    text = open(out, encoding="utf-8").read()
    check("svg_needs_nothing_else", "href" not in text and "url(" not in text and
          "import" not in text and text.count("http") == 1, "it refers to something")
    total = sum(stacks(path)[0].values())
    frames = {}
    for g in tree.iter(SVG + "g"):
        rect, title = g.find(SVG + "rect"), g.find(SVG + "title").text
        frames.setdefault(title.rpartition(" (")[0], []).append(
            (float(rect.get("x")), float(rect.get("y")), float(rect.get("width")), title))
    check("svg_root_is_everything",
          len(frames["all"]) == 1 and abs(frames["all"][0][2] - 1180) < 0.01 and
          f"({total} samples, 100.00 %)" in frames["all"][0][3], frames["all"])
    self_ = sum(v for s, v in stacks(path)[0].items() if "burn_cpu" in s)
    wide = sum(f[2] for f in frames["burn_cpu"])
    check("svg_width_is_the_share", abs(wide / 1180 - self_ / total) < 0.001,
          (wide / 1180, self_ / total))
    again = tacho("flame", path, "--svg", "-")
    check("svg_of_the_same_trace_is_the_same", again.stdout == open(out, "rb").read())
    return frames, text


def hostile(frames, text):
    """The main thread is called <m>&"';\\x01, which must not become markup or a frame's end."""
    names = [n for n in frames if "<m>" in n]
    check("names_are_escaped", names and all(n == "<m>&\"':\\x01\\xff" for n in names) and
          "<m>" not in text, names or list(frames)[:5])


def main():
    with tempfile.TemporaryDirectory(prefix="tacho-flame-") as folder:
        path = libexport.record_uv(folder)
        if not path:
            skip("flame", "there is no libuv here")
            return 0
        events = librun.events(path)
        on_cpu(path, events)
        off_cpu(path, events)
        frames, text = picture(folder, path)
        hostile(frames, text)
        switches(folder)
    return 1 if librun.failures else 0


if __name__ == "__main__":
    sys.exit(main())
