"""What tests of documents share: whether what these name exists."""
import os
import re
import shlex
import subprocess

from libcheck import BIN

SOURCE = os.environ.get("TACHO_SOURCE") or \
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def inline(text):
    """Commands of tacho that stand in the text."""
    return re.findall(r"`(tacho [^`]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))


def unknown(command):
    """What of a command of tacho that stands in the text does not exist."""
    words = shlex.split(command)
    if len(words) < 2 or not re.fullmatch("[a-z]+", words[1]):
        return ""
    told = subprocess.run([BIN, words[1], "--help"], capture_output=True, text=True)
    if told.returncode:
        return f"there is no tacho {words[1]}"
    if not os.path.exists(os.path.join(SOURCE, "man", f"tacho-{words[1]}.1")):
        return f"tacho {words[1]} has no man page"
    own = words[:words.index("--")] if "--" in words else words
    missing = [word for word in own if re.match("--[a-z]", word) and
               not re.search(re.escape(word.split("=")[0]) + r"\b", told.stdout)]
    return f"{missing[0]} is no option of tacho {words[1]}" if missing else ""


def links(text, folder=""):
    """Of files, those that are not there."""
    return [link for link in re.findall(r"\]\(([^)#:]+)\)", text)
            if not os.path.exists(os.path.join(SOURCE, folder, link))]
