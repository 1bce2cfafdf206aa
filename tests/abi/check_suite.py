#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs of tests/programs on MPICH 5's library: that a program passes on ours says little if it is
the program that is wrong."""
import argparse
import pathlib
import subprocess
import sys

import mpich
from check_programs import command, runs_on

RANKS = 2  # MPICH's ranks poll, so that more than there are processors take a hundred times as long


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=pathlib.Path, required=True, help="where MPICH is or goes")
    parser.add_argument("--venv", default="")
    parser.add_argument("programs", nargs="+", metavar="PROGRAM[:PART,...]")
    arguments = parser.parse_args()
    venv = mpich.locate(arguments.venv, arguments.work)
    failures = []
    for text in arguments.programs:
        program, _, parts = text.partition(":")
        try:
            runs_on(pathlib.Path(program), venv / "lib")
            for part in parts.split(","):
                command([venv / "bin/mpiexec", "-n", RANKS, program, *filter(None, [part])], venv / "lib")
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            failures.append(str(error))
    print("\n".join(failures) or f"{len(arguments.programs)} programs pass on MPICH")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
