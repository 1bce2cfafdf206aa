#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Wrong arguments are refused by gfortran, with the modules; right ones beside them are not. (flang
refuses them too, but converts constants of the wrong kind as an extension, and words it otherwise.)"""
import argparse
import pathlib
import re
import subprocess
import sys

DECLARED = {
    "mpi_f08": """
  type(MPI_Comm) :: comm
  type(MPI_Datatype) :: datatype
  type(MPI_Request) :: request, requests(2)
  type(MPI_Status) :: status, statuses(2)
  type(MPI_Op) :: op
  integer :: f_status(MPI_STATUS_SIZE)
""",
    "mpi": """
  integer :: comm, datatype, request, requests(2), status(MPI_STATUS_SIZE), op
  integer :: statuses(MPI_STATUS_SIZE, 2)
  type(MPI_Status) :: f08_status
""",
}
COMMON = """
  real :: buffer(10)
  integer :: number, ierror, list(2)
  integer(8) :: long
  logical :: flag
  character(len=20) :: string
  double precision :: x
"""

# Calls that are right with both modules (the error code may be left out in mpi_f08 only).
RIGHT = [
    "call MPI_Send(buffer, 10, MPI_REAL, 1, 2, MPI_COMM_WORLD, ierror)",
    "call MPI_Send(x, 1, MPI_DOUBLE_PRECISION, 1, 2, comm, ierror)",
    "call MPI_Recv(buffer(2:9:3), 3, MPI_REAL, MPI_ANY_SOURCE, 2, comm, MPI_STATUS_IGNORE, ierror)",
    "call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)",
    "call MPI_Waitall(2, requests, statuses, ierror)",
    "call MPI_Test(request, flag, status, ierror)",
    "call MPI_Allreduce(MPI_IN_PLACE, buffer, 10, MPI_REAL, MPI_SUM, comm, ierror)",
    "call MPI_Comm_set_name(comm, 'a name', ierror)",
    "x = MPI_Wtime()",
]
RIGHT_OF = {
    "mpi_f08": ["call MPI_Send(buffer, 10_8, MPI_REAL, 1, 2, comm)", "flag = comm == MPI_COMM_WORLD",
                "call MPI_Status_f082f(status, f_status)"],
    "mpi": ["call MPI_Status_f2f08(status, f08_status, ierror)", "flag = comm == MPI_COMM_WORLD"],
}

# Calls that are wrong with both modules, and why.
WRONG = [
    ("call MPI_Send(buffer, 10, MPI_REAL, 1, 2)", "arguments are missing"),
    ("call MPI_Send(buffer, 10, MPI_REAL, 1, 2, comm, ierror, ierror)", "one argument too many"),
    ("call MPI_Send(buffer, 10.0, MPI_REAL, 1, 2, comm, ierror)", "a count that is REAL"),
    ("call MPI_Send(buffer, 10, 'MPI_REAL', 1, 2, comm, ierror)", "a string as datatype"),
    ("call MPI_Send(buffer, 10, MPI_REAL, .true., 2, comm, ierror)", "a logical as rank"),
    ("call MPI_Send(buffer, list, MPI_REAL, 1, 2, comm, ierror)", "an array as count"),
    ("call MPI_Test(request, number, status, ierror)", "an integer as flag"),
    ("call MPI_Comm_rank(comm, 3, ierror)", "a constant as result"),
    ("call MPI_Comm_rank(comm, x, ierror)", "a real as result"),
    ("call MPI_Comm_rank(comm, number, x)", "a real as error code"),
    ("call MPI_Waitall(2, request, statuses, ierror)", "one request instead of a list"),
    ("call MPI_Comm_set_name(comm, 7, ierror)", "an integer as name"),
    ("call MPI_Comm_create_keyval(number, number, list(1), long, ierror)", "integers as callbacks"),
    ("call MPI_Type_get_extent(datatype, number, number, ierror)", "extents that are too short"),
    ("number = MPI_Wtime(1)", "an argument of MPI_Wtime"),
    ("call MPI_Sned(buffer, 10, MPI_REAL, 1, 2, comm, ierror, undeclared)", "undeclared names"),
]
WRONG_OF = {
    "mpi_f08": [
        ("call MPI_Send(buffer, 10, MPI_REAL, 1, 2, 257)", "an integer as communicator"),
        ("call MPI_Send(buffer, 10, MPI_COMM_WORLD, 1, 2, comm)", "a communicator as datatype"),
        ("call MPI_Reduce(buffer, buffer, 1, MPI_REAL, MPI_REAL, 0, comm)", "a datatype as operation"),
        ("call MPI_Recv(buffer, 1, MPI_REAL, 1, 2, comm, f_status)", "an array as status"),
        ("call MPI_Wait(comm, status)", "a communicator as request"),
        ("flag = comm == datatype", "a communicator compared with a datatype"),
        ("call MPI_Op_create(wrong, .true., op)", "a procedure with other arguments"),
        ("call MPI_Alltoallv(buffer, [1_8], [1_8], MPI_REAL, buffer, [1], [1], MPI_REAL, comm)",
         "counts of two kinds"),
        ("comm = MPI_COMM_NULL + 1", "arithmetic with handles"),
        ("status%MPI_INTERNAL = 0", "the private part of a status"),
    ],
    "mpi": [
        ("call MPI_Send(buffer, 10, MPI_REAL, 1, 2, comm)", "no error code"),
        ("call MPI_Send(buffer, 10_8, MPI_REAL, 1, 2, comm, ierror)", "a long count"),
        ("call MPI_Wait(request, number, ierror)", "a scalar as status"),
        ("call MPI_Comm_rank(MPI_COMM_WORLD, rank=number)", "a keyword and no error code"),
    ],
}


def source(module: str, statements: list[str]) -> tuple[str, list[int]]:
    """A subroutine for each statement, and the lines where the statements are."""
    text, lines = f"module statements\n  use {module}\n  implicit none\ncontains\n", []
    for number, statement in enumerate(statements):
        text += f"subroutine s{number}\n{COMMON}{DECLARED[module]}"
        lines.append(text.count("\n") + 1)
        text += (f"  {statement}\ncontains\n  subroutine wrong(a)\n    real :: a\n  end subroutine\n"
                 "end subroutine\n")
    return text + "end module\n", lines


def messages(mpifort: pathlib.Path, path: pathlib.Path, text: str) -> dict[int, str]:
    """The first error that the compiler finds in each line."""
    path.write_text(text)
    result = subprocess.run([mpifort, "-w", "-fmax-errors=0", "-fsyntax-only", path],
                            capture_output=True, text=True, timeout=100)
    found: dict[int, str] = {}
    for line, message in re.findall(r":(\d+):\d+:\n[\s\S]*?\n((?:Fatal )?Error: .*)", result.stderr):
        found.setdefault(int(line), message)
    if (result.returncode != 0) != bool(found):
        sys.exit(f"the compiler ended with {result.returncode}; its messages were not understood:\n"
                 f"{result.stderr}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpifort", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    failures, checked = [], 0
    for module in ("mpi_f08", "mpi"):
        right, wrong = RIGHT + RIGHT_OF[module], WRONG + WRONG_OF[module]
        checked += len(right) + len(wrong)
        path = arguments.work / f"refused_{module}.f90"
        text, lines = source(module, right)
        errors = messages(arguments.mpifort, path, text)
        failures += [f"{module}: refused, but right: {statement}\n  {errors[line]}"
                     for statement, line in zip(right, lines) if line in errors]
        failures += [f"{module}: line {line} of {path}: {text}"
                     for line, text in errors.items() if line not in lines]
        text, lines = source(module, [statement for statement, _ in wrong])
        errors = messages(arguments.mpifort, path, text)
        failures += [f"{module}: accepted, but wrong ({why}): {statement}"
                     for (statement, why), line in zip(wrong, lines) if line not in errors]
    print("\n".join(failures) or f"{checked} statements: the modules refuse what is wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
