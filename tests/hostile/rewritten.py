#!/usr/bin/env python3
"""Boxes whose numbers, control area and length change at random under root's agent."""
import os
import random
import time

from libhostile import (MALLORY, VICTIM, attack, box_of, check, crash_as, end_agent, files_of, fresh,
                        main, record_as, start_agent, until, usage)

SECONDS = 300 if os.environ.get("TACHO_SOAK") == "1" else 15
OPTIONS = (["--on", "poll>1ms", "--on", "stall>10ms", "--cooldown", "10ms", "--keep", "5"],
           ["--continuous", "--segment-time", "1s"])


def round_of(tmp, agent, seed):
    """Processes whose boxes become noise, and end."""
    attackers, owners = [], []
    for n, what in enumerate(("noise", "noise", "cut", "triggers")):
        p = record_as(MALLORY, tmp, *["turns:20", "poll:3"] * 50, "park:600000")
        box = box_of(p)
        until(lambda: box in files_of(agent.pid) or agent.poll() is not None)
        attackers.append(attack(MALLORY, what, box, seed + n))
        owners.append(p)
    time.sleep(1)  # for as long it is rewritten; nothing is waited for
    for p in owners + attackers:
        p.kill()
        p.wait()


def test_rewritten(tmp):
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    for options in OPTIONS:
        place = fresh(tmp, f"rewritten-{len(options)}")
        agent = start_agent("-o", place, *options)
        end = time.monotonic() + SECONDS / len(OPTIONS)
        round_of(tmp, agent, seed)
        before = usage(agent.pid)
        while time.monotonic() < end and agent.poll() is None:
            seed += 10
            round_of(tmp, agent, seed)
        check(f"rewritten, {options[0]}: the agent lives", agent.poll() is None, agent.returncode)
        if options[0] == "--on":
            check("rewritten: another's window is saved", crash_as(VICTIM, tmp, agent, place), "")
        after = usage(agent.pid) if agent.poll() is None else before
        check(f"rewritten, {options[0]}: memory, descriptors and threads stay as they are",
              after[0] < before[0] + (64 << 10) and after[1] <= before[1] + 16 and
              after[2] <= before[2] + 1, (before, after))
        status = end_agent(agent)
        check(f"rewritten, {options[0]}: the agent ends when it is told to", status[0] == 0, status)


if __name__ == "__main__":
    main(test_rewritten)
