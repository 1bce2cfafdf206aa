# SPDX-License-Identifier: BSD-3-Clause
"""Writes mpi/calls.h: what the mpi layer implements, one C++ function for all forms of an MPI one."""
from __future__ import annotations

import re

from .header import wrapped
from .table import Function

OPENING = """\
// SPDX-License-Identifier: BSD-3-Clause
// Generated from the table in src/api/table: do not edit.
//
// The functions of MPI. The entry points have checked the arguments by their kinds and hold the
// lock; an implementation throws base::Error. Arguments that the standard calls not significant (on
// other ranks than the root, or beside MPI_IN_PLACE) arrive as count 0 and MPI_BYTE.
#pragma once

#include "datatype/op.h"
#include "datatype/type.h"
#include "mpi/count_array.h"

#include <mpi.h>

#include <variant>

namespace macadam::mpi {

class Library;
class Process;
struct Communicator;
struct Errhandler;
struct File;
struct Group;
struct Info;
struct Session;
struct Window;

using UserFunction = std::variant<MPI_User_function*, MPI_User_function_c*>;
using ConversionFunction =
    std::variant<MPI_Datarep_conversion_function*, MPI_Datarep_conversion_function_c*>;
"""

KEYWORDS = {"register", "delete", "export", "union", "switch", "operator", "new", "abort"}


def cpp_name(function: Function) -> str:
    """MPI_Type_get_extent is mpi::type_get_extent; keywords and clashes with C get an underscore."""
    name = function.name[0].lower() + function.name[1:]
    name = name.lower() if function.is_tool else name
    return name + "_" if name in KEYWORDS else name


def declaration(function: Function) -> str:
    passed = [re.sub(r" (\*+)", r"\1 ", p.kind.passed.format(p.name))
              for p in function.parameters if p.name]
    if "form" in function:
        passed.append("bool large")
    if function.result is not None:
        return f"{function.result} {cpp_name(function)}({', '.join(passed)});"
    arguments = ", ".join([f"{function.receiver}& self", *passed])
    return f"void {cpp_name(function)}({arguments});"


def calls(table: list[Function]) -> str:
    text, chapter = OPENING, None
    for function in table:
        if function.converts_handle:
            continue
        if function.chapter != chapter:
            chapter = function.chapter
            text += f"\n// {chapter}.\n"
        text += wrapped(declaration(function)) + "\n"
    return text + "\n}  // namespace macadam::mpi\n"
