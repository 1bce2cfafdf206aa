#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The table of docs/figures.md that tells where each number of the presets is from, made from them.

    python3 sim/figures/presets.py            # prints it
    python3 sim/figures/presets.py --write    # and puts it in its place
"""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "figures.md"
BEGIN = "<!-- made by sim/figures/presets.py: do not edit -->\n"
END = "<!-- end of what presets.py has made -->\n"
NAMES = ["infinihost-2004", "infinihost-2006", "ddr-2009", "clan-2002", "berkeley-via-2002", "ndr"]


def rows(preset):
    for source, keys in preset["sources"].items():
        values = ", ".join(f"`{key}` {json.dumps(preset[key])}" for key in keys)
        yield source[0].upper() + source[1:], values
    yield "**Left as predictions**", "; ".join(preset["predictions"])


def table():
    text = "| preset | from | numbers |\n|---|---|---|\n"
    for name in NAMES:
        preset = json.loads((ROOT / "sim" / "presets" / f"{name}.json").read_text())
        for i, (source, values) in enumerate(rows(preset)):
            text += f"| {f'`{name}`' if i == 0 else ''} | {source} | {values} |\n"
    return text


def page_with(page, new):
    """The page with the table in its place."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + new + END + rest.split(END)[1]


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page_with(PAGE.read_text(), table()))
    else:
        print(table(), end="")
