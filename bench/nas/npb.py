# SPDX-License-Identifier: BSD-3-Clause
"""A user's own copy of the NAS parallel benchmarks, version 3.4 with MPI, built with our compiler
wrappers. The copy is copied: nothing is written to it."""
import os
import re
import shutil
import subprocess

import jobs

MAKE_DEF = """# Written by bench/nas/npb.py.
MPIFC = {bin}/mpif90
FLINK = $(MPIFC)
FMPI_LIB =
FMPI_INC =
FFLAGS = -O3
FLINKFLAGS = $(FFLAGS)
MPICC = {bin}/mpicc
CLINK = $(MPICC)
CMPI_LIB =
CMPI_INC =
CFLAGS = -O3
CLINKFLAGS = $(CFLAGS)
CC = cc -g
CONVERTFLAG = -DFORTRAN_REC_SIZE=0
BINDIR = ../bin
RAND = randi8
"""


class Refused(Exception):
    """Why the folder cannot be used."""


def sources(folder):
    """The folder of the programs with MPI: it has one for each program, and `config`."""
    places = [folder, *sorted(folder.glob("*MPI")), *sorted(folder.glob("*/*MPI"))]
    for place in places:
        if (place / "config").is_dir() and (place / "Makefile").is_file() and any(
                (place / name).is_dir() for kernel in jobs.KERNELS for name in (kernel, kernel.upper())):
            return place
    raise Refused(f"{folder}: needed NPB 3.4, a folder NPB3.4-MPI with Makefile, config and CG, LU, ...")


def build(folder, library, work, kernels, size):
    """{kernel: its program}; what cannot be built is told and left out."""
    place = sources(folder)
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(place, work)
    (work / "bin").mkdir(exist_ok=True)
    (work / "config" / "make.def").write_text(MAKE_DEF.format(bin=library / "bin"), encoding="utf8")
    programs = {}
    for kernel in kernels:
        # What was compiled for another class or with another compiler is of no use.
        for old in (*work.rglob("*.o"), *work.rglob("*.mod")):
            old.unlink()
        done = subprocess.run(["make", "-C", work, kernel, f"CLASS={size}"], capture_output=True, text=True)
        program = work / "bin" / f"{kernel}.{size}.x"
        if done.returncode == 0 and program.exists():
            programs[kernel] = program
        else:
            print(f"nas: {kernel.upper()} could not be built, exit code {done.returncode}:\n"
                  f"{(done.stdout + done.stderr)[-1500:]}")
    return programs


def run(program, library, ranks, seconds):
    """What the program and the report say, as the line of our own kernels does."""
    done = subprocess.run([library / "bin" / "mpiexec", "-timeout", str(seconds), "-n", str(ranks), program],
                          capture_output=True, text=True, env={**os.environ, "MACADAM_REPORT": "1"})
    kernel, size, _ = program.name.split(".")
    time = re.search(r"Time in seconds\s*=\s*([\d.E+-]+)", done.stdout)
    counters = jobs.counters_in(done.stdout + done.stderr)
    verified = bool(re.search(r"Verification\s*=\s*SUCCESSFUL", done.stdout)) and done.returncode == 0
    if not verified:
        print((done.stdout + done.stderr)[-1500:])
    return {"kernel": kernel.upper(), "class": size, "ranks": ranks, "seconds": time[1] if time else "-",
            "mpi_seconds": "-", "messages": jobs.messages(counters), "bytes": counters.get("bytes_sent", 0),
            "verified": "yes" if verified else "no"}
