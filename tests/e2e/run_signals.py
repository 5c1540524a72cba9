#!/usr/bin/env python3
"""tacho run: signals reach the command exactly once, and the terminal stays its own."""
import os
import pty
import select
import shlex
import signal
import subprocess
import sys
import time

from librun import (BIN, LOOP, PYTHON, alive, boxes, check, count, end, environment, finish,
                    folder, script, skip, start, state, traces, until)
import librun

# Counts signals in a file that has the pid in its name; ends by TERM or, if asked, the first INT.
COUNTER = LOOP + """
where = sys.argv[1]
def note(number, frame):
    os.write(out, (signal.Signals(number).name + "\\n").encode())
    if number == signal.SIGTERM or (number == signal.SIGINT and "int" in sys.argv):
        sys.exit(21)
out = os.open(where, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
for number in (1, 2, 3, 10, 12, 14, 15, 18, 20, 28):
    signal.signal(number, note)
for number in sys.argv[2:]:
    if number == "tty":
        os.write(out, f"isatty {os.isatty(0)} {os.isatty(1)} {os.tcgetpgrp(0) == os.getpgrp()}\\n"
                 .encode())
    if number == "stop":
        signal.signal(20, signal.SIG_DFL)
os.write(out, f"ready {os.getpid()}\\n".encode())
while True:
    turn(1, 1)
"""


def read(path):
    try:
        with open(path) as f:
            return f.read().split("\n")[:-1]
    except OSError:
        return []


def ready(path):
    """The process id, once it has said it."""
    lines = until(lambda: [x for x in read(path) if x.startswith("ready")])
    return int(lines[0].split()[1]) if lines else 0


def names(path):
    return [x for x in read(path) if x.startswith("SIG")]


def test_passed_on(tmp, counter):
    log = os.path.join(tmp, "passed")
    p = start("-o", tmp, "--", PYTHON, counter, log, cwd=tmp)
    pid = ready(log)
    wanted = []
    for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGWINCH"):
        os.kill(p.pid, signal.Signals[name])
        wanted.append(name)
        until(lambda: len(names(log)) >= len(wanted))
    time.sleep(0.2)
    check("signals_are_passed_on_once", names(log) == wanted, names(log))
    os.kill(p.pid, signal.SIGTERM)
    status, _, err = finish(p)
    check("term_ends_it_and_saves", status == 21 and not alive(pid) and len(traces(tmp)) == 1 and
          boxes() == [], (status, err))


def test_killed(tmp, counter):
    for number in (signal.SIGTERM, signal.SIGKILL):
        place = os.path.join(tmp, number.name)
        os.mkdir(place)
        p = start("-o", place, "--", PYTHON, "-c", LOOP + "open('ready', 'w')\nturn(999, 1)",
                  cwd=place)
        until(lambda: os.path.exists(place + "/ready"))
        if number == signal.SIGTERM:
            p.terminate()
        else:
            with open(f"/proc/{p.pid}/task/{p.pid}/children") as f:
                os.kill(int(f.read()), number)
        status, _, err = finish(p)
        files = traces(place)
        check(f"killed_by_{number.name}_leaves_the_window", status == 128 + number and
              len(files) == 1 and count(files[0], "park") >= 3, (status, err, files))


def test_command_signals_itself(tmp):
    """kill 0 reaches tacho run as well, which must not send it back."""
    log = os.path.join(tmp, "own")
    code = LOOP + f"n = 0\ndef f(*a):\n    global n; n += 1\nsignal.signal(10, f)\n" \
        f"os.kill(0, 10)\nturn(3, 0.1)\nopen({log!r}, 'w').write(str(n) + chr(10))\n"
    p = start("-q", "-o", tmp, "--", PYTHON, "-c", code, cwd=tmp, start_new_session=True)
    status, _, err = finish(p)
    check("own_signal_comes_once", status == 0 and read(log) == ["1"], (status, err, read(log)))


def stops_here():
    """Whether SIGTSTP stops anything that is started from here."""
    plain = subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL)
    try:
        os.kill(plain.pid, signal.SIGTSTP)
        time.sleep(0.3)
        return state(plain.pid) == "T"
    finally:
        plain.kill()
        plain.wait()


def test_stopped(tmp, counter):
    log = os.path.join(tmp, "stopped")
    p = start("-q", "-o", tmp, "--", PYTHON, counter, log, "stop", cwd=tmp)
    pid = ready(log)
    os.kill(pid, signal.SIGSTOP)
    check("stopped_command_does_not_stop_tacho", until(lambda: state(pid) == "T") and
          state(p.pid) != "T", state(p.pid))
    os.kill(p.pid, signal.SIGCONT)
    check("continued_through_tacho", until(lambda: state(pid) != "T"), state(pid))
    check("continued_once", until(lambda: names(log) == ["SIGCONT"]), names(log))
    if stops_here():
        os.kill(p.pid, signal.SIGTSTP)
        check("stop_is_passed_on", until(lambda: state(pid) == "T"), state(pid))
    else:
        skip("stop_is_passed_on", "in an orphaned process group SIGTSTP stops nothing")
    os.kill(p.pid, signal.SIGCONT)
    until(lambda: state(pid) != "T")
    p.terminate()
    status, _, err = finish(p)
    check("ends_after_stops", status == 21, (status, err))


def test_tacho_dies(tmp, counter):
    log = os.path.join(tmp, "orphan")
    p = start("-q", "-o", tmp, "--", PYTHON, counter, log, cwd=tmp)
    pid = ready(log)
    before = len(traces(tmp))
    p.kill()
    p.wait()
    time.sleep(0.3)
    check("command_outlives_tacho", alive(pid) and names(log) == [], names(log))
    end(pid)
    until(lambda: not alive(pid))
    p.communicate()
    check("its_box_is_kept", len(boxes()) == 1 and len(traces(tmp)) == before, boxes())
    for box in boxes():
        os.unlink(box)


class Terminal:
    """A program with a terminal of its own."""

    def __init__(self, argv, cwd):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvpe(argv[0], argv, environment(PS1="prompt> ", TERM="dumb", HISTFILE=""))
        self.text = ""

    def read(self, seconds=0.1):
        while select.select([self.fd], [], [], seconds)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                break
            if not data:
                break
            self.text += data.decode(errors="replace")
        return self.text

    def expect(self, words, seconds=15):
        return until(lambda: words in self.read(0.05), seconds)

    def write(self, text):
        os.write(self.fd, text.encode())

    def wait(self, seconds=15):
        """The wait status, None when it does not end."""
        status = [None]

        def ended():
            self.read(0.01)
            pid, value = os.waitpid(self.pid, os.WNOHANG)
            status[0] = value if pid else None
            return pid
        if not until(ended, seconds):
            end(self.pid)
            os.waitpid(self.pid, 0)
        os.close(self.fd)
        return status[0]


def test_terminal(tmp, counter):
    log = os.path.join(tmp, "terminal")
    t = Terminal([BIN, "run", "-o", tmp, "--", PYTHON, counter, log, "tty"], tmp)
    ready(log)
    check("terminal_is_the_commands", "isatty True True True" in read(log), read(log))
    for i in range(3):
        t.write("\x03")
        until(lambda: len(names(log)) > i)
    t.write("\x1c")
    until(lambda: len(names(log)) >= 4)
    time.sleep(0.2)
    check("keys_send_signals_once", names(log) == ["SIGINT"] * 3 + ["SIGQUIT"], names(log))
    end(int([x for x in read(log) if x.startswith("ready")][0].split()[1]))
    status = t.wait()
    check("terminal_status", status is not None and os.waitstatus_to_exitcode(status) == 137,
          (status, t.text))
    log = os.path.join(tmp, "interrupt")
    t = Terminal([BIN, "run", "-o", tmp, "--", PYTHON, "-c",
                  LOOP + f"open({log!r}, 'w').write('ready 1' + chr(10))\nturn(999, 1)"], tmp)
    ready(log)
    t.write("\x03")
    status = t.wait()
    check("interrupt_ends_and_saves", status is not None and "window of python3" in t.text and
          os.waitstatus_to_exitcode(status) in (1, -signal.SIGINT), (status, t.text))


def test_shell(tmp, counter):
    """In an interactive shell: Ctrl-Z stops the job, fg continues it."""
    log = os.path.join(tmp, "shell")
    t = Terminal(["bash", "--norc", "--noprofile", "-i"], tmp)
    t.expect("prompt>")
    t.write(shlex.join([BIN, "run", "-q", "-o", tmp, "--", PYTHON, counter, log, "stop", "int"]) +
            "\n")
    pid = ready(log)
    t.write("\x1a")
    check("shell_sees_the_stop", t.expect("Stopped") and state(pid) == "T", t.text)
    t.write("fg\n")
    check("fg_continues", until(lambda: state(pid) != "T"), t.text)
    check("fg_continues_once", until(lambda: names(log) == ["SIGCONT"]), names(log))
    t.write("\x03")
    until(lambda: not alive(pid))
    t.write("echo status $?\n")
    check("shell_gets_the_status", t.expect("status 21"), t.text)
    check("shell_interrupt_came_once", names(log) == ["SIGCONT", "SIGINT"], names(log))
    t.write("exit\n")
    t.wait()


def test_script(tmp):
    """bash ends a script at Ctrl-C only if the program that it waits for died of it."""
    place = os.path.join(tmp, "script")
    os.mkdir(place)
    for key, number in (("\x03", signal.SIGINT), ("\x1c", signal.SIGQUIT)):
        log = os.path.join(place, number.name)
        code = LOOP + f"for n in (2, 3):\n    signal.signal(n, signal.SIG_DFL)\n" \
            f"open({log!r}, 'w').write('ready 1' + chr(10))\nturn(999, 1)"
        command = shlex.join([BIN, "run", "-o", place, "--", PYTHON, "-c", code])
        t = Terminal(["bash", "--norc", "--noprofile", "-c", f"{command}; echo went on with $?"],
                     place)
        ready(log)
        t.write(key)
        status = t.wait()
        if number == signal.SIGINT:
            check("interrupt_ends_the_script", status is not None and "went on" not in t.text and
                  os.waitstatus_to_exitcode(status) == -number, (status, t.text))
        else:
            check("quit_is_told_as_status", status is not None and "went on with 131" in t.text,
                  (status, t.text))
        check(f"killed_by_key_{number.name}_leaves_the_window", "window of python3" in t.text,
              t.text)


def main():
    with folder() as tmp:
        counter = script(tmp, "counter.py", COUNTER)
        test_passed_on(tmp, counter)
        test_killed(tmp, counter)
        test_command_signals_itself(tmp)
        test_stopped(tmp, counter)
        test_tacho_dies(tmp, counter)
        test_terminal(tmp, counter)
        test_shell(tmp, counter)
        test_script(tmp)
    return 1 if librun.failures else 0


if __name__ == "__main__":
    sys.exit(main())
