#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures waits beside other programs (crowded.cc): an exchange of 8 bytes and collectives on a quiet
machine and beside busy programs of normal and of lowest priority. Macadam is measured with its
defaults and with -bind-to core, the peers with their defaults; all take turns in every round. A
value is the median over the rounds. What was measured before is read from the file of --json, so
that a table can be made of several sittings."""
import argparse
import json
import os
import pathlib
import platform
import statistics
import sys

from harness import Library, Results, number, processor, versions
from peers import add_peers, libraries, names
from users import Busy

BOUND = "bound"
WHAT = {"half_round_trip": [2], "barrier": [2, 4, 8], "allreduce": [2, 4, 8]}
# What runs beside: (programs, their niceness).
BESIDE = {"quiet": (0, 0), "one": (1, 0), "two": (2, 0), "one_nice": (1, 19), "two_nice": (2, 19)}
TITLES = {"quiet": "nothing", "one": "one", "two": "two", "one_nice": "one, nice 19",
          "two_nice": "two, nice 19"}


def measure_round(results, all_libraries, arguments):
    for beside in arguments.beside:
        with Busy(*BESIDE[beside]):
            for what in arguments.only:
                for ranks in [n for n in WHAT[what] if n in arguments.ranks]:
                    for library in all_libraries:
                        if library.name == BOUND and ranks > os.cpu_count():
                            continue # mpiexec refuses it
                        here = Results()
                        here.measure(library, ranks, "crowded", what)
                        results.failures.update(here.failures)
                        for values in here.values.values():
                            results.add(f"{what} {beside}", ranks, library.name,
                                        values[library.name][0])


def rows(results, all_names):
    """(what, ranks, beside, medians by library, ratio to the best peer without and with binding)."""
    for what, all_ranks in WHAT.items():
        for ranks in all_ranks:
            for beside in BESIDE:
                values = results.values.get((f"{what} {beside}", ranks))
                if values is None:
                    continue
                medians = {name: statistics.median(values[name]) for name in all_names
                           if values.get(name)}
                best = min((median for name, median in medians.items()
                            if name not in ("Macadam", BOUND)), default=None)
                yield what, ranks, beside, medians, [
                    medians[name] / best if best and name in medians else None
                    for name in ("Macadam", BOUND)]


def page(results, about):
    all_names = ["Macadam", BOUND, *sorted({name for values in results.values.values()
                                            for name in values} - {"Macadam", BOUND})]
    counts = {len(values) for row in results.values.values() for values in row.values()} or {0}
    rounds = f"{min(counts)} to {max(counts)}" if len(counts) > 1 else max(counts)
    lines = [f"{about['processor']}, {about['cores']} cores, Linux {about['kernel']}; us, medians of "
             f"{rounds} rounds; the ratios are those to the best peer.", ""]
    lines += [f"- {name}: {version}" for name, version in about["versions"].items()]
    header = ["", "ranks", "beside", *all_names, "ratio", "ratio, bound"]
    lines += ["", "| " + " | ".join(header) + " |", "| --- | ---: | --- |" +
              " ---: |" * (len(header) - 3)]
    behind = 0
    for what, ranks, beside, medians, ratios in rows(results, all_names):
        behind += sum(ratio is not None and ratio > 2 for ratio in ratios)
        cells = [what.replace("_", " "), str(ranks), TITLES[beside],
                 *(number(medians.get(name)) for name in all_names), *map(number, ratios)]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", f"More than twice the best peer: {behind}.", *results.failure_lines()]
    return "\n".join(lines).rstrip() + "\n"


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the build tree")
    add_peers(parser)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", type=names, default=list(WHAT), metavar="WHAT,...",
                        help=f"of {', '.join(WHAT)}")
    parser.add_argument("--beside", type=names, default=list(BESIDE), metavar="WHAT,...",
                        help=f"of {', '.join(BESIDE)}")
    parser.add_argument("--ranks", type=lambda text: [int(word) for word in text.split(",")],
                        default=[2, 4, 8], metavar="N,...")
    parser.add_argument("--markdown", type=pathlib.Path, help="write the table")
    parser.add_argument("--json", type=pathlib.Path, help="add every single value to this file")
    arguments = parser.parse_args()
    for given, known in ((arguments.only, WHAT), (arguments.beside, BESIDE)):
        for word in given:
            if word not in known:
                parser.error(f"found '{word}', needed one of {', '.join(known)}")
    arguments.build = arguments.build.resolve()
    return arguments


def main():
    arguments = parse()
    ours, *peers = libraries(arguments.build, arguments.peers, arguments.venvs, unbound=False)
    bound = Library(BOUND, [*ours.launcher, "-bind-to", "core"], ours.programs)
    before = arguments.json if arguments.json and arguments.json.exists() else None
    results = Results.load(before) if before else Results()
    for r in range(arguments.rounds):
        print(f"bench: round {r + 1} of {arguments.rounds}", file=sys.stderr)
        measure_round(results, [ours, bound, *peers], arguments)
    about = {"processor": processor(), "cores": os.cpu_count(), "kernel": platform.release(),
             "versions": versions(results, [ours, *peers])}
    text = page(results, about)
    print(text, end="")
    if arguments.markdown:
        arguments.markdown.write_text(text, encoding="utf8")
    if arguments.json:
        results.save(arguments.json, about)


if __name__ == "__main__":
    main()
