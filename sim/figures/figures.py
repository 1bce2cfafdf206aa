#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Repeats figures of the papers on the simulator: runs, data as JSON, plots as PNG.

    python3 sim/figures/figures.py all --build build/release

Each figure is measured by a function of measure.py and drawn by one of plots.py from nothing but
the JSON, so that `--redraw` draws without running. The plotting library comes from PyPI into a
virtual environment in the build tree."""
import argparse
import os
import pathlib
import subprocess
import sys

import measure
from runs import Programs, RunFailed, save

HERE = pathlib.Path(__file__).resolve().parent
DOCS = HERE.parent.parent / "docs" / "figures"
PLOTTING = "matplotlib==3.9.4"
DRAWN = ["programs"]  # whose data bench/nas/run.py and bench/hpl/run.py write


def python_with_plots(build):
    """The Python of an environment that has the plotting library; made if it is not there."""
    folder = pathlib.Path(build) / "figures-venv"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                        PLOTTING], check=True)
        (folder / "ready").touch()
    return python


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=[*measure.FIGURES, *DRAWN, "all"])
    parser.add_argument("--build", default="build/release", help="build tree (%(default)s)")
    parser.add_argument("--out", type=pathlib.Path, default=DOCS, help="where files go")
    parser.add_argument("--largest", type=int, default=1 << 20, metavar="RANKS",
                        help="leave out runs of more ranks")
    parser.add_argument("--seconds", type=int, default=3600,
                        help="allowed for one run (%(default)s)")
    parser.add_argument("--redraw", action="store_true", help="draw from the data that is there")
    parser.add_argument("--no-plots", action="store_true", help="write data only")
    options = parser.parse_args()

    if options.name in DRAWN and not options.redraw:
        parser.error(f"{options.name} can only be drawn again: --redraw")
    names = list(measure.FIGURES) if options.name == "all" else [options.name]
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        if not options.redraw:
            programs = Programs(options.build, options.seconds)
            for name in names:
                data = measure.FIGURES[name](programs, options.largest)
                save(options.out / f"{name}.json", data)
    except RunFailed as failure:
        sys.exit(f"figures.py: {failure}")
    if not options.no_plots:
        os.execv(python := str(python_with_plots(options.build)),
                 [python, str(HERE / "plots.py"), str(options.out), *names])


if __name__ == "__main__":
    main()
