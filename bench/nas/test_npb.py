#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A user's copy of NPB is built with our wrappers, from make.def, and judged by what it prints. The
copy here is a stand-in: its makefiles use the names that NPB 3.4's do, its programs only say that they
are right, or that they are not."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

RUN = pathlib.Path(__file__).resolve().parent / "run.py"
BUILD = pathlib.Path(os.environ["BUILD_FOLDER"])

FORTRAN = """program p
include 'mpif.h'
integer ierror, rank
call MPI_Init(ierror)
call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
call MPI_Barrier(MPI_COMM_WORLD, ierror)
if (rank == 0) print '(a)', ' Time in seconds =                     0.05', ' Verification    =               SUCCESSFUL'
call MPI_Finalize(ierror)
end
"""
C = """#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) puts(" Time in seconds = 0.01\\n Verification    =             UNSUCCESSFUL");
  return MPI_Finalize();
}
"""
FILES = {
    "Makefile": "cg:\n\tcd CG; $(MAKE) CLASS=$(CLASS)\nis:\n\tcd IS; $(MAKE) CLASS=$(CLASS)\n.PHONY: cg is\n",
    "config/suite.def.template": "",
    "CG/cg.f90": FORTRAN,
    "CG/Makefile": "include ../config/make.def\n$(BINDIR)/cg.$(CLASS).x: cg.o\n"
                   "\t$(FLINK) $(FLINKFLAGS) -o $@ cg.o $(FMPI_LIB)\n"
                   "cg.o: cg.f90\n\t$(MPIFC) -c $(FMPI_INC) $(FFLAGS) cg.f90\n",
    "CG/cg.o": "of another machine",
    "IS/is.c": C,
    "IS/Makefile": "include ../config/make.def\n$(BINDIR)/is.$(CLASS).x: is.c\n"
                   "\t$(MPICC) $(CMPI_INC) $(CFLAGS) $(CLINKFLAGS) -o $@ is.c $(CMPI_LIB)\n",
}


def run(folder, kernels):
    done = subprocess.run([sys.executable, "-B", RUN, "--build", BUILD, "--npb", folder, "--kernels", kernels],
                          capture_output=True, text=True, timeout=100)
    return done.returncode, done.stdout + done.stderr


class Npb(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name, "NPB3.4.3")
        for name, text in FILES.items():
            path = self.folder / "NPB3.4-MPI" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf8")

    def test_right(self):
        before = sorted(self.folder.rglob("*"))
        code, output = run(self.folder, "cg")
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"\| CG \| S \| 4 \| 0.05 \| - \| \d+ \| \d+ \| yes \|")
        self.assertEqual(sorted(self.folder.rglob("*")), before, "the user's folder was changed")

    def test_wrong(self):
        code, output = run(self.folder, "is")
        self.assertEqual(code, 1, output)
        self.assertRegex(output, r"\| IS \| .* \| no \|")

    def test_not_built(self):
        code, output = run(self.folder, "lu")
        self.assertEqual(code, 1, output)
        self.assertIn("LU could not be built", output)

    def test_other_folder(self):
        code, output = run(self.folder / "NPB3.4-MPI" / "CG", "cg")
        self.assertEqual(code, 1, output)
        self.assertIn("needed NPB 3.4", output)


if __name__ == "__main__":
    unittest.main()
