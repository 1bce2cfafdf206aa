# SPDX-License-Identifier: BSD-3-Clause
"""Debian's packages that a machine of the cluster has and this one need not: unpacked into the build
tree, never installed, so that none of their daemons is ever started here."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "vm"))
from kernel import Unavailable, command, only_one  # noqa: E402

NAMES = ["slurmctld", "slurmd", "slurm-client", "munge", "libpmi2-0", "libpmix2", "openssh-server",
         "openssh-client"]


def missing_here():
    """NAMES and what they depend on, as far as this machine does not have it."""
    plan = ["apt-get", "install", "--simulate", "--no-install-recommends", *NAMES]
    try:
        text = command(*plan)
    except Unavailable:
        command("apt-get", "update", "-qq")  # a fresh machine has no lists of packages
        text = command(*plan)
    return re.findall(r"^Inst (\S+)", text, re.MULTILINE)


def fetch(folder):
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        scratch = pathlib.Path(scratch)
        names = missing_here()
        for attempt in range(2):  # a list of packages that is out of date names versions that are gone
            if attempt:
                command("apt-get", "update", "-qq")
            done = subprocess.run(["apt-get", "download", "-qq", *names], cwd=scratch, capture_output=True,
                                  text=True, timeout=600, check=False)
            if done.returncode == 0:
                break
        else:
            raise Unavailable(f"apt-get download: {done.stderr.strip().splitlines()[-1]}")
        for package in sorted(scratch.glob("*.deb")):
            command("dpkg-deb", "--extract", package, scratch / "root")
        programs = scratch / "root/usr/sbin"
        programs.mkdir(parents=True, exist_ok=True)  # if nothing was missing
        for file in programs.glob("*-wlm"):  # an installation makes such names
            (programs / file.name.removesuffix("-wlm")).symlink_to(file.name)
        shutil.move(scratch / "root", folder / "root")  # last: it says that all is there


def prepare(folder):
    """The folder in `folder` whose files stand above this machine's own. Raises Unavailable."""
    folder.mkdir(parents=True, exist_ok=True)
    with only_one(folder):
        if not (folder / "root").exists():
            fetch(folder)
    return folder / "root"
