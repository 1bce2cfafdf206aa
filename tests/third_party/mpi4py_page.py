#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What docs/first-hour.md and docs/running.md say of Python: the program and the command of the page, and how
a job ends of which one rank raises an exception that nobody catches. Exit code 77 (skipped): there is no
registry to be reached."""
import argparse
import pathlib
import re
import sys
import tempfile
import textwrap

from mpi4py_environment import add_arguments, prepare_or_skip, run

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "first-hour.md"
RAISES = """\
from mpi4py import MPI
comm = MPI.COMM_WORLD
if comm.rank == 1:
    raise ValueError("of rank 1")
comm.recv(source=1)
"""


def check(condition, what, done):
    if not condition:
        sys.exit(f"{what}: exit code {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("--mpiexec", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    python, _ = prepare_or_skip(arguments)
    section = re.search(r"^## Python\n(.*?)^## ", PAGE.read_text(), re.S | re.M)[1]
    hello, command = re.findall(r"((?:^    .*\n)+)", section, re.M)[-2:]
    words = command.split()
    assert words[0] == "mpiexec" and words[3] == "env/bin/python", command

    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        (here / "hello.py").write_text(textwrap.dedent(hello))
        (here / "raises.py").write_text(RAISES)
        mpiexec = arguments.mpiexec.absolute()

        # -l keeps lines whole, which Python may write in pieces.
        done = run([mpiexec, "-l", *words[1:3], python, *words[4:]], cwd=here, timeout=60)
        lines = ["[0] rank 0 of 2", "[1] rank 1 of 2"]
        check(done.returncode == 0 and sorted(done.stdout.splitlines()) == lines,
              "the program of the page", done)

        done = run([mpiexec, "-timeout", 50, "-n", 2, python, "-m", "mpi4py", "raises.py"], cwd=here, timeout=60)
        check(done.returncode not in (0, 124) and "ValueError: of rank 1" in done.stderr and
              "rank 1 on host" in done.stderr and "MPI_Abort" in done.stderr,
              "an exception under -m mpi4py", done)

        # Without it MPI cannot know; the page about the hang says where that rank is.
        done = run([mpiexec, "-timeout", 5, "-n", 2, python, "raises.py"], cwd=here, timeout=60)
        check(done.returncode != 0 and "ValueError: of rank 1" in done.stderr and
              "rank 1 waits in MPI_Finalize" in done.stderr, "an exception without it", done)


if __name__ == "__main__":
    main()
