#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Generates from the table of MPI: mpi.h, mpi/calls.h, the C entry points, the same for simulated
programs, api.json, MPI in Fortran and MPI in MPICH's ABI.

Usage: generate.py --out DIR. A file is touched only if its content changes.
"""
import argparse
import pathlib
import sys

from generator import calls, entries, header, mpich, report, simulated, table
from generator.fortran import glue, modules, mpif
from generator.fortran import mpich as fortran_mpich


def write(path: pathlib.Path, text: str) -> None:
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the build folder")
    arguments = parser.parse_args()
    folder = pathlib.Path(__file__).parent / "table"
    try:
        functions = table.read_functions(folder)
        types, constants = table.read_types(folder), table.read_constants(folder)
        files = {f"generated/api/{name}.cc": text
                 for name, text in entries.entry_points(functions).items()}
        files |= {f"generated/fortran/{name}.cc": text
                  for name, text in glue.glue(functions).items()}
        files |= {f"generated/fortran/{name}.f90": text
                  for name, text in modules.modules(types, constants, functions).items()}
        files |= {f"generated/mpich/{name}.cc": text
                  for name, text in mpich.entry_points(functions).items()}
        files |= {f"generated/mpich/fortran/{name}.cc": text
                  for name, text in fortran_mpich.glue(functions).items()}
        files["generated/mpich/constants.h"] = mpich.constants(constants, table.read_mpich(folder))
    except table.TableError as error:
        print(f"generate.py: {error}", file=sys.stderr)
        return 1
    files["include/mpi.h"] = header.header(types, constants, functions)
    files["generated/mpi/calls.h"] = calls.calls(functions)
    files["generated/sim/calls.cc"] = simulated.calls(functions)
    files["generated/api.json"] = report.report(functions)
    files["generated/mpich/standard.h"] = mpich.standard(functions)
    files["generated/mpich/fortran/functions.h"] = fortran_mpich.functions(functions)
    files["include/mpif.h"] = mpif.mpif(constants, functions)
    for name, text in files.items():
        write(arguments.out / name, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
