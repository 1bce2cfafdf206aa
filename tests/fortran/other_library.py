#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs in Fortran, with our Fortran library, run on another library with the standard ABI:
MPICH 5, from its package on PyPI."""
import argparse
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "abi"))
import mpich  # noqa: E402

RANKS = 4
SECONDS = 60


def libraries(program: pathlib.Path, environment: dict) -> dict[str, pathlib.Path]:
    text = subprocess.run(["ldd", program], capture_output=True, text=True, env=environment,
                          check=True).stdout
    found = [line.split(" => ") for line in text.splitlines() if " => " in line]
    return {name.strip(): pathlib.Path(path.split(" (")[0]).resolve() for name, path in found}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=pathlib.Path, required=True, help="where MPICH is or goes")
    parser.add_argument("--lib", type=pathlib.Path, required=True, help="folder of our libraries")
    parser.add_argument("--venv", default="")
    parser.add_argument("programs", type=pathlib.Path, nargs="+")
    arguments = parser.parse_args()
    venv = mpich.locate(arguments.venv, arguments.work)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(venv / "lib")}
    for program in arguments.programs:
        used = libraries(program, environment)
        if used["libmpi_abi.so.1"].parent != (venv / "lib").resolve():
            sys.exit(f"{program} would run on {used['libmpi_abi.so.1']}, not on MPICH")
        if used["libmpifort_abi.so.1"].parent != arguments.lib.resolve():
            sys.exit(f"{program} would use {used['libmpifort_abi.so.1']}, not our Fortran library")
        result = subprocess.run([venv / "bin/mpiexec", "-n", str(RANKS), program], timeout=SECONDS,
                                capture_output=True, text=True, env=environment)
        if result.returncode != 0:
            sys.exit(f"{program} on MPICH: exit code {result.returncode}\n"
                     f"{result.stdout}{result.stderr}")
    print(f"{len(arguments.programs)} programs run on MPICH")
    return 0


if __name__ == "__main__":
    sys.exit(main())
