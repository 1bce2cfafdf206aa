# SPDX-License-Identifier: BSD-3-Clause
"""Writes mpi.h, the C and C++ header of the standard ABI."""
from __future__ import annotations

import itertools
import re

from .table import Constant, ConstantGroup, Function, Types

OPENING = """\
/* SPDX-License-Identifier: BSD-3-Clause
 *
 * MPI 5.0, standard ABI, from Macadam. Generated from the table in src/api/table: do not edit.
 * A program built with this header runs on every MPI library with the standard ABI. */
#ifndef MACADAM_MPI_H
#define MACADAM_MPI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
"""

STATUS = """\
typedef struct {
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
    int MPI_internal[5];
} MPI_Status;
"""

CLOSING = """\

#ifdef __cplusplus
}
#endif

#endif /* MACADAM_MPI_H */
"""


def wrapped(statement: str, width: int = 100) -> str:
    """Breaks a long statement, between its arguments where that is enough."""
    if len(statement) <= width:
        return statement
    lines, line = [], ""
    for word in re.split(r"(?<=,) |(?<= [?=]) | (?=: )", statement):
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = "    " + word
        else:
            line = f"{line} {word}" if line else word
    return "\n".join(lines + [line])


def comment(title: str) -> str:
    return f"\n/* {title}. */\n"


def define(constant: Constant, c_type: str | None) -> str:
    value = f"(({c_type}){constant.value})" if c_type and not constant.alias else constant.value
    return f"#define {constant.name} {value}\n"


def constants(group: ConstantGroup) -> str:
    text = comment(group.title)
    if group.form == "enum":
        body = ",\n".join(f"    {c.name} = {c.value}" for c in group.constants)
        if group.tag:
            return f"{text}typedef enum {group.tag} {{\n{body}\n}} {group.tag};\n"
        return f"{text}enum {{\n{body}\n}};\n"
    for c in group.constants:
        text += define(c, {"define": None, "typed": c.type}.get(group.form, group.form))
    return text


def callback(prototype: str) -> str:
    result, _, rest = prototype.partition(" ")
    name, _, parameters = rest.partition("(")
    return wrapped(f"typedef {result} ({name})({parameters};") + "\n"


def functions(table: list[Function], prefix: str) -> str:
    text, chapter = "", None
    for function in table:
        if "removed" in function:
            continue
        if function.chapter != chapter:
            chapter = function.chapter
            text += comment(chapter if prefix == "MPI" else f"{chapter}: names for profiling")
        for entry in function.entries():
            text += wrapped(entry.prototype(prefix) + ";")
            text += " /* deprecated */\n" if "deprecated" in function else "\n"
    return text


def language_conversions(table: list[Function]) -> str:
    """Handles and statuses of Fortran, under the names that MPI had for them before the ABI did."""
    text = comment("Fortran. An INTEGER handle is what the functions _toint and _fromint speak of, and "
                   "a\n * status has the same words in all languages")
    text += "typedef int MPI_Fint;\ntypedef MPI_Status MPI_F08_status;\n"
    for prefix in ("MPI", "PMPI"):
        for function in table:
            if function.converts_handle:
                new = f"{prefix}_{function.name}"
                old = new.replace("_toint", "_c2f").replace("_fromint", "_f2c")
                text += f"#define {old} {new}\n"
    status = {"c": "MPI_Status", "f08": "MPI_F08_status", "f": "MPI_Fint"}
    for source, target in itertools.permutations(status, 2):
        # A cast to the type that it has already is one that compilers can warn of.
        to = "*(MPI_Status *)to" if target == "f" else "*to"
        found = "*(const MPI_Status *)from" if source == "f" else "*from"
        name = f"MPI_Status_{source}2{target}"
        text += (f"static __inline int {name}(const {status[source]} *from, {status[target]} *to) {{\n"
                 f"    {to} = {found};\n    return MPI_SUCCESS;\n}}\n#define P{name} {name}\n")
    return text


def header(types: Types, groups: list[ConstantGroup], table: list[Function]) -> str:
    text = OPENING
    text += comment("Integers wide enough for addresses, file offsets and counts")
    for name, c_type in types.integers:
        text += f"typedef {c_type} {name};\n"
    text += comment("Handles")
    for name, tag in types.handles:
        text += f"typedef struct {tag} *{name};\n"
    text += comment("What a receive reports") + STATUS
    # The types of callbacks use those of named enumerations.
    text += "".join(constants(g) for g in groups if g.tag)
    text += comment("Callbacks")
    text += "".join(callback(prototype) for prototype in types.callbacks)
    for name, meaning in types.aliases:
        text += f"typedef {meaning} {name};\n"
    text += "".join(constants(g) for g in groups if not g.tag)
    text += functions(table, "MPI") + functions(table, "PMPI")
    return text + language_conversions(table) + CLOSING
