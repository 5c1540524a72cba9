#!/usr/bin/env python3
"""One user fills the agent's folders, while another's program crashes."""
import os

from libhostile import (MALLORY, VICTIM, box_of, check, files_of, finish, forge, fresh, main,
                        record_as, said, start_agent, tacho, traces, until)

BOXES = 20000


def memory_of(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(next(line for line in f if line.startswith("VmRSS")).split()[1])


def threads_of(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def test_flood(tmp):
    place = fresh(tmp, "flood")
    agent = start_agent("-o", place)
    mallory = record_as(MALLORY, tmp, "turns:50", "park:600000")
    own = box_of(mallory)
    until(lambda: own in files_of(agent.pid))
    before = memory_of(agent.pid)
    folder = os.path.dirname(own)
    first = forge(own, mallory.pid, 100, MALLORY, 1 << 16)
    with open(first, "rb") as f:
        data = f.read()
    stem = first.rsplit("-", 1)[0]
    for number in range(BOXES):
        with open(f"{stem}-{101 + number}.box", "wb") as f:
            f.write(data[:8192])
        os.chown(f"{stem}-{101 + number}.box", MALLORY, MALLORY)
    for turn in range(3):
        victim = record_as(VICTIM, tmp, "turns:20", "park:60000")
        box = box_of(victim)
        check(f"flood {turn}: another's box is followed",
              until(lambda: box in files_of(agent.pid)), len(files_of(agent.pid)))
        victim.kill()
        victim.wait()
        check(f"flood {turn}: another's window is saved",
              until(lambda: [t for t in traces(place) if f"-{victim.pid}-" in t]), traces(place))
    used = len(files_of(agent.pid)), threads_of(agent.pid), memory_of(agent.pid) - before
    check("flood: descriptors, threads and memory stay few", used[0] < 64 and used[1] <= 2 and
          used[2] < 32 << 10, used)
    check("flood: the boxes are there", len(os.listdir(folder)) > BOXES, len(os.listdir(folder)))
    listed = tacho("ls", "--all")
    check("flood: few are listed", f"user {MALLORY} has more than 4096 boxes" in listed.stderr and
          len(listed.stdout.splitlines()) < BOXES, said(listed)[-400:])
    mallory.kill()
    mallory.wait()
    agent.terminate()
    status = finish(agent)
    check("flood: the agent ends when it is told to", status[0] == 0, status)


if __name__ == "__main__":
    main(test_flood)
