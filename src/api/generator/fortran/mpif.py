# SPDX-License-Identifier: BSD-3-Clause
"""Writes mpif.h, right both in fixed and in free form: columns 7 to 72, nothing continued."""
from __future__ import annotations

from ..table import ConstantGroup, Function
from . import constants, kinds

OPENING = """\
! SPDX-License-Identifier: BSD-3-Clause
!
! MPI 5.0 from Macadam, for INCLUDE in fixed or free form. Generated
! from the table in src/api/table: do not edit. Modules mpi_f08 and
! mpi also check the arguments; this file is deprecated since MPI 4.1.
!
"""


def line(text: str) -> str:
    assert len(text) <= 66, text
    return f"      {text}\n"


def mpif(groups: list[ConstantGroup], table: list[Function]) -> str:
    text = OPENING
    for v in constants.values(groups):
        text += line(f"INTEGER({v.kind}) {v.name}" if v.kind else f"INTEGER {v.name}")
        text += line(f"PARAMETER ({v.name}={v.value})")
    for name in ("MPI_SUBARRAYS_SUPPORTED", "MPI_ASYNC_PROTECTS_NONBLOCKING"):
        text += line(f"LOGICAL {name}") + line(f"PARAMETER ({name}=.FALSE.)")
    for name, type_, shape, _ in constants.SENTINELS:
        text += line(f"{type_} {name}{shape}")
        text += line(f"COMMON /{constants.common_block(name)}/ {name}")
        text += line(f"SAVE /{constants.common_block(name)}/")
    for name, _ in constants.callbacks(groups):
        if not name.endswith("_C"):
            text += line(f"EXTERNAL {name}")
    for function in table:
        if kinds.exists(function) and function.result:
            type_ = kinds.RESULTS[function.result].upper()
            for prefix in ("MPI", "PMPI"):
                text += line(f"{type_} {prefix}_{function.name.upper()}")
                text += line(f"EXTERNAL {prefix}_{function.name.upper()}")
    return text
