#!/usr/bin/env python3
"""Traces of others that a user may have prepared: a folder of segments with pipes, devices and links."""
import glob
import gzip
import json
import os
import shutil
import time

from libhostile import MALLORY, check, fresh, main, said, start_as, tacho

GOLDEN = os.path.join(os.environ["TACHO_SOURCE"], "tests/golden-import")


def events(info):
    return [p["events"] for p in json.loads(info.stdout)["processes"]] if info.stdout else None


def test_folder(tmp):
    """Segments of dial9: those that are files are read, and nothing else is opened."""
    folder, outside = fresh(tmp, "segments"), fresh(tmp, "outside")
    first = sorted(glob.glob(f"{GOLDEN}/dial9/*.bin.gz"))[0]
    good = shutil.copy(first, f"{folder}/b.bin.gz")
    alone = tacho("info", "--json", good)
    check("import: a segment is read", alone.returncode == 0, said(alone))
    private = shutil.copy(sorted(glob.glob(f"{GOLDEN}/dial9/*.bin.gz"))[-1],
                          f"{outside}/private.bin.gz")
    os.mkfifo(f"{folder}/a.bin.gz")
    os.symlink("/dev/zero", f"{folder}/c.bin.gz")
    os.symlink(private, f"{folder}/d.bin.gz")
    os.symlink(folder, f"{folder}/e.bin.gz")
    for name in os.listdir(folder):
        os.chown(os.path.join(folder, name), MALLORY, MALLORY, follow_symlinks=False)
    read = tacho("info", "--json", folder)
    check("import: a folder with pipes and links is read as if they were not there",
          read.returncode == 0 and events(read) == events(alone), (events(read), said(read)))
    out = os.path.join(tmp, "imported.tacho")
    done = tacho("import", folder, "-o", out)
    check("import: it is imported", done.returncode == 0 and os.path.getsize(out) > 0, said(done))
    check("import: the file is its user's alone", os.stat(out).st_mode & 0o777 == 0o600,
          oct(os.stat(out).st_mode))


def test_link(tmp):
    """A link of another's to a folder of segments that are not theirs to read."""
    private, shared = fresh(tmp, "private"), fresh(tmp, "shared")
    shutil.copy(sorted(glob.glob(f"{GOLDEN}/dial9/*.bin.gz"))[0], private)
    link, out = os.path.join(shared, "link"), os.path.join(tmp, "linked.tacho")
    os.symlink(private, link)
    done = tacho("import", link, "-o", out)
    check("import: one's own link to a folder is followed", done.returncode == 0, said(done))
    os.lchown(link, MALLORY, MALLORY)
    read, done = tacho("info", link), tacho("import", link, "-o", out + "2")
    check("import: another's link to a folder is not", read.returncode == done.returncode == 1 and
          "another user made" in read.stderr and not os.path.exists(out + "2"),
          (said(read), said(done)))


def test_single(tmp):
    """What is no file, under the name of a trace."""
    place = fresh(tmp, "single")
    for name, make in (("pipe", os.mkfifo), ("device", lambda path: os.symlink("/dev/zero", path)),
                       ("loop", lambda path: os.symlink(path, path))):
        path = os.path.join(place, f"{name}.trace")
        make(path)
        os.chown(path, MALLORY, MALLORY, follow_symlinks=False)
        writes = start_as(MALLORY, ["sh", "-c", f"echo >{path}"]) if name == "pipe" else None
        read = tacho("info", path)
        check(f"import: a {name} is refused", read.returncode == 1, said(read))
        if writes:
            time.sleep(1)  # for as long who writes to it could find out
            check("import: a pipe is not even opened", writes.poll() is None, writes.poll())


def test_packed(tmp):
    """A few KiB that are 8 GiB when they are unpacked."""
    path = os.path.join(fresh(tmp, "packed"), "bomb.bin.gz")
    member = gzip.compress(bytes(64 << 20), 9)
    with open(sorted(glob.glob(f"{GOLDEN}/dial9/*.bin.gz"))[0], "rb") as f:
        head = gzip.decompress(f.read())
    with open(path, "wb") as f:
        f.write(gzip.compress(head))
        for _ in range(128):
            f.write(member)
    read = tacho("info", path)
    check("import: what is packed a thousandfold needs no such memory",
          read.returncode in (0, 1) and "out of memory" not in read.stderr, said(read))


if __name__ == "__main__":
    main(test_folder, test_link, test_single, test_packed)
