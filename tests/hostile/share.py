#!/usr/bin/env python3
"""What all users share of root's agent: its list, its folders, its attention. One takes what there is,
and the windows of another are saved."""
import glob
import os
import shutil

from libhostile import (MALLORY, STATE_OFF, VICTIM, attack, box_of, check, crash_as, end_agent,
                        files_of, forge, fresh, main, record_as, start_agent, until, usage)

NOTES = 4000  # at a time; the agent remembers 16,384 boxes of all
FOLDERS = 5000


def test_notes(tmp):
    """Notes of a process that says again and again that it could not record."""
    place = fresh(tmp, "notes")
    agent = start_agent("-o", place)
    mallory = record_as(MALLORY, tmp, "turns:50", "park:600000")
    own = box_of(mallory)
    until(lambda: own in files_of(agent.pid))
    before = usage(agent.pid)
    for turn in range(5):
        note = forge(own, mallory.pid, 1000 + turn * NOTES, MALLORY, 4096, state=STATE_OFF)
        with open(note, "rb") as f:
            data = f.read()
        stem = note.rsplit("-", 1)[0]
        made = [note] + [f"{stem}-{1001 + turn * NOTES + n}.box" for n in range(NOTES - 1)]
        for path in made[1:]:
            with open(path, "wb") as f:
                f.write(data)
            os.chown(path, MALLORY, MALLORY)
        check(f"notes {turn}: another's window is saved", crash_as(VICTIM, tmp, agent, place),
              usage(agent.pid))
        for path in made:
            os.unlink(path)
    grown = usage(agent.pid)[0] - before[0]
    check("notes: the agent remembers few", grown < 16 << 10, grown)
    status = end_agent(agent)
    check("notes: the agent ends when it is told to", status[0] == 0, status)


def watches_of(pid):
    """Folders that it is told of."""
    count = 0
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        try:
            with open(path) as f:
                count += sum(line.startswith("inotify ") for line in f)
        except OSError:
            pass
    return count


def test_folders(tmp):
    """Folders in the names of others, and very many of one's own."""
    place = fresh(tmp, "folders")
    agent = start_agent("-o", place)
    check("folders: before", crash_as(VICTIM, tmp, agent, place), "")
    before = watches_of(agent.pid), usage(agent.pid)
    made = [f"/dev/shm/tacho-{VICTIM}.{n}" for n in range(FOLDERS)] + \
        [f"/dev/shm/tacho-{MALLORY}.{n}" for n in range(FOLDERS)]
    try:
        for path in made:
            os.mkdir(path, 0o700)
            os.chown(path, MALLORY, MALLORY)
        for turn in range(2):
            check(f"folders {turn}: another's window is saved",
                  crash_as(VICTIM, tmp, agent, place), usage(agent.pid))
        watches = watches_of(agent.pid) - before[0]
        check("folders: few of one user are watched", 0 < watches <= 32, watches)
        grown = usage(agent.pid)[0] - before[1][0]
        check("folders: the agent remembers few", grown < 8 << 10, grown)
    finally:
        for path in made:
            shutil.rmtree(path, ignore_errors=True)
    status = end_agent(agent)
    check("folders: the agent ends when it is told to", status[0] == 0, status)


def test_triggers(tmp):
    """Triggers that come faster than they are read, and calls without end."""
    place = fresh(tmp, "triggers")
    agent = start_agent("-o", place, "--on", "poll>10s")
    mallory = record_as(MALLORY, tmp, "turns:50", "park:600000")
    own = box_of(mallory)
    until(lambda: own in files_of(agent.pid))
    attack(MALLORY, "triggers", own)
    for turn in range(3):
        check(f"triggers {turn}: another's window is saved", crash_as(VICTIM, tmp, agent, place),
              usage(agent.pid))
    status = end_agent(agent)
    check("triggers: the agent ends when it is told to", status[0] == 0, status)


if __name__ == "__main__":
    main(test_notes, test_folders, test_triggers)
