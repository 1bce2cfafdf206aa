#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs Intel's MPI benchmarks, IMB-MPI1, on Macadam and beside it on the other libraries with MPICH's
ABI: the program as Intel built it, which comes from PyPI with Intel's library, the same file for all.
Each library has its own defaults, and so has the program. All take turns in every round, at one pace of
the machine (harness.Pace). One table of all rows, the worst first. A time is that of the slowest rank."""
import argparse
import pathlib
import re
import subprocess
import sys

from harness import Library, Pace, Results
from peers import PEERS, intel_environment, names
from users import about_run, add_outputs, page, publish

BENCHMARKS = ("PingPong", "PingPing", "Sendrecv", "Exchange", "Allreduce", "Reduce", "Reduce_scatter",
              "Reduce_scatter_block", "Allgather", "Allgatherv", "Gather", "Gatherv", "Scatter", "Scatterv",
              "Alltoall", "Alltoallv", "Bcast", "Barrier", "Uniband", "Biband")
RATES = ("Uniband", "Biband")  # messages a second; of all others the time counts
UNITS = {name: ("message/s", False) if name in RATES else ("us", True) for name in BENCHMARKS}
PAIR = ("PingPong", "PingPing")  # on two ranks, whatever there are
ITS_PEERS = ("mpich", "intel")  # of the same ABI


def tables(output):
    """(benchmark, bytes, figure) of each row that IMB prints."""
    for block in re.split(r"# Benchmarking ", output)[1:]:
        name, columns = block.split()[0], []
        for line in block.splitlines():
            words = line.split()
            if words and words[0].startswith("#") and "repetitions" in line:
                columns = words
            elif columns and words and words[0].isdigit():
                row = dict(zip(columns, words))
                figure = row.get("Msg/sec") if name in RATES else row.get("t_max[usec]", row.get("t[usec]"))
                yield name, int(row.get("#bytes", 0)), float(figure)


def measure(results, library, ranks, benchmark):
    run = (library.name, "IMB-MPI1", ranks)
    if run in results.failures:  # do not wait for the same hang in other benchmarks
        return
    try:
        output = library.run(ranks, "IMB-MPI1", "-npmin", str(ranks), benchmark)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        results.failures[run] = str(error)
        print(f"bench: {library.name}: {error}", file=sys.stderr)
        return
    for name, size, figure in tables(output):
        results.add((name, ranks), size, library.name, figure)


def measure_round(results, all_libraries, pace, arguments):
    for ranks in arguments.ranks:
        for benchmark in arguments.only:
            if benchmark not in PAIR or ranks == 2:
                pace.measure(results, all_libraries,
                             lambda here, library: measure(here, library, ranks, benchmark))


def libraries(build, peers, venvs):
    """Macadam first; all run the same program."""
    work = venvs or build / "bench" / "peers"
    programs = intel_environment(work) / "bin"
    return [Library("Macadam", [build / "bin" / "mpiexec", "-abi", "mpich"], programs),
            *(PEERS[name](work, programs, False) for name in peers)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    numbers = lambda text: [int(word) for word in text.split(",")]
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the build tree")
    parser.add_argument("--peers", type=names, default=list(ITS_PEERS), metavar="NAME,...",
                        help=f"of {', '.join(ITS_PEERS)}")
    parser.add_argument("--venvs", type=pathlib.Path, help="where the peers are (to be) installed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ranks", type=numbers, default=[2, 4], metavar="N,...")
    parser.add_argument("--only", type=names, default=list(BENCHMARKS), metavar="WHAT,...",
                        help=f"of {', '.join(BENCHMARKS)}")
    add_outputs(parser)
    arguments = parser.parse_args()
    if unknown := {*arguments.only} - {*BENCHMARKS} | {*arguments.peers} - {*ITS_PEERS}:
        parser.error(f"found {', '.join(sorted(unknown))}, which is no benchmark and no peer here")
    build = arguments.build.resolve()
    all_libraries = libraries(build, arguments.peers, arguments.venvs and arguments.venvs.resolve())
    results, pace = Results(), Pace(build)
    for r in range(arguments.rounds):
        print(f"bench: round {r + 1} of {arguments.rounds}", file=sys.stderr)
        measure_round(results, all_libraries, pace, arguments)
    command = (f"python3 bench/imb.py --build build/release --peers {','.join(arguments.peers)} --rounds "
               f"{arguments.rounds} --ranks {','.join(map(str, arguments.ranks))} --markdown docs/imb.md")
    about = about_run(results, [], arguments.rounds, pace)
    about["versions"] = {"IMB-MPI1": "of impi-rt 2021.18 from PyPI, the same file for all"}
    text = page(results, UNITS, all_libraries, about, "Intel's MPI benchmarks", command)
    sys.exit(publish(arguments, results, text, about))


if __name__ == "__main__":
    main()
