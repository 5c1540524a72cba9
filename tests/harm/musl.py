#!/usr/bin/env python3
"""Programs of another C library or architecture: musl ones are recorded, on their own, as children and
in a root folder like Alpine's; others run as without tacho."""
import os
import shutil
import socket
import subprocess
import sys
import tempfile

from libharm import BIN, check, environment, failures, librun, may_mount, row, skip

BUILD = os.path.abspath(os.environ.get("TACHO_BUILD") or "build")
SERVER = os.path.join(BUILD, "tests/harm/harm-musl_server")
HOOKS = os.path.join(BUILD, "src/hooks")
LIBRARIES = [os.path.join(HOOKS, name) for name in
             ("libtacho-preload.so", "libtacho-preload-musl.so")]
LINKER = "/lib/ld-musl-x86_64.so.1" if os.uname().machine == "x86_64" else \
    "/lib/ld-musl-aarch64.so.1"
BUSYBOX = next((path for path in ("/usr/bin/busybox", "/bin/busybox") if os.path.exists(path)), None)
LOADER_WORDS = ("Error relocating", "cannot be preloaded", "symbol not found")
# The server ends with this status when it is asked to.
DONE = 5


def ask(argv, requests, **more):
    """Starts a server, sends these bytes one by one, and gives answers, status and what it said."""
    p = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         env=environment(), **more)
    answers = b""
    port = p.stdout.readline().strip()
    if port:
        with socket.create_connection(("127.0.0.1", int(port)), timeout=60) as s:
            for byte in requests + "q":
                s.sendall(byte.encode())
                answers += s.recv(1)
    _, err = p.communicate(timeout=120)
    return answers, p.returncode, err


def first_line(err):
    return next((line for line in err.split("\n")
                 if line.startswith("tacho run:") and "itself used" not in line), "")


def compare(name, situation, tmp, argv, requests="aaa", before=(), named=None):
    """The server with and without tacho. `named`: functions of which the report names one."""
    plain = ask([*before, *argv], requests)
    trace = os.path.join(tmp, name + ".tacho")
    answers, status, err = ask([*before, BIN, "run", "-o", trace, "--", *argv], requests)
    check(f"{situation}: same answers and status", (answers, status) == plain[:2] and
          answers == (requests + "q").encode(), (plain, answers, status, err))
    check(f"{situation}: the dynamic linker says nothing",
          not any(word in err for word in LOADER_WORDS), err)
    report = subprocess.run([BIN, "report", trace], capture_output=True, text=True).stdout \
        if named else ""
    if named:
        head = report[:report.find("callbacks by length")]
        check(f"{situation}: the report names the fault", any(f in head for f in named), report)
    recorded = len(librun.events(trace) or []) if os.path.exists(trace) else 0
    found = next((f for f in named or () if f in report), None)
    row(situation, f"exit {plain[1]}", f"exit {status}",
        f"{recorded} events" + (f"; the report names {found}" if found else ""), first_line(err))
    return recorded, err


def test_programs(tmp):
    for name, letter, function in (("blocked", "s", "wait_for_backend"),
                                   ("lock", "l", "rewrite_table"),
                                   ("cpu", "c", "recompute_prices")):
        # A machine that is busy with other things hides how long the CPU was used.
        named = [function] if letter != "c" else [function, "without a CPU", "nothing of the process"]
        compare(name, f"a musl server, {name}", tmp, [SERVER], "aa" + 3 * letter + "aa", named=named)
    compare("child", "a musl server as child of a shell of glibc", tmp,
            ["sh", "-c", f"{SERVER}; exit $?"], "aasssa", named=["wait_for_backend"])
    recorded, _ = compare("system", "a musl server that starts /bin/sh by system(3)", tmp, [SERVER],
                          "axxa")
    check("a musl program that uses system(3) is recorded", recorded > 0, recorded)
    script = os.path.join(tmp, "script")
    with open(script, "w") as f:
        f.write(f"#!{SERVER}\n")
    os.chmod(script, 0o755)
    compare("script", "a script whose interpreter is a musl program", tmp, [script], "asa",
            named=["wait_for_backend"])


def test_static_between(tmp):
    """A static shell passes the environment on, and nobody chooses the library."""
    if not BUSYBOX:
        skip("a static shell in between", "busybox is not installed (Debian: busybox-static)")
        return
    argv = [BUSYBOX, "sh", "-c", f"{SERVER}; exit $?"]
    recorded, err = compare("static", "a musl server as child of a static shell", tmp, argv, "assss")
    # tacho looks at its descendants now and then: one that lives longer is seen for certain.
    for length in (8, 40):
        if "made for another C library" not in err:
            err = ask([BIN, "run", "-o", tmp + "/long.tacho", "--", *argv], length * "s")[2]
    check("a musl program with the library of glibc is reported as not recorded",
          not recorded and "made for another C library" in err, err)


def make_root(tmp, libraries):
    """A root folder as Alpine's: musl, busybox and a server; and tacho's libraries, where they are
    outside."""
    root = os.path.join(tmp, "root")
    for folder in ("lib", "bin", "proc", "dev", "tmp"):
        os.makedirs(os.path.join(root, folder))
    shutil.copy(os.path.realpath(LINKER), root + LINKER)
    shutil.copy(BUSYBOX, root + "/bin/busybox")
    os.symlink("busybox", root + "/bin/sh")
    shutil.copy(SERVER, root + "/server")
    for library in libraries:
        os.makedirs(os.path.dirname(root + library), exist_ok=True)
        shutil.copy(library, root + library)
    return root


def mounted(root):
    """What stands before a command for which the root has /proc and /dev."""
    return ["unshare", "-m", "--propagation", "private", "sh", "-c",
            f'mount -t proc proc "{root}/proc" && mount --rbind /dev "{root}/dev" && exec "$@"', "sh"]


def test_root(tmp):
    if not BUSYBOX or os.geteuid() != 0 or not may_mount():
        skip("a root folder like Alpine's", "needs root, mount namespaces and busybox-static")
        return
    root = make_root(tmp, LIBRARIES)
    for name, argv in (("server", ["/server"]), ("shell", ["/bin/sh", "-c", "/server; exit $?"])):
        compare("alpine-" + name, f"a root like Alpine's, {name}", tmp, ["chroot", root, *argv],
                "aasssaa", before=mounted(root), named=["wait_for_backend"])
    shutil.rmtree(root)
    root = make_root(tmp, [])
    recorded, _ = compare("alpine-bare", "a root like Alpine's, without the libraries", tmp,
                          ["chroot", root, "/bin/sh", "-c", "/server; exit $?"], "aasa",
                          before=mounted(root))
    check("without the libraries nothing is recorded", recorded == 0, recorded)


HELLO = '#include <stdio.h>\nint main(void) { return puts("hello") < 0 ? 1 : 3; }\n'


def build(tmp, name, *compiler):
    """A small program, or None when it cannot be built."""
    path = os.path.join(tmp, name)
    try:
        done = subprocess.run([*compiler, "-x", "c", "-", "-o", path], input=HELLO.encode(),
                              capture_output=True)
    except OSError:
        return None
    return path if done.returncode == 0 else None


def run_both(situation, name, tmp, argv, before=()):
    """A program that ends by itself: the same status, output and words of the dynamic linker."""
    plain = subprocess.run([*before, *argv], capture_output=True, text=True, env=environment())
    taped = subprocess.run([*before, BIN, "run", "-o", os.path.join(tmp, name + ".tacho"), "--",
                            *argv], capture_output=True, text=True, env=environment())
    check(f"{situation}: same status and output",
          (taped.returncode, taped.stdout) == (plain.returncode, plain.stdout) and
          plain.stdout == "hello\n", (plain, taped))
    row(situation, f"exit {plain.returncode}", f"exit {taped.returncode}", "nothing",
        first_line(taped.stderr))
    return taped


def test_small(tmp):
    program = build(tmp, "hello-32", "gcc", "-m32", "-idirafter",
                    "/usr/include/x86_64-linux-gnu")
    if not program or subprocess.run([program], capture_output=True).returncode != 3:
        skip("programs of 32 bits", "they cannot be built or do not run here (libc6-dev-i386)")
        return
    done = run_both("a 32-bit child of a shell", "small", tmp, ["sh", "-c", f"{program}; exit $?"])
    check("a 32-bit child: the dynamic linker says nothing", "preloaded" not in done.stderr, done)
    if BUSYBOX:
        run_both("a 32-bit child of a static shell", "small-static", tmp,
                 [BUSYBOX, "sh", "-c", f"{program}; exit $?"])


def test_arm64(tmp):
    """Another architecture, which the kernel gives to qemu (binfmt_misc), in a user namespace of its
    own: nobody else's programs are concerned."""
    qemu = shutil.which("qemu-aarch64")
    program = build(tmp, "hello-arm64", "aarch64-linux-gnu-gcc")
    magic = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
    mask = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
    at = "/proc/sys/fs/binfmt_misc"
    before = ["unshare", "-Urm", "sh", "-c",
              f"mount -t binfmt_misc none {at} && printf %s ':arm64:M::"
              f"{magic}:{mask}:{qemu}:' >{at}/register && export QEMU_LD_PREFIX=/usr/aarch64-linux-gnu"
              ' && exec "$@"', "sh"]
    if os.uname().machine != "x86_64" or not qemu or not program or \
            subprocess.run([*before, program], capture_output=True).returncode != 3:
        skip("programs of arm64", "needs qemu-user, a cross compiler and binfmt_misc of a namespace")
        return
    done = run_both("an arm64 child under qemu", "arm64", tmp, ["sh", "-c", f"{program}; exit $?"],
                    before)
    check("an arm64 child: the dynamic linker says nothing", "preloaded" not in done.stderr, done)


def main():
    with tempfile.TemporaryDirectory(prefix="tacho-harm-") as tmp:
        os.chmod(tmp, 0o755)
        if not os.path.exists(SERVER) or not os.path.exists(LINKER):
            skip("musl programs", "they are not built here: no musl-gcc (Debian: musl-tools)")
        else:
            test_programs(tmp)
            test_static_between(tmp)
            test_root(tmp)
        test_small(tmp)
        test_arm64(tmp)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
