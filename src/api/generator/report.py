# SPDX-License-Identifier: BSD-3-Clause
"""Writes api.json, from which `macadam info --api` tells what is implemented."""
from __future__ import annotations

import json

from .table import Function


def report(table: list[Function]) -> str:
    """One row for each function of MPI: name, chapter of the table, written, deprecated."""
    rows = [{"name": f"MPI_{entry.name}", "chapter": function.chapter,
             "written": "written" in function, "deprecated": "deprecated" in function}
            for function in table if "removed" not in function for entry in function.entries()]
    return json.dumps({"functions": rows}, indent=1) + "\n"
