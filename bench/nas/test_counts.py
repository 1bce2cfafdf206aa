#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The messages of an iteration, by the library's own counters, against what docs/nas.md says that NPB
sends: class S on 4 ranks. Two runs of different length leave what is of iterations alone.

    python3 -B bench/nas/test_counts.py --build build/release"""
import argparse
import pathlib
import subprocess
import sys

import jobs

DOUBLE, RANKS = 8, 4


def cg():
    """Per rank: 26 products, each with one sum over two columns and one transposition of 700 values,
    and 53 sums of one number or, once, two."""
    part, products = 1400 // 2, 26
    return RANKS * (2 * products + 53), RANKS * DOUBLE * (2 * products * part + 54)


def lu():
    """Four borders between ranks: in both sweeps a line of 5 inner points a plane, then faces."""
    planes, edge, n = 12 - 2, 6, 12
    return 4 * (2 * planes + 2), 4 * DOUBLE * (2 * planes * 5 * (edge - 1) + 2 * 2 * 5 * edge * n)


def mg():
    """Borders on levels of 2 to 32 points: after a restriction, a residual and a smoothing; six a rank."""
    count = size = 0
    for points in (2, 4, 8, 16, 32):
        # Down (not the finest), the smoothing, the residual (not the coarsest), and that after the cycle.
        exchanges = (points < 32) + 1 + (points > 2) + (points == 32)
        x, y, z = points, points // 2, points // 2
        count += exchanges * 6
        size += exchanges * 2 * DOUBLE * (y * z + (x + 2) * z + (x + 2) * (y + 2))
    return RANKS * count, RANKS * size


def multipartition(forwards, backwards, lines):
    """Six faces of one cell, two points deep; along each axis one message each way for all lines."""
    faces, edge = 6, 6
    return (RANKS * (faces + 3 * 2),
            RANKS * DOUBLE * (faces * 2 * 5 * edge ** 2 + 3 * (forwards + backwards) * lines))


# An all-to-all and a sum, by each rank.
FT_COLLECTIVES = 2 * RANKS


EXPECTED = {"cg": cg(), "lu": lu(), "mg": mg(), "sp": multipartition(22, 10, 25),
            "bt": multipartition(30, 5, 49)}


def counted(build, kernel, iterations):
    done = subprocess.run(jobs.command(build, kernel, RANKS, "S", f"iterations={iterations}"),
                          capture_output=True, text=True, timeout=60)
    line, counters = jobs.line_in(done.stdout), jobs.counters_in(done.stdout + done.stderr)
    if done.returncode or not line or not counters:
        sys.exit(f"{kernel}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    own = int(line["messages"]), int(line["bytes"])
    return own, (jobs.messages(counters), counters["bytes_sent"]), counters["coll_shared"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    build = parser.parse_args().build.resolve()
    wrong = 0
    for kernel, expected in EXPECTED.items():
        (short_own, short_library, _), (long_own, long_library, _) = (counted(build, kernel, 2),
                                                                      counted(build, kernel, 5))
        library = [(b - a) / 3 for a, b in zip(short_library, long_library)]
        own = [(b - a) / 3 for a, b in zip(short_own, long_own)]
        for what, needed, found, told in zip(("messages", "bytes"), expected, library, own):
            right = found == needed and told == needed
            wrong += not right
            print(f"{kernel} {what} an iteration: needed {needed}, the library counted {found:g}, the kernel "
                  f"{told:g}{'' if right else ' WRONG'}")
    # What is done in shared memory sends nothing.
    found = (counted(build, "ft", 5)[2] - counted(build, "ft", 2)[2]) / 3
    wrong += found != FT_COLLECTIVES
    print(f"ft collectives an iteration: needed {FT_COLLECTIVES}, the library counted {found:g}")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
