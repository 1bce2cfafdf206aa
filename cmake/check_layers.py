#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Refuses an include against the order of the layers (docs/architecture.md).

Usage: check_layers.py ROOT, the folder with src, sim, tests, bench and examples. Prints one line
per offence and exits with 1 if there is any.
"""
import pathlib
import re
import sys

# What each layer may include besides itself: layers, and single headers of others.
JOB = {"boot/job.h", "boot/processes.h"}  # the others of a job, whoever started it
MAY_USE = {
    "base": set(),
    "mem": {"base"},
    "datatype": {"base"},
    "engine": {"base", "mem", "datatype"},
    "net": {"base", "mem", "datatype", "engine"} | JOB,
    "coll": {"base", "mem", "datatype", "engine"},
    "rma": {"base", "mem", "datatype", "engine"},
    "gravel": {"base", "mem", "engine"} | JOB,
    "io": {"base", "mem", "datatype", "engine", "coll"},
    "boot": {"base"},
    "mpi": {"base", "mem", "datatype", "engine", "net", "coll", "rma", "io", "boot"},
    "api": {"base", "mem", "datatype", "engine", "net", "coll", "rma", "io", "boot", "mpi"},
    # On mpi.h and single headers, so that it works over any library with the standard ABI.
    "fortran": {"base/scratch.h", "base/slots.h", "api/lengths.h"},
    "mpich": {"base/scratch.h", "base/slots.h", "api/lengths.h", "mpi/status.h", "fortran/arguments.h",
              "fortran/by_hand.h", "fortran/callbacks.h"},
    "libgravel": {"base", "mem", "engine", "net", "gravel", "boot"},
    "tools": {"base", "boot", "coll", "net"},
    # Beside src, where nothing may include them.
    "sim": {"base", "mem", "datatype", "engine", "net", "coll", "rma", "gravel", "io", "boot", "mpi", "api",
            "tools"},
    "bench": set(),     # programs on mpi.h alone, which any MPI can run
    "examples": set(),  # ... too
}
MAY_USE["tests"] = set(MAY_USE) - {"bench", "examples"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def layers(root: pathlib.Path):
    """The folder of each layer that there is."""
    for layer in MAY_USE:
        for folder in (root / "src" / layer, root / layer):
            if folder.is_dir():
                yield layer, folder


def offences(root: pathlib.Path):
    for folder in sorted((root / "src").glob("*/")):
        if folder.is_dir() and folder.name not in MAY_USE:
            yield f"src/{folder.name}: no layer of this name is known here; name what it may use"
    for layer, folder in layers(root):
        for path in sorted(folder.rglob("*")):
            if path.suffix not in {".h", ".cc", ".c"}:
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                match = INCLUDE.match(line)
                if not match or "/" not in match.group(1):
                    continue
                target = match.group(1).split("/")[0]
                network = path.relative_to(folder).parts[0] if layer == "net" else ""
                if target == "net" and network and match.group(1).split("/")[1] != network:
                    yield (f"{path.relative_to(root)}:{number}: network '{network}' includes "
                           f"\"{match.group(1)}\"; what networks share is in engine or mem")
                if target in MAY_USE and target != layer and not {target, match.group(1)} & MAY_USE[layer]:
                    allowed = ", ".join(sorted(MAY_USE[layer])) or "nothing"
                    yield (f"{path.relative_to(root)}:{number}: layer '{layer}' includes "
                           f"\"{match.group(1)}\"; it may use: {allowed}")


if __name__ == "__main__":
    found = list(offences(pathlib.Path(sys.argv[1])))
    print("\n".join(found), end="\n" if found else "")
    sys.exit(1 if found else 0)
