#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs programs that use Gravel on MPICH 5's library instead of ours: PROGRAM:RANKS ..."""
import argparse
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "abi"))
import mpich  # noqa: E402

SECONDS = 60
GOOD = re.compile(r"\d+ ranks agree|ranks, .* 0 wrong")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--venv", default="")
    parser.add_argument("programs", nargs="+")
    arguments = parser.parse_args()
    venv = mpich.locate(arguments.venv, arguments.work)
    environment = dict(os.environ, LD_LIBRARY_PATH=str(venv / "lib"))
    for program, ranks in (word.rsplit(":", 1) for word in arguments.programs):
        loaded = subprocess.run(["ldd", program], capture_output=True, text=True, env=environment,
                                timeout=SECONDS).stdout
        if f"libmpi_abi.so.1 => {venv / 'lib'}" not in loaded:
            sys.exit(f"{program} would not run on MPICH's library:\n{loaded}")
        run = subprocess.run([venv / "bin/mpiexec", "-n", ranks, program], capture_output=True,
                             text=True, env=environment, timeout=SECONDS)
        if run.returncode != 0 or not GOOD.search(run.stdout):
            sys.exit(f"{program} on {ranks} ranks of MPICH: exit code {run.returncode}\n"
                     f"{run.stdout}{run.stderr}")
        print(run.stdout, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
