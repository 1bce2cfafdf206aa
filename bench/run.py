#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures Macadam and other MPI libraries side by side and prints tables with ratios.

All libraries take turns in every round, so that what disturbs the machine disturbs all of them, and
short messages are compared at one pace of the machine (harness.Pace); a value is the median over the
rounds, a ratio the median of the ratios within a round. Peers come from PyPI into virtual
environments in the build tree; one that cannot be had is left out, with a note. Those with the
standard ABI run the very same programs as Macadam, the others compile them."""
import argparse
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

from harness import (FIGURES, HALO_SIZES, IDEAL_UNITS, TIME_LIMIT, Library, Pace, Results,
                     full_overlap, measure_sessions, measure_startup, processor, table, versions)
from peers import add_options, libraries, names, that_spawns

SIZES = [str(size) for size in (16 << 10, 64 << 10, 1 << 20, 4 << 20)]
SPAWNED = (1, 8, 32)
# Of each program, by which --only chooses: ranks, and how it is called.
RUNS = [
    ("pingpong", 2, "pingpong", "8", *SIZES),
    ("pingpong", 2, "pingpong", "touch", "1024", *SIZES),
    ("rate", 2, "rate", "8", *SIZES),
    *(("collective", ranks, "collective") for ranks in (2, 4, 8)),
    ("partitioned", 2, "partitioned", "20", "40", "100", "400"),
    ("threads", 2, "threads", "1", "2", "4"),
    ("onesided", 2, "onesided", *SIZES),
]
# What the processor needs for the same: the figure that the benchmark prints beside it.
BESIDE = {"fetch_and_op_us": ("atomic", "atomic_us"), "put_gb": ("memcpy", "memcpy_gb")}


def measure_in_turn(results, all_libraries, pace, ranks, *words):
    pace.measure(results, all_libraries, lambda here, library: here.measure(library, ranks, *words))


def measure_halo(results, all_libraries, pace, ranks):
    """Halo exchanges; beside them as much computation as the fastest took in the first round, for
    all libraries and in all rounds the same."""
    measure_in_turn(results, all_libraries, pace, ranks, "halo")
    beside = []
    for dimensions in (2, 3):
        for size in HALO_SIZES:
            figure = results.values.get((f"halo_{dimensions}d_{size}_blocking_us", ranks), {})
            if figure:
                fastest = min(values[0] for values in figure.values())
                beside += [str(dimensions), str(size), f"{fastest:.3g}"]
    measure_in_turn(results, all_libraries, pace, ranks, "halo", "overlap", *beside)


def measure_round(results, all_libraries, sender, pace, arguments):
    if {"pingpong", "onesided"} & set(arguments.only):
        results.add_lines("machine", pace.ask_machine(*SIZES))
    for program, *run in RUNS:
        if program in arguments.only:
            measure_in_turn(results, all_libraries, pace, *run)
    if "halo" in arguments.only:
        for ranks in (2, 4, 8):
            measure_halo(results, all_libraries, pace, ranks)
    if "files" in arguments.only:
        with tempfile.TemporaryDirectory(prefix="macadam_bench_") as folder:
            for library in all_libraries:
                results.measure(library, 2, "files", folder)
    if "progress" in arguments.only:
        for library in [all_libraries[0], sender, *all_libraries[1:]]:
            results.measure(library, 2, "progress", str(arguments.unit))
    if "sessions" in arguments.only:
        for ranks in (2, 4):
            for library in all_libraries:
                measure_sessions(results, library, ranks)
    if "dynamic" in arguments.only:
        for library in map(that_spawns, all_libraries):
            for processes in SPAWNED:
                results.measure(library, 1, "dynamic", "spawn", str(processes))
            results.measure(library, 1, "dynamic", "connect")
            results.measure(library, 1, "dynamic", "first")
    if "startup" in arguments.only:
        measure_startup(results, all_libraries, 2, 3)
        for ranks in (2, 8, 32):
            for library in all_libraries:
                results.measure(library, ranks, "startup", "memory")


def machine_references(results, figure, parameter):
    """(name, value, ratio of ours to it) of what the machine itself needs, where that is known."""
    if figure in IDEAL_UNITS:
        return full_overlap(results, figure, parameter)
    if figure in BESIDE:
        name, other = BESIDE[figure]
        return [(name, results.median(other, parameter, "Macadam"),
                 results.ratio(figure, parameter, "Macadam", other, parameter, "Macadam"))]
    if figure not in ("half_round_trip_us", "put_flush_us", "get_flush_us"):
        return []
    other, at = ("memcpy_us", parameter) if parameter > 8 else ("cache_line_us", 0)
    name = "memcpy" if parameter > 8 else "cache line"
    return [(name, results.median(other, at, "machine"),
             results.ratio(figure, parameter, "Macadam", other, at, "machine"))]


def data_paths(ours, programs):
    """How the bytes of Macadam's long messages crossed: a table."""
    lines = ["### Macadam's data path (percent of the bytes)", "",
             "| program | size | EAGER | rendezvous, chunks | kernel, one core | kernel, both cores |",
             "| --- | ---: | ---: | ---: | ---: | ---: |"]
    environment = {**ours.environment, "MACADAM_REPORT": "1"}
    for program in programs:
        for size in SIZES:
            done = subprocess.run([*ours.launcher, "-n", "2", ours.programs / program, size],
                                  env=environment, check=True, capture_output=True, text=True,
                                  timeout=TIME_LIMIT)
            rows = re.findall(r"^ +(bytes_\w+) +(\d+)", done.stdout + done.stderr, re.MULTILINE)
            bytes_of = {name: int(value) for name, value in rows}
            split, chunks = bytes_of.get("bytes_split_copied", 0), bytes_of.get("bytes_streamed", 0)
            kernel = bytes_of.get("bytes_cross_copied", 0) - split
            eager = bytes_of["bytes_sent"] - split - chunks - kernel
            shares = " | ".join(f"{100 * part / bytes_of['bytes_sent']:.0f}"
                                for part in (eager, chunks, kernel, split))
            lines.append(f"| {program} | {size} | {shares} |")
    return "\n".join(lines) + "\n"


def report(results, all_libraries, pace, arguments):
    about = {"processor": processor(), "cores": os.cpu_count(), "kernel": platform.release(),
             "rounds": arguments.rounds, "versions": versions(results, all_libraries)}
    text = [f"{about['processor']}, {about['cores']} cores, Linux {about['kernel']}; medians of "
            f"{arguments.rounds} rounds in which all libraries take turns.", ""]
    text += [f"- {name}: {version}" for name, version in about["versions"].items()]
    if pace.unsteady:
        text.append(f"- left out, as the machine changed its pace again and again: {pace.unsteady} starts of all libraries")
    text += ["", *filter(None, (table(results, figure, machine_references)
                              for figure in FIGURES))]
    paths_of = [program for program in ("pingpong", "rate") if program in arguments.only]
    if paths_of:
        text.append(data_paths(all_libraries[0], paths_of))
    text += results.failure_lines()
    text = "\n".join(text).rstrip() + "\n"
    print(text, end="")
    if arguments.markdown:
        arguments.markdown.write_text(text, encoding="utf8")
    if arguments.json:
        results.save(arguments.json, about)


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    everything = "pingpong,rate,collective,halo,partitioned,threads,onesided,files,progress,startup,sessions,dynamic"
    add_options(parser, everything)
    parser.add_argument("--json", type=pathlib.Path, help="write every single value")
    arguments = parser.parse_args()
    for name in arguments.only:
        if name not in names(everything):
            parser.error(f"--only: found '{name}', needed one of {everything}")
    arguments.build = arguments.build.resolve()
    return arguments


def main():
    arguments = parse()
    if not shutil.which(str(arguments.build / "bin" / "mpiexec")):
        sys.exit(f"bench: no bin/mpiexec in {arguments.build}: build it first (make bench does)")
    all_libraries = libraries(arguments.build, arguments.peers, arguments.venvs)
    ours = all_libraries[0]
    sender = Library("sender-initiated", ours.launcher, ours.programs,
                     {"MACADAM_PROTOCOLS": "sender"})
    results, pace = Results(), Pace(arguments.build)
    for r in range(arguments.rounds):
        print(f"bench: round {r + 1} of {arguments.rounds}", file=sys.stderr)
        measure_round(results, all_libraries, sender, pace, arguments)
    report(results, all_libraries, pace, arguments)
    ours_failed = any(name == "Macadam" for name, _, _ in results.failures)
    sys.exit(1 if ours_failed else 0)


if __name__ == "__main__":
    main()
