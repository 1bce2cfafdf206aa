# SPDX-License-Identifier: BSD-3-Clause
"""The number of elements of an array, as what stands in front of the entry points computes it: Fortran,
where numbers are addresses, and MPICH's ABI. The functions that it calls are in their glue.h."""
from __future__ import annotations

from .table import Entry, Parameter


def length(entry: Entry, p: Parameter, number: str = "{}") -> str:
    """`number`: how the value of a parameter is written."""
    comm = next((q.name for q in entry.parameters if q.kind_name == "comm"), None)
    match p.length:
        case None:
            return "0"
        case "comm":
            return f"peers({comm})"
        case "group":
            return f"members({comm})"
        case "dimensions" | "in_neighbors" | "out_neighbors":
            return f"{p.length}({comm})"
        case name:
            return number.format(name)


def significant(entry: Entry, p: Parameter, number: str = "{}") -> str:
    """The length of an array of datatypes, which beside MPI_IN_PLACE is not looked at."""
    before = entry.parameters[:entry.parameters.index(p)]
    buffer = next((q for q in reversed(before) if q.kind.buffer), None)
    if p.kind_name != "datatypes" or buffer is None or not buffer.kind.in_place:
        return length(entry, p, number)
    return f"significant({buffer.name}, {length(entry, p, number)})"
