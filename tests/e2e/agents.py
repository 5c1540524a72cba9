#!/usr/bin/env python3
"""tacho agents: each command of each skill, taken out of the files that it writes, is run on
recordings of programs with a known fault, and the fields that the skill names hold the answer. A
command that no answer is known of fails, and so does a field that the output does not have."""
import os
import re
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from libanswers import TABLE, Answer
from librun import BIN, check, environment, failures, folder, recorded, said, skip, undisturbed, \
    until
from libskills import output, recipes, values

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("TACHO_BUILD", "build"))
# Traces of others, in the tree.
KEPT = {"go1.25": "go1.25.trace", "dial9": "dial9/0.3.15.bin.gz"}
ATTEMPTS = 3  # what others do to the machine may come before the fault of a recording


# Recordings --------------------------------------------------------------------------


def program(name):
    return os.path.join(BUILD, "tests/e2e/diff_uv" if name in ("fast", "slow") else
                        "tests/cases/case-" + name)


def there(name):
    return name == "cut" or name in KEPT or os.access(program(name), os.X_OK)


def arguments(name):
    return {"fast": ["3"], "slow": ["3", "on_parse", "200"]}.get(name, [])


class Traces:
    """Recordings by name, made when they are first asked for."""

    def __init__(self, base):
        self.base, self.locks, self.lock = base, {}, threading.Lock()

    def path(self, name):
        if name in KEPT:
            return os.path.join(SOURCE, "tests/golden-import", KEPT[name])
        return os.path.join(self.base, name + ".tacho")

    def get(self, name, again=False):
        with self.lock:
            mine = self.locks.setdefault(name, threading.Lock())
        with mine:
            if name not in KEPT and (again or not os.path.exists(self.path(name))):
                # One that fights for a CPU is to be disturbed.
                subprocess.run([BIN, "run", "-q", "-f", "-o", self.path(name), "--", program(name),
                                *arguments(name)], env=environment(), capture_output=True,
                               timeout=120, stdin=subprocess.DEVNULL,
                               preexec_fn=None if name == "epoll_sched" else undisturbed)
        return self.path(name)


# Recipes that record -----------------------------------------------------------------


class Live:
    """A program that records until it is ended."""

    def __init__(self, *steps):
        self.process = recorded(*steps)

    def __enter__(self):
        until(lambda: any(f"/{self.process.pid}-" in "/" + box
                          for box in os.listdir(os.environ["TACHO_BOX_DIR"])))
        return self.process.pid

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def recording(by_title, base):
    """The commands of tacho-record, in their order, and what comes of them."""
    case = program("uv_sleep")
    out, kept, dead = (os.path.join(base, name) for name in ("out.tacho", "kept", "dead"))
    os.mkdir(kept)
    os.mkdir(dead)

    def run(title, number=0, **words):
        recipe = by_title.pop((title, number), None)
        if not recipe:
            check(f"agents_{title}_is_a_recipe", False, sorted(by_title))
            return {}
        p = recipe.run(words, base)
        got = output(p.stdout)
        check(f"agents_runs {recipe.name()}", p.returncode == 0, said(p))
        missing = missing_fields(recipe, [got])
        check(f"agents_reads {recipe.name()}", not missing, missing)
        return got

    got = run("Can it be recorded here?", PROGRAM=case)
    check("agents_doctor_says_it_can", got.get("verdict") in ("ok", "degraded"), got)
    run("Record until it ends", PROGRAM=case, OUT=out)
    p = subprocess.run([BIN, "report", out], capture_output=True, text=True)
    check("agents_recorded_its_end", "retry_later" in p.stdout, said(p))
    run("Keep windows only when something is wrong", PROGRAM=case, DIR=kept)
    got = run("Keep windows only when something is wrong", 1, DIR=kept)
    # Its callback is too long, and a timer is late for it: on a busy machine that may come first.
    check("agents_kept_the_reason", any((p["why"] or "").startswith(("poll>50ms", "lag>100ms"))
                                        for p in got["processes"]),
          got["processes"] and got["processes"][0]["why"])
    with Live("turns:50", "await:" + os.path.join(base, "never")) as pid:
        got = run("Which processes record now?")
        check("agents_ls_has_the_process", pid in values(got, "boxes[].pid"), got)
        got = run("Which processes record now?", 1, PID=str(pid))
        check("agents_status_says_that_it_records", got["state"] == "recording", got["state"])
        os.remove(out)
        run("The last seconds of a process that runs, hangs or is stopped", PID=str(pid), OUT=out)
        check("agents_dumped_it", os.path.getsize(out) > 0)
    got = run("What dead processes left", DIR=dead)
    check("agents_recovered_it", got.get("recovered", 0) >= 1 and os.path.exists(
        values(got, "boxes[].file")[0]), got)
    return [recipe.name() for recipe in by_title.values()]


# Checks ------------------------------------------------------------------------------


def missing_fields(recipe, outputs):
    """Of the fields that it names, those that no output has."""
    def there(field):
        for got in outputs:
            try:
                values(got, field)
                return True
            except KeyError:
                pass
        return False
    return [field for field in recipe.fields if not there(field)]


def try_recipe(recipe, answers, traces):
    """Why it does not give the right answers, or ""."""
    outputs, unknown = [], [f for a in answers for f in a.fields if f not in recipe.fields]
    if unknown:
        return f"it does not name {unknown}, which have the answer"
    for answer in answers:
        for attempt in range(ATTEMPTS):
            try:
                why, got = answer.wrong(recipe, traces)
            except (KeyError, IndexError, TypeError, AttributeError, StopIteration,
                    AssertionError) as error:
                why, got = f"{type(error).__name__}: {error}", None
            if not why:
                break
            if attempt + 1 < ATTEMPTS:
                for name in answer.needs():
                    if name != "cut":
                        traces.get(name, again=True)
        if why:
            return f"on {answer.trace}: {why}"
        outputs.append(got)
    missing = missing_fields(recipe, outputs)
    return f"no output has {missing}" if missing else ""


def disturbed(path):
    """Whether what else ran had part in a recording, where that could not be kept from it: then it
    is rightly named."""
    if undisturbed:
        return False
    p = subprocess.run([BIN, "sql", "--json", path, "SELECT 100 * sum(CASE WHEN owner = 'descheduled' "
                        "OR name = 'woken, and others ran' THEN ns ELSE 0 END) / sum(ns) AS percent "
                        "FROM ledger"], capture_output=True, text=True)
    return (output(p.stdout)["percent"] or 0) >= 2


def wrong_recipes_are_noticed(traces):
    """What this script is for."""
    good = "## A\n\n```sh\ntacho report --json TRACE\n```\n\nRead: `verdict.category`,\n" \
           "`findings[0].where[0].function`.\n\nText.\n"
    answers = [Answer("uv_sleep", {"findings[0].where[0].function": "retry_later"})]
    for name, old, new, right in (
            ("right", "", "", True), ("field", "where[0].function", "where[0].name", False),
            ("unread", ", `findings[0].where[0].function`", "", False),
            ("place", "where[0].function", "where[1].function", False),
            ("command", "--json TRACE", "--jsn TRACE", False)):
        (recipe,) = recipes("x", good.replace(",\n", ", ").replace(old, new))
        if name == "place":
            own = [Answer("uv_sleep", {"findings[0].where[1].function": "retry_later"})]
        else:
            own = answers
        why = try_recipe(recipe, own, Once(traces))
        check(f"agents_notices_a_wrong_{name}" if not right else "agents_passes_a_right_recipe",
              bool(why) != right, why)


class Once:
    """Recordings that are not made again."""

    def __init__(self, traces):
        self.traces, self.base = traces, traces.base

    def get(self, name, again=False):
        return self.traces.get(name)


def all_recipes(skills, traces):
    for skill, text in skills.items():
        found = recipes(skill, text)
        check(f"agents_{skill}_has_commands", found or skill == "tacho-record", text[:100])
        if skill == "tacho-record":
            by_title = {(r.title, r.number): r for r in found}
            left = recording(by_title, traces.base) if \
                os.access(program("uv_sleep"), os.X_OK) else []
            check("agents_tacho-record_has_no_other_commands", not left, left)
            continue
        table = dict(TABLE.get(skill, {}))
        for recipe in found:
            answers = table.get(recipe.title, [])
            if not check(f"agents_knows_an_answer {recipe.name()}", len(answers) > recipe.number and
                         answers[recipe.number], "this script runs no such command"):
                continue
            answers = [a for a in answers[recipe.number]
                       if all(there(n) for n in a.needs())]
            if not answers:
                skip(f"agents_answer {recipe.name()}", "libuv is not here, so nothing was built")
                continue
            why = try_recipe(recipe, answers, traces)
            if why and any(disturbed(traces.get(name)) for a in answers for name in a.needs()):
                skip(f"agents_answer {recipe.name()}", "real-time priority is refused here, and the "
                     "kernel ran others while it was recorded")
                continue
            check(f"agents_answer {recipe.name()}", not why, why)
        titles = {recipe.title for recipe in found}
        check(f"agents_{skill}_titles_are_those_of_this_script", set(table) <= titles,
              set(table) - titles)


def texts(skills):
    """What the skills say of each other; what they say of rules, scripts/check-rules.py checks."""
    for skill, text in skills.items():
        front = re.match(r"---\nname: ([a-z0-9-]{1,64})\ndescription: (.{20,1024})\n---\n", text)
        check(f"agents_{skill}_begins_as_skills_do", front and front[1] == skill, text[:200])
    named = {name for text in skills.values() for name in re.findall(r"\btacho-[a-z]+\b", text)}
    check("agents_skills_that_are_named_exist", named <= set(skills), named - set(skills))


def agents(*arguments, **more):
    return subprocess.run([BIN, "agents", *arguments], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, env=environment(), **more)


def command(base):
    """What it prints and writes, and what it leaves alone. The skills by name."""
    place = os.path.join(base, "a/b/skills")
    p = agents("skills", place)
    check("agents_writes_skills", p.returncode == 0 and not p.stderr and
          p.stdout.splitlines() == [os.path.join(place, n, "SKILL.md") for n in
                                    (line.split("/")[-2] for line in p.stdout.splitlines())], said(p))
    names = [line.split("/")[-2] for line in p.stdout.splitlines()]
    check("agents_writes_all_that_are_in_the_tree", sorted(names) == sorted(
        n[:-3] for n in os.listdir(os.path.join(SOURCE, "docs/agents")) if n.endswith(".md")), names)

    def path(name):
        return os.path.join(place, name, "SKILL.md")

    def text(name):
        with open(path(name), encoding="utf-8") as f:
            return f.read()

    skills = {name: text(name) for name in names}
    check("agents_skills_can_be_read_by_others",
          stat.S_IMODE(os.stat(path(names[0])).st_mode) == 0o644)
    p = agents()
    guide = skills[names[0]].split("---\n", 2)[2].rsplit("<!--", 1)[0].strip()
    check("agents_prints_the_guide", p.returncode == 0 and p.stdout.strip().startswith(guide) and
          all(f"\n- {name}: " in p.stdout for name in names), said(p)[:300])
    p = agents("skill", names[3])
    check("agents_prints_a_skill", p.returncode == 0 and
          skills[names[3]].startswith(p.stdout) and p.stdout.count("\n") > 20, said(p)[:300])

    p = agents("skills", place)
    check("agents_writes_over_its_own", p.returncode == 0 and text(names[0]) == skills[names[0]],
          said(p))
    for name, change in (("changed", skills[names[1]].replace("a", "b", 1)),
                         ("shortened", skills[names[1]][:-40]), ("foreign", "my own notes\n"),
                         ("empty", ""), ("without_end", skills[names[1]] + "more\n")):
        os.remove(path(names[0]))
        with open(path(names[1]), "w", encoding="utf-8") as f:
            f.write(change)
        p = agents("skills", place)
        check(f"agents_leaves_what_is_{name}", p.returncode == 1 and not p.stdout and
              path(names[1]) in p.stderr and "move it away" in p.stderr and
              text(names[1]) == change and not os.path.exists(path(names[0])), said(p))
        os.remove(path(names[1]))
        check(f"agents_writes_after_{name}_is_gone", agents("skills", place).returncode == 0)
    target = os.path.join(base, "target")
    with open(target, "w", encoding="utf-8") as f:
        f.write(skills[names[1]])
    os.remove(path(names[1]))
    os.symlink(target, path(names[1]))
    p = agents("skills", place)
    check("agents_follows_no_link", p.returncode == 1 and os.path.islink(path(names[1])), said(p))
    for name, given, status, words in (
            ("word", ["skils"], 2, "neither 'skill' nor 'skills'"), ("no_folder", ["skills"], 2, "one folder"),
            ("no_name", ["skill"], 2, "one name"), ("two", ["skills", "a", "b"], 2, "one folder"),
            ("unknown", ["skill", "tacho-x"], 2, "there is no skill 'tacho-x'; there are tacho-triage"),
            ("empty", ["skills", ""], 2, "no name of a folder"),
            ("file", ["skills", target], 1, "cannot make the folder"),
            ("option", ["--frob"], 2, "--frob")):
        p = agents(*given)
        check(f"agents_refuses_{name}", p.returncode == status and words in p.stderr and
              not p.stdout, said(p))
    return skills


def main():
    with folder() as base:
        skills = command(base)
        texts(skills)
        traces = Traces(base)
        needed = sorted({name for titles in TABLE.values() for commands in titles.values()
                         for answers in commands for a in answers for name in a.needs()} - {"cut"})
        built = [name for name in needed if there(name)]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(traces.get, built))
        with open(traces.get(built[0]), "rb") as whole, open(traces.path("cut"), "wb") as cut:
            data = whole.read()
            cut.write(data[:len(data) * 2 // 3])
        if "uv_sleep" in built:
            wrong_recipes_are_noticed(traces)
        all_recipes(skills, traces)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
