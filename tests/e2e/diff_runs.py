#!/usr/bin/env python3
"""tacho diff on recordings of one libuv program: unchanged, and with one callback that does 20 %
more rounds. What it reports and what it misses is counted over TACHO_DIFF_RUNS rounds (3, a
callback each; 10 in a soak). The three recordings of a round are made at the same time on the same
CPU, so that what the machine does meets all of them, and with real-time priority, so that it is
little. What others do to the caches remains: one change in five may be missed or come with another,
and there may be one false alarm for five changes. One in a callback that goes through memory and
the kernel (MEMORY) is easily hidden, and diff then rightly says that it may be noise: such a round is
repeated, and not all of these may be missed."""
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from librun import BIN, check, environment, folder, said, skip, undisturbed

PROGRAM = os.path.join(os.environ.get("TACHO_BUILD", "build"), "tests/e2e/diff_uv")
RUNS = int(os.environ.get("TACHO_DIFF_RUNS") or (10 if os.environ.get("TACHO_SOAK") == "1" else 3))
SECONDS = "5"
ALLOWED = max(1, RUNS // 5)
# What is made slower, one after the other, and what diff calls it.
CALLBACKS = [("on_parse", "uv_timer: on_parse (diff_uv.c)"),
             ("on_route", "uv_timer: on_route (diff_uv.c)"),
             ("other/on_tick", "uv_timer: on_tick (diff_uv_other.c)"),
             ("on_format", "uv_timer: on_format (diff_uv.c)"),
             ("on_readable", "uv_poll: on_readable (diff_uv.c)")]
MEMORY = ("on_format", "on_readable")


def beside():
    """Called in a child. Of equals at this priority none is interrupted by another."""
    if undisturbed:
        undisturbed()
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def record(path, *arguments):
    return subprocess.run([BIN, "run", "-q", "-f", "-o", path, "--", PROGRAM, SECONDS, *arguments],
                          env=environment(), capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL, preexec_fn=beside)


def record_all(*recordings):
    """(path, arguments): all at the same time. Whether it was done."""
    with ThreadPoolExecutor(len(recordings)) as pool:
        done = list(pool.map(lambda r: record(r[0], *r[1]), recordings))
    bad = [said(p) for p in done if p.returncode]
    return check("diff_records_" + "_".join(os.path.basename(r[0])[:-6] for r in recordings),
                 not bad, bad)


def diff(*arguments):
    return subprocess.run([BIN, "diff", *arguments], capture_output=True, text=True, timeout=60,
                          env=environment(NO_COLOR="1"))


def changes(a, b, *options):
    """name: ratio of what changed, and all rows."""
    p = diff(a, b, "--json", *options)
    rows = {r["name"]: r for r in json.loads(p.stdout)["rows"]}
    return {n: r["change"] for n, r in rows.items() if r["change"] in ("slower", "faster")}, rows


def one_round(base, number, callback):
    """(what changed where nothing did, what changed where one callback did, all rows of that);
    None: it was not recorded."""
    paths = [os.path.join(base, f"{number}-{x}.tacho") for x in "abc"]
    if not record_all(*zip(paths, ((), (), (callback, "20")))):
        return None
    return changes(*paths[:2])[0], *changes(*paths[1:])


def rounds(base):
    false_alarms, wrong, told = 0, 0, []
    found, missed = [], []  # callbacks
    for i in range(RUNS):
        callback, name = CALLBACKS[i % len(CALLBACKS)]
        for attempt in range(4 if callback in MEMORY else 1):
            result = one_round(base, f"{i}.{attempt}", callback)
            if not result:
                return False
            same, slower, rows = result
            false_alarms += bool(same)
            wrong += any(n != name for n in slower)
            told.append(f"{callback}: unchanged {same or 'none'}, slower {slower or 'none'}"
                        f" (ratio {rows.get(name, {}).get('ratio')})")
            if slower.get(name) == "slower":
                found.append(callback)
                break
        else:
            missed.append(callback)
    print(f"# {RUNS} changes in {len(told)} rounds: {false_alarms} false alarms, "
          f"{len(missed)} missed, "
          f"{wrong} with another callback reported")
    for line in told:
        print("#  ", line)
    check("diff_reports_no_change_where_there_is_none", false_alarms <= ALLOWED, told)
    check("diff_reports_the_callback_that_got_slower",
          sum(c not in MEMORY for c in missed) <= ALLOWED, told)
    if any(c in MEMORY for c in found + missed):
        check("diff_reports_one_that_uses_memory", any(c in MEMORY for c in found), told)
    check("diff_reports_no_other_callback", wrong <= ALLOWED, told)
    return True


def commands(base):
    """Options and exit status on recordings whose difference is beyond doubt."""
    fast, slow = (os.path.join(base, n) for n in ("fast.tacho", "slow.tacho"))
    record_all((fast, ()), (slow, ("on_parse", "200")))
    parse = CALLBACKS[0][1]

    change, rows = changes(fast, slow)
    back, _ = changes(slow, fast)
    check("diff_names_what_got_slower", change.get(parse) == "slower", rows.get(parse))
    check("diff_the_other_way_round_is_faster", back.get(parse) == "faster", back)
    check("diff_ratio_is_that_of_the_rounds", 2 < rows[parse]["ratio"] < 4, rows[parse])
    check("diff_same_function_in_two_files",
          "uv_timer: on_tick (diff_uv.c)" in rows and
          "uv_timer: on_tick (diff_uv_other.c)" in rows, sorted(rows))

    for options, a, b, status in (
            (["--fail-on", "slower"], fast, slow, 1), (["--fail-on", "change"], fast, slow, 1),
            (["--fail-on", "slower"], slow, fast, 0), (["--fail-on", "change"], slow, fast, 1),
            ([], fast, slow, 0), (["--fail-on", "slower", "--least", "900%"], fast, slow, 0),
            (["--fail-on", "change"], fast, fast, 0),
            (["--fail-on", "slower", "--absolute"], fast, slow, 1)):
        p = diff(a, b, *options)
        way = "".join("fast" if x == fast else "slow" for x in (a, b))
        check(f"diff_exit_{way}_{'_'.join(options).replace('--', '') or 'plain'}",
              p.returncode == status and not p.stderr, said(p))
    p = diff(fast, slow)
    check("diff_says_it_first", p.stdout.startswith(f"slower: {parse}, +"), said(p))
    p = diff(fast, fast)
    check("diff_with_itself_is_no_change", p.stdout.startswith("no change"), said(p))
    p = diff(fast, slow, "--top", "1")
    check("diff_top", "more, see --top" in p.stdout, said(p))

    whole = json.loads(diff(fast, slow, "--json").stdout)
    check("diff_json_shape",
          whole["version"] == 1 and whole["changed"] == 1 and whole["compared"] >= 8 and
          whole["a"]["polls"] > 1000 and whole["b"]["window_ns"] > 10**9 and
          all({"name", "of", "change", "ratio", "chance", "a", "b"} <= set(r)
              for r in whole["rows"]), str(whole)[:700])
    counts = {r["name"]: r["a"]["count"] for r in whole["rows"]}
    p = subprocess.run([BIN, "cat", fast, "--json", "--type", "poll-begin,poll-switch"],
                       capture_output=True, text=True, timeout=60)
    seen = sum(json.loads(line)["type"] in ("poll-begin", "poll-switch")
               for line in p.stdout.splitlines())
    # One poll at most is cut off at the end.
    check("diff_counts_are_those_of_the_trace", seen - sum(counts.values()) in (0, 1),
          (seen, counts))


def wrong(base):
    some = os.path.join(base, "fast.tacho")
    for name, arguments, status, text in (
            ("one", [some], 2, "give two traces"), ("three", [some] * 3, 2, "give two traces"),
            ("none", [], 2, "give two traces"),
            ("fail_on", [some, some, "--fail-on", "weird"], 2, "neither 'slower' nor 'change'"),
            ("least", [some, some, "--least", "much"], 2, "no percentage"),
            ("least_zero", [some, some, "--least", "0"], 2, "no percentage"),
            ("least_nan", [some, some, "--least", "nan"], 2, "no percentage"),
            ("option", [some, some, "--frob"], 2, "--frob"),
            ("no_file", [some, os.path.join(base, "nothing.tacho")], 1, "nothing.tacho"),
            ("no_trace", [__file__, some], 1, "diff_runs.py")):
        p = diff(*arguments)
        check(f"diff_refuses_{name}", p.returncode == status and text in p.stderr and
              not p.stdout, said(p))


def strange(base):
    """Traces with one kind, of different programs, and of hardly any length."""
    fast = os.path.join(base, "fast.tacho")
    short = os.path.join(base, "short.tacho")
    p = subprocess.run([BIN, "run", "-q", "-f", "-o", short, "--", PROGRAM, "0.02"],
                       env=environment(), capture_output=True, text=True, timeout=60)
    p = diff(fast, short)
    check("diff_too_few_is_said", p.returncode == 0 and "not enough data" in p.stdout and
          "too few to tell" in p.stdout, said(p))
    one = os.path.join(base, "one.tacho")
    loop = "import select, time\ne = select.epoll()\n" \
           "end = time.monotonic() + 2\n" \
           "while time.monotonic() < end:\n    e.poll(0.001)\n    sum(range(3000))\n"
    subprocess.run([BIN, "run", "-q", "-f", "-o", one, "--", sys.executable, "-c", loop],
                   env=environment(), capture_output=True, text=True, timeout=60)
    p = diff(one, one)
    check("diff_of_one_kind", p.stdout.startswith("no change") and "turns of loops" in p.stdout and
          "fewer than three kinds" in p.stdout, said(p))
    p = diff(fast, one)
    check("diff_of_different_programs", "not enough data" in p.stdout and
          "only in A" in p.stdout and "only in B" in p.stdout, said(p))
    p = diff(fast, one, "--fail-on", "change")
    check("diff_of_different_programs_is_no_change", p.returncode == 0, said(p))


def main():
    if not os.access(PROGRAM, os.X_OK):
        skip("diff_runs", "libuv is not here, so diff_uv was not built")
        return 0
    with folder() as base:
        if rounds(base):
            commands(base)
            wrong(base)
            strange(base)
    return 0


if __name__ == "__main__":
    sys.exit(main())
