#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The NAS benchmarks' communication on the library just built (docs/nas.md): a user's own copy of NPB
3.4, or the kernels of this folder where none is given.

    python3 -B bench/nas/run.py --build build/release --class W
    python3 -B bench/nas/run.py --build build/release --npb NPB3.4.3 --class A --ranks 4
    python3 -B bench/nas/run.py --build build/release --over soft-roce
    python3 -B bench/nas/run.py --build build/release --over simulator --experiment receives

The exit status is 1 if a program did not verify its result."""
import argparse
import pathlib
import subprocess
import sys

import jobs
import npb
import simulator
import soft_roce

COLUMNS = ("kernel", "class", "ranks", "seconds", "mpi_seconds", "messages", "bytes", "verified")
SECONDS = 1200  # for one program


def own(kernel, build, size, ranks):
    """The line of a kernel of this folder."""
    done = subprocess.run([build / "bin" / "mpiexec", "-timeout", str(SECONDS), "-n", str(ranks),
                           build / "bench" / "nas" / kernel, size], stdout=subprocess.PIPE, text=True)
    line = jobs.line_in(done.stdout) or {"kernel": kernel.upper(), "class": size, "ranks": ranks}
    return {**dict.fromkeys(COLUMNS, "-"), **line, "verified": line.get("verified", "no")}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--npb", type=pathlib.Path, metavar="FOLDER", help="NPB 3.4, unpacked")
    parser.add_argument("--class", dest="size", default="S", help="S, W, A, ... (S)")
    parser.add_argument("--ranks", type=int, default=4, help="4 suits all: a power of two and a square")
    parser.add_argument("--kernels", default=",".join(jobs.KERNELS), help="some of %(default)s")
    parser.add_argument("--over", choices=("shared-memory", "soft-roce", "simulator"), default="shared-memory")
    parser.add_argument("--experiment", action="append", choices=soft_roce.EXPERIMENTS,
                        help="over soft-RoCE or in the simulator: one, or more (all)")
    parser.add_argument("--json", type=pathlib.Path, help="of experiments: write every number")
    parser.add_argument("--times", type=pathlib.Path, metavar="FOLDER",
                        help="in the simulator: compute times, to repeat a run to the digit")
    arguments = parser.parse_args()
    arguments.kernels = arguments.kernels.lower().split(",")
    if unknown := set(arguments.kernels) - set(jobs.KERNELS):
        parser.error(f"--kernels: unknown {', '.join(sorted(unknown))}; known are {', '.join(jobs.KERNELS)}")
    if arguments.over != "shared-memory" and arguments.npb:
        parser.error("--npb is for --over shared-memory")
    if arguments.over == "simulator" and not set(arguments.experiment or ()) <= set(simulator.EXPERIMENTS):
        parser.error(f"--experiment: in the simulator there are {', '.join(simulator.EXPERIMENTS)}")
    return arguments


def main():
    arguments = parse()
    build = arguments.build.resolve()
    if arguments.over == "soft-roce":
        sys.exit(soft_roce.run(build, arguments.experiment or soft_roce.EXPERIMENTS, arguments.kernels,
                               arguments.json))
    if arguments.over == "simulator":
        try:
            simulator.run(build, arguments.experiment or simulator.EXPERIMENTS, arguments.kernels,
                          arguments.times or build / "bench" / "nas" / "times", arguments.json)
        except simulator.Failed as why:
            sys.exit(str(why))
        return
    try:
        programs = npb.build(arguments.npb.resolve(), build, build / "bench" / "npb", arguments.kernels,
                             arguments.size) if arguments.npb else {}
    except npb.Refused as why:
        sys.exit(f"nas: {why}")
    print("| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|")
    right = True
    for kernel in arguments.kernels:
        if not arguments.npb:
            row = own(kernel, build, arguments.size, arguments.ranks)
        elif kernel in programs:
            row = npb.run(programs[kernel], build, arguments.ranks, SECONDS)
        else:
            right = False
            continue
        right = right and row["verified"] == "yes"
        print("| " + " | ".join(str(row[name]) for name in COLUMNS) + " |", flush=True)
    sys.exit(not right)


if __name__ == "__main__":
    main()
