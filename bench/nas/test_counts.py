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


def ft():
    """An all-to-all of a 16th of 64^3 complex numbers, and three ranks' parts of the checksum."""
    return None, RANKS * (RANKS - 1) * 64 ** 3 // RANKS ** 2 * 2 * DOUBLE + 3 * 2 * DOUBLE


EXPECTED = {"cg": cg(), "lu": lu(), "mg": mg(), "sp": multipartition(22, 10, 25),
            "bt": multipartition(30, 5, 49), "ft": ft()}


def counted(build, kernel, iterations):
    done = subprocess.run(jobs.command(build, kernel, RANKS, "S", f"iterations={iterations}"),
                          capture_output=True, text=True, timeout=60)
    line, counters = jobs.line_in(done.stdout), jobs.counters_in(done.stdout + done.stderr)
    if done.returncode or not line or not counters:
        sys.exit(f"{kernel}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    own = int(line["messages"]), int(line["bytes"])
    return own, (jobs.messages(counters), counters["bytes_sent"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    build = parser.parse_args().build.resolve()
    wrong = 0
    for kernel, expected in EXPECTED.items():
        (short_own, short_library), (long_own, long_library) = counted(build, kernel, 2), counted(build, kernel, 5)
        library = [(b - a) / 3 for a, b in zip(short_library, long_library)]
        own = [(b - a) / 3 for a, b in zip(short_own, long_own)]
        pairs = list(zip(("messages", "bytes"), expected, library, own))
        for what, needed, found, told in pairs:
            # The all-to-all is the library's: it may send as many messages as it likes.
            right = needed is None or (found == needed and (told == needed or kernel == "ft"))
            wrong += not right
            print(f"{kernel} {what} an iteration: needed {needed}, the library counted {found:g}, the kernel "
                  f"{told:g}{'' if right else ' WRONG'}")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
