#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures Macadam and other MPI libraries as users do (users.cc): each with its own defaults, its
ranks wherever it and the system put them, in fresh processes, every power of two from 1 byte up,
few iterations and many, on a quiet machine and beside busy programs. One table of all rows, the
worst first. All libraries take turns in every round; a value is the median over the rounds, a ratio
the median of the ratios to the best peer of the same round, and beside it stand the lowest and the
highest one: where these lie on both sides of 1, nothing is claimed. What is compared was measured at
one pace of the machine (harness.Pace)."""
import argparse
import contextlib
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys

from harness import Pace, Results, number, processor, versions
from peers import add_peers, libraries, names

# What is measured on how many ranks, its unit, and whether less is better.
PAIR = {"latency": ("us", True), "bandwidth": ("MB/s", False), "both_ways": ("MB/s", False),
        **{name: ("us", True) for name in (
            "put", "get", "accumulate", "get_accumulate", "fetch_and_op", "compare_and_swap",
            "fence_put", "fence_get", "fence_accumulate", "fence_get_accumulate")}}
PAIRS = {"pairs": ("million/s", False)}
COLLECTIVES = {name: ("us", True) for name in (
    "barrier", "bcast", "reduce", "allreduce", "allgather", "alltoall", "reduce_scatter", "gather",
    "scatter", "bcast_and_barrier", "scatter_and_barrier")}
EVERYTHING = {**PAIR, **PAIRS, **COLLECTIVES}
# Ahead, level, behind: by the median ratio.
AHEAD, BEHIND = 0.95, 1.05


class Busy:
    """Programs beside the measurement that keep cores busy, as a user's other work does."""

    def __init__(self, count, niceness=0):
        self.count, self.niceness, self.children = count, niceness, []

    def __enter__(self):
        command = ["nice", "-n", str(self.niceness), sys.executable, "-c", "while True: pass"]
        self.children = [subprocess.Popen(command) for _ in range(self.count)]
        return self

    def __exit__(self, *_):
        for child in self.children:
            child.kill()
            child.wait()


def runs(arguments):
    """(what, ranks, iterations) of every process that is started."""
    for iterations in arguments.iterations:
        for what in arguments.only:
            for ranks in [2] if what in PAIR else arguments.ranks:
                yield what, ranks, iterations


def measure_line(results, library, run, arguments):
    """What one library needs for a line of the table, by size."""
    what, ranks, iterations, busy = run
    here = Results(results.failures)
    with Busy(busy) if busy else contextlib.nullcontext():
        here.measure(library, ranks, "users", str(iterations), str(arguments.longest),
                     *(["touch"] if arguments.touch else []), what)
    for (_, size), values in here.values.items():
        for value in values.get(library.name, []):
            results.add(run, size, library.name, value)


def measure_round(results, all_libraries, arguments, pace):
    for busy in arguments.busy:
        for run in runs(arguments):
            line = lambda here, library: measure_line(here, library, (*run, busy), arguments)
            if busy == 0:
                pace.measure(results, all_libraries, line)
                continue
            for library in all_libraries:  # nobody can tell the pace beside them
                line(results, library)


class Row:
    """One line of the table: ours beside the peers'."""

    def __init__(self, key, values, unit, less_is_better):
        (self.what, self.ranks, *self.beside), self.size = key
        self.unit, self.less_is_better = unit, less_is_better
        self.medians = {name: statistics.median(rounds) for name, rounds in values.items() if rounds}
        self.ratios = sorted(self.ratios_of(values))

    def ratios_of(self, values):
        """Of each round: above 1 we are behind, whichever way the unit goes."""
        for i, mine in enumerate(values.get("Macadam", [])):
            others = [rounds[i] for name, rounds in values.items()
                      if name != "Macadam" and i < len(rounds)]
            if others and mine > 0:
                yield mine / min(others) if self.less_is_better else max(others) / mine

    @property
    def ratio(self):
        return statistics.median(self.ratios)

    def cells(self, names):
        return [self.what, self.ranks, self.size, *self.beside,
                *(number(self.medians.get(name)) for name in names), self.unit,
                number(self.ratio), f"{number(self.ratios[0])} to {number(self.ratios[-1])}"]


def rows_of(results, units):
    """`units`: of what is measured the unit, and whether less is better."""
    rows = [Row(key, values, *units[key[0][0]]) for key, values in results.values.items()]
    return sorted((row for row in rows if row.ratios), key=lambda row: -row.ratio)


def standing(rows):
    """In how many rows we are ahead, level and behind."""
    ahead = sum(row.ratio <= AHEAD for row in rows)
    behind = sum(row.ratio > BEHIND for row in rows)
    return ahead, len(rows) - ahead - behind, behind


def summary(rows):
    ahead, level, behind = standing(rows)
    return (f"{len(rows)} rows: ahead (ratio at most {AHEAD}) in {ahead}, level in {level}, behind "
            f"(above {BEHIND}) in {behind}.")


def table(header, rows):
    return ["| " + " | ".join(header) + " |", "| --- |" + " ---: |" * (len(header) - 1),
            *("| " + " | ".join(map(str, row)) + " |" for row in rows)]


def overview(rows):
    """A line for each measurement over all its sizes: in how many of them we are where, and how far at worst."""
    measured = {}
    for row in rows:
        measured.setdefault((row.what, row.ranks, *row.beside), []).append(row)
    for key, its in sorted(measured.items(), key=lambda item: -statistics.median(row.ratio for row in item[1])):
        worst = max(its, key=lambda row: row.ratio)
        yield [*key, *standing(its), number(statistics.median(row.ratio for row in its)),
               f"{number(worst.ratio)} at {worst.size}"]


def page(results, units, all_libraries, about, title, command, beside=()):
    """The whole page. `command` writes it; `beside`: what a row has besides what, ranks and bytes."""
    titles = [library.name for library in all_libraries]
    rows = rows_of(results, units)
    lines = [f"# {title}", "", f"`{command}` writes this page.", "",
             f"{about['processor']}, {about['cores']} cores, Linux {about['kernel']}; medians of "
             f"{about['rounds']} rounds. The ratio is that to the best peer, and above 1 where "
             "Macadam is behind.", ""]
    lines += [f"- {name}: {version}" for name, version in about["versions"].items()]
    if about["unsteady"]:
        lines += ["", f"Left out, as the machine changed its pace in each of {Pace.ATTEMPTS} attempts: "
                      f"{about['unsteady']} starts of all libraries."]
    if about["uneven"]:
        lines += ["", f"During {about['uneven']} of {about['lines']} starts of all libraries one core took more than "
                      f"{Pace.EVEN} times as long as the other for the same work: where only some libraries bind "
                      "their first rank to the faster one, the others look slow."]
    lines += ["", summary(rows), ""]
    lines += table(["what", "ranks", *beside, "ahead", "level", "behind", "ratio", "worst, bytes"],
                   overview(rows))
    lines += ["", *table(["what", "ranks", "bytes", *beside, *titles, "unit", "ratio", "of the rounds"],
                         (row.cells(titles) for row in rows))]
    lines += ["", *results.failure_lines()]
    return "\n".join(lines).rstrip() + "\n"


def about_run(results, all_libraries, rounds, pace):
    return {"processor": processor(), "cores": os.cpu_count(), "kernel": platform.release(),
            "rounds": rounds, "unsteady": pace.unsteady, "uneven": pace.uneven, "lines": pace.measured,
            "versions": versions(results, all_libraries)}


def publish(arguments, results, text, about):
    """Prints and writes what was asked for; the exit code."""
    print(text, end="")
    if arguments.markdown:
        arguments.markdown.write_text(text, encoding="utf8")
    if arguments.json:
        save(arguments.json, results, about)
    return 1 if any(name == "Macadam" for name, _, _ in results.failures) else 0


def add_outputs(parser):
    parser.add_argument("--markdown", type=pathlib.Path, help="write the table")
    parser.add_argument("--json", type=pathlib.Path, help="write every single value")


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    numbers = lambda text: [int(word) for word in text.split(",")]
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the build tree")
    add_peers(parser)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", type=names, metavar="WHAT,...",
                        help=f"of {', '.join(EVERYTHING)}")
    parser.add_argument("--ranks", type=numbers, default=[2, 4, 8], metavar="N,...",
                        help="of collectives and many pairs")
    parser.add_argument("--iterations", type=numbers, default=[100, 10000], metavar="N,...")
    parser.add_argument("--busy", type=numbers, default=[0, 1, 2], metavar="N,...",
                        help="busy programs beside the measurement")
    parser.add_argument("--longest", type=int, default=4 << 20, metavar="BYTES")
    parser.add_argument("--touch", action="store_true",
                        help="collectives only: data are written before each call and read after it, in the time")
    parser.add_argument("--beside", type=pathlib.Path, metavar="JSON",
                        help="what --json of another run has written: its rows join the table")
    add_outputs(parser)
    arguments = parser.parse_args()
    known = [word for word in COLLECTIVES if not word.endswith("barrier")] if arguments.touch else list(EVERYTHING)
    arguments.only = arguments.only or known
    for word in arguments.only:
        if word not in known:
            parser.error(f"--only: found '{word}', needed one of {', '.join(known)}")
    arguments.build = arguments.build.resolve()
    return arguments


def save(file, results, about):
    rows = [{"of": of, "bytes": size, "values": values} for (of, size), values in results.values.items()]
    file.write_text(json.dumps({**about, "rows": rows}, indent=1), encoding="utf8")


def add_saved(results, file):
    """The rows of another run, of what this one has not measured."""
    for row in json.loads(file.read_text(encoding="utf8"))["rows"]:
        key = tuple(row["of"]), row["bytes"]
        if key in results.values:
            sys.exit(f"{file} has {row['of']} too, which has just been measured; choose others by --only or --ranks")
        results.values[key] = row["values"]


def main():
    arguments = parse()
    all_libraries = libraries(arguments.build, arguments.peers, arguments.venvs, unbound=False)
    results, pace = Results(), Pace(arguments.build)
    for r in range(arguments.rounds):
        print(f"bench: round {r + 1} of {arguments.rounds}", file=sys.stderr)
        measure_round(results, all_libraries, arguments, pace)
    if arguments.beside:
        add_saved(results, arguments.beside)
    several = lambda numbers: ",".join(map(str, numbers))
    command = (f"python3 bench/users.py --build build/release --rounds {arguments.rounds} --iterations "
               f"{several(arguments.iterations)} --ranks {several(arguments.ranks)} --busy "
               f"{several(arguments.busy)}{' --touch' if arguments.touch else ''}"
               f"{' --beside JSON' if arguments.beside else ''} --markdown docs/as-users-run.md")
    about = about_run(results, all_libraries, arguments.rounds, pace)
    text = page(results, EVERYTHING, all_libraries, about, "Every row, as users run it", command,
                ["iterations", "busy programs"])
    sys.exit(publish(arguments, results, text, about))


if __name__ == "__main__":
    main()
