"""The trace file: its blocks, its clock, and the events that they make, from docs/format.md alone
(sections 5 to 7, 10, 11 and 13). Part of format_reader.py."""
import bisect
import struct

from libcolumns import read_events
from librecords import Bad, Bytes, CALL_OPEN, Definition, ID_MAX, LOCK_OWNER, M64, POLL_BEGIN, \
    POLL_HIST, Record, SCHED_INTERVAL, Stretch, crc32c, pad, read_chunk, text, zstd

SIZE_MAX = 16 << 20
META, CLOCK, THREADS, DEFINITIONS, EVENTS, CHUNK, HISTOGRAMS, LOSSES, TRIGGERS, CRASHES, \
    SOURCES, INDEX, SYMBOLS, _, GAPS, ABSENT, UNDERWAY = range(1, 18)

# 10. Time ------------------------------------------------------------------------------


def longest_run(anchors):
    """Of anchors sorted by ticks the most that grow in both."""
    if all(a[0] < b[0] and a[1] < b[1] for a, b in zip(anchors, anchors[1:])):
        return anchors
    best = []  # (length, place before) of the best run that ends with each
    for i, a in enumerate(anchors):
        best.append(max([(best[k][0] + 1, k) for k, b in enumerate(anchors[:i])
                         if b[0] < a[0] and b[1] < a[1]], default=(1, None)))
    at = max(range(len(anchors)), key=lambda i: best[i][0])
    run = []
    while at is not None:
        run.append(anchors[at])
        at = best[at][1]
    return run[::-1]


class Clock:
    """From ticks to ns. Anchors: (ticks, mono_ns, True if it is a chunk's)."""

    def __init__(self, anchors):
        anchors = longest_run(sorted(anchors))
        kept = []
        for a in anchors:
            close = kept and a[1] - kept[-1][1] < 10_000_000
            if a[2] and close:
                continue
            if close and not a[2] and kept[-1][2] and len(kept) > 1:
                kept.pop()
            kept.append(a)
        if len(kept) == 1 and len(anchors) > 1:
            kept.append(anchors[-1])
        self.anchors = kept
        self.ticks = [a[0] for a in kept]
        self.up = self.down = 1
        if len(kept) > 1:
            self.up, self.down = kept[-1][1] - kept[0][1], kept[-1][0] - kept[0][0]

    def span(self, ticks):
        return min(ticks * self.up // self.down, M64)

    def ns(self, ticks):
        if not self.anchors:
            return ticks
        at = bisect.bisect_right(self.ticks, ticks) - 1
        if at < 0:
            return max(self.anchors[0][1] - self.span(self.ticks[0] - ticks), 0)
        base = self.anchors[at]
        if at + 1 == len(self.anchors):
            return min(base[1] + self.span(ticks - base[0]), M64)
        after = self.anchors[at + 1]
        return base[1] + (ticks - base[0]) * (after[1] - base[1]) // (after[0] - base[0])


# 6., 7., 13. The file ------------------------------------------------------------------


class Block:
    def __init__(self, offset, kind, encoding, stored, raw, number, payload_crc):
        self.offset, self.type, self.encoding, self.number = offset, kind, encoding, number
        self.stored, self.raw, self.payload_crc = stored, raw, payload_crc
        self.size = 32 + stored + pad(stored)


class Trace:
    """One trace file. problems: (offset, size, what)."""

    def __init__(self, data):
        self.data, self.problems, self.tag = bytes(data), [], None
        self.meta, self.anchors, self.threads, self.hists, self.underway = {}, [], [], [], []
        self.definitions, self.stretches = {}, []
        self.losses, self.triggers, self.crashes, self.sources = [], [], [], []
        self.unknown_blocks, self.gaps, self.absent = [], [], {}
        self.symbols = {}
        begin = self.read_header()
        self.blocks = self.walk(begin)
        for block in self.blocks:
            self.read_block(block)
        self.settle()

    def problem(self, offset, size, what):
        self.problems.append((offset, size, what))

    def read_header(self):
        d = self.data
        good = len(d) >= 64 and d[:8] == b'TACHOTRC' and \
            crc32c(d[:60]) == struct.unpack_from('<I', d, 60)[0]
        if not good:
            for at in range(0, len(d) - 31, 8):
                if self.header_at(at):
                    self.tag = struct.unpack_from('<I', d, at + 20)[0]
                    self.problem(0, min(at, 64), 'the file header is damaged')
                    return min(at, 64)
            raise Bad('not a trace file')
        self.major, self.minor, size, self.tag = struct.unpack_from('<HHII', d, 8)
        if self.major > 1:
            raise Bad(f'version {self.major} of the format')
        if size < 64 or size % 8 or size > 65536:
            raise Bad('a header of no possible size')
        return size

    def header_at(self, at):
        head = self.data[at:at + 32]
        if len(head) < 32 or head[:4] != b'TBLK':
            return None
        _, kind, encoding, _, stored, raw, number, tag, payload_crc, crc = struct.unpack(
            '<IHBBIIIIII', head)
        if (self.tag is not None and tag != self.tag) or stored > SIZE_MAX or raw > SIZE_MAX or \
                crc32c(head[:28]) != crc:
            return None
        return Block(at, kind, encoding, stored, raw, number, payload_crc)

    def end_at(self, at):
        end = self.data[at:at + 32]
        if len(end) < 32 or end[24:] != b'TACHOEND' or \
                crc32c(end[:20] + end[24:]) != struct.unpack_from('<I', end, 20)[0]:
            return None
        return struct.unpack('<QQI', end[:20])

    def walk(self, at):
        blocks, good, expected = [], at, 0
        while True:
            while at + 32 <= len(self.data) and not self.header_at(at) and not self.end_at(at):
                at += 8
            end, block = self.end_at(at), self.header_at(at)
            if not end and (not block or at + block.size > len(self.data)):
                self.problem(good, len(self.data) - good, 'cut: there is no end')
                return blocks
            if at > good:
                self.problem(good, at - good, 'no block can be made out here')
            if end:
                if end[2] > expected:
                    self.problem(at, 0, f'{end[2] - expected} blocks are missing before the end')
                if at + 32 < len(self.data):
                    self.problem(at + 32, len(self.data) - at - 32, 'bytes behind the end')
                self.index_offset = end[0]
                return blocks
            if block.number < expected:
                self.problem(at, block.size, 'a block is there twice')
            else:
                if at == good and block.number > expected:
                    self.problem(at, 0, 'blocks are missing')
                expected = block.number + 1
                blocks.append(block)
            at = good = at + block.size

    def payload(self, block):
        start = block.offset + 32
        stored = self.data[start:start + block.stored]
        padded = self.data[start:block.offset + block.size]
        if crc32c(padded) != block.payload_crc:
            raise Bad('the payload fails its checksum')
        if block.encoding == 0 and block.raw == block.stored:
            return stored
        if block.encoding == 1:
            return zstd(stored, block.raw)
        raise Bad('an encoding that cannot be')

    def read_block(self, block):
        readers = {META: self.read_meta, CLOCK: self.read_clock, DEFINITIONS: self.read_definitions,
                   EVENTS: self.read_stretch, CHUNK: self.read_stretch, THREADS: self.read_threads,
                   UNDERWAY: self.read_underway, HISTOGRAMS: self.read_hists, LOSSES: self.read_losses,
                   TRIGGERS: self.read_triggers, CRASHES: self.read_crashes,
                   SOURCES: self.read_sources, INDEX: self.read_index,
                   SYMBOLS: self.read_symbols, GAPS: self.read_gaps, ABSENT: self.read_absent}
        try:
            payload = self.payload(block)
            if block.type in readers:
                readers[block.type](block, payload)
            else:
                self.unknown_blocks.append(block)
        except Bad as why:
            self.problem(block.offset, block.size, str(why))

    def read_meta(self, _block, payload):
        b = Bytes(payload)
        while b.left() >= 8:
            key, _, size = b.get('HHI')
            self.meta[key] = b.take(size)
            b.take(min(pad(size), b.left()))

    def number(self, key, default=None):
        return int.from_bytes(self.meta[key][:8], 'little') if key in self.meta else default

    def array(self, payload, size):
        """The entries, each `size` bytes."""
        b = Bytes(payload)
        entry, count = b.get('II')
        if entry == 0 or count * entry > b.left():
            raise Bad('an array that does not fit its block')
        return [b.take(entry)[:size].ljust(size, b'\0') for _ in range(count)]

    def read_clock(self, _block, payload):
        self.anchors += [struct.unpack('<QQQ', e) for e in self.array(payload, 24)]

    def read_threads(self, _block, payload):
        for e in self.array(payload, 64):
            keys = 'state number tid chunk start pending_task pending_ticks pending_kind drops name'
            self.threads.append(dict(zip(keys.split(), struct.unpack('<IIIIQQQII16s', e))))

    def read_underway(self, _block, payload):
        for e in self.array(payload, 64):
            keys = 'call_since call_at call_on call wait_owner wait_since wait_lock'
            self.underway.append(dict(zip(keys.split(), struct.unpack_from('<QQQIIQQ', e))))

    def read_hists(self, _block, payload):
        for e in self.array(payload, 256):
            keys = 'kind loop thread reserved since total'
            hist = dict(zip(keys.split(), struct.unpack_from('<IIIIQQ', e)))
            hist['count'] = struct.unpack_from('<40I', e, 32)
            self.hists.append(hist)

    def read_losses(self, _block, payload):
        self.losses += [int.from_bytes(e, 'little') for e in self.array(payload, 8)]

    def read_sources(self, _block, payload):
        self.sources += [struct.unpack('<HHi', e)[::2] for e in self.array(payload, 8)]

    def read_triggers(self, _block, payload):
        for e in self.array(payload, 256):
            number, tid, ticks, size, flags = struct.unpack_from('<IIQII', e)
            if number:
                self.triggers.append({'number': number, 'tid': tid, 'ticks': ticks,
                                      'sentinel': flags >> 8 & 0xFF,
                                      'value': struct.unpack_from('<Q', e, 224)[0],
                                      'reason': text(e[24:24 + min(size, 200)])})

    def read_crashes(self, _block, payload):
        for e in self.array(payload, 1104):
            keys = 'state tid signal code address ticks thread_name regs frames arch flags'
            c = dict(zip(keys.split(), struct.unpack_from('<IIiiQQ16sIIII', e)))
            if 1 <= c['state'] <= 3:
                regs = min(c['regs'], 34) if c['state'] >= 2 else 0
                frames = min(c['frames'], 64) if c['state'] >= 3 else 0
                c['reg'] = struct.unpack_from(f'<{regs}Q', e, 64)
                c['frame'] = struct.unpack_from(f'<{frames}Q', e, 336)
                c['failed'] = bool(c['flags'] & 1) or c['state'] < 3
                whole = struct.unpack_from('<I', payload)[0] >= 1104
                c['said'] = e[848:1104].split(b'\0')[0] if whole else b''
                c['survived'] = bool(c['flags'] & 2)
                self.crashes.append(c)

    def read_gaps(self, block, payload):
        for e in self.array(payload, 32):
            gap = struct.unpack('<QQQIi', e)  # from, to, records, reason, error
            if gap[1] < gap[0]:
                self.problem(block.offset, 0, 'a gap ends before it begins')
            else:
                self.gaps.append(gap)

    def read_absent(self, _block, payload):
        for e in self.array(payload, 512):
            # pid, parent_pid, reason, error, seen_ns, comm, exe, said
            entry = struct.unpack('<IIIiQ16s216s256s', e)
            texts = [text(t.split(b'\0')[0]) for t in entry[5:]]
            self.absent.setdefault((entry[4], entry[0]), (*entry[:5], *texts))

    def read_definitions(self, block, payload):
        b = Bytes(payload)
        while b.left() >= 8:
            number, size, kind, flags = b.get('IHBB')
            data = b.take(size)
            b.take(min(pad(size), b.left()))
            if kind > 10 or number in self.definitions:
                continue
            try:
                if not 1 <= number <= ID_MAX or kind == 0 or size > 1024:
                    raise Bad('a definition that cannot be')
                self.definitions[number] = Definition(number, kind, flags, data)
            except Bad as why:
                self.problem(block.offset, 0, f'definition {number}: {why}')

    def read_stretch(self, block, payload):
        s = read_events(payload) if block.type == EVENTS else read_chunk(payload)
        s.block = block
        if not s.whole:
            self.problem(block.offset, block.size, 'a chunk ends in what is no record')
        self.stretches.append(s)

    def read_symbols(self, _block, payload):
        size, entry_size, entries, frame_size, frames, texts = Bytes(payload).get('IIIIII')
        if size < 24 or entry_size < 24 or frame_size < 12 or texts < 1:
            raise Bad('a header of SYMBOLS that cannot be')
        b = Bytes(payload)
        b.take(size)
        entries = [struct.unpack('<QIIII', b.take(entry_size)[:24]) for _ in range(entries)]
        frames = [struct.unpack('<III', b.take(frame_size)[:12]) for _ in range(frames)]
        all_ = b.take(texts)
        frames = [(text(all_[f:]), text(all_[g:]), line) for f, g, line in frames]
        for address, module, first, count, _ in entries:
            if first + count > len(frames):
                raise Bad('frames that are not there')
            self.symbols[address, module] = frames[first:first + count]

    def read_index(self, block, payload):
        entries = [struct.unpack('<QIHHIIQQ', e) for e in self.array(payload, 40)]
        known = {b.offset: b for b in self.blocks}
        for offset, size, kind, *_ in entries:
            if offset not in known or (known[offset].size, known[offset].type) != (size, kind):
                self.problem(block.offset, block.size, 'the index does not fit the file')
                return
        self.index = entries

    # 11. From records to events --------------------------------------------------------

    def settle(self):
        chunks = [s for s in self.stretches if s.block.type == CHUNK]
        self.clock = Clock([(t, m, False) for t, m, _ in self.anchors] +
                           [(*s.anchor, True) for s in chunks])
        self.tails = self.make_tails(chunks)
        for s in chunks:
            self.to_ns(s)
        self.put_tails(chunks)
        self.walls = sorted([(m, r) for _, m, r in self.anchors if m and r] +
                            [(self.number(m), self.number(r)) for m, r in ((19, 20), (21, 22))
                             if self.number(m) and self.number(r)])

    def to_ns(self, s):
        ns = self.clock.ns
        s.begin = ns(s.begin)
        s.parked = None if s.parked is None else ns(s.parked)
        for item in s.open:
            item[3] = ns(item[3]) if item[3] else 0
        for r in s.records:
            r.time = ns(r.time)
            if r.type == POLL_HIST:
                r.words[2], r.words[3] = ns(r.words[2]), self.clock.span(r.words[3])
            if r.type == SCHED_INTERVAL:
                r.words[2] = ns(r.words[2]) if r.words[2] else 0

    def make_tails(self, chunks):
        """(thread, 0 histogram, 1 poll or 2 what is under way, ticks, record) of what is in no chunk."""
        tails = []
        seen = {(s.thread, r.arg, r.words[0] >> 16, r.words[2]) for s in chunks
                for r in s.records if r.type == POLL_HIST}
        for slot, h in enumerate(self.hists):
            pairs = [b << 48 | n for b, n in enumerate(h['count']) if n]
            if not 1 <= h['kind'] <= ID_MAX or not pairs or \
                    (h['thread'], h['kind'], h['loop'], h['since']) in seen:
                continue
            words = [4 + len(pairs) | h['loop'] << 16, slot, self.clock.ns(h['since']),
                     self.clock.span(h['total'])] + pairs
            tails.append((h['thread'], 0, h['since'], Record(0, POLL_HIST, h['kind'], words)))
        for t in self.threads:
            if t['state'] != 1 or not t['pending_kind']:
                continue
            poll = t['pending_ticks'], t['pending_kind'] & ID_MAX, t['pending_task']
            records = [r for s in sorted(chunks, key=lambda s: s.sequence)
                       if (s.thread, s.stream) == (t['number'], 0) for r in s.records]
            begins = [(r.time, r.arg, r.words[0]) for r in records if r.type == POLL_BEGIN]
            if any(r.time > poll[0] for r in records) or begins[-1:] == [poll]:
                continue
            tails.append((t['number'], 1, poll[0], Record(0, POLL_BEGIN, poll[1], [poll[2]])))
        for t, u in zip(self.threads, self.underway):
            if t['state'] == 1 and u['call_since']:
                timed = u['call_since'] != 1
                since = u['call_since'] if timed else t['start']
                words = [4, self.clock.ns(since) if timed else 0, u['call_on'], u['call_at']]
                tails.append((t['number'], 2, since,
                              Record(0, CALL_OPEN, u['call'] & ID_MAX, words)))
            if t['state'] == 1 and u['wait_since'] and u['wait_owner']:
                owner = 1 << 23 if u['wait_owner'] == 0xffffffff else u['wait_owner'] & (1 << 23) - 1
                tails.append((t['number'], 2, u['wait_since'],
                              Record(0, LOCK_OWNER, owner, [u['wait_lock']])))
        return sorted(tails, key=lambda t: t[:3])

    def put_tails(self, chunks):
        for thread in sorted({t[0] for t in self.tails}):
            mine = [t for t in self.tails if t[0] == thread]
            stretches = [s for s in chunks if (s.thread, s.stream) == (thread, 0)]
            time = max(self.clock.ns(t[2]) for t in mine)
            if stretches:
                s = max(stretches, key=lambda s: s.sequence)
                time = max(time, s.records[-1].time if s.records else s.begin)
            else:
                s = Stretch()
                s.thread, s.tid, s.stream, s.sequence, s.prior, s.drops = thread, 0, 0, 0, 0, 0
                s.name, s.open, s.open_count, s.loop, s.parked, s.records = b'', [], 0, 0, None, []
                s.begin = time
                self.stretches.append(s)
            if not s.records:
                s.begin = time
            for t in mine:
                t[3].time = time
                s.records.append(t[3])

    def wall(self, ns):
        if not self.walls:
            return None
        at = max(bisect.bisect_right([w[0] for w in self.walls], ns) - 1, 0)
        return self.walls[at][1] + ns - self.walls[at][0]

    def thread(self, number):
        """(tid, name) or None."""
        for t in self.threads:
            if t['state'] and t['number'] == number:
                return t['tid'], text(t['name'])
        known = [s for s in self.stretches if s.thread == number]
        known.sort(key=lambda s: (-s.stream, s.sequence))
        return (known[-1].tid, known[-1].name) if known else None

    def module_at(self, address, ns):
        found = [d for d in self.definitions.values() if d.kind == 10 and
                 d.start <= address < d.end and self.clock.ns(d.since) <= ns]
        return max(found, key=lambda d: (self.clock.ns(d.since), d.id), default=None)

    def events(self):
        """(ns, thread, stream, Record or (missing, first, Stretch)) in the order of time."""
        out = []
        streams = {}
        for s in self.stretches:
            streams.setdefault((s.thread, s.stream), []).append(s)
        for (thread, stream), stretches in streams.items():
            before = None
            last = 0
            for s in sorted(stretches, key=lambda s: (s.sequence, s.prior)):
                missing = 0
                follows = False
                if before:
                    expected = before.prior + len(before.records)
                    missing = max(s.prior - expected, 0)
                    follows = s.sequence == before.sequence + 1 or \
                        (s.sequence == before.sequence and s.prior == expected)
                if not follows or missing or s.drops:
                    last = max(last, s.begin)
                    out.append((last, thread, stream, (missing, not before, s)))
                for r in s.records:
                    last = max(last, r.time)
                    out.append((last, thread, stream, r))
                before = s
        out.sort(key=lambda e: e[:3])  # stable: the order of each stream stays
        return out
