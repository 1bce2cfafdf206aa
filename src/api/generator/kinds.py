# SPDX-License-Identifier: BSD-3-Clause
"""The kinds of parameters: for each its C types, its check, and how the entry point passes it on.

Templates may use {name}, the parameter; {length}, the number of elements of an array; {of}, the
object (communicator, window) whose ranks the function names; {on}, the condition under which the
argument is significant, empty if it always is; {counts}, the array of counts that goes with an
array of datatypes; {nobody}, whether the data of a datatype go to or come from MPI_PROC_NULL.
"""
from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Passing:
    """How an entry point treats an argument, in this order."""
    prepare: str = ""  # statements: checks and conversions
    argument: str = "{name}"  # expression handed to the implementation
    finish: str = ""  # statements after the call


@dataclass(frozen=True)
class Kind:
    small: str  # C declaration in the int form
    large: str  # and in the large-count form
    passed: str  # C++ declaration in calls.h
    passing: Passing = Passing()
    passing_small: Passing | None = None  # where the int form differs
    source: str = ""  # member of ErrorSource: the object whose error handler answers for the call
    buffer: bool = False
    in_place: bool = False  # a buffer that may be MPI_IN_PLACE

    def declare(self, name: str, large: bool) -> str:
        return (self.large if large else self.small).format(name)

    def passing_for(self, large: bool) -> Passing:
        return self.passing_small if self.passing_small and not large else self.passing


def same(c: str, prepare: str = "", **more) -> Kind:
    """A parameter of one C type in all forms, handed on as it is after its check."""
    return Kind(c, c, c, Passing(prepare), **more)


def plain(c_type: str) -> Kind:
    """A C type that the table names itself, such as `const int` or `MPI_T_enum*`."""
    base, stars, brackets = re.fullmatch(r"([\w ]+?) ?(\**)((?:\[\])*)", c_type).groups()
    return same(f"{base} {stars}{{}}{brackets}")


def guarded(check: str) -> str:
    """A check that holds only where the argument is significant."""
    return f"{{on:if}}{check}"


def number(check: str, large: str = "MPI_Count {}") -> Kind:
    """A count: an int that the large form widens."""
    return Kind("int {}", large, large, Passing(guarded(check), "{on:or_zero}{name}{on:end}"))


def array(small: str, large: str, check: str, is_large: str = "false") -> Kind:
    """An array of counts or displacements, seen through a CountArray whatever its C type."""
    def passing(wide: str) -> Passing:
        return Passing(f"const CountArray {{name}}_array{{{{name}}, {wide}}};\n"
                       "{length:if}" + guarded(check), "{name}_array")
    return Kind(small, large, "CountArray {}", passing("true"), passing(is_large))


def handle(c: str, cpp: str, look_up: str, **more) -> Kind:
    """A handle that the entry point turns into a reference (or a pointer, where null is allowed)."""
    return Kind(f"{c} {{}}", f"{c} {{}}", f"{cpp}{{}}",
                Passing(f"{cpp}{{name}}_object = check::{look_up}(self, {{name}}, \"{{name}}\");",
                        "{name}_object"), **more)


def output(c: str, check: str = 'check::output({name}, "{name}");') -> Kind:
    """The address of a result; the implementation writes through it."""
    return same(f"{c} *{{}}", check)


def narrowed(small: str, large: str, start: str) -> Kind:
    """The address of a count: the int form gets MPI_UNDEFINED for what an int cannot hold."""
    check = 'check::output({name}, "{name}");'
    return Kind(f"{small} *{{}}", f"{large} *{{}}", f"{large}* {{}}", Passing(check),
                Passing(f"{check}\n{large} {{name}}_large = {start};", "&{name}_large",
                        "*{name} = narrow({name}_large);"))


def in_out(c: str, look_up: str, **more) -> Kind:
    """The address of a handle that must be valid, such as the one to be freed."""
    return same(f"{c} *{{}}", 'check::output({name}, "{name}");\n'
                f'check::{look_up}(self, *{{name}}, "{{name}}");', **more)


def value_check(what: str) -> str:
    return f'check::{what}({{name}}, "{{name}}");'


def rank_check(what: str) -> str:
    return f'check::{what}({{of}}, {{name}}, "{{name}}");'


NOT_NULL = 'check::array({name}, {length}, "{name}");'
COUNTS = 'check::counts({name}_array, {length}, "{name}");'
DATATYPE = ('const datatype::Type& {name}_object = {on:or_nothing}'
            'check::datatype(self, {name}, "{name}"{nobody});')
OP = ('const datatype::Op& {name}_object = {on:or_any_op}'
      'check::op(self, {name}, "{name}");')
REQUEST = 'check::request(self, {name}, "{name}");'
IN_REQUEST = 'check::request(self, &{name}, "{name}");'
REQUESTS = 'check::requests(self, {name}, {length}, "{name}");'

KINDS = {
    # Buffers. Null and MPI_IN_PLACE are looked at together with count and datatype.
    "send_buffer": same("const void *{}", buffer=True),
    "recv_buffer": same("void *{}", buffer=True),
    "sendbuf": same("const void *{}", buffer=True, in_place=True),
    "recvbuf": same("void *{}", buffer=True, in_place=True),
    "memory": same("void *{}"),
    "const_memory": same("const void *{}"),
    "out_pointer": same("void *{}", value_check("output")),
    "detached": same("void *{}", value_check("output")),  # address of a pointer to the buffer
    "attribute": same("void *{}"),
    "out_attribute": same("void *{}", value_check("output")),
    "integer_attribute": same("void *{}"),  # those of MPI 1: default integers in Fortran
    "out_integer_attribute": same("void *{}", value_check("output")),
    "integer_state": same("void *{}"),
    "logical_value": same("void *{}"),  # a LOGICAL of whatever size
    "out_logical_value": same("void *{}"),
    "state": same("void *{}"),

    # Counts and sizes.
    "count": number('check::count({name}, "{name}");'),
    "wide_count": same("MPI_Count {}", value_check("count")),  # in a function that has no large form
    "bytes": Kind("int {}", "MPI_Count {}", "MPI_Count {}", Passing(value_check("not_negative"))),
    "stride": Kind("int {}", "MPI_Count {}", "MPI_Count {}"),
    "aint_count": Kind("MPI_Aint {}", "MPI_Count {}", "MPI_Count {}"),
    "aint_bytes": Kind("MPI_Aint {}", "MPI_Count {}", "MPI_Count {}",
                       Passing(value_check("not_negative"))),
    "memory_size": same("MPI_Aint {}", value_check("memory_size")),
    "disp_unit": Kind("int {}", "MPI_Aint {}", "MPI_Aint {}", Passing(value_check("disp_unit"))),
    "target_disp": same("MPI_Aint {}"),
    "offset": same("MPI_Offset {}"),
    "out_count": narrowed("int", "MPI_Count", "0"),
    "inout_count": narrowed("int", "MPI_Count", "*{name}"),
    "out_disp_unit": narrowed("int", "MPI_Aint", "0"),
    "out_aint_count": Kind("MPI_Aint *{}", "MPI_Count *{}", "MPI_Count *{}",
                           Passing(value_check("output"))),
    "inout_aint_count": Kind("MPI_Aint *{}", "MPI_Count *{}", "MPI_Count *{}",
                             Passing(value_check("output"))),
    "out_aint": output("MPI_Aint"),
    "out_offset": output("MPI_Offset"),
    "counts": array("const int {}[]", "const MPI_Count {}[]", COUNTS),
    "displs": array("const int {}[]", "const MPI_Aint {}[]", NOT_NULL),
    "element_displs": array("const int {}[]", "const MPI_Count {}[]", NOT_NULL),
    "byte_displs": array("const MPI_Aint {}[]", "const MPI_Count {}[]", NOT_NULL, "true"),
    "aints": same("const MPI_Aint {}[]", "{length:if}" + NOT_NULL),

    # Ranks and tags.
    "dest": same("int {}", rank_check("dest")),
    "source": same("int {}", rank_check("source")),
    "rank": same("int {}", rank_check("rank")),
    "target_rank": same("int {}", rank_check("dest")),
    "root": same("int {}"),  # the entry point works out the sides of a rooted call itself
    "tag": same("int {}", value_check("tag")),
    "any_tag": same("int {}", value_check("any_tag")),

    # Plain numbers.
    "int": same("int {}"),
    "...": same("..."),
    "logical": same("int {}"),
    "length": same("int {}", value_check("not_negative")),
    "list_length": same("int {}", value_check("count")),
    "keyval": same("int {}"),
    "errorcode": same("int {}"),
    "errorclass": same("int {}"),
    "out_int": output("int"),
    "out_logical": output("int"),
    "out_index": output("int"),  # of an array: counts from 1 in Fortran
    "inout_int": output("int"),
    "inout_keyval": output("int"),
    "inout_length": output("int"),  # of a string, with the terminating null in C only
    "ints": same("const int {}[]", "{length:if}" + NOT_NULL),
    "logicals": same("const int {}[]", "{length:if}" + NOT_NULL),
    "out_ints": same("int {}[]", "{length:if}" + NOT_NULL),
    "out_indices": same("int {}[]", "{length:if}" + NOT_NULL),
    "inout_ints": same("int {}[]", "{length:if}" + NOT_NULL),
    "out_logicals": same("int {}[]", "{length:if}" + NOT_NULL),
    "ranges": same("int {}[][3]", NOT_NULL),
    "weights": same("const int *{}"),  # MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY are addresses
    "out_weights": same("int *{}"),

    # Strings.
    "string": same("const char *{}", value_check("string")),
    "info_string": same("const char *{}", value_check("string")),  # Fortran: without leading blanks
    "root_string": same("const char *{}"),  # significant at the root alone, which looks at it
    "out_string": output("char"),
    # An out_string; null where only the length is asked for.
    "string_or_null": same("char *{}", 'check::string_or_null({name}, *{length}, "{name}");'),
    "strings": same("char *{}[]"),
    "string_lists": same("char **{}[]"),

    # The arguments of main, which only C has.
    "main_argc": same("int *{}"),
    "main_argv": same("char ***{}"),
    "list_argc": same("int {}"),
    "list_argv": same("char *{}[]"),

    # Handles.
    "comm": handle("MPI_Comm", "Communicator& ", "comm", source="comm"),
    "group": handle("MPI_Group", "Group& ", "group"),
    "datatype": Kind("MPI_Datatype {}", "MPI_Datatype {}", "const datatype::Type& {}",
                     Passing(DATATYPE, "{name}_object")),
    "any_datatype": handle("MPI_Datatype", "const datatype::Type& ", "any_datatype"),
    "datatypes": same("const MPI_Datatype {}[]", "{length:if}" + guarded(
        'check::datatypes(self, {name}, {counts}, {length}, "{name}");')),
    "out_datatypes": same("MPI_Datatype {}[]"),
    "any_datatypes": same("const MPI_Datatype {}[]",
                          'check::any_datatypes(self, {name}, {length}, "{name}");'),
    "op": Kind("MPI_Op {}", "MPI_Op {}", "const datatype::Op& {}", Passing(OP, "{name}_object")),
    "info": handle("MPI_Info", "Info* ", "info_or_null"),
    # Significant at the root alone.
    "root_info": Kind("MPI_Info {}", "MPI_Info {}", "Info* {}", Passing(
        'Info* {name}_object = sides.root ? check::info_or_null(self, {name}, "{name}") : nullptr;',
        "{name}_object")),
    "info_object": handle("MPI_Info", "Info& ", "info"),
    "errhandler": handle("MPI_Errhandler", "Errhandler& ", "errhandler"),
    "win": handle("MPI_Win", "Window& ", "win", source="win"),
    "file": handle("MPI_File", "File& ", "file", source="file"),
    # MPI_FILE_NULL stands for files that are not open, as for what answers for MPI_File_open.
    "file_or_null": handle("MPI_File", "File* ", "file_or_null", source="file"),
    "session": handle("MPI_Session", "Session& ", "session", source="session"),
    "new_comm": output("MPI_Comm"),
    "new_group": output("MPI_Group"),
    "new_datatype": output("MPI_Datatype"),
    "new_op": output("MPI_Op"),
    "new_info": output("MPI_Info"),
    "new_errhandler": output("MPI_Errhandler"),
    "new_win": output("MPI_Win"),
    "new_file": output("MPI_File"),
    "new_session": output("MPI_Session"),
    "new_request": output("MPI_Request"),
    "new_message": output("MPI_Message"),
    "inout_comm": in_out("MPI_Comm", "comm", source="comm"),
    "inout_group": in_out("MPI_Group", "group"),
    "inout_datatype": in_out("MPI_Datatype", "any_datatype"),
    "inout_op": in_out("MPI_Op", "op"),
    "inout_info": in_out("MPI_Info", "info"),
    "inout_errhandler": in_out("MPI_Errhandler", "errhandler"),
    "inout_win": in_out("MPI_Win", "win", source="win"),
    "inout_file": in_out("MPI_File", "file", source="file"),
    "inout_session": in_out("MPI_Session", "session", source="session"),

    # Requests, messages, statuses.
    "request": same("MPI_Request *{}", REQUEST, source="request"),
    "in_request": same("MPI_Request {}", IN_REQUEST, source="request"),
    "requests": same("MPI_Request {}[]", REQUESTS),
    "started": same("MPI_Request *{}", REQUEST, source="request"),
    "all_started": same("MPI_Request {}[]", REQUESTS),
    "in_requests": same("const MPI_Request {}[]", REQUESTS),
    # The call tells whether they are complete, and leaves them.
    "asked_request": same("MPI_Request {}", IN_REQUEST, source="request"),
    "asked_requests": same("const MPI_Request {}[]", REQUESTS),
    "cancelled": same("MPI_Request *{}", REQUEST, source="request"),
    "message": same("MPI_Message *{}", 'check::message(self, {name}, "{name}");',
                    source="message"),
    "status": same("MPI_Status *{}"),  # or MPI_STATUS_IGNORE
    "statuses": same("MPI_Status *{}"),  # or MPI_STATUSES_IGNORE
    "in_status": same("const MPI_Status *{}", value_check("output")),
    "inout_status": same("MPI_Status *{}", value_check("output")),

    # Callbacks whose type differs between the forms.
    "user_function": Kind("MPI_User_function *{}", "MPI_User_function_c *{}", "UserFunction {}",
                          Passing(value_check("callback"))),
    "conversion_function": Kind("MPI_Datarep_conversion_function *{}",
                                "MPI_Datarep_conversion_function_c *{}", "ConversionFunction {}"),

    # By the C type. The other callbacks may be null, as MPI_NULL_COPY_FN and its like are.
    **{f"MPI_{of}_errhandler_function*": same(f"MPI_{of}_errhandler_function *{{}}",
                                              value_check("callback"))
       for of in ("Comm", "File", "Session", "Win")},
}
