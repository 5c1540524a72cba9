#!/usr/bin/env python3
"""Boxes that lie about whose they are, links in place of boxes, folders that others made."""
import glob
import json
import os
import shutil

from libhostile import (MALLORY, VICTIM, box_of, boxes_of, check, crash_as, end_agent, files_of,
                        forge, fresh, main, record_as, said, saved, start_agent, tacho, traces,
                        until)


def test_several(tmp):
    """What limits a user's boxes leaves an honest one theirs: several at the same time."""
    place = fresh(tmp, "several")
    agent = start_agent("-o", place)
    victims = [record_as(VICTIM, tmp, "turns:20", "park:600000") for _ in range(3)]
    boxes = [box_of(victim) for victim in victims]
    check("several of a user: all are followed",
          until(lambda: set(boxes) <= set(files_of(agent.pid))), boxes)
    for victim in victims:
        victim.kill()
        victim.wait()
    kept = [bool(saved(place, victim)) for victim in victims]
    check("several of a user: all windows are saved", all(kept), kept)
    end_agent(agent)


def test_forged(tmp):
    """A box of one user that names the process of another."""
    victim = record_as(VICTIM, tmp, "turns:50", "park:60000")
    mallory = record_as(MALLORY, tmp, "turns:50", "park:60000")
    real, own = box_of(victim), box_of(mallory)
    forged = forge(own, victim.pid, 99, MALLORY)
    shown = tacho("status", str(victim.pid), "--json")
    check("forged box is not shown for the process", shown.returncode == 0 and
          json.loads(shown.stdout).get("box") == real, said(shown))
    shown = tacho("status", forged, "--json")
    check("forged box is of no living process", '"alive":true' not in shown.stdout.replace(" ", ""),
          said(shown))
    place = fresh(tmp, "forged")
    agent = start_agent("-o", place)
    followed = until(lambda: real in files_of(agent.pid) and own in files_of(agent.pid))
    check("agent follows the real boxes", followed, files_of(agent.pid))
    check("agent does not follow the forged one", forged not in files_of(agent.pid),
          files_of(agent.pid))
    victim.kill()
    victim.wait()
    check("window of the victim is saved",
          until(lambda: [t for t in traces(place) if f"-{victim.pid}-" in t]), traces(place))
    mallory.kill()
    agent.terminate()
    agent.communicate()


def test_links(tmp):
    """A private trace of root's, and a device, under the name of a box or trace."""
    place = fresh(tmp, "links")
    secret = os.path.join(place, "secret.tacho")
    own = record_as(MALLORY, tmp, "turns:50", "park:60000")
    box = box_of(own)
    dumped = tacho("dump", box, "-o", secret)
    check("root reads the box of a user", dumped.returncode == 0, said(dumped))
    os.chmod(secret, 0o600)
    os.chmod(place, 0o700)
    folder = os.path.dirname(box)
    for name, target in (("trace", secret), ("device", "/dev/zero"), ("pipe", "/proc/self/fd/0")):
        link = os.path.join(folder, f"1-1-{len(name)}.box")
        os.symlink(target, link)
        os.lchown(link, MALLORY, MALLORY)
        read = tacho("info", link)
        check(f"link of a user to a {name} is not followed", read.returncode == 1 and
              "another user made" in read.stderr, said(read))
    out = fresh(tmp, "links-out")
    agent = start_agent("-o", out, "--all-ends")
    until(lambda: box in files_of(agent.pid))
    own.kill()
    own.wait()
    until(lambda: [t for t in traces(out) if f"-{own.pid}-" in t])
    check("agent saves what is a box, and no link", len(traces(out)) == 1, traces(out))
    agent.terminate()
    agent.communicate()
    mine = os.path.join(tmp, "mine.tacho")
    os.symlink(secret, mine)
    read = tacho("info", mine)
    check("one's own link is followed", read.returncode == 0, said(read))


def test_taken(tmp):
    """Somebody else has made the folder of a user's boxes."""
    folder = f"/dev/shm/tacho-{VICTIM}"
    for mode in (0o755, 0o777, 0o700):  # the last one stays
        for path in glob.glob(folder + "*"):
            shutil.rmtree(path)
        os.mkdir(folder)
        os.chmod(folder, mode)
        os.chown(folder, MALLORY, MALLORY)
        victim = record_as(VICTIM, tmp, "turns:50", "park:60000")
        box = box_of(victim)
        check(f"folder of another, mode {mode:o}: recording goes elsewhere",
              box.startswith(folder + "."), boxes_of(VICTIM))
    shown = tacho("status", str(victim.pid))
    check("status says why", shown.returncode == 0 and 
          f"cannot open the box folder {folder}:" in shown.stdout, said(shown))
    second = record_as(VICTIM, tmp, "turns:50", "park:60000")
    check("the next one goes there too", os.path.dirname(box_of(second)) == os.path.dirname(box),
          boxes_of(VICTIM))
    listed = tacho("ls", "--all")
    check("ls lists it", str(victim.pid) in listed.stdout, said(listed))
    place = fresh(tmp, "taken")
    agent = start_agent("-o", place)
    until(lambda: box in files_of(agent.pid))
    victim.kill()
    victim.wait()
    check("agent saves it", until(lambda: [t for t in traces(place) if f"-{victim.pid}-" in t]),
          traces(place))
    for p in (second, agent):
        p.terminate()
        p.communicate()


def test_reused(tmp):
    """The number of a process that is gone is another user's by now."""
    place = fresh(tmp, "reused")
    victim = record_as(VICTIM, tmp, "turns:50", "park:60000")
    mallory = record_as(MALLORY, tmp, "turns:50", "park:60000")
    real = box_of(victim)
    box_of(mallory)
    old = forge(real, mallory.pid, 0, VICTIM, begun=1)
    agent = start_agent("-o", place)
    check("box of a process whose number is another user's by now: saved", saved(place, mallory),
          traces(place))
    check("box of a process whose number is another user's by now: deleted",
          until(lambda: not os.path.exists(old)), old)
    check("agent still follows the others",
          until(lambda: real in files_of(agent.pid)), files_of(agent.pid))
    end_agent(agent)


def test_renamed(tmp):
    """A box that names another's process, in a file whose name says that this one is gone."""
    place = fresh(tmp, "renamed")
    victim = record_as(VICTIM, tmp, "turns:50", "park:60000")
    mallory = record_as(MALLORY, tmp, "turns:50", "park:60000")
    box_of(victim)
    forged = forge(box_of(mallory), victim.pid, 99, MALLORY)
    renamed = f"{os.path.dirname(forged)}/{victim.pid}-1-99.box"
    os.rename(forged, renamed)
    agent = start_agent("-o", place)
    check("others are followed", crash_as(VICTIM, tmp, agent, place), files_of(agent.pid))
    check("box of another name than its process: it is left alone", os.path.exists(renamed) and
          len(traces(place)) == 1, traces(place))
    end_agent(agent)


def test_gone(tmp):
    """Of a process that is gone, nobody can tell whose it was."""
    victim = record_as(VICTIM, tmp, "turns:50", "park:60000")
    mallory = record_as(MALLORY, tmp, "turns:50", "park:60000")
    real = box_of(victim)
    forged = forge(box_of(mallory), victim.pid, 99, MALLORY)
    victim.kill()
    victim.wait()
    shown = tacho("info", str(victim.pid))
    check("two users have a box of a process that is gone: both are named, none is shown",
          shown.returncode == 1 and real in shown.stderr and forged in shown.stderr, said(shown))
    os.unlink(forged)
    shown = tacho("info", str(victim.pid))
    check("one user has a box of a process that is gone: it is shown", shown.returncode == 0,
          said(shown))


def test_hard_links(tmp):
    """A box of one user that has a name in the folder of another."""
    place = fresh(tmp, "hard")
    victim = record_as(VICTIM, tmp, "turns:50", "park:60000")
    mallory = record_as(MALLORY, tmp, "turns:50", "park:60000")
    real, own = box_of(victim), box_of(mallory)
    victim.kill()
    victim.wait()
    linked = os.path.join(os.path.dirname(own), os.path.basename(real))
    os.link(real, linked)  # Linux refuses that to users, where it is not told otherwise
    agent = start_agent("-o", place)
    until(lambda: own in files_of(agent.pid))
    check("box with two names: neither is followed", not traces(place) and
          not {real, linked} & set(files_of(agent.pid)), traces(place))
    os.unlink(real)
    check("others are", crash_as(VICTIM, tmp, agent, place), files_of(agent.pid))
    check("box of another in a user's folder: it is not followed", os.path.exists(linked) and
          len(traces(place)) == 1, traces(place))
    end_agent(agent)


def test_folder_link(tmp):
    """The folder of a box has become another's link to the folder of a third one."""
    place, shared = fresh(tmp, "recovered"), fresh(tmp, "shared")
    victim = record_as(VICTIM, tmp, "turns:50", "park:60000")
    real = box_of(victim)
    victim.kill()
    victim.wait()
    link = os.path.join(shared, "link")
    os.symlink(os.path.dirname(real), link)
    os.lchown(link, MALLORY, MALLORY)
    done = tacho("recover", "-o", place, os.path.join(link, os.path.basename(real)))
    check("box in a folder that is another's link: it is not deleted", os.path.exists(real),
          said(done))
    done = tacho("recover", "-o", place, real)
    check("box in its own folder: it is", not os.path.exists(real), said(done))


if __name__ == "__main__":
    main(test_several, test_forged, test_links, test_taken, test_reused, test_renamed, test_gone,
         test_hard_links, test_folder_link)
