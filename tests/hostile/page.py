#!/usr/bin/env python3
"""The page's server: what another user of the host sees of its token, and of its folder."""
import os
import re
import signal
import subprocess

from libhostile import (BIN, MALLORY, VICTIM, box_of, check, environment, fresh, main, readable,
                        record_as, said, skip, start_as, started, tacho, until)
from libserve import Site

BROWSER = """#!/bin/sh
tr '\\0' ' ' < /proc/$$/cmdline > "$SEEN/cmdline"
tr '\\0' '\\n' < /proc/$$/environ > "$SEEN/environ"
cp "$1" "$SEEN/way"
stat -c '%a %u' "$1" > "$SEEN/mode"
touch "$SEEN/done"
"""


def read(folder, name):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return ""
    with open(path) as f:
        return f.read()


def test_token(tmp):
    """A browser is started as on a desktop: its arguments are for all to read."""
    seen, place = fresh(tmp, "seen"), fresh(tmp, "bin")
    os.chmod(place, 0o755)
    with open(os.path.join(place, "xdg-open"), "w") as f:
        f.write(BROWSER)
    os.chmod(os.path.join(place, "xdg-open"), 0o755)
    os.chown(seen, VICTIM, VICTIM)
    shown = fresh(tmp, "shown")
    os.chmod(shown, 0o755)
    site = start_as(VICTIM, [readable(BIN), "view", shown], stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, text=True, env={
                        "PATH": place + ":" + os.environ["PATH"], "DISPLAY": ":0", "SEEN": seen,
                        "XDG_RUNTIME_DIR": seen})
    address = site.stdout.readline().strip()
    secret = address.split("/")[3] if address.count("/") == 4 else ""
    check("token: the page is there", re.fullmatch("[0-9a-f]{32}", secret), address)
    check("token: a browser is started", until(lambda: os.path.exists(os.path.join(seen, "done"))),
          os.listdir(seen))
    for name in ("cmdline", "environ"):
        check(f"token: it is not in the {name} of the browser", secret not in read(seen, name),
              read(seen, name))
        with open(f"/proc/{site.pid}/{name}", "rb") as f:
            check(f"token: it is not in the {name} of the server", secret.encode() not in f.read(), "")
    check("token: the file leads there", address in read(seen, "way"), read(seen, "way"))
    check("token: the file is its user's alone", read(seen, "mode").split() == ["600", str(VICTIM)],
          read(seen, "mode"))
    site.send_signal(signal.SIGINT)
    site.communicate()
    left = [name for name in os.listdir(seen) if name.startswith("tacho-view-")]
    check("token: the file is deleted in the end", not left, left)


def test_folder(tmp):
    """Root serves a folder into which a user can write: links, pipes, and names that lead out."""
    p = record_as(MALLORY, tmp, "turns:50", "park:60000")
    folder, outside = fresh(tmp, "folder"), fresh(tmp, "outside")
    secret = os.path.join(outside, "secret.tacho")
    for path in (secret, os.path.join(folder, "good.tacho")):
        done = tacho("dump", box_of(p), "-o", path)
        check("a trace is there", done.returncode == 0, said(done))
    os.symlink(secret, os.path.join(folder, "link.tacho"))
    os.symlink(outside, os.path.join(folder, "below.tacho"))
    os.mkfifo(os.path.join(folder, "pipe.tacho"))
    for name in os.listdir(folder):
        os.chown(os.path.join(folder, name), MALLORY, MALLORY, follow_symlinks=False)
    with Site("serve", "--dir", folder) as site:
        started.append(site.process)
        check("folder: its trace is served", site.ask("traces/good.tacho").status == 200, "")
        for name in ("link.tacho", "pipe.tacho", "below.tacho", "below.tacho/secret.tacho",
                     "../outside/secret.tacho", "..%2foutside%2fsecret.tacho",
                     "%2e%2e/outside/secret.tacho", secret, secret.replace("/", "%2f")):
            answer = site.ask(f"traces/{name}")
            check(f"folder: {os.path.basename(name)} after {len(name)} bytes is not served",
                  answer.status in (400, 404), answer)
        listed = until(lambda: site.json("list").get("traces"))
        check("folder: only the trace is listed", len(listed or []) == 1, listed)
        check("folder: without the token nothing is", site.ask("list", secret="0" * 32).status == 403 and
              site.ask("list", secret="").status == 403, "")
        check("folder: the server lives", site.lives(), "")


if __name__ == "__main__":
    if "without" in tacho("view", "--no-browser", "/nonexistent").stderr:
        skip("page", "this tacho was built without its page")
    else:
        main(test_token, test_folder)
