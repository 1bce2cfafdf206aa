#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Whether the program that every_procedure.py has written for an interface, and others, are linked with
every procedure that the library has for it: all_called.py INTERFACE LIBRARY PROGRAM..."""
import re
import subprocess
import sys

# How procedures of each interface are called, as MPI_ and as PMPI_ (docs/fortran.md).
OLD = re.compile(r"p?mpi_\w+_")
F08 = re.compile(r"p?mpi_\w+_f08(ts|_)")
# Not called: callbacks that MPI has ready and constants known by their address, which are given to
# other procedures; procedures of MPICH's modules; what mpi_f08 does not have any more; and what its
# generic name can not tell from the small form, as the two kinds of count are the same.
UNCALLED = re.compile(r"p?mpi_((comm_|type_|win_)?(null_copy|null_delete|dup)_fn_(f08_)?|"
                      r"conversion_fn_null(_c)?_(f08_)?|fortran_\w+|(sizeofs|constants)_mp_\w+|"
                      r"(attr_delete|keyval_free)_f08_|"
                      r"(type_create_resized|type_get(_true)?_extent|file_get_type_extent)_c_f08_)")


def symbols(file, *options):
    listing = subprocess.run(["nm", "-D", *options, file], capture_output=True, text=True,
                             check=True, timeout=60).stdout
    return {line.split()[-1].split("@")[0] for line in listing.splitlines()}


def main():
    interface, library, *programs = sys.argv[1:]
    names = F08 if interface == "mpi_f08" else OLD
    there = {name for name in symbols(library, "--defined-only")
             if names.fullmatch(name) and not UNCALLED.fullmatch(name)
             and (names is F08 or not F08.fullmatch(name))}
    called = set().union(*(symbols(program, "--undefined-only") for program in programs))
    missing = sorted(there - called)
    if missing or len(there) < 850:
        sys.exit(f"{interface}: {len(there)} procedures, {len(missing)} of which nobody calls: "
                 f"{' '.join(missing)}")
    print(f"{interface}: {len(there)} procedures, all linked")


if __name__ == "__main__":
    main()
