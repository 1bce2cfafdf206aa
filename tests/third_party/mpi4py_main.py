# SPDX-License-Identifier: BSD-3-Clause
"""Runs mpi4py's test/main.py, the first argument, with the others. Two modules open a file or a session
when they are imported, and leave out those classes where mpi4py says that its MPI has none: it says so
of functions that cannot be linked, so here it is said for ours, which can be but are not written yet."""
import importlib
import pathlib
import runpy
import sys
import unittest.mock

from mpi4py import MPI


def missing(*_):
    raise NotImplementedError


File = type("File", (MPI.File,), {"Open": missing})
Session = type("Session", (MPI.Session,), {"Init": missing})
sys.argv = sys.argv[1:]
sys.path.insert(0, str(pathlib.Path(sys.argv[0]).parent))
with unittest.mock.patch.multiple(MPI, File=File, Session=Session):
    for module in ("test_exceptions", "test_subclass"):
        importlib.import_module(module)
runpy.run_path(sys.argv[0], run_name="__main__")
