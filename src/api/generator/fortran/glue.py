# SPDX-License-Identifier: BSD-3-Clause
"""Writes the glue: the procedures that Fortran calls, each one call of the C function.

A procedure has up to three names (MPI 5.0, section 19.1.5). mpi_send_ is that of mpif.h and module
mpi. In mpi_f08 a procedure with choice buffers is mpi_send_f08ts and gets C descriptors of them;
any other is mpi_comm_rank_f08_, a second name of mpi_comm_rank_ wherever the arguments are alike.
"""
from __future__ import annotations

from dataclasses import replace

from ..header import wrapped
from ..table import Entry, Function, Parameter
from . import kinds
from .kinds import Argument

OPENING = """\
// SPDX-License-Identifier: BSD-3-Clause
// Generated from the table in src/api/table: do not edit.
#include "fortran/glue.h"
#include "fortran/section.h"

using namespace macadam::fortran;

extern "C" {
"""


def signature(name: str, arguments: list[Argument], result: str, has_error: bool) -> str:
    parameters = [a.glue for a in arguments if a.type]
    parameters += ["Fint* ierror"] if has_error else []
    parameters += [f"std::size_t {a.name}_length" for a in arguments if a.hidden]
    return f"{result} {name}({', '.join(parameters)}) {{"


def shown(entry: Entry) -> tuple[str, str]:
    return entry.name.lower(), entry.name.upper()


def statements(entry: Entry, arguments: list[Argument]) -> list[str]:
    call = f"CALL({entry.name})({', '.join(a.expression for a in arguments if a.expression)})"
    if entry.function.result:
        return [f"return {call};"]
    return [f"answer(ierror, {call});" if has_error(entry.function) else f"{call};"]


def has_error(function: Function) -> bool:
    """Wtime and its like return something else; Pcontrol returns nothing in Fortran."""
    return function.result is None and not any(p.kind_name == "..." for p in function.parameters)


def procedure(macro: str, entry: Entry, arguments: list[Argument], body: list[str]) -> str:
    lower, upper = shown(entry)
    name = f"{macro}({lower})" if macro == "F08TS" else f"{macro}({lower}, {upper})"
    opening = signature(name, arguments, entry.function.result or "void", has_error(entry.function))
    lines = [f"  {part}\n" for line in body for part in wrapped(line, 98).split("\n")]
    return f"\n{wrapped(opening)}\n{''.join(lines)}}}\n"


class Buffers:
    """How the buffers of a call in mpi_f08 become addresses for C.

    An array section in a buffer with a count and a datatype of its own is described by a datatype.
    In collectives, where buffers share them or each rank has a part of one, it is copied.
    One-sided operations on a single element and the second halves of split file operations need but
    the address. Partitioned calls have none at all.
    """

    def __init__(self, entry: Entry):
        self.entry, self.parameters = entry, entry.parameters
        self.buffers = [p for p in self.parameters if kinds.is_buffer(p)]

    def described_by(self, buffer: Parameter) -> list[Parameter]:
        """The count and the datatype right behind a buffer; empty if they are not its own."""
        at = self.parameters.index(buffer) + 1
        found = self.parameters[at:at + 2]
        is_own = [p.kind_name for p in found] == ["count", "datatype"]
        if not is_own or ("collective" in self.entry.function and len(self.buffers) > 1):
            return []
        others = [b for b in self.buffers if b is not buffer]
        shared = any(self.parameters.index(b) == self.parameters.index(buffer) - 1 for b in others)
        return [] if shared else found

    @property
    def is_nonblocking(self) -> bool:
        return any(p.kind_name == "new_request" for p in self.parameters)

    @property
    def is_partitioned(self) -> bool:
        return any(p.name == "partitions" for p in self.parameters)

    def body(self, arguments: list[Argument]) -> list[str]:
        before, by_name = [], {a.name: a for a in arguments}
        copied = False
        for buffer in self.buffers:
            own = self.described_by(buffer)
            name = buffer.name
            if own:
                count, datatype = own
                before.append(f"const Section {name}_section({name}, *{count.name}, "
                              f"handle<MPI_Datatype>({datatype.name}));")
                by_name[name] = replace(by_name[name], expression=f"{name}_section.address")
                for p, member in ((count, "count"), (datatype, "type")):
                    by_name[p.name] = replace(by_name[p.name],
                                              expression=f"{name}_section.{member}")
            elif self.is_partitioned:
                datatype = by_name["datatype"]
                by_name["datatype"] = replace(datatype, expression=(
                    f"partitioned_type({name}, *count, {datatype.expression})"))
            elif buffer.kind.buffer and self.entry.function.file not in ("one_sided", "file"):
                copied = True
                way = "inout" if by_name[name].intent != "in" else "in"
                by_name[name] = replace(by_name[name], expression=f"copies.{way}({name})")
        call = statements(self.entry, [by_name[a.name] for a in arguments])
        if not copied:
            return before + call
        if not self.is_nonblocking:
            return ["Copies copies;"] + before + call
        keep = "each_start" if self.entry.function.name.endswith("_init") else "until"
        code = call[0].removeprefix("answer(ierror, ").removesuffix(");")
        return (["Copies copies;"] + before + [f"const int code = {code};",
                 f"answer(ierror, copies.{keep}(code, *request));"])


def with_descriptors(entry: Entry, arguments: list[Argument]) -> str:
    """The form of mpi_f08 with choice buffers. Strings come with descriptors too."""
    changed = []
    for a in arguments:
        if kinds.is_buffer(a.parameter):
            a = replace(a, glue=f"const CFI_cdesc_t* {a.name}")
        elif a.hidden:
            a = replace(a, glue=f"const CFI_cdesc_t* {a.name}", hidden=False,
                        expression=a.expression.replace(f", {a.name}_length", ""))
        changed.append(a)
    return procedure("F08TS", entry, changed, Buffers(entry).body(changed))


def with_pointer(arguments: list[Argument]) -> list[Argument]:
    """In mpi_f08 a detached buffer is a pointer."""
    return [replace(a, glue=f"void** {a.name}", expression=f"Detached({a.name})")
            if a.parameter.kind_name == "detached" else a for a in arguments]


def procedures(entry: Entry) -> str:
    arguments = kinds.arguments(entry)
    small = not entry.large or entry.name.endswith("_x")
    text = ""
    if small:
        text += procedure("ENTRY", entry, arguments, statements(entry, arguments))
    is_detached = any(a.parameter.kind_name == "detached" for a in arguments)
    if is_detached:
        arguments = with_pointer(arguments)
        text += procedure("F08", entry, arguments, statements(entry, arguments))
    elif any(kinds.is_buffer(a.parameter) for a in arguments):
        text += with_descriptors(entry, arguments)
    elif small:
        text += "ALSO_F08({}, {})\n".format(*shown(entry))
        if any(a.parameter.kind_name == "out_pointer" for a in arguments):
            text += "ALSO_CPTR({}, {})\n".format(*shown(entry))
    else:
        text += procedure("F08", entry, arguments, statements(entry, arguments))
    return text


def glue(table: list[Function]) -> dict[str, str]:
    """The text of each file, by the name of its table."""
    files: dict[str, str] = {}
    for function in table:
        if not kinds.exists(function) or kinds.by_hand(function):
            continue
        for entry in function.entries():
            files.setdefault(function.file, OPENING)
            files[function.file] += procedures(entry)
    return {name: text + "\n}  // extern \"C\"\n" for name, text in files.items()}
