# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py, built from its source on PyPI with our mpicc into a virtual environment; its tests beside it."""
import os
import subprocess
import sys
import tarfile

from sources import PyPI, Unavailable, fetch

MPI4PY = PyPI("mpi4py", "4.1.2", "mpi4py-4.1.2.tar.gz",
              "56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02")
NUMPY = "numpy==2.2.6"  # without it the tests of its arrays are left out
SKIPPED = 77  # the exit code where there is no registry to be reached
LIMIT = 900  # seconds to build it


def run(command, **options):
    command = [str(word) for word in command]
    print("+", *command, flush=True)
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def prepare(folder, mpicc, downloads=None):
    """(Python with mpi4py in it, the folder of its tests). Built against the library that `mpicc`
    belongs to; kept for the next run, since it is bound to the standard ABI and not to a build of the
    library. Raises Unavailable."""
    folder = folder.resolve()
    python, mark = folder / "venv/bin/python", folder / "built"
    tests = folder / "source" / MPI4PY.file.removesuffix(".tar.gz") / "test"
    if mark.exists() and mark.read_text() == MPI4PY.sha256:
        return python, tests
    source = fetch(MPI4PY, downloads or folder / "downloads")
    with tarfile.open(source) as archive:
        archive.extractall(folder / "source", filter="fully_trusted")
    run([sys.executable, "-m", "venv", "--clear", folder / "venv"]).check_returncode()
    built = run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                 "--no-cache-dir", source, NUMPY],
                env={**os.environ, "MPICC": str(mpicc), "CFLAGS": "-O0"},  # fast to build
                timeout=LIMIT)
    if built.returncode != 0 and is_offline(built.stderr):
        raise Unavailable(f"PyPI cannot be reached:\n{built.stderr[-600:]}")
    if built.returncode != 0:
        sys.exit(f"mpi4py cannot be built:\n{built.stderr[-4000:]}")
    mark.write_text(MPI4PY.sha256)
    return python, tests


def is_offline(text):
    return any(sign in text for sign in ("Could not fetch URL", "Failed to establish",
                                         "Temporary failure", "No matching distribution"))
