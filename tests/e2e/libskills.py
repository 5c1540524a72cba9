"""What the skills of `tacho agents` consist of, and how their commands are run."""
import json
import os
import re
import subprocess

from librun import BIN, environment


class Recipe:
    """A command of a skill, and the fields of its output that it says decide."""

    def __init__(self, skill, title, number, command, fields):
        self.skill, self.title, self.number = skill, title, number
        self.command, self.fields = command, fields

    def name(self):
        again = f" {self.number + 1}" if self.number else ""
        return f"{self.skill}, {self.title.rstrip('?')}{again}"

    def run(self, words, cwd):
        """Its end and what it printed, with these words in place of the capital ones."""
        command = self.command
        for word, value in words.items():
            command = re.sub(rf"\b{word}\b", lambda _, v=value: v, command)
        env = environment(PATH=os.path.dirname(BIN) + ":" + os.environ["PATH"], NO_COLOR="1")
        return subprocess.run(["sh", "-c", command], cwd=cwd, env=env, capture_output=True, text=True,
                              timeout=120, stdin=subprocess.DEVNULL)


def recipes(skill, text):
    """All commands of a skill. What is read stands in the paragraph behind a block, or behind the
    last of several."""
    found, waiting, title, counts = [], [], "", {}
    for part in re.split(r"\n(?=#+ |```sh\n|Read: )|(?<=\n```)\n", text):
        if part.startswith("#"):
            title, waiting = part.split("\n", 1)[0].lstrip("# "), []
        if part.startswith("```sh\n"):
            number = counts[title] = counts.get(title, -1) + 1
            recipe = Recipe(skill, title, number, part[6:].rsplit("```", 1)[0].strip(), [])
            found.append(recipe)
            waiting.append(recipe)
        elif part.strip():
            fields = part.split("\n\n", 1)[0] if part.startswith("Read: ") else ""
            for recipe in waiting:
                recipe.fields += re.findall(r"`([^`]+)`", fields)
            waiting = []
    return found


def output(text):
    """What a command printed: an object, the list of its lines, or text."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in text.splitlines()]
    except ValueError:
        return text


def lines(got):
    """One line is an object by itself, too."""
    return got if isinstance(got, list) else [got]


def values(got, field):
    """All that a field such as a.b[0].c or a[].b names; KeyError where there is none."""
    found = [lines(got) if field.startswith("[") else got]
    for step in re.findall(r"\[\d*\]|[^.\[\]]+", field):
        try:
            if step == "[]":
                found = [value for one in found for value in one]
            elif step[0] == "[":
                found = [one[int(step[1:-1])] for one in found if len(one) > int(step[1:-1])]
            else:
                # Of some of a list there may be nothing.
                found = [one[step] for one in found if one is not None and step in one]
        except (TypeError, KeyError):
            raise KeyError(field) from None
        if not found:
            raise KeyError(field)
    return found
