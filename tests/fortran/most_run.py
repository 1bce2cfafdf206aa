#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Whether programs in Fortran run every function of MPI, and do not only link it: most_run.py MPIEXEC
PROGRAM... The dynamic linker tells which procedures of the Fortran library a program comes to call,
since they are bound at their first call."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

api = pathlib.Path(__file__).parents[2] / "src/api"
sys.path.insert(0, str(api))
from generator import table  # noqa: E402
from generator.fortran import kinds  # noqa: E402

BOUND = re.compile(r"to \S*libmpifort_abi\S* \[0\]: normal symbol `p?mpi_(\w+?)(?:_c)?_(?:f08(?:ts|_))?'")
NOT_RUN = {"abort",  # ends the job
           "abi_set_fortran_booleans", "abi_set_fortran_info"}  # before MPI_Init; the library does
RANKS = 4


def called(mpiexec: str, programs: list[str]) -> set[str]:
    found: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        for program in programs:
            subprocess.run([mpiexec, "-timeout", "50", "-n", str(RANKS), program], check=True,
                           timeout=60, stdout=subprocess.DEVNULL,
                           env={**os.environ, "LD_BIND_NOW": "", "LD_DEBUG": "bindings",
                                "LD_DEBUG_OUTPUT": f"{folder}/of"})
        for file in pathlib.Path(folder).iterdir():
            found.update(BOUND.findall(file.read_text(errors="replace")))
    return found


def main() -> int:
    mpiexec, *programs = sys.argv[1:]
    functions = filter(kinds.exists, table.read_functions(api / "table"))
    names = {function.name.lower() for function in functions}
    missing = sorted(names - called(mpiexec, programs) - NOT_RUN)
    print(f"{len(names) - len(missing)} of {len(names)} functions run"
          + (f"; nobody calls {', '.join(missing)}" if missing else ""))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
