#!/usr/bin/env python3
"""What a recorded program starts with an environment of its own is recorded as well; all else about
exec and spawn is as without tacho."""
import os
import subprocess

from libhooks import BIN, BUILD, PRELOAD, box_folder, check, finish, run, skip

PROGRAM = BUILD + "/tests/hooks/hooks-exec_subject"
MUSL, SMALL = PROGRAM + "_musl", PROGRAM + "_32"
PRELOAD_MUSL = PRELOAD.replace(".so", "-musl.so")
WAYS = ("execve", "execv", "execvp", "execvpe", "execl", "execlp", "execle", "fexecve", "execveat",
        "posix_spawn", "posix_spawnp", "vfork", "thread execve", "thread execvp")


def environment(boxes, **more):
    env = dict(os.environ, LD_PRELOAD=PRELOAD, TACHO_BOX_DIR=boxes, TACHO_RECORDING="77")
    env.update(more)
    return {k: v for k, v in env.items() if v is not None}


def told(boxes, how, *variables, program=PROGRAM, **more):
    """What the new program says of its environment, and what went to stderr."""
    p = run([program, how, *variables], environment(boxes, **more))
    return dict(w.split("=", 1) for w in p.stdout[len(how):].split() if "=" in w), p


def test_given_back(boxes):
    for how in WAYS:
        got, p = told(boxes, how, "-")
        check(f"{how}: an empty environment", got.get("preload") == PRELOAD and
              got.get("recording") == "77" and not p.stderr, p)
        got, p = told(boxes, how, "OWN=1", "LD_PRELOAD=libm.so.6")
        check(f"{how}: a library of its own stays in front",
              got.get("preload") == "libm.so.6:" + PRELOAD and got.get("own") == "1", p)


def test_left_alone(boxes):
    for name, variables in (
            ("another recording", ["TACHO_RECORDING=78"]),
            ("switched off", ["TACHO=off"]),
            ("very many variables", ["many"])):
        got, p = told(boxes, "execve", *variables)
        check(f"{name}: stays as it is", got.get("preload") == "none" and
              got.get("entries") == ("5000" if "many" in variables else "1"), p)
    whole = ["LD_PRELOAD=" + PRELOAD, "TACHO_RECORDING=77"]
    got, p = told(boxes, "execve", *whole)
    check("whole: stays as it is", got.get("entries") == "2", p)
    got, p = told(boxes, "execve", "-", TACHO="off")
    check("a program that is switched off gives nothing", got.get("preload") == "none", p)
    got, p = told(boxes, "execve", "-", TACHO_EXCLUDE="hooks-exec_subj")
    check("an excluded program gives nothing", got.get("preload") == "none", p)


def test_answers(boxes, tmp):
    script = os.path.join(tmp, "script")
    with open(script, "w") as f:
        f.write("echo from the shell $0 $1\n")
    os.chmod(script, 0o755)
    for how in ("missing", "denied", "script"):
        plain = run([PROGRAM, how, "SCRIPT=" + script], dict(os.environ))
        _, p = told(boxes, how, "SCRIPT=" + script)
        check(f"{how}: the same answer", (p.stdout, p.stderr) == (plain.stdout, plain.stderr) and
              ("errno" in p.stdout) == (how != "script"), (plain, p))


def test_gone(boxes, tmp):
    """Where the library cannot be read any more, the dynamic linker is not made to complain."""
    library = os.path.join(tmp, "libtacho-preload.so")
    subprocess.run(["cp", PRELOAD, library], check=True)
    code = f"import os, subprocess; os.unlink('{library}'); " \
           "print(subprocess.run(['/usr/bin/env'], env={}, capture_output=True))"
    p = run(["/usr/bin/python3", "-c", code], environment(boxes, LD_PRELOAD=library))
    check("a library that is gone is not given back", "stdout=b'', stderr=b''" in p.stdout, p)


def test_other_libc(boxes, tmp):
    """A program whose dynamic linker has another name."""
    other = os.path.join(tmp, "other")
    with open(PROGRAM, "rb") as f:
        data = f.read()
    linker = subprocess.run(["readelf", "-p", ".interp", PROGRAM], capture_output=True,
                            text=True).stdout.split("]")[-1].strip()
    if not linker.startswith("/"):
        skip("another C library is left alone", "readelf tells no dynamic linker")
        return
    link = "/tmp/l" + str(os.getpid())
    link += "x" * (len(linker) - len(link))
    os.symlink(linker, link)
    try:
        with open(other, "wb") as f:
            f.write(data.replace(linker.encode(), link.encode(), 1))
        os.chmod(other, 0o755)
        code = f"import subprocess; print(subprocess.run(['{other}', 'show'], env={{'OWN': '3'}}, " \
               "capture_output=True, text=True).stdout)"
        p = run(["/usr/bin/python3", "-c", code], environment(boxes))
        check("another C library is left alone", "preload=none recording=none own=3" in p.stdout, p)
    finally:
        os.unlink(link)


def wrap(tmp, name, interpreter):
    """A script with this interpreter, which gives on its arguments."""
    path = os.path.join(tmp, name)
    with open(path, "w") as f:
        f.write(f"#!{interpreter} show\n")
    os.chmod(path, 0o755)
    return path


def targets(tmp):
    """Programs that our library cannot be loaded into: what they are, the program, and what their
    LD_PRELOAD has in place of it."""
    made = os.path.exists(MUSL) and os.path.exists("/lib/ld-musl-x86_64.so.1")
    if made:
        script = wrap(tmp, "script", MUSL)
        yield "musl", MUSL, PRELOAD_MUSL
        yield "a script of a musl program", script, PRELOAD_MUSL
        yield "a script of a script of a musl program", wrap(tmp, "outer", script), PRELOAD_MUSL
    else:
        skip("musl programs", "they are not built here: no musl-gcc")
    if os.path.exists(SMALL) and run([SMALL], dict(os.environ)).returncode == 0:
        yield "32 bits", SMALL, None
        yield "a script of 32 bits", wrap(tmp, "small", SMALL), None
    else:
        skip("32-bit programs", "they cannot be built or do not run here")


def test_chosen(boxes, tmp):
    """The library in LD_PRELOAD is one that the new program can load, however it is started: with the
    environment that it inherits, and with one that lacks the library."""
    other = os.path.join(tmp, "other.so")
    subprocess.run(["gcc", "-shared", "-o", other, "-x", "c", "/dev/null"], check=True)
    for name, target, library in targets(tmp):
        wrong, lost = [], []
        for how in (*WAYS, "execveat descriptor"):
            # As the others behave: a library of another machine is told of on stderr, and ignored.
            _, p = told(boxes, how, START=target, KEEP="1", LD_PRELOAD=f"{PRELOAD}:{other}")
            want = f"preload={library}:{other}" if library else f"preload={other}"
            if p.returncode or f" {want} recording=77 " not in p.stdout or "libtacho" in p.stderr:
                wrong.append((how, p))
            _, p = told(boxes, how, "-", START=target)
            want = f"preload={library} recording=77" if library else "preload=none recording=none"
            if p.returncode or f" {want} " not in p.stdout or p.stderr:
                lost.append((how, p))
        check(f"{name}: the library of its own, and others stay", not wrong, wrong)
        check(f"{name}: nothing that it cannot load is given back", not lost, lost)


def test_both_ways(boxes):
    """musl programs start those of glibc, by hooks of the other library."""
    if not os.path.exists(MUSL) or not os.path.exists(PRELOAD_MUSL):
        skip("programs of glibc started by musl programs", "no musl-gcc here")
        return
    ways = [how for how in WAYS if how != "execveat"]
    for how in ways:
        _, p = told(boxes, how, program=MUSL, START=PROGRAM, KEEP="1", LD_PRELOAD=PRELOAD_MUSL)
        check(f"musl, {how}: a program of glibc gets its library",
              f" preload={PRELOAD} recording=77 " in p.stdout and not p.stderr, p)


def test_foreign(boxes):
    """The library is no harm in a process of the other C library, and still chooses there."""
    if not os.path.exists(MUSL) or not os.path.exists(PRELOAD_MUSL):
        skip("a library in a process of another C library", "no musl-gcc here")
        return
    for name, program, library in (("glibc's in musl", MUSL, PRELOAD),
                                   ("musl's in glibc", PROGRAM, PRELOAD_MUSL)):
        for target, right in ((PROGRAM, PRELOAD), (MUSL, PRELOAD_MUSL)):
            for how in ("execve", "execvp", "posix_spawn", "thread execve"):
                _, p = told(boxes, how, program=program, START=target, KEEP="1", LD_PRELOAD=library)
                check(f"{name}, {how} of {os.path.basename(target)}",
                      f" preload={right} recording=77 " in p.stdout and not p.stderr, p)
        _, p = told(boxes, "show", program=program, LD_PRELOAD=library + ":" + library)
        check(f"{name}: named twice", p.returncode == 0 and not p.stderr, p)


def test_programs(boxes, tmp):
    """Under tacho run, by what cleans its environment in practice."""
    wait = "import select; select.select([], [], [], 0.05)"
    python = "/usr/bin/python3"
    quoted = f"'{python}' -c '{wait}'"
    for name, argv in (
            ("env -i", ["env", "-i", python, "-c", wait]),
            ("subprocess of python", [python, "-c", "import subprocess; subprocess.run("
                                      f"['{python}', '-c', '{wait}'], env={{}})"]),
            ("a shell that unsets", ["sh", "-c", f"unset LD_PRELOAD; {quoted}; true"]),
            ("perl", ["perl", "-e", f"%ENV = (); system('{python}', '-c', '{wait}')"]),
            ("env -i in between", ["env", "-i", "/bin/sh", "-c", f"{quoted}; true"])):
        place = os.path.join(tmp, name.replace(" ", "-"))
        os.mkdir(place)
        p = run([BIN, "run", "-o", place, "--", *argv], dict(os.environ, TACHO_BOX_DIR=boxes))
        check(f"{name}: recorded", p.returncode == 0 and len(os.listdir(place)) == 1 and
              "window of python3" in p.stderr, p)


def main():
    with box_folder() as boxes, box_folder() as tmp:
        test_given_back(boxes)
        test_left_alone(boxes)
        test_answers(boxes, tmp)
        test_gone(boxes, tmp)
        test_other_libc(boxes, tmp)
        test_chosen(boxes, tmp)
        test_both_ways(boxes)
        test_foreign(boxes)
        test_programs(boxes, tmp)
    finish()


if __name__ == "__main__":
    main()
