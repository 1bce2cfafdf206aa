#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""MPICH's ABI against MPICH 5: constants have the values that its own mpi.h gives them, and libmpi.so.12
exports what its own exports, without its extensions (MPIX_) and what it has inside."""
import argparse
import pathlib
import re
import subprocess
import sys

import mpich


def assertions(table: str) -> str:
    """A C file that compiles if the table of constants (src/api/table/mpich.table) is right."""
    rows = re.findall(r"(?m)^(MPI_\w+) +(-?\w+)$", table)
    if len(rows) < 300:
        sys.exit(f"found only {len(rows)} constants in the table")
    return "#include <mpi.h>\n" + "".join(
        f'_Static_assert((int)({name}) == (int)({value}), "{name} is not {value}");\n'
        for name, value in rows)


def exported(library: pathlib.Path) -> set[str]:
    listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True,
                            check=True).stdout
    names = {line.split()[2].partition("@")[0] for line in listed.splitlines()}
    return {name for name in names if name.startswith(("MPI_", "PMPI_", "MPIR_Dup_fn"))}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=pathlib.Path, required=True, help="where MPICH is or goes")
    parser.add_argument("--venv", default="")
    parser.add_argument("--table", type=pathlib.Path, required=True)
    parser.add_argument("--library", type=pathlib.Path, required=True, help="our libmpi.so.12")
    parser.add_argument("--cc", required=True)
    arguments = parser.parse_args()
    venv = mpich.locate(arguments.venv, arguments.work)
    source = arguments.work / "mpich_constants.c"
    source.write_text(assertions(arguments.table.read_text()))
    compiled = subprocess.run([arguments.cc, "-fsyntax-only", "-w", f"-I{venv / 'include'}", source],
                              check=False).returncode
    theirs, ours = exported(venv / "lib/libmpi.so.12"), exported(arguments.library)
    print(f"MPICH exports {len(theirs)} names, we {len(ours)}")
    for name in sorted(theirs - ours):
        print(f"not exported: {name}")
    return 1 if compiled or len(theirs) < 1400 or theirs - ours else 0


if __name__ == "__main__":
    sys.exit(main())
