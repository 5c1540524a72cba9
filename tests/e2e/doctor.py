#!/usr/bin/env python3
"""tacho doctor: its facts against facts found otherwise, in good circumstances and bad ones."""
import ctypes
import json
import os
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile

from librun import BIN, check, environment, failures, folder, said, skip, watched

NOBODY = 65534
MACHINE = os.uname().machine
CALLS = {"perf_event_open": {"x86_64": 298, "aarch64": 241},
         "timer_create": {"x86_64": 222, "aarch64": 107},
         "pidfd_open": {"x86_64": 434, "aarch64": 434}}
PERF_CALL = CALLS["perf_event_open"].get(MACHINE)


def number(call):
    return CALLS[call].get(MACHINE)


# Circumstances -------------------------------------------------------------------------


def deny(*calls):
    """A function for preexec_fn: from now on these system calls fail with EPERM."""
    def apply():
        libc = ctypes.CDLL(None, use_errno=True)
        code = [struct.pack("HBBI", 0x20, 0, 0, 0)]  # the number of the call
        for call in calls:
            code.append(struct.pack("HBBI", 0x15, 0, 1, number(call)))
            code.append(struct.pack("HBBI", 0x06, 0, 0, 0x00050000 | 1))  # errno EPERM
        code.append(struct.pack("HBBI", 0x06, 0, 0, 0x7fff0000))
        filters = ctypes.create_string_buffer(b"".join(code))
        program = struct.pack("HxxxxxxQ", len(code), ctypes.addressof(filters))
        libc.prctl(38, 1, 0, 0, 0)
        if libc.prctl(22, 2, ctypes.c_char_p(program), 0, 0):
            os._exit(99)
    return apply


class Place:
    """Copies of the program and the hooks that every user can reach."""

    def __init__(self, tmp):
        self.folder = os.path.join(tmp, "place")
        os.mkdir(self.folder, 0o755)
        self.program = shutil.copy(BIN, self.folder)
        built = os.path.join(os.path.dirname(BIN), "../hooks/libtacho-preload.so")
        self.hooks = None
        if os.path.isfile(built):
            self.hooks = shutil.copy(built, self.folder)
        self.boxes = tempfile.mkdtemp(prefix="tacho-test-doctor-", dir="/dev/shm")


def doctor(*arguments, program=BIN, env=None, **more):
    p = subprocess.run([program, "doctor", *arguments], env=environment(**(env or {})),
                       capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                       **more)
    return p


def ask(*arguments, **more):
    """What --json says, and the checks of all sections by name."""
    p = doctor("--json", *arguments, **more)
    try:
        told = json.loads(p.stdout)
    except ValueError:
        check("--json is JSON", False, said(p))
        told = {"verdict": None, "machine": [], "self": [], "program": []}
    checks = {c["name"]: c for part in ("machine", "self", "program")
              for c in told[part] or []}
    return p, told, checks


def state(checks, name):
    return checks.get(name, {}).get("state")


def value(checks, name):
    return checks.get(name, {}).get("value")


# Facts found otherwise ------------------------------------------------------------------


def file_text(path):
    try:
        with open(path) as f:
            return f.read().strip()
    except OSError:
        return None


def perf_opens():
    """Whether perf_event_open of a CPU clock, with the kernel's part, works for this process."""
    libc = ctypes.CDLL(None, use_errno=True)
    attr = bytearray(128)
    struct.pack_into("IIQQ", attr, 0, 1, 128, 0, 1000000)
    struct.pack_into("Q", attr, 40, 1)  # disabled
    fd = libc.syscall(PERF_CALL, (ctypes.c_char * 128).from_buffer(attr), 0, -1, -1, 8)
    if fd >= 0:
        os.close(fd)
    return fd >= 0


def as_nobody(question):
    """The answer to a question, asked by a process of that user."""
    pid = os.fork()
    if pid == 0:
        answer = 2
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            answer = int(bool(question()))
        finally:
            os._exit(answer)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1


def limit(which):
    soft = resource.getrlimit(which)[0]
    return "unlimited" if soft == resource.RLIM_INFINITY else soft


# Checks ---------------------------------------------------------------------------------


def machine():
    box_dir = os.environ["TACHO_BOX_DIR"]
    dead = [os.path.join(box_dir, f"{4000000 + i}-1-0.box") for i in range(12)]
    for path in dead:  # of processes that cannot be: ids end below
        with open(path, "w") as f:
            f.write("dead")
        os.utime(path, (1, 1))
    p, told, checks = ask()
    check("the exit status says that recording works", p.returncode == 0, said(p))
    check("the verdict is one of those that are documented",
          told["verdict"] in ("ok", "degraded") and
          told["verdict"] == ("degraded" if told["warnings"] else "ok"), told)
    check("no other box had to go for the one of the self-check",
          all(os.path.exists(path) for path in dead), os.listdir(box_dir))
    check("the self-check leaves nothing behind",
          set(os.listdir(box_dir)) == {os.path.basename(path) for path in dead},
          os.listdir(box_dir))
    for path in filter(os.path.exists, dead):
        os.unlink(path)

    space = os.statvfs(box_dir)
    check("the folder of boxes is the one that is used",
          value(checks, "box-folder") == box_dir and
          os.path.dirname(told["self_check"]["box"]) == box_dir, checks.get("box-folder"))
    unused = space.f_bavail * space.f_frsize
    told_unused = value(checks, "box-space")
    check("its free space is that of statvfs", isinstance(told_unused, int) and
          abs(told_unused - unused) < 256 << 20, f"{told_unused} {unused}")
    for name, which in (("memlock", resource.RLIMIT_MEMLOCK), ("nofile", resource.RLIMIT_NOFILE),
                        ("fsize", resource.RLIMIT_FSIZE), ("as", resource.RLIMIT_AS),
                        ("sigpending", resource.RLIMIT_SIGPENDING)):
        check(f"the limit {name} is that of getrlimit",
              value(checks, f"limit-{name}") == limit(which), checks.get(f"limit-{name}"))
    source = file_text("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    check("the clock is the kernel's counter, or CLOCK_MONOTONIC",
          value(checks, "clock") in (source, "monotonic"), checks.get("clock"))
    check("ptrace_scope is the one of Yama", value(checks, "ptrace-scope") ==
          file_text("/proc/sys/kernel/yama/ptrace_scope"), checks.get("ptrace-scope"))
    seccomp = [line.split()[1] for line in file_text("/proc/self/status").splitlines()
               if line.startswith("Seccomp:")]
    check("seccomp is that of /proc/self/status",
          str(value(checks, "seccomp")) == (seccomp or ["None"])[0], checks.get("seccomp"))
    check("every check has a sentence, and every one that is not ok says what to do",
          all(c["means"] and (c["state"] in ("ok", "unknown") or c["todo"])
              for c in checks.values()),
          [c for c in checks.values() if c["state"] not in ("ok", "unknown") and not c["todo"]])


def text():
    """What people read: the parts by their names, and each check under its own."""
    _, _, checks = ask("--", sys.executable)
    shown = doctor("--", sys.executable).stdout
    parts = [line for line in shown.splitlines() if line and not line.startswith(" ")]
    check("the parts of the text have their names", parts[1:] ==
          [f"The program {sys.executable}", "This machine", "A recording, really made"], parts)
    check("every check is in the text", all(f" {name} " in shown for name in checks),
          [name for name in checks if f" {name} " not in shown])


def counts(told, checks, name):
    did, recorded = told["self_check"].get("did", {}), told["self_check"].get("recorded", {})
    check(f"{name}: the self-check did what it says, and all of it was recorded",
          did.get("waits") == 200 == recorded.get("waits") and
          did.get("calls") == 3 == recorded.get("calls") and
          did.get("locks", 9) <= recorded.get("locks", 0), told["self_check"])
    check(f"{name}: samples stand for the CPU time that was used",
          did.get("cpu_ns", 0) >= 700e6 and
          0.5 < recorded.get("cpu_ns", 0) / max(did.get("cpu_ns", 0), 1) < 1.5 and
          recorded.get("samples", 0) > 10, told["self_check"])
    check(f"{name}: the checks of it are ok",
          all(state(checks, c) == "ok" for c in ("self-check", "self-waits", "self-calls",
                                                 "self-locks", "self-samples")),
          told.get("self"))


def perf(checks, name, opens):
    check(f"{name}: perf is {'ok' if opens else 'refused'}, as trying it shows",
          (state(checks, "perf") == "ok") == opens, checks.get("perf"))
    check(f"{name}: samples come from {'perf as well' if opens else 'timers'}",
          value(checks, "cpu-samples") == ("perf and timers" if opens else "timers"),
          checks.get("cpu-samples"))


def users(place):
    if not PERF_CALL:
        skip("perf", f"its number is not known for {MACHINE}")
        return
    _, told, checks = ask()
    counts(told, checks, "this user")
    perf(checks, "this user", perf_opens())
    if os.geteuid() != 0:
        skip("another user", "only root can become one")
        return
    os.chown(place.boxes, NOBODY, NOBODY)
    circumstances = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    env = {"TACHO_BOX_DIR": place.boxes, "TACHO_PRELOAD": place.hooks}
    p, told, checks = ask(program=place.program, env=env, **circumstances)
    check("nobody: recording works", p.returncode == 0 and told["verdict"] != "cannot", said(p))
    counts(told, checks, "nobody")
    perf(checks, "nobody", as_nobody(perf_opens))
    check("nobody: kernel functions have names where addresses are shown",
          (state(checks, "kernel-names") == "ok") == as_nobody(kernel_names),
          checks.get("kernel-names"))
    advised = re.findall(r"kernel\.(\w+)=(\d)", str(checks.get("kernel-names")))
    check("nobody: a setting that is advised is not there already",
          not advised or any(setting(name) != wanted for name, wanted in advised),
          checks.get("kernel-names"))
    # A folder of another user is none.
    os.chown(place.boxes, 0, 0)
    p, told, checks = ask(program=place.program, env=env, **circumstances)
    check("nobody: a folder of another user cannot be used, and that is told",
          p.returncode == 1 and told["verdict"] == "cannot" and
          state(checks, "box-folder") == "cannot" and state(checks, "self-check") == "cannot",
          said(p))


def setting(name):
    with open("/proc/sys/kernel/" + name) as f:
        return f.read().strip()


def kernel_names():
    with open("/proc/kallsyms") as f:
        return int(f.readline().split()[0], 16) != 0


def filters():
    if not PERF_CALL:
        skip("filters", f"numbers of calls are not known for {MACHINE}")
        return
    p, told, checks = ask(preexec_fn=deny("perf_event_open", "pidfd_open"))
    check("a filter: recording works, and less of it",
          p.returncode == 0 and told["verdict"] == "degraded", said(p))
    counts(told, checks, "a filter")
    perf(checks, "a filter", False)
    check("a filter: it is told, and what it refuses",
          value(checks, "seccomp") == 2 and state(checks, "switches") == "warning" and
          state(checks, "pidfd") == "warning", checks)
    p, told, checks = ask(preexec_fn=deny("timer_create"))
    check("a filter that refuses timers: the samples that are missing are told",
          p.returncode == 0 and state(checks, "self-samples") == "warning" and
          state(checks, "self-waits") == "ok", checks.get("self-samples"))


def bad_circumstances(tmp):
    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))
    p, told, checks = ask(preexec_fn=small_files)
    check("no box fits: the exit status is 1, and the limit is named",
          p.returncode == 1 and told["verdict"] == "cannot" and
          state(checks, "limit-fsize") == "cannot" and value(checks, "limit-fsize") == 100000,
          said(p))
    check("no box fits: less memory is not advised",
          "--memory" not in checks["limit-fsize"]["todo"], checks.get("limit-fsize"))

    def small_space():
        resource.setrlimit(resource.RLIMIT_AS, (60 << 20, 60 << 20))
    p, told, checks = ask(preexec_fn=small_space)
    check("little address space: what was really recorded decides",
          state(checks, "limit-as") == "warning" and
          (told["verdict"] == "cannot") == (state(checks, "self-check") == "cannot"), said(p))
    p, told, checks = ask(env={"TACHO": "off"})
    check("TACHO=off is told", p.returncode == 1 and state(checks, "switched-off") == "cannot",
          said(p))
    disk = os.path.join(tmp, "disk")
    os.mkdir(disk)
    kind = subprocess.run(["stat", "-f", "-c", "%T", disk], capture_output=True, text=True)
    if kind.stdout.strip() == "tmpfs":
        skip("a box folder on a disk", "temporary files are on tmpfs here")
    else:
        p, told, checks = ask(env={"TACHO_BOX_DIR": disk})
        check("a box folder on a disk is refused",
              p.returncode == 1 and state(checks, "box-folder") == "cannot" and
              "tmpfs" in checks["box-folder"]["means"], said(p))
    p, _, checks = ask(env={"TACHO_PRELOAD": os.path.join(tmp, "absent.so")})
    check("hooks that are not there are told",
          p.returncode == 1 and state(checks, "hooks") == "cannot", said(p))
    p = doctor(env={"TACHO": "off"})
    lines = p.stdout.splitlines()
    check("text: the verdict comes first, then what to do",
          lines and lines[0] == "Recording does not work here." and
          any("-> unset TACHO" in line for line in lines), said(p))
    p = doctor("--nonsense")
    check("an option that there is not: status 2", p.returncode == 2 and not p.stdout, said(p))


# Programs -------------------------------------------------------------------------------

SOURCE = """
#include <stdio.h>
#define F(n) int __attribute__((noinline)) f##n(int x) { char b[64]; \\
	snprintf(b, sizeof(b), "%d", x + n); return b[0]; }
F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15) F(16)
F(17) F(18) F(19) F(20) F(21) F(22) F(23) F(24) F(25) F(26) F(27) F(28) F(29) F(30)
#ifdef UV
int uv_run(void *l, int m) { return f1(m); }
#endif
#ifdef TOKIO_FUNCTION
int tokio(void) __asm__("_RNvMs_NtNtNtCs1a2b_5tokio7runtime4park5inner");
int tokio(void) { return f1(3); }
#endif
#ifdef TEXT
const char *volatile text = TEXT;
#endif
#ifdef LIB
extern int lib(void);
#else
#define lib() 0
#endif
int main(void) { return f1(1) + f2(2) + lib(); }
"""


def compiled(tmp, name, *options):
    source = os.path.join(tmp, "source.c")
    with open(source, "w") as f:
        f.write(SOURCE)
    path = os.path.join(tmp, name)
    p = subprocess.run(["cc", "-O2", source, "-o", path, *options], capture_output=True, text=True)
    return path if p.returncode == 0 else ""


def of(path, **more):
    return ask("--", path, **more)


def programs(tmp):
    framed = compiled(tmp, "framed", "-g", "-fno-omit-frame-pointer", "-Wl,--build-id")
    p, told, checks = of(framed)
    notes = subprocess.run(["readelf", "-n", framed], capture_output=True, text=True).stdout
    check("a dynamic program can be recorded",
          p.returncode == 0 and value(checks, "linking") == "dynamic", said(p))
    check("its build-id is that of readelf",
          value(checks, "build-id") and f"Build ID: {value(checks, 'build-id')}" in notes,
          checks.get("build-id"))
    check("its frame pointers are found", value(checks, "frame-pointers") == "yes",
          checks.get("frame-pointers"))
    check("its debug information is found", value(checks, "debug-info") == "own",
          checks.get("debug-info"))
    check("it links none of the libraries", [value(checks, n) for n in
          ("libuv", "libevent", "liburing", "tacho-api")] == ["none"] * 4, checks)
    _, _, checks = of(compiled(tmp, "bare", "-s", "-fomit-frame-pointer", "-Wl,--build-id=none",
                               "-DUV", "-rdynamic"))
    check("a bare program: no frame pointers, no build-id, no debug information",
          value(checks, "frame-pointers") == "no" and value(checks, "build-id") is None and
          state(checks, "build-id") == "warning" and value(checks, "debug-info") == "none",
          checks)
    check("libuv inside a program is found", value(checks, "libuv") == "static" and
          state(checks, "libuv") == "warning", checks.get("libuv"))
    static = compiled(tmp, "static", "-static")
    if not static:
        skip("a static program", "nothing can be linked statically here")
    else:
        p, told, checks = of(static)
        check("a static program cannot be recorded", p.returncode == 1 and
              told["verdict"] == "cannot" and value(checks, "linking") == "static", said(p))
        check("... and the machine is not to blame", state(checks, "self-check") == "ok" and
              "not for" in told["summary"], told["summary"])


def tokio(tmp):
    """Known by a function, or where these have no names, by the source files that panics name."""
    def of_text(text, *more):
        return of(compiled(tmp, "tokio", "-s", f'-DTEXT="{text}"', *more))[2]

    for name, checks in (
            ("by its functions", of(compiled(tmp, "tokio", "-DTOKIO_FUNCTION"))[2]),
            ("by its files", of_text("/root/.cargo/registry/src/x/tokio-1.47.1/src/runtime/park.rs")),
            ("in a folder of its own", of_text("vendor/tokio/src/runtime/park.rs"))):
        check(f"Tokio is known {name}, and what its crate would add is told",
              value(checks, "tokio") == "workers" and state(checks, "tokio") == "warning" and
              "crate tacho-tokio" in checks["tokio"]["todo"], checks.get("tokio"))
    checks = of_text("x/tokio-1.47.1/src/runtime/park.rs crates/tacho-tokio/src/lib.rs")
    check("a program with the crate tells of its tasks", value(checks, "tokio") == "told" and
          state(checks, "tokio") == "ok", checks.get("tokio"))
    for text in ("x/tokio-1.47.1/src/sync/mpsc.rs", "x/tokio-util-0.7.1/src/runtime/a.rs", "/tokio-"):
        checks = of_text(text)
        check(f"{text} is no runtime of Tokio", "tokio" not in checks, checks.get("tokio"))


def shared_libraries(tmp):
    uv = watched()
    if uv:
        _, _, checks = of(uv)
        ldd = subprocess.run(["ldd", uv], capture_output=True, text=True).stdout
        where = [line.split()[2] for line in ldd.splitlines() if "libuv.so" in line]
        check("a shared libuv is found, where ldd finds it", value(checks, "libuv") == "shared" and
              where and where[0] in checks["libuv"]["means"], checks.get("libuv"))
    else:
        skip("a shared libuv", "no program with it was built")
    memcached = shutil.which("memcached")
    if memcached:
        _, _, checks = of("memcached")
        check("a shared libevent is found", value(checks, "libevent") == "shared" and
              value(checks, "program") == memcached, checks.get("libevent"))
    else:
        skip("a shared libevent", "there is no memcached")
    lib = os.path.join(tmp, "libdoctor.so")
    with open(os.path.join(tmp, "lib.c"), "w") as f:
        f.write("int lib(void); int lib(void) { return 1; }\n"
                "int uv_run(void *l, int m); int uv_run(void *l, int m) { return m; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", os.path.join(tmp, "lib.c"), "-o", lib], check=True)
    path = compiled(tmp, "linked", "-DLIB", lib, f"-Wl,-rpath,{tmp}")
    _, _, checks = of(path)
    check("libuv inside another library is found", value(checks, "libuv") == "static" and
          lib in checks["libuv"]["means"], checks.get("libuv"))
    named = os.path.join(tmp, "named.so")
    subprocess.run(["cc", "-shared", "-fPIC", os.path.join(tmp, "lib.c"), "-o", named,
                    "-Wl,-soname,libdoctor-named.so.1"], check=True)
    by_name = compiled(tmp, "by-name", "-DLIB", named)
    os.unlink(lib)
    for program, library in ((path, lib), (by_name, "libdoctor-named.so.1")):
        p, _, checks = of(program)
        check(f"{os.path.basename(library)}, which is missing, is named", p.returncode == 1 and
              state(checks, "libraries") == "cannot" and value(checks, "libraries") == library,
              said(p))


def found_libraries(tmp):
    """Where libraries are looked for: as the dynamic linker does, through links, with its words."""
    real, lib = os.path.join(tmp, "real", "bin"), os.path.join(tmp, "real", "lib")
    os.makedirs(real)
    os.makedirs(os.path.join(lib, "deep"))
    source = os.path.join(tmp, "lib.c")

    def build(*arguments):
        subprocess.run(["cc", *arguments], check=True, capture_output=True)

    build("-shared", "-fPIC", source, "-o", f"{lib}/deep/libinner.so", "-Wl,-soname,libinner.so")
    for tags in ("--enable-new-dtags", "--disable-new-dtags"):
        build("-shared", "-fPIC", "-x", "c", "/dev/null", "-x", "none", "-o", f"{lib}/libouter.so",
              "-Wl,-soname,libouter.so", "-Wl,--no-as-needed", f"{lib}/deep/libinner.so",
              f"-Wl,{tags},-rpath,$ORIGIN/deep")
        program = compiled(real, "program", "-Wl,--no-as-needed", f"{lib}/libouter.so",
                           f"-Wl,{tags},-rpath,${{ORIGIN}}/../lib", f"-Wl,-rpath-link,{lib}/deep")
        link = os.path.join(tmp, "link-to-program")
        os.symlink(program, link)
        _, _, checks = of(link)
        check(f"{tags}: libraries beside a program that a link leads to are found",
              "libraries" not in checks and value(checks, "libuv") == "static" and
              f"{lib}/deep/libinner.so" in os.path.normpath(
                  checks["libuv"]["means"].split(" inside ")[1].split(",")[0]), checks)
        os.unlink(link)
    program = compiled(real, "elsewhere", "-Wl,--no-as-needed", f"{lib}/deep/libinner.so")
    p, _, checks = of(program)
    check("a library that only LD_LIBRARY_PATH would name is missing", p.returncode == 1 and
          value(checks, "libraries") == "libinner.so", checks.get("libraries"))
    _, _, checks = of(program, env={"LD_LIBRARY_PATH": f"/nowhere:{lib}/deep"})
    check("... and found in LD_LIBRARY_PATH", "libraries" not in checks, checks.get("libraries"))
    if not shutil.which("java"):
        skip("the libraries of java", "it is not installed")
    else:
        _, _, checks = of("java")
        check("the libraries of java, which a link leads to, are found", "libraries" not in checks,
              checks.get("libraries"))


def odd_programs(tmp):
    p, told, checks = of("no-such-command")
    check("a command that there is not", p.returncode == 1 and state(checks, "program") == "cannot"
          and state(checks, "self-check") == "ok", said(p))
    script = os.path.join(tmp, "script")
    with open(script, "w") as f:
        f.write(f"#!{sys.executable}\nopen({os.path.join(tmp, 'ran')!r}, 'w')\n")
    os.chmod(script, 0o755)
    p, _, checks = of(script)
    check("a script: its interpreter is looked at, and it is not run",
          p.returncode == 0 and sys.executable in checks["program"]["means"] and
          value(checks, "linking") == "dynamic" and
          not os.path.exists(os.path.join(tmp, "ran")), said(p))
    foreign = os.path.join(tmp, "foreign")
    with open(compiled(tmp, "native"), "rb") as f:
        data = bytearray(f.read())
    data[18:20] = struct.pack("<H", 243 if MACHINE != "riscv64" else 62)
    with open(foreign, "wb") as f:
        f.write(data)
    os.chmod(foreign, 0o755)
    p, _, checks = of(foreign)
    check("a program for another machine", p.returncode == 1 and
          value(checks, "linking") == "machine" and "RISC-V" in checks["linking"]["means"], said(p))
    hostile = os.path.join(tmp, "evil\x1b[31m")
    shutil.copy(os.path.join(tmp, "native"), hostile)
    p = doctor("--", hostile)
    check("what could drive a terminal is escaped", p.returncode == 0 and "\x1b" not in p.stdout,
          repr(p.stdout[:200]))


def setid(tmp):
    if os.geteuid() != 0:
        skip("a set-user-id program", "only root can make one of another user")
        return
    path = os.path.join(tmp, "setid")
    shutil.copy(os.path.join(tmp, "native"), path)
    os.chown(path, NOBODY, NOBODY)
    os.chmod(path, 0o4755)
    if os.statvfs(path).f_flag & os.ST_NOSUID:
        skip("a set-user-id program", "temporary files are on a file system without them")
        return
    p, _, checks = of(path)
    check("a set-user-id program cannot be recorded", p.returncode == 1 and
          value(checks, "linking") == "setid" and state(checks, "linking") == "cannot", said(p))


def main():
    with tempfile.TemporaryDirectory(prefix="tacho-doctor-") as tmp:
        os.chmod(tmp, 0o755)
        folder()
        place = Place(tmp)
        try:
            machine()
            text()
            users(place)
            filters()
            bad_circumstances(tmp)
            if not shutil.which("cc"):
                skip("programs", "there is no compiler")
            else:
                programs(tmp)
                tokio(tmp)
                shared_libraries(tmp)
                found_libraries(tmp)
                odd_programs(tmp)
                setid(tmp)
        finally:
            shutil.rmtree(place.boxes, ignore_errors=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
