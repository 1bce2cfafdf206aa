# SPDX-License-Identifier: BSD-3-Clause
"""Sources of other people's programs, pinned by version and checksum: from Debian with apt, from PyPI
with pip. Nothing of the machine is changed; what was fetched once is kept."""
import dataclasses
import hashlib
import os
import pathlib
import subprocess
import sys

KEYRING = pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg")
MIRROR = f"[signed-by={KEYRING}] http://deb.debian.org/debian bookworm main"
LIMIT = 600  # seconds for one download


class Unavailable(Exception):
    """Why a source cannot be had."""


def run(command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=LIMIT, check=False, **options)
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(map(str, command))}: {(done.stderr or done.stdout)[-600:].strip()}")


@dataclasses.dataclass(frozen=True)
class Debian:
    """A file of Debian's: the original source of a package, or (`binary`) the package itself."""
    package: str
    version: str
    file: str
    sha256: str
    binary: bool = False

    def fetch(self, folder):
        if not KEYRING.exists():
            raise Unavailable(f"{KEYRING} is not there: needs apt and the package debian-archive-keyring")
        environment = self.configuration(folder / "apt")
        pinned = f"{self.package}={self.version}"
        source = ["source", "--download-only", "--tar-only", "--only-source", pinned]
        run(["apt-get", "-qq", *(["download", pinned] if self.binary else source)],
            cwd=folder, env=environment)

    @staticmethod
    def configuration(folder):
        """The environment for an apt of our own, with its package lists."""
        environment = {**os.environ, "APT_CONFIG": str(folder / "apt.conf")}
        if not (folder / "updated").exists():
            for below in ("lists/partial", "cache/archives/partial"):
                (folder / below).mkdir(parents=True, exist_ok=True)
            (folder / "sources.list").write_text(f"deb-src {MIRROR}\ndeb {MIRROR}\n")
            (folder / "apt.conf").write_text(
                f'Dir::State::lists "{folder}/lists";\nDir::Cache "{folder}/cache";\n'
                f'Dir::Etc::sourcelist "{folder}/sources.list";\nDir::Etc::sourceparts "-";\n'
                f'APT::Sandbox::User "{os.environ.get("USER", "root")}";\n')
            run(["apt-get", "-qq", "update"], env=environment)
            (folder / "updated").touch()
        return environment


@dataclasses.dataclass(frozen=True)
class PyPI:
    """The source of a Python package, or (`binary`) a wheel of it."""
    package: str
    version: str
    file: str
    sha256: str
    binary: bool = False

    def fetch(self, folder):
        wanted = folder / f"{self.file}.txt"
        wanted.write_text(f"{self.package}=={self.version} --hash=sha256:{self.sha256}\n")
        run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
             "--no-deps", "--only-binary" if self.binary else "--no-binary", self.package,
             "--require-hashes", "-r", wanted, "--dest", folder])


def fetch(source, folder):
    """The file of `source` in `folder`, with the checksum that it must have."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / source.file
    if not path.exists():
        source.fetch(folder)
    if not path.exists():
        raise Unavailable(f"{source.package} {source.version} came without {source.file}")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != source.sha256:
        path.unlink()
        raise Unavailable(f"{source.file} has the checksum {found}, needed {source.sha256}")
    return path
