# SPDX-License-Identifier: BSD-3-Clause
"""Writes MPI_Foo for programs that the simulator runs: PMPI_Foo as a call whose time is charged."""
from __future__ import annotations

from .header import wrapped
from .table import Entry, Function

OPENING = """\
// SPDX-License-Identifier: BSD-3-Clause
// Generated from the table in src/api/table: do not edit.
#pragma GCC visibility push(default)
#include <mpi.h>

#include "sim/charges.h"

using macadam::sim::Call;
"""


def call(entry: Entry) -> str:
    name = entry.name
    prototype, inner = entry.prototype("MPI"), entry.prototype("PMPI")
    arguments = ", ".join(p.name for p in entry.parameters if p.name)
    declared = f'extern "C" {inner};\n' if "removed" in entry.function else ""
    return (f'\n{wrapped(declared)}{wrapped(f"""extern "C" {prototype} {{""")}\n'
            f"  const Call call(__builtin_return_address(0));\n  return PMPI_{name}({arguments});\n}}\n")


def calls(table: list[Function]) -> str:
    return OPENING + "".join(call(entry) for function in table for entry in function.entries())
