#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes mpif.h in MPICH's ABI, for programs that run on libmpifort.so.12: mpif.py FILE.

With --compare OTHER: says in which constants the mpif.h of MPICH, or of another library with its
ABI, differs, and exits with 1 if there are any.
"""
import argparse
import pathlib
import re
import sys

api = pathlib.Path(__file__).parents[3] / "src/api"
sys.path.insert(0, str(api))
from generator import table  # noqa: E402
from generator.fortran import mpif  # noqa: E402

# What the table of MPICH's constants does not have: it is written in src/mpich, or in Fortran only.
OTHERS = {"MPI_STATUS_SIZE": 5, "MPI_SOURCE": 3, "MPI_TAG": 4, "MPI_ERROR": 5, "MPI_PROC_NULL": -1,
          "MPI_ANY_SOURCE": -2, "MPI_ROOT": -3, "MPI_ANY_TAG": -1, "MPI_FILE_NULL": 0,
          "MPI_BSEND_OVERHEAD": 96, "MPI_DISPLACEMENT_CURRENT": -54278278}
BLOCKS = {"MPIPRIV1": "MPI_BOTTOM, MPI_IN_PLACE, MPI_STATUS_IGNORE",
          "MPIPRIV2": "MPI_STATUSES_IGNORE, MPI_ERRCODES_IGNORE",
          "MPIPRIVC": "MPI_ARGVS_NULL, MPI_ARGV_NULL", "MPIFCMB5": "MPI_UNWEIGHTED",
          "MPIFCMB9": "MPI_WEIGHTS_EMPTY", "MPIFCMBA": "MPI_BUFFER_AUTOMATIC"}
PARAMETER = re.compile(r"PARAMETER ?\((MPI_\w+)=(-?\d+)\)")
# Not the same in all libraries of this ABI.
VERSIONS = {"MPI_VERSION", "MPI_SUBVERSION", "MPI_BSEND_OVERHEAD"}


def values() -> dict[str, int]:
    found = dict(OTHERS)
    for title, constants in table.read_mpich(api / "table").items():
        for name, text in constants.items():
            value = int(text, 0)
            value -= 1 << 32 if value >= 1 << 31 else 0
            if name.startswith("MPI_MAX_"):
                value -= 1  # no terminating null
            if title == "Predefined attributes" and name != "MPI_KEYVAL_INVALID":
                value += 1  # another attribute: the value itself
            found[name] = value
    return found


def header() -> str:
    constants = table.read_constants(api / "table")
    theirs = values()
    aliases = {c.name: c.value for group in constants for c in group.constants if c.alias}

    def parameter(match: re.Match) -> str:
        name = match.group(1)
        value = theirs.get(name, theirs.get(aliases.get(name, ""), match.group(2)))
        return f"PARAMETER ({name}={value})"
    text = PARAMETER.sub(parameter, mpif.mpif(constants, table.read_functions(api / "table")))
    text = re.sub(r" +(COMMON|SAVE) .*\n", "", text).replace("MPI_UNWEIGHTED(1)", "MPI_UNWEIGHTED")
    text = text.replace("MPI_WEIGHTS_EMPTY(1)", "MPI_WEIGHTS_EMPTY")
    for block, names in BLOCKS.items():
        text += mpif.line(f"COMMON /{block}/ {names}") + mpif.line(f"SAVE /{block}/")
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--compare", type=pathlib.Path, default=None)
    arguments = parser.parse_args()
    text = header()
    arguments.file.parent.mkdir(parents=True, exist_ok=True)
    arguments.file.write_text(text)
    if arguments.compare is None:
        return 0
    ours = dict(PARAMETER.findall(text))
    theirs = dict(PARAMETER.findall(arguments.compare.read_text()))
    common = (ours.keys() & theirs.keys()) - VERSIONS
    different = [f"{name} is {ours[name]} here, {theirs[name]} there" for name in sorted(common)
                 if ours[name] != theirs[name]]
    print("\n".join(different) or f"{len(common)} constants are the same")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
