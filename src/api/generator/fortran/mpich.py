# SPDX-License-Identifier: BSD-3-Clause
"""Writes libmpifort.so.12's procedures, which call the C functions of MPICH's ABI: those of mpif.h
and module mpi, with the same conversions by name as in front of the standard ABI, in another
glue.h. And the prototypes of the C functions that they call.
"""
from __future__ import annotations

from .. import mpich
from ..header import wrapped
from ..table import Entry, Function
from . import kinds
from .glue import procedure, statements

OPENING = """\
// SPDX-License-Identifier: BSD-3-Clause
// Generated from the table in src/api/table: do not edit.
#include "mpich/fortran/glue.h"

using namespace macadam::mpich::fortran;

extern "C" {
"""
FUNCTIONS_OPENING = """\
// SPDX-License-Identifier: BSD-3-Clause
// Generated from the table in src/api/table: do not edit.
//
// The C functions of MPICH's ABI that procedures of Fortran call, but for those with callbacks.
#pragma once

#include "mpich/fortran/names.h"
#include "mpich/status.h"

#include <mpi.h>

namespace macadam::mpich::fortran {

"""


def entries(table: list[Function]) -> list[Entry]:
    """What Fortran has without mpi_f08; procedures that were removed from the standard are those of
    programs that this ABI is for."""
    return [entry for function in table
            if kinds.exists(function) or "removed" in function
            for entry in function.entries() if not entry.large or entry.name.endswith("_x")]


def glue(table: list[Function]) -> dict[str, str]:
    """The text of each file, by the name of its table."""
    files: dict[str, str] = {}
    for entry in entries(table):
        function = entry.function
        # Addresses were INTEGER in those that were removed, which are written by hand.
        if kinds.by_hand(function) or "removed" in function:
            continue
        files.setdefault(function.file, OPENING)
        files[function.file] += procedure("ENTRY", entry, kinds.arguments(entry),
                                          statements(entry, kinds.arguments(entry)))
    return {name: text + "\n}  // extern \"C\"\n" for name, text in files.items()}


def functions(table: list[Function]) -> str:
    text = FUNCTIONS_OPENING
    for entry in entries(table):
        if any(kinds.callback(p) for p in entry.parameters):
            continue
        parameters = ", ".join(mpich.declared(p, entry.large) for p in entry.parameters) or "void"
        declared = f"MPICH_FUNCTION({entry.function.returns}, {entry.name}, ({parameters}));"
        text += f"{wrapped(declared)}\n"
    return text + "\n} // namespace macadam::mpich::fortran\n"
