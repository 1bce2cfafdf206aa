#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Refuses copies of unknown length that go past base/copy.h, where the simulator charges them.

Usage: check_copies.py ROOT, the folder with src. Copies of what has a fixed size (`sizeof`, a number,
`.size()`, a named constant of headers) are free to be made. Prints one line per offence and exits with 1 if there is any.
"""
import pathlib
import re
import sys

CHARGED = ["engine", "net/rdma", "net/shm", "datatype", "coll", "rma", "mpi", "gravel"]
CHARGES_ITSELF = {"src/datatype/cursor.cc", "src/net/shm/bulk/stores.h"}  # by touched()
COPY = re.compile(r"\bmem(?:cpy|move)\(([^;]*)\);")
FIXED = re.compile(r",\s*(?:sizeof\b[^,+*]*|\d+|[\w.]+\.size\(\)|model::repeated_header)\s*$")


def offences(root: pathlib.Path):
    for layer in CHARGED:
        for path in sorted((root / "src" / layer).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix not in {".h", ".cc"} or name in CHARGES_ITSELF:
                continue
            text = path.read_text()
            for match in COPY.finditer(text):
                if not FIXED.search(match.group(1)):
                    line = text.count("\n", 0, match.start()) + 1
                    yield f"{name}:{line}: a copy that the simulator cannot charge; use base::copy()"


if __name__ == "__main__":
    found = list(offences(pathlib.Path(sys.argv[1])))
    print("\n".join(found), end="\n" if found else "")
    sys.exit(1 if found else 0)
