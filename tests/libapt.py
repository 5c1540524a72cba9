"""Fetches Debian's packages and sources with apt, for tests that need what is not installed."""
import os
import shutil
import subprocess
import tempfile


class Unavailable(Exception):
    pass


def must(argv, limit=300, **more):
    p = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                       timeout=limit, **more)
    if p.returncode:
        last = (p.stderr or p.stdout).strip().splitlines()[-1:] or ["no message"]
        raise Unavailable(f"{os.path.basename(argv[0])} failed: {last[0]}")
    return p.stdout


def places_of_debian():
    """Where this system has its packages of Debian from: address, suite and component of each."""
    found = must(["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE) $(COMPONENT)",
                  "Created-By: Packages", "Origin: Debian"]).splitlines()
    if not found:
        raise Unavailable("apt has no lists of Debian's packages: run apt-get update")
    return sorted(set(found))


def older_places(release):
    """The same of another release, without its updates."""
    sites = {place.split()[0] for place in places_of_debian()
             if not place.split()[1].endswith(("-security", "-updates", "-backports"))}
    return [f"{site} {release} main" for site in sorted(sites)]


class Apt:
    """apt with lists and archives in a folder of its own; the system's are left alone. `release`: of
    this older Debian."""

    def __init__(self, folder, release=None):
        for needed in ("apt-get", "dpkg-deb", "dpkg-query", "dpkg-source"):
            if not shutil.which(needed):
                raise Unavailable(f"there is no {needed}")
        self.folder = folder
        os.makedirs(f"{folder}/lists/partial")
        os.makedirs(f"{folder}/archives/partial")
        key = "/usr/share/keyrings/debian-archive-keyring.gpg"
        with open(f"{folder}/sources.list", "w", encoding="ascii") as f:
            for place in places_of_debian() if not release else older_places(release):
                f.write(f"deb [signed-by={key}] {place}\ndeb-src [signed-by={key}] {place}\n")
        self.apt = ["apt-get", "-qq", "-o", f"Dir::Etc::SourceList={folder}/sources.list",
                    "-o", "Dir::Etc::SourceParts=-", "-o", f"Dir::State::Lists={folder}/lists",
                    "-o", "Dir::State::status=/dev/null", "-o", f"Dir::Cache={folder}",
                    "-o", "Debug::NoLocking=1",
                    "-o", "APT::Sandbox::User=" + must(["id", "-un"]).strip()]
        must(self.apt + ["update"])

    def source(self, package):
        """The folder of the unpacked source of the version that is installed."""
        installed = must(["dpkg-query", "-W", "-f=${source:Package}=${source:Version}", package])
        must(self.apt + ["source", installed], cwd=self.folder)
        name = installed.split("=")[0] + "-"
        found = [d for d in os.listdir(self.folder) if d.startswith(name) and
                 os.path.isdir(f"{self.folder}/{d}")]
        if not found:
            raise Unavailable("apt-get source unpacked nothing")
        return f"{self.folder}/{found[0]}"

    def unpack(self, packages, root):
        """Downloads packages (not what they depend on) and unpacks them under `root`."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            must(self.apt + ["download"] + packages, cwd=folder)
            for package in sorted(os.listdir(folder)):
                must(["dpkg-deb", "-x", f"{folder}/{package}", root])
