# SPDX-License-Identifier: BSD-3-Clause
"""Writes the entry points: PMPI_Foo, and MPI_Foo as a weak alias of it, one file per table."""
from __future__ import annotations

from .calls import cpp_name
from .header import wrapped
from .table import Entry, Function, Parameter

OPENING = """\
// SPDX-License-Identifier: BSD-3-Clause
// Generated from the table in src/api/table: do not edit.
#pragma GCC visibility push(default)
#include <mpi.h>
#pragma GCC visibility pop

#include "api/check.h"
#include "api/entry.h"
#include "mpi/calls.h"

using namespace macadam;
using namespace macadam::api;
using namespace macadam::mpi;
"""

SIDES = {"root": "sides.root", "leaf": "sides.leaf", "member": "(sides.root || sides.leaf)",
         "op": "op != MPI_NO_OP",
         "not_first": "(comm_object.rank() != 0 || sendbuf == MPI_IN_PLACE)"}
# What is done about files that are not open: the error handler of MPI_FILE_NULL answers.
NO_FILE_YET = {"File_open", "File_delete", "Register_datarep", "Register_datarep_c"}
COMPANIONS = {"count", "wide_count", "counts", "displs", "datatype", "datatypes"}
# What a parameter behind a buffer says of it.
DESCRIBES = {"count": "count", "wide_count": "count", "counts": "count", "displs": "displs",
             "aints": "displs", "datatype": "datatype", "datatypes": "datatype"}


def in_place(parameter: Parameter) -> bool:
    """MPI_IN_PLACE replaces what a rank would send to itself: the send buffer of an unrooted
    collective, the leaf's buffer of a rooted one."""
    if not parameter.kind.in_place:
        return False
    return parameter.side == "leaf" or (parameter.side is None
                                        and parameter.kind_name == "sendbuf")


class Body:
    """The statements of one entry point."""

    def __init__(self, entry: Entry):
        self.entry = entry
        self.parameters = entry.function.parameters
        self.source = next((p for p in self.parameters if p.kind.source), None)
        self.rooted = any(p.side in ("root", "leaf", "member") for p in self.parameters)

    def condition(self, parameter: Parameter) -> str:
        """Where the argument is significant; empty if it always is."""
        buffer = self.buffer_of(parameter)
        if parameter.side and (buffer is None or parameter.side != buffer.side):
            return SIDES[parameter.side]
        if buffer is None or parameter.side != buffer.side or not (buffer.side or in_place(buffer)):
            return ""
        return f"{buffer.name}_significant"

    def significance(self, buffer: Parameter) -> list[str]:
        """Whether a buffer, and what describes it, is looked at on this rank."""
        if not self.condition(buffer):
            return []
        parts = [SIDES[buffer.side]] if buffer.side else []
        parts += [f"{buffer.name} != MPI_IN_PLACE"] if in_place(buffer) else []
        return [f"const bool {buffer.name}_significant = {' && '.join(parts)};"]

    def buffer_of(self, parameter: Parameter) -> Parameter | None:
        """The buffer that a count, displacement or datatype right after it describes."""
        at = self.parameters.index(parameter)
        while at > 0 and self.parameters[at].kind_name in COMPANIONS:
            at -= 1
        return self.parameters[at] if self.parameters[at].kind.buffer else None

    def described_by(self, buffer: Parameter) -> dict[str, Parameter]:
        """Count, displacements and datatype of a buffer, or arrays of them: the next ones."""
        found: dict[str, Parameter] = {}
        for p in self.parameters[self.parameters.index(buffer) + 1:]:
            if what := DESCRIBES.get(p.kind_name):
                found.setdefault(what, p)
            if "datatype" in found:
                break
        return found

    def length(self, parameter: Parameter) -> str | None:
        match parameter.length:
            case None:
                return None
            case "dimensions" | "in_neighbors" | "out_neighbors":
                return f"{parameter.length}({self.source.name}_object)"
            case "comm":
                return f"{self.source.name}_object.peers()"
            case "group":
                return f"{self.source.name}_object.size()"
            case name:
                return name

    def counts_before(self, parameter: Parameter) -> str:
        before = self.parameters[:self.parameters.index(parameter)]
        return next((f"{p.name}_array" for p in reversed(before) if p.kind_name == "counts"), "")

    def nobody(self, parameter: Parameter) -> str:
        """Whether all ranks that the data of this datatype go to or come from are MPI_PROC_NULL: those
        named before the next buffer, or the target of a one-sided operation."""
        ranks = [p for p in self.parameters if p.kind_name == "target_rank"]
        for p in self.parameters[self.parameters.index(parameter):] if not ranks else []:
            if p.kind.buffer:
                break
            ranks += [p] if p.kind_name in ("dest", "source") else []
        return ", " + " && ".join(f"{p.name} == MPI_PROC_NULL" for p in ranks) if ranks else ""

    def fill(self, template: str, parameter: Parameter) -> str:
        """A kind's template for this parameter."""
        condition, length = self.condition(parameter), self.length(parameter)
        lines = [line for line in template.split("\n")
                 if length is not None or "{length:if}" not in line]
        text = "\n".join(lines)
        for mark, value in {
                "{length:if}": "",
                "{on:if}": f"if ({condition}) " if condition else "",
                "{on:or_nothing}": f"!{condition} ? check::nothing(self) : " if condition else "",
                "{on:or_any_op}": f"!{condition} ? check::any_op(self) : " if condition else "",
                "{on:or_zero}": f"{condition} ? MPI_Count{{" if condition else "",
                "{on:end}": "} : 0" if condition else "",
                "{length}": length or "0",
                "{counts}": self.counts_before(parameter),
                "{nobody}": self.nobody(parameter),
                "{of}": f"{self.source.name}_object" if self.source else "",
                "{name}": parameter.name}.items():
            text = text.replace(mark, value)
        return text

    def prepare(self, parameter: Parameter) -> list[str]:
        if parameter.large_only and not self.entry.large:
            return []
        text = self.fill(parameter.kind.passing_for(self.entry.large).prepare, parameter)
        return text.split("\n") if text else []

    def check_buffer(self, buffer: Parameter) -> list[str]:
        """Null with something to move, or a special address that means nothing here."""
        lines = []
        if in_place(buffer) and buffer.side:
            lines.append(f'check::in_place({buffer.name}, sides, "{buffer.name}");')
        found = self.described_by(buffer)
        count, datatype = found.get("count"), found.get("datatype")
        if datatype is None:
            check = f'check::address({buffer.name}, "{buffer.name}");'
        elif datatype.kind_name == "datatypes":
            displs = found["displs"]
            check = (f'check::buffer(self, {buffer.name}, {count.name}_array, '
                     f'CountArray{{{displs.name}, {self.is_wide(displs)}}}, {datatype.name}, '
                     f'{self.length(count) or 0}, "{buffer.name}");')
        elif (count is not None and count.kind_name == "counts" and "displs" not in found
              and buffer.kind_name == "recvbuf"):  # MPI_Reduce_scatter: the rank's own block
            own = f"static_cast<std::size_t>({self.source.name}_object.rank())"
            check = (f'check::buffer({buffer.name}, {count.name}_array[{own}], '
                     f'{datatype.name}_object, "{buffer.name}");')
        elif count is not None and count.kind_name == "counts":
            check = (f'check::buffer({buffer.name}, {count.name}_array, {self.length(count) or 0}, '
                     f'{datatype.name}_object, "{buffer.name}");')
        else:  # one element where there is no count
            elements, blocks = count.name if count else 1, self.length(buffer)
            if blocks:
                elements = f"{blocks} > 0 ? {elements} : 0"
            check = (f'check::buffer({buffer.name}, {elements}, {datatype.name}_object, '
                     f'"{buffer.name}");')
        condition = self.condition(buffer)
        lines.append(f"if ({condition}) {check}" if condition else check)
        return lines

    def is_wide(self, displs: Parameter) -> str:
        return "true" if self.entry.large or displs.kind_name == "aints" else "false"

    def argument(self, parameter: Parameter) -> str:
        if parameter.large_only and not self.entry.large:
            return "0" if parameter.kind.passed == "MPI_Count {}" else "nullptr"
        return self.fill(parameter.kind.passing_for(self.entry.large).argument, parameter)

    def statements(self) -> list[str]:
        """Look up what the call is made on, then check, call, and hand back."""
        lines = self.prepare(self.source) if self.source else []
        if self.rooted or any(p.kind_name == "root" for p in self.parameters):
            unused = "" if self.rooted else "[[maybe_unused]] "
            lines.append(f"{unused}const check::Sides sides = "
                         f"check::sides({self.source.name}_object, root);")
        for p in self.parameters:
            lines += self.significance(p) if p.kind.buffer else []
        for p in self.parameters:
            if p is not self.source:
                lines += self.prepare(p)
        for p in self.parameters:
            if p.kind.buffer:
                lines += self.check_buffer(p)
        arguments = ["self"] + [self.argument(p) for p in self.parameters if p.name]
        if "form" in self.entry.function:
            arguments.append("true" if self.entry.large else "false")
        lines.append(f"mpi::{cpp_name(self.entry.function)}({', '.join(arguments)});")
        for p in self.parameters:
            if not p.large_only:
                finish = self.fill(p.kind.passing_for(self.entry.large).finish, p)
                lines += [finish] if finish else []
        return lines


def error_source(entry: Entry) -> str:
    """The initializer of the ErrorSource: the handle whose error handler answers."""
    if entry.name in NO_FILE_YET:
        return "{.file = MPI_FILE_NULL}"
    for p in entry.parameters:
        if p.kind.source:
            pointer = "*" if "*" in p.kind.small else ""
            name = f"{pointer}{p.name}"
            if pointer:
                name = f"{p.name} != nullptr ? {name} : MPI_{p.kind.source.upper()}_NULL"
            return f"{{.{p.kind.source} = {name}}}"
    if any(p.kind_name == "errhandler" for p in entry.parameters):
        return "{.passed = errhandler}"  # of what the call makes
    return "{}"


def lock(name: str, anytime: bool) -> str:
    return "const AnytimeEntry entry(self);" if anytime else f'const Entry entry(self, "{name}");'


def handle_conversion(entry: Entry) -> str:
    """Objects that may be used at any time have a table of their own, under the lock at every thread
    level."""
    name = entry.parameters[0].name
    anytime = entry.name.startswith(("Errhandler_", "Info_", "Session_"))
    table = "anytime_handles" if anytime else "handles"
    convert = (f"self.{table}.to_int({name})" if entry.function.result == "int" else
               f"static_cast<{entry.function.result}>(self.{table}.from_int({name}))")
    return (f'  Library& self = anytime();\n  {lock(f"MPI_{entry.name}", anytime)}\n'
            f"  return {convert};\n")


def indented(lines: list[str], depth: int) -> str:
    return "".join("\n".join(" " * depth + part for part in wrapped(line, 100 - depth).split("\n")) + "\n"
                   for line in lines)


def entry_point(entry: Entry) -> str:
    function, name = entry.function, f"MPI_{entry.name}"
    undeclared = '[[gnu::visibility("default")]] ' if "removed" in function else ""
    opening = f'extern "C" {undeclared}{entry.prototype("PMPI")} {{'
    alias = (f'extern "C" [[gnu::weak, gnu::alias("P{name}"), gnu::visibility("default")]]\n'
             + wrapped(entry.prototype("MPI") + ";") + "\n")
    if function.converts_handle:
        return f"\n{wrapped(opening)}\n{handle_conversion(entry)}}}\n{alias}"
    if function.result is not None:
        arguments = ", ".join(p.name for p in entry.parameters)
        body = f"  return mpi::{cpp_name(function)}({arguments});\n"
        return f"\n{wrapped(opening)}\n{body}}}\n{alias}"
    if function.is_tool:
        failed = "return tool_failed();"
    else:
        failed = f'return failed("{name}", {error_source(entry)});'
    anytime = "anytime" in function or function.is_tool
    if anytime:
        body = f"  {function.receiver}& self = anytime();\n"
    elif "offline" in function:
        body = (f"  {function.receiver}& self = anytime();\n"
                f'  if (self.users == 0) [[unlikely]] not_initialized("{name}");\n')
    else:
        body = ("  Process* runs = running.load(std::memory_order_acquire);\n"
                "  if (runs == nullptr) [[unlikely]] {\n"
                f'    if (const int code = begin_running("{name}"); code != MPI_SUCCESS) return code;\n'
                "    runs = running;\n  }\n  Process& self = *runs;\n")
    body += "  try {\n"
    if "lockless" not in function:
        body += f"    {lock(name, anytime)}\n"
    body += indented(Body(entry).statements(), 4)
    body += f"    return MPI_SUCCESS;\n  }} catch (...) {{\n    {failed}\n  }}\n"
    return f"\n{wrapped(opening)}\n{body}}}\n{alias}"


def entry_points(table: list[Function]) -> dict[str, str]:
    """The text of each file, by the name of its table."""
    files: dict[str, str] = {}
    for function in table:
        for entry in function.entries():
            files.setdefault(function.file, OPENING)
            files[function.file] += entry_point(entry)
    return files
