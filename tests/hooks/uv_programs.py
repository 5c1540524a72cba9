#!/usr/bin/env python3
"""Debian's programs that use libuv, unchanged, under the hooks: they work, their loops are seen at
the level of callbacks, and the callbacks are as many as what they served.

The packages are fetched with apt into a folder of this test's own and run from there.
"""
import http.client
import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from libuv_hooks import (HERE, Apt, Recorded, Unavailable, box_folder, boxes_in,  # noqa: E402
                         check, finish, hooked, run, skip)

PACKAGES = """nodejs libnode108 libc-ares2 libicu72 libnghttp2-14 libbrotli1 node-acorn
    node-cjs-module-lexer node-undici node-busboy
    bind9 bind9-libs libjson-c5 libmaxminddb0 liblmdb0 libprotobuf-c1 libfstrm0 libjemalloc2
    python3-uvloop
    neovim neovim-runtime libluajit-5.1-2 libmsgpackc2 libtermkey1 libunibilium4 libvterm0
    lua-luv libtree-sitter0""".split()
LIBRARIES = "usr/lib/x86_64-linux-gnu"
CONNECTIONS, REQUESTS = 10, 60


def environment(root, boxes):
    return hooked(boxes, {"LD_LIBRARY_PATH": f"{root}/{LIBRARIES}", "TACHO_EXCLUDE": "sh,unshare"})


def the_box(name, folder, module, balanced=True):
    """Of the only process that left one."""
    boxes = boxes_in(folder)
    if not check(f"{name}: one box", len(boxes) == 1, boxes):
        return None
    recorded = Recorded(boxes[0], module)
    recorded.whole(name, balanced)
    return recorded


def started(argv, env, **more):
    return subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, text=True, **more)


def ended(process):
    try:
        return process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


# Node ----------------------------------------------------------------------------------


def ask(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path)
    answer = connection.getresponse().read()
    connection.close()
    return answer


def node_load(port):
    kinds = ("/", "/file", "/key", "/timer")
    for _ in range(CONNECTIONS):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        for i in range(REQUESTS):
            connection.request("GET", kinds[i % 4])
            connection.getresponse().read()
        connection.close()
    return json.loads(ask(port, "/stop"))


def node(root):
    # It wants some of its scripts in /usr/share: there, for this process alone.
    overlay = (f"mount -t overlay overlay -o lowerdir={root}/usr/share:/usr/share /usr/share && "
               f"exec {root}/usr/bin/node {HERE}/uv_server.js")
    space = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-r", "-m"]
    if run(space + ["sh", "-c", overlay.split("&&")[0]], dict(os.environ)).returncode:
        skip("node", "no file system can be mounted here")
        return
    with box_folder() as boxes:
        process = started(space + ["sh", "-c", overlay], environment(root, boxes),
                          stdout=subprocess.PIPE)
        line = process.stdout.readline()
        if not check("node: it serves", line.strip().isdigit(), line):
            process.kill()
            process.wait()
            return
        served = node_load(int(line))
        check("node: it ends in order", ended(process) == 0, process.returncode)
        process.stdout.close()
        # The last poll ends with the process: the server calls exit in it.
        r = the_box("node", boxes, "libnode.so.108", balanced=False)
    if r:
        node_counts(r, served)


def node_counts(r, served):
    asked = CONNECTIONS * REQUESTS
    check("node: it served all", served["served"] == asked + 1, served)
    # One read for each request, and one for the end of each connection.
    check("node: reads", r.polls["uv_tcp read"] == asked + 1 + CONNECTIONS + 1, r.polls)
    check("node: connections", r.polls["uv_tcp connection"] == CONNECTIONS + 1, r.polls)
    check("node: files", all(r.polls[f"uv_fs_{op}"] == r.submits[f"uv_fs_{op}"] == served["files"]
                             for op in ("open", "fstat", "read", "close")), r.polls)
    check("node: pbkdf2 in the pool", r.polls["uv_after_work"] == r.begins["uv_work"] ==
          r.ends == served["keys"], f"{r.polls} {r.begins} {r.ends}")
    # Of node's own one or more besides: it has one uv_timer for all of its timers.
    check("node: timers", r.polls["uv_timer"] >= served["timers"], r.polls)


# named ---------------------------------------------------------------------------------

NAMED = """options { directory "%(folder)s"; listen-on port %(port)d { 127.0.0.1; };
  listen-on-v6 { none; }; pid-file none; recursion no; dnssec-validation no;
  session-keyfile "%(folder)s/key"; notify no; };
controls { };
zone "t.test" { type primary; file "%(folder)s/zone"; };
"""
ZONE = "$TTL 60\n@ IN SOA a. b. 1 1 1 1 1\n@ IN NS ns\nns IN A 127.0.0.1\nw IN A 127.0.0.9\n"


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def query(s, port, number):
    s.sendto(struct.pack(">HHHHHH", number, 0x100, 1, 0, 0, 0) +
             b"\x01w\x01t\x04test\x00\x00\x01\x00\x01", ("127.0.0.1", port))
    return b"\x7f\x00\x00\x09" in s.recv(512)


def named_load(port):
    answers = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(0.2)
        for i in range(100):  # until it is there
            try:
                answers += query(s, port, i)
                break
            except OSError:
                time.sleep(0.1)
        s.settimeout(10)
        for i in range(500):
            answers += query(s, port, i)
    return answers


def named(root):
    # It needs more libraries than are unpacked beside it.
    alone = subprocess.run([f"{root}/usr/sbin/named", "-V"], capture_output=True, timeout=30,
                           env={**os.environ, "LD_LIBRARY_PATH": f"{root}/{LIBRARIES}"})
    if alone.returncode:
        skip("named", "libraries that it needs are not installed")
        return
    with tempfile.TemporaryDirectory(prefix="tacho-uv-") as folder, box_folder() as boxes:
        port = free_port()
        with open(f"{folder}/zone", "w", encoding="ascii") as f:
            f.write(ZONE)
        with open(f"{folder}/conf", "w", encoding="ascii") as f:
            f.write(NAMED % {"folder": folder, "port": port})
        with open(f"{folder}/log", "w", encoding="ascii") as log:
            process = started([f"{root}/usr/sbin/named", "-g", "-c", f"{folder}/conf"],
                              environment(root, boxes), stdout=log, stderr=log)
        try:
            answers = named_load(port)
        except OSError as problem:
            answers = str(problem)
        process.terminate()
        with open(f"{folder}/log", encoding="utf-8", errors="replace") as log:
            check("named: it answers", answers == 501, f"{answers} {log.read()[-300:]}")
        check("named: it ends in order", ended(process) == 0, process.returncode)
        r = the_box("named", boxes, "Debian.so")
    if r:
        check("named: an answer is a uv_udp_send", r.polls["uv_udp_send"] >= 501, r.polls)
        check("named: a question is a read", r.polls["uv_udp read"] >= 501, r.polls)
        check("named: it has several loops", len(r.loops) >= 2, r.loops)


# uvloop and neovim ---------------------------------------------------------------------

UVLOOP = """
import sys; sys.path.insert(0, sys.argv[1])
import asyncio, uvloop
uvloop.install()
echoes = 0
async def serve(reader, writer):
    global echoes
    while data := await reader.read(100):
        echoes += 1
        writer.write(data)
        await writer.drain()
    writer.close()
async def ask(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for i in range(50):
        writer.write(b"question")
        await writer.drain()
        await reader.read(100)
    writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await asyncio.gather(*[ask(port) for i in range(10)])
    await asyncio.sleep(0.01)
    child = await asyncio.create_subprocess_exec("/bin/sh", "-c", "exit 3")
    print("child", await child.wait())
    server.close()
asyncio.run(main())
print("echoes", echoes)
"""


def uvloop(root):
    """It brings libuv in by dlopen, where only those who depend on it see it."""
    with box_folder() as boxes:
        p = run(["/usr/bin/python3", "-c", UVLOOP, f"{root}/usr/lib/python3/dist-packages"],
                environment(root, boxes))
        check("uvloop: it works", p.stdout == "child 3\nechoes 500\n", p.stdout + p.stderr)
        r = the_box("uvloop", boxes, "x86_64-linux-gnu.so")
    if r:
        check("uvloop: reads", r.polls["uv_tcp read"] >= 1000, r.polls)
        check("uvloop: connections", r.polls["uv_tcp connection"] == 10, r.polls)
        check("uvloop: the child", r.polls["uv_process"] == 1, r.polls)


NVIM = """
local ticks, stats = 0, 0
local t = vim.loop.new_timer()
t:start(1, 2, function() ticks = ticks + 1; if ticks == 10 then t:stop(); t:close() end end)
for i = 1, 20 do vim.loop.fs_stat('/etc/passwd', function() stats = stats + 1 end) end
vim.wait(5000, function() return ticks == 10 and stats == 20 end)
io.stdout:write('ticks ' .. ticks .. ' stats ' .. stats .. ' ' .. vim.fn.system('echo said'))
"""


def nvim(root):
    with tempfile.TemporaryDirectory(prefix="tacho-uv-") as folder, box_folder() as boxes:
        with open(f"{folder}/test.lua", "w", encoding="ascii") as f:
            f.write(NVIM)
        env = dict(environment(root, boxes), VIMRUNTIME=f"{root}/usr/share/nvim/runtime",
                   HOME=folder)
        p = run([f"{root}/usr/bin/nvim", "--headless", "-u", "NONE", "-i", "NONE",
                 "-c", f"luafile {folder}/test.lua", "-c", "qa!"], env)
        check("nvim: it works", re.search(r"ticks 10 stats 20 said", p.stdout),
              p.stdout + p.stderr)
        r = the_box("nvim", boxes, "luv.so.0.0.0")
    if r:
        check("nvim: timers", r.polls["uv_timer"] == 10, r.polls)
        check("nvim: files", r.polls["uv_fs_stat"] == r.submits["uv_fs_stat"] == 20, r.polls)


def main():
    if os.uname().machine != "x86_64":
        skip("programs with libuv", "the packages are fetched for x86-64 alone")
        return
    with tempfile.TemporaryDirectory(prefix="tacho-uv-") as work:
        try:
            Apt(f"{work}/apt").unpack(PACKAGES, f"{work}/root")
        except Unavailable as reason:
            skip("programs with libuv", reason)
            return
        for program in (node, named, uvloop, nvim):
            program(f"{work}/root")


main()
finish()
