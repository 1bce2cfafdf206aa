# SPDX-License-Identifier: BSD-3-Clause
"""Writes api.json, from which `macadam info --api` lists the functions of MPI."""
from __future__ import annotations

import json

from .table import Function


def report(table: list[Function]) -> str:
    """One row for each function of MPI: name, chapter of the table, deprecated."""
    rows = [{"name": f"MPI_{entry.name}", "chapter": function.chapter,
             "deprecated": "deprecated" in function}
            for function in table if "removed" not in function for entry in function.entries()]
    return json.dumps({"functions": rows}, indent=1) + "\n"
