#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py, built from its source on PyPI with our mpicc into a virtual environment; its tests beside it.
Exit code 77 (skipped): there is no registry to be reached."""
import argparse
import fcntl
import os
import pathlib
import subprocess
import sys
import tarfile

from sources import PyPI, Unavailable, fetch

MPI4PY = PyPI("mpi4py", "4.1.2", "mpi4py-4.1.2.tar.gz",
              "56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02")
NUMPY = "numpy==2.2.6"  # without it the tests of its arrays are left out
FLAGS = "-Og -g0"  # as quick to build as with -O0, and a fifth faster
SKIPPED = 77  # the exit code where there is no registry to be reached
LIMIT = 900  # seconds to build it


def run(command, **options):
    command = [str(word) for word in command]
    print("+", *command, flush=True)
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def prepare(folder, mpicc, downloads=None, wheel=None):
    """(Python with mpi4py in it, the folder of its tests). Built against the library that `mpicc`
    belongs to, or a wheel as it is; kept for the next run, since it is bound to an ABI and not to a
    build of the library. Whoever comes while it is being built waits. Raises Unavailable."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return build(folder, mpicc, downloads or folder / "downloads", wheel)


def build(folder, mpicc, downloads, wheel):
    recipe = f"{(wheel or MPI4PY).sha256} {NUMPY} {FLAGS}"
    python, mark = folder / "venv/bin/python", folder / "built"
    tests = folder / "source" / MPI4PY.file.removesuffix(".tar.gz") / "test"
    if mark.exists() and mark.read_text() == recipe:
        return python, tests
    source = fetch(MPI4PY, downloads)
    with tarfile.open(source) as archive:
        archive.extractall(folder / "source", filter="fully_trusted")
    package = source if wheel is None else fetch(wheel, downloads)
    compiler = {} if mpicc is None else {"MPICC": str(mpicc.absolute()), "CFLAGS": FLAGS}
    run([sys.executable, "-m", "venv", "--clear", folder / "venv"]).check_returncode()
    built = run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                 "--no-cache-dir", package, NUMPY], env={**os.environ, **compiler}, timeout=LIMIT)
    if built.returncode != 0 and is_offline(built.stderr):
        raise Unavailable(f"PyPI cannot be reached:\n{built.stderr[-600:]}")
    if built.returncode != 0:
        sys.exit(f"mpi4py cannot be built:\n{built.stderr[-4000:]}")
    mark.write_text(recipe)
    return python, tests


def is_offline(text):
    return any(sign in text for sign in ("Could not fetch URL", "Failed to establish",
                                         "Temporary failure", "No matching distribution"))


def add_arguments(parser):
    parser.add_argument("--mpicc", type=pathlib.Path, required=True)
    parser.add_argument("--venv", type=pathlib.Path, required=True, help="kept for the next run")


def prepare_or_skip(arguments):
    try:
        return prepare(arguments.venv, arguments.mpicc)
    except Unavailable as error:
        print(f"skipped: {error}")
        sys.exit(SKIPPED)


if __name__ == "__main__":
    described = argparse.ArgumentParser(description=__doc__)
    add_arguments(described)
    prepare_or_skip(described.parse_args())
