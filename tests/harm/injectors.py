#!/usr/bin/env python3
"""Programs that another tool is in already (LD_PRELOAD), that a tracer runs, or that are linked in a way
that libraries in front of libc have broken before."""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

from libharm import failures, skip
from libplaces import BUILD, HABITS, PYTHON, SERVER, each, job, thrice

HERE = os.path.dirname(os.path.abspath(__file__))
SERVE = [PYTHON, "-S", "-c", SERVER]
LIBRARIES = {  # situation: file, further variables
    "jemalloc preloaded": ("libjemalloc.so.2", {}),
    "tcmalloc preloaded": ("libtcmalloc.so.4", {}),
    "libeatmydata preloaded": ("libeatmydata.so", {}),
    "tsocks preloaded": ("libtsocks.so", {}),
    "proxychains preloaded, which has a thread": (
        "libproxychains.so.4", {"PROXYCHAINS_CONF_FILE": f"{HERE}/proxychains.conf"}),
    "libfaketime preloaded, a clock five times as fast": (
        "faketime/libfaketimeMT.so.1", {"FAKETIME": "-15d x5"}),
    "libstdbuf preloaded": ("/usr/libexec/coreutils/libstdbuf.so", {}),
}
LINKED = {
    "linked with -z now and -Bsymbolic": "linked-now",
    "linked lazily": "linked-lazy",
    "linked with copies of libc's variables": "linked-copied",
}
TRACERS = {
    "strace": ["strace", "-f", "-o", "/dev/null"],
    "ltrace": ["ltrace", "-o", "/dev/null"],
    "valgrind": ["valgrind", "-q"],
    "perf record": ["perf", "record", "-q", "-o", "/dev/null"],
    "fakeroot": ["fakeroot"],
    "stdbuf": ["stdbuf", "-oL"],
    "qemu-user": [f"qemu-{os.uname().machine}"],
}
SURPLUS = """
import ctypes, glob, sys
count = 0
for path in sorted(glob.glob(sys.argv[1] + '/*.so')):
    try:
        ctypes.CDLL(path)
        count += 1
    except OSError:
        break
print(count)
"""
NO_LIBC = """
.globl _start
_start:
	mov $1, %edi
	lea text(%rip), %rsi
	mov $3, %edx
	mov $1, %eax
	syscall
	mov $7, %edi
	mov $60, %eax
	syscall
.section .rodata
text: .ascii "hi\\n"
.section .note.GNU-stack, "", @progbits
"""


def built(name):
    return f"{BUILD}/tests/harm/{name}"


def libraries():
    folders = glob.glob("/usr/lib/*-linux-gnu")
    jobs = []
    for situation, (name, env) in LIBRARIES.items():
        found = [path for path in ([name] if name[0] == "/" else
                                   [f"{folder}/{name}" for folder in folders])
                 if os.path.exists(path)]
        if found:
            jobs.append(job(situation, [HABITS, "own-allocator"],
                            env={"LD_PRELOAD": found[0], **env}))
        else:
            skip(situation, f"{name} is not installed")
    each(jobs)
    injector = built("libinjector.so")
    thrice("an injector that sets variables", SERVE, env={"LD_PRELOAD": injector})
    thrice("an injector that leaves LD_PRELOAD and starts the program anew", [HABITS, "wait"],
           env={"LD_PRELOAD": injector, "INJECTOR_EXEC": "1"}, by_run=False)
    thrice("LD_BIND_NOW", SERVE, env={"LD_BIND_NOW": "1"})
    thrice("LD_DEBUG", SERVE, env={"LD_DEBUG": "libs"})
    thrice("LD_AUDIT of another library", [HABITS, "wait"], env={"LD_AUDIT": injector})


def linked():
    each(job(situation, [built(name)]) for situation, name in LINKED.items())
    thrice("linked statically", [built("linked-static")], recorded=False)
    if os.uname().machine != "x86_64" or not shutil.which("gcc"):
        skip("without libc", "the program is for x86-64")
        return
    with tempfile.TemporaryDirectory(prefix="tacho-harm-") as tmp:
        program = f"{tmp}/no-libc"
        subprocess.run(["gcc", "-nostdlib", "-pie", "-x", "assembler", "-", "-o", program],
                       input=NO_LIBC, text=True, check=True)
        thrice("a dynamic program without libc", [program], status=7, recorded=False)


def sanitized():
    with tempfile.TemporaryDirectory(prefix="tacho-harm-") as tmp:
        for kind in ("address", "thread", "undefined"):
            source = os.path.join(HERE, "linked.c")
            program = f"{tmp}/{kind}"
            if subprocess.run(["gcc", "-D_GNU_SOURCE", f"-fsanitize={kind}", source, "-o", program],
                              capture_output=True).returncode:
                skip(f"{kind} sanitizer", "gcc has no library for it")
                continue
            # ASan wants to be first in LD_PRELOAD; `tacho run` says that it need not be.
            thrice(f"built with -fsanitize={kind}", [program],
                   env={"ASAN_OPTIONS": "verify_asan_link_order=0"})


def static_tls():
    """What lies in the static TLS block is counted when the program starts: it takes nothing of the
    surplus for libraries that come with dlopen."""
    with tempfile.TemporaryDirectory(prefix="tacho-harm-") as tmp:
        for number in range(12):
            shutil.copy(built("libsurplus.so"), f"{tmp}/{number:02}.so")
        thrice("static TLS for libraries that are loaded later", [PYTHON, "-S", "-c", SURPLUS, tmp],
               recorded=False)


def tracers():
    each(job(situation, [*before, HABITS, "wait"], recorded=None)
         for situation, before in TRACERS.items() if shutil.which(before[0]))
    for situation, before in TRACERS.items():
        if not shutil.which(before[0]):
            skip(situation, f"{before[0]} is not installed")


def main():
    if not os.path.exists(HABITS):
        skip("injectors", "tests/harm was not built")
        return 0
    for part in (libraries, linked, sanitized, static_tls, tracers):
        part()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
