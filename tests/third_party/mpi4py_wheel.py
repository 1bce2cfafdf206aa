#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py as it comes from PyPI, a wheel that was built with MPICH, on our libmpi.so.12: its own tests, on
2 ranks. Exit code 77 (skipped): there is no registry to be reached, or the wheel is for another Python."""
import argparse
import pathlib
import sys

from mpi4py_environment import MPI4PY, SKIPPED, prepare
from mpi4py_suite import EXPECTED, counts, execute, failures, suite
from sources import PyPI, Unavailable

WHEEL = PyPI("mpi4py", MPI4PY.version, "mpi4py-4.1.2-cp311-cp311-manylinux1_x86_64.manylinux_2_5_x86_64.whl",
             "de484475b80f9e1ffe98cb85e1b776eb9f42bb73ae4d79449d42953f80025bf4", binary=True)
RANKS, LIMIT = 2, 300


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="kept for the next run")
    parser.add_argument("--mpiexec", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    if sys.version_info[:2] != (3, 11):
        print(f"skipped: the wheel is for Python 3.11, this is {sys.version.split()[0]}")
        sys.exit(SKIPPED)
    try:
        python, tests = prepare(arguments.folder, None, wheel=WHEEL)
    except Unavailable as error:
        print(f"skipped: {error}")
        sys.exit(SKIPPED)
    launcher = [arguments.mpiexec, "-timeout", LIMIT, "-abi", "mpich"]
    done, pages = execute(launcher, RANKS, suite(python, tests), LIMIT + 20, {"MPI4PY_MPIABI": "mpich"})
    found = [counts(page) for page in pages]
    print(f"{RANKS} ranks: (tests, skipped) of each: {found}")
    tests_expected, skipped_allowed = EXPECTED[RANKS]
    if done.returncode != 0 or any(its is None or its[0] < tests_expected or its[1] > skipped_allowed
                                   for its in found):
        print(*failures(pages) or [done.stdout[-4000:], done.stderr[-12000:]], sep="\n")
        sys.exit(f"exit code {done.returncode}; needed at least {tests_expected} tests, of them at most "
                 f"{skipped_allowed} skipped")


if __name__ == "__main__":
    main()
