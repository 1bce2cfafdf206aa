# SPDX-License-Identifier: BSD-3-Clause
"""What Fortran makes of a parameter: its declaration there, and how the glue hands it to C.

Most follows from the C type. SPECIAL lists the kinds of which the C type does not tell enough.
"""
from __future__ import annotations

import re
from dataclasses import dataclass

from ..lengths import length, significant
from ..table import Entry, Function, Parameter, TableError

HANDLES = ("Comm", "Datatype", "Errhandler", "File", "Group", "Info", "Message", "Op", "Request",
           "Session", "Win")
INTEGERS = {"int": "integer", "MPI_Aint": "integer(MPI_ADDRESS_KIND)",
            "MPI_Count": "integer(MPI_COUNT_KIND)", "MPI_Offset": "integer(MPI_OFFSET_KIND)"}

VALUE = "*{}"  # how that of a number is read, which comes by its address
RESULTS = {"double": "double precision", "MPI_Aint": INTEGERS["MPI_Aint"]}  # of functions

# Kinds whose functions are glued by hand (src/fortran): conversions that need several parameters.
CALLBACK = re.compile(r"(MPI_\w+_function(?:_c)?) \*")
BY_HAND = {"attribute", "out_attribute", "integer_attribute", "out_integer_attribute", "strings",
           "main_argc", "new_session"}


@dataclass(frozen=True)
class Special:
    """A kind whose C type does not tell enough. Templates may use {name} and {length}."""
    fortran: str  # type in both modules; empty if the parameter exists in C only
    glue: str  # parameter of the glue
    expression: str  # argument for C
    intent: str = ""
    shape: str = ""
    f08: str = ""  # type in mpi_f08 where it differs
    hidden: bool = False  # a string, whose length comes behind all other arguments


def string(converter: str) -> Special:
    return Special("character(len=*)", "const char* {name}",
                   f"{converter}({{name}}, {{name}}_length)", "in", hidden=True)


def flags(intent: str, converter: str) -> Special:
    const = "const " if intent == "in" else ""
    return Special("logical", f"{const}Fint* {{name}}", f"{converter}({{name}}, {{length}})",
                   intent, "(*)")


def status(intent: str, expression: str, shape: str = "") -> Special:
    const = "const " if intent == "in" else ""
    return Special("status", f"{const}Fint* {{name}}", expression, intent, shape)


def weights(intent: str) -> Special:
    const = "const " if intent == "in" else ""
    return Special("integer", f"{const}Fint* {{name}}", "c_weights({name})", intent, "(*)")


SPECIAL = {
    "memory": Special("choice", "void* {name}", "c_address({name})"),
    "const_memory": Special("choice", "void* {name}", "c_address({name})"),
    "out_pointer": Special("integer(MPI_ADDRESS_KIND)", "void** {name}", "{name}", "out",
                           f08="type(c_ptr)"),
    # Without a pointer in mpif.h and module mpi: there the argument cannot be used (MPI 5.0,
    # section 3.6).
    "detached": Special("choice", "void*", "Unused()", "out", f08="type(c_ptr)"),
    "attribute": Special("integer(MPI_ADDRESS_KIND)", "", "", "in"),
    "out_attribute": Special("integer(MPI_ADDRESS_KIND)", "", "", "out"),
    "state": Special("integer(MPI_ADDRESS_KIND)", "", "", "in"),
    "integer_attribute": Special("integer", "", "", "in"),
    "out_integer_attribute": Special("integer", "", "", "out"),
    "integer_state": Special("integer", "", "", "in"),
    "logical_value": Special("logical", "Fint* {name}", "{name}", "in"),
    "out_logical_value": Special("logical", "Fint* {name}", "{name}", "out"),
    "logical": Special("logical", "const Fint* {name}", "truth(*{name})", "in"),
    "out_logical": Special("logical", "Fint* {name}", "Flag({name})", "out"),
    "logicals": flags("in", "Flags"),
    "out_logicals": flags("out", "OutFlags"),
    "asked_request": Special("type(MPI_Request)", "const Fint* {name}", "Asked({name})", "in"),
    "asked_requests": Special("type(MPI_Request)", "const Fint* {name}", "AllAsked({name}, {length})",
                              "in", "(*)"),
    "cancelled": Special("type(MPI_Request)", "const Fint* {name}", "AddressOf({name})", "in"),
    "started": Special("type(MPI_Request)", "Fint* {name}", "Started({name})", "inout"),
    "all_started": Special("type(MPI_Request)", "Fint* {name}", "AllStarted({name}, {length})",
                           "inout", "(*)"),
    "out_index": Special("integer", "Fint* {name}", "Index({name})", "out"),
    "out_indices": Special("integer", "Fint* {name}", "Indices({name}, {length}, outcount)", "out",
                           "(*)"),
    "inout_length": Special("integer", "Fint* {name}", "Length({name})", "inout"),
    "ranges": Special("integer", "Fint* {name}", "reinterpret_cast<int(*)[3]>({name})", "in",
                      "(3, *)"),
    "weights": weights("in"),
    "out_weights": weights("out"),
    "string": string("String"),
    "root_string": string("String"),
    "info_string": string("Stripped"),
    **dict.fromkeys(("out_string", "string_or_null"), Special(
        "character(len=*)", "char* {name}", "OutString({name}, {name}_length, {capacity})", "out",
        hidden=True)),
    "strings": Special("character(len=*)", "", "", "in", "(*)"),
    "string_lists": Special("character(len=*)", "", "", "in", "({leading}, *)"),
    "status": status("out", "c_status({name})"),
    "statuses": status("out", "c_statuses({name})", "(*)"),
    "in_status": status("in", "c_status({name})"),
    "inout_status": status("inout", "c_status({name})"),
    "main_argc": Special("", "", ""),
    "main_argv": Special("", "", ""),
    "list_argc": Special("", "", "0"),
    "list_argv": Special("", "", "nullptr"),
    "...": Special("", "", ""),
}


def is_buffer(p: Parameter) -> bool:
    """A choice buffer: any type, kind and rank."""
    return p.kind.buffer or (p.kind_name in SPECIAL and SPECIAL[p.kind_name].fortran == "choice")


def callback(p: Parameter, large: bool = False) -> str | None:
    """The name of the abstract interface of a callback."""
    match = CALLBACK.fullmatch(p.declare(large).removesuffix(p.name))
    return match.group(1) if match else None


def exists(function: Function) -> bool:
    """Whether Fortran has the function: not the tool interface, not the conversions of handles, not
    what was removed."""
    return not (function.is_tool or function.converts_handle or "removed" in function)


def by_hand(function: Function) -> bool:
    return any(p.kind_name in BY_HAND or callback(p) for p in function.parameters)


@dataclass(frozen=True)
class Argument:
    """A parameter as Fortran has it."""
    parameter: Parameter
    type: str  # of mpi_f08: a Fortran type, `choice` or `status`
    intent: str
    shape: str
    glue: str  # parameter of the glue
    expression: str  # what C gets
    hidden: bool = False
    f90: str | None = None  # type in module mpi where it differs

    @property
    def name(self) -> str:
        return self.parameter.name

    @property
    def handle(self) -> str | None:
        match = re.fullmatch(r"type\((MPI_\w+)\)", self.type)
        return match.group(1) if match else None


def special(entry: Entry, p: Parameter, kind: Special) -> Argument:
    capacity = p.length if p.length and p.length.startswith("MPI_") else f"room({p.length})"
    values = {"name": p.name, "length": length(entry, p, VALUE), "capacity": capacity,
              "leading": "count"}
    shape = kind.shape.format(**values)
    return Argument(p, kind.f08 or kind.fortran, kind.intent, shape, kind.glue.format(**values),
                    kind.expression.format(**values), kind.hidden,
                    kind.fortran if kind.f08 else None)


def ordinary(entry: Entry, p: Parameter) -> Argument:
    match = re.fullmatch(r"(const )?(\w+) ?(\*?)@(\[\])?", p.kind.declare("@", entry.large))
    if not match:
        raise TableError(f"MPI_{entry.name}: '{p.declare(entry.large)}' has no form in Fortran; "
                         "add its kind to SPECIAL in generator/fortran/kinds.py")
    const, base, pointer, array = match.groups()
    name, is_output = p.name, bool(pointer or array) and not const
    shape = "(*)" if array else ""
    in_and_out = (p.kind_name.startswith("inout_")
                  or p.kind_name in ("request", "requests", "message"))
    intent = "in" if not is_output else "inout" if in_and_out else "out"
    glue = f"{'' if is_output else 'const '}Fint* {name}"
    if base in INTEGERS:
        glue = glue.replace("Fint", base) if base != "int" else glue
        expression = name if pointer or array else f"*{name}"
        return Argument(p, INTEGERS[base], intent, shape, glue, expression)
    converter = {("in", ""): "handle", ("out", ""): "Out", ("inout", ""): "InOut",
                 ("in", "(*)"): "In", ("out", "(*)"): "OutHandles",
                 ("inout", "(*)"): "InOutHandles"}
    extent = f", {significant(entry, p, VALUE)}" if array else ""
    return Argument(p, f"type({base})", intent, shape, glue,
                    f"{converter[intent, shape]}<{base}>({name}{extent})")


def argument(entry: Entry, p: Parameter) -> Argument | None:
    """What Fortran makes of a parameter; None if only C has it."""
    kind = SPECIAL.get(p.kind_name)
    if kind is not None:
        return special(entry, p, kind)
    if p.kind.buffer:
        intent = "in" if p.kind.small.startswith("const") else ""
        return Argument(p, "choice", intent, "", f"void* {p.name}", f"c_address({p.name})")
    if (interface := callback(p, entry.large)) is not None:
        return Argument(p, f"procedure({interface})", "", "", "", "")
    return ordinary(entry, p)


def arguments(entry: Entry) -> list[Argument]:
    return [a for p in entry.parameters if (a := argument(entry, p)).type or a.expression]
