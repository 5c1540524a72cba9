#!/usr/bin/env python3
"""The siege: one user attacks root's agent with everything at once, while a program of another crashes
again and again. Every window of the other's is saved, and the agent stays as it is.

    TACHO_SIEGE_SECONDS=600 siege.py     for so long; else 40 s, ten minutes in a soak
"""
import contextlib
import os
import random
import shutil
import sys
import threading
import time

from libhostile import (MALLORY, STATE_OFF, VICTIM, attack, attacker, box_of, check, end_agent, files_of,
                        forge, fresh, main, programs, record_as, saved, start_agent, until, usage)
from libevil import build, exploding, own

SOAK = os.environ.get("TACHO_SOAK") == "1"
SECONDS = float(os.environ.get("TACHO_SIEGE_SECONDS") or (600 if SOAK else 40))
EVERY = 10 if SECONDS > 60 else 5  # seconds between crashes


class Attack(threading.Thread):
    """One kind of attack, round after round, until the end."""

    def __init__(self, function, tmp, agent):
        super().__init__(daemon=True)
        self.function, self.arguments, self.rounds, self.error = function, (tmp, agent), 0, None
        self.end = threading.Event()

    def run(self):
        while not self.end.is_set() and not self.error:
            try:
                self.function(*self.arguments, self)
                self.rounds += 1
            except Exception as e:
                self.error = e


def stop(*processes):
    for p in processes:
        p.kill()
        p.wait()


def flood(tmp, agent, thread):
    """Very many boxes and notes of one process, deleted and made again."""
    p = record_as(MALLORY, tmp, "turns:20", "park:600000")
    own_box = box_of(p)
    made = []
    for state in (None, STATE_OFF):
        first = forge(own_box, p.pid, 100000 if state else 100, MALLORY, 1 << 16, state=state)
        with open(first, "rb") as f:
            data = f.read(8192)
        stem, number = first.removesuffix(".box").rsplit("-", 1)
        made += [first] + [f"{stem}-{int(number) + n}.box" for n in range(1, 5000)]
        for path in made[-4999:]:
            with open(path, "wb") as f:
                f.write(data)
            os.chown(path, MALLORY, MALLORY)
    thread.end.wait(2)
    stop(p)
    for path in made:
        with contextlib.suppress(FileNotFoundError):  # the agent deletes some, too
            os.unlink(path)


def folders(tmp, agent, thread):
    """Folders in the names of both."""
    made = [f"/dev/shm/tacho-{user}.{n}" for user in (VICTIM, MALLORY) for n in range(1000)]
    for path in made:
        os.makedirs(path, 0o700, exist_ok=True)
        os.chown(path, MALLORY, MALLORY)
    thread.end.wait(3)
    for path in made:
        shutil.rmtree(path, ignore_errors=True)


def rewrite(tmp, agent, thread):
    """Boxes that are noise, cut short, and full of triggers, of processes that then crash."""
    owners, attackers = [], []
    for what in ("noise", "cut", "triggers"):
        p = record_as(MALLORY, tmp, "turns:20", "park:600000")
        attackers.append(attack(MALLORY, what, box_of(p), random.randrange(1 << 30)))
        owners.append(p)
    thread.end.wait(2)
    stop(*owners, *attackers)


def names(tmp, agent, thread):
    """Programs with names that explode crash and want windows."""
    folder = os.path.join(tmp, "siege-names")
    done = os.path.join(folder, "done")
    if os.path.exists(done):
        os.unlink(done)
    p = record_as(MALLORY, tmp, exploding(), done, program=os.path.join(folder, "evil"))
    box = box_of(p)
    until(lambda: os.path.exists(done) or thread.end.is_set())
    until(lambda: box in files_of(agent.pid) or thread.end.is_set(), 10)
    stop(p)
    if os.path.exists(f"/tmp/perf-{p.pid}.map"):
        os.unlink(f"/tmp/perf-{p.pid}.map")


def windows(tmp, agent, thread):
    """Programs that ask for windows and abort."""
    some = [record_as(MALLORY, tmp, "turns:20", "trigger:mine", "turns:200", "abort")
            for _ in range(4)]
    for p in some:
        p.wait()


def besiege(tmp, agent, place, attacks):
    """(crashes, windows of them that were saved, usage at begin and end)"""
    crashes, count, before = [], 0, None
    began = time.monotonic()
    while time.monotonic() - began < SECONDS and agent.poll() is None:
        victim = record_as(VICTIM, tmp, "turns:20", "park:600000")
        box_of(victim)
        time.sleep(EVERY)  # what it lives for; whether the agent has found it by then or not
        victim.kill()
        victim.wait()
        crashes.append(victim)
        count = len(crashes)
        # All attacks have begun, and the agent has what it takes to follow them.
        if not before and time.monotonic() - began > SECONDS / 4:
            before = usage(agent.pid)
        print(f"{time.monotonic() - began:.0f} s: {count} crashes, agent: {usage(agent.pid)}",
              file=sys.stderr, flush=True)
    after = usage(agent.pid) if agent.poll() is None else before
    for attacking in attacks:
        attacking.end.set()
    return count, [p for p in crashes if saved(place, p)], before, after


def test_siege(tmp):
    place = fresh(tmp, "siege")
    build(own(tmp, "siege-names"), exploding())
    agent = start_agent("-q", "-o", place, "--on", "poll>10s", "--cooldown", "1s", "--after", "0s",
                        "--max-bytes", "100M")
    programs(tmp)
    attacker()
    begin = usage(agent.pid)
    attacks = [Attack(f, tmp, agent) for f in (flood, folders, rewrite, names, windows)]
    for attacking in attacks:
        attacking.start()
    try:
        crashes, kept, before, after = besiege(tmp, agent, place, attacks)
    finally:
        for attacking in attacks:
            attacking.end.set()
            attacking.join(120)
    print(f"{SECONDS:.0f} s: {len(kept)} windows of {crashes} crashes; "
          "memory in KiB, descriptors, threads, CPU in s: "
          f"at the begin {begin}, under attack {before}, in the end {after}; rounds: " +
          ", ".join(f"{a.function.__name__} {a.rounds}" for a in attacks))
    for attacking in attacks:
        check(f"siege: {attacking.function.__name__} attacked", attacking.rounds > 0 and
              not attacking.error, repr(attacking.error))
    check("siege: every window of the other user is saved", crashes and len(kept) == crashes,
          (crashes, len(kept)))
    check("siege: memory stays", after[0] < before[0] + (48 << 10), (before, after))
    check("siege: descriptors stay", after[1] <= before[1] + 64, (before, after))
    check("siege: threads stay", after[2] <= before[2] + 2, (before, after))
    status = end_agent(agent)
    check("siege: the agent ends when it is told to", status[0] == 0, status)


if __name__ == "__main__":
    main(test_siege)
