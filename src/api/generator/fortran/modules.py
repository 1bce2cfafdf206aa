# SPDX-License-Identifier: BSD-3-Clause
"""Writes the interfaces of the modules mpi and mpi_f08, one file a table and module."""
from __future__ import annotations

import re
from dataclasses import replace

from ..table import ConstantGroup, Entry, Function, Types
from . import constants, kinds
from .glue import has_error
from .kinds import Argument

OPENING = """\
! SPDX-License-Identifier: BSD-3-Clause
! Generated from the table in src/api/table: do not edit.
"""


DEPRECATED_CALLBACKS = {"MPI_Copy_function", "MPI_Delete_function"}  # not in mpi_f08


def continued(text: str, indent: str, width: int = 100) -> str:
    """Breaks a statement after commas."""
    lines = [indent]
    for word in re.split(r"(?<=,) ", text):
        if lines[-1].strip() and len(lines[-1]) + len(word) + 1 > width - 2:
            lines.append(indent + "    ")
        lines[-1] += ("" if lines[-1].endswith(" ") or not lines[-1] else " ") + word
    return " &\n".join(lines) + "\n"


def declared_type(a: Argument, f08: bool) -> str:
    if a.type == "status":
        return "type(MPI_Status)" if f08 else "integer"
    if f08:
        return a.type
    if a.f90 is not None:
        return a.f90
    if a.handle:
        return "integer"
    return a.type


def shape_of(a: Argument, f08: bool) -> str:
    if a.type == "status" and not f08:
        return "(MPI_STATUS_SIZE, *)" if a.shape else "(MPI_STATUS_SIZE)"
    return a.shape


def is_asynchronous(function: Function) -> bool:
    """Buffers that MPI may still use after the call (MPI 5.0, section 19.1.16)."""
    return (function.file == "one_sided"
            or any(p.kind_name == "new_request" for p in function.parameters)
            or re.search(r"_(begin|end|attach|attach_buffer)$", function.name) is not None)


def declarations(entry: Entry, arguments: list[Argument], f08: bool, indent: str) -> str:
    """The declarations of the dummy arguments; those of one type share a line."""
    groups: dict[str, list[str]] = {}
    text = ""
    for a in arguments:
        type_ = declared_type(a, f08)
        intent = f", intent({a.intent})" if a.intent else ""
        if type_ == "choice" and f08:
            later = ", asynchronous" if is_asynchronous(entry.function) else ""
            key = f"type(*), dimension(..){intent}{later}"
        elif type_ == "choice":
            text += f"{indent}!GCC$ ATTRIBUTES NO_ARG_CHECK :: {a.name}\n"
            text += f"{indent}!DIR$ IGNORE_TKR {a.name}\n"
            key = "type(*)"
        elif type_.startswith("procedure"):
            key = type_ if f08 else "external"
        else:
            key = type_ + intent
        groups.setdefault(key, []).append(
            a.name + ("(*)" if type_ == "choice" and not f08 else shape_of(a, f08)))
    if has_error(entry.function):
        groups.setdefault("integer, optional, intent(out)" if f08 else "integer, intent(out)",
                          []).append("ierror")
    for key, names in groups.items():
        text += continued(f"{key} :: {', '.join(names)}", indent)
    return text


def interface_body(entry: Entry, name: str, arguments: list[Argument], f08: bool = False,
                   bind: bool = False) -> str:
    names = [a.name for a in arguments] + (["ierror"] if has_error(entry.function) else [])
    result = entry.function.result
    word = "function" if result else "subroutine"
    text = continued(f"{word} {name}({', '.join(names)})" + (" bind(C)" if bind else ""), "    ")
    text += "      import\n"
    if result:
        text += f"      {kinds.RESULTS[result]} :: {name}\n"
    return text + declarations(entry, arguments, f08, "      ") + f"    end {word}\n"


def fortran_arguments(entry: Entry) -> list[Argument]:
    return [a for a in kinds.arguments(entry) if a.type]


def profiled(name: str, bind: bool) -> str:
    label = f', bind(C, name="p{name.lower()}")' if bind else ""
    return continued(f"procedure({name}){label} :: P{name}", "  ")


# --- Module mpi.

def with_pointer(arguments: list[Argument]) -> list[Argument]:
    """TYPE(C_PTR) for a result that is an address (MPI 5.0, section 9.2)."""
    return [replace(a, f90=None) if a.type == "type(c_ptr)" else a for a in arguments]


def mpi_interfaces(entry: Entry) -> str:
    name, arguments = f"MPI_{entry.name}", fortran_arguments(entry)
    pointer = any(a.parameter.kind_name == "out_pointer" for a in arguments)
    text = f"  interface {name if pointer else ''}".rstrip() + "\n"
    text += interface_body(entry, name, arguments)
    if pointer:
        text += interface_body(entry, f"{name}_cptr", with_pointer(arguments))
    text += "  end interface\n"
    if not pointer:
        return text + profiled(name, False)
    other = f"P{name}"
    text += f"  interface {other}\n" + interface_body(entry, other, arguments)
    return (text + interface_body(entry, f"{other}_cptr", with_pointer(arguments))
            + "  end interface\n")


# --- Module mpi_f08.

def specific(entry: Entry) -> tuple[str, bool]:
    """The name of a procedure in mpi_f08, and whether it gets descriptors."""
    descriptors = any(declared_type(a, True) == "choice" for a in fortran_arguments(entry))
    return f"MPI_{entry.name}_f08{'ts' if descriptors else ''}", descriptors


def rank_and_type(entry: Entry) -> list[tuple[str, str]]:
    """What tells two procedures of one generic name apart. All long integers are of one kind."""
    return [(re.sub(r"MPI_(ADDRESS|COUNT|OFFSET)_KIND", "8", a.type), a.shape)
            for a in fortran_arguments(entry)]


def is_distinct(small: Entry, large: Entry) -> bool:
    """Whether a generic name can stand for both (MPI 5.0, section 19.2). Procedures as arguments do
    not tell them apart."""
    first, second = ([t for t in rank_and_type(e) if not t[0].startswith("procedure")]
                     for e in (small, large))
    return first != second


def f08_interfaces(function: Function) -> str:
    generics: dict[str, list[Entry]] = {}
    entries = function.entries()
    for entry in entries:
        overloads = entry.name.endswith("_c") and is_distinct(entries[0], entry)
        if entry.name.endswith("_c") and not overloads and not kinds.by_hand(function):
            continue  # the form with int is the same procedure
        generics.setdefault(entries[0].name if overloads else entry.name, []).append(entry)
    text = ""
    for generic, members in generics.items():
        text += f"  interface MPI_{generic}\n"
        for entry in members:
            name, bind = specific(entry)
            text += interface_body(entry, name, fortran_arguments(entry), True, bind)
        text += "  end interface\n"
        for entry in members:
            text += profiled(*specific(entry))
        names = ", ".join(f"P{specific(e)[0]}" for e in members)
        text += f"  interface PMPI_{generic}\n" + continued(f"procedure {names}", "    ")
        text += "  end interface\n"
    return text


# --- The types of mpi_f08 and what exists in Fortran only.

def handle_types() -> str:
    text = """  type, bind(C) :: MPI_Status
    integer :: MPI_SOURCE, MPI_TAG, MPI_ERROR
    integer, private :: MPI_INTERNAL(5)
  end type
"""
    for h in kinds.HANDLES:
        text += f"  type, bind(C) :: MPI_{h}\n    integer :: MPI_VAL\n  end type\n"
    for operator, word in (("==", "is"), ("/=", "is_not")):
        names = ", ".join(f"{h.lower()}_{word}" for h in kinds.HANDLES)
        text += f"  interface operator({operator})\n"
        text += continued(f"module procedure {names}", "    ") + "  end interface\n"
    for h in kinds.HANDLES:
        text += f"  private :: {h.lower()}_is, {h.lower()}_is_not\n"
    text += "\ncontains\n"
    for operator, word in (("==", "is"), ("/=", "is_not")):
        for h in kinds.HANDLES:
            name = f"{h.lower()}_{word}"
            text += f"""
  elemental logical function {name}(a, b)
    type(MPI_{h}), intent(in) :: a, b
    {name} = a%MPI_VAL {operator} b%MPI_VAL
  end function
"""
    return text + "\n"


def abstract_interface(prototype: str) -> str:
    """A callback's, from its C declarator. A C function that returns an error has `ierror` here."""
    result, name, rest = re.fullmatch(r"(\w+) (\w+)\((.*)\)", prototype).groups()
    names, declarations = [], []
    for parameter in rest.split(", "):
        if parameter == "...":
            continue
        base, pointer, dummy = re.fullmatch(r"(\w+) (\*?)(\w+)", parameter).groups()
        names.append(dummy)
        if base == "void" and re.search("state|attribute_val", dummy):
            type_ = "integer(MPI_ADDRESS_KIND)"
        elif base == "void":
            type_ = "type(c_ptr), value"
        elif dummy in ("flag", "complete"):
            type_ = "logical"
        else:
            type_ = kinds.INTEGERS.get(base, f"type({base})")
        declarations.append(f"      {type_} :: {dummy}\n")
    if result == "int":
        names.append("ierror")
        declarations.append("      integer :: ierror\n")
    return (continued(f"subroutine {name}({', '.join(names)})", "    ") + "      import\n"
            + "".join(declarations) + "    end subroutine\n")


def callback_interfaces(types: Types) -> str:
    shown = [c for c in types.callbacks if not re.match(r"\w+ MPI_T_", c)
             and re.match(r"\w+ (\w+)", c).group(1) not in DEPRECATED_CALLBACKS]
    return "  abstract interface\n" + "".join(map(abstract_interface, shown)) + "  end interface\n"


SIZEOF = """  interface MPI_Sizeof
    subroutine MPI_Sizeof_f08ts(x, size, ierror) bind(C)
      type(*), dimension(..), intent(in) :: x
      integer, intent(out) :: size
      integer, optional, intent(out) :: ierror
    end subroutine
  end interface
  procedure(MPI_Sizeof_f08ts), bind(C, name="pmpi_sizeof_f08ts") :: PMPI_Sizeof_f08ts
  interface PMPI_Sizeof
    procedure PMPI_Sizeof_f08ts
  end interface
"""


def extras(f08: bool) -> str:
    """Procedures that C does not have, and whether the bindings support subarrays."""
    text = SIZEOF
    for name in ("MPI_SUBARRAYS_SUPPORTED", "MPI_ASYNC_PROTECTS_NONBLOCKING"):
        text += f"  logical, parameter :: {name} = .{str(f08).lower()}.\n"
    suffix, optional = ("_f08", ", optional") if f08 else ("", "")
    for name, first, second in (("MPI_Status_f2f08", "f_status", "f08_status"),
                                ("MPI_Status_f082f", "f08_status", "f_status")):
        type_ = {"f_status": "integer", "f08_status": "type(MPI_Status)"}
        shape = {"f_status": "(MPI_STATUS_SIZE)", "f08_status": ""}
        text += f"""  interface {name if f08 else ''}
    subroutine {name}{suffix}({first}, {second}, ierror)
      import
      {type_[first]}, intent(in) :: {first}{shape[first]}
      {type_[second]}, intent(out) :: {second}{shape[second]}
      integer{optional}, intent(out) :: ierror
    end subroutine
  end interface
""" + profiled(name + suffix, False)
        if f08:
            text += f"  interface P{name}\n    procedure P{name}_f08\n  end interface\n"
    if f08:
        return text + """  interface MPI_F_sync_reg
    subroutine MPI_F_sync_reg_f08ts(buf) bind(C)
      type(*), dimension(..), asynchronous :: buf
    end subroutine
  end interface
  procedure(MPI_F_sync_reg_f08ts), bind(C, name="pmpi_f_sync_reg_f08ts") :: PMPI_F_sync_reg_f08ts
  interface PMPI_F_sync_reg
    procedure PMPI_F_sync_reg_f08ts
  end interface
"""
    return text + """  interface
    subroutine MPI_F_sync_reg(buf)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      !DIR$ IGNORE_TKR buf
      type(*) :: buf(*)
    end subroutine
  end interface
  procedure(MPI_F_sync_reg) :: PMPI_F_sync_reg
"""


# --- Whole files.

C_PTR = "iso_c_binding, only: c_ptr"


def module(name: str, uses: list[str], body: str) -> str:
    hidden = "  private :: c_ptr\n" if C_PTR in uses else ""
    return (OPENING + f"module {name}\n" + "".join(f"  use {u}\n" for u in uses)
            + f"  implicit none\n  public\n{hidden}\n" + body + f"end module {name}\n")


def numbers(groups: list[ConstantGroup]) -> str:
    """Constants that are the same in both modules."""
    text = ""
    for v in constants.values(groups):
        if not v.handle:
            kind, suffix = (f"({v.kind})", f"_{v.kind}") if v.kind else ("", "")
            text += f"  integer{kind}, parameter :: {v.name} = {v.value}{suffix}\n"
    for name, type_, shape, f08 in constants.SENTINELS:
        if f08 is None:
            text += sentinel(name, type_.lower(), shape)
    return text


def sentinel(name: str, type_: str, shape: str) -> str:
    return f"  {type_} :: {name}{shape}\n  common /{constants.common_block(name)}/ {name}\n"


def module_mpi_constants(groups: list[ConstantGroup]) -> str:
    text = "".join(f"  integer, parameter :: {v.name} = {v.value}\n"
                   for v in constants.values(groups) if v.handle)
    for name, type_, shape, f08 in constants.SENTINELS:
        if f08 is not None:
            text += sentinel(name, type_.lower(), shape)
    text += "".join(f"  external :: {name}\n" for name, _ in constants.callbacks(groups)
                    if not name.endswith("_C"))
    return text


def f08_constants(groups: list[ConstantGroup]) -> str:
    text = "".join(f"  type({v.handle}), parameter :: {v.name} = {v.handle}({v.value})\n"
                   for v in constants.values(groups) if v.handle)
    for name, _, _, f08 in constants.SENTINELS:
        if f08 is not None:
            text += sentinel(name, *f08)
    return text + "".join(f"  procedure({interface}) :: {name}\n"
                          for name, interface in constants.callbacks(groups)
                          if interface not in DEPRECATED_CALLBACKS)


def modules(types: Types, groups: list[ConstantGroup], table: list[Function]) -> dict[str, str]:
    """The text of each file, by its name. Interfaces are split by table."""
    constants.check(groups)
    bodies: dict[str, str] = {}
    for function in filter(kinds.exists, table):
        entries = [e for e in function.entries() if not e.name.endswith("_c")]
        bodies.setdefault(f"mpi_f90_{function.file}", "")
        bodies[f"mpi_f90_{function.file}"] += "".join(map(mpi_interfaces, entries))
        bodies.setdefault(f"mpi_f08_{function.file}", "")
        if "deprecated" not in function or function.name.startswith("Info_"):
            bodies[f"mpi_f08_{function.file}"] += f08_interfaces(function)
    files = {
        "mpi_numbers": module("mpi_numbers", [], numbers(groups)),
        "mpi_constants": module("mpi_constants", ["mpi_numbers"], module_mpi_constants(groups)),
        "mpi_extras": module("mpi_extras", ["mpi_f08_types"], extras(False)),
        "mpi_f08_types": module("mpi_f08_types", ["mpi_numbers"], handle_types()),
        "mpi_f08_callbacks": module("mpi_f08_callbacks", [C_PTR, "mpi_f08_types"],
                                    callback_interfaces(types)),
        "mpi_f08_constants": module("mpi_f08_constants", ["mpi_f08_callbacks"],
                                    f08_constants(groups)),
        "mpi_f08_extras": module("mpi_f08_extras", ["mpi_f08_types"], extras(True)),
    }
    for name, body in bodies.items():
        uses = "mpi_f08_callbacks" if name.startswith("mpi_f08_") else "mpi_numbers"
        files[name] = module(name, [C_PTR, uses], body)
    for name in ("mpi", "mpi_f08"):
        parts = [f for f in files if re.fullmatch(f"{name}_(?!f08|numbers|types|callbacks)\\w+", f)]
        files[name] = module(name, parts, "")
    return files
