#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Other people's program: mpi4py's benches `helloworld` and `ringtest`, on the library just built. Exit
code 77 (skipped): there is no registry to be reached."""
import argparse
import pathlib
import sys

from mpi4py_environment import add_arguments, prepare_or_skip, run


def bench(launch, *words):
    """What a bench printed."""
    done = run([*launch, *words])
    print(done.stdout, done.stderr, sep="")
    if done.returncode != 0:
        sys.exit(f"{words[0]}: exit code {done.returncode}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("--mpiexec", type=pathlib.Path, required=True)
    parser.add_argument("--ranks", type=int, default=4)
    arguments = parser.parse_args()
    python, _ = prepare_or_skip(arguments)
    ranks = arguments.ranks
    launch = [arguments.mpiexec, "-timeout", 60, "-n", ranks, python, "-m", "mpi4py.bench"]
    hello = bench(launch, "helloworld")
    for rank in range(ranks):
        if hello.count(f"process {rank} of {ranks}") != 1:
            sys.exit(f"helloworld: needed one line of rank {rank} of {ranks}, found:\n{hello}")
    bench(launch, "ringtest", "-l", "1000", "-n", "1024")


if __name__ == "__main__":
    main()
