"""Records, definitions and chunks, from docs/format.md alone (sections 1 to 5). Part of
format_reader.py."""
import ctypes
import struct

M64 = (1 << 64) - 1
ID_MAX = (1 << 24) - 1
RESUME, TIME, POLL_BEGIN, POLL_HIST = 0x3F, 0x40, 0x41, 0xC5
LOCK_OWNER, CALL_OPEN, SCHED_INTERVAL = 0x52, 0xC9, 0xCA
MAGICS = (0x4B4E4843, 0x504E4843)
WAKE_SMALL, TASK_END_SMALL, POLL_BEGIN_SMALL, END_PARK = 0x10, 0x11, 0x12, 0x13
UNPARK_READY, UNPARK_LIST = 0x60, 0xE0
LEAST_WORDS = {0xC0: 3, 0xC1: 3, 0xC2: 4, 0xC5: 4, 0xC6: 4, 0xC7: 2, 0xC8: 2, 0xCA: 4}


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


def ready_of(time, item):
    if item >> 63:
        return Record(time, 0x4E, item >> 47 & 0xFFFF, [1 << 63 | item & (1 << 47) - 1])
    return Record(time, 0x4E, item >> 32 & ID_MAX, [item & 0x7FFFFFFF])


def unpacked(time, header, kind, arg, payload):
    """The records that one stands for: itself, if it is not packed."""
    if kind == WAKE_SMALL:
        return [Record(time, 0x43, 0, [arg])]
    if kind == TASK_END_SMALL:
        return [Record(time, 0x44, 0, [arg])]
    if kind == POLL_BEGIN_SMALL:
        return [Record(time, POLL_BEGIN, header >> 8 & 0xFFF, [header >> 20 & ID_MAX])]
    if kind == END_PARK:
        return [Record(time, 0x03, arg >> 22, []), Record(time, 0x01, arg & 0x3FFFFF, [])]
    if kind in (UNPARK_READY, UNPARK_LIST):
        items = payload if kind == UNPARK_READY else payload[1:]
        return [Record(time, 0x02, arg, [])] + [ready_of(time, item) for item in items]
    return [Record(time, kind, arg, list(payload))]


def chunk_records(data, ticks):
    """(records, True if they end where the chunk does)."""
    words = struct.unpack(f'<{len(data) // 8}Q', data[:len(data) // 8 * 8])
    records, at = [], 0
    while at < len(words):
        header = words[at]
        kind, arg, delta = header & 0xFF, header >> 8 & ID_MAX, header >> 32
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
        if kind == POLL_BEGIN_SMALL:
            delta = header >> 44
        ticks = min(ticks + delta, M64)
        records.extend(unpacked(ticks, header, kind, arg, payload))
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
    if magic not in MAGICS or generation == 0 or commit < 256:
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
