#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs built with MPICH 5's header and wrapper run on our library, and programs built with ours
run on MPICH's, with the same output."""
import argparse
import os
import pathlib
import subprocess
import sys

import mpich

RANKS = 3
SECONDS = 60


def command(words, library: pathlib.Path | None = None) -> str:
    environment = dict(os.environ)
    if library is not None:
        environment["LD_LIBRARY_PATH"] = str(library)
    result = subprocess.run([str(w) for w in words], capture_output=True, text=True,
                            env=environment, timeout=SECONDS)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: exit code {result.returncode}\n"
                           f"{result.stdout}{result.stderr}")
    return result.stdout


def runs_on(program: pathlib.Path, library: pathlib.Path) -> None:
    """The program's MPI library is the one in the folder `library`."""
    resolved = [line.split("=> ")[1].split(" (")[0] for line in command(["ldd", program],
                library).splitlines() if "libmpi_abi.so.1 =>" in line]
    if not resolved or pathlib.Path(resolved[0]).parent.resolve() != library.resolve():
        raise RuntimeError(f"{program} runs on {resolved}, not on the library in {library}")


def sorted_lines(text: str) -> list[str]:
    return sorted(text.splitlines())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--include", type=pathlib.Path, required=True, help="folder of our mpi.h")
    parser.add_argument("--lib", type=pathlib.Path, required=True, help="folder of our library")
    parser.add_argument("--mpiexec", type=pathlib.Path, required=True, help="ours")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--venv", default="")
    parser.add_argument("--cc", default="cc")
    arguments = parser.parse_args()
    venv, work = mpich.locate(arguments.venv, arguments.work), arguments.work
    name = arguments.source.stem
    theirs, ours = work / f"{name}.theirs", work / f"{name}.ours"
    outputs: dict[str, list[str]] = {}
    failures = []
    try:
        command([venv / "bin/mpicc_abi", "-O1", "-Wall", "-o", theirs, arguments.source])
        command([arguments.cc, "-O1", "-Wall", "-I", arguments.include, "-o", ours,
                 arguments.source, "-L", arguments.lib, "-lmpi_abi"])
        for label, program in (("built with MPICH's header", theirs), ("built with ours", ours)):
            for library, mpiexec in ((arguments.lib, arguments.mpiexec),
                                     (venv / "lib", venv / "bin/mpiexec")):
                runs_on(program, library)
                where = f"{label}, on the library in {library}"
                outputs[where] = sorted_lines(command([mpiexec, "-n", RANKS, program], library))
        expected = f"{name}: {RANKS} ranks agree"
        failures = [f"{where} printed:\n" + "\n".join(lines) for where, lines in outputs.items()
                    if expected not in lines]
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        failures = [str(error)]
    if not failures and len({tuple(lines) for lines in outputs.values()}) > 1:
        failures.append("the outputs differ:\n" + "\n".join(
            f"{where}: {lines}" for where, lines in outputs.items()))
    print("\n".join(failures) or f"{len(outputs)} combinations of header and library agree")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
