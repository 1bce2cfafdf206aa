# SPDX-License-Identifier: BSD-3-Clause
"""Writes libmpi.so.12's entry points: MPI in MPICH's ABI, each one call of the function of the standard
ABI, and the tables by which constants are converted.

Handles are ints there, a status has other words, and most constants other values. A parameter is
converted by its C type, by its kind, or, where both say but `int`, by its name (MEANINGS).
"""
from __future__ import annotations

import re

from .header import wrapped
from .lengths import length, significant
from .table import ConstantGroup, Entry, Function, Parameter, TableError

OPENING = """\
// SPDX-License-Identifier: BSD-3-Clause
// Generated from the table in src/api/table: do not edit.
#include "mpich/glue.h"
#include "mpich/names.h"

using namespace macadam::mpich;
"""
STANDARD_OPENING = """\
// SPDX-License-Identifier: BSD-3-Clause
// Generated from the table in src/api/table: do not edit.
//
// Every function of the standard ABI, found in its library when this one is loaded: both libraries have
// functions of the same names, so that the linker cannot tell them apart.
#pragma once

#include <mpi.h>

namespace macadam::mpich {

struct Standard {
"""
CONSTANTS_OPENING = """\
// SPDX-License-Identifier: BSD-3-Clause
// Generated from the tables of constants in src/api/table: do not edit.
//
// The constants that differ: {MPICH's value, the standard ABI's}.
#pragma once

#include "mpich/pairs.h"

namespace macadam::mpich::constants {
"""

HANDLES = ("Comm", "Datatype", "Errhandler", "Group", "Info", "Message", "Op", "Request", "Session",
           "Win")  # a file is a pointer in both
HANDLE = re.compile(rf"MPI_({'|'.join(HANDLES)})\b")

# What an int means: by the parameter's kind, where that tells; else by its name, or by function and
# parameter where the name alone says too little. Each is a class of meanings.h.
KIND_MEANINGS = {
    **dict.fromkeys(("dest", "source", "root", "target_rank"), "Rank"),
    **dict.fromkeys(("tag", "any_tag"), "Tag"),
    **dict.fromkeys(("errorclass", "errorcode"), "ErrorCode"),
    **dict.fromkeys(("keyval", "inout_keyval"), "Keyval"),
}
MEANINGS = {
    **dict.fromkeys(("source", "rank_source", "rank_dest", "sources", "destinations", "ranks1",
                     "ranks2", "Win_shared_query.rank"), "Rank"),
    **dict.fromkeys(("errorclass", "errorcode", "err"), "ErrorCode"),
    **dict.fromkeys(("required", "provided"), "ThreadLevel"),
    "amode": "FileMode", "array_of_dargs": "DistributionArgument",
    "array_of_distribs": "Distribution", "assert": "Assertion", "bind": "Bind",
    "combiner": "Combiner", "lock_type": "Lock", "order": "Order", "result": "Comparison",
    "scope": "Scope", "split_type": "SplitType", "tag": "Tag", "typeclass": "TypeClass",
    "var_class": "VariableClass", "verbosity": "Verbosity", "whence": "Whence",
    "File_set_view.disp": "Displacement", "Topo_test.status": "Topology",
    "Abort.errorcode": None,  # the program's exit code
}

# Functions written by hand (src/mpich/entries.cc and bounds.cc): callbacks, attributes, and what has a
# meaning of its own in several parameters.
BY_HAND = {"Pcontrol", "Type_get_contents", "Abi_get_version", "Comm_spawn", "Comm_spawn_multiple",
           "Type_struct", "Type_create_struct", "Finalize", "Session_finalize"}
BY_HAND_KINDS = {"out_attribute", "out_integer_attribute"}

# Results of the other ABI may be longer than what is promised in MPICH's.
SHORTENED = ("MPI_MAX_INFO_KEY", "MPI_MAX_PROCESSOR_NAME", "MPI_MAX_PORT_NAME")

# Constants of events, of which there are none (and so no callback that would be told one).
NOT_CONVERTED = {"what_an_event_callback_may_do", "order_of_events_of_a_source"}


def by_hand(function: Function) -> bool:
    return (function.name in BY_HAND or function.converts_handle
            or any(p.kind_name in BY_HAND_KINDS
                   or ("_function" in p.kind.small and not function.is_tool)
                   for p in function.parameters))


def declared(p: Parameter, large: bool) -> str:
    """The parameter in MPICH's ABI."""
    text = p.declare(large)
    return re.sub(r"\bMPI_Status\b", "Status", HANDLE.sub("int", text))


def meaning(function: Function, p: Parameter) -> str | None:
    by_name = MEANINGS.get(p.name)
    return MEANINGS.get(f"{function.name}.{p.name}", KIND_MEANINGS.get(p.kind_name, by_name))


def status(entry: Entry, p: Parameter) -> str:
    match p.kind_name:
        case "statuses":
            return f"Statuses({p.name}, {p.length})"
        case "status":
            return f"OutStatus({p.name})"
        case "in_status":
            return f"InStatus({p.name})"
        case _:
            return f"InOutStatus({p.name})"


def plain_number(function: Function, p: Parameter, c: str, extent: str) -> str:
    """Integers: as they are, or by their meaning."""
    what = meaning(function, p)
    if what is None:
        return p.name
    if "*" in c:
        return f"{'InOut' if p.kind_name == 'inout_keyval' else 'Out'}<{what}>({p.name})"
    if "[]" not in c:
        return f"{what}::in({p.name})"
    if p.length is None:  # ranks, which are no special ones there
        return p.name
    return f"{'In' if 'const ' in c else 'Out'}Array<{what}>({p.name}, {extent})"


def argument(entry: Entry, p: Parameter) -> str:
    """What the function of the standard ABI gets."""
    function, c = entry.function, p.kind.declare("@", entry.large)
    if "MPI_Status" in c:
        return status(entry, p)
    if p.kind_name == "detached":
        return f"Out<void*>(static_cast<void**>({p.name}))"
    if p.kind.buffer or p.kind_name in ("memory", "const_memory") and function.name != "Get_address":
        return f"buffer_address({p.name})"
    if p.kind_name == "out_string" and p.length in SHORTENED:
        reported = any(q.name == "resultlen" for q in entry.parameters)
        return (f"Shortened<{p.length}, constants::longest::{p.length[4:]}>({p.name}"
                f"{', resultlen' if reported else ''})")
    match = re.fullmatch(r"(const )?(MPI_\w+) ?(\*?)@(\[\])?", c)
    if match and (match.group(2)[4:] in HANDLES or match.group(2) == "MPI_File"):
        const, handle, pointer, array = match.groups()
        if array:
            extent = significant(entry, p)
            if p.kind_name in ("requests", "all_started"):
                return f"Requests({p.name}, {extent})"
            return f"{'In' if const else 'Out'}Array<{handle}>({p.name}, {extent})"
        if not pointer:
            return f"handle<{handle}>({p.name})"
        changed = p.kind_name.startswith("inout_") or p.kind_name in (
            "request", "message", "started", "cancelled")
        return f"{'InOut' if changed else 'Out'}<{handle}>({p.name})"
    if HANDLE.search(c):
        raise TableError(f"MPI_{entry.name}: '{p.declare(entry.large)}' has no form in MPICH's ABI")
    if re.fullmatch(r"(const )?(int|MPI_Offset) ?\*?@(\[\])?", c):
        return plain_number(function, p, c, length(entry, p))
    return p.name


def entry_point(entry: Entry) -> str:
    function = entry.function
    parameters = ", ".join(declared(p, entry.large) for p in entry.parameters) or "void"
    call = f"standard.{entry.name}({', '.join(argument(entry, p) for p in entry.parameters)})"
    body = f"return code({call});" if function.result is None else f"return {call};"
    opening = f"MPICH_ENTRY({function.returns}, {entry.name}, ({parameters}))"
    lines = "\n".join("  " + line for line in wrapped(body, 98).split("\n"))
    return f"\n{wrapped(opening)} {{\n{lines}\n}}\n"


def check_meanings(functions: list[Function]) -> None:
    """Each name that has a meaning is one of the tables': a renamed parameter would lose it."""
    names = {name for f in functions for p in f.parameters for name in (p.name, f"{f.name}.{p.name}")}
    unknown = MEANINGS.keys() - names
    if unknown:
        raise TableError(f"mpich.py: MEANINGS has {', '.join(sorted(unknown))}, which no parameter of "
                         "the tables is called; needed is its present name")


def entry_points(functions: list[Function]) -> dict[str, str]:
    """The text of each file, by the name of its table."""
    check_meanings(functions)
    files: dict[str, str] = {}
    for function in functions:
        if by_hand(function):
            continue
        for entry in function.entries():
            files.setdefault(function.file, OPENING)
            files[function.file] += entry_point(entry)
    return files


def standard(functions: list[Function]) -> str:
    """The functions of the standard ABI as pointers, and their names."""
    entries = [e for f in functions for e in f.entries() if e.name != "Pcontrol"]
    text = STANDARD_OPENING
    for entry in entries:
        if "removed" in entry.function:  # not in mpi.h
            text += f"  {entry.prototype('').replace(f' _{entry.name}', f' (*{entry.name})')};\n"
        else:
            text += f"  decltype(&PMPI_{entry.name}) {entry.name};\n"
    text += "};\n\n// In the order of the members.\ninline constexpr const char* standard_names[] = {\n"
    text += "".join(f'    "PMPI_{entry.name}",\n' for entry in entries)
    return text + "};\n\n} // namespace macadam::mpich\n"


def identifier(title: str) -> str:
    return re.sub(r"\W+", "_", title.split(",")[0].split(":")[0]).strip("_").lower()


def constants(groups: list[ConstantGroup], theirs: dict[str, dict[str, str]]) -> str:
    """A table for each section of constants that differ."""
    text = CONSTANTS_OPENING
    for group in groups:
        values = theirs.get(group.title)
        if values is None or identifier(group.title) in NOT_CONVERTED:
            continue
        rows = [c for c in group.constants if not c.alias]
        missing = {c.name for c in rows} ^ set(values)
        if missing:
            raise TableError(f"mpich.table: '{group.title}' and the section of constants.table differ "
                             f"in {', '.join(sorted(missing))}")
        name = identifier(group.title)
        if name == "longest_strings":
            text += "\n// The longest strings, with the terminating null, in MPICH's ABI.\n"
            text += "namespace longest {\n"
            text += "".join(f"inline constexpr int {c.name[4:]} = {values[c.name]};\n" for c in rows)
            text += "} // namespace longest\n"
            continue
        text += f"\ninline constexpr Pair {name}[] = {{\n"
        text += "".join(f"    {{static_cast<int>({values[c.name]}), {c.value}}}, // {c.name}\n"
                        for c in rows)
        text += "};\n"
    return text + "\n} // namespace macadam::mpich::constants\n"
