# SPDX-License-Identifier: BSD-3-Clause
"""Reads the table of MPI (api/table/*.table) into plain objects.

A function is one statement; continuation lines are indented:

    Name(parameter, ...) -> type  word ...

    parameter   name: kind[length]/side      `name` alone has the kind of its own name
                +name: kind                  only in the large-count form
    kind        an entry of kinds.py, or a plain C type that is passed on as it is
    [length]    number of elements of an array: a parameter, `comm` (ranks that a collective
                addresses), `group` (ranks of the local group), `dimensions` (of the Cartesian
                topology), `in_neighbors` or `out_neighbors`; of a buffer: of blocks of its count;
                of a string result: a parameter, or the constant MPI_MAX_... that bounds it
    /side       where an argument of a rooted collective is significant: root, leaf or member (both);
                op: unless the operation is MPI_NO_OP; not_first: on rank 0 in place only
    -> type     what a function returns that does not return an error code

    large       there is a form MPI_Name_c with MPI_Count instead of int
    x           there is also MPI_Name_x, with the parameters of MPI_Name_c
    form        the implementation is told which form was called (`bool large`)
    collective  the forms MPI_Iname and MPI_Name_init exist as well
    anytime     may be called before MPI_Init and after MPI_Finalize
    offline     may be called as soon as MPI was initialised, by a session too, and needs no network
    lifecycle   belongs to the beginning and end of MPI, so it is handed the whole process, not only
                the library as others that are `anytime` or `offline`
    lockless    takes the library's lock itself where it needs it
    deprecated  by the standard
    removed     from the standard long ago: exported for programs that still call it, as the other
                libraries with the standard ABI do, and nothing more: not in mpi.h, not in Fortran
"""
from __future__ import annotations

import pathlib
import re
from dataclasses import dataclass, field, replace

from .kinds import KINDS, Kind, plain

FUNCTION_FILES = ("point_to_point", "collective", "one_sided", "datatype", "communicator",
                  "environment", "file", "tool")
WORDS = {"large", "x", "form", "collective", "anytime", "offline",
         "lifecycle", "lockless", "deprecated", "removed"}
SIDES = {"root", "leaf", "member", "op", "not_first"}
LENGTHS = {"comm", "group", "dimensions", "in_neighbors", "out_neighbors"}


class TableError(Exception):
    """What is wrong in the table, with file and line."""


@dataclass(frozen=True)
class Parameter:
    name: str
    kind_name: str  # empty for a plain C type
    kind: Kind
    length: str | None = None  # of an array
    side: str | None = None  # where it is significant
    large_only: bool = False

    def declare(self, large: bool) -> str:
        return self.kind.declare(self.name, large)


@dataclass(frozen=True)
class Entry:
    """One exported function: MPI_<name> and PMPI_<name>."""
    name: str
    large: bool
    function: Function

    @property
    def parameters(self) -> list[Parameter]:
        return [p for p in self.function.parameters if self.large or not p.large_only]

    def prototype(self, prefix: str) -> str:
        declared = ", ".join(p.declare(self.large) for p in self.parameters)
        return f"{self.function.returns} {prefix}_{self.name}({declared or 'void'})"


@dataclass(frozen=True)
class Function:
    name: str
    parameters: tuple[Parameter, ...]
    words: frozenset[str]
    chapter: str
    file: str
    result: str | None = None  # C type of a result that is no error code

    @property
    def returns(self) -> str:
        return self.result or "int"

    @property
    def is_tool(self) -> bool:
        return self.name.startswith("T_")

    @property
    def receiver(self) -> str:
        """The class that the implementation gets: Library where that is all it may use."""
        of_library = self.is_tool or "anytime" in self or "offline" in self
        return "Library" if of_library and "lifecycle" not in self else "Process"

    @property
    def converts_handle(self) -> bool:
        """MPI_Xxx_toint and MPI_Xxx_fromint, which the generator writes itself."""
        return re.fullmatch(r"\w+_(to|from)int", self.name) is not None

    def __contains__(self, word: str) -> bool:
        return word in self.words

    def entries(self) -> list[Entry]:
        found = [Entry(self.name, False, self)]
        if "large" in self:
            found.append(Entry(self.name + "_c", True, self))
        if "x" in self:
            found.append(Entry(self.name + "_x", True, self))
        return found


@dataclass(frozen=True)
class Constant:
    name: str
    value: str
    type: str | None = None  # of a `typed` constant
    alias: bool = False  # value is the name of another constant


@dataclass
class ConstantGroup:
    title: str
    form: str  # define, enum, typed or a handle type
    tag: str | None
    constants: list[Constant] = field(default_factory=list)


@dataclass
class Types:
    integers: list[tuple[str, str]]
    handles: list[tuple[str, str]]
    callbacks: list[str]
    aliases: list[tuple[str, str]]


def sections(path: pathlib.Path):
    """Yields (title, [(line number, statement)]) with comments dropped and continuations joined."""
    title, statements = None, []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("== "):
            if title is not None:
                yield title, statements
            title, statements = line[3:].strip(), []
        elif title is None:
            raise TableError(f"{path.name}:{number}: a line before the first '== title'")
        elif line.startswith(" "):
            if not statements:
                raise TableError(f"{path.name}:{number}: continues nothing: {line.strip()}")
            statements[-1] = (statements[-1][0], statements[-1][1] + " " + line.strip())
        else:
            statements.append((number, line.rstrip()))
    if title is not None:
        yield title, statements


def parse_parameter(text: str, where: str) -> Parameter:
    if text == "...":
        return Parameter("", text, KINDS[text])
    match = re.fullmatch(r"(\+?)(\w+)(?:: (.+?))??((?:\[\w*\])*)(?:/(\w+))?", text)
    if not match:
        raise TableError(f"{where}: not a parameter: '{text}'")
    large_only, name, kind, brackets, side = match.groups()
    if side is not None and side not in SIDES:
        raise TableError(f"{where}: side '{side}' of '{name}' is none of {', '.join(sorted(SIDES))}")
    kind_name = kind or name
    if kind_name in KINDS and brackets != "[]":
        return Parameter(name, kind_name, KINDS[kind_name], brackets[1:-1] or None, side,
                         bool(large_only))
    if kind is None:
        raise TableError(f"{where}: parameter '{name}' has no kind, and there is none of that name")
    return Parameter(name, "", plain(kind + brackets), None, side, bool(large_only))


def parse_function(text: str, where: str, chapter: str, file: str) -> Function:
    match = re.fullmatch(r"(\w+)\((.*?)\)(?: -> (\w+))?((?: \w+)*)", text)
    if not match:
        raise TableError(f"{where}: not a function: '{text}'")
    name, parameters, result, words = match.groups()
    words = words.split()
    unknown = set(words) - WORDS
    if unknown:
        raise TableError(f"{where}: unknown word '{unknown.pop()}' after {name}; "
                         f"known are {', '.join(sorted(WORDS))}")
    parsed = tuple(parse_parameter(p, f"{where}: {name}")
                   for p in (parameters.split(", ") if parameters else []))
    names = {p.name for p in parsed} | LENGTHS
    for p in parsed:
        if p.length is not None and p.length not in names and not p.length.startswith("MPI_MAX_"):
            raise TableError(f"{where}: {name}: length '{p.length}' of '{p.name}' is no parameter")
    return Function(name, parsed, frozenset(words), chapter, file, result)


def forms(function: Function) -> list[Function]:
    """A collective stands for its blocking, nonblocking and persistent forms."""
    if "collective" not in function:
        return [function]
    info = Parameter("info", "info", KINDS["info"])
    request = Parameter("request", "new_request", KINDS["new_request"])
    nonblocking = "I" + function.name[0].lower() + function.name[1:]
    return [function,
            replace(function, name=nonblocking, parameters=function.parameters + (request,)),
            replace(function, name=function.name + "_init",
                    parameters=function.parameters + (info, request))]


def read_functions(folder: pathlib.Path) -> list[Function]:
    found: list[Function] = []
    for file in FUNCTION_FILES:
        path = folder / f"{file}.table"
        for chapter, statements in sections(path):
            for number, text in statements:
                found += forms(parse_function(text, f"{path.name}:{number}", chapter, file))
    names = [e.name for f in found for e in f.entries()]
    twice = {n for n in names if names.count(n) > 1}
    if twice:
        raise TableError(f"functions listed twice: {', '.join(sorted(twice))}")
    return found


def read_constants(folder: pathlib.Path) -> list[ConstantGroup]:
    path = folder / "constants.table"
    groups = []
    for heading, statements in sections(path):
        title, _, form = heading.rpartition(": ")
        form, _, tag = form.partition(" ")
        group = ConstantGroup(title, form, tag or None)
        for number, text in statements:
            match = re.fullmatch(r"(\w+)\s+(= )?(?:\(([^()]+)\))?([-\w]+)", text)
            if not match:
                raise TableError(f"{path.name}:{number}: not a constant: '{text}'")
            name, alias, type_, value = match.groups()
            group.constants.append(Constant(name, value, type_, bool(alias)))
        groups.append(group)
    return groups


def read_mpich(folder: pathlib.Path) -> dict[str, dict[str, str]]:
    """The values of the constants in MPICH's ABI, by section."""
    return {title: dict(text.split() for _, text in statements)
            for title, statements in sections(folder / "mpich.table")}


def read_types(folder: pathlib.Path) -> Types:
    found = {title: [text for _, text in statements]
             for title, statements in sections(folder / "types.table")}
    pairs = {title: [tuple(line.split()) for line in found[title]]
             for title in ("Integers", "Handles", "Second names")}
    return Types(pairs["Integers"], pairs["Handles"], found["Callbacks"], pairs["Second names"])
