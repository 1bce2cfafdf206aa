#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""libmpi_abi.so.1 exports the 662 MPI_ and 662 PMPI_ functions of the standard ABI and the removed ones
of MPI 1 that MPICH 5's exports too, unversioned, MPI_ ones weak so that tools can replace them, and
nothing else; and it needs no library but libc: neither the C++ runtime, nor any that each start of a
program in C would have to load for it."""
import argparse
import json
import pathlib
import re
import subprocess
import sys

FUNCTIONS = 662
LIBC = "libc.", "ld-linux", "libpthread.", "libdl.", "librt."  # some of them apart before glibc 2.34
# Of each layer one function of what every rank runs.
FIRST = ("PMPI_Init", "PMPI_Send", "_ZN7macadam3mpi4send", "_ZN7macadam4boot8LocalJob4join",
         "_ZN7macadam6engine6Engine9send_long", "_ZN7macadam3net3shm9Transport4poll",
         "_ZN7macadam8datatype15PredefinedTypesC", "_ZN7macadam4coll6Boards", "_Znwm")
# What MPICH 5.0.2's libmpi_abi.so.1 exports beyond the standard, without its extensions (MPIX_).
REMOVED = {"MPI_Address", "MPI_Errhandler_create", "MPI_Errhandler_get", "MPI_Errhandler_set",
           "MPI_Type_extent", "MPI_Type_hindexed", "MPI_Type_hvector", "MPI_Type_lb",
           "MPI_Type_struct", "MPI_Type_ub"}


def output(*command) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--api", type=pathlib.Path, required=True, help="api.json")
    parser.add_argument("--sanitized", action="store_true")
    arguments = parser.parse_args()
    failures = []

    symbols = {}
    for line in output("nm", "-D", "--defined-only", "--with-symbol-versions",
                       arguments.library).splitlines():
        _, kind, name = line.split()
        symbols[name] = kind
    table = {f["name"] for f in json.loads(arguments.api.read_text())["functions"]}
    expected = table | REMOVED
    expected |= {f"P{name}" for name in expected}
    if len(table) != FUNCTIONS:
        failures.append(f"the table has {len(table)} functions; the standard has {FUNCTIONS}")
    failures += [f"not exported: {name}" for name in sorted(expected - symbols.keys())]
    failures += [f"exported, but not of MPI (or versioned): {name}"
                 for name in sorted(symbols.keys() - expected)]
    for name in sorted(expected & symbols.keys()):
        kind = "W" if name.startswith("MPI_") else "T"
        if symbols[name] != kind:
            failures.append(f"{name} is of nm's type {symbols[name]}; it should be {kind}")

    dynamic = output("readelf", "-dW", arguments.library)
    soname = re.search(r"SONAME.*\[(.*)\]", dynamic)
    if soname is None or soname.group(1) != "libmpi_abi.so.1":
        failures.append(f"soname is {soname and soname.group(1)}; it should be libmpi_abi.so.1")
    needed = re.findall(r"NEEDED.*\[(.*)\]", dynamic)
    if not arguments.sanitized:
        failures += [f"needs {name}, and may need libc alone" for name in needed
                     if not name.startswith(LIBC)]

    sections = output("readelf", "-SW", arguments.library)
    first = re.search(r" \.text\.first +PROGBITS +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+) ", sections)
    if first is not None:  # else another linker than GNU's has made it (src/api/first.ld)
        begin, size = (int(number, 16) for number in first.groups())
        inside = [line.split()[2] for line in output("nm", "--defined-only", arguments.library).splitlines()
                  if begin <= int(line.split()[0], 16) < begin + size]
        failures += [f"no {name}... in .text.first" for name in FIRST
                     if not any(symbol.startswith(name) for symbol in inside)]

    print(f"{len(symbols)} symbols; needs {', '.join(needed)}")
    print("\n".join(failures[:40]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
