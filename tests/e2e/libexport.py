"""What the tests of `tacho export` and `tacho flame` share: recordings, and decoders that are
not tacho's. Standard library only."""
import collections
import os
import shutil
import signal
import subprocess
import time

import librun

BIN = librun.BIN
HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("TACHO_BUILD", "")
PROTOC = shutil.which("protoc")


def tacho(*arguments, **more):
    return subprocess.run([BIN, *arguments], capture_output=True, timeout=120,
                          stdin=subprocess.DEVNULL, **more)


def export(path, form, *options):
    p = tacho("export", path, "--format", form, *options)
    if p.returncode != 0:
        raise RuntimeError(f"tacho export --format {form}: {p.stderr.decode()}")
    return p.stdout


def record_uv(folder):
    """A libuv program that ends by itself; None where there is no libuv."""
    program = os.path.join(BUILD, "tests/e2e/export_uv")
    if not os.path.exists(program):
        return None
    path = os.path.join(folder, "uv.tacho")
    p = librun.run("-o", path, "--", program)
    if p.returncode != 0 or not os.path.exists(path):
        raise RuntimeError("tacho run export_uv: " + librun.said(p))
    return path


def record_tasks(folder, events=4000, seconds=60):
    """The example with its two loops, until it has recorded something of everything."""
    path = os.path.join(folder, "demo.tacho")
    p = librun.start("-o", path, "--", os.path.join(os.environ["TACHO_EXAMPLES"], "tasks"))
    try:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            time.sleep(0.5)
            boxes = [os.path.join(root, name)
                     for root, _, names in os.walk(os.environ["TACHO_BOX_DIR"])
                     for name in names if name.endswith(".box")]
            seen = [librun.events(box) or [] for box in boxes]
            types = {e["type"] for list_ in seen for e in list_}
            if any(len(list_) >= events for list_ in seen) and \
                    {"sample", "span-end", "counter", "wake", "event"} <= types:
                break
    finally:
        p.send_signal(signal.SIGINT)
        librun.finish(p)
    return path


# Protocol buffers as protoc prints them ---------------------------------------------------


class Message(dict):
    """Field: list of values; a message, an int, a float, or text without its quotes."""

    def one(self, name, default=None):
        return self[name][0] if name in self else default

    def all(self, name):
        return self.get(name, [])


def unquote(text):
    """protoc writes bytes and text as C would."""
    out = bytearray()
    i = 1
    while i < len(text) - 1:
        if text[i] != "\\":
            out += text[i].encode()
            i += 1
        elif text[i + 1] in "01234567":
            out.append(int(text[i + 1:i + 4], 8))
            i += 4
        else:
            out.append(ord({"n": "\n", "t": "\t", "r": "\r"}.get(text[i + 1], text[i + 1])))
            i += 2
    return out.decode("utf-8", "surrogateescape")


def value_of(text):
    if text.startswith('"'):
        return unquote(text)
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        return float(text)


def decode(data, proto, message):
    """The message in `data`, by protoc, and the names of fields that it does not know."""
    p = subprocess.run([PROTOC, f"--decode={message}", f"--proto_path={HERE}", proto], input=data,
                       capture_output=True, timeout=120)
    if p.returncode != 0:
        raise RuntimeError("protoc: " + p.stderr.decode())
    root = Message()
    stack = [root]
    strange = set()
    for line in p.stdout.decode().splitlines():
        line = line.strip()
        if line == "}":
            stack.pop()
        elif line.endswith(" {"):
            name = line[:-2]
            inner = Message()
            stack[-1].setdefault(name, []).append(inner)
            stack.append(inner)
        else:
            name, _, text = line.partition(": ")
            stack[-1].setdefault(name, []).append(value_of(text))
        if line != "}" and name.isdigit():
            strange.add(name)
    return root, strange


# What a Perfetto trace says ---------------------------------------------------------------

Slice = collections.namedtuple("Slice", "track name category begin end depth event")


class Perfetto:
    """The packets, put together as the trace processor does it: interned names are those of the
    packets before, events of a track nest by the order of their times."""

    def __init__(self, data):
        self.trace, self.strange = decode(data, "export_perfetto.proto", "perfetto.Trace")
        self.problems = []
        self.tracks, self.samples, self.counters = {}, [], collections.defaultdict(list)
        self.slices, self.instants = [], []
        self.flows, self.flow_ends = {}, {}
        self.tables = collections.defaultdict(dict)
        events = []
        for packet in self.trace.all("packet"):
            self.intern(packet)
            for descriptor in packet.all("track_descriptor"):
                self.tracks[descriptor.one("uuid")] = descriptor
            for sample in packet.all("perf_sample"):
                self.samples.append((packet.one("timestamp"), sample.one("tid"),
                                     self.stack(sample.one("callstack_iid"))))
            for event in packet.all("track_event"):
                name = self.look("event_names", event.one("name_iid"))
                category = self.look("event_categories", event.one("category_iids"))
                for note in event.all("debug_annotations"):
                    note["name"] = [self.look("debug_annotation_names", note.one("name_iid"))]
                stack = self.stack(event.one("callstack_iid"))
                events.append((packet.one("timestamp"), event, name, category, stack))
        events.sort(key=lambda e: e[0])  # stable, as the trace processor's is
        self.nest(events)

    def intern(self, packet):
        if packet.one("sequence_flags", 0) & 1:
            self.tables.clear()
        for data in packet.all("interned_data"):
            for field, entries in data.items():
                for entry in entries:
                    self.tables[field][entry.one("iid")] = entry

    def look(self, field, iid):
        if iid is None:
            return None
        entry = self.tables[field].get(iid)
        if entry is None:
            self.problems.append(f"{field} {iid} is not interned")
            return None
        return entry.one("name", entry.one("str", ""))

    def stack(self, iid):
        """Names of functions, outermost first; "" where there is none."""
        if iid is None:
            return None
        if iid not in self.tables["callstacks"]:
            self.problems.append(f"callstack {iid} is not interned")
            return []
        names = []
        for frame in self.tables["callstacks"][iid].all("frame_ids"):
            entry = self.tables["frames"].get(frame)
            if entry is None or entry.one("mapping_id") not in self.tables["mappings"]:
                self.problems.append(f"frame {frame} or its mapping is not interned")
                continue
            names.append(self.look("function_names", entry.one("function_name_id")) or "")
        return names

    def nest(self, events):
        open_ = collections.defaultdict(list)
        for ns, event, name, category, _ in events:
            track, kind = event.one("track_uuid"), event.one("type")
            if track not in self.tracks:
                self.problems.append(f"track {track} has no descriptor")
            for flow in event.all("flow_ids"):
                self.flows[flow] = (ns, track)
            for flow in event.all("terminating_flow_ids"):
                self.flow_ends[flow] = (ns, track, name)
            if kind == 1:
                open_[track].append((ns, name, category, event))
            elif kind == 2:
                if not open_[track]:
                    self.problems.append(f"a slice ends on {track} that never began")
                    continue
                begin, n, c, e = open_[track].pop()
                self.slices.append(Slice(track, n, c, begin, ns, len(open_[track]), e))
            elif kind == 3:
                self.instants.append((ns, track, name, event))
            elif kind == 4:
                value = event.one("double_counter_value", event.one("counter_value"))
                self.counters[self.tracks[track].one("name")].append((ns, value))
        for track, rest in open_.items():
            if rest:
                self.problems.append(f"{len(rest)} slices of {track} have no end")

    def tid(self, track):
        """Of the thread that a track is, or is a child of."""
        while track in self.tracks:
            thread = self.tracks[track].one("thread")
            if thread:
                return thread.one("tid")
            track = self.tracks[track].one("parent_uuid")
        return None


# What the events say ------------------------------------------------------------------------


def polls_of(events):
    """(tid, name, begin, end) of polls that begin and end in the trace."""
    open_ = collections.defaultdict(list)
    polls = []
    for e in events:
        if e["type"] == "resume" and not e["first"]:
            open_[e["tid"], e["stream"]] = []
        elif e["type"] in ("poll-begin", "poll-switch"):
            stack = open_[e["tid"], e["stream"]]
            if e["type"] == "poll-switch" and stack:
                begin, kind = stack.pop()
                polls.append((e["tid"], kind, begin, e["ns"]))
            stack.append((e["ns"], e["kind"]["name"]))
        elif e["type"] == "poll-end" and open_[e["tid"], e["stream"]]:
            begin, kind = open_[e["tid"], e["stream"]].pop()
            polls.append((e["tid"], kind, begin, e["ns"]))
    return polls


def functions_of(frames):
    """Names of functions of a stack as `tacho cat` has it, but tacho's own, outermost first."""
    names = []
    for frame in frames:
        if librun.is_tachos(frame):
            continue
        names.append(frame.get("function") or "")
        names += [outer.get("function") or "" for outer in frame.get("inlined_into") or []]
    return names[::-1]


def counted_samples(events):
    """Samples, without those of a thread's own timer once it has samples from perf."""
    perf = set()
    for e in events:
        if e["type"] == "kernel-sample":
            perf.add((e["pid"], e["tid"]))
            yield e
        elif e["type"] == "sample" and (e["pid"], e["tid"]) not in perf:
            yield e


def samples_of(events):
    """(ns, tid, cpu_ns, functions) of samples that count."""
    return [(e["ns"], e["tid"], e["cpu_ns"], functions_of(e["at"]["frames"]))
            for e in counted_samples(events)]
