#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs of our suite (tests/programs), built with MPICH's own header and library, in its ABI: they run
on our libmpi.so.12 as they are."""
import argparse
import os
import pathlib
import subprocess
import sys

import mpich

# What is true of the standard ABI alone: its version; its numbers in the texts of errors, where a program
# gave a special rank; tags of a session's groups that are longer than MPICH's; the numbers of handles; that
# there is no number between the error classes; and in checked runs what a buffered send needs beside its data.
STANDARD_ONLY = ("env.environment", "errors.dynamic", "errors.topologies", "partitioned.errors",
                 "sessions.sessions", "objects.handles", "io.handles", "objects.errhandlers",
                 "pt2pt.buffered.checked")


def run(*command, **options) -> int:
    print("+", *command, flush=True)
    return subprocess.run([str(word) for word in command], check=False, **options).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=pathlib.Path, required=True, help="where MPICH is or goes")
    parser.add_argument("--venv", default="")
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="the folder of their sources")
    parser.add_argument("--mpiexec", type=pathlib.Path, required=True)
    parser.add_argument("--label", default="quick", help="of the programs to run; empty: all")
    arguments = parser.parse_args()
    venv = mpich.locate(arguments.venv, arguments.work)
    build = arguments.work / "mpich_programs"
    # Found by LD_LIBRARY_PATH alone, as mpiexec -abi mpich sets it; so it is for those without a launcher.
    environment = {**os.environ, "LD_LIBRARY_PATH": str(arguments.mpiexec.parent.parent / "lib/mpich"),
                   "PROGRAMS_LIGHT": "1"}
    failed = (run("cmake", "-S", arguments.programs, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
                  "-DCMAKE_CXX_FLAGS_DEBUG=-O0", "-DCMAKE_C_FLAGS_DEBUG=-O0",
                  "-DCMAKE_SKIP_RPATH=ON", "-DMACADAM_MPI_ABI=mpich", f"-DMACADAM_MPI_PREFIX={venv}",
                  f"-DMACADAM_MPIEXEC:STRING={arguments.mpiexec};-abi;mpich",
                  f"-DMACADAM_PROGRAMS_LABEL={arguments.label}", stdout=subprocess.DEVNULL)
              or run("cmake", "--build", build, "-j", "2", stdout=subprocess.DEVNULL)
              or run("ctest", "--test-dir", build, "-j", "2", "--output-on-failure", "--no-tests=error", "-E",
                     "|".join(name.replace(".", "[.]") for name in STANDARD_ONLY), env=environment))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
