"""What messages advise: every command, flag and setting that a text of tacho tells somebody to use.

The tables are the one place where advice is listed. advice.py runs each row for real, and `unlisted`
finds advice in the sources that is in no row. Standard library only.
"""
import glob
import os
import re

SOURCE = os.environ.get("TACHO_SOURCE", os.path.join(os.path.dirname(__file__), "../.."))

# tacho's own commands, as messages have them ("%" stands for what is put in), and what is run.
# {pid}: a recorded process; {box}: the box of one that was killed; {trace}; {folder}: an empty one,
# which is also the current one; {file}: a new file in it.
OWN = {
    "tacho %": "tacho ls",
    "tacho % --help": "tacho cat --help",
    "tacho --version": "tacho --version",
    "tacho COMMAND --help": "tacho cat --help",
    "tacho agent": "tacho agent --help",
    "tacho agents skill NAME": "tacho agents skill tacho-triage",
    "tacho agents skills DIR": "tacho agents skills {folder}/skills",
    "tacho blame --slowest 5": "tacho blame --slowest 5 {trace}",
    "tacho blame --span": "tacho blame --span query_database {trace}",
    "tacho cat": "tacho cat {trace}",
    "tacho cat --json": "tacho cat --json {trace}",
    "tacho doctor": "tacho doctor",
    "tacho doctor --json": "tacho doctor --json",
    "tacho doctor -- COMMAND": "tacho doctor -- {program}",
    "tacho dump": "tacho dump {pid}",
    "tacho dump %": "tacho dump {pid}",
    "tacho dump --debuginfod": "tacho dump --debuginfod {pid}",
    "tacho dump --last": "tacho dump --last 10s {pid}",
    "tacho dump PID": "tacho dump {pid}",
    "tacho dump PID -o FILE": "tacho dump {pid} -o {file}",
    "tacho help": "tacho help",
    "tacho import % -o OUT.tacho": "tacho import {dial9} -o OUT.tacho",
    "tacho info": "tacho info {trace}",
    "tacho info FILE": "tacho info {trace}",
    "tacho ls": "tacho ls",
    "tacho ls%": "tacho ls --all",
    "tacho recover": "tacho recover",
    "tacho recover % -o FOLDER": "tacho recover {box} -o {folder}",
    "tacho recover -o FOLDER": "tacho recover -o {folder}",
    "tacho recover%": "unshare -m sh -c 'mount -t tmpfs tmpfs /dev/shm && mount -t tmpfs tmpfs /tmp "
                      "&& exec {tacho} recover --all'",  # not the boxes of others here
    "tacho report": "tacho report {trace}",
    "tacho report --rules": "tacho report --rules",
    "tacho run": "tacho run -- true",
    "tacho run --kernel": "tacho run --kernel -- true",
    "tacho run --memory 1M": "tacho run --memory 1M -- {program}",
    "tacho run --memory 8M": "tacho run --memory 8M -- {program}",
    "tacho run --names": "tacho run --names -- {program}",
    "tacho run --on": "tacho run --on 'poll>50ms,queue>1000' -- {program}",
    "Record with its debug symbols installed (Debian: a package -dbgsym), or with --debuginfod":
        "tacho run --debuginfod -- {program}",
    "tacho run --sched": "tacho run --sched -- {program}",
    "tacho run -- COMMAND": "tacho run -- {program}",
    "tacho run -- redis-server": "tacho run -- redis-server --version",
    "tacho sql --max-memory 4G": "tacho sql --max-memory 4G {trace} 'SELECT count(*) FROM events'",
    "tacho sql --max-time 10m": "tacho sql --max-time 10m {trace} 'SELECT count(*) FROM events'",
    "tacho sql": "tacho sql {trace} 'SELECT count(*) FROM events'",
    "tacho stats": "tacho stats {trace}",
    "tacho status": "tacho status {pid}",
    "tacho view": "tacho view --html {file} {trace}",
    "tacho view %": "tacho view --html {file} {trace}",
}

# Of other programs: the shell command that is run, in a folder of its own. A first word that is not
# installed skips the row, by its name. "key NAME": a sysctl that must be there.
FOREIGN = {
    "java -XX:+UnlockDiagnosticVMOptions -XX:+PreserveFramePointer -XX:+DumpPerfMapAtExit":
        "java -XX:+UnlockDiagnosticVMOptions -XX:+PreserveFramePointer -XX:+DumpPerfMapAtExit -version",
    "node --perf-basic-prof-only-functions --interpreted-frames-native-stack":
        "node --perf-basic-prof-only-functions --interpreted-frames-native-stack -e 0",
    "--perf-basic-prof-only-functions --interpreted-frames-native-stack":
        "NODE_OPTIONS='--perf-basic-prof-only-functions --interpreted-frames-native-stack' node -e 0",
    "python3 -X perf": "python3 -X perf -c pass",
    "ruby --yjit --yjit-perf (3.3 or later)": "ruby --yjit --yjit-perf -e 0",
    "LuaJIT's -jp": "luajit -jp -e 'return'",
    "sysctl kernel.perf_event_paranoid=%": "key kernel.perf_event_paranoid",
    "sysctl kernel.perf_event_paranoid=1": "key kernel.perf_event_paranoid",
    "sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1": "key kernel.kptr_restrict",
    "sysctl kernel.kptr_restrict=1": "key kernel.kptr_restrict",
    "raise kernel.perf_event_mlock_kb": "key kernel.perf_event_mlock_kb",
    "ulimit -n 4096": "bash -c 'ulimit -n 4096'",
    "ulimit -f unlimited": "bash -c 'ulimit -f unlimited'",
    "ulimit -v unlimited": "bash -c 'ulimit -v unlimited'",
    "ulimit -i 4096": "bash -c 'ulimit -i 4096'",
    "ulimit -n": "bash -c 'ulimit -n'",
    "ulimit -f": "bash -c 'ulimit -f'",
    "ulimit -i": "bash -c 'ulimit -i'",
    "ulimit -l": "bash -c 'ulimit -l'",
    "ulimit -v": "bash -c 'ulimit -v'",
    "chmod +x": "touch x && chmod +x x && test -x x",
    "chmod go-w": "mkdir x && chmod 777 x && chmod go-w x && test $(stat -c %a x) = 755",
    "namei -l": "namei -l .",
    "docker run --memory, --shm-size": "docker run --help | grep -e --memory && "
                                       "docker run --help | grep -e --shm-size",
    "docker run --shm-size": "docker run --help | grep -e --shm-size",
    "umount it": "unshare -m sh -c 'mount -t tmpfs tmpfs . && umount {folder}'",
    "dmesg | grep -i tsc": "dmesg | grep -i tsc || true",
    "mount a tmpfs on /dev/shm": "unshare -m mount -t tmpfs tmpfs /dev/shm",
    "unset TACHO": "sh -c 'unset TACHO'",
    "TACHO_CLOCK=monotonic": "TACHO_CLOCK=monotonic tacho run -- {program}",
    "TACHO_BOX_DIR=FOLDER": "TACHO_BOX_DIR={folder} tacho ls",
    "man tacho-COMMAND": "for c in $(tacho help | sed -n 's/^  \\([a-z]*\\) .*/\\1/p'); do "
                         "test $c = help || test -f {source}/man/tacho-$c.1 || exit 1; done",
    "make install": "make -n -C {source} install",
    "-Dsql=enabled": "grep -A1 \"option('sql', type: 'feature'\" {source}/meson_options.txt",
    "-Dpage=enabled": "grep -A1 \"option('page', type: 'feature'\" {source}/meson_options.txt",
    "compile with -fno-omit-frame-pointer":
        "echo '{main}' >x.c && cc -fno-omit-frame-pointer x.c && ./a.out",
    "compile without -fno-asynchronous-unwind-tables":
        "echo '{main}' >x.c && cc -fno-asynchronous-unwind-tables x.c && ./a.out",
    "link with -Wl,--build-id":
        "echo '{main}' >x.c && cc -Wl,--build-id x.c && ./a.out",
    "without -static": "echo '{main}' >x.c && cc x.c && ./a.out",
    "compile with -g": "echo '{main}' >x.c && cc -g x.c && ./a.out",
    "linked with -ltacho": "grep -- -ltacho {build}/meson-private/tacho.pc",
    "CONFIG_SCHED_INFO": "test -e /proc/self/schedstat",
}

# Said of something, and not advised: what others did, and texts for tacho's own use.
SAID = {
    "docker pause", "systemctl freeze", "TACHO=off", "NAME=VALUE", "TACHO_BOX_DIR=%",
    "tacho agents skills, version",
}

COMMANDS = ("run agent ls status dump recover info cat report stats blame diff sql view serve flame "
            "export import doctor agents help").split()
# The command that the texts of a file are about; others are about any.
ABOUT = {"cmd_agents.c": "agents", "cmd_view.c": "view serve", "viewing.c": "view serve",
         "run_options.c": "run agent", "watch_options.c": "run agent", "watch_options.h": "run agent",
         "sql_session.c": "sql"}
ABOUT.update({f"cmd_{name}.c": name for name in COMMANDS if f"cmd_{name}.c" not in ABOUT})

SUSPECTS = re.compile(
    r"['`]tacho [^'`]*['`]|\btacho (?:%s)\b[^.;,)'`]*" % "|".join(COMMANDS) +
    r"|(?<![\w-])-{1,2}[A-Za-z][\w:+=,-]*|\b[A-Z][A-Z_]{2,}=[^\s;,.)]+|-XX\S+"
    r"|\b(?:sysctl|ulimit|chmod|chown|docker|podman|systemctl|namei|apt-get|apt|pip|npm|cargo|setcap"
    r"|sudo|umount|unset) [-+\w./=%]+|\bexport [A-Z_]+="
    r"|'(?:make|man|gdb|perf|strace|kill|rm|mount|java|node|ruby|python3?) [^']*'")

# ------------------------------------------------------------------------------ sources

TOKEN = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[A-Za-z_]\w*|\S""", re.S)
CONVERSION = re.compile(r"%[-+ #0-9.*]*(?:hh|h|ll|l|z|j|t)?[a-zA-Z]|%@")


def strings_of(text):
    """String macros of a file."""
    return {name: "".join(re.findall(r'"((?:\\.|[^"\\])*)"', body)) for name, body in re.findall(
        r'^[ \t]*#[ \t]*define[ \t]+([A-Z]\w*)[ \t]+((?:\\\n|[ \t]|"(?:\\.|[^"\\])*")+)$', text, re.M)}


def literals(text, macros):
    """The string literals of C source, those that follow each other joined, with what is put into
    them as "%"."""
    text = re.sub(r"^[ \t]*#[ \t]*(include[^\n]*|define[ \t]+\w+)", ";", text, flags=re.M)
    found, joined = [], None
    for token in TOKEN.findall(text):
        if token.startswith(("/*", "//")):
            continue
        if token[0] == '"':
            joined = (joined or "") + token[1:-1]
        elif joined is not None and re.match(r"PRI\w+$", token):
            joined += "@"
        elif token in macros:
            joined = (joined or "") + macros[token]
        elif joined is not None:
            found.append(joined)
            joined = None
    return [CONVERSION.sub("%", x).replace("\\n", "\n").replace('\\"', '"') for x in found]


def literals_of_page(text):
    """The string literals of TypeScript, with what is put into them as "%"."""
    text = re.sub(r"/\*.*?\*/|(?<!:)//[^\n]*", "", text, flags=re.S)
    found = re.findall(r'"((?:\\.|[^"\\\n])*)"|`((?:\\.|[^`\\])*)`', text)
    return [re.sub(r"\$\{[^}]*\}", "%", a or b) for a, b in found]


def texts():
    """(name of the file, text) of all that tacho may say."""
    files = sorted(path for kind in ("[ch]", "def")
                   for path in glob.glob(os.path.join(SOURCE, f"src/**/*.{kind}"), recursive=True))
    sources = {path: open(path).read() for path in files}
    shared = {}
    for path, source in sources.items():
        shared.update(strings_of(source) if path.endswith(".h") else {})
    for path, source in sources.items():
        for text in literals(source, {**shared, **strings_of(source)}):
            yield os.path.relpath(path, SOURCE), text
    for path in sorted(glob.glob(os.path.join(SOURCE, "page/src/*.ts"))):
        for text in literals_of_page(open(path).read()):
            yield os.path.relpath(path, SOURCE), text


def is_sentence(text):
    """Whether it is said to a person: no option's name, no help, no program."""
    return " " in text.strip() and not re.match(r"  -|.*Usage: tacho|<script", text, re.S)


# ------------------------------------------------------------------------------- checks

# Longer ones first: what they cover is not looked at again.
ROWS = sorted([*OWN, *FOREIGN, *SAID], key=len, reverse=True)


def cover(text, used):
    """The text without what rows list; `used` gets these rows."""
    for row in ROWS:
        # A command with more arguments is another one.
        after = r"(?![\w=-]| --?\w| %| [A-Z]{3,}\b)" if row in OWN else r"(?![\w=])"
        found = re.compile(r"(?<![\w-])" + re.escape(row) + after)
        if found.search(text):
            used.add(row)
            # A word stays, so that what is around it does not become one.
            text = found.sub("\u2022", text)
    return text


def is_option(flag, path, options):
    about = ABOUT.get(os.path.basename(path), " ".join(options)).split()
    name = re.match(r"-+[A-Za-z][\w-]*", flag).group(0)
    return any(name in options[c] or (name.endswith("-") and any(o.startswith(name) for o in options[c]))
               for c in about if c in options)


def unlisted(path, text, options, used):
    """Advice in a text that is in no row, and in no help of the command that it is about."""
    if not is_sentence(text):
        return []
    rest = cover(text, used)
    return [s for s in SUSPECTS.findall(rest)
            if not (re.match(r"--?[A-Za-z]", s) and is_option(s, path, options))]


def options_in(help_text):
    """The flags that a help lists: each at the beginning of its line, or in the usage."""
    lines = re.findall(r"^ +((?:-\w, )?--?[A-Za-z][\w-]*)", help_text, re.M)
    usage = re.findall(r"(?<=[ \[|])--?[A-Za-z][\w-]*", help_text.split("\n")[0])
    return {flag for line in [*lines, *usage] for flag in line.split(", ")}
