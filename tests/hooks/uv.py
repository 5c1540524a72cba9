#!/usr/bin/env python3
"""A libuv program that uses every function that takes a callback behaves the same under the
hooks, and every callback that it counts itself is recorded, with its type and function."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from libuv_hooks import (BUILD, Recorded, box_folder, boxes_in, check, finish,  # noqa: E402
                         hooked, run, skip)

SUBJECT = os.path.join(BUILD, "tests/hooks/hooks-uv_subject")


def steady(text):
    """Its output without addresses and without counts, some of which depend on time."""
    return [line for line in text.splitlines()
            if line.split()[0] not in ("count", "wakes", "loop")]


def both(arguments, name, more=None):
    """Runs the program without and with the hooks; what was recorded, and its output."""
    plain = run([SUBJECT] + arguments, dict(os.environ))
    with box_folder() as folder:
        under = run([SUBJECT] + arguments, hooked(folder, more))
        check(f"{name}: the same status", plain.returncode == under.returncode == 0,
              f"{plain.returncode} and {under.returncode}: {under.stdout[-300:]}")
        a, b = steady(plain.stdout), steady(under.stdout)
        check(f"{name}: the same output", a and a == b,
              [x for x in zip(a, b) if x[0] != x[1]][:3] or f"{len(a)} and {len(b)} lines")
        boxes = boxes_in(folder)
        if not boxes:
            return None, under.stdout.splitlines()
        return Recorded(boxes[0], "hooks-uv_subject"), under.stdout.splitlines()


def counted(lines):
    found = {}
    for line in lines:
        if line.startswith("count "):
            found[" ".join(line.split()[1:-1])] = int(line.split()[-1])
    return found


def said(lines, word):
    return next(line.split()[1:] for line in lines if line.startswith(word + " "))


def every_kind():
    r, lines = both([], "every callback")
    if not check("every callback: there is a box", r):
        return
    r.whole("every callback")
    counts = counted(lines)
    check("every callback: the program counted all kinds", len(counts) >= 80, len(counts))
    works = counts.pop("uv_work")
    for name, n in counts.items():
        check(f"{name}: {n} callbacks", r.polls[name] == n, f"recorded {r.polls[name]}")
    check("no other callbacks of the program", set(r.polls) == set(counts),
          set(r.polls) ^ set(counts))
    pool(r, counts, works)
    handle, sends = said(lines, "wakes")
    check("uv_async_send is a wake of its handle", r.wakes[int(handle, 16)] == int(sends), r.wakes)
    check("wakes of the pool are of a handle that is polled",
          all(r.polled[task] for task in r.wakes), r.wakes)
    check("each timer says how late it was", len(r.late) == r.timer_polls > 0,
          f"{len(r.late)} of {r.timer_polls}")
    check("a timer that had to wait for a callback is late", max(r.late) >= 30e6, max(r.late))
    check("a timer that had not, is not", sorted(r.late)[len(r.late) // 2] < 30e6, r.late)
    check("loops are told apart", len(r.loops) == 2 and int(said(lines, "loop")[0], 16) in r.loops,
          r.loops)
    check("requests and closed handles are done",
          all(set(r.results[n]) == {"done"} for n in ("uv_tcp write", "uv_fs_open", "uv_tcp close",
                                                      "uv_after_work")), r.results)
    check("other handles go on", set(r.results["uv_idle"]) == {"pending"}, r.results["uv_idle"])


def pool(r, counts, works):
    check("uv_work: each begin is recorded", r.begins["uv_work"] == works, r.begins)
    check("uv_work: each end is recorded", r.ends == works, r.ends)
    check("uv_work: one that is cancelled is submitted, and never begins",
          r.submits["uv_work"] == works + 1, r.submits)
    served = [n for n in counts if n.startswith("uv_fs_") and "close" not in n.split()[1:] and
              n not in ("uv_fs_event", "uv_fs_poll")]
    served += ["uv_getaddrinfo", "uv_getnameinfo", "uv_random"]
    check("what the pool serves is submitted as often as it completes",
          all(r.submits[n] == counts[n] for n in served), r.submits)
    check("calls without callback are no submissions",
          set(r.submits) - {"uv_work"} == set(served), set(r.submits) ^ set(served))


def many_handles():
    r, lines = both(["many"], "60000 handles of three threads")
    if not check("60000 handles: there is a box", r):
        return
    r.whole("60000 handles")
    check("60000 handles: callbacks", r.polls["uv_timer"] == 60000, r.polls)
    check("60000 handles: closed", r.polls["uv_timer close"] == 60000, r.polls)
    check("60000 handles: three loops", len(r.loops) == 3 and len(lines) == 3, r.loops)


def many_functions():
    """More functions than can be told apart: the rest runs unseen, and that is counted."""
    r, lines = both(["functions"], "1296 functions")
    if check("1296 functions: there is a box", r):
        seen, unseen = r.polls["uv_timer"], len(r.misses)
        check("1296 functions: seen and unseen add up",
              lines == ["functions 1296"] and 1000 < seen < 1296 and seen + unseen == 1296,
              f"{seen} seen, {unseen} counted as not seen")


def other_settings():
    r, lines = both([], "poll threshold", {"TACHO_POLL_THRESHOLD": "1ms"})
    if check("poll threshold: there is a box", r):
        r.whole("poll threshold")
        check("poll threshold: long polls are there", r.polls["uv_timer"] >= 1, r.polls)
        check("poll threshold: short ones are not", "uv_idle" not in r.polls, r.polls)
        check("poll threshold: what is late is said",
              max(r.late, default=0) >= 30e6 and min(r.late) >= 1e6, r.late)
    for name, more in (("off", {"TACHO": "off"}),
                       ("excluded", {"TACHO_EXCLUDE": "hooks-uv_subjec"})):
        r, lines = both([], name, more)
        check(f"{name}: no box", r is None)


if not os.path.exists(SUBJECT):
    skip("libuv hooks", "libuv1-dev was not there when tacho was built")
else:
    every_kind()
    many_handles()
    many_functions()
    other_settings()
finish()
