#!/usr/bin/env python3
"""Debian's neovim, whose luv gives libuv to scripts, recorded: timers, files and a child.

Where it is not installed, its packages are fetched with apt into a folder of this test's own and
run from there."""
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from libapt import Apt, Unavailable  # noqa: E402
from libdaemons import Daemon, check, program, run, skip  # noqa: E402
from librecorded import ended  # noqa: E402

PACKAGES = """neovim neovim-runtime libluajit-5.1-2 libmsgpackc2 libtermkey1 libunibilium4 libvterm0
    lua-luv libtree-sitter0""".split()
SCRIPT = """
local ticks, stats = 0, 0
local t = vim.loop.new_timer()
t:start(1, 2, function() ticks = ticks + 1; if ticks == 10 then t:stop(); t:close() end end)
for i = 1, 20 do vim.loop.fs_stat('/etc/passwd', function() stats = stats + 1 end) end
vim.wait(30000, function() return ticks == 10 and stats == 20 end)
io.stdout:write('ticks ' .. ticks .. ' stats ' .. stats .. ' ' .. vim.fn.system('echo said'))
"""


def serve(nvim, env):
    with Daemon() as daemon:
        script = daemon.file("test.lua", SCRIPT)
        daemon.start(nvim, "--headless", "-u", "NONE", "-i", "NONE", "-c", f"luafile {script}",
                     "-c", "qa!", env=dict(env, HOME=daemon.folder, TACHO_EXCLUDE="sh"))
        status = daemon.end(send=False)
        check("nvim: it works", "ticks 10 stats 20 said" in daemon.said(),
              daemon.said() + daemon.log())
        for recorded in ended("nvim", daemon, status, mine="luv.so.0.0.0"):
            recorded.whole("nvim", "callbacks", "uv loop", explained=recorded.DEEP)
            recorded.functions("nvim")
            check("nvim: timers", recorded.polls["uv_timer"] == 10, recorded.polls)
            check("nvim: files", recorded.polls["uv_fs_stat"] == recorded.submits["uv_fs_stat"] ==
                  20, recorded.polls)


def main():
    installed = program("nvim")
    if installed:
        serve(installed, {})
        return
    if os.uname().machine != "x86_64":
        skip("nvim", "the packages are fetched for x86-64 alone")
        return
    with tempfile.TemporaryDirectory(prefix="tacho-daemon-") as work:
        root = f"{work}/root"
        try:
            Apt(f"{work}/apt").unpack(PACKAGES, root)
        except Unavailable as reason:
            skip("nvim", f"it is not installed and cannot be fetched: {reason}")
            return
        env = {"LD_LIBRARY_PATH": f"{root}/usr/lib/x86_64-linux-gnu",
               "VIMRUNTIME": f"{root}/usr/share/nvim/runtime"}
        if subprocess.run([f"{root}/usr/bin/nvim", "--version"], capture_output=True,
                          env=dict(os.environ, **env), timeout=60).returncode:
            skip("nvim", "libraries that it needs are not installed")
            return
        serve(f"{root}/usr/bin/nvim", env)


run(main)
