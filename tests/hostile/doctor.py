#!/usr/bin/env python3
"""`tacho doctor -- PROGRAM` of a program that somebody else made: root asks, and nothing of it runs."""
import os
import shutil
import subprocess
import time

from libhostile import MALLORY, check, environment, fresh, main, said, skip, tacho

LINKER = {"x86_64": "/lib64/ld-linux-x86-64.so.2", "aarch64": "/lib/ld-linux-aarch64.so.1"}
LIBRARY = """
#include <fcntl.h>
#include <unistd.h>
int NAME(void) { return 0; }
unsigned la_version(unsigned version) { return version; }
__attribute__((constructor)) static void run(void)
{
	close(open(MARK, O_CREAT | O_WRONLY, 0600));
}
"""


def library(place, name):
    """One whose constructor leaves a mark, and the path of that."""
    path, mark = os.path.join(place, f"lib{name}.so"), os.path.join(place, f"{name}-ran")
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", path, f"-DNAME={name}",
                    f'-DMARK="{mark}"'], input=LIBRARY, text=True, check=True)
    return path, mark


def program(place, name, *options, code="int main(void) { return 0; }"):
    path = os.path.join(place, name)
    subprocess.run(["cc", "-x", "c", "-", "-x", "none", "-o", path, "-Wl,--no-as-needed", *options],
                   input=code, text=True, check=True)
    return path


def ran(*marks):
    """Which of them are there; they are gone afterwards."""
    found = [mark for mark in marks if os.path.exists(mark)]
    for mark in found:
        os.unlink(mark)
    return found


def test_code(tmp):
    """Libraries of DT_NEEDED, DT_AUDIT and DT_DEPAUDIT, whose constructors would run as root."""
    if not shutil.which("cc"):
        skip("doctor: code of a program", "there is no compiler")
        return
    place = fresh(tmp, "doctor")
    needed, needed_ran = library(place, "needed")
    audit, audit_ran = library(place, "audit")
    path = program(place, "audited", needed, f"-Wl,-rpath,{place}", f"-Wl,--audit={audit}",
                   f"-Wl,--depaudit={audit}")
    linker = LINKER.get(os.uname().machine)
    if linker:
        subprocess.run([linker, "--list", path], capture_output=True)
        check("doctor: the dynamic linker runs what it should only list", ran(audit_ran),
              "the test shows nothing: nobody would have run it")
    subprocess.run([path], check=True)
    check("doctor: the program runs all of it", len(ran(audit_ran, needed_ran)) == 2)
    for name in os.listdir(place):
        os.chown(os.path.join(place, name), MALLORY, MALLORY)
    p = tacho("doctor", "--", path)
    check("doctor: a program is looked at", p.returncode == 0 and "linked dynamically" in p.stdout,
          said(p))
    check("doctor: nothing of it ran", not ran(audit_ran, needed_ran))
    p = tacho("doctor", "--", path, env=environment(LD_LIBRARY_PATH=place))
    check("doctor: nothing of it ran with LD_LIBRARY_PATH either",
          p.returncode == 0 and not ran(audit_ran, needed_ran), said(p))


def test_places(tmp):
    """Pipes and devices where libraries should be, and more folders than anybody has."""
    if not shutil.which("cc"):
        skip("doctor: places of libraries", "there is no compiler")
        return
    place = fresh(tmp, "doctor-places")
    needed, _ = library(place, "needed")
    odd = fresh(place, "odd")
    path = program(place, "odd-program", f"-L{place}", "-lneeded", f"-Wl,-rpath,{odd}:{':'.join(['/x/$LIB'] * 500)}")
    os.unlink(needed)
    at = os.path.join(odd, "libneeded.so")
    for make in (os.mkfifo, lambda path: os.symlink("/dev/zero", path)):
        make(at)
        begin = time.monotonic()
        p = tacho("doctor", "--", path, timeout=60)
        check("doctor: what is no library is not one", p.returncode == 1 and
              "libneeded.so is not found" in p.stdout, said(p))
        check("doctor: nobody waits for it", time.monotonic() - begin < 30)
        os.unlink(at)


if __name__ == "__main__":
    main(test_code, test_places)
