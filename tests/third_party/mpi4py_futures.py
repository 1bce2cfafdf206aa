#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py's own tests of mpi4py.futures (demo/futures/test_futures.py), on the library just built: its pool of
processes that are spawned, on one rank, and of those of a job, on more. Exit code 77 (skipped): there is no
registry to be reached."""
import argparse
import pathlib
import re
import sys

from mpi4py_environment import add_arguments, prepare_or_skip, run

LIMIT = 250  # seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("--mpiexec", type=pathlib.Path, required=True)
    parser.add_argument("--ranks", type=int, required=True)
    arguments = parser.parse_args()
    python, tests = prepare_or_skip(arguments)
    folder = tests.parent / "demo" / "futures"
    within = [] if arguments.ranks == 1 else ["-m", "mpi4py.futures"]
    done = run([arguments.mpiexec.absolute(), "-timeout", LIMIT, "-n", arguments.ranks, python, "-B", *within,
                "test_futures.py"], cwd=folder, timeout=LIMIT + 20)
    ran = re.search(r"Ran (\d+) tests in .*\n\s*\nOK", done.stderr)
    if done.returncode != 0 or not ran or int(ran[1]) < 100:
        sys.exit(f"exit code {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-6000:]}")
    print(f"{arguments.ranks} ranks: {ran[1]} tests")


if __name__ == "__main__":
    main()
