#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Other people's tests of one-sided communication: mpi4py's own, test_rma* and test_win*, from its
source on PyPI, on the library just built. Exit code 77 (skipped): there is no registry to be reached."""
import argparse
import pathlib
import re
import sys
import tarfile

from mpi4py_benches import PACKAGE, SKIPPED, is_offline, prepare, run

LEAST = 100  # tests on one rank: fewer would mean that they were not found


def source(folder, python):
    """The unpacked source of the mpi4py that is installed."""
    found = sorted(folder.glob("mpi4py-*/test/main.py"))
    if found:
        return found[-1].parent
    folder.mkdir(parents=True, exist_ok=True)
    version = run([python, "-c", "import mpi4py; print(mpi4py.__version__)"], capture_output=True,
                  text=True, check=True).stdout.strip()
    got = run([python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--no-binary", "mpi4py", "--dest", folder, f"mpi4py=={version}"],
              capture_output=True, text=True)
    if got.returncode != 0 and is_offline(got.stderr):
        print(f"skipped: PyPI cannot be reached:\n{got.stderr[-600:]}")
        sys.exit(SKIPPED)
    if got.returncode != 0:
        sys.exit(f"the source of {PACKAGE} cannot be had:\n{got.stderr[-4000:]}")
    with tarfile.open(next(folder.glob("mpi4py-*.tar.gz"))) as archive:
        archive.extractall(folder)
    return source(folder, python)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpicc", type=pathlib.Path, required=True)
    parser.add_argument("--mpiexec", type=pathlib.Path, required=True)
    parser.add_argument("--venv", type=pathlib.Path, required=True)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    arguments = parser.parse_args()
    python = prepare(arguments.venv, arguments.mpicc)
    tests = source(arguments.venv / "source", python)

    for ranks in arguments.ranks:
        done = run([arguments.mpiexec, "-timeout", 200, "-n", ranks, python, "-B", tests / "main.py",
                    "-i", "test_rma", "-i", "test_win"],
                   capture_output=True, text=True)
        # Two ranks may say so on one line: each ends it with a write of its own.
        counts = [int(count) for count in re.findall(r"Ran (\d+) tests?", done.stderr)]
        passed = done.returncode == 0 and len(counts) == ranks and min(counts) >= LEAST
        if not passed:
            print(done.stdout[-4000:], done.stderr[-12000:], sep="\n")
            sys.exit(f"{ranks} ranks: exit code {done.returncode}, tests run by each rank: {counts}; "
                     f"needed 0, and at least {LEAST} on each")
        print(f"{ranks} ranks: {counts[0]} tests passed on each")


if __name__ == "__main__":
    main()
