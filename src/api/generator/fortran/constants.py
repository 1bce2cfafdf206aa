# SPDX-License-Identifier: BSD-3-Clause
"""The constants of MPI as Fortran has them (MPI 5.0, chapter 20 and appendix A.1)."""
from __future__ import annotations

import re
from dataclasses import dataclass

from ..table import ConstantGroup, TableError

# Kinds, and what describes the bindings themselves. Descriptors reach MPI in mpi_f08 only.
OWN = [("MPI_ADDRESS_KIND", "8"), ("MPI_COUNT_KIND", "8"), ("MPI_OFFSET_KIND", "8"),
       ("MPI_INTEGER_KIND", "4"), ("MPI_STATUS_SIZE", "8"), ("MPI_SOURCE", "1"), ("MPI_TAG", "2"),
       ("MPI_ERROR", "3")]

# Common blocks, whose addresses src/fortran/sentinels.h knows: name, type and shape in mpif.h and
# module mpi, in mpi_f08 where it differs.
SENTINELS = [
    ("MPI_BOTTOM", "INTEGER", "", None),
    ("MPI_IN_PLACE", "INTEGER", "", None),
    ("MPI_BUFFER_AUTOMATIC", "INTEGER", "", ("integer, target", "")),
    ("MPI_STATUS_IGNORE", "INTEGER", "(MPI_STATUS_SIZE)", ("type(MPI_Status)", "")),
    ("MPI_STATUSES_IGNORE", "INTEGER", "(MPI_STATUS_SIZE,1)", ("type(MPI_Status)", "(1)")),
    ("MPI_ERRCODES_IGNORE", "INTEGER", "(1)", None),
    ("MPI_UNWEIGHTED", "INTEGER", "(1)", None),
    ("MPI_WEIGHTS_EMPTY", "INTEGER", "(1)", None),
    ("MPI_ARGV_NULL", "CHARACTER*1", "(1)", ("character(len=1)", "(1)")),
    ("MPI_ARGVS_NULL", "CHARACTER*1", "(1,1)", ("character(len=1)", "(1,1)")),
]

DISPLACEMENT = "MPI_DISPLACEMENT_CURRENT"  # the only number among the typed constants
C_ONLY = re.compile(r"MPI_T_|MPI_F_")


@dataclass(frozen=True)
class Value:
    name: str
    value: str
    handle: str = ""  # its type in mpi_f08, if it is a handle
    kind: str = ""  # of the integer where it is not the default one


def common_block(name: str) -> str:
    return name.replace("MPI_", "MPI_FORTRAN_", 1)


def values(groups: list[ConstantGroup]) -> list[Value]:
    """All constants with a value, without the sentinels and the predefined callbacks."""
    found = [Value(name, value) for name, value in OWN]
    numbers: dict[str, str] = {}
    for group in groups:
        for constant in group.constants:
            name = constant.name
            value = numbers[constant.value] if constant.alias else constant.value
            if C_ONLY.match(name) or (group.form == "typed" and name != DISPLACEMENT):
                continue
            number = int(value, 0)
            if re.match(r"MPI_MAX_.*", name):
                number -= 1  # no terminating null
            numbers[name] = value
            handle = group.form if group.form.startswith("MPI_") else ""
            kind = "MPI_OFFSET_KIND" if name == DISPLACEMENT else ""
            found.append(Value(name, str(number), handle, kind))
    return found


def callbacks(groups: list[ConstantGroup]) -> list[tuple[str, str]]:
    """The predefined callbacks: name, and the name of their interface."""
    return [(c.name, c.type.removesuffix("*")) for g in groups if g.form == "typed"
            for c in g.constants if c.type.endswith(("_function*", "_function_c*"))]


def check(groups: list[ConstantGroup]) -> None:
    """Refuses a typed constant that is neither a sentinel nor a callback nor a number here."""
    known = {name for name, *_ in SENTINELS} | {name for name, _ in callbacks(groups)}
    for group in groups:
        for c in group.constants:
            if group.form == "typed" and c.name not in known and not C_ONLY.match(c.name) \
                    and c.name != DISPLACEMENT:
                raise TableError(f"{c.name} has no form in Fortran; see fortran/constants.py")
