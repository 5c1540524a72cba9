#!/usr/bin/env python3
"""A reader of trace files, written from docs/format.md alone.

It shares no code with tacho: where the two disagree, the text or the code is wrong.
format_independent.py and format_golden.py compare them.

    format_reader.py FILE     prints what it reads
    format_reader.py          checks itself
"""
import bisect
import ctypes
import struct
import sys

M64 = (1 << 64) - 1
ID_MAX = (1 << 24) - 1
SIZE_MAX = 16 << 20
PARK, UNPARK, POLL_END, SPAN_BEGIN, RESUME, TIME, POLL_BEGIN, POLL_HIST = \
    0x01, 0x02, 0x03, 0x04, 0x3F, 0x40, 0x41, 0xC5
LEAST_WORDS = {0xC0: 3, 0xC1: 3, 0xC2: 4, 0xC5: 4}
META, CLOCK, THREADS, DEFINITIONS, EVENTS, CHUNK, HISTOGRAMS, LOSSES, TRIGGERS, CRASHES, \
    SOURCES, INDEX, SYMBOLS = range(1, 14)


class Bad(Exception):
    """The input is not what docs/format.md says."""


# 1. Conventions ------------------------------------------------------------------------


def _crc_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_CRC = _crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def text(data):
    return bytes(data).split(b'\0')[0]


def zstd(stored, raw_size):
    """The content of the one frame that `stored` is."""
    lib = ctypes.CDLL('libzstd.so.1')
    for name in ('ZSTD_decompress', 'ZSTD_findFrameCompressedSize'):
        getattr(lib, name).restype = ctypes.c_size_t
    lib.ZSTD_getFrameContentSize.restype = ctypes.c_ulonglong
    size = ctypes.c_size_t(len(stored))
    if lib.ZSTD_getFrameContentSize(stored, size) != raw_size or \
            lib.ZSTD_findFrameCompressedSize(stored, size) != len(stored):
        raise Bad('not one zstd frame of the size that was announced')
    out = ctypes.create_string_buffer(raw_size or 1)
    if lib.ZSTD_decompress(out, ctypes.c_size_t(raw_size), stored, size) != raw_size:
        raise Bad('zstd cannot decompress it')
    return out.raw[:raw_size]


class Bytes:
    """A payload that is taken from the front; nothing is read beyond its end."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def left(self):
        return len(self.data) - self.at

    def take(self, size):
        if size > self.left():
            raise Bad(f'{size} bytes wanted, {self.left()} left')
        self.at += size
        return self.data[self.at - size:self.at]

    def get(self, form):
        values = struct.unpack('<' + form, self.take(struct.calcsize('<' + form)))
        return values if len(values) > 1 else values[0]


def pad(size, to=8):
    return -size % to


# 2. to 5. Records, definitions, chunks, tables -----------------------------------------


class Record:
    def __init__(self, time, kind, arg, words):
        self.time, self.type, self.arg, self.words = time, kind, arg, words


def check_record(kind, words):
    if kind in (0, RESUME, TIME) or words < LEAST_WORDS.get(kind, 0):
        raise Bad(f'type {kind:#x} with {words} words is no record')


def chunk_records(data, ticks):
    """(records, True if they end where the chunk does)."""
    words = struct.unpack(f'<{len(data) // 8}Q', data[:len(data) // 8 * 8])
    records, at = [], 0
    while at < len(words):
        kind, arg, delta = words[at] & 0xFF, words[at] >> 8 & ID_MAX, words[at] >> 32
        count = kind >> 6
        if count == 3:
            count = words[at + 1] & 0xFFFF if at + 1 < len(words) else 0
            if not 1 <= count <= 128:
                return records, False
        payload = words[at + 1:at + 1 + count]
        if len(payload) < count:
            return records, False
        at += 1 + count
        if kind == TIME:
            ticks = max(ticks, payload[0])
            continue
        try:
            check_record(kind, count)
        except Bad:
            return records, False
        ticks = min(ticks + delta, M64)
        records.append(Record(ticks, kind, arg, list(payload)))
    return records, True


class Stretch:
    """Records of one stream without a hole: what a CHUNK or an EVENTS block holds."""


def read_open(data):
    return [list(struct.unpack_from('<IIQQ', data, 24 * i)) for i in range(len(data) // 24)]


def read_chunk(data):
    if len(data) < 256:
        raise Bad('shorter than the header of a chunk')
    (generation, commit, magic, _size, thread, tid, flags, stream, open_count, sequence, loop,
     ticks, mono, _real, _last, prior, _records, drops, name) = struct.unpack_from(
         '<QQIIIIIHHIIQQQQQII16s', data)
    if magic != 0x4B4E4843 or generation == 0 or commit < 256:
        raise Bad('not a chunk')
    s = Stretch()
    s.thread, s.tid, s.stream, s.sequence, s.name = thread, tid, stream, sequence, text(name)
    s.open_count, s.loop, s.prior, s.drops = open_count, loop, prior, drops
    s.open = read_open(data[112:112 + 24 * min(open_count, 5)])
    s.parked = struct.unpack_from('<Q', data, 232)[0] if flags & 2 else None
    s.anchor = ticks, mono
    s.records, s.whole = chunk_records(data[256:commit], ticks)
    s.begin = s.records[0].time if s.records else ticks
    return s


class Definition:
    def __init__(self, number, kind, flags, payload):
        self.id, self.kind, self.cut = number, kind, bool(flags & 1)
        self.exact = bool(flags & 2)
        self.name = self.file = self.unit = b''
        self.value = self.line = self.detail = 0
        self.fields, self.frames = [], []
        b = Bytes(payload)
        {8: self.schema, 9: self.stack, 10: self.module}.get(kind, self.named)(b)

    def named(self, b):
        self.value, self.line, name, file, self.detail, unit = b.get('QIHHBB')
        self.name, self.file, self.unit = (text(b.take(n)) for n in (name, file, unit))

    def schema(self, b):
        name, fields = b.get('HH')
        self.name = text(b.take(name))
        if fields > 16:
            raise Bad('more than 16 fields')
        for _ in range(fields):
            kind, size = b.get('BB')
            if not 1 <= kind & 0x7F <= 5:
                raise Bad('a field of no type')
            self.fields.append((text(b.take(size)), kind & 0x7F))

    def stack(self, b):
        if len(b.data) % 8 or len(b.data) > 512:
            raise Bad('not a stack')
        self.frames = list(struct.unpack(f'<{len(b.data) // 8}Q', b.data))

    def module(self, b):
        self.start, self.end, self.offset, self.since, build_id, _, path = b.get('QQQQBBH')
        if self.end < self.start or build_id > 20:
            raise Bad('not a module')
        self.build_id, self.name = bytes(b.take(build_id)), text(b.take(path))


# 8. EVENTS -----------------------------------------------------------------------------

PLAIN, DELTA, DICT, MATE, WORDS = range(5)
transforms, widths = set(), set()  # that have been seen, for tests


class Column:
    def __init__(self, b, count, allowed, lists=0):
        transform, width = b.get('BB')
        if transform not in allowed:
            raise Bad(f'transform {transform} is not allowed here')
        if transform == DICT:
            self.list = b.get('B')
            if self.list >= lists:
                raise Bad('there is no such list')
        if width > 8 and width not in (0x81, 0x82, 0x84) or transform == WORDS and width != 8:
            raise Bad(f'width {width} is none')
        self.transform, self.width, self.at = transform, width, 0
        transforms.add(transform)
        widths.add(width)
        if transform == WORDS:
            self.values = struct.unpack(f'<{count}Q', b.take(8 * count))
        elif width & 0x80:
            bits = width & 0x7F
            body = int.from_bytes(b.take((count * bits + 7) // 8), 'little')
            self.values = [body >> i * bits & (1 << bits) - 1 for i in range(count)]
        else:
            body = b.take(width * count)
            self.values = [int.from_bytes(body[i::count], 'little') if width else 0
                           for i in range(count)]
        if transform == DELTA:
            total, values = 0, []
            for z in self.values:
                total = total + (z >> 1 ^ -(z & 1)) & M64
                values.append(total)
            self.values = values

    def next(self):
        if self.at == len(self.values):
            raise Bad('a column is too short')
        self.at += 1
        return self.values[self.at - 1]


class List:
    def __init__(self, b):
        count = b.get('I')
        if count > 4 << 20:
            raise Bad('more values than a block can use')
        self.values, self.uses = Column(b, count, (PLAIN, DELTA)).values, 0
        self.known, self.row, self.mates = 0, [], {}

    def use(self, place):
        """The item that the place means."""
        if place == 0:
            if self.known == len(self.values):
                raise Bad('a list has no more values')
            item, self.known = self.known, self.known + 1
        elif place > len(self.row):
            raise Bad('a place beyond the row')
        else:
            item = self.row.pop(place - 1)
        self.row.insert(0, item)
        return item


class TypeColumns:
    """The columns of one type."""

    def __init__(self, kind, records):
        self.type, self.records, self.klass = kind, records, kind >> 6

    def read_follow(self, b, last_type):
        self.follow = b.take(b.get('B'))
        self.next = Column(b, self.records - (self.type == last_type), (PLAIN,))
        if any(v >= len(self.follow) for v in self.next.values):
            raise Bad('a type that does not follow')

    def read_times(self, b):
        counts = [0] * len(self.follow)
        for v in self.next.values:
            counts[v] += 1
        self.times = [Column(b, n, (PLAIN, DELTA)) for n in counts]

    def word(self, b, count, lists):
        column = Column(b, count, (PLAIN, DELTA, DICT, WORDS), len(lists))
        if column.transform == DICT:
            lists[column.list].uses += count
        return column

    def read(self, b, lists):
        self.mate = b.left() > 0 and b.data[b.at] == MATE
        if self.mate:
            transforms.add(MATE)
            b.take(2)
            first = b.get('I')
            if first > self.records:
                raise Bad('more new mates than records')
            self.new = Column(b, first, (PLAIN, DELTA))
            self.arg = Column(b, self.records - first, (PLAIN, DELTA))
        else:
            self.arg = Column(b, self.records, (PLAIN, DELTA))
        if self.klass < 3:
            self.w = [self.word(b, self.records, lists) for _ in range(self.klass)]
        else:
            self.words = Column(b, self.records, (PLAIN,))
            if self.words.width != 1 or not all(1 <= n <= 128 for n in self.words.values):
                raise Bad('numbers of words that cannot be')
            self.data = Column(b, self.records, (PLAIN, DELTA))
            self.w = [self.word(b, sum(n > k for n in self.words.values), lists)
                      for k in (1, 2, 3)]
            self.rest = Column(b, sum(max(n - 4, 0) for n in self.words.values), (WORDS,))
        if self.mate and (not self.w or self.w[0].transform != DICT or
                          len(self.w[0].values) != self.records):
            raise Bad('MATE without a list')

    def next_word(self, k, lists):
        column = self.w[k]
        if column.transform != DICT:
            return column.next(), None
        item = lists[column.list].use(column.next())
        return lists[column.list].values[item], item

    def record(self, ns, lists):
        words, item = [], None
        first, count = 0, self.klass
        if self.klass == 3:
            first, count = 1, self.words.next()
            words.append((count | self.data.next() << 16) & M64)
        for k in range(min(count - first, len(self.w))):
            word, used = self.next_word(k, lists)
            item = used if k == 0 else item
            words.append(word)
        while len(words) < count:
            words.append(self.rest.next())
        return Record(ns, self.type, self.next_arg(item, lists), words)

    def next_arg(self, item, lists):
        if not self.mate:
            arg = self.arg.next()
        else:
            mates = lists[self.w[0].list].mates
            if item in mates:
                value = self.arg.next()
                arg = value - 1 if value else mates[item]
            else:
                arg = self.new.next()
            mates[item] = arg
        if arg > ID_MAX:
            raise Bad('an argument of more than 24 bits')
        return arg


def read_events(data):
    b = Bytes(data)
    size = b.get('I')
    if size < 96:
        raise Bad('the header of EVENTS is too short')
    head = Bytes(b.take(size - 4))
    s = Stretch()
    (s.thread, s.tid, s.stream, s.open_count, listed, s.sequence, flags, s.loop, count, s.drops,
     s.prior, first_ns, last_ns, park_ns, name) = head.get('IIHHIIIIIIQQQQ16s')
    s.name, s.parked, s.begin, s.whole = text(name), park_ns if flags & 2 else None, first_ns, True
    if listed > 5 or count > 1 << 20 or last_ns < first_ns:
        raise Bad('the header of EVENTS contradicts itself')
    s.open = read_open(b.take(24 * listed))[:s.open_count]
    types, first_type, last_type = b.get('BBB')
    columns = [TypeColumns(*b.get('BI')) for _ in range(types)]
    order = [c.type for c in columns]
    if order != sorted(set(order)) or any(t in (0, TIME, RESUME) for t in order) or \
            any(c.records == 0 for c in columns) or sum(c.records for c in columns) != count:
        raise Bad('the table of types is wrong')
    for c in columns:
        c.read_follow(b, last_type)
    for c in columns:
        c.read_times(b)
    lists = b.get('B')
    if lists > 8:
        raise Bad('more than 8 lists')
    lists = [List(b) for _ in range(lists)]
    for c in columns:
        c.read(b, lists)
    if b.left() or any(len(one.values) > one.uses for one in lists):
        raise Bad('more than the columns need')
    by_type = {c.type: c for c in columns}
    s.records, kind, ns = [], first_type, first_ns
    for i in range(count):
        c = by_type.get(kind)
        if not c or c.records == 0:
            raise Bad('a type more often than it was announced')
        c.records -= 1
        record = c.record(ns, lists)
        check_record(kind, len(record.words))
        s.records.append(record)
        if i + 1 < count:
            which = c.next.next()
            ns += c.times[which].next()
            kind = c.follow[which]
    if count and ns != last_ns:
        raise Bad('the last record is not at last_ns')
    return s


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
        self.meta, self.anchors, self.threads, self.hists = {}, [], [], []
        self.definitions, self.stretches = {}, []
        self.losses, self.triggers, self.crashes, self.sources = [], [], [], []
        self.unknown_blocks = []
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
                   HISTOGRAMS: self.read_hists, LOSSES: self.read_losses,
                   TRIGGERS: self.read_triggers, CRASHES: self.read_crashes,
                   SOURCES: self.read_sources, INDEX: self.read_index,
                   SYMBOLS: self.read_symbols}
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
            number, tid, ticks, size = struct.unpack_from('<IIQI', e)
            if number:
                self.triggers.append({'number': number, 'tid': tid, 'ticks': ticks,
                                      'reason': text(e[24:24 + min(size, 200)])})

    def read_crashes(self, _block, payload):
        for e in self.array(payload, 848):
            keys = 'state tid signal code address ticks thread_name regs frames arch flags'
            c = dict(zip(keys.split(), struct.unpack_from('<IIiiQQ16sIIII', e)))
            if 1 <= c['state'] <= 3:
                regs = min(c['regs'], 34) if c['state'] >= 2 else 0
                frames = min(c['frames'], 64) if c['state'] >= 3 else 0
                c['reg'] = struct.unpack_from(f'<{regs}Q', e, 64)
                c['frame'] = struct.unpack_from(f'<{frames}Q', e, 336)
                c['failed'] = bool(c['flags'] & 1) or c['state'] < 3
                self.crashes.append(c)

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

    def make_tails(self, chunks):
        """(thread, 0 histogram or 1 poll, ticks, record) of what stands in no chunk."""
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


# Itself --------------------------------------------------------------------------------


def self_check():
    checks = [
        ('the checksum of 123456789', crc32c(b'123456789') == 0xE3069283),
        ('planes', Column(Bytes(b'\0\2\1\2\3\4'), 2, (PLAIN,)).values == [0x301, 0x402]),
        ('bits', Column(Bytes(b'\0\x82\x24'), 3, (PLAIN,)).values == [0, 1, 2]),
        ('zigzag', Column(Bytes(b'\1\1\4\3\2'), 3, (DELTA,)).values == [2, 0, 1]),
        ('a clock between and beyond anchors', [Clock([(100, 1000, False), (200, 3000, False)]).ns(t)
                                                for t in (50, 150, 300)] == [0, 2000, 5000]),
        ('the longest run of anchors', longest_run([(1, 5), (2, 900), (3, 6), (4, 7)]) ==
         [(1, 5), (3, 6), (4, 7)]),
    ]
    for name, good in checks:
        print(f'ok {name}' if good else f'not ok {name}: it came out wrong')
    return not all(good for _, good in checks)


def main():
    if len(sys.argv) < 2:
        return self_check()
    with open(sys.argv[1], 'rb') as file:
        trace = Trace(file.read())
    for ns, thread, stream, what in trace.events():
        if isinstance(what, Record):
            print(ns, thread, stream, f'{what.type:#04x}', what.arg, *what.words)
        else:
            print(ns, thread, stream, 'resume', 'missing', what[0])
    for offset, size, what in trace.problems:
        print(f'problem at {offset}, {size} bytes: {what}', file=sys.stderr)
    return 0


if __name__ == '__main__':
    sys.exit(main())
