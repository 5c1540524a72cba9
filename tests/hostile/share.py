#!/usr/bin/env python3
"""What all users share of root's agent: its list, its folders, its attention. One takes what there is,
and the windows of another are saved."""
import glob
import os
import shutil
import subprocess
import tempfile
import threading
import time

from libhostile import (MALLORY, STATE_OFF, VICTIM, attack, box_of, check, crash_as, end_agent,
                        files_of, forge, fresh, main, record_as, start_agent, tacho, until, usage)

NOTES = 4000  # at a time, of which all are listed; the agent remembers 16,384 boxes of all
FOLDERS = 5000


def test_notes(tmp):
    """Notes of a process that says again and again that it could not record."""
    place = fresh(tmp, "notes")
    agent = start_agent("-o", place)
    mallory = record_as(MALLORY, tmp, "turns:50", "park:600000")
    own = box_of(mallory)
    until(lambda: own in files_of(agent.pid))
    before = usage(agent.pid)
    for turn in range(6):
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
    grown = usage(agent.pid)[0] - before[0]
    check("notes: the agent remembers few", grown < 16 << 10, grown)
    status = end_agent(agent)
    check("notes: the agent ends when it is told to", status[0] == 0, status)


def prefer(agent, attacker=None):
    """What else runs on the machine neither keeps an agent from its work nor an attacker."""
    os.setpriority(os.PRIO_PROCESS, agent.pid, -15)
    try:
        if attacker:
            os.sched_setscheduler(attacker.pid, os.SCHED_RR, os.sched_param(1))
    except OSError:
        os.setpriority(os.PRIO_PROCESS, attacker.pid, -15)


def busy_of(agent):
    """The part of the time in which it works; a second thread counts as well."""
    before, began = usage(agent.pid), time.monotonic()
    time.sleep(2)  # for as long it is kept busy; nothing is waited for
    return (usage(agent.pid)[3] - before[3]) / (time.monotonic() - began)


def test_scans(tmp):
    """A folder full of boxes, in which there is always a new one."""
    place = fresh(tmp, "scans")
    agent = start_agent("-o", place)
    prefer(agent)
    mallory = record_as(MALLORY, tmp, "turns:50", "park:600000")
    note = forge(box_of(mallory), mallory.pid, 1000, MALLORY, 4096, state=STATE_OFF)
    stem = note.rsplit("-", 1)[0]
    for n in range(NOTES):
        shutil.copy(note, f"{stem}-{2000 + n}.box")
        os.chown(f"{stem}-{2000 + n}.box", MALLORY, MALLORY)
    end = threading.Event()

    def go_on():
        while not end.is_set():
            os.rename(note, f"{note}.box")
            os.rename(f"{note}.box", note)
    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        busy = busy_of(agent)
        check("scans: the agent is not busy with them alone", 0 < busy < 0.4, busy)
        check("scans: another's window is saved", crash_as(VICTIM, tmp, agent, place), "")
    finally:
        end.set()
        thread.join()
    end_agent(agent)


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
        listed = tacho("ls", "--all").stderr.count("is not searched")
        check("folders: of those that are another's, few are told", 0 < listed <= 64, listed)
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
    forged = forge(box_of(mallory), mallory.pid, 99, MALLORY, ending="")
    attacker = attack(MALLORY, "triggers", forged, stdout=subprocess.PIPE, text=True)
    prefer(agent, attacker)
    check("triggers: there are some", attacker.stdout.readline() == "begun\n", attacker.poll())
    os.rename(forged, forged + ".box")
    check("triggers: the box is followed", until(lambda: forged + ".box" in files_of(agent.pid)),
          files_of(agent.pid))
    for turn in range(3):
        check(f"triggers {turn}: another's window is saved", crash_as(VICTIM, tmp, agent, place),
              usage(agent.pid))
    busy = busy_of(agent)
    check("triggers: the agent is not busy with them alone", 0 < busy < 0.35, busy)
    status = end_agent(agent)
    check("triggers: the agent ends when it is told to", status[0] == 0, status)


def writes_of(pid):
    """How often it has written anything: each call that it hears is written to its own eventfd."""
    with open(f"/proc/{pid}/io") as f:
        return int(next(line for line in f if line.startswith("syscw")).split()[1])


def test_calls(tmp):
    """Calls without end, while another's process is slow at making its box. What others record on the
    machine would make the agent look: it has a folder of its own."""
    folder = tempfile.mkdtemp(prefix="tacho-hostile-", dir="/dev/shm")
    os.environ["TACHO_BOX_DIR"] = folder
    try:
        agent = start_agent("-o", fresh(tmp, "calls"))
    finally:
        del os.environ["TACHO_BOX_DIR"]
    try:
        mallory = record_as(MALLORY, tmp, "turns:50", "park:600000")
        victim = record_as(VICTIM, tmp, "turns:50", "park:600000")
        forged = forge(box_of(mallory), mallory.pid, 99, MALLORY, ending="")
        attacker = attack(MALLORY, "triggers", forged, stdout=subprocess.PIPE, text=True)
        prefer(agent, attacker)
        check("calls: there are some", attacker.stdout.readline() == "begun\n", attacker.poll())
        loud = os.path.join(folder, os.path.basename(forged) + ".box")
        os.rename(forged, loud)
        check("calls: the box is followed", until(lambda: loud in files_of(agent.pid)),
              files_of(agent.pid))
        before, began = writes_of(agent.pid), time.monotonic()
        time.sleep(2)  # for as long it is called; nothing is waited for
        heard = (writes_of(agent.pid) - before) / (time.monotonic() - began)
        check("calls: few in a second are heard", 0 < heard < 1100, heard)
        made = forge(box_of(victim), victim.pid, 7, VICTIM, ending="")
        slow = os.path.join(folder, os.path.basename(made) + ".box")
        open(slow, "w").close()
        os.chown(slow, VICTIM, VICTIM)
        time.sleep(6)  # for as long the agent sees an empty file: in the end it looks every 100 ms
        shutil.copyfile(made, slow)
        check("calls: another's box that was not finished when it was seen is followed",
              until(lambda: slow in files_of(agent.pid)), files_of(agent.pid))
        end_agent(agent)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(test_notes, test_scans, test_folders, test_triggers, test_calls)
