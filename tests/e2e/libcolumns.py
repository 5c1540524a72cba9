"""EVENTS blocks: records as columns, from docs/format.md alone (section 8). Part of
format_reader.py."""
import struct

from librecords import Bad, Bytes, ID_MAX, M64, RESUME, Record, Stretch, TIME, check_record, \
    read_open, text

PLAIN, DELTA, DICT, MATE, WORDS = range(5)
transforms, widths = set(), set()  # that have been seen, for tests


class Column:
    def __init__(self, b, count, allowed, lists=0):
        self.begin = b.at
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
        self.end = b.at

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
    by_type = s.columns = {c.type: c for c in columns}
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
