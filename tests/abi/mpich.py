# SPDX-License-Identifier: BSD-3-Clause
"""The yardstick: MPICH 5's library with the standard ABI, from its package on PyPI."""
import pathlib
import sys

import wheels

PACKAGE = "mpich==5.0.2"
SKIPPED = wheels.SKIPPED
SIGN = "include/mpi_abi.h"


def locate(given: str, folder: pathlib.Path) -> pathlib.Path:
    """The virtual environment with the package: the given one, else one made in `folder`."""
    if not given:
        return wheels.install(PACKAGE, folder / "mpich", SIGN)
    venv = pathlib.Path(given)
    if not (venv / SIGN).exists():
        sys.exit(f"MACADAM_MPICH_VENV is {venv}, which has no {SIGN}; install {PACKAGE} there with its "
                 "pip, or leave the variable empty")
    return venv
