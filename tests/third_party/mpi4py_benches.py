#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Other people's program: builds mpi4py from its source on PyPI with our mpicc, in a virtual
environment, and runs its benches `helloworld` and `ringtest`. Exit code 77 (skipped): there is no
registry to be reached."""
import argparse
import os
import pathlib
import subprocess
import sys

PACKAGE = "mpi4py==4.*"
SKIPPED = 77


def run(command, **options):
    print("+", *command, flush=True)
    return subprocess.run([str(word) for word in command], **options)


def prepare(folder, mpicc, package=PACKAGE):
    """The environment with mpi4py in it (`package` may be a file of its source), built against the
    library that `mpicc` belongs to; kept for the next run, since it is bound to the standard ABI and
    not to a build of the library."""
    python, mark = folder / "bin" / "python", folder / "built"
    if not python.exists():
        run([sys.executable, "-m", "venv", folder], check=True)
    if mark.exists():
        return python
    built = run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                 "--no-binary", "mpi4py", "--no-cache-dir", "--force-reinstall",
                 package],
                env={**os.environ, "MPICC": str(mpicc), "CFLAGS": "-O0"}, # fast to build
                capture_output=True, text=True)
    if built.returncode != 0 and is_offline(built.stderr):
        print(f"skipped: PyPI cannot be reached:\n{built.stderr[-600:]}")
        sys.exit(SKIPPED)
    if built.returncode != 0:
        sys.exit(f"mpi4py cannot be built:\n{built.stderr[-4000:]}")
    mark.touch()
    return python


def is_offline(text):
    return any(sign in text for sign in ("Could not fetch URL", "Failed to establish",
                                         "Temporary failure", "No matching distribution"))


def check(output, ranks):
    """helloworld names every rank once; ringtest gives a time."""
    for rank in range(ranks):
        if output.count(f"process {rank} of {ranks}") != 1:
            sys.exit(f"helloworld: needed one line of rank {rank} of {ranks}, found:\n{output}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpicc", type=pathlib.Path, required=True)
    parser.add_argument("--mpiexec", type=pathlib.Path, required=True)
    parser.add_argument("--venv", type=pathlib.Path, required=True)
    parser.add_argument("--ranks", type=int, default=4)
    arguments = parser.parse_args()
    python = prepare(arguments.venv, arguments.mpicc)

    launch = [arguments.mpiexec, "-timeout", 60, "-n", arguments.ranks, python, "-m",
              "mpi4py.bench"]
    hello = run([*launch, "helloworld"], capture_output=True, text=True)
    print(hello.stdout, hello.stderr, sep="")
    if hello.returncode != 0:
        sys.exit(f"helloworld: exit code {hello.returncode}")
    check(hello.stdout, arguments.ranks)
    ring = run([*launch, "ringtest", "-l", "1000", "-n", "1024"], capture_output=True, text=True)
    print(ring.stdout, ring.stderr, sep="")
    if ring.returncode != 0:
        sys.exit(f"ringtest: exit code {ring.returncode}")


if __name__ == "__main__":
    main()
