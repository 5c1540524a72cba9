#!/usr/bin/env python3
"""Debian's nginx with two workers under wrk, in the foreground and as a daemon, recorded: each
worker has a trace of its own, and what was ready is what its own status explains."""
import os
import re
import signal
import sys
import urllib.request

sys.dont_write_bytecode = True
from libdaemons import (ROOT, Daemon, can_trace, check, connect, free_port, have,  # noqa: E402
                        run, skip, until, wrk)
from librecorded import ended  # noqa: E402

CONFIGURATION = """
worker_processes 2; error_log {folder}/error.log; pid {folder}/pid; {more}
events {{ worker_connections 64; }}
http {{ access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  keepalive_requests 1000000;
  server {{ listen 127.0.0.1:{port};
    location / {{ return 200 ok; }}
    location /status {{ stub_status; }} }} }}
"""
SINGLE = 50  # requests on connections of their own


def has_ended(pid):
    """Also while nobody has asked for its status."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rpartition(") ")[2][0] in "ZX"
    except OSError:
        return True


def ask(port, path="/"):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
        return answer.read().decode()


def serve(name, more, strace=False):
    with Daemon(strace) as daemon:
        port = free_port()
        background = "daemon off" not in more
        # Workers are another user's if root started them: their boxes are in that user's folder.
        user = "user www-data;" if ROOT else ""
        conf = CONFIGURATION.format(folder=daemon.folder, port=port, more=f"{more} {user}")
        daemon.start("nginx", "-c", daemon.file("conf", conf), "-p", daemon.folder,
                     own_boxes=not ROOT, quiet=not background)
        connect(port).close()
        right = sum(ask(port) == "ok" for _ in range(SINGLE))
        answers, wrong = wrk(port, seconds=1)
        # All connections of wrk have been seen to end: this one alone is left.
        status = until(lambda: (s := ask(port, "/status")).startswith("Active connections: 1 ")
                       and s) or ask(port, "/status")
        runs = daemon.outer.poll() is None
        if background:
            # What is sent to tacho would reach the command alone, which has ended.
            with open(os.path.join(daemon.folder, "pid")) as f:
                daemon.process = int(f.read())
        end = daemon.end(signal.SIGQUIT)  # in order
        check(f"{name}: answers are right", right == SINGLE and not wrong and answers > 100,
              f"{right}, {answers}, {wrong}")
        accepts, handled, requests = (int(n) for n in re.search(
            r"(\d+) (\d+) (\d+) \n", status).groups())
        check(f"{name}: it counted them", accepts == handled and requests >= answers + SINGLE,
              f"{status} for {answers}")
        # Its master, which is not recorded, ends after the workers that tacho waits for.
        gone = until(lambda: has_ended(daemon.process))
        check(f"{name}: tacho waits for it", runs and gone,
              f"tacho is there {runs}, the master has ended {gone}")
        if background:
            check(f"{name}: a daemon is told", "still running and recorded" in daemon.log(),
                  daemon.log())
        found = ended(name, daemon, end, traces=2)
        verify(name, found, requests, accepts, daemon if strace else None)
        check(f"{name}: its port is free", free(port))


def free(port):
    try:
        connect(port, 0).close()
    except OSError:
        return True
    return False


def verify(name, found, requests, accepts, daemon):
    for number, recorded in enumerate(found):
        worker = f"{name}, worker {number}"
        recorded.whole(worker, "waits")
        check(f"{worker}: one loop, with a name", len(recorded.loops) == 1 and
              all(n.startswith("nginx epoll ") for n, _ in recorded.loops), recorded.loops)
        check(f"{worker}: what the waits returned is there one by one",
              recorded.listed == recorded.ready, f"{recorded.listed} of {recorded.ready}")
        if daemon:
            recorded.same_waits(worker, daemon)
    # One for each connection, each request and each end. A request that comes while nginx looks
    # at its connection anyway needs none; that is rare.
    ready = sum(r.events["in"] for r in found)
    check(f"{name}: ready for connections and requests",
          0.95 * requests <= ready <= requests + 3 * accepts + 50,
          f"{ready} ready for {accepts} connections, {requests} requests")
    if not daemon:
        busiest = max(found, key=lambda r: r.samples, default=None)
        if busiest:
            busiest.stacks(name, "ngx_process_events_and_timers")


def main():
    if not have("nginx", "nginx", "wrk"):
        return
    serve("nginx", "daemon off;")
    serve("nginx as a daemon", "")
    if not ROOT:
        skip("nginx: workers of another user", "this is not root")
    if can_trace("nginx counted by strace"):
        serve("nginx counted by strace", "daemon off;", strace=True)


run(main)
