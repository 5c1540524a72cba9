#!/usr/bin/env python3
"""tacho view and tacho serve over HTTP: who gets what, and who gets nothing."""
import base64
import glob
import gzip
import hashlib
import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../golden"))
import make  # noqa: E402
from libcheck import BIN, check, said, skip, status  # noqa: E402
from libserve import Answer, Site  # noqa: E402
from libwait import until  # noqa: E402

GOLDEN = os.path.join(os.environ.get("TACHO_SOURCE") or
                      os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."),
                      "tests/golden")
TRACE = os.path.join(GOLDEN, "v1-dump.tacho")
IMPORTED = {os.path.basename(path): path for pattern in ("*.trace*", "dial9/*.bin.gz")
            for path in glob.glob(os.path.join(GOLDEN + "-import", pattern))}
STUCK = 400  # more than the server takes


def tacho(*arguments, **more):
    return subprocess.run([BIN, *arguments], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, **more)


def bytes_of(path):
    with open(path, "rb") as f:
        return f.read()


# Who is answered ------------------------------------------------------------------------


def test_files(site):
    whole = bytes_of(TRACE)
    for name, kind in (("", "text/html"), ("main.js", "text/javascript"), ("style.css", "text/css"),
                       ("engine.wasm", "application/wasm")):
        a = site.ask(name)
        check(f"the page's {name or 'index'} is served",
              a.status == 200 and a.headers["content-type"].startswith(kind), a)
    a = site.ask("trace")
    check("the trace is served as it is", a.status == 200 and a.body == whole, a)
    a = site.ask("trace", method="HEAD")
    check("HEAD tells the size and sends nothing",
          a.status == 200 and a.headers["content-length"] == str(len(whole)) and not a.body, a)
    check("what is served is said", site.json("what") == {"shows": "trace", "name": "v1-dump.tacho"},
          site.json("what"))
    check("the page in one file is not served", site.ask("tacho.html").status == 404)


def test_ranges(site):
    whole = bytes_of(TRACE)
    size, before = len(whole), site.descriptors()
    for text, part in (("bytes=0-9", whole[:10]), ("bytes=10-", whole[10:]),
                       ("bytes=-7", whole[-7:]), (f"bytes=5-{10 * size}", whole[5:]),
                       (f"bytes=-{10 * size}", whole), (f"bytes={size - 1}-", whole[-1:])):
        a = site.ask("trace", Range=text)
        first = size - len(part) if "=-" in text else int(text[6:].split("-")[0])
        check(f"a part is sent for {text.replace(str(10 * size), 'more')}",
              a.status == 206 and a.body == part and
              a.headers["content-range"] == f"bytes {first}-{first + len(part) - 1}/{size}", a)
    for text in (f"bytes={size}-", f"bytes={10 * size}-{11 * size}", "bytes=-0"):
        a = site.ask("trace", Range=text)
        check(f"there is nothing at {text[:7]}...{text[-1]}", a.status == 416, a)
    for text in ("bytes=", "bytes=-", "bytes=9-3", "bytes=a-b", "lines=1-2", "bytes=0-1,3-4",
                 "bytes=" + 40 * "9" + "-", "bytes= 1-2"):
        a = site.ask("trace", Range=text)
        check(f"what is no range is none: {text[:20]}", a.status == 200 and a.body == whole, a)
    tag = site.ask("trace").headers["etag"]
    check("a part of the same file is sent",
          site.ask("trace", Range="bytes=0-9", If_Range=tag).status == 206)
    check("of another file all is sent",
          site.ask("trace", Range="bytes=0-9", If_Range='"other"').body == whole)
    check("nothing is left of ranges", site.leaves_no_descriptor(before),
          f"{site.descriptors()} descriptors, {before} before")


def test_strangers(site):
    secret = site.secret
    wrong = secret[:-1] + ("0" if secret[-1] != "0" else "1")
    for name, request in (
            ("no secret", site.request("trace", secret="")),
            ("a wrong secret", site.request("trace", secret=wrong)),
            ("half a secret", site.request("trace", secret=secret[:16])),
            ("a secret without its slash", site.request("", secret="").replace(
                b"GET / ", f"GET /{secret}x ".encode())),
            ("the host of somebody else", site.request("trace", host=f"evil.example:{site.port}")),
            ("a host without a port", site.request("trace", host="127.0.0.1")),
            ("no host", site.request("trace", host="").replace(b"HTTP/1.1", b"HTTP/1.0")),
            ("the origin of somebody else", site.request("trace", Origin="http://evil.example")),
            ("the origin of another port", site.request("trace", Origin="http://127.0.0.1:1")),
            ("the origin of a file", site.request("trace", Origin="null"))):
        a = Answer(site.raw(request))
        check(f"{name} gets nothing", a.status == 403 and b"TACHO" not in a.body and
              secret.encode() not in a.body, a)
    check("localhost is a name of it",
          site.ask("trace", host=f"localhost:{site.port}").status == 200)
    check("the page itself may ask", site.ask("trace", Origin=f"http://{site.host}").status == 200)


def test_names_twice(site):
    """Of two Host or Origin headers none is believed."""
    host, ours = f"Host: {site.host}", f"Origin: http://{site.host}"
    for name, more in (("Host", f"{host}\r\nHost: evil.example"),
                       ("Host, of somebody else first", f"Host: evil.example\r\n{host}"),
                       ("Host, both right", f"{host}\r\n{host}"),
                       ("host in small letters", f"{host}\r\nhost: {site.host}"),
                       ("Origin", f"{host}\r\n{ours}\r\nOrigin: http://evil.example"),
                       ("Origin, empty", f"{host}\r\n{ours}\r\nOrigin:")):
        request = site.request("trace", host="").replace(b"\r\n", f"\r\n{more}\r\n".encode(), 1)
        a = Answer(site.raw(request))
        check(f"a second header gets nothing: {name}", a.status == 400 and b"TACHO" not in a.body, a)
    a = Answer(site.raw(site.request("trace", host="").replace(
        b"\r\n", f"\r\n{host}\r\n{ours}\r\n".encode(), 1)))
    check("one of each is right", a.status == 200, a)


def test_encodings(site):
    """Packed is what was asked for so, and nothing else."""
    packed = site.ask("main.js", Accept_Encoding="gzip")
    check("who asks for gzip gets it", packed.headers.get("content-encoding") == "gzip" and
          packed.headers.get("vary") == "Accept-Encoding", packed)
    script = gzip.decompress(packed.body)
    for wanted, more in ((False, {}), (False, {"Accept_Encoding": ""}),
                         (False, {"Accept_Encoding": "identity"}),
                         (False, {"Accept_Encoding": "gzip;q=0"}),
                         (False, {"Accept_Encoding": "br, GZIP ; q=0.000 , deflate"}),
                         (False, {"Accept_Encoding": "*, gzip;q=0"}),
                         (False, {"Accept_Encoding": "*;q=0"}),
                         (False, {"Accept_Encoding": "gzippy, xgzip"}),
                         (False, {"Accept_Encoding": ",,;;q=,"}),
                         (True, {"Accept_Encoding": "deflate, gzip;q=0.5, br"}),
                         (True, {"Accept_Encoding": "*"}), (True, {"Accept_Encoding": "x-gzip"}),
                         (True, {"Accept_Encoding": "*;q=0,\tgzip;q=0.001"})):
        a = site.ask("main.js", **more)
        is_packed = a.headers.get("content-encoding") == "gzip"
        check(f"gzip or not: {more.get('Accept_Encoding', 'nothing said')!r}", is_packed == wanted and
              a.headers.get("vary") == "Accept-Encoding" and
              (gzip.decompress(a.body) if is_packed else a.body) == script, a)
    for name in ("", "style.css", "engine.wasm", "sqlite3.wasm"):
        a, b = site.ask(name), site.ask(name, Accept_Encoding="gzip")
        check(f"plain and packed are the same: {name or 'index'}",
              "content-encoding" not in a.headers and gzip.decompress(b.body) == a.body and
              a.headers["content-length"] == str(len(a.body)), a)
    a = site.ask("trace", Accept_Encoding="gzip")
    check("a trace is sent as it is", "content-encoding" not in a.headers and
          a.body == bytes_of(TRACE), a)


def test_methods(site):
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "get", "BREW"):
        a = site.ask("trace", method=method, Content_Length=0)
        check(f"{method} changes nothing", a.status in (400, 405) and b"TACHO" not in a.body, a)
    for path in ("../" * 8 + "etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e/", "//etc/passwd",
                 "trace/", "trace/x", "what%20", "%00", "traces/v1-dump.tacho", "keep", "live"):
        a = site.ask(path)
        check(f"there is no {path[:30]}", a.status == 404 and b"root:" not in a.body, a)


def test_headers(site):
    for name, a in (("the page", site.ask("")), ("a refusal", site.ask("", secret="")),
                    ("the trace", site.ask("trace")), ("nothing", site.ask("none"))):
        policy = a.headers.get("content-security-policy", "")
        check(f"no foreign or inline script may run beside {name}",
              "default-src 'none'" in policy and "unsafe-inline" not in policy and
              re.search(r"script-src 'self' 'wasm-unsafe-eval';", policy) and
              "frame-ancestors 'none'" in policy, a)
        check(f"others may not embed or guess {name}",
              a.headers.get("x-content-type-options") == "nosniff" and
              a.headers.get("cross-origin-resource-policy") == "same-origin" and
              "access-control-allow-origin" not in a.headers, a)


# Clients that misbehave -----------------------------------------------------------------


def test_huge(site):
    for name, request in (
            ("a header of a megabyte", site.request("trace", X="x" * (1 << 20))),
            ("ten thousand headers", site.request("trace", **{f"X{i}": "y" for i in range(10000)})),
            ("an address of 100 KB", site.request("a" * 100000)),
            ("no line at all", b"\r\n\r\n\r\n\r\n"), ("bytes", bytes(range(256)) * 64),
            ("another protocol", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 500)):
        answer = site.raw(request)
        check(f"{name} is refused", not answer or Answer(answer).status in range(400, 600),
              answer[:100])
    check("the server goes on after that", site.lives())


def test_stuck(site):
    before = site.descriptors()
    for count in (50, STUCK):
        stuck = []
        for i in range(count):
            s = site.connect()
            s.sendall(site.request("trace")[:i % 60])
            stuck.append(s)
        began = time.monotonic()
        good = all(site.ask("trace").status == 200 for _ in range(10))
        took = time.monotonic() - began
        check(f"{count} who send half a request keep nobody waiting", good and took < 15,
              f"{took:.1f} s, {good}")
        for s in stuck:
            s.close()
    check("nothing is left of those who send half a request", site.leaves_no_descriptor(before),
          f"{site.descriptors()} descriptors, {before} before")


def test_many(site, path, wanted):
    before = site.descriptors()
    for count in (50, 200):
        answers = [None] * count

        def one(i):
            answers[i] = site.ask(path)
        threads = [threading.Thread(target=one, args=[i]) for i in range(count)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        wrong = [a for a in answers if not a or a.status != 200 or a.body != wanted]
        check(f"{count} at once get {path} whole", not wrong, f"{len(wrong)} not: {wrong[:1]}")
    # Who goes away in the middle of it.
    for i in range(60):
        s = site.connect()
        s.sendall(site.request(path))
        s.recv(10 * i + 1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        s.close()
    check(f"nothing is left of those who fetched {path}", site.leaves_no_descriptor(before),
          f"{site.descriptors()} descriptors, {before} before")


# Folders --------------------------------------------------------------------------------


def listed(site):
    """The rows by name, once all of them have been judged."""
    def rows():
        found = {t["name"]: t for t in site.json("list").get("traces", [])}
        return found if found and all(t["judged"] for t in found.values()) else None
    return until(rows) or {}


def make_folder(tmp):
    folder = os.path.join(tmp, "traces")
    os.makedirs(os.path.join(folder, "below"))
    shutil.copy(TRACE, os.path.join(folder, "good.tacho"))
    shutil.copy(TRACE, os.path.join(folder, "below", "inner.tacho"))
    shutil.copy(TRACE, os.path.join(folder, ".hidden.tacho"))
    shutil.copy(TRACE, os.path.join(folder, "other.name"))
    shutil.copy(TRACE, os.path.join(folder, "<b>&\"'\x01 ü.tacho"))
    shutil.copy(TRACE, os.path.join(folder.encode(), b"bytes\xff\xfe.tacho"))
    with open(os.path.join(tmp, "outside.tacho"), "w") as f:
        f.write("outside")
    with open(os.path.join(folder, "text.tacho"), "w") as f:
        f.write("this is no trace\n")
    open(os.path.join(folder, "empty.tacho"), "w").close()
    with open(os.path.join(folder, "cut.tacho"), "wb") as f:
        f.write(bytes_of(TRACE)[:len(bytes_of(TRACE)) * 2 // 3])
    os.symlink(os.path.join(tmp, "outside.tacho"), os.path.join(folder, "link.tacho"))
    os.symlink("good.tacho", os.path.join(folder, "inside.tacho"))
    os.mkfifo(os.path.join(folder, "pipe.tacho"))
    os.mkdir(os.path.join(folder, "dir.tacho"))
    return folder


def test_folder(site, folder):
    check("a folder is said to be one", site.json("what") ==
          {"shows": "folder", "name": os.path.realpath(folder)}, site.json("what"))
    rows = listed(site)
    check("the folder lists its trace files alone", sorted(rows) == sorted(
        ["good.tacho", "<b>&\"'\x01 ü.tacho", "bytes\\xff\\xfe.tacho", "text.tacho", "empty.tacho",
         "cut.tacho"]), sorted(rows))
    verdict = json.loads(tacho("report", "--json", TRACE).stdout)["verdict"]
    info = json.loads(tacho("info", "--json", TRACE).stdout)["processes"][0]
    good = rows.get("good.tacho", {})
    check("the verdict is that of the report", good.get("verdict", {}).get("category") ==
          verdict["category"] and good["verdict"]["summary"] == verdict["summary"], good)
    check("the process is that of tacho info",
          [good.get(k) for k in ("pid", "service", "host")] ==
          [info.get(k) for k in ("pid", "service", "host")], (good, info))
    for name in ("text.tacho", "empty.tacho"):
        row = rows.get(name, {})
        check(f"{name} is listed with what is wrong with it", "neither a box nor a trace" in (row.get("error") or "") and
              "verdict" not in row, row)
    for name, row in rows.items():
        a = site.ask("traces/" + row["href"])
        check(f"{ascii(name)} is fetched by its address", a.status == 200 and
              len(a.body) == row["bytes"], a)
    for name in ("link.tacho", "inside.tacho", "pipe.tacho", "dir.tacho", "below/inner.tacho",
                 "below%2finner.tacho", ".hidden.tacho", "other.name", "../outside.tacho",
                 "..%2foutside.tacho", "%2e%2e%2foutside.tacho", "below/../good.tacho", "", ".",
                 "..", "good.tacho/", "/good.tacho", "none.tacho", "x" * 300 + ".tacho"):
        a = site.ask("traces/" + name)
        check(f"traces/{name[:30]} is not served", a.status == 404 and b"outside" not in a.body, a)
    check("a folder takes no posts", site.ask("keep", method="POST", Content_Length=0).status == 405)
    test_many(site, "traces/good.tacho", bytes_of(TRACE))


def test_closed(folder):
    """A trace that may not be read; root may read all, unless it gives that up."""
    closed = os.path.join(folder, "closed.tacho")
    shutil.copy(TRACE, closed)
    os.chmod(closed, 0)
    rights = ["-dac_override", "-dac_read_search"]
    with Site("--bounding-set", ",".join(rights), BIN, "serve", "--dir", folder,
              binary="setpriv") as site:
        check("a trace that may not be read is there, but not for this user",
              site.ask("traces/closed.tacho").status == 403 and
              site.ask("traces/none.tacho").status == 404, site.ask("traces/closed.tacho"))
    os.unlink(closed)


def test_following(site, folder):
    version = site.json("list")["version"]
    check("nothing new is said in a few bytes",
          site.json(f"list/{version}") == {"version": version}, site.ask(f"list/{version}"))
    # It gets its name when it is whole, as tacho does it.
    shutil.copy(TRACE, os.path.join(folder, ".new"))
    os.rename(os.path.join(folder, ".new"), os.path.join(folder, "new.tacho"))
    check("a new trace is listed", until(lambda: "new.tacho" in listed(site)), sorted(listed(site)))
    check("and that is something new", site.json(f"list/{version}").get("traces"))
    with open(os.path.join(folder, "text.tacho.part"), "wb") as f:
        f.write(bytes_of(TRACE))
    os.rename(os.path.join(folder, "text.tacho.part"), os.path.join(folder, "text.tacho"))
    check("one that was replaced is judged again",
          until(lambda: listed(site).get("text.tacho", {}).get("verdict")),
          listed(site).get("text.tacho"))
    os.unlink(os.path.join(folder, "new.tacho"))
    check("one that was deleted is gone", until(lambda: "new.tacho" not in listed(site)))


def test_imported_folder(tmp):
    """Traces of other recorders are listed beside tacho's own, whatever they are called."""
    folder = os.path.join(tmp, "imported")
    os.mkdir(folder)
    go, dial9 = IMPORTED["go-leak.trace.gz"], IMPORTED["0.5.7.bin.gz"]
    shutil.copy(TRACE, os.path.join(folder, "own.tacho"))
    shutil.copy(go, os.path.join(folder, "snapshot"))
    shutil.copy(dial9, os.path.join(folder, "trace.0.bin.gz"))
    with open(os.path.join(folder, "cut.trace"), "wb") as f:
        f.write(bytes_of(IMPORTED["go1.22.trace"])[:40])
    with open(os.path.join(folder, "notes.txt"), "w") as f:
        f.write("no trace\n")
    os.symlink(go, os.path.join(folder, "link.trace"))
    os.mkfifo(os.path.join(folder, "pipe.trace"))
    with Site("serve", "--dir", folder) as site:
        before = site.descriptors()
        rows = listed(site)
        check("a folder lists traces of other recorders", sorted(rows) ==
              ["cut.trace", "own.tacho", "snapshot", "trace.0.bin.gz"], sorted(rows))
        for name, path in (("snapshot", go), ("trace.0.bin.gz", dial9)):
            verdict = json.loads(tacho("report", "--json", path).stdout)["verdict"]
            check(f"the verdict on {name} is that of the report",
                  rows.get(name, {}).get("verdict", {}).get("summary") == verdict["summary"],
                  (rows.get(name), verdict))
            a = site.ask("traces/" + name)
            again = os.path.join(tmp, "fetched.tacho")
            with open(again, "wb") as f:
                f.write(a.body)
            told = [json.loads(tacho("stats", "--json", p).stdout)["threads"] for p in (again, path)]
            check(f"{name} is fetched as a trace of tacho", a.status == 200 and told[0] == told[1],
                  (a.status, told))
        check("one of which nothing can be made is listed with the reason",
              rows.get("cut.trace", {}).get("error"), rows.get("cut.trace"))
        for name in ("notes.txt", "link.trace", "pipe.trace", "cut.trace"):
            check(f"traces/{name} is not served", site.ask("traces/" + name).status == 404)
        check("imports leave no descriptor behind",
              until(lambda: site.descriptors() <= before), (before, site.descriptors()))


def test_empty_folder(tmp):
    folder = os.path.join(tmp, "empty")
    os.mkdir(folder)
    with Site("view", folder) as site:
        check("a folder without traces is an empty list", site.json("list").get("traces") == [],
              site.ask("list"))
        os.rmdir(folder)
        check("the server of a folder that is gone goes on", site.lives() and
              site.ask("list").status == 200, site.ask("list"))


# The page in one file -------------------------------------------------------------------


def test_html(tmp):
    out = os.path.join(tmp, "page.html")
    p = tacho("view", "--html", out, TRACE)
    page = bytes_of(out).decode() if os.path.exists(out) else ""
    pieces = re.findall(r'<script type="text/plain" class="trace">([^<]*)</script>', page)
    check("the page in one file holds the trace", p.returncode == 0 and
          b"".join(base64.b64decode(piece) for piece in pieces) == bytes_of(TRACE), said(p))
    # More than one piece of it: a block that readers pass over, of bytes that nothing makes smaller.
    large = make.File(9)
    large.block(999, random.Random(4711).randbytes(7 << 20))
    path = os.path.join(tmp, "large.tacho")
    with open(path, "wb") as f:
        f.write(bytes_of(TRACE) + large.index())
    p = tacho("view", "--html", out, "--force", path)
    pieces = re.findall(r'<script type="text/plain" class="trace">([^<]*)</script>',
                        bytes_of(out).decode())
    check("and a large one in its pieces", p.returncode == 0 and len(pieces) == 3 and
          b"".join(base64.b64decode(piece) for piece in pieces) == bytes_of(path),
          (said(p), len(pieces)))
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    policy = policy[1] if policy else ""
    run = re.findall(r"<script>(.*?)</script>", page, re.S) + \
        re.findall(r"<style>(.*?)</style>", page, re.S)
    hashes = ["'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"
              for text in run]
    check("it may run its own script alone", len(run) >= 2 and all(h in policy for h in hashes) and
          "unsafe-inline" not in policy and "default-src 'none'" in policy and
          "http:" not in policy and "https:" not in policy, policy)
    markup = re.sub(r"(<(script|style)[^>]*>).*?</\2>", r"\1", page, flags=re.S)
    check("it loads nothing", not re.search(r' (src|href)="(?!data:)', markup), markup)
    p = tacho("view", "--html", out, TRACE)
    check("a page from before is kept", p.returncode == 0 and os.path.exists(out + ".old"), said(p))
    os.unlink(out + ".old")
    p = tacho("view", "--html", out, "--force", TRACE)
    check("with --force it is not", p.returncode == 0 and not os.path.exists(out + ".old"), said(p))
    p = tacho("view", "--html", "-")
    check("without a trace it is a page to drop one on", p.returncode == 0 and
          'class="trace"' not in p.stdout and "engine-code" in p.stdout and len(p.stdout) > 100000,
          p.stderr)


def test_refusals(tmp):
    text = os.path.join(tmp, "text.txt")
    with open(text, "w") as f:
        f.write("no trace\n")
    out = os.path.join(tmp, "never.html")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        taken = str(s.getsockname()[1])
        for name, arguments, wanted, sentence in (
                ("a port that is taken", ["view", TRACE, "--port", taken], 1, "Try another --port"),
                ("a port that cannot be", ["view", TRACE, "--port", "70000"], 2, "no port above"),
                ("what is no trace", ["view", text], 1, "neither a box nor a trace"),
                ("what is not there", ["view", text + "x"], 1, "No such file"),
                ("no trace", ["view"], 2, "which trace?"),
                ("no folder", ["serve"], 2, "--dir DIR"),
                ("a folder that is a file", ["serve", "--dir", text], 1, "Not a directory"),
                ("a folder that is not there", ["serve", "--dir", text + "x"], 1, "No such file"),
                ("a page of a folder", ["view", "--html", out, tmp], 1, "is a folder"),
                ("a page of no trace", ["view", "--html", out, text], 1, "neither a box nor"),
                ("a page in no folder", ["view", "--html", text + "/x", TRACE], 1, "cannot write"),
                ("a page that is served", ["view", "--html", out, "--port", "1", TRACE], 2,
                 "serves nothing"),
                ("force without a page", ["view", "--force", TRACE], 2, "--html")):
            p = tacho(*arguments)
            check(f"{name} is refused in a sentence", p.returncode == wanted and
                  sentence in p.stderr and not p.stdout, said(p))
    check("no page is left behind", not os.path.exists(out))


def main():
    p = tacho("view", "--html", "-")
    if "built without its page" in p.stderr:
        skip("serve", "this tacho was built without its page")
        return 0
    with tempfile.TemporaryDirectory(prefix="tacho-serve-") as tmp:
        with Site("view", TRACE) as site:
            check("the address is printed, with a secret", site.secret, site.address)
            test_files(site)
            test_ranges(site)
            test_strangers(site)
            test_names_twice(site)
            test_encodings(site)
            test_methods(site)
            test_headers(site)
            test_huge(site)
            test_stuck(site)
            test_many(site, "trace", bytes_of(TRACE))
            code, err = site.end()
            check("Ctrl-C ends it", code == 0 and "until Ctrl-C" in err, (code, err))
        folder = make_folder(tmp)
        with Site("serve", "--dir", folder) as site:
            test_folder(site, folder)
            test_following(site, folder)
            check("the folder's server ends, too", site.end()[0] == 0)
        test_closed(folder)
        with Site("view", folder) as site:
            check("tacho view of a folder is the same", "good.tacho" in listed(site))
        test_imported_folder(tmp)
        test_empty_folder(tmp)
        test_html(tmp)
        test_refusals(tmp)
    return status()


if __name__ == "__main__":
    sys.exit(main())
